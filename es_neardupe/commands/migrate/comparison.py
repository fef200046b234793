"""The groups by the old keys beside those by the new ones, before a migration switches."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from es_neardupe.groups.compare_groupings import Example, GroupChanges, compare_groups
from es_neardupe.groups.registry import Registry
from es_neardupe.index.index import Index
from es_neardupe.index.mapping import Fields
from es_neardupe.index.sidecar.complete_hits import entries
from es_neardupe.index.stored_fields import stored_fields
from es_neardupe.progress import Progress, tracked
from es_neardupe.records import Hit
from es_neardupe.server.search import count, search

__all__ = ["compared", "regrouped"]

_SHOWN = 5
"""Documents of an example."""


def compared(old: Index, new: Index, progress: Progress) -> GroupChanges:
    """The groups that searches see now, and those that they will see."""
    overlaps: Counter[tuple[str, str]] = Counter()
    pairs = _in_documents if new.target.sidecar is None else _in_sidecars
    for before, after in pairs(old, new, progress):
        if before is not None and after is not None:
            overlaps[before, after] += 1
    found = compare_groups(overlaps)
    with_documents = _with_documents if new.target.sidecar is None else _with_documents_of_sidecars
    examples = tuple(with_documents(old, new, one) for one in found.examples)
    return GroupChanges(found.documents, found.moved, found.before, found.after, found.kinds, examples)


_GroupPair = tuple["str | None", "str | None"]


def _in_documents(old: Index, new: Index, progress: Progress) -> Iterator[_GroupPair]:
    """The group id that each document has by the old keys, and by the new ones."""
    fields = (old.fields.group, new.fields.group)
    query = {"bool": {"filter": [{"exists": {"field": name}} for name in fields]}}
    total = count(new.client, new.path, query)
    pages = new.client.pages(new.path, {"query": query, "_source": list(fields)}, page_size=2000)
    for hit in tracked((hit for page in pages for hit in page), progress, "comparing groups", total):
        yield _group(hit, old), _group(hit, new)


def _in_sidecars(old: Index, new: Index, progress: Progress) -> Iterator[_GroupPair]:
    """The same where each has indices of its own."""
    query, field = {"exists": {"field": new.fields.group}}, new.fields.group
    pages = new.client.pages(new.path, {"query": query, "_source": [field]}, page_size=1000)
    total = -(-count(new.client, new.path, query) // 1000)
    for page in tracked(pages, progress, "comparing groups", total, step=1):
        references = [hit.reference for hit in page]
        for hit, entry in zip(page, entries(old, references, [old.fields.group]), strict=True):
            yield None if entry is None else _group(entry, old), _group(hit, new)


def regrouped(old: Index, new: Index) -> tuple[str, ...]:
    """What was other when the groups were made, but for the scheme, as ``name: new, not old``."""
    runs = [Registry(one).last_run() for one in (old, new)]
    before, after = (run.rules.deciding if run is not None and run.rules else {} for run in runs)
    names = sorted((before.keys() & after.keys()) - {"scheme", "weights"})
    return tuple(f"group {name}: {after[name]}, not {before[name]}" for name in names if before[name] != after[name])


def _group(hit: Hit, index: Index) -> str | None:
    id = stored_fields(hit.source, index.settings.prefix).get("group")
    return id if isinstance(id, str) else None


def _with_documents(old: Index, new: Index, example: Example) -> Example:
    """The example with the ids of some of its documents, principals first."""
    named: list[tuple[Fields, Any]] = [(old.fields, example.before), (new.fields, example.after)]
    clauses = [{"terms": {fields.group: sorted(ids)[:_SHOWN]}} for fields, ids in named if ids]
    principals = [{"term": {fields.principal: {"value": True}}} for fields, ids in named if ids]
    query = {"bool": {"filter": [{"bool": {"should": clauses}}], "should": principals, "minimum_should_match": 0}}
    hits = search(new.client, new.path, {"size": _SHOWN, "query": query, "_source": False})["hits"]["hits"]
    return Example(example.kind, example.before, example.after, tuple(hit["_id"] for hit in hits))


def _with_documents_of_sidecars(old: Index, new: Index, example: Example) -> Example:
    """The same where each has indices of its own."""
    ids: dict[str, None] = {}
    for index, groups in ((old, example.before), (new, example.after)):
        clauses = [{"terms": {index.fields.group: sorted(groups)[:_SHOWN]}}]
        principals = [{"term": {index.fields.principal: {"value": True}}}]
        query = {"bool": {"filter": clauses, "should": principals, "minimum_should_match": 0}}
        body = {"size": _SHOWN, "query": query, "_source": False}
        hits = search(index.client, index.path, body)["hits"]["hits"] if groups else []
        ids |= {hit["_id"]: None for hit in hits}
    return Example(example.kind, example.before, example.after, tuple(ids)[:_SHOWN])
