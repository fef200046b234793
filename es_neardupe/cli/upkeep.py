"""Commands that look after an index: doctor, stats, clean."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from es_neardupe.cli.exits import ExitCode
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
)
from es_neardupe.cli.output import print_json, print_table, printable, progress_bars, say, show, warn
from es_neardupe.cli.runs import result
from es_neardupe.cli.writing import show_first, writing
from es_neardupe.clients import Client
from es_neardupe.pipeline import clean as clean_
from es_neardupe.pipeline import doctor as doctor_
from es_neardupe.pipeline import stats as stats_
from es_neardupe.settings import DEFAULT_PREFIX

__all__ = ["register"]


def doctor(client: Client, index: IndexName, *, prefix: Prefix = DEFAULT_PREFIX, as_json: AsJson = False) -> None:
    """Check server, privileges, mapping, scheme, blocks, limits and documents; each with its way out.

    Exit code 1 if any check fails.

    Example:

      es-neardupe doctor news
    """
    checks = doctor_(client, index, prefix=prefix)
    result({"checks": checks})
    if as_json:
        print_json({"checks": checks})
    else:
        print_table(["check", "result", ""], [(one.name, one.level, one.message) for one in checks])
    if any(one.level == "error" for one in checks):
        raise typer.Exit(ExitCode.FAILED)


def stats(
    client: Client,
    index: IndexName,
    *,
    quick: Annotated[bool, typer.Option("--quick", help="Leave out buckets and bytes, which read much.")] = False,
    prefix: Prefix = DEFAULT_PREFIX,
    as_json: AsJson = False,
) -> None:
    """Say what is in an index: documents by state, schemes, groups and their sizes, buckets, bytes.

    Example:

      es-neardupe stats news --quick
    """
    with progress_bars() as progress:
        report = stats_(client, index, quick=quick, prefix=prefix, progress=progress)
    result(report)
    if as_json:
        print_json(report)
        return
    rows = [(f"  {state}", number) for state, number in report.states.items() if number or state == "signed"]
    if report.numeric:
        rows.append(("  (of signed and short: numbers only)", report.numeric))
    if report.unknown:
        rows.append(("  of no known state", report.unknown))
    others = [("  of other schemes", report.other_schemes), ("  unprocessed", report.unprocessed)]
    left_alone = [("besides: of other relations, left alone", report.left_alone)] if report.left_alone else []
    waiting = [("waiting for group", report.ungrouped)]
    grouped = [("groups of two or more", report.groups), ("documents in them", report.grouped)]
    name = f"{index}, scheme {report.scheme}" + (f" ({report.agree} bands must agree)" if report.agree > 1 else "")
    print_table([name, "documents"], [("documents", report.documents), *rows, *others, *left_alone])
    if report.sidecars:
        say(f"Keys are kept beside, in {', '.join(report.sidecars)}.")
    print_table(["groups", ""], [*waiting, *grouped, ("largest", report.largest)])
    if report.sizes:
        print_table(["documents in a group", "groups"], list(report.sizes.items())[:10])
    if report.buckets:
        print_table(["most shared keys", "documents"], [(one.key, one.documents) for one in report.buckets])
    if report.bytes_per_document:
        sizes = [(name, f"{size:.0f}") for name, size in report.bytes_per_document.items()]
        print_table(["field", "bytes on disk per document, without _source"], sizes)
    elif not quick:
        say("This server does not tell the bytes of single fields.")


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
    options: dict[str, Any] = {"prefix": prefix, "workers": workers, "batch": batch}
    if not yes and not dry_run:
        found = clean_(client, index, dry_run=True, **options)
        what = f"Remove {prefix!r} from {found.documents:,} documents of {index}?"
        if found.removed and not found.documents:
            what = f"Delete {', '.join(found.removed)}?"
        typer.confirm(printable(what), abort=True, err=True)
    with resumable(), progress_bars() as progress:
        report = clean_(client, index, dry_run=dry_run, show_requests=show_requests, progress=progress, **options)
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
    """Add the commands of this module."""
    for command in (doctor, stats, writing(clean)):
        app.command()(connected(command))
