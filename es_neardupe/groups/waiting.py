"""What waits for the next run of ``group``: documents that are new or changed since the last one, and decisions."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from functools import partial
from typing import Any, NamedTuple

from es_neardupe.errors import Forbidden, NameTaken, SettingsError
from es_neardupe.groups.decisions import Decisions
from es_neardupe.groups.registry import LastRun, Registry
from es_neardupe.index import queries
from es_neardupe.index.index import Index
from es_neardupe.index.storage.change_feed import ChangeFeed
from es_neardupe.server.parallel import in_threads
from es_neardupe.wording import command, counted

PAGE = 10_000
"""A query with many terms costs the server more than the documents that it finds: large pages avoid repeating it."""

SEARCHES = 2
"""Searches at a time: the server answers each with one thread per shard."""


class DocumentQuery(NamedTuple):
    """A query for documents of an incremental run."""

    query: dict[str, Any]
    shard: int | None = None
    """The number of the shards with these documents; None: all."""


@dataclass(frozen=True, slots=True)
class NextRun:
    """What is left to the next run of ``group``."""

    waiting: int
    """Documents with a fingerprint that are new or changed since the last run. Where changes cannot be noticed, new
    documents are missing from it."""
    lost: bool
    """Whether documents of the last run were changed or deleted since; False if that is unknown."""
    decisions: int = 0
    """Decisions of reviewers that no run has applied."""


def next_run(index: Index) -> NextRun:
    """Count what is left to the next run, without writing anything."""
    registry = Registry(index)
    try:
        last, feed = registry.last_run(), index.storage.group_feed(stores=False)
        columns = () if last is None or last.rules is None else last.rules.group.columns
        field_feed = index.storage.field_feed(stores=False) if columns else None
        decisions = Decisions(index).count_waiting()
    except (Forbidden, NameTaken, SettingsError):
        return NextRun(counted_documents(index)["waiting"], lost=False)
    found = counted_documents(index, changed_since(index, feed, last), with_other_fields(index, field_feed))
    if last is None:
        return NextRun(found["documents"], lost=False, decisions=decisions)
    lost = (found["principals"], found["members"]) != (last.principals, last.members)
    lost = lost and not (feed is not None and feed.all_kept)
    known = last.finished and last.principals is not None and why_unnoticed(feed, last.indices) is None
    return NextRun(found["waiting"], lost=known and lost, decisions=decisions)


def written_since_enrich(index: Index, feed: ChangeFeed) -> int:
    """The number of documents that were written since the last ``enrich``, so that their texts can have changed: those
    with keys, or with a sidecar all. It is 0 if a sidecar's group ids are written into the documents. ``feed``: of the
    texts."""
    documents = index.target.within()
    if not index.storage.sidecars:
        documents = queries.all_of(documents, queries.fingerprinted(index.fields, index.scheme_id))
    elif index.storage.groups_in_documents:
        return 0
    changed = {shard: query for shard in feed.shards if (query := feed.changed(shard)) is not None}
    return sum(
        index.plain_documents.count(queries.all_of(documents, query), shard=shard) for shard, query in changed.items()
    )


def waiting_of_deleted(index: Index) -> int:
    """The number of entries of a sidecar that wait, but belong to deleted documents: ``enrich`` removes them. If more
    wait than a page has, it is 0 as soon as a document is found."""
    if not index.storage.sidecars:
        return 0
    ungrouped = queries.ungrouped(index.fields, index.scheme_id)
    waiting, existing = index.documents.count(ungrouped), 0
    for page in index.documents.pages({"query": ungrouped, "_source": False}, page_size=PAGE):
        existing += len(page)  # without those of deleted documents
        if waiting > PAGE:
            return 0
    return max(0, waiting - existing)


def of_deleted(number: int, name: str) -> str:
    """What to do about this many entries of deleted documents that wait. ``name``: of the index."""
    message = counted(number, "entry of a deleted document waits", "entries of deleted documents wait")
    return f"{message} for grouping: run `{command('enrich', name)}`, which removes {'it' if number == 1 else 'them'}"


def changed_since(index: Index, feed: ChangeFeed | None, last: LastRun | None) -> list[DocumentQuery]:
    """Queries for the documents that were written since the last run; of an index that is new since then, all
    documents. None without a last run: the next one processes all."""
    if last is None or feed is None or feed.reason is not None:
        return []
    new = [name for name in feed.unknown if last.indices.get(name) != index.target.uuids[name]]
    found = []
    for shard in feed.shards:
        clauses = [{"terms": {"_index": new}}] if new else []
        if (written := feed.changed(shard)) is not None:
            clauses.append(written)
        if clauses:
            found.append(DocumentQuery({"bool": {"should": clauses, "minimum_should_match": 1}}, shard))
    return found


def with_other_fields(index: Index, feed: ChangeFeed | None) -> list[DocumentQuery]:
    """Queries for the documents that were written since the last run, by their ids: their keys are elsewhere. Of an
    index that is new since then, all documents wait."""
    found: list[DocumentQuery] = []
    if feed is None or feed.reason is not None:
        return found
    for shard in feed.shards:
        if (written := feed.changed(shard)) is None:
            continue
        for page in index.plain_documents.pages({"query": written, "_source": False}, page_size=PAGE, shard=shard):
            ids: dict[str, list[str]] = defaultdict(list)
            for hit in page:
                ids[hit.index].append(hit.id)
            for name, some in ids.items():
                found.append(DocumentQuery(queries.all_of({"term": {"_index": name}}, {"ids": {"values": some}})))
    return found


def counted_documents(
    index: Index, changed: Iterable[DocumentQuery] = (), other_fields: Iterable[DocumentQuery] = ()
) -> dict[str, int]:
    """The number of ``documents`` with a fingerprint, of those that are ``waiting`` or were changed since the last run,
    and of the ``principals`` and ``members`` that were not ``changed``. A document of which only ``other_fields`` may
    have changed is still in its group."""
    fields, scheme = index.fields, index.scheme_id
    kinds = queries.principals_and_members(fields, scheme)

    def all_documents() -> Iterator[dict[str, int]]:
        yield index.documents.counts(
            documents=queries.fingerprinted(fields, scheme),
            waiting=queries.ungrouped(fields, scheme),
            principals=kinds["principals"],
            members=kinds["members"],
        )

    def of_changed(query: dict[str, Any], shard: int | None) -> Iterator[dict[str, int]]:
        several = index.documents.counts(
            shard=shard,
            waiting=queries.all_of(query, queries.grouped(fields, scheme)),
            principals=queries.all_of(query, kinds["principals"]),
            members=queries.all_of(query, kinds["members"]),
        )
        yield several | {name: -several[name] for name in kinds}

    def of_other_fields(query: dict[str, Any], shard: int | None) -> Iterator[dict[str, int]]:
        yield {"waiting": index.documents.count(queries.all_of(query, queries.grouped(fields, scheme)), shard=shard)}

    found: Counter[str] = Counter()
    sources: list[Callable[[], Iterator[dict[str, int]]]] = [all_documents]
    sources += [partial(of_changed, *one) for one in changed]
    sources += [partial(of_other_fields, *one) for one in other_fields]
    with closing(in_threads(sources, SEARCHES)) as parts:
        for part in parts:
            found.update(part)
    return found


def why_unnoticed(feed: ChangeFeed | None, noted: Mapping[str, str]) -> str | None:
    """Why documents that were written since the last run cannot be found; None if they can, or need not be."""
    if feed is None:
        return None
    if feed.reason is not None:
        return f"changes cannot be noticed: {feed.reason}"
    return next(
        (f"changes of {name} cannot be noticed: {why}" for name, why in feed.unknown.items() if name in noted), None
    )
