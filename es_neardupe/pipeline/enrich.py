"""Give every document of an index its fingerprint, in place."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any, NamedTuple

from es_neardupe import documents, queries
from es_neardupe.asking import counts, refresh
from es_neardupe.blocks import check_writable
from es_neardupe.bulk import chunked, pretend, write
from es_neardupe.clients import Client
from es_neardupe.errors import SettingsError
from es_neardupe.fetch import fetch
from es_neardupe.indices import Target, check_range_field
from es_neardupe.pipeline.enrich_beside import Beside, Send
from es_neardupe.pipeline.reading import text_pages
from es_neardupe.progress import Progress, silent, tracked
from es_neardupe.records import Action, Hit, Outcome, Reference
from es_neardupe.rights import check_sees_all
from es_neardupe.settings import DEFAULT_MAX_CHARS, DEFAULT_PREFIX, Settings
from es_neardupe.sidecar import Mirrored, View, mirror, opened
from es_neardupe.stages.renewal import Plan, is_current, plan, source_of, update
from es_neardupe.tally import Tally

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
    """Outside of the scope that ``query`` gives: neither read nor written."""
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


def enrich(
    client: Client,
    index: str,
    *,
    prefix: str = DEFAULT_PREFIX,
    query: Mapping[str, Any] | None = None,
    check: bool = False,
    since: tuple[str, str] | None = None,
    all: bool = False,
    workers: int = 2,
    batch: int = 500,
    max_chars: int = DEFAULT_MAX_CHARS,
    dry_run: bool = False,
    progress: Progress = silent,
) -> EnrichReport:
    """Fingerprint the documents that have no fingerprint of the index's scheme.

    ``check`` also reads the others and renews those whose text no longer fits; ``since=(field, date)`` limits that
    reading to documents whose date field is at or after the date. ``all`` writes every document anew. ``query``
    is a scope in the server's query DSL. Nothing but our own fields changes; a run that was killed is resumed by
    starting it again.
    """
    started = time.monotonic()
    client, target = opened(client, index, prefix)
    check_sees_all(client, target, "enriching")
    if not dry_run:
        check_writable(client, index)
    if since is not None:
        check_range_field(client, target.path, since[0])
    refresh(client, target.path)
    send = pretend if dry_run else partial(write, client, batch=batch, workers=workers)
    asked = _Asked(query, check, since, all, max_chars, progress)
    done = _beside(client, target, asked, send) if isinstance(client, View) else _inline(client, target, asked, send)
    if not dry_run:
        refresh(client, target.path)
    mirrored = mirror(client, target, batch=batch, workers=workers, dry_run=dry_run)
    counted = done.tally.counts
    return EnrichReport(
        index=index,
        scheme=target.scheme_id,
        documents=done.documents,
        excluded=done.everything - done.documents,
        current=done.current,
        **{name: counted[name] for name in ("read", "written", "unchanged", "deleted", "conflicts", "refused")},
        states=dict(done.states),
        numeric=counted["numeric"],
        removed=counted["removed"],
        mirrored=mirrored,
        refusals=done.tally.refusals,
        dry_run=dry_run,
        seconds=time.monotonic() - started,
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

    documents: int
    everything: int
    current: int
    tally: Tally
    states: Mapping[str, int]


def _inline(client: Client, target: Target, asked: _Asked, send: Send) -> _Done:
    """Write the fingerprints into the documents."""
    selection = _selection(target, asked.query, asked.check, asked.since, asked.all)
    before = counts(
        client,
        target.path,
        scope=queries.matching(asked.query),
        everything={"match_all": {}},
        current=queries.all_of(asked.query, queries.fingerprinted(target.fields, target.scheme_id)),
        selected=selection,
    )
    renewal = _Renewal(target.settings, rewrite=asked.all)
    pages = text_pages(client, target, selection, source_of(target.settings))
    read = plan(pages, target.settings, asked.max_chars)
    updates = renewal.updates(tracked(read, asked.progress, "fingerprinting", before["selected"]))
    lost = renewal.settle(send(updates))
    for _ in range(_ROUNDS):
        if not lost:
            break
        present = plan(_present(client, target, lost, renewal.tally), target.settings, asked.max_chars)
        lost = renewal.settle(send(renewal.updates(present, again=True)))
    renewal.tally.counts["conflicts"] = len(lost)
    return _Done(before["scope"], before["everything"], before["current"], renewal.tally, renewal.states)


def _beside(client: View, target: Target, asked: _Asked, send: Send) -> _Done:
    """Write the fingerprints into the index beside. Raises `SettingsError` for ``since``: versions tell what is new."""
    if asked.since is not None:
        raise SettingsError(
            f"The keys of {target.name} are beside it, where sequence numbers tell which documents changed: leave out "
            f"--since, and the field that goes with it."
        )
    scope = queries.matching(asked.query)
    before = counts(client, target.path, scope=scope, everything={"match_all": {}})
    run = Beside(
        client, target, rewrite=asked.all, check=asked.check, max_chars=asked.max_chars, progress=asked.progress
    )
    run.run(scope, before["scope"], send)
    return _Done(before["scope"], before["everything"], run.current, run.tally, run.states)


def _selection(
    target: Target, query: Mapping[str, Any] | None, check: bool, since: tuple[str, str] | None, all: bool
) -> dict[str, Any]:
    """Which documents have to be read at all."""
    stale = queries.stale(target.fields, target.scheme_id, query)
    if since is not None:
        recent = queries.all_of(query, queries.since(*since))
        return {"bool": {"should": [stale, recent], "minimum_should_match": 1}}
    return queries.matching(query) if check or all else stale


def _present(client: Client, target: Target, lost: Iterable[Reference], tally: Tally) -> Iterator[list[Hit]]:
    """The documents that changed under our hands, as they are now."""
    for chunk in chunked(lost, 100):
        found = list(fetch(client, chunk, source_of(target.settings)))
        tally.counts["deleted"] += found.count(None)
        yield [hit for hit in found if hit is not None]


class _Renewal:
    """Decides what is written of the documents that were read, and counts what becomes of all of them."""

    def __init__(self, settings: Settings, *, rewrite: bool) -> None:
        self.settings = settings
        self.rewrite = rewrite
        self.at = documents.timestamp()
        self.tally = Tally()
        self.states: Counter[str] = Counter()

    def updates(self, plans: Iterable[Plan], *, again: bool = False) -> Iterator[Action]:
        """The updates that are needed. ``again``: of documents that were read and counted before.

        Such a document can be current already: by a write of ours whose answer was lost, or by another run.
        """
        for one in plans:
            self.tally.counts["read"] += not again
            current = is_current(one, self.settings)
            if current and (again or not self.rewrite):
                self.tally.counts["unchanged"] += 1
            else:
                yield update(one, self.settings, self.at, current=current)

    def settle(self, outcomes: Iterable[Outcome]) -> list[Reference]:
        """Count outcomes; returns the documents that were changed by somebody before our write."""
        lost: list[Reference] = []
        for outcome in outcomes:
            action = outcome.action
            if outcome.conflict:
                lost.append((action.index, action.id, action.routing))
                continue
            self.tally.add(outcome)
            if outcome.done:
                fields = action.body["doc"][self.settings.prefix]
                self.states[fields["state"]] += 1
                self.tally.counts["numeric"] += fields["numeric"] is True
        return lost
