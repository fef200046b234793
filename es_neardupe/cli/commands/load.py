"""``es-neardupe load``: index documents from files, with their keys."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer

from es_neardupe import options
from es_neardupe.cli.arguments import AsJson, IndexName
from es_neardupe.cli.connection import open_index, resumable
from es_neardupe.cli.messages import fail_on, say_next, say_speed, say_tuning, show_first
from es_neardupe.cli.output import ExitCode, print_json, print_table, progress_bars, warn
from es_neardupe.cli.run_log import result
from es_neardupe.options import DEFAULT_MAX_CHARS, DEFAULT_PREFIX

if TYPE_CHECKING:
    from es_neardupe.commands.input_files import Problem

__all__ = ["load"]

_MAX_PROBLEMS = 20


def load(
    index: IndexName,
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...", help="JSON lines, CSV, TSV, a folder of texts, or - for stdin.", show_default=False
        ),
    ],
    *,
    id_field: options.IdField = None,
    text_field: options.TextField = None,
    routing_field: options.RoutingField = None,
    replace: options.Replace = False,
    follow_links: options.FollowLinks = False,
    strict: options.Strict = False,
    workers: options.Workers = 2,
    batch: options.Batch = 500,
    max_rate: options.MaxRate = None,
    max_load: options.MaxLoad = None,
    max_chars: options.MaxChars = DEFAULT_MAX_CHARS,
    prefix: options.Prefix = DEFAULT_PREFIX,
    tune: options.Tune = False,
    dry_run: options.DryRun = False,
    show_requests: options.ShowRequests = 0,
    as_json: AsJson = False,
) -> None:
    """Index documents from files, with their keys.

    Files may be compressed (.gz, .xz). A line that cannot be read is reported with its number and counted.

    Examples:

      es-neardupe load news articles.jsonl.xz --id-field url

      zcat ads.jsonl.gz | es-neardupe load ads - --text-field description
    """
    from es_neardupe.commands.load import load as load_

    problems = 0

    def show_problem(problem: Problem) -> None:
        nonlocal problems
        problems += 1
        if problems <= _MAX_PROBLEMS or problem.breaks_off:
            warn(f"{problem.place}: {problem.why}")
        elif problems == _MAX_PROBLEMS + 1:
            warn("... more of them are counted, but not shown")

    with resumable(), progress_bars() as progress:
        report = load_(
            open_index(index, prefix, max_rate=max_rate, max_load=max_load),
            files,
            id_field=id_field,
            text_field=text_field,
            routing_field=routing_field,
            replace=replace,
            follow_links=follow_links,
            strict=strict,
            workers=workers,
            batch=batch,
            max_chars=max_chars,
            tune=tune,
            dry_run=dry_run,
            show_requests=show_requests,
            on_problem=show_problem,
            progress=progress,
        )
    result(report)
    scope, writes = report.scope, report.writes
    if as_json:
        print_json(report)
    else:
        done = "would be indexed" if dry_run else "indexed"
        print_table(
            [f"{index}, scheme {report.scheme}", "lines"],
            [
                ("read", scope.read),
                (f"  {done}", writes.written),
                ("  already in the index, skipped", scope.existing),
                ("  bad lines", scope.bad),
                ("  repeated ids in the input", scope.duplicates),
                ("  rejected by the server", writes.refused),
            ],
        )
        show_first(report.requests)
        say_speed(writes.states, scope.read, report.seconds)
        say_tuning(report.tuned)
        say_next(f"es-neardupe group {index}", dry_run)
    if scope.skipped_links:
        links = "link that leaves its folder was" if scope.skipped_links == 1 else "links that leave their folder were"
        warn(f"{scope.skipped_links:,} {links} skipped; --follow-links reads them.")
    fail_on(writes.refused, writes.refusals)
    if scope.bad and scope.bad == scope.read:
        warn("No line is a document that can be indexed.")
        raise typer.Exit(ExitCode.FAILED)
