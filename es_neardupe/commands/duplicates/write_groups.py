"""Groups of the pairs of a request, stored under a prefix of their own, as `group` stores those of keys."""

from __future__ import annotations

from collections.abc import Mapping, Set
from dataclasses import dataclass
from datetime import datetime, timezone
from functools import partial
from typing import Any

import numpy as np

from es_neardupe.columns import References, RowLists, ValueSets
from es_neardupe.commands.duplicates.find_pairs import similarities_of
from es_neardupe.commands.duplicates.request_plan import SHARED, DuplicatesPlan
from es_neardupe.commands.duplicates.results import GroupsOfPairs, PairsStageReport
from es_neardupe.errors import IndexUnusable, SettingsError
from es_neardupe.groups.build import groupings_of, previous_ids, record_of
from es_neardupe.groups.linkage import assign_ids, cohesions_of, principals_by, set_similarities
from es_neardupe.groups.registry import GroupHistoryUpdate, GroupRecord, Registry
from es_neardupe.groups.stars import Matches
from es_neardupe.groups.write import changes, write_groups
from es_neardupe.index import mapping as schema
from es_neardupe.index import queries
from es_neardupe.index.hidden_indices import check_names
from es_neardupe.index.index import Index, opened
from es_neardupe.index.migration_state import replaced_prefix
from es_neardupe.index.permissions import check_sees_all, check_updates
from es_neardupe.index.runs.lease import held
from es_neardupe.index.settings import Settings
from es_neardupe.index.slices import external_version
from es_neardupe.index.storage.field_writes import checked_version
from es_neardupe.index.storage.stored_settings import sidecar_mappings
from es_neardupe.index.stored_fields import decode_grouping, group_of, own_group, stored_fields
from es_neardupe.index.target import Definitions, result_window, stored_settings, stored_versions
from es_neardupe.keys.arrays import Flags, Floats
from es_neardupe.options import Linkage, Versions
from es_neardupe.progress import Progress
from es_neardupe.records import DocumentsInScope, FingerprintColumns, Groupings, Hit
from es_neardupe.report_parts import WriteCounts
from es_neardupe.server.bulk import BulkCounts
from es_neardupe.wording import option

_BATCH, _WORKERS = 500, 2

_PAGE = 2000
"""Documents per request that reads stored groups."""


# The prefix


def check_prefix(index: Index, plan: DuplicatesPlan, prefix: str) -> Settings:
    """The settings of groups under a prefix. Documents whose versions another system sets keep them. Raises
    `SettingsError`, `NameTaken` or another `IndexUnusable` if they cannot be stored there."""
    if prefix == index.prefix or replaced_prefix(prefix) != prefix:
        raise SettingsError(
            f"The prefix {prefix!r} is that of keys. Groups of a request need one of their own, such as "
            f"{option('write_groups')} titles."
        )
    if plan.validations[0].measure == SHARED:
        raise SettingsError(
            f"Groups need a similarity from 0 to 1, but the first validation of {plan.name} is a number of shared "
            f"features: put another one first, or choose another similarity."
        )
    metadata = index.definitions.metadata()
    mappings, window = metadata.mappings, result_window(metadata.states.values())
    versions = stored_versions(mappings.values())
    if versions is None and external_version(index.documents, window) is not None:
        versions = Versions.EXTERNAL
    settings = Settings(plan.fields, prefix=prefix, groups_only=True, versions=versions)
    if sidecar_mappings(index.server, mappings, prefix):
        raise IndexUnusable(_has_keys(index.name, prefix))
    for name, mapping in mappings.items():
        stored = stored_settings(mapping, prefix)
        if stored is not None and not stored.groups_only:
            raise IndexUnusable(_has_keys(name, prefix))
        schema.check_fields(name, mapping, settings, prepared=False)
        schema.check_source(name, mapping, settings)
    return settings


def _has_keys(name: str, prefix: str) -> str:
    return f"Index {name} has keys under the prefix {prefix!r}: choose another prefix for the groups of a request."


def _prepared(index: Index, settings: Settings) -> Index:
    """The index opened under the prefix of the groups, after adding fields and settings where they are missing."""
    for name, mapping in index.definitions.mappings().items():
        if stored_settings(mapping, settings.prefix) != settings:
            Definitions(index.server, name).put_settings(mapping, settings)
    found = opened(Index(index.name, index.server, settings.prefix), groups=True, writes=True)
    check_sees_all(found, "grouping")
    found.storage.check_writable()
    check_updates(found, "grouping")
    check_names(found)
    return found


# Groups


def write_groups_of_pairs(
    index: Index,
    plan: DuplicatesPlan,
    result: PairsStageReport,
    settings: Settings,
    *,
    dry_run: bool,
    progress: Progress,
) -> GroupsOfPairs:
    """Make star groups of the pairs of a stage, and write group, principal and similarity to the documents in scope.

    The principal is the longest document by the values that the grouping hashed (ties: lowest id). Every other member
    has passed all validations with it; the stored similarity is that of the first. A document without a partner is
    alone in a group of its own, also if an earlier run wrote its group and it is no longer in scope. Groups keep their
    ids, as in `group`. A second run without changes writes nothing; a run after a killed one reaches the same state.
    """
    if dry_run:
        existing = _existing_registry(index, settings)
        found = _form_groups(index, existing, plan, result, settings=settings, seeds={}, progress=progress)
        planned = BulkCounts()
        planned.counts["written"] = len(found.writes)
        return _report(plan, settings, found, planned, dry_run=True)
    target = _prepared(index, settings)
    registry = Registry(target)
    with held(target, "duplicates --write-groups", progress=progress) as lease:
        seeds = target.target.mark_seeds
        found = _form_groups(index, registry, plan, result, settings=settings, seeds=seeds, progress=progress)
        written = BulkCounts()
        if found.updates or found.writes or found.damaged:
            lease.check()
            registry.write(found.updates, damaged=found.damaged)
            lease.check()
            writer = target.storage.field_writer()
            written = write_groups(writer, found.corpus, found.writes, batch=_BATCH, workers=_WORKERS)
            target.documents.refresh()
    return _report(plan, settings, found, written, dry_run=False)


def _existing_registry(index: Index, settings: Settings) -> Registry | None:
    """The registry of the groups, if an earlier run has prepared all indices."""
    mappings = index.definitions.mappings().values()
    if any(stored_settings(mapping, settings.prefix) is None for mapping in mappings):
        return None
    return Registry(opened(Index(index.name, index.server, settings.prefix), groups=True))


@dataclass(frozen=True)
class _Found:
    """The groups of n documents: those in scope, in their order, then others that have a group."""

    corpus: FingerprintColumns
    changed: Flags
    """Documents that were changed or deleted since they were hashed; shape (n,)."""
    groupings: Groupings
    """Row -> new grouping, of all other documents."""
    writes: Groupings
    """Those that differ from the stored ones."""
    records: dict[str, GroupRecord]
    """Id -> record of each group of two or more documents."""
    updates: list[GroupRecord]
    """Records to write: those that differ from the registry."""
    damaged: Set[str]
    """Ids of records to delete, which no run has stored."""


def _form_groups(
    index: Index,
    registry: Registry | None,
    plan: DuplicatesPlan,
    result: PairsStageReport,
    *,
    settings: Settings,
    seeds: Mapping[str, str],
    progress: Progress,
) -> _Found:
    """``seeds``: those of marks, to recognise checked documents, if groups will be written."""
    assert result.scope is not None
    corpus, changed = _stored(index, plan, result.scope, settings, seeds)
    stored = {} if registry is None else registry.living()
    before = {id: record for id, record in stored.items() if record is not None}
    kept = ~(changed[result.pairs.left] | changed[result.pairs.right])
    matches = Matches(
        result.pairs.left[kept], result.pairs.right[kept], result.pairs.similarity[kept].astype(np.float64)
    )
    members, to_principal = _star_groups(corpus, matches, ~changed, plan.validations[0].measure)
    created = {id: record.created for id, record in before.items()}
    ids = assign_ids(
        members,
        corpus.group_ids,
        corpus.leading == 1,
        lambda row, attempt: own_group(*corpus.address(row), attempt),
        reserved=np.setdiff1d(corpus.group_ids[changed], b""),
        created=lambda id: created.get(id, ""),
    )
    groupings = groupings_of(members, to_principal, ids)
    groups = [np.sort(members[number]) for number in np.flatnonzero(members.sizes > 1).tolist()]
    compare = partial(similarities_of, index.client, result.scope, plan.validations[0], progress=progress)
    documents = np.ones(len(corpus), np.intp)
    cohesions = cohesions_of(groups, matches, compare, documents=documents, minimum=plan.validations[0].min)
    described = (
        record_of(corpus, groupings, rows, cohesion, texts=len(rows))
        for rows, cohesion in zip(groups, cohesions, strict=True)
    )
    records = {record.group: record for record in described}
    if registry is not None:
        before |= registry.records(records.keys() - before.keys())
    at = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    updates = list(GroupHistoryUpdate(before, records, previous_ids(corpus, groupings, before), at))
    damaged = stored.keys() - before.keys() - records.keys()
    return _Found(corpus, changed, groupings, changes(corpus, groupings), records, updates, damaged)


def _star_groups(
    corpus: FingerprintColumns, matches: Matches, unchanged: Flags, measure: str
) -> tuple[RowLists, Floats]:
    """The rows of each group of unchanged documents, the principal first; and the similarity of each row to it."""
    size = len(corpus)
    order = np.lexsort((np.arange(size), -corpus.tokens))  # rows are in the order of ids
    rank = np.empty(size, np.intp)
    rank[order] = np.arange(size)
    principal = principals_by(Linkage.STAR, matches, np.ones(size, np.int32), measure, rank=rank)
    to_principal = np.ones(size)
    set_similarities(to_principal, principal, matches)
    rows = np.lexsort((rank, principal != np.arange(size), rank[principal]))
    rows = rows[unchanged[principal[rows]]]
    starts = np.flatnonzero(principal[rows] == rows)
    return RowLists(rows, np.append(starts, len(rows)).astype(np.int32)), to_principal


# Stored groups


def _stored(
    index: Index, plan: DuplicatesPlan, scope: DocumentsInScope, settings: Settings, seeds: Mapping[str, str]
) -> tuple[FingerprintColumns, Flags]:
    """The stored groups of the documents in scope and of all others that have one, and which documents in scope were
    changed or deleted since they were hashed. ``seeds``: see `_form_groups`.

    Raises `IndexUnusable` if a document has another value in the field.
    """
    prefix = settings.prefix
    row_of = {reference[:2]: row for row, reference in enumerate(scope.references)}
    size = len(scope)
    changed = np.ones(size, np.bool_)
    references, versions, checked = list(scope.references), scope.versions.tolist(), [0] * size
    stored: list[Mapping[str, Any]] = [{}] * size
    grouped = {"exists": {"field": f"{prefix}.group"}}
    query = {"bool": {"should": [queries.matching(plan.query), grouped], "minimum_should_match": 1}}
    for page in index.documents.pages({"query": query, "_source": [prefix]}, page_size=_PAGE):
        for hit in page:
            _check_value(hit, settings)
            value, version = stored_fields(hit.source, prefix), [hit.seq_no or 0, hit.primary_term or 0]
            row = row_of.get((hit.index, hit.id))
            if row is None and value.get("group") is not None:
                references.append(hit.reference)
                versions.append(version)
                checked.append(checked_version(hit, seeds))
                stored.append(value)
            elif row is not None:
                stored[row] = value
                checked[row] = checked_version(hit, seeds)
                changed[row] = versions[row] != version
    total = len(references)
    groupings = [decode_grouping(one) for one in stored]
    corpus = FingerprintColumns(
        references=References.of(references),
        versions=np.array(versions, np.int64).reshape(-1, 2),
        shards=np.full(total, -1, np.int64),
        checked=np.array(checked, np.int64),
        content=np.zeros(total, "S16"),
        tokens=np.concatenate([scope.sizes, np.zeros(total - size, np.int64)]),
        keys=np.zeros((total, 0), np.uint64),
        group_ids=np.array([(group_of(one) or "").encode() for one in stored], "S16"),
        leading=np.array([-1 if one is None else one.principal for one in groupings], np.int8),
        similarity=np.array([np.nan if one is None else one.similarity for one in groupings], np.float64),
        states={},
        corrupt=[],
        places=np.zeros(total, np.int64),
        scopes=np.zeros(total, np.int64),
        across=ValueSets(np.zeros(total, np.int64)),
        days=np.zeros(total),
    )
    return corpus, np.concatenate([changed, np.zeros(total - size, np.bool_)])


def _check_value(hit: Hit, settings: Settings) -> None:
    if (name := schema.foreign_value(hit.source, settings)) is not None:
        raise IndexUnusable(
            f"Document {hit.id!r} of index {hit.index} has a value {name} that es-neardupe did not write: choose "
            f"another prefix for the groups."
        )


def _report(
    plan: DuplicatesPlan, settings: Settings, found: _Found, written: BulkCounts, *, dry_run: bool
) -> GroupsOfPairs:
    records = found.records.values()
    grouped = sum(one.size for one in records)
    return GroupsOfPairs(
        stage=plan.name,
        prefix=settings.prefix,
        count=len(records),
        documents=len(found.corpus),
        grouped=grouped,
        alone=len(found.groupings) - grouped,
        changed=int(found.changed.sum()),
        min_similarity=min((one.min_similarity for one in records), default=None),
        pairs_below=sum(one.pairs_below for one in records),
        pairs_not_compared=sum(one.pairs_not_compared for one in records),
        writes=WriteCounts.of(written, unchanged=len(found.groupings) - len(found.writes)),
        dry_run=dry_run,
    )
