"""How long work tells how far it is. The command line draws bars; programs may pass any such function."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Protocol, TypeVar

__all__ = ["Progress", "silent", "tracked"]

T = TypeVar("T")


class Progress(Protocol):
    """Called with the name of a stage, how many things are done, and how many there are (None: unknown)."""

    def __call__(self, stage: str, done: int, total: int | None) -> None: ...


def silent(stage: str, done: int, total: int | None) -> None:
    """The progress nobody looks at."""


def tracked(items: Iterable[T], progress: Progress, stage: str, total: int | None, step: int = 100) -> Iterator[T]:
    """Pass the items on, telling of every ``step``-th and of the end."""
    done = 0
    progress(stage, 0, total)
    for item in items:
        yield item
        done += 1
        if done % step == 0:
            progress(stage, done, total)
    progress(stage, done, total if total is not None else done)
