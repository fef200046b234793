"""The parts of `watch` without a server: durations, pauses after failures, the lag, metrics."""

from __future__ import annotations

import importlib.util
import re
import socket
import time
from dataclasses import replace

import pytest

from es_neardupe.cli.commands.watch import metrics, serving
from es_neardupe.commands.watch import parse_duration
from es_neardupe.commands.watch.rounds import Lag, Round, RoundScope, RoundWrites, may_succeed_later
from es_neardupe.commands.watch.rounds import pause as _pause
from es_neardupe.errors import Blocked, Conflict, LeaseHeld, NeardupeError, RequestError, SettingsError, Unreachable
from es_neardupe.folders import install_extra


@pytest.mark.parametrize(("text", "wanted"), [("1s", 1), ("30s", 30), ("5m", 300), ("1h", 3600), ("24h", 86_400)])
def test_durations(text: str, wanted: int) -> None:
    assert parse_duration(text) == wanted


@pytest.mark.parametrize(
    ("error", "later"),
    [
        (RequestError("", status=429), True),
        (RequestError("", status=503), True),
        (RequestError("", status=400), False),
        (Blocked("", status=403), False),
        (Conflict("", status=409), True),
        (Unreachable(""), True),
        (LeaseHeld(""), True),
        (SettingsError(""), False),
    ],
    ids=repr,
)
def test_errors_that_end_only_a_round(error: NeardupeError, later: bool) -> None:
    assert may_succeed_later(error) == later


@pytest.mark.parametrize("every", [0.5, 30.0, 3600.0])
def test_pauses_grow_with_failures(every: float) -> None:
    assert _pause(every, 0) == every
    longest = max(every, 600)
    for failures in (1, 2, 5, 10, 10_000):
        wanted = min(every * 2 ** min(failures, 20), longest)
        pauses = {_pause(every, failures) for _ in range(20)}
        assert all(wanted / 2 <= pause <= wanted for pause in pauses)
        assert len(pauses) > 1


def test_the_lag() -> None:
    lag = Lag()
    assert lag.seconds == 0
    lag.noticed(time.monotonic() - 50)
    lag.noticed(time.monotonic() - 10)  # documents that came later
    assert 50 <= lag.seconds < 60
    lag.settled()
    assert lag.seconds == 0


def test_metrics_that_cannot_be_served(monkeypatch: pytest.MonkeyPatch) -> None:
    registry, _ = metrics("news", Lag())
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        with (
            pytest.raises(SettingsError, match=f"at 127.0.0.1, port {port} .*another --metrics-port"),
            serving("127.0.0.1", port, registry),
        ):
            pass
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SettingsError, match=re.escape(install_extra("watch"))):
        metrics("news", Lag())


def test_metrics_of_failed_rounds() -> None:
    """A failed round counts by the type of its error, and the steps before the error count too."""
    registry, count = metrics("news", Lag())
    done = Round(1, "", "news", RoundScope(9, 4, 1, {}, {}), None, RoundWrites(4, 0, 1), 0.0, "LeaseHeld", "why", 2.0)
    for one in (done, replace(done, error="Unreachable", scope=None, writes=RoundWrites(0, 0, 1)), done):
        count(one)

    def value(name: str, **labels: str) -> float | None:
        return registry.get_sample_value(f"es_neardupe_{name}", {"index": "news", **labels})

    assert (value("errors_total", kind="LeaseHeld"), value("errors_total", kind="Unreachable")) == (2, 1)
    assert (value("documents"), value("documents_enriched_total"), value("documents_left")) == (9, 8, 1)
    assert (value("round_seconds_count"), value("round_seconds_sum")) == (3, 6)
    assert value("last_success_timestamp_seconds") == 0
