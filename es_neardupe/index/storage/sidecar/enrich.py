"""Fingerprints written into sidecar indices.

Each entry has the sequence number of the document version that it was made from, so changes are noticed without reading
texts. Entries of deleted documents are removed.

The change feed names the documents that were written since the last run. If the others are as many as their entries,
none of them was deleted, and nothing else is read. If not, or if the feed is not available, the versions of all
documents are read.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import closing
from functools import partial
from itertools import chain
from typing import Any

from es_neardupe.errors import DocumentTooLarge
from es_neardupe.index import queries
from es_neardupe.index.handle import IndexHandle
from es_neardupe.index.slices import read_slices
from es_neardupe.index.storage.change_feed import ChangeFeed, Consumer
from es_neardupe.index.storage.field_writes import partial_update
from es_neardupe.index.storage.interface import EnrichRequest, EnrichResult, OnWorkers, Send, tracked_results
from es_neardupe.index.storage.sidecar.entries import (
    KnownEntries,
    confirmation,
    count_entries,
    entry_write,
    removals,
    with_entries,
    with_inherited,
)
from es_neardupe.index.storage.sidecar.indices import SidecarNames
from es_neardupe.index.stored_fields import stored_fields, timestamp
from es_neardupe.index.updates import fingerprint_documents, fingerprint_fields, is_current, waiting
from es_neardupe.progress import Progress, tracked
from es_neardupe.records import Action, Hit, Outcome, Reference
from es_neardupe.server.bulk import BulkCounts
from es_neardupe.server.client import JSON
from es_neardupe.server.failures import Failure
from es_neardupe.server.request_sizes import in_portions
from es_neardupe.server.search import fetch_portions

_ROUNDS = 10
"""Maximum number of attempts for an entry that another client keeps changing."""

_PAGE = 10_000
_AT_ONCE = 500
"""Maximum number of documents whose entries are written together."""

_MIN_KNOWN = 0.5
"""Minimum share of documents with a current entry for reading versions first, and only the texts that changed."""


def enrich_sidecar(
    index: IndexHandle, request: EnrichRequest, send: Send, progress: Progress, on_workers: OnWorkers | None = None
) -> EnrichResult:
    """Write the entries of documents that have none for their current text, and remove those of deleted documents."""
    scope = queries.matching(index.target.within(request.query))
    stores = not (request.dry_run or request.task)
    feed = ChangeFeed(index, Consumer.TEXTS, stores=stores)  # first: it refreshes the index
    before = index.documents.counts(
        scope=scope,
        everything={"match_all": {}},
        skipped=queries.of_relations(index.target.skipped_relations),
    )
    every = request.since is None and (request.check or request.all)
    total, entries = before["scope"], count_entries(index)
    known, written = entries["current"], None
    # Outdated entries, which another client has changed, could make up for those of deleted documents in the numbers.
    if request.whole and on_workers is None and request.since is None and not every and not entries["outdated"]:
        written = _written_since(index, feed, scope, total, known)
    if written is not None:
        enrichment = _SidecarEnrichment(index, request, progress, KnownEntries.of(index, written))
        enrichment.run_changed(written, send)
        current = known
    else:
        enrichment = _SidecarEnrichment(index, request, progress, KnownEntries.all(index))
        if on_workers is not None:
            for result in tracked_results(on_workers(request), progress, total):
                enrichment.add(result)
            enrichment.remove_deleted(scope, send)
        else:
            recent = None if request.since is None else queries.since(*request.since)
            enrichment.run(scope, total, send, every=every, recent=recent)
        current = enrichment.current
    if request.whole and not any(enrichment.tally.counts[name] for name in _LEFT):
        feed.store(whole=True)
    return EnrichResult(before, current, enrichment.tally, enrichment.states, enrichment.lengths)


_LEFT = ("conflicts", "refused", "failed")
"""Counts of documents without an entry of their current text. The next run reads the versions of all documents."""


def _written_since(
    index: IndexHandle, feed: ChangeFeed, scope: Mapping[str, Any], total: int, known: int
) -> list[Hit] | None:
    """The versions of the documents of the whole scope that were written since the last run; None if the others are not
    the ones that have the other current entries, or are few. ``known``: number of current entries."""
    if feed.reason is not None or feed.unknown:
        return None
    changes = {shard: feed.changed(shard) for shard in feed.shards}
    selected = {shard: queries.all_of(scope, one) for shard, one in changes.items() if one is not None}
    numbers = [index.documents.count(query, shard=shard) for shard, query in selected.items()]
    if sum(numbers) > (1 - _MIN_KNOWN) * total:
        return None
    written: list[Hit] = []
    for shard, query in selected.items():
        for page in index.documents.pages({"query": query, "_source": False}, page_size=_PAGE, shard=shard):
            written += page
    with_entry = KnownEntries.of(index, written).current
    return written if total - len(written) == known - with_entry else None


class _SidecarEnrichment:
    """Decides which entries are written, and counts the results of all documents."""

    def __init__(self, index: IndexHandle, request: EnrichRequest, progress: Progress, known: KnownEntries) -> None:
        self._index = index
        self._request = request
        self._progress = progress
        self._uuids = index.target.uuids
        self._known = known
        self._at = timestamp()
        self.tally = BulkCounts()
        self.states: Counter[str] = Counter()
        self.lengths: Counter[int] = Counter()
        self.current = 0
        """Documents in scope that had an entry of the scheme."""

    def run(
        self, scope: Mapping[str, Any], total: int, send: Send, *, every: bool, recent: Mapping[str, Any] | None
    ) -> None:
        """Write the entries of documents in scope that have none for their current text, and remove those of deleted
        documents.

        Reads the texts of documents whose version is not that of their entry. Also reads the texts of ``every``
        document, or of those that match ``recent``, whatever their version.
        """
        every = every or self._known.current < _MIN_KNOWN * total
        pages = self._texts(scope) if every else self._selected(scope, total, recent)
        self._write(pages, send, self._request.share(total) if every else None)
        if self._request.slice is None:  # else other runs see the rest
            self._remove_unseen(send)

    def run_changed(self, written: Sequence[Hit], send: Send) -> None:
        """Write the entries of these documents, which were read without their texts, unless they are of their
        version."""
        self._see(written)
        changed = [hit.reference for hit in written if not self._known.is_same_version(hit)]
        self._write(self._fetched(changed, new=True), send, len(changed))

    def _write(self, pages: Iterable[list[Hit]], send: Send, number: int | None) -> None:
        """Write the entries of documents that have none for their text. ``number``: that of the documents, if it is
        known."""
        hits = tracked(chain.from_iterable(pages), self._progress, "fingerprinting", number)
        conflicts = self._settle(send(self._writes(in_portions(hits, _AT_ONCE))))
        for _ in range(_ROUNDS):
            if not conflicts:
                break
            conflicts = self._settle(send(self._writes(self._fetched(conflicts), again=True)))
        self.tally.add_conflicts(conflicts)

    def add(self, part: EnrichResult) -> None:
        """Add the result of a slice."""
        self.tally.add_all(part.tally)
        self.states.update(part.states)
        self.lengths.update(part.lengths)
        self.current += part.current

    def remove_deleted(self, scope: Mapping[str, Any], send: Send) -> None:
        """After slices, read which documents there are, and remove the entries of others."""
        for page in self._index.documents.pages({"query": scope, "_source": False}, page_size=_PAGE):
            for hit in page:
                self._known.see(hit)
        self._remove_unseen(send)

    def _remove_unseen(self, send: Send) -> None:
        removed = send(removals(self._index, self._known.unseen()))
        self.tally.counts["removed"] = sum(outcome.done for outcome in removed)

    def _texts(self, scope: Mapping[str, Any]) -> Iterator[list[Hit]]:
        """All documents with their texts and their own version."""
        body = {"query": dict(scope), "_source": list(self._index.settings.fields)}
        too_large: list[tuple[Hit, DocumentTooLarge]] = []

        def note(hit: Hit, error: DocumentTooLarge) -> None:  # called by the threads that read
            too_large.append((hit, error))

        yield from self._pages(body, page_size=None, skip=note)
        for hit, error in too_large:
            self._see([hit])
            self._skip(hit.reference, error, new=True)

    def _pages(self, body: JSON, **options: Any) -> Iterator[list[Hit]]:
        """The pages of a search, in slices; all documents are seen."""

        def read(shard: int | None, part: tuple[int, int] | None) -> Iterator[list[Hit]]:
            return self._index.documents.pages(body, shard=shard, slice=part, **options)

        with closing(read_slices(self._index, read, self._request.slices, part=self._request.part)) as pages:
            for page in pages:
                self._see(page)
                yield page

    def _skip(self, reference: Reference, error: DocumentTooLarge, *, new: bool) -> None:
        """Count a document that does not fit into memory as failed. ``new``: it was not read before."""
        self.tally.counts["read"] += new
        reason = error.args[0].rstrip(".")
        self.tally.add_failed([Failure("failed", *reference, reason)], [reason])

    def _selected(self, scope: Mapping[str, Any], total: int, recent: Mapping[str, Any] | None) -> Iterator[list[Hit]]:
        """Recent documents, and of the others those that changed; with their texts."""
        if recent is None:
            return self._changed(scope, total)
        older = {"bool": {"filter": [scope], "must_not": [recent]}}
        return chain(self._texts(queries.all_of(scope, recent)), self._changed(older, total))

    def _changed(self, scope: Mapping[str, Any], total: int) -> Iterator[list[Hit]]:
        """Documents whose version is not that of their entry, with their texts."""
        body = {"query": dict(scope), "_source": False}
        share = self._request.share(-(-total // _PAGE))
        for page in tracked(self._pages(body, page_size=_PAGE), self._progress, "reading versions", share, step=1):
            changed = [hit.reference for hit in page if not self._known.is_same_version(hit)]
            yield from self._fetched(changed, new=True)

    def _see(self, page: Sequence[Hit]) -> None:
        for hit in page:
            self._known.see(hit)
            if self._known.is_current(hit):
                self.current += 1
                self.tally.counts["changed"] += not self._known.is_same_version(hit)

    def _fetched(self, references: Iterable[Reference], *, new: bool = False) -> Iterator[list[Hit]]:
        """The current documents with their texts; counts those that were deleted."""
        fields, skip = self._index.settings.fields, partial(self._skip, new=new)
        for found in fetch_portions(self._index.client, references, fields, skip=skip):
            self.tally.counts["deleted"] += found.count(None)
            self.tally.counts["read"] += found.count(None) if new else 0
            yield [hit for hit in found if hit is not None]

    def _writes(self, pages: Iterable[list[Hit]], *, again: bool = False) -> Iterator[Action]:
        """The writes that are needed. ``again``: the documents were read and counted before."""
        settings = self._index.settings
        for read in pages:
            self.tally.counts["read"] += 0 if again else len(read)
            page: list[tuple[Hit, Hit | None]] = [(hit, None) for hit in with_inherited(self._index, read)]
            if again or any(self._known.has(hit) for hit in read):
                page = list(with_entries(self._index, [hit for hit, _ in page]))
            documents = fingerprint_documents([[hit for hit, _ in page]], settings, self._request.max_chars)
            for one, (hit, entry) in zip(documents, page, strict=True):
                current, uuid = entry is not None and is_current(one, settings), self._uuids[hit.index]
                inherits = self._index.target.inherits
                fields = fingerprint_fields(one, settings, self._at, inherits=inherits)
                if not current and "group" not in fields:  # keys of another text with the content hash of this one
                    fields |= waiting(stored_fields(hit.source, settings.prefix)["group"])
                inline = partial_update(one.hit, settings, fields)
                if not current or (self._request.all and not again):
                    yield entry_write(inline, entry, settings.prefix, uuid, current=current)
                elif entry is not None and not again and self._known.is_same_version(hit):
                    self.tally.counts["unchanged"] += 1
                elif entry is not None:
                    yield confirmation(inline, entry, settings.prefix, uuid)

    def _settle(self, outcomes: Iterable[Outcome]) -> list[Reference]:
        """Count outcomes; returns the documents whose entry another client wrote or removed in between."""
        conflicts: list[Reference] = []
        prefix, names = self._index.settings.prefix, SidecarNames(self._index.target).indices
        for outcome in outcomes:
            action = outcome.action
            if outcome.conflict or outcome.gone:
                conflicts.append((names[action.index], action.id, action.routing))
                continue
            body = action.body.get("doc", action.body)
            if outcome.done and prefix not in body:  # a confirmation
                self.tally.counts["unchanged"] += 1
                continue
            self.tally.add(outcome, names[action.index])
            if outcome.done:
                self.states[body[prefix]["state"]] += 1
                self.lengths[body[prefix]["tokens"]] += 1
                self.tally.counts["numeric"] += body[prefix]["numeric"] is True
        return conflicts
