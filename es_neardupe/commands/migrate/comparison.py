"""Comparison of the groups by the old keys with those by the new ones, before a migration switches."""

from __future__ import annotations

from collections import Counter

from es_neardupe.groups.compare_groupings import GroupChangeExample, GroupChanges, compare_groups
from es_neardupe.groups.registry import Registry
from es_neardupe.index.index import Index
from es_neardupe.progress import Progress
from es_neardupe.records import Address
from es_neardupe.server.search import search

__all__ = ["compared", "regrouped"]

_SHOWN = 5
"""Documents of an example."""


def compared(old: Index, new: Index, progress: Progress) -> GroupChanges:
    """The groups that searches see now, and those that they will see."""
    overlaps: Counter[tuple[str, str]] = Counter()
    for before, after in new.storage.group_pairs(old, progress):
        if before is not None and after is not None:
            overlaps[before, after] += 1
    found = compare_groups(overlaps)
    examples = tuple(_with_documents(old, new, one) for one in found.examples)
    return GroupChanges(found.documents, found.moved, found.before, found.after, found.kinds, examples)


def regrouped(old: Index, new: Index) -> tuple[str, ...]:
    """What was other when the groups were made, but for the scheme, as ``name: new, not old``."""
    runs = [Registry(one).last_run() for one in (old, new)]
    before, after = (run.rules.deciding if run is not None and run.rules else {} for run in runs)
    names = sorted((before.keys() & after.keys()) - {"scheme", "weights"})
    return tuple(f"group {name}: {after[name]}, not {before[name]}" for name in names if before[name] != after[name])


def _with_documents(old: Index, new: Index, example: GroupChangeExample) -> GroupChangeExample:
    """The example with some of its documents, principals first."""
    documents: dict[Address, None] = {}
    for index, groups in ((old, example.before), (new, example.after)):
        clauses = [{"terms": {index.fields.group: sorted(groups)[:_SHOWN]}}]
        principals = [{"term": {index.fields.principal: {"value": True}}}]
        query = {"bool": {"filter": clauses, "should": principals, "minimum_should_match": 0}}
        body = {"size": _SHOWN, "query": query, "_source": False}
        hits = search(index.client, index.path, body)["hits"]["hits"] if groups else []
        documents |= {Address(hit["_index"], hit["_id"]): None for hit in hits}
    return GroupChangeExample(example.kind, example.before, example.after, tuple(documents)[:_SHOWN])
