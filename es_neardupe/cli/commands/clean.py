"""Commands that look after an index: doctor, stats, clean."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from es_neardupe.cli.messages import show_first
from es_neardupe.cli.options import (
    AsJson,
    Batch,
    DryRun,
    IndexName,
    Prefix,
    ShowRequests,
    Workers,
    connected,
    resumable,
    writing,
)
from es_neardupe.cli.output import ExitCode, print_json, printable, progress_bars, say, show, warn
from es_neardupe.cli.run_log import result
from es_neardupe.commands.clean import clean as clean_
from es_neardupe.index.index import Index
from es_neardupe.index.settings import DEFAULT_PREFIX
from es_neardupe.server.client import Client

__all__ = [
    "register",
]


def clean(
    client: Client,
    index: IndexName,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    prefix: Prefix = DEFAULT_PREFIX,
    workers: Workers = 2,
    batch: Batch = 500,
    dry_run: DryRun = False,
    show_requests: ShowRequests = 0,
    as_json: AsJson = False,
) -> None:
    """Remove our fields from all documents, and our settings from the mapping. Asks first.

    Example:

      es-neardupe clean news --yes
    """
    options: dict[str, Any] = {"workers": workers, "batch": batch}
    if not yes and not dry_run:
        found = clean_(Index(index, client, prefix), dry_run=True, **options)
        what = f"Remove {prefix!r} from {found.documents:,} documents of {index}?"
        if found.removed and not found.documents:
            what = f"Delete {', '.join(found.removed)}?"
        typer.confirm(printable(what), abort=True, err=True)
    with resumable(), progress_bars() as progress:
        report = clean_(
            Index(index, client, prefix), dry_run=dry_run, show_requests=show_requests, progress=progress, **options
        )
    result(report)
    if as_json:
        print_json(report)
    else:
        done = "would be cleaned" if dry_run else "cleaned"
        show(f"{report.cleaned:,} documents {done}, {report.deleted:,} were deleted meanwhile, {report.left:,} left.")
        for name in report.removed:
            show(f"Index {name} {'would be deleted' if dry_run else 'deleted'}.")
        show_first(report.requests)
        if report.documents or not any("-sidecar" in name for name in report.removed):
            say(f"The mapping of {prefix!r} stays: no server can remove a field from a mapping. It costs nothing.")
    for reason in report.refusals:
        warn(f"The server refused: {reason}")
    if report.left:
        raise typer.Exit(ExitCode.FAILED)


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command()(connected(writing(clean)))
