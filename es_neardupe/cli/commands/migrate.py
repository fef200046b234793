"""The command migrate: other keys without downtime."""

from __future__ import annotations

import inspect
from typing import Annotated, Any

import typer

from es_neardupe.candidates.join import DEFAULT_MAX_BUCKET
from es_neardupe.candidates.who_may_meet import Linkage
from es_neardupe.cli.messages import show_first, tell_of_tuning
from es_neardupe.cli.options import (
    AsJson,
    Batch,
    DryRun,
    IndexName,
    MaxBucket,
    MaxChars,
    Prefix,
    ShowRequests,
    Tune,
    Workers,
    connected,
    deciding,
    resumable,
    writing,
)
from es_neardupe.cli.output import ExitCode, print_json, print_table, progress_bars, say, show, warn
from es_neardupe.cli.run_log import result
from es_neardupe.commands.group import group as group_
from es_neardupe.commands.migrate.migrate import MigrateReport
from es_neardupe.commands.migrate.migrate import migrate as migrate_
from es_neardupe.groups.compare_groupings import GroupChanges
from es_neardupe.index.index import Index
from es_neardupe.index.settings import DEFAULT_MAX_CHARS, DEFAULT_PREFIX, PRESETS
from es_neardupe.server.client import Client

__all__ = ["register"]

_STAYS = "as it is"
_KEYS = "New keys"


def _key(help: str, *names: str) -> Any:
    return typer.Option(*names, help=help, show_default=_STAYS, rich_help_panel=_KEYS)


@deciding("renew")
def migrate(
    client: Client,
    index: IndexName,
    *,
    field: Annotated[
        list[str],
        typer.Option(
            "--field",
            help="Text field, instead of those of now; repeatable.",
            default_factory=list,
            show_default=_STAYS,
            rich_help_panel=_KEYS,
        ),
    ],
    preset: Annotated[
        str | None,
        typer.Option(
            help=f"Settings that belong together: {', '.join(PRESETS)}.", show_default=False, rich_help_panel=_KEYS
        ),
    ] = None,
    threshold: Annotated[float | None, _key("Resemblance from which pairs must be found, in (0, 1].")] = None,
    detection: Annotated[float | None, _key("Share of the pairs exactly there that must be found.")] = None,
    shingle: Annotated[int | None, _key("Words in a shingle.")] = None,
    permutations: Annotated[int | None, _key("Slots of the signature.")] = None,
    bands: Annotated[int | None, _key("Number of bands; with --rows.")] = None,
    rows: Annotated[int | None, _key("Rows of a band; with --bands.")] = None,
    agree: Annotated[int | None, _key("Bands that candidates have to share; with --bands and --rows.")] = None,
    sample_mod: Annotated[int | None, _key("For `contained`: sample one in so many shingles; 0: none.")] = None,
    sample_keys: Annotated[
        int | None,
        typer.Option(help="Or: sampled keys wanted in the mean document.", show_default=False, rich_help_panel=_KEYS),
    ] = None,
    prepare: Annotated[
        bool, typer.Option("--prepare", help="Stop before the switch, with both groupings there.")
    ] = False,
    abort: Annotated[bool, typer.Option("--abort", help="Give up before the switch: take the new keys away.")] = False,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    choice: dict[str, Any],
    linkage: Annotated[Linkage, typer.Option(help="As for group.")] = Linkage.STAR,
    principal: Annotated[str, typer.Option(metavar="POLICY", help="As for group.")] = "longest",
    within: Annotated[str | None, typer.Option(metavar="FIELD", help="As for group.")] = None,
    window: Annotated[str | None, typer.Option(metavar="FIELD:DAYS", help="As for group.")] = None,
    evidence: Annotated[bool, typer.Option("--evidence", help="As for group.")] = False,
    max_bucket: MaxBucket = DEFAULT_MAX_BUCKET,
    workers: Workers = 2,
    batch: Batch = 500,
    max_chars: MaxChars = DEFAULT_MAX_CHARS,
    prefix: Prefix = DEFAULT_PREFIX,
    tune: Tune = False,
    dry_run: DryRun = False,
    show_requests: ShowRequests = 0,
    as_json: AsJson = False,
) -> None:
    """Lead an index to other keys while the old ones serve. Asks before the switch.

    New keys and groups are made beside the old ones and compared with them; then they take their place. Run it again,
    without other options, to go on where it stopped.

    Examples:

      es-neardupe migrate news --threshold 0.7 --prepare

      es-neardupe migrate news --yes

      es-neardupe migrate news --sample-mod 8

      es-neardupe migrate news --abort
    """
    given = {**choice, "linkage": linkage, "principal": principal, "within": within, "window": window}
    given |= {"evidence": evidence, "max_bucket": max_bucket}

    def confirm(comparison: GroupChanges | None) -> bool:
        if comparison is not None and not as_json:
            _show_changes(comparison)
        return yes or typer.confirm(f"Switch {index} to the new keys?", err=True)

    if abort and not (yes or dry_run):
        typer.confirm(f"Take the new keys of {index} away?", abort=True, err=True)
    with resumable(), progress_bars() as progress:
        report = migrate_(
            Index(index, client, prefix),
            fields=field,
            preset=preset,
            threshold=threshold,
            detection=detection,
            shingle=shingle,
            permutations=permutations,
            bands=bands,
            rows=rows,
            agree=agree,
            sample_mod=sample_mod,
            sample_keys=sample_keys,
            prepare=prepare,
            abort=abort,
            confirm=confirm,
            workers=workers,
            batch=batch,
            max_chars=max_chars,
            tune=tune,
            dry_run=dry_run,
            show_requests=show_requests,
            progress=progress,
            **_other_than_default(given),
        )
    result(report)
    if as_json:
        print_json(report)
    else:
        show_first(report.requests)
        if report.comparison is not None and (prepare or dry_run):
            _show_changes(report.comparison)
        _show(report)
    _fail_if_not_done(report, prepare)


def _other_than_default(given: dict[str, Any]) -> dict[str, Any]:
    """The options of group that were given: a run that goes on takes those it began with."""
    defaults = {name: one.default for name, one in inspect.signature(group_).parameters.items()}
    return {name: value for name, value in given.items() if value != defaults[name] and value != []}


def _fail_if_not_done(report: MigrateReport, prepare: bool) -> None:
    """Documents are left, or the question was answered no."""
    if report.left:
        for reason in report.refusals:
            warn(f"The server refused: {reason}")
        warn(f"{report.left:,} documents kept changing or were refused: run the same command again for them.")
        raise typer.Exit(ExitCode.FAILED)
    if report.state == "prepared" and not (prepare or report.dry_run):
        raise typer.Exit(ExitCode.FAILED)


def _show_changes(changes: GroupChanges) -> None:
    """What becomes of groups, as a table and by examples."""
    rows = [(one.kind, one.before, one.after, one.documents) for one in changes.kinds if one.before or one.after]
    print_table(
        ["groups of two or more", "before", "after", "documents"],
        [*rows, ("all", changes.before, changes.after, sum(one.documents for one in changes.kinds))],
    )
    show(f"{changes.moved:,} of {changes.documents:,} documents get another group id.")
    for one in changes.examples:
        before, after = (
            ", ".join(f"{id} ({size})" for id, size in ids.items()) or "-" for ids in (one.before, one.after)
        )
        show(f"  {one.kind}: {before} -> {after}; documents {', '.join(one.documents)}")


def _show(report: MigrateReport) -> None:
    for change in report.changes if report.state != "aborted" else ():
        show(f"{change}.")
    would = "would get" if report.dry_run else "got"
    if report.enriched:
        show(f"{report.enriched:,} of {report.documents:,} documents {would} new keys, of scheme {report.scheme}.")
    if report.switched:
        show(f"{report.switched:,} documents switched.")
    if report.cleaned:
        show(f"{report.cleaned:,} documents {'would be' if report.dry_run else ''} rid of what is left over.")
    show(f"State: {report.state}. {report.seconds:.1f} s")
    tell_of_tuning(report.tuned)
    if report.dry_run and report.grouped and report.state == "not begun":
        say("The groups can be compared when the new keys are there: --prepare makes them beside the old ones.")
    if report.dry_run:
        say("Nothing was written: this was a dry run.")
    elif report.state == "prepared":
        say(f"Next: es-neardupe migrate {report.index} (or --abort)")


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command()(connected(writing(migrate)))
