"""The command line program: its commands, its errors and its exit codes."""

from __future__ import annotations

import errno
import gc
import inspect
import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib import import_module
from typing import Annotated, Any

import typer
import typer.core
import typer.main

from es_neardupe.cli.command import Command, ConnectedCommand, UsageError
from es_neardupe.cli.output import ExitCode, fail, printable, say
from es_neardupe.cli.plain_values import without_pydantic
from es_neardupe.cli.run_log import end, program_version
from es_neardupe.errors import InputError, NeardupeError, SettingsError

_PANELS = {
    "Prepare": ("init", "load", "enrich", "pipeline", "migrate", "clean", "demo", "node"),
    "Find": ("similar", "contained", "search", "pairs", "documents", "moved", "compare", "duplicates"),
    "Group": ("group", "groups", "fold", "watch", "serve", "mcp"),
    "Inspect": ("stats", "doctor", "bands", "shingles", "audit", "distribution", "what-if", "version", "help"),
}
_WITHOUT_CONNECTION = {"demo", "bands", "help"}
_OTHER_NAMES: Mapping[str, str] = {
    name: command
    for names, command in {
        "cluster dedup dedupe deduplicate": "group",
        "delete remove reset rollback undo uninstall": "clean",
        "find": "similar",
        "import index ingest": "load",
        "info status": "stats",
        "check health": "doctor",
        "diff": "compare",
        "decide decisions review server ui web": "serve",
    }.items()
    for name in names.split()
}
"""Word that people try -> the command with this meaning."""


class _LazyCommands(Mapping[str, Any]):
    """Name -> command; the module of a command is imported when the command is used."""

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
    module = _module(name)
    program = typer.Typer(rich_markup_mode="rich", add_completion=False)
    if name == "node":
        program = module.app
    else:
        kind = Command if name in _WITHOUT_CONNECTION else ConnectedCommand
        program.command(name, cls=kind)(_function(name))
    command: Any = typer.main.get_command(program)
    command.name, command.rich_help_panel = name, panel
    return command


def _summary(name: str, panel: str) -> Any:
    """A command without options, for the list of commands: typer would take most of the time to create the options."""
    text = _module(name).app.info.help if name == "node" else inspect.getdoc(_function(name))
    return Command(name, help=text, rich_help_panel=panel, add_help_option=False)


def _module(name: str) -> Any:
    return import_module(f"es_neardupe.cli.commands.{name.replace('-', '_')}")


def _function(name: str) -> Any:
    return getattr(_module(name), name.replace("-", "_"))


class _Program(typer.core.TyperGroup):
    """The program. Its usage errors contain no characters that could control a terminal."""

    def __init__(self, **settings: Any) -> None:
        super().__init__(**settings)
        self.commands: Any = _LazyCommands()

    def make_context(self, *args: Any, **options: Any) -> Any:
        with _printable_errors():
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        with _printable_errors():
            return super().invoke(ctx)

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:
        """The command that is named; for a word that other tools have, the error names the command."""
        if meant := _OTHER_NAMES.get(args[0]):
            raise UsageError(f"No such command '{args[0]}'. The command for this is {meant}.", ctx=ctx)
        return super().resolve_command(ctx, args)

    def list_commands(self, ctx: Any) -> list[str]:
        """The names of the commands, without importing them."""
        return list(self.commands)

    def get_params(self, ctx: Any) -> list[Any]:
        """The options of the program itself."""
        return without_pydantic(super().get_params(ctx))

    def format_help(self, ctx: Any, formatter: Any) -> None:
        commands = self.commands
        self.commands = {name: _summary(name, panel) for panel, names in _PANELS.items() for name in names}
        try:
            super().format_help(ctx, formatter)
        finally:
            self.commands = commands


@contextmanager
def _printable_errors() -> Iterator[None]:
    try:
        yield
    except UsageError as error:
        error.message = printable(error.message)
        raise


app = typer.Typer(
    cls=_Program,
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


def _print_version(given: bool) -> None:
    if given:
        typer.echo(f"es-neardupe {program_version()}")
        raise typer.Exit


@app.callback()
def options(
    version: Annotated[
        bool, typer.Option("--version", callback=_print_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """The options of the program itself."""


def main() -> None:
    """Run the program. A `NeardupeError` becomes one line and exit code 1 or 2, an interrupt exit code 130."""
    gc.freeze()  # imported modules stay in memory; with thousands of live documents, frequent collections are slow
    gc.set_threshold(100_000)
    os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")  # it would read the metadata of all packages
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")  # numpy would start threads, of which no command makes use
    code, error = _run()
    try:
        end(code, error)
    except NeardupeError as failure:  # the summary cannot be written
        fail(failure)
        code = ExitCode.FAILED
    if code:
        gc.collect()  # readings that were interrupted close their snapshots on the server
    gc.freeze()  # else Python looks at every object twice before it exits
    sys.exit(code)


_NOT_WRITTEN = (errno.EPIPE, errno.ENOSPC, errno.EDQUOT, errno.EFBIG)
"""Errors of a closed pipe and of a full disk."""


def _run() -> tuple[int, BaseException | None]:
    """Run the command. Returns the exit code, and the error that ended the command."""
    try:
        app()
    except NeardupeError as error:
        fail(error)
        return ExitCode.USAGE if isinstance(error, SettingsError) else ExitCode.FAILED, error
    except SystemExit as stop:
        if isinstance(stop.__context__, BrokenPipeError):  # typer and rich turn it into an exit code
            return _stop_output(stop.__context__), None
        code = stop.code if isinstance(stop.code, int) else ExitCode.FAILED if stop.code else ExitCode.DONE
        if code == ExitCode.INTERRUPTED:  # typer turns KeyboardInterrupt into it
            say("Interrupted. What was written stays; run the same command again for the rest.")
        return _flush(code), None
    except KeyboardInterrupt:  # before typer runs the command
        return ExitCode.INTERRUPTED, None
    except OSError as error:
        if error.errno not in _NOT_WRITTEN:
            end(ExitCode.FAILED, error)
            raise
        return _stop_output(error), error
    except BaseException as error:  # a bug in this program: the traceback follows
        end(ExitCode.FAILED, error)
        raise
    return _flush(ExitCode.DONE), None


def _flush(code: int) -> int:
    """Flush stdout, unless it was closed. Returns ``code``, or the exit code for output that cannot be written."""
    try:
        if not sys.stdout.buffer.closed:  # `mcp` closes it at the end of a session
            sys.stdout.flush()
    except OSError as error:
        return _stop_output(error)
    return code


def _stop_output(error: OSError) -> int:
    """Discard further output, else Python reports the error again when closing stdout. Returns the exit code: a reader
    that has closed its pipe is no error, a full disk is one."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
    if isinstance(error, BrokenPipeError):
        return ExitCode.DONE
    fail(InputError(f"The output cannot be written: {error.strerror or error}."))
    return ExitCode.FAILED
