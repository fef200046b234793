"""The commands put together, and what becomes of their errors."""

from __future__ import annotations

import gc
import os
import signal
import sys
from importlib.metadata import version
from typing import Annotated

import typer
from rich.markup import escape

from es_neardupe.cli import (
    audit,
    compare,
    contained,
    demo,
    distribution,
    duplicates,
    grouping,
    listing,
    looking,
    migrate,
    moved,
    node,
    schemes,
    searching,
    upkeep,
    watch,
    what_if,
    working,
)
from es_neardupe.cli.output import messages, printable, say
from es_neardupe.errors import NeardupeError

__all__ = ["app", "main"]

_INTERRUPTED = 130

app = typer.Typer(
    no_args_is_help=True,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    add_completion=True,
    context_settings={"help_option_names": ["-h", "--help"]},
    help=(
        "Near-duplicates inside the Elasticsearch or OpenSearch index you already run.\n\n"
        "First time: es-neardupe demo. On your index: init, enrich, group, then groups, similar, pairs.\n\n"
        "Exit codes: 0 done, 1 an error (said in one line), 2 wrong usage, 130 interrupted."
    ),
)
for module in (
    schemes,
    upkeep,
    working,
    grouping,
    watch,
    listing,
    looking,
    migrate,
    contained,
    searching,
    moved,
    duplicates,
    compare,
    distribution,
    what_if,
    audit,
    demo,
):
    module.register(app)
_AS_USED = [
    "init",
    "load",
    "enrich",
    "group",
    "watch",
    "similar",
    "contained",
    "search",
    "groups",
    "pairs",
    "moved",
    "duplicates",
    "compare",
    "distribution",
    "what_if",
    "audit",
    "stats",
    "migrate",
    "bands",
    "clean",
    "doctor",
    "demo",
]
app.registered_commands.sort(key=lambda command: _AS_USED.index(getattr(command.callback, "__name__", "")))
app.add_typer(node.app, name="node")


def _version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"es-neardupe {version('es-neardupe')}")
        raise typer.Exit


@app.callback()
def options(
    shown: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Print the version.")
    ] = False,
) -> None:
    """Options before the command."""


def main() -> None:
    """Run the command line. Known errors become one line and exit code 1, an interrupt 130."""
    gc.freeze()  # what was imported stays, and thousands of documents are alive at a time: look at them less often
    gc.set_threshold(50_000)
    try:
        app()
    except NeardupeError as error:
        messages.print(f"[bold red]error:[/] {escape(printable(error))}", soft_wrap=True)
        sys.exit(1)
    except SystemExit as stop:
        if stop.code == _INTERRUPTED:  # typer has made this of the KeyboardInterrupt
            say("Interrupted. Run the same command again: it goes on where it stopped.")
        raise
    except BrokenPipeError:
        # Whoever read our output has gone, as `head` does; Python would complain again while closing stdout.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        sys.exit(128 + signal.SIGPIPE)
