"""Options of how a command runs, the same for all commands, and what they do in all of them.

A command takes them as ``**run: Unpack[RunOptions]``, and all of them are there by ``@with_defaults(RUN_DEFAULTS)``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, ParamSpec, TypedDict, TypeVar, cast

import typer

from es_neardupe import options
from es_neardupe.errors import SettingsError
from es_neardupe.progress import Progress, silent
from es_neardupe.wording import option

if TYPE_CHECKING:
    from es_neardupe.index.index import Index


_WORKERS = "Workers"


def _parse_engine(value: Any) -> str:
    if (why := options.wrong_engine(str(value), insecure=True)) is not None:
        raise typer.BadParameter(why)
    return str(value)


EngineName = Annotated[
    str | None,
    typer.Option(
        "--engine",
        metavar="ENGINE",
        parser=_parse_engine,
        help="Where to run: processes:4 for worker processes, tcp://HOST:PORT or tls://HOST:PORT for a Dask scheduler.",
        show_default="this process",
        rich_help_panel=_WORKERS,
    ),
]
InsecureEngine = Annotated[
    bool,
    typer.Option(
        "--insecure-engine",
        help="Allow tcp:// to other machines: without encryption, and without authentication.",
        rich_help_panel=_WORKERS,
    ),
]
Slices = Annotated[
    int | None,
    typer.Option(
        "--slices",
        min=1,
        max=64,
        help="Number of parts of the index that are read at a time.",
        show_default="one per shard, at most 4",
    ),
]
Tune = Annotated[
    bool,
    typer.Option(
        "--tune",
        help="Disable refresh and replicas of the index during the run; needs the privilege manage.",
    ),
]


class _Watched(TypedDict, total=False):
    progress: Progress


class ReadOptions(_Watched, total=False):
    """How the keys of an index are read: the number of slices, and where they are processed."""

    slices: Slices
    engine: EngineName
    insecure_engine: InsecureEngine


class WriteOptions(_Watched, total=False):
    """How documents are written: requests, settings of the index meanwhile (see `tunable`), and dry runs."""

    workers: options.Workers
    batch: options.Batch
    tune: Tune
    dry_run: options.DryRun
    show_requests: options.ShowRequests


class RunOptions(ReadOptions, WriteOptions, total=False):
    """How a command runs that reads all keys and writes documents."""


READ_DEFAULTS: ReadOptions = {"progress": silent, "slices": None, "engine": None, "insecure_engine": False}
WRITE_DEFAULTS: WriteOptions = {
    "progress": silent,
    "workers": 2,
    "batch": 500,
    "tune": False,
    "dry_run": False,
    "show_requests": 0,
}
RUN_DEFAULTS: RunOptions = {**READ_DEFAULTS, **WRITE_DEFAULTS}

P = ParamSpec("P")
R = TypeVar("R")


def check_seed(seed: int) -> None:
    """Raises `SettingsError` for a seed of a sample that is out of range."""
    if not 0 <= seed < 2**64:
        raise SettingsError(f"{option('seed')} must be 0 or more and fit into 64 bits, not {seed}.")


def on_engine(command: Callable[P, R]) -> Callable[P, R]:
    """Implement the options ``engine`` and ``insecure_engine`` of a command: it gets an index with this engine, which
    is closed when the command ends. Raises `SettingsError` and `EngineError`."""

    @wraps(command)
    def run(*given: P.args, **named: P.kwargs) -> R:
        from es_neardupe.engines.chosen import engine_of

        engine, insecure = cast("str | None", named.get("engine")), bool(named.get("insecure_engine"))
        if insecure and engine is None:
            raise SettingsError(f"{option('insecure_engine')} is for {option('engine')}: give it too.")
        with engine_of(engine, insecure=insecure) as opened:
            if opened is None:
                return command(*given, **named)
            index = _index_of(given, named).on_engine(opened)
            others = {name: one for name, one in named.items() if name != "index"}
            return cast("Callable[..., R]", command)(index, *given[1:], **others)

    return run


def tunable(command: Callable[P, R]) -> Callable[P, R]:
    """Implement the option ``tune`` of a command: the settings of its indices are lowered while it runs, and the field
    ``tuned`` of its report contains their former values. Also without the option, settings that a killed run left
    lowered are restored.

    The command takes an index, and by keyword ``tune`` and ``dry_run``; a dry run changes no settings. Raises what
    `tuned` raises.
    """

    @wraps(command)
    def run(*given: P.args, **named: P.kwargs) -> R:
        from es_neardupe.index.index import opened
        from es_neardupe.index.runs.tuning import restore_abandoned, tuned, tuned_mappings

        if named.get("dry_run"):
            return command(*given, **named)
        index = _index_of(given, named)
        progress = cast("Progress", named.get("progress", silent))
        restore_abandoned(index.server, tuned_mappings(index), progress)
        if not named.get("tune"):
            return command(*given, **named)
        opened_index = opened(index, adopting=True, writes=command.__name__ != "migrate")
        with tuned(opened_index, command.__name__, progress) as lowered:
            report: Any = command(*given, **named)
        return cast("R", replace(report, tuned=lowered))

    return run


def _index_of(given: tuple[Any, ...], named: dict[str, Any]) -> Index:
    """The index that a command was called with."""
    return cast("Index", given[0] if given else named["index"])
