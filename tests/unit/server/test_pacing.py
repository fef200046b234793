"""Limits of a connection: the rate on an injected clock, the load against a server that rejects. No server."""

from __future__ import annotations

import threading
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit_tools import FakeClient

from es_neardupe.errors import SettingsError, Unreachable
from es_neardupe.records import Action
from es_neardupe.server import bulk
from es_neardupe.server.bulk import write
from es_neardupe.server.login.settings import Retries
from es_neardupe.server.pacing import Pace, with_retries

REFUSED = {"status": 429, "error": {"type": "es_rejected_execution_exception", "reason": "full"}}


@pytest.fixture(autouse=True)
def _no_waiting(monkeypatch: pytest.MonkeyPatch) -> None:
    # On a busy machine, a worker may meet the requests of the others at each of its tries.
    monkeypatch.setattr(bulk, "PART_RETRIES", Retries(wait=0, attempts=50))


class Clock:
    """Time that passes while code sleeps, and by other work."""

    def __init__(self) -> None:
        self.now = 0.0

    def __call__(self) -> float:
        return self.now

    def sleep(self, seconds: float) -> None:
        assert seconds > 0
        self.now += seconds


def actions(number: int) -> list[Action]:
    return [Action("index", "i", f"d{k}", {"n": k}) for k in range(number)]


@given(
    st.floats(0.1, 10_000),
    st.lists(st.tuples(st.integers(1, 10_000), st.floats(0, 100)), min_size=1, max_size=20),
)
def test_no_stretch_of_time_sees_more_than_the_rate(rate: float, work: list[tuple[int, float]]) -> None:
    """Between the starts of any two requests, at most rate x seconds documents were sent, and one request."""
    clock = Clock()
    pace = Pace(clock=clock, sleep=clock.sleep)
    pace.limit(max_rate=rate)
    begun = []
    for documents, elsewhere in work:
        clock.now += elsewhere
        pace.wait(documents)
        begun.append((clock.now, documents))
    for first in range(len(begun)):
        for last in range(first, len(begun)):
            sent = sum(documents for _, documents in begun[first:last])
            assert sent <= rate * (begun[last][0] - begun[first][0]) * (1 + 1e-9) + 1e-6


def test_a_run_takes_as_long_as_its_rate_says() -> None:
    client, clock = FakeClient(), Clock()
    client.pace = Pace(clock=clock, sleep=clock.sleep)
    client.pace.limit(max_rate=50)
    assert len(list(write(client, actions(1000), batch=500))) == 1000
    assert max(len(request) for request in client.bulks) == 50  # the documents of one second
    assert (1000 - 50) / 50 <= clock.now <= 1000 / 50


def test_a_rate_below_one_document_a_second() -> None:
    client, clock = FakeClient(), Clock()
    client.pace = Pace(clock=clock, sleep=clock.sleep)
    client.pace.limit(max_rate=0.5)
    assert len(list(write(client, actions(4)))) == 4
    assert clock.now == 6
    assert [len(request) for request in client.bulks] == [1] * 4


def test_without_limits_nothing_waits() -> None:
    pace = Pace(clock=Clock(), sleep=lambda seconds: pytest.fail("slept"))
    for _ in range(3):
        pace.wait(10**9)
        with pace.turn(10**9):
            assert pace.maximum(500) == 500
        pace.rejected()
        assert pace.maximum(500) == 500


@given(st.integers(1, 5000), st.lists(st.booleans(), max_size=200))
def test_the_window_halves_and_recovers(load: int, refusals: list[bool]) -> None:
    pace = Pace()
    pace.limit(max_load=load)
    for refused in refusals:
        before = pace.maximum(10**9)
        (pace.rejected if refused else pace.accepted)()
        after = pace.maximum(10**9)
        assert 1 <= after <= load
        if refused:
            assert after <= max(1, before / 2 + 1)
        else:
            assert before <= after <= before + load / 20 + 1
    for _ in range(20):
        pace.accepted()
    assert pace.maximum(10**9) == load


@pytest.mark.parametrize(
    "maximum", [{"max_rate": 0.0}, {"max_rate": -1.0}, {"max_rate": float("nan")}, {"max_load": 0}]
)
def test_limits_out_of_range(maximum: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match="`max_"):
        Pace().limit(**maximum)


class Busy(FakeClient):
    """Rejects requests beyond its capacity, whoever sends them, and records the most documents in flight."""

    def __init__(self, room: int) -> None:
        super().__init__()
        self.room = room
        self.lock = threading.Lock()
        self.under_way = self.maximum = self.refusals = 0

    def bulk(self, body: bytes, *, params: Any = None, before: Any = None) -> Any:
        number = body.count(b"\n") // 2
        with self.lock:
            self.under_way += number
            self.maximum = max(self.maximum, self.under_way)
            room = max(1, self.room - (self.under_way - number))
        taken = 0

        def answer(op: str, meta: Any, document: Any) -> Any:
            nonlocal taken
            taken += 1
            return {"status": 200} if taken <= room else REFUSED

        try:
            with self.lock:
                self.answer = answer
                self.refusals += number > room
                return super().bulk(body, params=params)
        finally:
            with self.lock:
                self.under_way -= number


@pytest.mark.parametrize("workers", [1, 4])
def test_refusals_make_less_be_sent_and_nothing_is_lost(workers: int) -> None:
    client = Busy(room=30)
    client.pace.limit(max_load=100)
    made = actions(2000)
    outcomes = list(write(client, iter(made), batch=100, workers=workers))
    assert [one.action for one in outcomes] == made
    assert all(one.done for one in outcomes)
    assert client.refusals > 0
    assert client.maximum <= 100
    if workers == 1:  # the requests that several have under way together fill the capacity in any order
        sizes = [len(request) for request in client.bulks]
        assert sum(sizes[-20:]) / 20 < 40  # it fell from 100 to about the capacity


def test_documents_under_way_are_limited() -> None:
    client = Busy(room=10**6)
    client.pace.limit(max_load=50)
    assert len(list(write(client, actions(1000), batch=40, workers=8))) == 1000
    assert client.maximum <= 50


@pytest.mark.parametrize(("attempts", "total", "tries"), [(1, 1000, 1), (3, 1000, 3), (9, 90, 2)])
def test_the_first_try_counts(attempts: int, total: float, tries: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Its time, of a minute for each try, too."""
    now, done = 0.0, 0
    monkeypatch.setattr(time, "monotonic", lambda: now)

    def lost() -> None:
        nonlocal now, done
        now, done = now + 60, done + 1
        raise Unreachable(f"try {done}")

    with pytest.raises(Unreachable, match=f"try {tries}"):
        with_retries(lost, Retries(attempts=attempts, wait=0, longest_wait=0, total=total))
    assert done == tries
