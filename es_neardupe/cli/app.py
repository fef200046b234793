"""The commands put together, and how their errors end the program."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Annotated, Any

import typer
import typer.core
import typer.main

from es_neardupe.cli.command import Command, ConnectedCommand
from es_neardupe.cli.output import ExitCode, fail, printable, say
from es_neardupe.cli.run_log import end
from es_neardupe.errors import NeardupeError, SettingsError

__all__ = ["app", "main"]

_Wrong: Any = typer.BadParameter.__base__
"""What is raised for wrong usage, by whichever library typer brings for it."""


_PANELS = {
    "Prepare": ("init", "load", "enrich", "migrate", "clean", "demo", "node"),
    "Find": ("similar", "contained", "search", "pairs", "moved", "compare", "duplicates"),
    "Group": ("group", "groups", "watch"),
    "Inspect": ("stats", "doctor", "bands", "audit", "distribution", "what-if", "version", "help"),
}
_WITHOUT_CONNECTION = {"demo", "bands", "help"}


class _Loaded(Mapping[str, Any]):
    """The commands by their names; each is imported when it is asked for."""

    def __init__(self) -> None:
        self._panels = {name: panel for panel, names in _PANELS.items() for name in names}
        self._loaded: dict[str, Any] = {}

    def __getitem__(self, name: str) -> Any:
        if name not in self._loaded:
            self._loaded[name] = _load(name, self._panels[name])
        return self._loaded[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._panels)

    def __len__(self) -> int:
        return len(self._panels)


def _load(name: str, panel: str) -> Any:
    module = import_module(f"es_neardupe.cli.commands.{name.replace('-', '_')}")
    found = typer.Typer(rich_markup_mode="rich", add_completion=False)
    if name == "node":
        found = module.app
    else:
        kind = Command if name in _WITHOUT_CONNECTION else ConnectedCommand
        found.command(name, cls=kind)(getattr(module, name.replace("-", "_")))
    command: Any = typer.main.get_command(found)
    command.name, command.rich_help_panel = name, panel
    return command


class _Commands(typer.core.TyperGroup):
    """The commands, of which a message about wrong usage repeats no word that could steer a terminal."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = _Loaded()

    def make_context(self, *args: Any, **options: Any) -> Any:
        with _harmless():
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        with _harmless():
            return super().invoke(ctx)

    def get_params(self, ctx: Any) -> list[Any]:
        """Flags that are not given are False: to convert None, typer would import pydantic."""
        found = super().get_params(ctx)
        for one in found:
            if getattr(one, "is_flag", False) and one.default is None:
                one.default = False
        return found


@contextmanager
def _harmless() -> Iterator[None]:
    try:
        yield
    except _Wrong as wrong:
        wrong.message = printable(wrong.message)
        raise


app = typer.Typer(
    cls=_Commands,
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    help=(
        "Near-duplicates inside the Elasticsearch or OpenSearch index you already run.\n\n"
        "First time: es-neardupe demo. On your index: init, enrich, group, then groups, similar, pairs.\n\n"
        "Exit codes: 0 done, 1 error, 2 wrong usage, 130 interrupted."
    ),
)


def _version(wanted: bool) -> None:
    if wanted:
        from importlib.metadata import version as version_of

        typer.echo(f"es-neardupe {version_of('es-neardupe')}")
        raise typer.Exit


@app.callback()
def options(
    shown: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options before the command."""


def main() -> None:
    """Run the command line. Known errors become one line and exit code 1 or 2, an interrupt 130."""
    gc.freeze()  # what was imported stays, and thousands of documents are alive at a time: look at them less often
    gc.set_threshold(50_000)
    try:
        sys.exit(_ended(*_run()))
    except NeardupeError as error:  # of the summary
        fail(error)
        sys.exit(ExitCode.FAILED)


def _ended(code: int, error: BaseException | None) -> int:
    end(code, error)
    return code


def _run() -> tuple[int, BaseException | None]:
    """Run the command; its exit code, and the error that ended it."""
    try:
        app()
    except NeardupeError as error:
        fail(error)
        return ExitCode.USAGE if isinstance(error, SettingsError) else ExitCode.FAILED, error
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):  # typer and rich make an exit code of it
            return _closed(), None
        code = stop.code if isinstance(stop.code, int) else ExitCode.FAILED if stop.code else ExitCode.DONE
        if code == ExitCode.INTERRUPTED:  # typer has made this of the KeyboardInterrupt
            say("Interrupted. What was written stays; run the same command again for the rest.")
        return _flushed(code), None
    except BrokenPipeError:
        return _closed(), None
    except BaseException as error:  # a bug of ours: its traceback follows
        end(ExitCode.FAILED, error)
        raise
    return _flushed(ExitCode.DONE), None


def _flushed(code: int) -> int:
    """The exit code, once the reader of our output has all of it."""
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        return _closed()
    return code


def _closed() -> int:
    """The exit code where the reader of our output has gone. Python would complain again while closing stdout."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    return ExitCode.DONE
