"""Commands that prepare documents: load and enrich."""

from __future__ import annotations

from typing import Annotated

import typer

from es_neardupe.cli.messages import fail_on, say_next, say_speed, show_first, tell_of_prepared, tell_of_tuning
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
    writing,
)
from es_neardupe.cli.output import print_json, print_table, progress_bars, warn
from es_neardupe.cli.run_log import result
from es_neardupe.commands.enrich.enrich import enrich as enrich_
from es_neardupe.errors import SettingsError
from es_neardupe.index.index import Index
from es_neardupe.index.settings import DEFAULT_MAX_CHARS, DEFAULT_PREFIX
from es_neardupe.server.client import Client

__all__ = ["parse_since", "register"]


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
            Index(index, client, prefix),
            check=check,
            since=parse_since(since),
            all=all,
            query=parse_query(query),
            workers=workers,
            batch=batch,
            max_chars=max_chars,
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
        say_speed(report.states, report.read, report.seconds)
        tell_of_tuning(report.tuned)
        say_next(f"es-neardupe group {index}", dry_run)
    if report.mirrored.left:
        warn(f"{report.mirrored.left:,} documents changed before their group id was written: run the command again.")
    if report.conflicts:
        warn(f"{report.conflicts:,} documents kept changing: run the same command again for them.")
    fail_on(report.refused, report.refusals)


def parse_since(text: str | None) -> tuple[str, str] | None:
    """Field and date of ``--since``. Raises `SettingsError`."""
    if text is None:
        return None
    name, separator, date = text.partition("=")
    if not (name and separator and date):
        raise SettingsError(f"--since takes FIELD=DATE, such as updated=2024-05-01, not {text!r}.")
    return name, date


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command()(connected(writing(enrich)))
