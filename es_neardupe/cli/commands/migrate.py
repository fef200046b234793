"""``es-neardupe migrate``: switch an index to new keys without downtime."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from es_neardupe import options
from es_neardupe.cli.arguments import AsJson, FailuresFile, IndexName
from es_neardupe.cli.connection import open_index, resumable
from es_neardupe.cli.derived import with_options_of
from es_neardupe.cli.left_documents import fail_on_left
from es_neardupe.cli.messages import say_tuning, show_first, show_unrelated
from es_neardupe.cli.output import ExitCode, ask, check_output, print_json, print_table, progress_bars, say, show, warn
from es_neardupe.cli.run_log import result
from es_neardupe.commands.migrate import migrate as library
from es_neardupe.display_text import named
from es_neardupe.options import DEFAULT_PREFIX
from es_neardupe.wording import command, counted

if TYPE_CHECKING:
    from es_neardupe.commands.migrate.report import MigrateReport
    from es_neardupe.groups.compare_groupings import GroupChanges


@with_options_of(library)
def migrate(
    index: IndexName,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    max_rate: options.MaxRate = None,
    max_load: options.MaxLoad = None,
    prefix: options.Prefix = DEFAULT_PREFIX,
    failures: FailuresFile = None,
    as_json: AsJson = False,
    **given: Any,
) -> None:
    """Asks for confirmation before the switch.

    New keys and groups are created next to the old ones and compared with them; then they replace them. To continue
    after an interruption, run it again without other options.

    Examples:

      es-neardupe migrate news --threshold 0.7 --prepare

      es-neardupe migrate news --yes

      es-neardupe migrate titles --preset short --yes

      es-neardupe migrate news --sample-mod 8

      es-neardupe migrate news --abort
    """

    def confirm(comparison: GroupChanges | None) -> bool:
        if comparison is not None and not as_json:
            _show_changes(comparison)
        return yes or ask(f"Switch {index} to the new keys?")

    check_output(failures)
    if given["abort"] and not (yes or given["dry_run"]):
        ask(f"Remove the new keys of {index}?", abort=True)
    with resumable(), progress_bars() as progress:
        report = library(
            open_index(index, prefix, max_rate=max_rate, max_load=max_load), confirm=confirm, progress=progress, **given
        )
    result(report)
    if as_json:
        print_json(report)
    else:
        show_first(report.requests)
        if report.groups is not None and (given["prepare"] or given["dry_run"]):
            _show_changes(report.groups)
        _show(report, advise=given["preset"] is None)
    for name, users in report.outdated_pipelines.items():
        warn(f"Pipeline {name} makes keys of the old settings, and is still used by: {', '.join(users)}.")
    fail_on_left(failures, report.writes, unfinished=True)
    if report.state == "prepared" and not (given["prepare"] or report.dry_run):  # the question was answered no
        raise typer.Exit(ExitCode.FAILED)


def _show_changes(changes: GroupChanges) -> None:
    """Print how the groups change, as a table and by examples."""
    rows = [(one.kind, one.before, one.after, one.documents) for one in changes.kinds if one.before or one.after]
    print_table(
        ["groups of two or more", "before", "after", "documents"],
        [*rows, ("all", changes.before, changes.after, sum(one.documents for one in changes.kinds))],
    )
    get = "gets" if changes.moved == 1 else "get"
    show(f"{changes.moved:,} of {counted(changes.documents, 'document')} {get} another group id.")
    several = len({document.index for one in changes.examples for document in one.documents}) > 1
    for one in changes.examples:
        before, after = (
            ", ".join(f"{id} ({size})" for id, size in ids.items()) or "-" for ids in (one.before, one.after)
        )
        documents = ", ".join(named(document, several) for document in one.documents)
        show(f"  {one.kind}: {before} -> {after}; documents {documents}")


def _show(report: MigrateReport, *, advise: bool) -> None:
    for change in report.changes if report.state != "aborted" else ():
        show(f"{change}.")
    show_unrelated(report.unrelated, advise=advise)
    would = "would get" if report.dry_run else "got"
    writes = report.writes
    if writes.enriched:
        show(
            f"{writes.enriched:,} of {counted(report.documents, 'document')} {would} new keys, of scheme "
            f"{report.scheme}."
        )
    if writes.switched:
        show(f"{counted(writes.switched, 'document')} switched.")
    if writes.cleaned:
        done = "would be" if report.dry_run else "were"
        show(f"Leftover fields of earlier keys {done} removed from {counted(writes.cleaned, 'document')}.")
    if report.pipeline:
        done = "would be installed" if report.dry_run else "installed"
        show(f"Ingest pipeline {report.pipeline} of the new settings {done}.")
    show(f"State: {report.state}. {report.seconds:.1f} s")
    say_tuning(report.tuned)
    if report.dry_run and report.regroups and report.state == "not begun":
        say("To compare the groups before the switch, create the new keys first: --prepare.")
    if report.dry_run:
        say("Nothing was written: this was a dry run.")
    elif report.state == "prepared":
        say(f"Next: {command('migrate', report.index)} (or --abort)")
