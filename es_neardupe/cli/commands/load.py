"""Commands that prepare documents: load and enrich."""

from __future__ import annotations

from typing import Annotated

import typer

from es_neardupe.cli.messages import fail_on, say_next, say_speed, show_first, tell_of_tuning
from es_neardupe.cli.options import (
    AsJson,
    Batch,
    DryRun,
    MaxChars,
    Prefix,
    ShowRequests,
    Tune,
    Workers,
    connected,
    resumable,
    writing,
)
from es_neardupe.cli.output import ExitCode, print_json, print_table, progress_bars, warn
from es_neardupe.cli.run_log import result
from es_neardupe.commands.load.files import Problem
from es_neardupe.commands.load.load import load as load_
from es_neardupe.index.index import Index
from es_neardupe.index.settings import DEFAULT_MAX_CHARS, DEFAULT_PREFIX
from es_neardupe.server.client import Client

__all__ = [
    "register",
]


_MOST_PROBLEMS = 20


def load(
    client: Client,
    index: Annotated[str, typer.Argument(metavar="INDEX", help="Index to load into.", show_default=False)],
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...", help="JSON lines, CSV (.gz, .xz too), a folder of texts, or -.", show_default=False
        ),
    ],
    *,
    id_field: Annotated[str | None, typer.Option(help="Field with the id; default: id or _id.")] = None,
    text_field: Annotated[str | None, typer.Option(help="Field of the files with the text.")] = None,
    routing_field: Annotated[str | None, typer.Option(help="Field with the routing; default: none.")] = None,
    replace: Annotated[bool, typer.Option("--replace", help="Overwrite documents that are there.")] = False,
    strict: Annotated[bool, typer.Option("--strict", help="Stop at the first bad line.")] = False,
    workers: Workers = 2,
    batch: Batch = 500,
    max_chars: MaxChars = DEFAULT_MAX_CHARS,
    prefix: Prefix = DEFAULT_PREFIX,
    tune: Tune = False,
    dry_run: DryRun = False,
    show_requests: ShowRequests = 0,
    as_json: AsJson = False,
) -> None:
    """Index documents from files, with their keys from the first moment.

    Files may be packed (.gz, .xz). A bad line is reported with its number and counted.

    Examples:

      es-neardupe load news articles.jsonl.xz --id-field url

      zcat ads.jsonl.gz | es-neardupe load ads - --text-field description
    """
    told = 0

    def tell(problem: Problem) -> None:
        nonlocal told
        told += 1
        if told <= _MOST_PROBLEMS or problem.breaks_off:
            warn(f"{problem.place}: {problem.why}")
        elif told == _MOST_PROBLEMS + 1:
            warn("... more bad lines are counted, but no longer shown")

    with resumable(), progress_bars() as progress:
        report = load_(
            Index(index, client, prefix),
            files,
            id_field=id_field,
            text_field=text_field,
            routing_field=routing_field,
            replace=replace,
            strict=strict,
            workers=workers,
            batch=batch,
            max_chars=max_chars,
            tune=tune,
            dry_run=dry_run,
            show_requests=show_requests,
            on_problem=tell,
            progress=progress,
        )
    result(report)
    if as_json:
        print_json(report)
    else:
        done = "would be indexed" if dry_run else "indexed"
        print_table(
            [f"{index}, scheme {report.scheme}", "documents"],
            [
                ("read", report.read),
                (f"  {done}", report.indexed),
                ("  there already, left as they are", report.existing),
                ("  bad lines", report.bad),
                ("  ids that stood before", report.duplicates),
                ("  refused by the server", report.refused),
            ],
        )
        show_first(report.requests)
        say_speed(report.states, report.read, report.seconds)
        tell_of_tuning(report.tuned)
        say_next(f"es-neardupe group {index}", dry_run)
    fail_on(report.refused, report.refusals)
    if report.bad and report.bad == report.read:
        warn("None of the lines is a document that can be indexed.")
        raise typer.Exit(ExitCode.FAILED)


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command()(connected(writing(load)))
