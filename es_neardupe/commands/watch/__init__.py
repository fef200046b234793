"""Continuous enriching and grouping of a growing index: rounds of ``enrich`` and ``group`` until stopped."""

from __future__ import annotations

import re
import time
from collections.abc import Callable
from functools import partial
from threading import Event
from typing import TYPE_CHECKING, Annotated, Any

import typer

from es_neardupe import options
from es_neardupe.errors import LeaseHeld, SettingsError
from es_neardupe.options import DEFAULT_MAX_CHARS
from es_neardupe.progress import Progress, silent
from es_neardupe.wording import option

if TYPE_CHECKING:
    from es_neardupe.commands.watch.rounds import Lag, Round, WatchReport
    from es_neardupe.index.index import Index


_DURATION = re.compile(r"([0-9]{1,5})([smh])", re.ASCII)
_UNITS = {"s": 1, "m": 60, "h": 3600}


def parse_duration(value: Any) -> float:
    """The seconds of a duration such as ``30s``, ``5m`` or ``1h``, from one second to a day. Raises `BadParameter`."""
    if not isinstance(value, str):
        return float(value)
    match = _DURATION.fullmatch(value)
    seconds = int(match[1]) * _UNITS[match[2]] if match else 0
    if not 1 <= seconds <= 86_400:
        raise typer.BadParameter(f"{value!r} is not a duration from 1s to 24h, such as 30s, 5m or 1h.")
    return seconds


_EVERY = 30.0
"""Seconds between two rounds, by default."""

Every = Annotated[
    float,
    typer.Option(
        "--every",
        parser=parse_duration,
        metavar="DURATION",
        help="Pause between rounds, such as 30s, 5m or 1h; in Python, seconds.",
        show_default="30s",
    ),
]
Once = Annotated[bool, typer.Option("--once", help="Run one round; an error ends it with exit code 1.")]
CheckEvery = Annotated[
    int,
    typer.Option(
        "--check-every", min=0, metavar="N", help="Check all texts for changes in every N-th round; 0: never."
    ),
]


def watch(
    index: Index,
    *,
    every: Every = _EVERY,
    once: Once = False,
    since: options.Since = None,
    check_every: CheckEvery = 0,
    evidence: options.Evidence = False,
    workers: options.Workers = 2,
    batch: options.Batch = 500,
    max_chars: options.MaxChars = DEFAULT_MAX_CHARS,
    stop: Event | None = None,
    lag: Lag | None = None,
    on_round: Callable[[Round], None] = lambda done: None,
    progress: Progress = silent,
) -> WatchReport:
    """Enrich and group an index in rounds, with ``every`` seconds between two rounds, until ``stop`` is set.

    Rules are those of the last run of `group`, or its defaults. ``since`` is passed to `enrich`, ``evidence`` to
    `group`, and every ``check_every``-th round (0: none) runs both with ``check``. ``on_round`` is called after each
    round. A stop ends a round between two documents; such a round is not reported.

    Temporary errors (no connection, an overloaded server, an incomplete answer, another run that writes) end only the
    round. After each failure, the pause doubles up to ten minutes, and the next round continues with what is left. All
    other errors, and with ``once`` all errors, are raised.

    >>> report = news.watch(once=True, on_round=lambda done: print(done.writes))
    RoundWrites(enriched=0, grouped=0, left=0)
    >>> report.rounds, report.failed
    (1, 0)
    """
    from es_neardupe.commands.watch.rounds import (
        MAX_EVERY,
        Lag,
        RoundWork,
        WatchReport,
        WatchStopped,
        one_round,
        pause,
        unless_stopped,
    )

    if not 0 < every <= MAX_EVERY or check_every < 0:
        raise SettingsError(
            f"The time between rounds must be more than 0 and at most a day, and {option('check_every')} 0 or more."
        )
    if once and (every != _EVERY or check_every > 1):
        name = option("check_every" if every == _EVERY else "every")
        raise SettingsError(f"{name} is for several rounds, and {option('once')} runs one: omit one of them.")
    started = time.monotonic()
    stop, lag = stop or Event(), lag or Lag()
    number = failures = failed = 0
    unknown = False
    while not stop.is_set():
        check = check_every > 0 and (number + 1) % check_every == 0
        work = RoundWork(
            index,
            lag,
            check=check,
            since=since,
            # Where changes remain unknown, only the first round reads all documents.
            new_only=unknown and not check and since is None,
            evidence=evidence,
            workers=workers,
            batch=batch,
            max_chars=max_chars,
            progress=partial(unless_stopped, stop, progress),
        )
        try:
            done = one_round(work, number + 1, strict=once)
        except WatchStopped:
            break
        unknown = done.scope is not None and bool(done.scope.reread or done.scope.unnoticed)
        number += 1
        failed += done.error is not None
        failures = failures + 1 if done.error not in (None, LeaseHeld.__name__) else 0
        on_round(done)
        if once:
            break
        stop.wait(pause(every, failures))
    return WatchReport(index.name, number, failed, time.monotonic() - started)
