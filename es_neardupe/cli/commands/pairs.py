"""Commands that compare and show: similar, pairs."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from typing import Annotated, Any

import typer

from es_neardupe.candidates.join import DEFAULT_MAX_BUCKET
from es_neardupe.cli.messages import (
    tell_of_common,
    tell_of_large_buckets,
    tell_of_weights,
    wanted,
    warn_of_detection,
)
from es_neardupe.cli.options import AsJson, IndexName, MaxBucket, Prefix, connected, deciding
from es_neardupe.cli.output import by_measure, named, print_lines, print_table, progress_bars, say, warn
from es_neardupe.commands.pairs import Pair
from es_neardupe.commands.pairs import pairs as pairs_
from es_neardupe.index.index import Index
from es_neardupe.index.settings import DEFAULT_PREFIX
from es_neardupe.server.client import Client

__all__ = [
    "register",
]


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
            Index(index, client, prefix),
            **choice,
            max_bucket=max_bucket,
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
        line: dict[str, Any] = {"a": pair.a[1], "b": pair.b[1]} | by_measure(pair.measure, pair.similarity)
        if several:
            line |= {"index_a": pair.a[0], "index_b": pair.b[0]}
        yield line


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command()(connected(pairs))
