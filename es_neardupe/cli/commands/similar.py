"""Commands that compare and show: similar, pairs."""

from __future__ import annotations

from dataclasses import fields
from typing import Annotated, Any

import typer

from es_neardupe.cli.messages import (
    tell_of_weights,
    warn_of_candidates,
    warn_of_detection,
)
from es_neardupe.cli.options import AsJson, IndexName, Prefix, Query, connected, deciding, parse_query
from es_neardupe.cli.output import by_measure, named, print_json, print_table, say, warn
from es_neardupe.commands.load.files import read_text_file
from es_neardupe.commands.similar import Similar
from es_neardupe.commands.similar import similar as similar_
from es_neardupe.index.index import Index
from es_neardupe.index.settings import DEFAULT_PREFIX
from es_neardupe.server.client import Client

__all__ = ["register", "show_similar", "similar_json"]


@deciding("min", "ignore_common")
def similar(
    client: Client,
    index: IndexName,
    *,
    id: Annotated[str | None, typer.Option("--id", help="Document of the index.", show_default=False)] = None,
    text: Annotated[str | None, typer.Option("--text", help="Any text.", show_default=False)] = None,
    file: Annotated[str | None, typer.Option("--file", help="File with a text, or -.", show_default=False)] = None,
    choice: dict[str, Any],
    min: Annotated[float, typer.Option("--min", help="Least exact similarity, in (0, 1].")] = 0.5,
    top: Annotated[int, typer.Option("--top", min=1, help="Hits shown.")] = 10,
    query: Query = None,
    max_candidates: Annotated[int, typer.Option(min=1, help="Candidates compared, those with most keys first.")] = 1000,
    prefix: Prefix = DEFAULT_PREFIX,
    as_json: AsJson = False,
) -> None:
    """List the near-duplicates of a document or of any text, with their exact similarity.

    Examples:

      es-neardupe similar news --id 4711

      es-neardupe similar news --file letter.txt --min 0.8 --query '{"term": {"language": "en"}}'

      es-neardupe similar news --id 4711 --measure containment --matching information
    """
    if sum(one is not None for one in (id, text, file)) != 1:
        raise typer.BadParameter("Give exactly one of --id, --text and --file.")
    if file is not None:
        text = read_text_file(file)
    found = similar_(
        Index(index, client, prefix),
        id=id,
        text=text,
        **choice,
        min=min,
        top=top,
        query=parse_query(query),
        max_candidates=max_candidates,
    )
    if as_json:
        print_json(similar_json(found))
    else:
        show_similar(found)
    tell_of_weights(found.weights)
    warn_of_detection(found.detection.min, found.detection.probability, found.detection_cases)
    warn_of_candidates(found.not_compared)


def show_similar(found: Similar) -> None:
    """Print hits as a table."""
    state = found.query["state"]
    if state not in ("signed", "short"):
        warn(f"The text is {state}: it has no keys, and no near-duplicates can be found by them.")
    several = len({hit.index for hit in found.hits}) > 1
    rows = [(named((hit.index, hit.id), several), hit.similarity, hit.shared_bands, hit.group) for hit in found.hits]
    if rows:
        print_table(["id", found.measure, "shared keys", "group"], rows)
    say(f"{len(rows)} shown, {found.candidates:,} candidates, each compared by its present text")


def similar_json(found: Similar) -> dict[str, Any]:
    """The answer as the documented JSON."""
    hits = [
        {"index": hit.index, "id": hit.id}
        | by_measure(found.measure, hit.similarity)
        | {"shared_bands": hit.shared_bands, "group": hit.group}
        for hit in found.hits
    ]
    return {field.name: getattr(found, field.name) for field in fields(found)} | {"hits": hits}


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command()(connected(similar))
