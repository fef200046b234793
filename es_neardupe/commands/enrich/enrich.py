"""Give every document of an index its fingerprint, in place."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import partial
from typing import Any, NamedTuple

from es_neardupe import options
from es_neardupe.commands.enrich.sidecar import Send, SidecarEnrichment
from es_neardupe.commands.enrich.updates import Plan, is_current, plan, source_of, update
from es_neardupe.commands.init.sidecar import prepare_rolled_over
from es_neardupe.index import queries
from es_neardupe.index.document_text import text_pages
from es_neardupe.index.index import Index, opened
from es_neardupe.index.mapping import check_range_field
from es_neardupe.index.permissions import check_sees_all, check_updates, check_writable
from es_neardupe.index.sidecar.write_group_ids import Mirrored, mirror
from es_neardupe.index.stored_fields import stored_fields, timestamp
from es_neardupe.index.target import IndexTarget
from es_neardupe.index.tuning import tunable
from es_neardupe.options import DEFAULT_MAX_CHARS
from es_neardupe.progress import Progress, silent, tracked
from es_neardupe.records import Action, Address, Hit, Outcome, Reference
from es_neardupe.server.bulk import Tally, chunked, pretend, write
from es_neardupe.server.dry_run import Rehearsal, ShownRequest
from es_neardupe.server.fetch import fetch
from es_neardupe.server.search import counts, refresh

__all__ = ["EnrichReport", "enrich"]

_ROUNDS = 10
"""How often a document that somebody keeps changing is read and written again."""


@dataclass(frozen=True)
class EnrichReport:
    """What a run did: ``read = written + unchanged + deleted + conflicts + refused``, ``written = sum(states)``.

    ``documents + excluded`` are all documents that the index had when the run began.
    """

    index: str
    scheme: str
    documents: int
    """In scope when the run began."""
    excluded: int
    """Outside of the scope that ``query`` and the chosen relations give: neither read nor written."""
    left_alone: int
    """Of the index, documents of other relations of a join field than those to be processed: children, by default."""
    prepared: tuple[str, ...]
    """Indices that a rollover had put behind the name since: they got our fields and the settings of the others."""
    current: int
    """Of these, had a fingerprint of this scheme already."""
    read: int
    written: int
    unchanged: int
    """Read, and the stored fingerprint fits the text."""
    deleted: int
    """Deleted while the run went on."""
    conflicts: int
    """Changed again and again while the run went on: the next run takes them."""
    refused: int
    """Updates that the server refused; ``refusals`` says why."""
    states: Mapping[str, int]
    """Documents written, by state."""
    numeric: int
    """Of the signed and short ones among them: documents all of whose tokens are numbers."""
    removed: int
    """Entries of documents that are gone, removed from the index beside (``init --sidecar``)."""
    mirrored: Mirrored
    """Group ids written into the documents (``init --sidecar --write-group``)."""
    refusals: tuple[str, ...]
    dry_run: bool
    seconds: float = field(compare=False)
    requests: tuple[ShownRequest, ...] = ()
    """The first writes of a dry run, if they were asked for."""
    tuned: Mapping[str, Mapping[str, str | None]] | None = None
    """With ``tune``: index -> the settings that were lowered, with the values they have again."""


@tunable
def enrich(
    index: Index,
    *,
    query: options.Query = None,
    check: options.CheckTexts = False,
    since: options.Since = None,
    all: options.All = False,
    workers: options.Workers = 2,
    batch: options.Batch = 500,
    max_chars: options.MaxChars = DEFAULT_MAX_CHARS,
    tune: options.Tune = False,
    dry_run: options.DryRun = False,
    show_requests: options.ShowRequests = 0,
    progress: Progress = silent,
) -> EnrichReport:
    """Fingerprint the documents that have no fingerprint of the index's scheme.

    ``check`` also reads the others and renews those whose text no longer fits; ``since=(field, date)`` limits that
    reading to documents whose date field is at or after the date. ``all`` writes every document anew. ``query``
    is a scope in the server's query DSL. Indices that a rollover put behind a data stream or an alias with a write
    index are prepared like those before them. ``tune``: see `tunable`. A dry run can ``show_requests``, the first so
    many. Nothing but our own fields changes; a run that was killed is resumed by starting it again.
    """
    started = time.monotonic()
    rehearsal = Rehearsal(index.client, show_requests, dry_run=dry_run)
    index = opened(index.through(rehearsal) if dry_run else index, adopting=True, writes=not dry_run)
    check_sees_all(index, "enriching")
    prepared = index.target.new
    if not dry_run:
        check_writable(index.client, index.name)
        check_updates(index, "enriching")
        prepare_rolled_over(index)
        index = index.with_target(replace(index.target, new=()))
    if since is not None:
        check_range_field(index.client, index.path, since[0])
    refresh(index.client, index.path)
    rehearsed = partial(write, index.client, batch=batch, workers=1) if show_requests else pretend
    send = rehearsed if dry_run else partial(write, index.client, batch=batch, workers=workers)
    asked = _Asked(query, check, since, all, max_chars, progress)
    done = _inline(index, asked, send) if index.target.sidecar is None else _sidecar(index, asked, send)
    if not dry_run:
        refresh(index.client, index.path)
    mirrored = mirror(index, batch=batch, workers=workers, dry_run=dry_run)
    counted = done.tally.counts
    return EnrichReport(
        index=index.name,
        scheme=index.scheme_id,
        documents=done.before["scope"],
        excluded=done.before["everything"] - done.before["scope"],
        left_alone=done.before["left_alone"],
        prepared=prepared,
        current=done.current,
        **{name: counted[name] for name in ("read", "written", "unchanged", "deleted", "conflicts", "refused")},
        states=dict(done.states),
        numeric=counted["numeric"],
        removed=counted["removed"],
        mirrored=mirrored,
        refusals=done.tally.refusals,
        dry_run=dry_run,
        seconds=time.monotonic() - started,
        requests=rehearsal.shown,
        tuned=None,
    )


class _Asked(NamedTuple):
    """The options of a run that decide what is read."""

    query: Mapping[str, Any] | None
    check: bool
    since: tuple[str, str] | None
    all: bool
    max_chars: int
    progress: Progress


class _Done(NamedTuple):
    """What a run found and did."""

    before: Mapping[str, int]
    """Documents of ``scope``, of ``everything``, and those ``left_alone``."""
    current: int
    tally: Tally
    states: Mapping[str, int]


def _inline(index: Index, asked: _Asked, send: Send) -> _Done:
    """Write the fingerprints into the documents."""
    selection = _selection(index.target, asked.query, asked.check, asked.since, asked.all)
    before = counts(
        index.client,
        index.path,
        scope=queries.matching(index.target.within(asked.query)),
        everything={"match_all": {}},
        left_alone=queries.of_relations(index.target.left_alone),
        current=queries.all_of(index.target.within(asked.query), queries.fingerprinted(index.fields, index.scheme_id)),
        selected=selection,
    )
    renewal = _Renewal(index.target, rewrite=asked.all)
    pages = text_pages(index, selection, source_of(index.settings, index.target.inherits))
    read = plan(pages, index.settings, asked.max_chars)
    updates = renewal.updates(tracked(read, asked.progress, "fingerprinting", before["selected"]))
    lost = renewal.settle(send(updates))
    for _ in range(_ROUNDS):
        if not lost:
            break
        present = plan(_present(index, lost, renewal.tally), index.settings, asked.max_chars)
        lost = renewal.settle(send(renewal.updates(present, again=True)))
    renewal.tally.counts["conflicts"] = len(lost)
    return _Done(before, before["current"], renewal.tally, renewal.states)


def _sidecar(index: Index, asked: _Asked, send: Send) -> _Done:
    """Write the fingerprints into the sidecar index."""
    scope = queries.matching(index.target.within(asked.query))
    before = counts(
        index.client,
        index.path,
        scope=scope,
        everything={"match_all": {}},
        left_alone=queries.of_relations(index.target.left_alone),
    )
    run = SidecarEnrichment(index, rewrite=asked.all, max_chars=asked.max_chars, progress=asked.progress)
    recent = None if asked.since is None else queries.since(*asked.since)
    every = recent is None and (asked.check or asked.all)
    run.run(scope, before["scope"], send, every=every, recent=recent)
    return _Done(before, run.current, run.tally, run.states)


def _selection(
    target: IndexTarget, query: Mapping[str, Any] | None, check: bool, since: tuple[str, str] | None, all: bool
) -> dict[str, Any]:
    """Which documents have to be read at all."""
    stale, scope = target.stale(query), target.within(query)
    if since is not None:
        recent = queries.all_of(scope, queries.since(*since))
        return {"bool": {"should": [stale, recent], "minimum_should_match": 1}}
    return queries.matching(scope) if check or all else stale


def _present(index: Index, lost: Iterable[Reference], tally: Tally) -> Iterator[list[Hit]]:
    """The documents that changed under our hands, as they are now."""
    source = [*source_of(index.settings, index.target.inherits), index.fields.at]
    for chunk in chunked(lost, 100):
        found = list(fetch(index.client, chunk, source))
        tally.counts["deleted"] += found.count(None)
        yield [hit for hit in found if hit is not None]


class _Renewal:
    """Decides what is written of the documents that were read, and counts what becomes of all of them."""

    def __init__(self, target: IndexTarget, *, rewrite: bool) -> None:
        self.settings = target.settings
        self.inherits = target.inherits
        self.rewrite = rewrite
        self.at = timestamp()
        self.tally = Tally()
        self.states: Counter[str] = Counter()
        self._sent_twice: set[Address] = set()
        """Documents that conflicted with a write which may have been our own."""

    def updates(self, plans: Iterable[Plan], *, again: bool = False) -> Iterator[Action]:
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
