"""Progress callbacks of long operations. The command line draws bars; programs can pass any such function."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

T = TypeVar("T")


class Progress(Protocol):
    """Called with the name of a stage, the number of items done, and their total (None: unknown)."""

    def __call__(self, stage: str, done: int, total: int | None, /) -> None: ...


def silent(stage: str, done: int, total: int | None) -> None:
    """Ignore all progress."""


def tracked(items: Iterable[T], progress: Progress, stage: str, total: int | None, step: int = 100) -> Iterator[T]:
    """Yield the items, and report progress at every ``step``-th item and at the end."""
    done = 0
    progress(stage, 0, total)
    for item in items:
        yield item
        done += 1
        if done % step == 0:
            progress(stage, done, total)
    progress(stage, done, total if total is not None else done)
