"""One round of ``watch``: what waits, ``enrich``, ``group``, and what came of it."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from es_neardupe import documents, queries
from es_neardupe.asking import count, refresh
from es_neardupe.clients import Client
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
from es_neardupe.pipeline.enrich import EnrichReport, enrich
from es_neardupe.pipeline.group import GroupReport, group
from es_neardupe.sidecar import opened

__all__ = ["Lag", "Round", "Work", "may_pass", "one_round"]


class Lag:
    """How long documents have been waiting; may be asked from any thread at any time.

    Counted from the beginning of the first round that found documents without keys or waiting for ``group``, to the
    end of a round that left none of those it found. A document that came in the pause between two rounds is noticed
    by the next one.
    """

    def __init__(self) -> None:
        self._since: float | None = None

    @property
    def seconds(self) -> float:
        """0 while nothing that was noticed waits."""
        since = self._since
        return 0.0 if since is None else time.monotonic() - since

    def noticed(self, at: float) -> None:
        """Documents wait, as of this moment of the monotonic clock."""
        if self._since is None:
            self._since = at

    def settled(self) -> None:
        """Nothing of what was noticed waits any more."""
        self._since = None


@dataclass(frozen=True)
class Round:
    """What one round did. Where it failed, the figures are those of what was done before."""

    round: int
    at: str
    """When it began, in UTC."""
    index: str
    documents: int | None
    """In the index when the round began; None where the round did not come so far."""
    new: int
    """Of these, without keys of the index's scheme."""
    enriched: int
    """Got keys: the new ones and, where texts were read again, those whose text had changed."""
    grouped: int
    """Got another group, principal or similarity than they had."""
    pairs: int
    """Candidate pairs, all verified."""
    skipped: int
    """Comparisons left out in large buckets."""
    left: int
    """Changed meanwhile, or refused by the server: they wait for the next round."""
    lag: float
    """Seconds, at the end of the round: see `Lag`."""
    error: str | None
    """The kind of the error that ended the round."""
    message: str | None
    seconds: float = field(compare=False)
    prepared: tuple[str, ...] = ()
    """Indices that a rollover had put behind the name since: they got our fields and the settings of the others."""
    _grouping: GroupReport | None = field(default=None, repr=False, compare=False)

    @property
    def grouping(self) -> GroupReport | None:
        """The whole report of ``group``."""
        return self._grouping


@dataclass
class Work:
    """What a round has to do, and what it has got so far."""

    client: Client
    index: str
    lag: Lag
    enriching: Mapping[str, Any]
    """Options of `enrich`."""
    grouping: Mapping[str, Any]
    """Options of `group`."""
    enriched: EnrichReport | None = None
    grouped: GroupReport | None = None

    def do(self) -> None:
        """Enrich and group. Raises what they raise."""
        started = time.monotonic()
        if _waiting(self.client, self.index, self.enriching["prefix"]):
            self.lag.noticed(started)
        self.enriched = enrich(self.client, self.index, **self.enriching)
        self.grouped = group(self.client, self.index, **self.grouping)
        if not self.left:
            self.lag.settled()

    @property
    def left(self) -> int:
        """Documents that could not be settled."""
        enriched, grouped = self.enriched, self.grouped
        left = enriched.conflicts + enriched.refused if enriched else 0
        return left + (grouped.changed + grouped.refused + grouped.stale if grouped else 0)


def one_round(work: Work, number: int, *, strict: bool) -> Round:
    """Do the work, and tell what came of it. Raises errors that will not pass; ``strict``: all of them."""
    at, started, error = documents.timestamp(), time.monotonic(), None
    try:
        work.do()
    except NeardupeError as failure:
        if strict or not may_pass(failure):
            raise
        error = failure
    enriched, grouped = work.enriched, work.grouped
    return Round(
        round=number,
        at=at,
        index=work.index,
        documents=enriched.documents if enriched else None,
        new=enriched.documents - enriched.current if enriched else 0,
        enriched=enriched.written if enriched else 0,
        grouped=grouped.written if grouped else 0,
        pairs=grouped.candidates if grouped else 0,
        skipped=grouped.skipped if grouped else 0,
        left=work.left,
        lag=work.lag.seconds,
        error=None if error is None else type(error).__name__,
        message=None if error is None else str(error),
        seconds=time.monotonic() - started,
        prepared=enriched.prepared if enriched else (),
        _grouping=grouped,
    )


def may_pass(error: NeardupeError) -> bool:
    """Whether the next round may succeed although nobody does anything about it.

    A block of status 429 is that of a full disk, which the server lifts itself; 503 that of a missing master.
    """
    if isinstance(error, RequestError) and not isinstance(error, Conflict):
        return error.status == 429 or error.status >= 500
    passing = Unreachable | IncompleteAnswer | Conflict | LeaseHeld | LeaseLost | RolledOver | BeingMigrated
    return isinstance(error, passing)


def _waiting(client: Client, index: str, prefix: str) -> int:
    """Documents without keys of the index's scheme, or with keys and waiting for ``group``."""
    client, target = opened(client, index, prefix, adopting=True)
    refresh(client, target.path)
    asked = [target.stale(), queries.ungrouped(target.fields, target.scheme_id)]
    return count(client, target.path, {"bool": {"should": asked, "minimum_should_match": 1}})
