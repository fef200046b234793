"""``es-neardupe duplicates``: run a request for duplicates."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from es_neardupe import options
from es_neardupe.cli.arguments import AsJson, Output, complete_example, complete_index
from es_neardupe.cli.connection import open_index
from es_neardupe.cli.derived import with_options_of
from es_neardupe.cli.left_documents import fail_on_left
from es_neardupe.cli.output import check_output, print_json, progress_bars, say, warn, write_output
from es_neardupe.commands.duplicates import duplicates as library
from es_neardupe.options import DEFAULT_PREFIX

if TYPE_CHECKING:
    from es_neardupe.commands.duplicates.request_plan import DuplicatesPlan, RequestPlan
    from es_neardupe.commands.duplicates.results import DuplicatesReport, PairsStageReport
    from es_neardupe.server.client import Client


@with_options_of(library)
def duplicates(
    index: Annotated[
        str | None,
        typer.Argument(
            metavar="INDEX", help="Index, alias or pattern.", show_default=False, autocompletion=complete_index
        ),
    ] = None,
    request: Annotated[
        str | None,
        typer.Option(metavar="FILE", help="File with the request (JSON), or - for stdin.", show_default=False),
    ] = None,
    explain: Annotated[bool, typer.Option("--explain", help="Explain the request in words, then run it.")] = False,
    example: Annotated[
        str | None,
        typer.Option(
            metavar="NAME",
            help="Example request: run it, or print it without INDEX.",
            show_default=False,
            autocompletion=complete_example,
        ),
    ] = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON schema of requests and exit.")] = False,
    *,
    top: Annotated[int, typer.Option(min=1, help="Maximum number of rows per table.")] = 20,
    pairs_only: Annotated[bool, typer.Option("--pairs-only", help="Print each pair as a line of JSON.")] = False,
    output: Output = None,
    html: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Write an HTML page with the pairs side by side.", show_default=False),
    ] = None,
    fields: Annotated[
        list[str] | None,
        typer.Option(
            "--field",
            metavar="FIELD",
            help="With --example: field to compare. With --request: field to show in --html and --output. Repeatable.",
            show_default=False,
        ),
    ] = None,
    prefix: options.Prefix = DEFAULT_PREFIX,
    as_json: AsJson = False,
    **given: Any,
) -> None:
    """
    Writes nothing to the index without --write-groups.

    Examples:

      es-neardupe duplicates news --example identical-titles --field headline

      es-neardupe duplicates --example near-identical-titles > titles.json

      es-neardupe duplicates news --request titles.json --explain

      es-neardupe duplicates news --request titles.json --output pairs.csv --html pairs.html

      es-neardupe duplicates news --request titles.json --write-groups titles --dry-run
    """
    _check_source(index, request, example, schema=schema)
    if as_json and pairs_only:
        raise typer.BadParameter("Only one of --json and --pairs-only can be on stdout.")
    files = [file for file in (html, output) if file is not None]
    if (fields and not files and example is None) or (given["dry_run"] and given["write_groups"] is None):
        raise typer.BadParameter("--field needs --html, --output or --example, and --dry-run needs --write-groups.")
    from es_neardupe.commands.duplicates import request_json

    if schema:
        sys.stdout.write(json.dumps(request_json.schema(), indent=2) + "\n")
        return
    ready = "" if example is None else request_json.example(example, fields or ())
    if index is None:
        sys.stdout.write(ready)
        return
    from es_neardupe.cli.duplicates_output import duplicates_json, print_pairs, show_report, warn_of_losses
    from es_neardupe.commands.duplicates import request_explain
    from es_neardupe.commands.duplicates.request_plan import parse_request
    from es_neardupe.commands.duplicates.texts import chosen_stage
    from es_neardupe.index.shown_fields import title_fields
    from es_neardupe.readers.files import read_text_file

    plan = parse_request(ready if request is None else read_text_file(request))
    needed = pairs_only or bool(files) or given["write_groups"] is not None
    chosen = chosen_stage(plan, given["stage"], needed=needed)
    given["stage"] = chosen.name
    _check_files(html, output)
    for line in request_explain.explain(plan, index) if explain else ():
        say(line)
    opened = open_index(index, prefix)
    shown = title_fields(opened, (fields or ()) if example is None else ()) if files else ()
    with progress_bars() as progress:
        report = library(opened, plan, progress=progress, **given)
    if as_json:
        print_json(duplicates_json(report))
    elif pairs_only:
        print_pairs(_pairs(report, chosen))
    elif output is None:
        show_report(report, top)
    if output is not None:
        write_output(output, _pairs(report, chosen).table(opened.client, shown))
    warn_of_losses(report)
    if _across(plan) and len(report.indices) == 1:
        warn(f"The request finds only pairs across indices, but {index} is one index: name several, such as old,new.")
    if html is not None:
        explained = request_explain.explain(plan, report.index)
        _write_page(html, opened.client, report, stage=chosen, explained=explained, fields=shown)
    if report.groups is not None:
        fail_on_left(None, report.groups.writes, changed=report.groups.changed)


def _check_source(index: str | None, request: str | None, example: str | None, *, schema: bool) -> None:
    """Raises `typer.BadParameter` unless there is one request, and an index if it is to be run."""
    sources = (request is not None) + (example is not None) + schema
    if sources != 1 or (request is not None and index is None) or (schema and index is not None):
        raise typer.BadParameter(
            "Give INDEX with --request FILE or --example NAME, or without INDEX --example NAME or --schema."
        )


def _check_files(html: Path | None, output: Path | None) -> None:
    """Raises `InputError` if a file cannot be written."""
    from es_neardupe.folders import check_file

    check_output(output)
    if html is not None:
        check_file(html)


def _across(plan: RequestPlan) -> bool:
    """Whether a stage finds only pairs across indices."""
    from es_neardupe.commands.duplicates.request_plan import DuplicatesPlan

    return any(isinstance(one, DuplicatesPlan) and one.across_indices for one in plan.stages)


def _pairs(report: DuplicatesReport, stage: DuplicatesPlan) -> PairsStageReport:
    from es_neardupe.commands.duplicates.results import PairsStageReport

    result = report.stages[stage.name]
    assert isinstance(result, PairsStageReport)
    return result


def _write_page(
    file: Path,
    client: Client,
    report: DuplicatesReport,
    *,
    stage: DuplicatesPlan,
    explained: Sequence[str],
    fields: Sequence[str],
) -> None:
    """Write the page of a stage, with the texts of its most and least similar pairs, and the ``fields`` of all."""
    from es_neardupe.commands.duplicates.results import page_contents, page_fields, page_texts
    from es_neardupe.pages.duplicates_page import MAX_TEXT, duplicates_page, listed_pairs, opened_pairs
    from es_neardupe.pages.page import write_page

    pairs = listed_pairs(_pairs(report, stage).pairs)
    contents = page_contents(client, stage, pairs)
    texts = page_texts(client, stage, opened_pairs(pairs, contents), MAX_TEXT + 1)
    shown = page_fields(client, pairs, fields) if fields else {}
    title = f"Pairs in {report.index}: {stage.name}"
    page = duplicates_page(report, stage.name, texts, contents=contents, explained=explained, title=title, fields=shown)
    write_page(file, page)
    say(f"Wrote {file}")
