"""Steps of ``init``: mappings and settings of indices and sidecar indices, and the choice of bands and sampled keys."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from es_neardupe.candidates.detection import (
    BandsByLengths,
    TextLength,
    bands_by_lengths,
    default_lengths,
    settings_by_lengths,
    unsuited_lengths,
)
from es_neardupe.candidates.random_texts import random_texts
from es_neardupe.candidates.unprepared import unprepared_texts
from es_neardupe.candidates.unrelated import unrelated_candidates
from es_neardupe.commands.init.prepared_sample import prepared_sample
from es_neardupe.commands.init.report import InitReport, Sampling
from es_neardupe.errors import (
    Forbidden,
    IndexUnusable,
    MappingConflict,
    RequestError,
    SchemeMismatch,
    SettingsError,
)
from es_neardupe.index import mapping as schema
from es_neardupe.index import queries
from es_neardupe.index.document_text import prepared_text
from es_neardupe.index.handle import UnpreparedIndex
from es_neardupe.index.hidden_indices import check_names
from es_neardupe.index.index import Index
from es_neardupe.index.mapping import check_relations, check_source, check_text_fields, relations_to_skip
from es_neardupe.index.permissions import check_writable
from es_neardupe.index.rollover import RolloverAlias, alias_named, settings_of_next
from es_neardupe.index.settings import Settings
from es_neardupe.index.slices import external_version, random_hits
from es_neardupe.index.storage.sidecar.indices import Sidecars
from es_neardupe.index.target import (
    Definitions,
    IndexMetadata,
    IndexTarget,
    check_name,
    mapping_to_add,
    stored_group_field,
    stored_settings,
    stored_versions,
)
from es_neardupe.keys.scheme import MAX_SAMPLE_MOD
from es_neardupe.keys.shingles import features, token_hashes
from es_neardupe.options import MeasureName, Versions
from es_neardupe.records import Hit
from es_neardupe.server.client import path
from es_neardupe.server.documents import Documents
from es_neardupe.server.search import fetch_portions
from es_neardupe.wording import command, counted, option

_SAMPLE = 500
"""Random documents whose lengths decide the modulus of sampled keys."""


def check_options(
    index: Index, settings: Settings, by_texts: ByTexts, *, sidecar: bool, write_group: bool, exists: bool
) -> None:
    """Raises `SettingsError` for options that contradict each other. ``exists``: whether the index must exist."""
    if not isinstance(settings, Settings):
        raise SettingsError(f"init needs Settings, such as Settings(fields=('body',)), not {settings!r}.")
    if by_texts.sample_keys is not None and settings.sample_mod:
        raise SettingsError(f"Give either {option('sample_mod')} or {option('sample_keys')}, not both.")
    if by_texts.measure is not None and settings.bands is not None:
        raise SettingsError(
            f"{option('measure')} chooses the bands: omit {option('bands')} and {option('rows')}, or "
            f"{option('measure')}."
        )
    if sidecar and settings.group_field is not None:
        raise SettingsError(
            f"{option('group_field')} cannot be combined with {option('sidecar')}: the server folds only by a field of "
            f"the documents that each write of keys also writes, and keys of a sidecar index are written without the "
            f"documents."
        )
    if sidecar and not exists:
        raise SettingsError(f"{option('sidecar')} cannot be combined with {option('create')} or {option('template')}.")
    if write_group and not sidecar:
        raise SettingsError(f"{option('write_group')} needs {option('sidecar')}.")
    if settings.prefix != index.prefix:
        raise SettingsError(
            f"The settings have the prefix {settings.prefix!r}, and the index has {index.prefix!r}: use the same "
            f"prefix for both."
        )


def init_inline(index: UnpreparedIndex, metadata: IndexMetadata, by_texts: ByTexts, *, dry_run: bool) -> InitReport:
    """Add fields and settings to the mapping of the indices."""
    mappings = index.mappings
    index = replace(index, settings=_with_group_field(mappings, index.settings))
    settings, sampling, bands = _chosen_by_texts(index, by_texts)
    index = replace(index, settings=settings)
    skipped = _checked_relations(index)
    rollover = alias_named(metadata.rollover_aliases(index.name), index.name)
    _check_hidden_names(index, rollover)
    next_prepared = None
    if rollover is not None:
        coming = settings_of_next(index.client, rollover, settings.prefix)
        next_prepared = None if coming is None else coming == settings.to_meta()
    to_prepare = [one for one in mappings if _is_incomplete(index, one)]
    for one in to_prepare:
        _check_values(index, one)
    if to_prepare:
        check_writable(index, new=True)
    for one in to_prepare:
        Definitions(index.client, one).put_settings(index.mappings[one], index.settings)
    return replace(
        _with_sample(_report(index.name, tuple(sorted(mappings)), settings, dry_run=dry_run), index),
        prepared=tuple(to_prepare),
        sampling=sampling,
        by_lengths=bands,
        skipped=skipped,
        rolls_over=rollover is not None,
        next_prepared=next_prepared,
    )


def init_sidecars(
    index: UnpreparedIndex, metadata: IndexMetadata, by_texts: ByTexts, *, write_group: bool, dry_run: bool
) -> InitReport:
    """Create the sidecar indices that are missing."""
    sidecars = Sidecars(index, write_group=write_group)
    with_settings = replace(index, mappings=sidecars.known or index.mappings)
    settings, sampling, bands = _chosen_by_texts(with_settings, by_texts)
    index = replace(index, settings=settings)
    rollover = alias_named(metadata.rollover_aliases(index.name), index.name)
    _check_hidden_names(index, rollover)
    skipped = _checked_relations(index)
    for name, mapping in index.mappings.items() if write_group and not sidecars.known else ():
        if not schema.conflicts(mapping, settings):  # else the next step says so
            _check_values(index, name)
    return replace(
        _with_sample(_report(index.name, tuple(sorted(index.mappings)), settings, dry_run=dry_run), index),
        prepared=sidecars.prepare(settings),
        sampling=sampling,
        by_lengths=bands,
        skipped=skipped,
        rolls_over=rollover is not None,
        sidecars=sidecars.names,
        write_group=sidecars.write_group,
    )


def _check_hidden_names(index: UnpreparedIndex, rollover: RolloverAlias | None) -> None:
    """Raises `NameTaken` if `group` could not create its hidden indices, because others have their names. Not checked
    if this user may not see indices of these names: `init` needs no privilege on them."""
    indices = tuple(sorted(index.mappings)) or (index.name,)
    target = IndexTarget(index.name, indices, index.settings, 0, rollover_alias=rollover)
    with suppress(Forbidden):
        check_names(Index(index.name, index.client, target=target))


def _checked_relations(index: UnpreparedIndex) -> Mapping[str, tuple[str, ...]]:
    """Join field -> the relations that are not processed. Raises `IndexUnusable` if an index lacks a chosen one."""
    relations = index.settings.relations
    for name, mapping in index.mappings.items() if relations else ():
        check_relations(name, mapping, relations)
    return relations_to_skip(index.mappings.values(), relations)


def init_missing(index: UnpreparedIndex, by_texts: ByTexts, *, template: bool, dry_run: bool) -> InitReport:
    """Create the index, or with ``template`` only check the settings of indices that do not exist yet."""
    settings = index.settings
    check_name(index.name)
    if by_texts.sample_keys is not None:
        raise SettingsError(
            f"A new index has no texts to measure: give {option('sample_mod')} instead of {option('sample_keys')}."
        )
    if several := [name for name in settings.fields if "," in name]:
        raise SettingsError(
            f"{several[0]!r} is one field with a comma in its name: repeat {option('fields')} for each."
        )
    if settings.relations and not template:
        raise SettingsError("A new index has no join field, so no relations: create it yourself, then run init.")
    bands = None
    if by_texts.measure is not None:
        settings, bands = _with_bands(settings, by_texts.measure, [], None)
        index = replace(index, settings=settings)
    text_fields = schema.text_mapping(settings.fields)
    if not template:
        _check_hidden_names(index, None)
        mapping = mapping_to_add(settings)
        _create_index(index, mapping | {"properties": mapping["properties"] | text_fields})
    report = _report(index.name, (index.name,), settings, dry_run=dry_run)
    if bands is None:  # keys for texts of usual lengths
        report = replace(report, unrelated=unrelated_candidates(settings.scheme, settings.threshold))
    sample = None if template else prepared_sample(settings.scheme.preparation, [])
    return replace(report, prepared=(index.name,), created=not template, by_lengths=bands, preparation=sample)


def _create_index(index: UnpreparedIndex, mapping: Mapping[str, Any]) -> None:
    """Create an index. If it exists with the same ``_meta``, an earlier attempt succeeded and its answer was lost."""
    try:
        index.client.request("PUT", path(index.name), body={"mappings": mapping})
    except RequestError as error:
        if error.type != "resource_already_exists_exception":
            raise
        if index.definitions.mappings()[index.name].get("_meta") != mapping["_meta"]:
            raise


def _is_incomplete(index: UnpreparedIndex, name: str) -> bool:
    """Whether a concrete index lacks the settings or any of the fields.

    Raises `SchemeMismatch`, `IndexUnusable` or `MappingConflict` if they cannot be added.
    """
    mapping, settings = index.mappings[name], index.settings
    stored = stored_settings(mapping, settings.prefix)
    adds_group_field = stored is not None and stored.group_field is None and settings.group_field is not None
    kept = replace(stored, group_field=settings.group_field) if stored and adds_group_field else stored
    other_versions = stored is not None and stored.versions is not settings.versions
    kept = replace(kept, versions=settings.versions) if kept else kept
    if kept is not None and (differences := kept.differences(settings)):
        raise SchemeMismatch(
            f"Index {name} is already initialised with other settings ({'; '.join(differences)}). Use those, or switch "
            f"to the others with `{command('migrate', index.name)}`, or choose another {option('prefix')}."
        )
    properties = mapping.get("properties", {})
    check_source(name, mapping, settings)
    check_text_fields(name, mapping, settings)
    if conflicts := schema.conflicts(mapping, settings):
        raise MappingConflict(
            f"The mapping of index {name} conflicts with the fields to be added: {'; '.join(conflicts)}. Choose "
            f"another {option('prefix')} or {option('group_field')}."
        )
    return stored is None or adds_group_field or other_versions or bool(schema.missing(properties, settings.prefix))


def _with_group_field(mappings: Mapping[str, Any], settings: Settings) -> Settings:
    """The settings with the stored group field, unless they name one."""
    if settings.group_field is not None:
        return settings
    return replace(settings, group_field=stored_group_field(mappings.values(), settings.prefix))


def with_versions(index: UnpreparedIndex, versions: Versions | None) -> UnpreparedIndex:
    """With the given ``versions`` in the settings, else with the stored ones. Raises `IndexUnusable` for an index
    without any, of which documents have versions that the server has not given them."""
    if (known := versions or stored_versions(index.mappings.values())) is not None:
        return replace(index, settings=replace(index.settings, versions=known))
    if (found := external_version(index.documents, index.max_result_window)) is not None:
        raise IndexUnusable(
            f"Another system sets the versions of the documents of {index.name} (document {found.id!r} has version "
            f"{found.version}). Partial updates would raise them, and the server would then reject its next changes "
            f"and deletions. Choose --versions external, to write whole documents with the versions that they have, or "
            f"--sidecar, to write no document. If the server sets the versions from now on: --versions internal."
        )
    return index


def _check_values(index: UnpreparedIndex, name: str) -> None:
    """Raises `MappingConflict` if random documents of a concrete index have values of an application under the names of
    the fields to be added, mapped or not, or if any document has one in a mapped group field."""
    mapping, settings, documents = index.mappings[name], index.settings, Documents(index.client, name)
    field, stored = settings.group_field, stored_settings(mapping, settings.prefix)
    is_new = field is not None and (stored is None or stored.group_field != field)
    documents.refresh_if_allowed()
    if field is not None and is_new and field in mapping.get("properties", {}):
        _check_unused(documents, name, field, settings.prefix)
    _check_random_values(documents, index, is_new)


def _check_unused(documents: Documents, name: str, field: str, prefix: str) -> None:
    accepted = [{"exists": {"field": schema.Fields(prefix).group}}, {"term": {field: {"value": ""}}}]
    used = documents.count({"bool": {"filter": [{"exists": {"field": field}}], "must_not": accepted}})
    if used:
        raise MappingConflict(
            f"The field {field!r} of index {name} is in use: "
            f"{counted(used, 'document has values in it', 'documents have values in it')}. Choose another "
            f"{option('group_field')}."
        )


def _check_random_values(documents: Documents, index: UnpreparedIndex, new_group_field: bool) -> None:
    settings, copy = index.settings, index.settings.group_field
    names, size = [*settings.in_documents, f"{settings.prefix}.*"], min(_SAMPLE, index.max_result_window)
    hits: list[Hit] = []
    with suppress(Forbidden):  # this user need not be allowed to read documents
        hits = random_hits(documents, {"match_all": {}}, size, names)
    for hit in hits:
        found = schema.foreign_value(hit.source, settings, new_group_field=new_group_field)
        if found is not None:
            choose = option("group_field" if found == copy else "prefix")
            raise MappingConflict(
                f"Document {hit.id!r} of index {hit.index} has a value in {found!r}, which the fields of es-neardupe "
                f"would overwrite: choose another {choose}."
            )


def _report(name: str, indices: tuple[str, ...], settings: Settings, *, dry_run: bool) -> InitReport:
    """A report of the settings; the caller adds what was done."""
    scheme = settings.scheme
    return InitReport(
        index=name,
        indices=indices,
        scheme=scheme.id,
        fields=settings.fields,
        threshold=settings.threshold,
        bands=scheme.bands,
        rows=scheme.rows,
        agree=scheme.agree,
        detection=scheme.detection(settings.threshold),
        sample_mod=scheme.sample_mod,
        group_field=settings.group_field,
        versions=(settings.versions or Versions.INTERNAL).value,
        dry_run=dry_run,
    )


@dataclass(frozen=True)
class ByTexts:
    """What is chosen by the lengths of the texts."""

    measure: MeasureName | None
    """Choose bands for a threshold by this measure."""
    sample_keys: int | None
    """Choose the ``sample_mod`` for this number of keys."""


def _chosen_by_texts(
    index: UnpreparedIndex, by_texts: ByTexts
) -> tuple[Settings, Sampling | None, BandsByLengths | None]:
    """The settings with what is chosen by the lengths of the texts; what is stored already is kept."""
    bands = None
    if by_texts.measure is not None:
        found = (stored_settings(mapping, index.settings.prefix) for mapping in index.mappings.values())
        stored = next((one for one in found if one is not None), None)
        settings, bands = _with_bands(index.settings, by_texts.measure, _lengths(index, _scope(index)), stored)
        index = replace(index, settings=settings)
    settings, sampling = _with_sample_mod(index, by_texts.sample_keys)
    return settings, sampling, bands


def _with_bands(
    settings: Settings, measure: MeasureName, lengths: Sequence[TextLength], stored: Settings | None
) -> tuple[Settings, BandsByLengths]:
    """The settings with bands for the threshold by this measure, or with the stored bands; and what they find."""
    minimum, documents = settings.threshold, len(lengths)
    lengths = lengths or default_lengths(settings)
    if stored is not None and stored.permutations == settings.permutations:
        settings = replace(
            settings,
            threshold=stored.threshold,
            bands=stored.bands,
            rows=stored.rows,
            agree=stored.agree,
            measure=measure,
            min=minimum,
        )
    else:
        settings = settings_by_lengths(settings, measure, lengths)
    return settings, bands_by_lengths(settings, measure, minimum, lengths, documents)


def _with_sample_mod(index: UnpreparedIndex, sample_keys: int | None) -> tuple[Settings, Sampling | None]:
    """The settings with the ``sample_mod`` for this number of keys, and how it was chosen; a stored one is kept."""
    settings = index.settings
    if sample_keys is None:
        return settings, None
    for mapping in index.mappings.values():
        stored = stored_settings(mapping, settings.prefix)
        if stored is not None and stored.sample_mod:
            return replace(settings, sample_mod=stored.sample_mod), None
    sampling = _choose_sample_mod(index, sample_keys, _scope(index))
    return replace(settings, sample_mod=sampling.sample_mod), sampling


def _scope(index: UnpreparedIndex) -> Mapping[str, Any]:
    """A query for the documents that are processed. Raises `IndexUnusable` if their texts cannot be read."""
    for name, mapping in index.definitions.mappings().items():
        check_text_fields(name, mapping, index.settings)
    return queries.matching(queries.without_relations(_checked_relations(index)))


def _choose_sample_mod(index: UnpreparedIndex, sample_keys: int, scope: Mapping[str, Any]) -> Sampling:
    """The modulus with which a document with the mean number of shingles has ``sample_keys`` sampled keys.

    Raises `SettingsError` for less than 1, and `IndexUnusable` if no document of the scope has words.
    """
    lengths = _lengths(index, scope)
    if not lengths:
        raise IndexUnusable(
            f"Index {index.name} has no document with words in {', '.join(index.settings.fields)}, so the number of "
            f"sampled keys cannot be estimated: give {option('sample_mod')} instead of {option('sample_keys')}."
        )
    words, shingles = np.array(lengths).T
    mean = float(shingles.mean())
    mod = min(max(round(mean / sample_keys), 1), MAX_SAMPLE_MOD)
    without = float(((1 - 1 / mod) ** shingles).mean())
    return Sampling(mod, sample_keys, len(lengths), float(words.mean()), mean, without)


def _with_sample(report: InitReport, index: UnpreparedIndex) -> InitReport:
    """With what the keys mean for random documents. Without a preparation, this user need not be allowed to read
    them."""
    settings, preparation = index.settings, index.settings.scheme.preparation
    index.documents.refresh_if_allowed()
    try:
        sampled = random_texts(index, _scope(index), index.max_result_window)
    except Forbidden:
        if preparation:
            raise
        return report
    texts = preparation.texts(text for _, text in sampled)
    found = features(texts, settings.shingle, settings.unit)
    return replace(
        report,
        preparation=prepared_sample(preparation, sampled),
        unrelated=unrelated_candidates(settings.scheme, settings.threshold, found),
        unsuited=unsuited_lengths(settings, Counter(len(one) for one in token_hashes(texts))),
        unprepared=unprepared_texts((text for _, text in sampled), settings.scheme),
    )


def _lengths(index: UnpreparedIndex, scope: Mapping[str, Any]) -> list[TextLength]:
    """The lengths of the texts of random documents that have any words."""
    settings = index.settings
    index.documents.refresh()
    size = min(_SAMPLE, index.max_result_window)
    references = [hit.reference for hit in random_hits(index.documents, scope, size, source=False)]
    lengths = []
    for hits in fetch_portions(index.client, references, settings.fields):
        texts = [prepared_text(hit.source, settings) for hit in hits if hit is not None]
        found = features(texts, settings.shingle, settings.unit)
        for tokens, different in zip(token_hashes(texts), found, strict=True):
            if len(different):
                lengths.append(TextLength(len(tokens), len(different)))
    return lengths


def component_template(settings: Settings) -> dict[str, Any]:
    """The body of a component template that adds fields and settings to new indices."""
    return {"template": {"mappings": mapping_to_add(settings)}}
