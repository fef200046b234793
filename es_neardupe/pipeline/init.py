"""Prepare an index: put our mapping and the chosen scheme into it, nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

from es_neardupe import schema
from es_neardupe.blocks import check_writable
from es_neardupe.clients import Client, path
from es_neardupe.errors import MappingConflict, NotFound, SchemeMismatch, SettingsError
from es_neardupe.indices import check_name, check_source, check_text_fields, mappings_of, put_settings, stored_settings
from es_neardupe.pipeline.init_sidecar import Sidecars, check_inline
from es_neardupe.pipeline.sampling import Sampling, choose_sampling
from es_neardupe.settings import Settings

__all__ = ["InitReport", "init"]


@dataclass(frozen=True)
class InitReport:
    """What was prepared."""

    index: str
    indices: tuple[str, ...]
    created: bool
    prepared: tuple[str, ...]
    """Concrete indices that got the mapping now; the others had it."""
    scheme: str
    fields: tuple[str, ...]
    threshold: float
    bands: int
    rows: int
    agree: int
    """Bands that a candidate pair shares."""
    detection: float
    """Probability that a pair exactly at the threshold becomes a candidate."""
    sample_mod: int
    """One in so many shingles becomes a sampled key; 0: none does."""
    sampling: Sampling | None
    """How that was chosen, where it was chosen now."""
    sidecars: tuple[str, ...]
    """Our indices beside these, where nothing is written into them (``sidecar``)."""
    write_group: bool
    """Whether group ids are written into the documents nevertheless."""
    dry_run: bool


def init(
    client: Client,
    index: str,
    settings: Settings,
    *,
    sample_keys: int | None = None,
    create: bool = False,
    sidecar: bool = False,
    write_group: bool = False,
    dry_run: bool = False,
) -> InitReport:
    """Add our fields and the scheme to the mapping of an index, alias or pattern.

    ``create`` makes a missing index, with a text mapping for the fields. ``sample_keys`` chooses ``sample_mod`` by the
    lengths of the texts that are there, unless the index has one already. ``sidecar`` keeps all that is ours in an
    index beside and leaves this one as it is, but for the group id with ``write_group``. Doing it twice changes
    nothing. Raises `SchemeMismatch` if the index has other settings, `MappingConflict`, `IndexUnusable`, `NotFound` or
    `Blocked`; nothing is written then.
    """
    if sample_keys is not None and settings.sample_mod:
        raise SettingsError("Give either --sample-mod or --sample-keys, which chooses it.")
    if (create and sidecar) or (write_group and not sidecar):
        raise SettingsError(
            "--create makes an index of yours, which --sidecar leaves alone; --write-group goes with that."
        )
    try:
        mappings = mappings_of(client, index)
    except NotFound:
        if not create:
            raise
        return _create(client, index, settings, sample_keys, dry_run)
    if sidecar:
        sidecars = Sidecars(client, index, mappings, settings, write_group=write_group)
        settings, sampling = _sampled(client, index, sidecars.known or mappings, settings, sample_keys)
        prepared = sidecars.prepare(settings, dry_run=dry_run)
        return _report(
            index,
            tuple(sorted(mappings)),
            settings,
            prepared=prepared,
            sampling=sampling,
            sidecars=sidecars.names,
            write_group=sidecars.write_group,
            dry_run=dry_run,
        )
    check_inline(client, mappings, settings.prefix)
    settings, sampling = _sampled(client, index, mappings, settings, sample_keys)
    to_prepare = [name for name, mapping in mappings.items() if _needs(name, mapping, settings)]
    if to_prepare:
        check_writable(client, index)
    for name in to_prepare if not dry_run else ():
        put_settings(client, name, mappings[name], settings)
    indices = tuple(sorted(mappings))
    return _report(index, indices, settings, prepared=tuple(to_prepare), sampling=sampling, dry_run=dry_run)


def _sampled(
    client: Client, index: str, mappings: Mapping[str, Any], settings: Settings, wanted: int | None
) -> tuple[Settings, Sampling | None]:
    """The settings with the modulus that gives the wanted keys, and its choice; a modulus that is stored stays."""
    if wanted is None:
        return settings, None
    for mapping in mappings.values():
        stored = stored_settings(mapping, settings.prefix)
        if stored is not None and stored.sample_mod:
            return replace(settings, sample_mod=stored.sample_mod), None
    for name, mapping in mappings_of(client, index).items():
        check_text_fields(name, mapping, settings)
    sampling = choose_sampling(client, index, settings, wanted)
    return replace(settings, sample_mod=sampling.sample_mod), sampling


def _create(client: Client, index: str, settings: Settings, sample_keys: int | None, dry_run: bool) -> InitReport:
    check_name(index)
    if sample_keys is not None:
        raise SettingsError("A new index has no texts whose lengths decide: give --sample-mod, not --sample-keys.")
    properties = schema.text_mapping(settings.fields) | {settings.prefix: schema.fields_mapping()}
    mapping = {"_meta": {settings.prefix: settings.to_meta()}, "properties": properties}
    if not dry_run:
        client.request("PUT", path(index), body={"mappings": mapping})
    return _report(index, (index,), settings, prepared=(index,), created=True, dry_run=dry_run)


def _needs(name: str, mapping: dict[str, Any], settings: Settings) -> bool:
    """Whether an index lacks anything of ours. Raises what forbids to add it."""
    stored = stored_settings(mapping, settings.prefix)
    if stored is not None and (differences := stored.differences(settings)):
        raise SchemeMismatch(
            f"Index {name} is prepared already, with other settings ({'; '.join(differences)}). Use those, or choose "
            f"another --prefix, or remove our fields with `es-neardupe clean {name}` and run init again."
        )
    properties = mapping.get("properties", {})
    check_source(name, mapping, settings)
    check_text_fields(name, mapping, settings)
    if found := schema.conflicts(properties, settings.prefix):
        raise MappingConflict(
            f"Index {name} cannot take our fields: {'; '.join(found)}. Choose another name with --prefix."
        )
    return stored is None or bool(schema.missing(properties, settings.prefix))


def _report(
    index: str,
    indices: tuple[str, ...],
    settings: Settings,
    *,
    prepared: tuple[str, ...],
    created: bool = False,
    sampling: Sampling | None = None,
    sidecars: tuple[str, ...] = (),
    write_group: bool = False,
    dry_run: bool,
) -> InitReport:
    scheme = settings.scheme
    return InitReport(
        index=index,
        indices=indices,
        created=created,
        prepared=prepared,
        scheme=scheme.id,
        fields=settings.fields,
        threshold=settings.threshold,
        bands=scheme.bands,
        rows=scheme.rows,
        agree=scheme.agree,
        detection=scheme.detection(settings.threshold),
        sample_mod=scheme.sample_mod,
        sampling=sampling,
        sidecars=sidecars,
        write_group=write_group,
        dry_run=dry_run,
    )
