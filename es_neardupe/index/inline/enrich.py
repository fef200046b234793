"""Fingerprints written into the documents themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING, Any

from es_neardupe.index import queries
from es_neardupe.index.document_text import text_pages
from es_neardupe.index.storage import Enriched, Send, ToEnrich
from es_neardupe.index.stored_fields import stored_fields, timestamp
from es_neardupe.index.target import IndexTarget
from es_neardupe.index.updates import DocumentUpdate, is_current, plan, source_of, update
from es_neardupe.progress import Progress, tracked
from es_neardupe.records import Action, Address, Hit, Outcome, Reference
from es_neardupe.server.bulk import BulkCounts, chunked
from es_neardupe.server.search import counts, fetch

if TYPE_CHECKING:
    from es_neardupe.index.index import Index

__all__ = ["enrich_inline"]

_ROUNDS = 10
"""How often a document that somebody keeps changing is read and written again."""


def enrich_inline(index: Index, wanted: ToEnrich, send: Send, progress: Progress) -> Enriched:
    """Write the fingerprints into the documents."""
    selection = _selection(index.target, wanted)
    before = counts(
        index.client,
        index.path,
        scope=queries.matching(index.target.within(wanted.query)),
        everything={"match_all": {}},
        left_alone=queries.of_relations(index.target.left_alone),
        current=queries.all_of(index.target.within(wanted.query), queries.fingerprinted(index.fields, index.scheme_id)),
        selected=selection,
    )
    renewal = _InlineEnrichment(index.target, rewrite=wanted.all)
    pages = text_pages(index, selection, source_of(index.settings, index.target.inherits))
    read = plan(pages, index.settings, wanted.max_chars)
    updates = renewal.updates(tracked(read, progress, "fingerprinting", before["selected"]))
    lost = renewal.settle(send(updates))
    for _ in range(_ROUNDS):
        if not lost:
            break
        present = plan(_present(index, lost, renewal.tally), index.settings, wanted.max_chars)
        lost = renewal.settle(send(renewal.updates(present, again=True)))
    renewal.tally.counts["conflicts"] = len(lost)
    return Enriched(before, before["current"], renewal.tally, renewal.states)


def _selection(target: IndexTarget, wanted: ToEnrich) -> dict[str, Any]:
    """Which documents have to be read at all."""
    stale, scope = target.stale(wanted.query), target.within(wanted.query)
    if wanted.since is not None:
        recent = queries.all_of(scope, queries.since(*wanted.since))
        return {"bool": {"should": [stale, recent], "minimum_should_match": 1}}
    return queries.matching(scope) if wanted.check or wanted.all else stale


def _present(index: Index, lost: Iterable[Reference], tally: BulkCounts) -> Iterator[list[Hit]]:
    """The documents that changed under our hands, as they are now."""
    source = [*source_of(index.settings, index.target.inherits), index.fields.at]
    for chunk in chunked(lost, 100):
        found = list(fetch(index.client, chunk, source))
        tally.counts["deleted"] += found.count(None)
        yield [hit for hit in found if hit is not None]


class _InlineEnrichment:
    """Decides what is written of the documents that were read, and counts what becomes of all of them."""

    def __init__(self, target: IndexTarget, *, rewrite: bool) -> None:
        self.settings = target.settings
        self.inherits = target.inherits
        self.rewrite = rewrite
        self.at = timestamp()
        self.tally = BulkCounts()
        self.states: Counter[str] = Counter()
        self._sent_twice: set[Address] = set()
        """Documents that conflicted with a write which may have been our own."""

    def updates(self, plans: Iterable[DocumentUpdate], *, again: bool = False) -> Iterator[Action]:
        """The updates that are needed. ``again``: of documents that were read and counted before.

        Such a document can be current already: by a write of ours whose answer was lost (then it counts as written), or
        by another run.
        """
        for one in plans:
            self.tally.counts["read"] += not again
            current = is_current(one, self.settings)
            if current and again and self._is_ours(one.hit):
                self.tally.counts["written"] += 1
                self._count(one.fingerprint.state.value, one.fingerprint.numeric)
            elif current and (again or not self.rewrite):
                self.tally.counts["unchanged"] += 1
            else:
                yield update(one, self.settings, self.at, current=current, inherits=self.inherits)

    def settle(self, outcomes: Iterable[Outcome]) -> list[Reference]:
        """Count outcomes; returns the documents that were changed by somebody before our write."""
        lost: list[Reference] = []
        for outcome in outcomes:
            if outcome.conflict:
                lost.append(outcome.action.reference)
                self._sent_twice.update([outcome.action.address] if outcome.repeated else [])
                continue
            self.tally.add(outcome)
            if outcome.done:
                fields = outcome.action.body["doc"][self.settings.prefix]
                self._count(fields["state"], fields["numeric"] is True)
        return lost

    def _is_ours(self, hit: Hit) -> bool:
        """Whether this run wrote a document already, though the answer was lost. A synthetic source tells the time of
        it with milliseconds."""
        at = str(stored_fields(hit.source, self.settings.prefix).get("at"))
        return hit.address in self._sent_twice and at.startswith(self.at.removesuffix("Z"))

    def _count(self, state: str, numeric: bool) -> None:
        self.states[state] += 1
        self.tally.counts["numeric"] += numeric
