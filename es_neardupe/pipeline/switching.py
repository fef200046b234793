"""The switch of a migration: the registry goes along, and documents get their new fields under the old prefix."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from typing import Any

from es_neardupe import documents, queries
from es_neardupe.asking import count, refresh, search
from es_neardupe.bulk import chunked, write
from es_neardupe.clients import Client
from es_neardupe.companions import Companion, companion_name, ensure, exists
from es_neardupe.errors import RequestError
from es_neardupe.fetch import fetch
from es_neardupe.group_changes import Example, GroupChanges, compare_groups
from es_neardupe.indices import Target
from es_neardupe.progress import Progress, silent, tracked
from es_neardupe.records import Action, Hit
from es_neardupe.registry import Registry
from es_neardupe.rehearsal import Rehearsal
from es_neardupe.schema import Fields
from es_neardupe.sidecar import Names, View
from es_neardupe.sidecar.entries import successors
from es_neardupe.stages.takeover import takeovers
from es_neardupe.tally import Tally

__all__ = ["compared", "hand_over", "inherit_groups", "regrouped", "rehearse_switch", "switch_documents"]

_ROUNDS = 5
_SHOWN = 5
"""Documents of an example."""


def inherit_groups(client: Client, old: Target, new: Target) -> None:
    """Let the new registry know the groups that there are, before the first run of `group` writes it: what becomes of
    them is told in their history."""
    source, target = (companion_name(one, Companion.GROUPS) for one in (old, new))
    if exists(client, target) and any(True for page in _of_kind(client, target, "run") for _ in page):
        return
    ensure(client, new, Companion.GROUPS)
    hits = (hit for page in _of_kind(client, source, "group") for hit in page)
    _write_all(client, (Action("index", target, hit.id, hit.source) for hit in hits), target)


def hand_over(client: Client, new: Target, after: Target, at: str) -> None:
    """Put registry and evidence of the new keys in the place of the former ones; done twice, it does the same.

    Groups that only the former registry knows came after the new one was made, and have ended.
    """
    for kind in Companion:
        source, target = companion_name(new, kind), companion_name(after, kind)
        if not exists(client, source):
            continue
        ensure(client, after, kind)
        refresh(client, source)
        refresh(client, target)
        _write_all(client, _superseded(client, source, target, at), target)
        hits = (hit for hit in _every(client, source) if hit.source.get("kind") != "lease")
        _write_all(client, (Action("index", target, hit.id, hit.source) for hit in hits), target)


def _superseded(client: Client, source: str, target: str, at: str) -> Iterator[Action]:
    """What becomes of documents of ``target`` that ``source`` does not have."""
    for chunk in chunked(_every(client, target), 500):
        there = fetch(client, [(source, hit.id, None) for hit in chunk], ["kind"])
        for hit, known in zip(chunk, there, strict=True):
            kind = hit.source.get("kind")
            if known is not None or kind == "lease":
                continue
            if kind != "group":
                yield Action("delete", target, hit.id, {})
            elif hit.source.get("ended") is None:
                events = [*hit.source["history"]["events"], {"at": at, "event": "dissolved", "group": None}]
                ended = {"ended": at, "updated": at, "history": {"events": events}}
                yield Action("index", target, hit.id, {**hit.source, **ended})


def _of_kind(client: Client, name: str, kind: str) -> Iterator[list[Hit]]:
    if exists(client, name):
        refresh(client, name)
        yield from client.pages(name, {"query": {"term": {"kind": kind}}}, page_size=1000)


def _every(client: Client, name: str) -> Iterator[Hit]:
    for page in client.pages(name, {"query": {"match_all": {}}}, page_size=1000):
        yield from page


def _write_all(client: Client, actions: Iterator[Action], name: str) -> None:
    """Write to an index of ours. Raises `RequestError` if anything is refused."""
    for outcome in write(client, actions, workers=1):
        if not (outcome.done or outcome.gone):
            raise RequestError(
                f"Our index {name} refused a document: {outcome.reason}",
                status=outcome.status,
                type=outcome.type,
                reason=outcome.reason,
            )
    refresh(client, name)


def switch_documents(
    client: Client, new: Target, after: Target, *, batch: int, workers: int, progress: Progress
) -> tuple[Tally, int]:
    """Give every document the new fields under the old prefix too, until a pass finds none without.

    What was done, and how many are left: changed again and again, or refused. Users' searches find a group id in each
    document at every moment. Where keys are beside an index, entries get their successors.
    """
    tally, left = Tally(), 0
    for _ in range(_ROUNDS):
        left = 0
        actions = _switched(client, new, after, batch, progress)
        for outcome in write(client, actions, batch=batch, workers=workers):
            left += not (outcome.done or outcome.gone)
            if not outcome.conflict:
                tally.add(outcome)
        if not left:
            break
    _refresh(client, new, after)
    return tally, left


def rehearse_switch(rehearsal: Rehearsal, new: Target, after: Target, *, batch: int) -> None:
    """Show a dry run the first requests of `switch_documents`."""
    for _ in write(rehearsal, _switched(rehearsal, new, after, batch, silent), batch=batch, workers=1):
        if rehearsal.full:
            break


def _switched(client: Client, new: Target, after: Target, batch: int, progress: Progress) -> Iterator[Action]:
    """The writes of one pass."""
    _refresh(client, new, after)
    sources, query = [new.settings.prefix, after.settings.prefix], queries.processed(new.fields)
    where, parts = (new.path, sources) if new.beside is None else (Names(new).path, True)
    pages = client.pages(where, {"query": query, "_source": parts}, page_size=max(batch, 100))
    hits = tracked((hit for page in pages for hit in page), progress, "switching", count(client, where, query))
    return takeovers(hits, *sources) if new.beside is None else successors(client, new, after, hits)


def _refresh(client: Client, new: Target, after: Target) -> None:
    """Of what the switch reads and writes."""
    for name in [new.path] if new.beside is None else [Names(one).path for one in (new, after)]:
        refresh(client, name)


def compared(client: Client, old: Target, new: Target, progress: Progress) -> GroupChanges:
    """The groups that searches see now, and those that they will see."""
    overlaps: Counter[tuple[str, str]] = Counter()
    pairs = _in_documents if new.beside is None else _beside
    for before, after in pairs(client, old, new, progress):
        if before is not None and after is not None:
            overlaps[before, after] += 1
    found = compare_groups(overlaps)
    with_documents = _with_documents if new.beside is None else _with_documents_beside
    examples = tuple(with_documents(client, old, new, one) for one in found.examples)
    return GroupChanges(found.documents, found.moved, found.before, found.after, found.kinds, examples)


_GroupPair = tuple["str | None", "str | None"]


def _in_documents(client: Client, old: Target, new: Target, progress: Progress) -> Iterator[_GroupPair]:
    """The group id that each document has by the old keys, and by the new ones."""
    fields = (old.fields.group, new.fields.group)
    query = {"bool": {"filter": [{"exists": {"field": name}} for name in fields]}}
    total = count(client, new.path, query)
    pages = client.pages(new.path, {"query": query, "_source": list(fields)}, page_size=2000)
    for hit in tracked((hit for page in pages for hit in page), progress, "comparing groups", total):
        yield _group(hit, old), _group(hit, new)


def _beside(client: Client, old: Target, new: Target, progress: Progress) -> Iterator[_GroupPair]:
    """The same where each has indices of its own."""
    former, present = View(client, old), View(client, new)
    query, field = {"exists": {"field": new.fields.group}}, new.fields.group
    pages = present.pages(new.path, {"query": query, "_source": [field]}, page_size=1000)
    total = -(-count(present, new.path, query) // 1000)
    for page in tracked(pages, progress, "comparing groups", total, step=1):
        references = [(hit.index, hit.id, hit.routing) for hit in page]
        for hit, entry in zip(page, former.entries(references, [old.fields.group]), strict=True):
            yield None if entry is None else _group(entry, old), _group(hit, new)


def regrouped(client: Client, old: Target, new: Target) -> tuple[str, ...]:
    """What was other when the groups were made, but for the scheme, as ``name: new, not old``."""
    runs = [Registry(client, one).last_run() for one in (old, new)]
    before, after = (dict(run.settings) if run is not None else {} for run in runs)
    names = sorted((before.keys() & after.keys()) - {"scheme", "weights", "evidence"})
    return tuple(f"group {name}: {after[name]}, not {before[name]}" for name in names if before[name] != after[name])


def _group(hit: Hit, target: Target) -> str | None:
    id = documents.stored_fields(hit.source, target.settings.prefix).get("group")
    return id if isinstance(id, str) else None


def _with_documents(client: Client, old: Target, new: Target, example: Example) -> Example:
    """The example with the ids of some of its documents, principals first."""
    named: list[tuple[Fields, Any]] = [(old.fields, example.before), (new.fields, example.after)]
    clauses = [{"terms": {fields.group: sorted(ids)[:_SHOWN]}} for fields, ids in named if ids]
    principals = [{"term": {fields.principal: {"value": True}}} for fields, ids in named if ids]
    query = {"bool": {"filter": [{"bool": {"should": clauses}}], "should": principals, "minimum_should_match": 0}}
    hits = search(client, new.path, {"size": _SHOWN, "query": query, "_source": False})["hits"]["hits"]
    return Example(example.kind, example.before, example.after, tuple(hit["_id"] for hit in hits))


def _with_documents_beside(client: Client, old: Target, new: Target, example: Example) -> Example:
    """The same where each has indices of its own."""
    ids: dict[str, None] = {}
    for target, groups in ((old, example.before), (new, example.after)):
        clauses = [{"terms": {target.fields.group: sorted(groups)[:_SHOWN]}}]
        principals = [{"term": {target.fields.principal: {"value": True}}}]
        query = {"bool": {"filter": clauses, "should": principals, "minimum_should_match": 0}}
        body = {"size": _SHOWN, "query": query, "_source": False}
        hits = search(View(client, target), target.path, body)["hits"]["hits"] if groups else []
        ids |= {hit["_id"]: None for hit in hits}
    return Example(example.kind, example.before, example.after, tuple(ids)[:_SHOWN])
