"""Fingerprints written into the sidecar index; nothing of the user's index is written.

Each entry has the sequence number of the text that it was made from, so that changes are noticed without reading a
text, and entries of documents that were deleted are removed.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Any

from es_neardupe.index import queries
from es_neardupe.index.document_text import text_of
from es_neardupe.index.sidecar.entries import (
    KnownEntries,
    confirmation,
    entry,
    gone,
    uuids,
    with_inherited,
    with_stored,
)
from es_neardupe.index.sidecar.queries import SidecarNames
from es_neardupe.index.storage import Enriched, Send, ToEnrich
from es_neardupe.index.stored_fields import timestamp
from es_neardupe.index.updates import is_current, plan, update
from es_neardupe.progress import Progress, tracked
from es_neardupe.records import Action, Hit, Outcome, Reference
from es_neardupe.server.bulk import BulkCounts, chunked
from es_neardupe.server.search import counts, fetch, search

if TYPE_CHECKING:
    from es_neardupe.index.index import Index

__all__ = ["enrich_sidecar"]

_ROUNDS = 10
_PAGE = 10_000
_FETCH = 500
_PAGE_CHARS = 8_000_000
_SAMPLE = 20

_FEW = 0.5
"""Share of documents with an entry from which on versions are read first, and then only the texts that changed."""


def enrich_sidecar(index: Index, wanted: ToEnrich, send: Send, progress: Progress) -> Enriched:
    """Write the entries of documents that have none of their current text, and remove those of deleted documents."""
    scope = queries.matching(index.target.within(wanted.query))
    before = counts(
        index.client,
        index.path,
        scope=scope,
        everything={"match_all": {}},
        left_alone=queries.of_relations(index.target.left_alone),
    )
    run = _SidecarEnrichment(index, rewrite=wanted.all, max_chars=wanted.max_chars, progress=progress)
    recent = None if wanted.since is None else queries.since(*wanted.since)
    every = recent is None and (wanted.check or wanted.all)
    run.run(scope, before["scope"], send, every=every, recent=recent)
    return Enriched(before, run.current, run.tally, run.states)


class _SidecarEnrichment:
    """Decides what is written, and counts what becomes of all documents."""

    def __init__(self, index: Index, *, rewrite: bool, max_chars: int, progress: Progress) -> None:
        self._index = index
        self._rewrite = rewrite
        self._max_chars = max_chars
        self._progress = progress
        self._uuids = uuids(index)
        self._known = KnownEntries(index, self._uuids)
        self._at = timestamp()
        self.tally = BulkCounts()
        self.states: Counter[str] = Counter()
        self.current = 0
        """Documents in scope that had an entry of the scheme."""

    def run(
        self, scope: Mapping[str, Any], total: int, send: Send, *, every: bool, recent: Mapping[str, Any] | None
    ) -> None:
        """Write the entries of the documents in scope that have none of their present text, and remove those of
        documents that are gone.

        Texts are read of documents whose version is not that of their entry, and whatever the version says of ``every``
        document or of those that ``recent`` finds.
        """
        every = every or self._known.fitting < _FEW * total
        pages = self._texts(scope) if every else self._selected(scope, total, recent)
        told = tracked(chain.from_iterable(pages), self._progress, "fingerprinting", total if every else None)
        lost = self._settle(send(self._writes(chunked(told, _FETCH))))
        for _ in range(_ROUNDS):
            if not lost:
                break
            lost = self._settle(send(self._writes(self._fetched(lost), again=True)))
        self.tally.counts["conflicts"] = len(lost)
        removals = gone(self._index, self._known.unseen())
        self.tally.counts["removed"] = sum(outcome.done for outcome in send(removals))

    def _texts(self, scope: Mapping[str, Any]) -> Iterator[list[Hit]]:
        """All documents with their texts, of their own version."""
        fields = list(self._index.settings.fields)
        body = {"query": dict(scope), "_source": fields}
        some = search(self._index.client, self._index.path, {**body, "size": _SAMPLE})["hits"]["hits"]
        chars = sum(len(text_of(hit.get("_source", {}), fields)) for hit in some) / max(len(some), 1)
        size = max(10, min(1000, int(_PAGE_CHARS / max(chars, 1))))
        for page in self._index.client.pages(self._index.path, body, page_size=size, first_page=min(300, size)):
            self._see(page)
            yield page

    def _selected(self, scope: Mapping[str, Any], total: int, recent: Mapping[str, Any] | None) -> Iterator[list[Hit]]:
        """Of recent documents all texts, of the others those that changed."""
        if recent is None:
            return self._changed(scope, total)
        older = {"bool": {"filter": [scope], "must_not": [recent]}}
        return chain(self._texts(queries.all_of(scope, recent)), self._changed(older, total))

    def _changed(self, scope: Mapping[str, Any], total: int) -> Iterator[list[Hit]]:
        """Only the texts of documents whose version is not that of their entry."""
        body = {"query": dict(scope), "_source": False}
        pages = self._index.client.pages(self._index.path, body, page_size=_PAGE)
        for page in tracked(pages, self._progress, "reading versions", -(-total // _PAGE), step=1):
            self._see(page)
            changed = [hit.reference for hit in page if not self._known.same(hit)]
            yield from self._fetched(changed, new=True)

    def _see(self, page: Sequence[Hit]) -> None:
        for hit in page:
            self._known.see(hit)
            self.current += self._known.is_current(hit)

    def _fetched(self, references: Iterable[Reference], *, new: bool = False) -> Iterator[list[Hit]]:
        """Texts as they are now; those deleted meanwhile are counted."""
        for chunk in chunked(references, _FETCH):
            found = list(fetch(self._index.client, chunk, self._index.settings.fields))
            self.tally.counts["deleted"] += found.count(None)
            self.tally.counts["read"] += found.count(None) if new else 0
            yield [hit for hit in found if hit is not None]

    def _writes(self, pages: Iterable[list[Hit]], *, again: bool = False) -> Iterator[Action]:
        """The writes that are needed. ``again``: of documents that were read and counted before."""
        settings = self._index.settings
        for read in pages:
            self.tally.counts["read"] += 0 if again else len(read)
            page = with_inherited(self._index, read)
            found = [(hit, None) for hit in page]
            if again or any(self._known.has(hit) for hit in page):
                found = list(with_stored(self._index, page))  # type: ignore[arg-type]
            plans = plan([[hit for hit, _ in found]], settings, self._max_chars)
            for one, (hit, there) in zip(plans, found, strict=True):
                current, uuid = there is not None and is_current(one, settings), self._uuids[hit.index]
                wanted = update(one, settings, self._at, current=current, inherits=self._index.target.inherits)
                if not current or (self._rewrite and not again):
                    yield entry(wanted, there, settings.prefix, uuid, current=current)
                elif there is not None and not again and self._known.same(hit):
                    self.tally.counts["unchanged"] += 1
                elif there is not None:
                    yield confirmation(wanted, there, settings.prefix, uuid)

    def _settle(self, outcomes: Iterable[Outcome]) -> list[Reference]:
        """Count outcomes; returns the documents whose entry somebody else wrote or removed before us."""
        lost: list[Reference] = []
        prefix, names = self._index.settings.prefix, SidecarNames(self._index.target).theirs
        for outcome in outcomes:
            action = outcome.action
            if outcome.conflict or outcome.gone:
                lost.append((names[action.index], action.id, action.routing))
                continue
            body = action.body.get("doc", action.body)
            if outcome.done and prefix not in body:  # a confirmation
                self.tally.counts["unchanged"] += 1
                continue
            self.tally.add(outcome)
            if outcome.done:
                self.states[body[prefix]["state"]] += 1
                self.tally.counts["numeric"] += body[prefix]["numeric"] is True
        return lost
