"""Reading from several sources at a time: completeness, bounded memory, and the end of all threads."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial

import pytest

from es_neardupe.errors import Unreachable
from es_neardupe.server.login.settings import Retries
from es_neardupe.server.pacing import with_retries
from es_neardupe.server.parallel import in_threads, readers

SOURCES, ITEMS = 7, 20


class World:
    """Sources of numbers, which count their items in memory, and whether they were closed."""

    def __init__(self) -> None:
        self.made = self.most = self.taken = self.closed = 0
        self.threads: set[str] = set()
        self._lock = threading.Lock()

    def source(self, number: int) -> Iterator[int]:
        try:
            for item in range(ITEMS):
                with self._lock:
                    self.made += 1
                    self.most = max(self.most, self.made - self.taken)
                    self.threads.add(threading.current_thread().name)
                yield number * ITEMS + item
        finally:
            with self._lock:
                self.closed += 1

    def sources(self) -> list[Callable[[], Iterator[int]]]:
        return [partial(self.source, number) for number in range(SOURCES)]

    def read(self, number: int) -> Iterator[int]:
        with closing(in_threads(self.sources(), number)) as items:
            for item in items:
                yield item
                with self._lock:
                    self.taken += 1


def running() -> list[str]:
    return [one.name for one in threading.enumerate() if one.name.startswith("reader")]


@pytest.mark.parametrize("number", [1, 2, 5, 20])
def test_each_item_once_within_bounds(number: int) -> None:
    world = World()
    assert sorted(world.read(number)) == list(range(SOURCES * ITEMS))
    assert world.closed == SOURCES
    assert world.most <= min(number, SOURCES) + 1
    assert (world.threads == {"MainThread"}) == (number == 1)
    assert running() == []


def test_no_sources() -> None:
    assert list(in_threads([], 4)) == []


def test_closing_early_closes_the_sources() -> None:
    world = World()
    items = world.read(3)
    next(items)
    items.close()  # type: ignore[attr-defined]  # a generator
    assert 1 <= world.closed <= 3
    assert running() == []


def test_an_error_ends_the_others_and_their_retries() -> None:
    """Without the end of retries, the other sources would try again for hours."""
    tries: list[None] = []
    both_failed = threading.Event()

    def lost() -> None:
        tries.append(None)
        if len(tries) == 2:
            both_failed.set()
        raise Unreachable("no answer")

    def keeps_trying() -> Iterator[int]:
        assert readers() == 3
        with_retries(lost, Retries(attempts=1000, wait=1e6, longest_wait=1e6, total=1e6))
        yield 1

    def fails() -> Iterator[int]:
        both_failed.wait()
        raise ZeroDivisionError
        yield 1

    with closing(in_threads([keeps_trying, keeps_trying, fails], 3)) as items, pytest.raises(ZeroDivisionError):
        next(items)
    assert len(tries) == 2
    assert running() == []
    assert readers() == 1


def test_an_error_of_the_caller_ends_all() -> None:
    world = World()

    def interrupted() -> None:
        with closing(in_threads(world.sources(), 4)) as items:
            next(items)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    assert world.closed <= 4
    assert running() == []
