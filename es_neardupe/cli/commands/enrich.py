"""``es-neardupe enrich``: add keys to documents."""

from __future__ import annotations

from typing import Any

from es_neardupe import options
from es_neardupe.cli.arguments import AsJson, FailuresFile, IndexName
from es_neardupe.cli.connection import AGAIN, AGAIN_FROM_START, open_index, resumable
from es_neardupe.cli.derived import with_options_of
from es_neardupe.cli.left_documents import fail_on_left
from es_neardupe.cli.messages import (
    outcome_rows,
    say_next,
    say_prepared,
    say_reread,
    say_speed,
    say_tuning,
    show_first,
    warn_of_empty,
    warn_of_texts,
    warn_of_unnoticed,
)
from es_neardupe.cli.output import check_output, print_json, print_table, progress_bars
from es_neardupe.cli.run_log import result
from es_neardupe.commands.enrich import enrich as library
from es_neardupe.options import DEFAULT_PREFIX
from es_neardupe.wording import command


@with_options_of(library)
def enrich(
    index: IndexName,
    *,
    max_rate: options.MaxRate = None,
    max_load: options.MaxLoad = None,
    prefix: options.Prefix = DEFAULT_PREFIX,
    failures: FailuresFile = None,
    as_json: AsJson = False,
    **given: Any,
) -> None:
    """
    Only documents without current keys and those that were written since the last run are read. If it is unknown which
    these are, such as after an index was restored, all documents are read; --new-only skips those that have keys.

    Examples:

      es-neardupe enrich news

      es-neardupe enrich news --since updated=now-1d

      es-neardupe enrich news --in-cluster

      es-neardupe enrich news --slice "$((SLURM_ARRAY_TASK_ID + 1))/16"
    """
    dry_run = given["dry_run"]
    check_output(failures)
    with resumable(again=AGAIN_FROM_START if given["all"] else AGAIN), progress_bars() as progress:
        opened = open_index(index, prefix, max_rate=max_rate, max_load=max_load)
        report = library(opened, **given, progress=progress)
    result(report)
    scope, writes, mirrored = report.scope, report.writes, report.writes.mirrored
    say_prepared(index, report.prepared, dry_run=dry_run)
    if as_json:
        print_json(report)
    else:
        print_table(
            [f"{index}, scheme {report.scheme}", "documents"],
            [
                *([("documents out of scope", scope.excluded)] if scope.excluded else []),
                *([("  of other relations, skipped", scope.skipped)] if scope.skipped else []),
                ("documents in scope", scope.documents),
                *([("  already enriched", scope.current)] if scope.current is not None else []),
            ],
        )
        outcomes = [
            *outcome_rows(writes, dry_run=dry_run),
            ("  unchanged", writes.unchanged),
            ("  deleted meanwhile", writes.deleted),
            ("  gave up after repeated changes", writes.conflicts),
            ("  rejected by the server", writes.refused),
        ]
        print_table(
            ["this run", "documents"],
            [
                (f"documents read, slice {scope.slice}" if scope.slice else "documents read", scope.read),
                *([("  of these, written since the last run", scope.changed)] if scope.changed else []),
                *(outcomes if scope.read else []),
                *([("entries of deleted documents removed", report.removed)] if report.removed else []),
                *([("group ids written into documents", mirrored.written)] if mirrored is not None else []),
            ],
        )
        show_first(report.requests)
        say_speed(writes.states, scope.read, report.seconds)
        say_tuning(report.tuned)
        say_next(command("group", index), dry_run)
    warn_of_empty(index, writes.states)
    warn_of_texts(index, report.unprepared, report.unsuited)
    say_reread(scope.reread)
    if given["since"] is None:
        warn_of_unnoticed(index, scope.unnoticed)
    fail_on_left(failures, writes, mirrored)
