"""The commands put together, and how their errors end the program."""

from __future__ import annotations

import gc
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from importlib.metadata import version as version_of
from typing import Annotated, Any

import typer
import typer.core

from es_neardupe.cli.command import Command, ConnectedCommand
from es_neardupe.cli.commands import (
    audit,
    bands,
    clean,
    compare,
    contained,
    demo,
    distribution,
    doctor,
    duplicates,
    enrich,
    group,
    groups,
    init,
    load,
    migrate,
    moved,
    node,
    pairs,
    search,
    similar,
    stats,
    version,
    watch,
    what_if,
)
from es_neardupe.cli.output import ExitCode, fail, printable, say
from es_neardupe.cli.run_log import end
from es_neardupe.errors import NeardupeError, SettingsError

__all__ = ["app", "main"]

_Wrong: Any = typer.BadParameter.__base__
"""What is raised for wrong usage, by whichever library typer brings for it."""


class _Commands(typer.core.TyperGroup):
    """The commands, of which a message about wrong usage repeats no word that could steer a terminal."""

    def make_context(self, *args: Any, **options: Any) -> Any:
        with _harmless():
            return super().make_context(*args, **options)

    def invoke(self, ctx: Any) -> Any:
        with _harmless():
            return super().invoke(ctx)

    def get_params(self, ctx: Any) -> list[Any]:
        """For completion only the flags: typer imports pydantic to convert other values."""
        found = super().get_params(ctx)
        return [one for one in found if getattr(one, "is_flag", False)] if ctx.resilient_parsing else found


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

for panel, commands in {
    "Prepare": (init.init, load.load, enrich.enrich, migrate.migrate, clean.clean),
    "Find": (
        similar.similar,
        contained.contained,
        search.search,
        pairs.pairs,
        moved.moved,
        compare.compare,
        duplicates.duplicates,
    ),
    "Group": (group.group, groups.groups, watch.watch),
    "Inspect": (
        stats.stats,
        doctor.doctor,
        audit.audit,
        distribution.distribution,
        what_if.what_if,
        version.version,
    ),
}.items():
    for command in commands:
        app.command(cls=ConnectedCommand, rich_help_panel=panel)(command)
app.command(cls=Command, rich_help_panel="Prepare")(demo.demo)
app.command(cls=Command, rich_help_panel="Inspect")(bands.bands)
app.add_typer(node.app, name="node", rich_help_panel="Prepare")


def _version(wanted: bool) -> None:
    if wanted:
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
    except SettingsError as error:
        fail(error)
        return ExitCode.USAGE, error
    except NeardupeError as error:
        fail(error)
        return ExitCode.FAILED, error
    except SystemExit as stop:
        code = stop.code if isinstance(stop.code, int) else ExitCode.FAILED if stop.code else ExitCode.DONE
        if code == ExitCode.INTERRUPTED:  # typer has made this of the KeyboardInterrupt
            say("Interrupted. Run the same command again: it continues where it stopped.")
        return code, None
    except BrokenPipeError as error:
        # Whoever read our output has gone, as `head` does; Python would complain again while closing stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return ExitCode.CLOSED, error
    except BaseException as error:  # a bug of ours: its traceback follows
        end(ExitCode.FAILED, error)
        raise
    return ExitCode.DONE, None
