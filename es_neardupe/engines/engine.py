"""Engine: the interface of what runs the tasks of a command on workers.

A task is a function of a module that gets two arguments: one that all tasks of a stage have in common, and its part of
the work. Function, arguments and result are pickled. A task may run more than once, if its worker is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any, Protocol, TypeAlias, TypeVar

S = TypeVar("S")
P = TypeVar("P")
R = TypeVar("R")

Kept: TypeAlias = Any
"""The result of a task, which stays on the workers."""


class Engine(Protocol):
    """Runs tasks on workers.

    A `NeardupeError` of a task ends all others, and is raised here. A task whose worker is lost runs again elsewhere.
    Raises `EngineError` if the workers cannot be used, or are lost.
    """

    @property
    def workers(self) -> int:
        """The number of tasks that run at a time."""

    def run(self, task: Callable[[S, P], R], shared: S, parts: Iterable[P]) -> Iterator[tuple[P, R]]:
        """Each part with the result of ``task(shared, part)``, in any order. A part may be a tuple or list with results
        that were kept. Parts are requested while tasks run, so that few of them are in memory."""

    def keep(self, task: Callable[[S, P], Any], shared: S, parts: Sequence[P]) -> list[Kept]:
        """Start tasks whose results stay on the workers, in the order of the parts."""
