"""Failures: the first hundred in memory, the others in a file; iterated again, pickled, and counted."""

from __future__ import annotations

import copy
import gc
import pickle
import tempfile
import tracemalloc
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from es_neardupe.errors import SettingsError
from es_neardupe.json_results import plain
from es_neardupe.records import Action, Outcome
from es_neardupe.server.bulk import BulkCounts
from es_neardupe.server.failures import KEPT_CHANGING, Failure, Failures


def many(number: int) -> Iterator[Failure]:
    """Some of them with ids and reasons that are hard to store."""
    for n in range(number):
        id = (f"d{n}", f"\ud800{n}", f"a\n\x1b[2J{n}", f"ü{n}")[n % 4]
        yield Failure("refused", "news", id, "r" if n % 3 else None, f"reason {n}\r\n" * (n % 5))


@pytest.mark.parametrize("number", [0, 1, 100, 101, 5000])
def test_all_are_iterated_again_and_again(number: int) -> None:
    failures, wanted = Failures(many(number)), list(many(number))
    assert len(failures) == number
    assert bool(failures) == bool(number)
    assert list(failures) == list(failures) == wanted
    assert failures == Failures(many(number)) != Failures(many(number + 1))
    assert list(zip(failures, failures, strict=True)) == list(zip(wanted, wanted, strict=True))
    assert failures.first == wanted[:100]
    assert plain(failures) == plain(wanted[:100])


def test_they_can_be_added_while_others_are_read() -> None:
    failures = Failures(many(150))
    reading = iter(failures)
    assert next(reading) == next(many(1))
    failures.extend(many(50))
    assert list(failures) == [*many(150), *many(50)]


def test_memory_is_bounded() -> None:
    def added(number: int) -> int:
        tracemalloc.start()
        try:
            failures = Failures(many(number))
            assert sum(1 for _ in failures) == number
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    added(1000)
    assert added(10_000) < added(1000) + 200_000


@pytest.mark.parametrize("number", [3, 1000])
def test_they_are_pickled_with_their_file(number: int) -> None:
    for copied in (pickle.loads(pickle.dumps(Failures(many(number)))), copy.deepcopy(Failures(many(number)))):
        assert list(copied) == list(many(number))
        copied.extend(many(2))
        assert len(copied) == number + 2


def test_the_file_is_closed_with_the_last_reference() -> None:
    failures = Failures(many(101))
    file: Any = failures._file
    assert not file.closed
    del failures
    gc.collect()
    assert file.closed


def test_no_space_for_the_file(monkeypatch: pytest.MonkeyPatch) -> None:
    def full(**options: Any) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(tempfile, "TemporaryFile", full)
    failures = Failures(many(100))
    with pytest.raises(SettingsError, match=r"^Cannot write a temporary file .No space left on device.: set TMPDIR"):
        failures.add(next(many(1)))


def outcome(id: str, status: int) -> Outcome:
    return Outcome(Action("update", "news", id, {}, routing="r"), status, "x_exception", f"why {id}")


def test_counts_collect_them() -> None:
    """Those of tasks are added to those of the run."""
    part = BulkCounts()
    for id, status in (("a", 200), ("b", 404), ("c", 400)):
        part.add(outcome(id, status))
    part.add(outcome("d", 400), "documents")
    part.add_failed([Failure("failed", "news", "e", None, "too large")], ["too large"])
    part.add_conflicts([("news", "f", None)])
    run = BulkCounts()
    for _ in range(40):
        run.add_all(pickle.loads(pickle.dumps(part)))
    kinds = Counter(one.kind for one in run.left)
    assert kinds == {"refused": 80, "failed": 40, "conflict": 40}
    assert (run.counts["refused"], run.counts["failed"], run.counts["conflicts"]) == (80, 40, 40)
    assert run.left.first[:4] == [
        Failure("refused", "news", "c", "r", "x_exception: why c"),
        Failure("refused", "documents", "d", "r", "x_exception: why d"),
        Failure("failed", "news", "e", None, "too large"),
        Failure("conflict", "news", "f", None, KEPT_CHANGING),
    ]
    assert run.refusals == ("x_exception: why c", "x_exception: why d")
