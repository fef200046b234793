"""Engine: the interface of what runs the tasks of a command on workers, and the option that chooses it.

A task is a function of a module that gets two arguments: one that all tasks of a stage have in common, and its part of
the work. Function, arguments and result are pickled. A task may run more than once, if its worker is lost.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any, Protocol, TypeAlias, TypeVar

from es_neardupe.errors import SettingsError
from es_neardupe.installation import install_extra
from es_neardupe.options import wrong_engine
from es_neardupe.progress import Progress

__all__ = ["Engine", "Kept", "engine_of", "until_cancelled"]

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


def until_cancelled() -> Progress:
    """For a task that runs on a worker: progress that ends the task once it was cancelled."""
    from es_neardupe.engines.dask import ends_when_cancelled

    return ends_when_cancelled()


@contextmanager
def engine_of(engine: str | None, *, insecure: bool) -> Iterator[Engine | None]:
    """The engine that an option names; None without one. Raises `SettingsError`, and `EngineError` if there is no
    scheduler, or its workers have other versions."""
    if engine is None:
        yield None
        return
    if (why := wrong_engine(engine, insecure=insecure)) is not None:
        raise SettingsError(why)
    try:
        from es_neardupe.engines import dask
    except ImportError:
        raise SettingsError(f"`engine` needs Dask: {install_extra('cluster')}") from None
    with dask.DaskEngine(engine) as opened:
        yield opened
