"""Commands that prepare documents: load and enrich."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated

import typer

from es_neardupe.cli.exits import ExitCode
from es_neardupe.cli.options import (
    AsJson,
    Batch,
    DryRun,
    IndexName,
    MaxChars,
    Prefix,
    Query,
    ShowRequests,
    Tune,
    Workers,
    connected,
    parse_query,
    resumable,
)
from es_neardupe.cli.output import print_json, print_table, progress_bars, say, warn
from es_neardupe.cli.runs import result
from es_neardupe.cli.writing import show_first, writing
from es_neardupe.clients import Client
from es_neardupe.errors import SettingsError
from es_neardupe.inputs import Problem
from es_neardupe.pipeline import enrich as enrich_
from es_neardupe.pipeline import load as load_
from es_neardupe.settings import DEFAULT_MAX_CHARS, DEFAULT_PREFIX

__all__ = ["fail_on", "parse_since", "register", "say_next", "tell_of_prepared", "tell_of_tuning"]

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
            client,
            index,
            files,
            id_field=id_field,
            text_field=text_field,
            routing_field=routing_field,
            replace=replace,
            strict=strict,
            workers=workers,
            batch=batch,
            max_chars=max_chars,
            prefix=prefix,
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
        _say_speed(report.states, report.read, report.seconds)
        tell_of_tuning(report.tuned)
        say_next(f"es-neardupe group {index}", dry_run)
    fail_on(report.refused, report.refusals)
    if report.bad and report.bad == report.read:
        warn("None of the lines is a document that can be indexed.")
        raise typer.Exit(ExitCode.FAILED)


def enrich(
    client: Client,
    index: IndexName,
    *,
    check: Annotated[bool, typer.Option("--check", help="Also renew documents whose text has changed.")] = False,
    since: Annotated[
        str | None,
        typer.Option(metavar="FIELD=DATE", help="As --check, but only for documents of that date or later."),
    ] = None,
    all: Annotated[bool, typer.Option("--all", help="Write every document anew.")] = False,
    query: Query = None,
    workers: Workers = 2,
    batch: Batch = 500,
    max_chars: MaxChars = DEFAULT_MAX_CHARS,
    prefix: Prefix = DEFAULT_PREFIX,
    tune: Tune = False,
    dry_run: DryRun = False,
    show_requests: ShowRequests = 0,
    as_json: AsJson = False,
) -> None:
    """Give every document its keys, by partial updates. Run it again at any time, also after a kill.

    Reads only documents without keys of the index's scheme. An application that changes only the text leaves our
    fields standing: --check reads the others too and renews those whose text no longer fits.

    Examples:

      es-neardupe enrich news

      es-neardupe enrich news --since updated=now-1d
    """
    with resumable(), progress_bars() as progress:
        report = enrich_(
            client,
            index,
            check=check,
            since=parse_since(since),
            all=all,
            query=parse_query(query),
            workers=workers,
            batch=batch,
            max_chars=max_chars,
            prefix=prefix,
            tune=tune,
            dry_run=dry_run,
            show_requests=show_requests,
            progress=progress,
        )
    result(report)
    tell_of_prepared(index, report.prepared, dry_run=dry_run)
    if as_json:
        print_json(report)
    else:
        done = "would be written" if dry_run else "written"
        print_table(
            [f"{index}, scheme {report.scheme}", "documents"],
            [
                *([("out of scope", report.excluded)] if report.excluded else []),
                *([("  of other relations, left alone", report.left_alone)] if report.left_alone else []),
                ("in scope", report.documents),
                ("  had keys already", report.current),
                ("read", report.read),
                (f"  {done}", report.written),
                ("  unchanged", report.unchanged),
                ("  deleted meanwhile", report.deleted),
                ("  changed again and again", report.conflicts),
                ("  refused by the server", report.refused),
                *([("of documents that are gone, removed", report.removed)] if report.removed else []),
                *([("group ids written into documents", report.mirrored.written)] if report.mirrored.written else []),
            ],
        )
        show_first(report.requests)
        _say_speed(report.states, report.read, report.seconds)
        tell_of_tuning(report.tuned)
        say_next(f"es-neardupe group {index}", dry_run)
    if report.mirrored.left:
        warn(f"{report.mirrored.left:,} documents changed before their group id was written: run the command again.")
    if report.conflicts:
        warn(f"{report.conflicts:,} documents kept changing: run the same command again for them.")
    fail_on(report.refused, report.refusals)


def tell_of_prepared(index: str, prepared: Sequence[str], *, dry_run: bool = False) -> None:
    """Say which indices a rollover made, where some did not have our fields."""
    if prepared:
        done = "would be" if dry_run else "were"
        say(f"New behind {index} since a rollover, and {done} prepared like the others: {', '.join(prepared)}.")


def parse_since(text: str | None) -> tuple[str, str] | None:
    """Field and date of ``--since``. Raises `SettingsError`."""
    if text is None:
        return None
    name, separator, date = text.partition("=")
    if not (name and separator and date):
        raise SettingsError(f"--since takes FIELD=DATE, such as updated=2024-05-01, not {text!r}.")
    return name, date


def _say_speed(states: Mapping[str, int], read: int, seconds: float) -> None:
    counted = ", ".join(f"{number:,} {state}" for state, number in states.items()) or "nothing written"
    rate = f", {read / seconds:,.0f} documents a second" if read and seconds else ""
    say(f"{counted}; {seconds:.1f} s{rate}")


def tell_of_tuning(tuned: Mapping[str, Mapping[str, str | None]] | None) -> None:
    """Say what was lowered for the run, and that it is back."""
    for index, before in (tuned or {}).items():
        values = ", ".join(f"{name.removeprefix('index.')} {value or 'default'}" for name, value in before.items())
        say(f"Index {index} has again: {values or 'what it had; there was nothing to lower'}.")
        if "index.number_of_replicas" in before:
            say("Its replicas are being built now; till then the cluster is yellow.")


def say_next(command: str, dry_run: bool) -> None:
    """What to do with the result; a dry run has none."""
    say("Nothing was written: this was a dry run." if dry_run else f"Next: {command}")


def fail_on(refused: int, refusals: tuple[str, ...], what: str = "documents") -> None:
    """Say what the server refused; then the command has failed."""
    for reason in refusals:
        warn(f"The server refused: {reason}")
    if refused:
        warn(f"{refused:,} {what} were refused by the server.")
        raise typer.Exit(ExitCode.FAILED)


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    for command in (load, enrich):
        app.command()(connected(writing(command)))
