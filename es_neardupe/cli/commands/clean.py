"""``es-neardupe clean``: remove the `neardupe` fields from an index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from es_neardupe import options
from es_neardupe.cli.arguments import AsJson, FailuresFile, IndexName
from es_neardupe.cli.connection import open_index, resumable
from es_neardupe.cli.derived import with_options_of
from es_neardupe.cli.left_documents import fail_on_left
from es_neardupe.cli.messages import outcome_rows, show_first
from es_neardupe.cli.output import ask, check_output, print_json, print_table, progress_bars, say, show, warn
from es_neardupe.cli.run_log import result
from es_neardupe.commands.clean import clean as library
from es_neardupe.options import DEFAULT_PREFIX
from es_neardupe.wording import counted

if TYPE_CHECKING:
    from es_neardupe.commands.clean.report import CleanReport


@with_options_of(library)
def clean(
    index: IndexName,
    *,
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask for confirmation.")] = False,
    prefix: options.Prefix = DEFAULT_PREFIX,
    max_rate: options.MaxRate = None,
    max_load: options.MaxLoad = None,
    failures: FailuresFile = None,
    as_json: AsJson = False,
    **given: Any,
) -> None:
    """Asks for confirmation, also before it deletes decisions of reviewers.

    Examples:

      es-neardupe clean news --yes

      es-neardupe clean news --decisions
    """
    dry_run = given["dry_run"]
    check_output(failures)
    opened = open_index(index, prefix, max_rate=max_rate, max_load=max_load)
    if not yes and not dry_run:
        preview = library(opened, **{**given, "dry_run": True, "show_requests": 0})
        given["decisions"] = _confirmed(preview, prefix) or given["decisions"]
    with resumable(), progress_bars() as progress:
        report = library(opened, progress=progress, **given)
    result(report)
    writes = report.writes
    if as_json:
        print_json(report)
    elif not report.prepared:
        show(f"Nothing to clean: {index} has no settings under {prefix!r} and no sidecar index.")
    else:
        done = "would be cleaned" if dry_run else "cleaned"
        print_table(
            [f"{index}, this run", "documents"],
            [
                (f"with the field {prefix}", report.documents),
                (f"  {done}", writes.written),
                *outcome_rows(writes, dry_run=dry_run)[1:],
                ("  deleted meanwhile", writes.deleted),
                ("  gave up after repeated changes", writes.conflicts),
                ("  rejected by the server", writes.refused),
            ],
        )
        for name in report.deleted_pipelines:
            show(f"Ingest pipeline {name} {'would be deleted' if dry_run else 'deleted'}.")
        for name in report.unfolded:
            show(f"Search pipeline of {name} {'would be removed' if dry_run else 'removed'}.")
        for name in report.deleted_indices:
            show(f"Index {name} {'would be deleted' if dry_run else 'deleted'}.")
        if report.kept_decisions:
            kept = counted(report.kept_decisions, "decision of reviewers is", "decisions of reviewers are")
            them = "it" if report.kept_decisions == 1 else "them"
            show(f"{kept} kept: --decisions deletes {them}.")
        show_first(report.requests)
        if report.mapped:
            fields = " and ".join(map(repr, report.mapped))
            one, it = ("mapping", "stays") if len(report.mapped) == 1 else ("mappings", "stay")
            costs, name = ("It costs", "this name") if len(report.mapped) == 1 else ("They cost", "these names")
            say(
                f"The {one} of {fields} {it}: no server can remove a field from a mapping. {costs} nothing, but the "
                f"server can reject documents with other values of {name}."
            )
    if report.template:
        warn(f"An index template adds the {prefix} fields to the next index of {index}: remove them from the template.")
    fail_on_left(failures, writes, unfinished=True)


def _confirmed(preview: CleanReport, prefix: str) -> bool:
    """Ask whether to clean, and if there are decisions of reviewers that would be kept, whether to delete them."""
    question = f"Remove {prefix!r} from {counted(preview.documents, 'document')} of {preview.index}?"
    if preview.deleted_indices and not preview.documents:
        question = f"Delete {', '.join(preview.deleted_indices)}?"
    if preview.prepared:
        ask(question, abort=True)
    if not preview.kept_decisions:
        return False
    they = "it is" if preview.kept_decisions == 1 else "they are"
    question = f"Also delete {counted(preview.kept_decisions, 'decision')} of reviewers? Otherwise {they} kept."
    return ask(question)
