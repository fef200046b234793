"""Commands that compare and show: similar, pairs."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields
from itertools import islice
from typing import Annotated, Any

import typer

from es_neardupe.cli.boilerplate import tell_of_common, tell_of_large_buckets
from es_neardupe.cli.deciding import deciding
from es_neardupe.cli.grouping import tell_of_weights, wanted, warn_of_candidates, warn_of_detection
from es_neardupe.cli.options import (
    AsJson,
    IndexName,
    MaxBucket,
    Prefix,
    Query,
    connected,
    parse_query,
)
from es_neardupe.cli.output import named, print_json, print_lines, print_table, progress_bars, say, warn
from es_neardupe.clients import Client
from es_neardupe.inputs import read_text_file
from es_neardupe.pipeline import pairs as pairs_
from es_neardupe.pipeline import similar as similar_
from es_neardupe.pipeline.pairs import Pair
from es_neardupe.pipeline.similar import Similar
from es_neardupe.settings import DEFAULT_PREFIX
from es_neardupe.stages.candidates import DEFAULT_MAX_BUCKET

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
        client,
        index,
        id=id,
        text=text,
        **choice,
        min=min,
        top=top,
        query=parse_query(query),
        max_candidates=max_candidates,
        prefix=prefix,
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
        | _by_measure(found.measure, hit.similarity)
        | {"shared_bands": hit.shared_bands, "group": hit.group}
        for hit in found.hits
    ]
    return {field.name: getattr(found, field.name) for field in fields(found)} | {"hits": hits}


def _by_measure(measure: str, similarity: float) -> dict[str, Any]:
    """The similarity of a pair: ``resemblance``, or the name of another measure and its value."""
    if measure == "resemblance":
        return {"resemblance": similarity}
    return {"measure": measure, "similarity": similarity}


@deciding()
def pairs(
    client: Client,
    index: IndexName,
    *,
    choice: dict[str, Any],
    top: Annotated[int | None, typer.Option(min=1, help="Pairs shown, most similar first.", show_default="all")] = None,
    max_bucket: MaxBucket = DEFAULT_MAX_BUCKET,
    prefix: Prefix = DEFAULT_PREFIX,
    as_json: AsJson = False,
) -> None:
    """List all verified pairs with their exact similarity, most similar first. Writes nothing.

    Examples:

      es-neardupe pairs news --min 0.9 --json > pairs.jsonl

      es-neardupe pairs news --features 'title:flatten(words)' --min 0.9 --max 0.999
    """
    with progress_bars() as progress:
        found = pairs_(
            client,
            index,
            **choice,
            max_bucket=max_bucket,
            prefix=prefix,
            progress=progress,
        )
    chosen, several = islice(found, top), len(found.indices) > 1
    if as_json:
        print_lines(_pair_lines(chosen, several))
    else:
        rows = [(named(pair.a, several), named(pair.b, several), pair.similarity) for pair in chosen]
        print_table(["a", "b", found.measure], rows)
        range = wanted(found.measure, found.min, found.max)
        say(f"{found.listed:,} pairs {range}, from {found.candidates:,} verified candidates")
    tell_of_weights(found.weights)
    tell_of_common(found.common)
    warn_of_detection(found.min, found.detection, found.detection_cases)
    tell_of_large_buckets(found.large_buckets)
    if found.copies_not_listed:
        warn(f"{found.copies_not_listed:,} pairs of further exact copies are not listed: raise --max-bucket.")
    if found.stale:
        warn(f"{found.stale:,} documents changed since they got their keys: run `es-neardupe enrich {index} --check`.")


def _pair_lines(pairs: Iterator[Pair], several: bool) -> Iterator[dict[str, Any]]:
    """Pairs as the documented JSON; the indices are named where several were read."""
    for pair in pairs:
        line: dict[str, Any] = {"a": pair.a[1], "b": pair.b[1]} | _by_measure(pair.measure, pair.similarity)
        if several:
            line |= {"index_a": pair.a[0], "index_b": pair.b[0]}
        yield line


def register(app: typer.Typer) -> None:
    """Add the commands of this module."""
    for command in (similar, pairs):
        app.command()(connected(command))
