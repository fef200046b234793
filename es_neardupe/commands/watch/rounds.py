"""Rounds of ``watch``: what each has done, errors that end only a round, and the report."""

from __future__ import annotations

import random
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from threading import Event

from es_neardupe.commands.enrich import enrich
from es_neardupe.commands.group import group
from es_neardupe.commands.group.report import GroupReport
from es_neardupe.errors import (
    BeingMigrated,
    Conflict,
    IncompleteAnswer,
    LeaseHeld,
    LeaseLost,
    NeardupeError,
    RequestError,
    RolledOver,
    Unreachable,
)
from es_neardupe.groups.waiting import next_run
from es_neardupe.index.index import Index, opened
from es_neardupe.index.stored_fields import timestamp
from es_neardupe.progress import Progress
from es_neardupe.records import one_line
from es_neardupe.report_parts import EnrichReport
from es_neardupe.server.failures import Failures


class Lag:
    """How long documents have been waiting; can be read from any thread at any time.

    Counted from the start of the first round that found documents that are not enriched or wait for ``group``, or whose
    text has changed, to the end of a round that processed all documents it found. A document that is added or changed
    between two rounds is noticed by the next one.
    """

    def __init__(self) -> None:
        self._since: float | None = None

    @property
    def seconds(self) -> float:
        """Seconds that documents have been waiting; 0 if none is known to wait."""
        since = self._since
        return 0.0 if since is None else time.monotonic() - since

    def noticed(self, at: float) -> None:
        """Record that documents wait, since this time of the monotonic clock."""
        if self._since is None:
            self._since = at

    def settled(self) -> None:
        """Record that no document waits."""
        self._since = None


@dataclass(frozen=True)
class RoundScope:
    """The documents that a round found."""

    documents: int
    """Documents in the index when the round began."""
    new: int
    """Of these, documents without a fingerprint of the index's scheme."""
    changed: int
    """Documents with a fingerprint that were written since the last round, by any client."""
    reread: Mapping[str, str]
    """Index -> why all of its documents were read: it was unknown which of them had changed."""
    unnoticed: Mapping[str, str]
    """Index -> why texts that were changed before this round were not noticed."""


@dataclass(frozen=True)
class RoundPairs:
    """The pairs that a round processed."""

    candidates: int
    """Candidate pairs, all of them verified."""
    skipped: int
    """Pairs that share a large bucket and were not compared, each once."""


@dataclass(frozen=True)
class RoundWrites:
    """Documents by what a round wrote."""

    enriched: int
    """Documents that got keys: new ones, and those whose text had changed."""
    grouped: int
    """Documents whose group, principal or similarity changed."""
    left: int
    """Documents that changed in the meantime, or whose update was rejected; left for the next round."""
    left_documents: Failures = field(default_factory=Failures, compare=False, repr=False)
    """The documents of ``left``, each with the reason, without those whose text had changed before they were grouped.
    A document is named twice if neither ``enrich`` nor ``group`` could write it."""


@dataclass(frozen=True)
class Round:
    """Report of one round. If the round failed, it covers the steps before the error."""

    round: int
    at: str
    """Start of the round, in UTC."""
    index: str
    scope: RoundScope | None
    """None if ``enrich`` did not finish."""
    pairs: RoundPairs | None
    """None if ``group`` did not finish."""
    writes: RoundWrites
    lag: float
    """Seconds at the end of the round: see `Lag`."""
    error: str | None
    """Type of the error that ended the round."""
    message: str | None
    seconds: float = field(compare=False)
    prepared: tuple[str, ...] = ()
    """Indices that a rollover has added since the last round; they got the mapping and settings of the others."""
    _grouping: GroupReport | None = field(default=None, repr=False, compare=False)

    @property
    def grouping(self) -> GroupReport | None:
        """The complete report of ``group``."""
        return self._grouping

    def __repr__(self) -> str:
        return one_line(
            self,
            round=self.round,
            index=self.index,
            enriched=self.writes.enriched,
            grouped=self.writes.grouped,
            left=self.writes.left,
            error=self.error,
        )


@dataclass
class RoundWork:
    """The options of a round, and its reports so far."""

    index: Index
    lag: Lag
    check: bool
    """``check`` of `enrich` and `group`."""
    since: tuple[str, str] | None
    new_only: bool
    """``new_only`` of `enrich`."""
    evidence: bool
    workers: int
    batch: int
    max_chars: int
    progress: Progress
    enriched: EnrichReport | None = None
    grouped: GroupReport | None = None

    def do(self) -> None:
        """Enrich and group. Raises the errors of both."""
        started = time.monotonic()
        if _waiting(self.index):
            self.lag.noticed(started)
        self.enriched = enrich(
            self.index,
            check=self.check,
            since=None if self.check else self.since,
            new_only=self.new_only,
            workers=self.workers,
            batch=self.batch,
            max_chars=self.max_chars,
            progress=self.progress,
        )
        if self.enriched.writes.written:
            self.lag.noticed(started)
        self.grouped = group(
            self.index,
            check=self.check,
            evidence=self.evidence,
            workers=self.workers,
            batch=self.batch,
            progress=self.progress,
        )
        if not self.left:
            self.lag.settled()

    @property
    def left(self) -> int:
        """Documents that are left for the next round."""
        enriched, grouped = self.enriched, self.grouped
        left = enriched.writes.left if enriched else 0
        return left + (grouped.writes.left + grouped.scope.stale if grouped else 0)

    @property
    def left_documents(self) -> Failures:
        """Those of the writes of both."""
        reports = (one for one in (self.enriched, self.grouped) if one is not None)
        return Failures(chain.from_iterable(one.writes.left_documents for one in reports))


def one_round(work: RoundWork, number: int, *, strict: bool) -> Round:
    """Do the work and report it. Raises errors that need an action of the user; with ``strict``, all errors."""
    at, started, error = timestamp(), time.monotonic(), None
    try:
        work.do()
    except NeardupeError as failure:
        if strict or not may_succeed_later(failure):
            raise
        error = failure
    enriched, grouped = work.enriched, work.grouped
    return Round(
        round=number,
        at=at,
        index=work.index.name,
        scope=(
            RoundScope(
                documents=enriched.scope.documents,
                new=enriched.scope.documents - (enriched.scope.current or 0),
                changed=enriched.scope.changed,
                reread=enriched.scope.reread,
                unnoticed=enriched.scope.unnoticed,
            )
            if enriched
            else None
        ),
        pairs=RoundPairs(grouped.pairs.candidates, grouped.pairs.skipped) if grouped else None,
        writes=RoundWrites(
            enriched=enriched.writes.written if enriched else 0,
            grouped=grouped.writes.written if grouped else 0,
            left=work.left,
            left_documents=work.left_documents,
        ),
        lag=work.lag.seconds,
        error=None if error is None else type(error).__name__,
        message=None if error is None else str(error),
        seconds=time.monotonic() - started,
        prepared=enriched.prepared if enriched else (),
        _grouping=grouped,
    )


def may_succeed_later(error: NeardupeError) -> bool:
    """Whether the next round may succeed without any action of the user.

    A block with status 429 is that of a full disk, which the server removes itself; 503 that of a missing master.
    """
    if isinstance(error, RequestError) and not isinstance(error, Conflict):
        return error.status == 429 or error.status >= 500
    temporary = Unreachable | IncompleteAnswer | Conflict | LeaseHeld | LeaseLost | RolledOver | BeingMigrated
    return isinstance(error, temporary)


def _waiting(index: Index) -> int:
    """Number of documents without a fingerprint of the index's scheme, or waiting for ``group``, and of decisions that
    wait for it."""
    index = opened(index, adopting=True)
    index.documents.refresh()
    left = next_run(index)
    return index.documents.count(index.target.stale()) + left.waiting + left.decisions


MAX_EVERY = 86_400.0

_MAX_WAIT = 600.0
"""Maximum seconds between two rounds after failures, unless ``every`` is longer."""


@dataclass(frozen=True)
class WatchReport:
    """The rounds between start and stop."""

    index: str
    rounds: int
    failed: int
    """Rounds that ended with an error."""
    seconds: float = field(compare=False)

    def __repr__(self) -> str:
        return one_line(self, index=self.index, rounds=self.rounds, failed=self.failed)


class WatchStopped(Exception):
    """The watch was stopped during a round."""


def pause(every: float, failures: int) -> float:
    """Seconds until the next round: doubled by each failure, with a random part, so that several watchers spread."""
    if not failures:
        return every
    longest = max(every, _MAX_WAIT)
    return min(every * 2.0 ** min(failures, 32), longest) * random.uniform(0.5, 1.0)  # noqa: S311 - no secret


def unless_stopped(stop: Event, progress: Progress, stage: str, done: int, total: int | None) -> None:
    """Report progress, or end the round if ``stop`` is set. Everything written so far stays valid."""
    if stop.is_set():
        raise WatchStopped
    progress(stage, done, total)
