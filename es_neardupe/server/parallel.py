"""Reading from several sources at a time, each in its own thread."""

from __future__ import annotations

import time
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from contextvars import ContextVar, copy_context
from itertools import islice
from queue import SimpleQueue
from threading import Event, Lock, Semaphore
from typing import Any, Generic, TypeVar, cast

T = TypeVar("T")

_READERS: ContextVar[_Readers[Any] | None] = ContextVar("readers", default=None)


class _Stopped(Exception):
    """The reading ends, so no thread waits any longer."""


def readers() -> int:
    """How many threads read at the same time, if the calling thread is one of `in_threads`; 1 for any other."""
    of_thread = _READERS.get()
    return 1 if of_thread is None else of_thread.number


def pause(seconds: float) -> None:
    """Wait, but not beyond the end of the reading that the calling thread is a part of."""
    of_thread = _READERS.get()
    if of_thread is None:
        time.sleep(seconds)
    elif of_thread.stopping.wait(seconds):
        raise _Stopped


def in_threads(sources: Sequence[Callable[[], Iterator[T]]], number: int) -> Generator[T, None, None]:
    """The items of all sources, which are functions that return a generator.

    ``number`` of them are read at a time, each in its own thread; then the items come in any order. If it is 1, they
    are read one after the other in the calling thread. At most ``number`` + 1 items are in memory, including the one
    that the caller works on.

    An error of a source is raised here. It ends the reading of the others after their current request, without any
    further try. So does closing the generator, which callers must do (`contextlib.closing`).
    """
    number = min(number, len(sources))
    if number > 1:
        yield from _Readers(sources, number).items()
    else:
        for source in sources:
            yield from source()


class _Readers(Generic[T]):
    """The threads of one reading."""

    def __init__(self, sources: Sequence[Callable[[], Iterator[T]]], number: int) -> None:
        self.number = number
        self._sources, self._lock = iter(sources), Lock()
        self._found: SimpleQueue[list[T] | BaseException | None] = SimpleQueue()
        """An item (in a list), an error, or None for a thread that has ended."""
        self._room = Semaphore(number + 1)
        self.stopping = Event()

    def items(self) -> Iterator[T]:
        """The items of all sources."""
        running = self.number
        with ThreadPoolExecutor(self.number, "reader") as pool:
            try:
                for _ in range(self.number):
                    pool.submit(copy_context().run, self._read)
                while running:
                    found = self._found.get()
                    if found is None:
                        running -= 1
                    elif isinstance(found, BaseException):
                        raise found
                    else:
                        yield found.pop()
                        self._room.release()
            finally:
                self.stopping.set()
                self._room.release(self.number)

    def _read(self) -> None:
        """Read one source after the other."""
        _READERS.set(self)
        try:
            while (source := self._next_source()) is not None:
                with closing(cast(Generator[T, None, None], source())) as items:
                    while self._may_continue() and (found := list(islice(items, 1))):
                        self._found.put(found)
                        del found
                self._room.release()
        except BaseException as error:  # noqa: BLE001 - raised in the thread that waits
            self._found.put(error)
        finally:
            self._found.put(None)

    def _next_source(self) -> Callable[[], Iterator[T]] | None:
        with self._lock:
            return None if self.stopping.is_set() else next(self._sources, None)

    def _may_continue(self) -> bool:
        """Wait for room for another item."""
        self._room.acquire()
        return not self.stopping.is_set()
