"""Keep an index that grows enriched and grouped: rounds of ``enrich`` and ``group`` until it is stopped."""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from threading import Event
from typing import Any

from es_neardupe.clients import Client
from es_neardupe.errors import LeaseHeld, SettingsError
from es_neardupe.pipeline.rounds import Lag, Round, Work, one_round
from es_neardupe.progress import Progress, silent
from es_neardupe.settings import DEFAULT_MAX_CHARS, DEFAULT_PREFIX

__all__ = ["WatchReport", "watch"]

_LONGEST_EVERY = 86_400.0

_LONGEST_WAIT = 600.0
"""Seconds between two rounds while the server fails, if ``every`` is not longer."""


@dataclass(frozen=True)
class WatchReport:
    """What there was between start and stop."""

    index: str
    rounds: int
    failed: int
    """Rounds that an error ended."""
    seconds: float = field(compare=False)


class _Stopped(Exception):
    """The watch was stopped in the middle of a round."""


def watch(
    client: Client,
    index: str,
    *,
    prefix: str = DEFAULT_PREFIX,
    every: float = 30.0,
    once: bool = False,
    since: tuple[str, str] | None = None,
    check_every: int = 0,
    workers: int = 2,
    batch: int = 500,
    max_chars: int = DEFAULT_MAX_CHARS,
    stop: Event | None = None,
    lag: Lag | None = None,
    on_round: Callable[[Round], None] = lambda done: None,
    progress: Progress = silent,
    **grouping: Any,
) -> WatchReport:
    """Enrich and group an index again and again, ``every`` so many seconds after a round, until ``stop`` is set.

    ``since`` is passed on to `enrich`, and every ``check_every``-th round (0: none) is one with ``check`` for both.
    ``grouping`` takes the options of `group`. ``on_round`` is called after each round. A stop ends a round between two
    documents; such a round is not reported.

    What may pass (no connection, an overloaded server, an incomplete answer, another run that writes) ends the round
    only: the next one comes later after each failure, up to ten minutes, and does what is left. With ``once``, and for
    all other errors, it is raised.
    """
    if not 0 < every <= _LONGEST_EVERY or check_every < 0:
        raise SettingsError("The time between rounds must be more than 0 and at most a day, --check-every 0 or more.")
    started = time.monotonic()
    stop, lag = stop or Event(), lag or Lag()
    shared: dict[str, Any] = {"prefix": prefix, "workers": workers, "batch": batch}
    shared["progress"] = partial(_told_unless_stopped, stop, progress)
    number = failures = failed = 0
    while not stop.is_set():
        check = check_every > 0 and (number + 1) % check_every == 0
        renewing = {"check": check, "since": None if check else since, "max_chars": max_chars}
        try:
            done = one_round(
                Work(client, index, lag, shared | renewing, shared | {"check": check} | grouping),
                number + 1,
                strict=once,
            )
        except _Stopped:
            break
        number += 1
        failed += done.error is not None
        failures = failures + 1 if done.error not in (None, LeaseHeld.__name__) else 0
        on_round(done)
        if once:
            break
        stop.wait(_pause(every, failures))
    return WatchReport(index, number, failed, time.monotonic() - started)


def _pause(every: float, failures: int) -> float:
    """Seconds till the next round: after failures twice as long each time, and random, so that watchers spread."""
    if not failures:
        return every
    longest = max(every, _LONGEST_WAIT)
    return min(every * 2.0 ** min(failures, 32), longest) * random.uniform(0.5, 1.0)  # noqa: S311 - no secret


def _told_unless_stopped(stop: Event, progress: Progress, stage: str, done: int, total: int | None) -> None:
    """A progress that ends the work as soon as a stop is wanted: what was written stays valid."""
    if stop.is_set():
        raise _Stopped
    progress(stage, done, total)
