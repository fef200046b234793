"""The command that answers a request for duplicates."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable
from itertools import islice
from pathlib import Path
from typing import Annotated

import typer

from es_neardupe import requests
from es_neardupe.cli.options import AsJson, Prefix, connectable
from es_neardupe.cli.output import print_json, progress_bars, say, warn
from es_neardupe.cli.pair_output import duplicates_json, print_pairs, show_report, tell_of_losses, write_csv
from es_neardupe.clients import Client
from es_neardupe.errors import SettingsError
from es_neardupe.inputs import read_text_file
from es_neardupe.pipeline import duplicates as duplicates_
from es_neardupe.pipeline.duplicate_results import DuplicatesReport, PairsResult
from es_neardupe.pipeline.duplicates_page import page_texts
from es_neardupe.report.duplicates import MAX_OPENED, MAX_TEXT, duplicates_page
from es_neardupe.report.files import check_file
from es_neardupe.report.html import write_page
from es_neardupe.requests import DuplicatesPlan, RequestPlan
from es_neardupe.settings import DEFAULT_PREFIX

__all__ = ["register"]


def duplicates(
    open: Callable[[], Client],
    index: Annotated[
        str | None, typer.Argument(metavar="INDEX", help="Index, alias or pattern.", show_default=False)
    ] = None,
    *,
    request: Annotated[
        str | None, typer.Option(metavar="FILE", help="The request as JSON, or - for stdin.", show_default=False)
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Say in plain words what the request will do, then do it.")
    ] = False,
    example: Annotated[
        str | None, typer.Option(metavar="NAME", help="Print a ready request, and do nothing else.", show_default=False)
    ] = None,
    schema: Annotated[bool, typer.Option("--schema", help="Print the JSON schema of requests.")] = False,
    stage: Annotated[
        str | None,
        typer.Option(metavar="NAME", help="Stage of the pairs, where several find some.", show_default=False),
    ] = None,
    top: Annotated[int, typer.Option(min=1, help="Rows of each table.")] = 20,
    pairs_only: Annotated[bool, typer.Option("--pairs-only", help="Print each pair as a line of JSON.")] = False,
    csv: Annotated[
        str | None,
        typer.Option("--csv", metavar="FILE", help="Write the pairs as CSV; - for stdout.", show_default=False),
    ] = None,
    html: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write a page with the pairs side by side.", show_default=False)
    ] = None,
    prefix: Prefix = DEFAULT_PREFIX,
    as_json: AsJson = False,
) -> None:
    """Answer a request for duplicates: scope, grouping and validation features of your choice. Needs no keys.

    Examples:

      es-neardupe duplicates --example near-identical-titles > titles.json

      es-neardupe duplicates news --request titles.json --explain

      es-neardupe duplicates news --request titles.json --csv pairs.csv --html pairs.html
    """
    if (index is not None) + (example is not None) + schema != 1 or (index is None) != (request is None):
        raise typer.BadParameter("Give INDEX and --request FILE, or --example NAME, or --schema.")
    if as_json + pairs_only + (csv == "-") > 1:
        raise typer.BadParameter("Only one of --json, --pairs-only and --csv - can be on stdout.")
    if index is None or request is None:
        _print_ready(example)
        return
    plan = requests.parse_request(read_text_file(request))
    chosen = _chosen(plan, stage, needed=pairs_only or csv is not None or html is not None)
    _check_files(csv, html, request)
    if explain:
        for line in requests.explain(plan, index):
            say(line)
    client = open()
    with progress_bars() as progress:
        report = duplicates_(client, index, plan, prefix=prefix, progress=progress)
    if as_json:
        print_json(duplicates_json(report))
    elif pairs_only:
        print_pairs(_pairs(report, chosen))
    elif csv != "-":
        show_report(report, top)
    if csv is not None:
        write_csv(csv, _pairs(report, chosen))
    tell_of_losses(report)
    if _across(plan) and len(report.indices) == 1:
        warn(f"{index} is one index, and only pairs across indices were asked for: name several, as in old,new.")
    if html is not None:
        _write_page(html, client, report, chosen, plan)


def _check_files(csv: str | None, html: Path | None, request: str) -> None:
    """Raises `InputError` for files that cannot be written, `SettingsError` for one that would be written twice."""
    files = ([Path(csv)] if csv not in (None, "-") else []) + ([html] if html else [])
    for file in files:
        check_file(file, [request])
    if len({file.resolve() for file in files}) < len(files):
        raise SettingsError(f"--csv and --html both name {html}: give each a file of its own.")


def _across(plan: RequestPlan) -> bool:
    """Whether any stage asks for pairs across indices only."""
    return any(isinstance(one, DuplicatesPlan) and one.across_indices for one in plan.stages)


def _print_ready(name: str | None) -> None:
    """A ready request, or the schema of all."""
    text = json.dumps(requests.schema(), indent=2) + "\n" if name is None else requests.example(name)
    sys.stdout.write(text)


def _chosen(plan: RequestPlan, stage: str | None, *, needed: bool) -> DuplicatesPlan:
    """The stage whose pairs go into lines and files. Raises `SettingsError` where that is ``needed`` and not clear."""
    finding = {one.name: one for one in plan.stages if isinstance(one, DuplicatesPlan)}
    if stage is not None and stage not in finding:
        raise SettingsError(f"No stage {stage!r} finds pairs. Those that do: {', '.join(finding)}.")
    if stage is None and needed and len(finding) > 1:
        raise SettingsError(f"Several stages find pairs: choose one with --stage: {', '.join(finding)}.")
    return finding[stage] if stage is not None else next(iter(finding.values()))


def _pairs(report: DuplicatesReport, stage: DuplicatesPlan) -> PairsResult:
    result = report.stages[stage.name]
    assert isinstance(result, PairsResult)
    return result


def _write_page(file: Path, client: Client, report: DuplicatesReport, stage: DuplicatesPlan, plan: RequestPlan) -> None:
    """The page of a stage, with the texts of its most similar pairs."""
    first = islice(_pairs(report, stage).pairs, MAX_OPENED)
    texts = page_texts(client, stage, first, MAX_TEXT + 1)
    words = requests.explain(plan, report.index)
    title = f"Pairs in {report.index}: {stage.name}"
    write_page(file, duplicates_page(report, stage.name, texts, explained=words, title=title))
    say(f"Wrote {file}")


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command()(connectable(duplicates))
