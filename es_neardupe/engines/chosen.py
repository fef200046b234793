"""The engine that the option of a command chooses, and what its tasks need of it. Dask is loaded only here."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from es_neardupe.engines.engine import Engine
from es_neardupe.errors import SettingsError
from es_neardupe.folders import install_extra
from es_neardupe.options import wrong_engine
from es_neardupe.progress import Progress
from es_neardupe.wording import option


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
        raise SettingsError(f"{option('engine')} needs Dask: {install_extra('cluster')}") from None
    with dask.DaskEngine(engine) as opened:
        yield opened
