"""Prepare an index: put our mapping and the chosen scheme into it, nothing else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from types import MappingProxyType
from typing import Any

from es_neardupe import options
from es_neardupe.commands.init.sampling import Sampling, choose_sampling
from es_neardupe.commands.report_parts import one_line
from es_neardupe.errors import IndexUnusable, MappingConflict, NotFound, RequestError, SchemeMismatch, SettingsError
from es_neardupe.index import mapping as schema
from es_neardupe.index import queries
from es_neardupe.index.index import Index
from es_neardupe.index.mapping import check_relations, check_source, check_text_fields, relations_to_skip
from es_neardupe.index.permissions import check_writable
from es_neardupe.index.rollover import alias_named, next_index_has, rollover_aliases
from es_neardupe.index.settings import Settings
from es_neardupe.index.sidecar.indices import Sidecars, check_inline
from es_neardupe.index.target import (
    check_name,
    mapping_to_add,
    mappings_of,
    put_settings,
    stored_settings,
    with_source_modes,
)
from es_neardupe.index.tuning import restore_abandoned, tuned_mappings
from es_neardupe.server.client import Client, path
from es_neardupe.server.dry_run import DryRunClient, ShownRequest

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
    left_alone: Mapping[str, tuple[str, ...]]
    """Join field -> the relations whose documents are not processed."""
    rolls_over: bool
    """Whether the name is a data stream or an alias with a write index: it gets new indices by rollover."""
    next_prepared: bool | None
    """Whether the next of them will have our fields and settings from an index template; None where nobody tells."""
    template: Mapping[str, Any] | None
    """Our part as the body of a component template, where that was asked for: nothing puts it anywhere."""
    sidecars: tuple[str, ...]
    """The sidecar indices, if nothing is written into these (``sidecar``)."""
    write_group: bool
    """Whether group ids are written into the documents nevertheless."""
    dry_run: bool
    requests: tuple[ShownRequest, ...] = ()
    """The first writes of a dry run, if they were asked for."""

    def __repr__(self) -> str:
        return one_line(
            self,
            index=self.index,
            scheme=self.scheme,
            threshold=self.threshold,
            detection=self.detection,
            dry_run=self.dry_run,
        )


def init(
    index: Index,
    settings: Settings,
    *,
    sample_keys: options.SampleKeys = None,
    create: options.Create = False,
    template: options.Template = False,
    sidecar: options.Sidecar = False,
    write_group: options.WriteGroup = False,
    dry_run: options.DryRun = False,
    show_requests: options.ShowRequests = 0,
) -> InitReport:
    """Add our fields and the scheme to the mapping of an index, alias or pattern.

    ``create`` makes a missing index, with a text mapping for the fields. ``sample_keys`` chooses ``sample_mod`` by the
    lengths of the texts that are there, unless the index has one already. ``sidecar`` stores keys and groups in a
    separate index and leaves this one as it is, but for the group id with ``write_group``. ``template`` makes the
    component template with which later indices have our fields from their beginning, also where there is no index yet;
    like ``dry_run``, it writes nothing. A dry run can ``show_requests``. Doing it twice changes nothing. Raises
    `SchemeMismatch` if the index has other settings, `MappingConflict`, `IndexUnusable`, `NotFound` or `Blocked`;
    nothing is written then.
    """
    if sample_keys is not None and settings.sample_mod:
        raise SettingsError("Give either `sample_mod` or `sample_keys`, which chooses it.")
    if (sidecar and (create or template)) or (write_group and not sidecar):
        raise SettingsError(
            "`create` and `template` are about indices of yours, which `sidecar` leaves alone; `write_group` goes with "
            "that."
        )
    if settings.prefix != index.prefix:
        raise SettingsError(
            f"The settings have the prefix {settings.prefix!r}, and the index {index.prefix!r}: give the same to both."
        )
    client, name = index.plain, index.name
    rehearsal = DryRunClient(client, show_requests, dry_run=dry_run)
    dry_run = dry_run or template
    writer = rehearsal if dry_run else client
    try:
        mappings = mappings_of(client, name)
    except NotFound:
        if not (create or template):
            raise
        made = _create(writer, name, settings, sample_keys, template=template, dry_run=dry_run)
        return replace(made, requests=rehearsal.shown)
    if not dry_run:
        restore_abandoned(client, tuned_mappings(client, name, settings.prefix))
        mappings = mappings_of(client, name)
    mappings = with_source_modes(client, name, mappings)
    if sidecar:
        report = _with_sidecars(writer, name, mappings, settings, sample_keys, write_group=write_group, dry_run=dry_run)
        return replace(report, requests=rehearsal.shown)
    check_inline(client, mappings, settings.prefix)
    settings, sampling = _sampled(client, name, mappings, settings, sample_keys)
    found = {"left_alone": _checked_relations(mappings, settings), **_later(client, name, mappings, settings)}
    to_prepare = [one for one, mapping in mappings.items() if _needs(one, mapping, settings)]
    if to_prepare:
        check_writable(client, name, new=True)
    for one in to_prepare:
        _prepare(writer, one, mappings[one], settings)
    indices = tuple(sorted(mappings))
    prepared = tuple(to_prepare)
    report = _report(
        name, indices, settings, prepared=prepared, sampling=sampling, template=template, dry_run=dry_run, **found
    )
    return replace(report, requests=rehearsal.shown)


def _prepare(client: Client, name: str, mapping: Mapping[str, Any], settings: Settings) -> None:
    try:
        put_settings(client, name, mapping, settings)
    except RequestError as error:
        if "derive source" not in error.reason:
            raise
        raise IndexUnusable(
            f"Index {name} derives _source from its fields (index.derived_source), and cannot from ours: store the "
            f"keys in a sidecar index, with `es-neardupe init {name} --sidecar`."
        ) from error


def _with_sidecars(
    client: Client,
    index: str,
    mappings: Mapping[str, Any],
    settings: Settings,
    sample_keys: int | None,
    *,
    write_group: bool,
    dry_run: bool,
) -> InitReport:
    """Make the sidecar indices."""
    sidecars = Sidecars(client, index, mappings, settings, write_group=write_group)
    settings, sampling = _sampled(client, index, sidecars.known or mappings, settings, sample_keys)
    rolling = alias_named(rollover_aliases(client, index, mappings), index)
    left_alone = _checked_relations(mappings, settings)
    return _report(
        index,
        tuple(sorted(mappings)),
        settings,
        prepared=sidecars.prepare(settings),
        sampling=sampling,
        left_alone=left_alone,
        rolls_over=rolling is not None,
        sidecars=sidecars.names,
        write_group=sidecars.write_group,
        template=False,
        dry_run=dry_run,
    )


def _later(client: Client, index: str, mappings: Mapping[str, Any], settings: Settings) -> dict[str, Any]:
    """What becomes of indices that a rollover will make. Raises `IndexUnusable` for an alias with a filter."""
    rolling = alias_named(rollover_aliases(client, index, mappings), index)
    if rolling is None:
        return {"rolls_over": False, "next_prepared": None}
    next_prepared = next_index_has(client, rolling, settings.prefix, settings.to_meta())
    return {"rolls_over": True, "next_prepared": next_prepared}


def _checked_relations(mappings: Mapping[str, Any], settings: Settings) -> Mapping[str, tuple[str, ...]]:
    """Join field -> the relations that are left alone, after checking that every index has the chosen ones."""
    for name, mapping in mappings.items() if settings.relations else ():
        check_relations(name, mapping, settings.relations)
    return relations_to_skip(mappings.values(), settings.relations)


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
    scope = queries.without_relations(_checked_relations(mappings, settings))
    sampling = choose_sampling(client, index, settings, wanted, scope)
    return replace(settings, sample_mod=sampling.sample_mod), sampling


def _create(
    client: Client, index: str, settings: Settings, sample_keys: int | None, *, template: bool, dry_run: bool
) -> InitReport:
    check_name(index)
    if sample_keys is not None:
        raise SettingsError("A new index has no texts whose lengths decide: give `sample_mod`, not `sample_keys`.")
    if settings.relations and not template:
        raise SettingsError("A new index has no join field, so no relations: make it yourself, then run init.")
    mapping = mapping_to_add(settings)
    mapping["properties"] |= schema.text_mapping(settings.fields)
    if not template:
        _make(client, index, {"mappings": mapping})
    return _report(
        index, (index,), settings, prepared=(index,), created=not template, template=template, dry_run=dry_run
    )


def _make(client: Client, index: str, body: Mapping[str, Any]) -> None:
    """Make an index; that it is there is no error if it is the one we asked for and the answer to that was lost."""
    try:
        client.request("PUT", path(index), body=body)
    except RequestError as error:
        if error.type != "resource_already_exists_exception":
            raise
        wanted = body["mappings"]["_meta"]
        if mappings_of(client, index)[index].get("_meta") != wanted:
            raise


def _needs(name: str, mapping: dict[str, Any], settings: Settings) -> bool:
    """Whether an index lacks anything of ours. Raises what forbids to add it."""
    stored = stored_settings(mapping, settings.prefix)
    if stored is not None and (differences := stored.differences(settings)):
        raise SchemeMismatch(
            f"Index {name} is prepared already, with other settings ({'; '.join(differences)}). Use those, or go "
            f"over to the others with `es-neardupe migrate {name}`, or choose another `prefix`."
        )
    properties = mapping.get("properties", {})
    check_source(name, mapping, settings)
    check_text_fields(name, mapping, settings)
    if found := schema.conflicts(properties, settings.prefix):
        raise MappingConflict(
            f"Index {name} cannot take our fields: {'; '.join(found)}. Choose another name with `prefix`."
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
    left_alone: Mapping[str, tuple[str, ...]] = MappingProxyType({}),
    rolls_over: bool = False,
    next_prepared: bool | None = None,
    sidecars: tuple[str, ...] = (),
    write_group: bool = False,
    template: bool,
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
        left_alone=left_alone,
        rolls_over=rolls_over,
        next_prepared=next_prepared,
        template={"template": {"mappings": mapping_to_add(settings)}} if template else None,
        sidecars=sidecars,
        write_group=write_group,
        dry_run=dry_run,
    )
