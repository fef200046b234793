"""The command group, and what is said of the measure that decides."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from es_neardupe.candidates.join import DEFAULT_MAX_BUCKET
from es_neardupe.candidates.who_may_meet import Linkage
from es_neardupe.cli.messages import (
    fail_on,
    say_next,
    show_first,
    tell_of_common,
    tell_of_large_buckets,
    tell_of_tuning,
    tell_of_weights,
    wanted,
    warn_of_detection,
)
from es_neardupe.cli.options import (
    AsJson,
    Batch,
    DryRun,
    IndexName,
    MaxBucket,
    Prefix,
    ShowRequests,
    Tune,
    Workers,
    connected,
    deciding,
    resumable,
    writing,
)
from es_neardupe.cli.output import print_json, print_table, progress_bars, say, warn
from es_neardupe.cli.run_log import result
from es_neardupe.commands.group import GroupReport
from es_neardupe.commands.group import group as group_
from es_neardupe.index.index import Index
from es_neardupe.index.settings import DEFAULT_PREFIX
from es_neardupe.server.client import Client

__all__ = [
    "register",
]


@deciding()
def group(
    client: Client,
    index: IndexName,
    *,
    choice: dict[str, Any],
    linkage: Annotated[
        Linkage,
        typer.Option(help="star: each member is similar to the principal; chain: to some member; complete: to all."),
    ] = Linkage.STAR,
    principal: Annotated[
        str, typer.Option(help="Who is principal: longest, oldest, newest, FIELD:asc or FIELD:desc.")
    ] = "longest",
    within: Annotated[
        str | None, typer.Option(help="Only documents with the same value of this field meet.", show_default=False)
    ] = None,
    window: Annotated[
        str | None,
        typer.Option(help="Only documents at most so many days apart meet, as FIELD:DAYS.", show_default=False),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Compare all groups with the registry too.")] = False,
    rebuild: Annotated[bool, typer.Option("--rebuild", help="Look at all documents, not at what changed.")] = False,
    evidence: Annotated[bool, typer.Option("--evidence", help="Keep every verified pair in a hidden index.")] = False,
    max_bucket: MaxBucket = DEFAULT_MAX_BUCKET,
    workers: Workers = 2,
    batch: Batch = 500,
    prefix: Prefix = DEFAULT_PREFIX,
    tune: Tune = False,
    dry_run: DryRun = False,
    show_requests: ShowRequests = 0,
    as_json: AsJson = False,
) -> None:
    """Find the groups of near-duplicates and write group, principal and similarity into every document.

    Every pair is verified on the present texts. A run with the same settings as the one before looks only at what new
    and changed documents can have moved; a second run without changes writes nothing.

    Examples:

      es-neardupe group news

      es-neardupe group news --min 0.9 --dry-run

      es-neardupe group news --measure containment --min 0.9

      es-neardupe group news --principal oldest --within language --window published:30
    """
    with resumable(), progress_bars() as progress:
        report = group_(
            Index(index, client, prefix),
            **choice,
            linkage=linkage,
            principal=principal,
            within=within,
            window=window,
            check=check,
            rebuild=rebuild,
            evidence=evidence,
            max_bucket=max_bucket,
            workers=workers,
            batch=batch,
            tune=tune,
            dry_run=dry_run,
            show_requests=show_requests,
            progress=progress,
        )
    result(report)
    if as_json:
        print_json(report)
    else:
        _show_groups(report)
        show_first(report.requests)
    _warn_of_groups(report)
    fail_on(report.refused, report.refusals)
    if report.evidence is not None:
        fail_on(report.evidence.refused, report.evidence.refusals, "pairs of the evidence")


def _show_groups(report: GroupReport) -> None:
    done = "would be written" if report.dry_run else "written"
    print_table(
        [f"{report.index}, scheme {report.scheme}", ""],
        [
            ("documents", report.documents),
            (f"  in {report.groups:,} groups", report.grouped),
            ("  alone", report.alone),
            ("  left as they are: text changed since enrich", report.stale),
            ("  left as they are: keys unreadable", report.corrupt),
            ("looked at in this run", report.affected),
            ("exact copies", report.copies),
            ("candidate pairs, all verified", report.candidates),
            (f"  {wanted(report.measure, report.min, report.max)}", report.matches),
            ("comparisons skipped in large buckets", report.skipped),
            ("largest group", report.largest),
            ("least similarity to a principal", report.min_similarity),
            ("mean similarity to a principal", report.mean_similarity),
            ("pairs of members less similar to each other", report.pairs_below),
            ("  not compared in very large groups", report.pairs_not_compared),
            (f"documents {done}", report.written),
            ("  unchanged", report.unchanged),
            ("  changed or deleted meanwhile", report.changed + report.deleted),
            *([("group ids written into documents", report.mirrored.written)] if report.mirrored.written else []),
        ],
    )
    looked = "Looked at all documents" if report.whole else "Looked at what changed"
    say(f"{looked}: {report.reason}. {report.seconds:.1f} s")
    if report.evidence is not None:
        kept = report.evidence
        say(
            f"Evidence in {kept.index}: {kept.pairs:,} pairs, {kept.remembered:,} known before; {kept.written:,} "
            f"written, {kept.judged_anew:,} judged anew, {kept.removed:,} removed, {kept.left_out:,} left out."
        )
    tell_of_tuning(report.tuned)
    say_next(f"es-neardupe groups {report.index}", report.dry_run)


def _warn_of_groups(report: GroupReport) -> None:
    tell_of_weights(report.weights)
    tell_of_common(report.common)
    warn_of_detection(report.min, report.detection, report.detection_cases)
    name = report.index
    if report.unprocessed:
        warn(f"{report.unprocessed:,} documents have no keys and are in no group: run `es-neardupe enrich {name}`.")
    if report.mirrored.left:
        warn(f"{report.mirrored.left:,} documents changed before their group id was written: run enrich and group.")
    if report.stale:
        warn(f"{report.stale:,} documents changed since they got their keys: run `es-neardupe enrich {name} --check`.")
    if report.corrupt:
        warn(f"{report.corrupt:,} documents have unreadable keys: run `es-neardupe enrich {name} --all`.")
    tell_of_large_buckets(report.large_buckets)


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command()(connected(writing(group)))
