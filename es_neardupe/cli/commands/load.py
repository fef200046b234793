"""``es-neardupe load``: index documents from files, with their keys."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from es_neardupe import options
from es_neardupe.cli.arguments import AsJson, FailuresFile, IndexName
from es_neardupe.cli.connection import open_index, resumable
from es_neardupe.cli.derived import with_options_of
from es_neardupe.cli.left_documents import fail_on_left
from es_neardupe.cli.messages import (
    say_next,
    say_pipelines,
    say_speed,
    say_tuning,
    show_first,
    warn_of_empty,
    warn_of_texts,
)
from es_neardupe.cli.output import ExitCode, as_json_text, check_output, print_json, print_table, progress_bars, warn
from es_neardupe.cli.run_log import result
from es_neardupe.commands.load import load as library
from es_neardupe.errors import InputError
from es_neardupe.options import DEFAULT_PREFIX
from es_neardupe.wording import command, counted

if TYPE_CHECKING:
    from es_neardupe.incoming.matches import ScreenCounts, ScreenReport
    from es_neardupe.readers.files import Problem


_MAX_PROBLEMS = 20


@with_options_of(library)
def load(
    index: IndexName,
    files: Annotated[
        list[str],
        typer.Argument(
            metavar="FILE...",
            help="JSON lines, CSV, TSV, Parquet, Arrow, a folder, a URL, or - for stdin.",
            show_default=False,
        ),
    ],
    *,
    report: Annotated[
        Path | None,
        typer.Option(
            "--report",
            metavar="FILE",
            help="With --on-match: write each match to this file, as JSON lines.",
            show_default=False,
        ),
    ] = None,
    max_rate: options.MaxRate = None,
    max_load: options.MaxLoad = None,
    prefix: options.Prefix = DEFAULT_PREFIX,
    failures: FailuresFile = None,
    as_json: AsJson = False,
    **given: Any,
) -> None:
    """
    Files may be compressed (.gz, .xz, .zst). A line that cannot be read is reported with its number and counted.

    Examples:

      es-neardupe load news articles.jsonl.xz --id-field url

      es-neardupe load news s3://bucket/articles/

      zcat ads.jsonl.gz | es-neardupe load ads - --text-field description

      es-neardupe load news articles.jsonl --on-match skip --min 0.9 --report duplicates.jsonl
    """

    problems, broken_off = 0, False

    def show_problem(problem: Problem) -> None:
        nonlocal problems, broken_off
        problems += 1
        broken_off = broken_off or problem.breaks_off
        if problems <= _MAX_PROBLEMS or problem.breaks_off:
            warn(f"{problem.place}: {problem.why}")
        elif problems == _MAX_PROBLEMS + 1:
            warn("... more of them are counted, but not shown")

    if report is not None and given["on_match"] is None:
        raise typer.BadParameter("--report is for --on-match: give it too.")
    check_output(failures)
    with resumable(), progress_bars() as progress, _match_file(report) as matches:
        done = library(
            open_index(index, prefix, max_rate=max_rate, max_load=max_load),
            files,
            report=matches,
            on_problem=show_problem,
            progress=progress,
            **given,
        )
    result(done)
    scope, writes = done.scope, done.writes
    if as_json:
        print_json(done)
    else:
        indexed = "would be indexed" if given["dry_run"] else "indexed"
        print_table(
            [f"{index}, scheme {done.scheme}", "lines"],
            [
                ("read", scope.read),
                (f"  {indexed}", writes.written),
                *_matches(done.screened),
                ("  already in the index, skipped", scope.existing),
                ("  bad lines", scope.bad),
                ("  repeated ids in the input", scope.duplicates),
                *([("  dropped by an ingest pipeline of the index", scope.dropped)] if scope.dropped else []),
                ("  rejected by the server", writes.refused),
                *([("  match a line that was not indexed, left", writes.failed)] if writes.failed else []),
                *([("empty, skipped", scope.empty_lines)] if scope.empty_lines else []),
            ],
        )
        show_first(done.requests)
        say_speed(writes.states, scope.read, done.seconds)
        say_tuning(done.tuned)
        if scope.read > scope.bad:
            say_pipelines(done.pipelines)
            say_next(command("enrich" if done.pipelines else "group", index), given["dry_run"])
    if scope.skipped_links:
        links = counted(scope.skipped_links, "link that leaves its folder was", "links that leave their folder were")
        warn(f"{links} skipped; --follow-links reads {'it' if scope.skipped_links == 1 else 'them'}.")
    if scope.skipped_files:
        others = counted(scope.skipped_files, "file was", "files were")
        warn(f"{others} skipped: not of a kind that load reads, in a folder of such files.")
    warn_of_empty(index, writes.states)
    warn_of_texts(index, done.unprepared, done.unsuited)
    fail_on_left(failures, writes)
    if not scope.read:
        warn(f"{', '.join(files)}: no lines, rows or files to read." if files != ["-"] else "No lines on stdin.")
    if scope.bad and scope.bad == scope.read:
        warn("No line is a document that can be indexed.")
        raise typer.Exit(ExitCode.FAILED)
    if broken_off:  # what is missing may be most of it
        raise typer.Exit(ExitCode.FAILED)


def _matches(counts: ScreenCounts | None) -> list[tuple[str, int]]:
    """The rows about documents that match others."""
    if counts is None:
        return []
    rows = [
        ("    of these in the group of a match", counts.marked),
        ("    of these with a match, in a group of their own", counts.apart + counts.passed),
        ("  match another document, skipped", counts.skipped),
    ]
    return [row for row in rows if row[1]]


@contextmanager
def _match_file(file: Path | None) -> Iterator[ScreenReport | None]:
    """A report that writes each match to the file at once: a run that is started again would not find it again."""
    from es_neardupe.folders import check_file
    from es_neardupe.incoming.matches import MatchedAction, ScreenReport

    if file is None:
        yield None
        return
    check_file(file)
    try:
        stream = file.open("w", encoding="utf-8", newline="")
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror or error}.") from error

    def note(matched: MatchedAction) -> None:
        stream.write(as_json_text(dataclasses.asdict(matched)) + "\n")

    with stream:
        yield ScreenReport(note)
