"""``es-neardupe pairs``: all verified pairs of an index."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, Annotated, Any

import typer

from es_neardupe import options
from es_neardupe.cli.arguments import AsJson, FeatureSources, IndexName
from es_neardupe.cli.connection import open_index
from es_neardupe.cli.messages import (
    range_text,
    say_common,
    say_weights,
    warn_of_buckets,
    warn_of_detection,
)
from es_neardupe.cli.output import by_measure, named, print_lines, print_table, progress_bars, say, warn
from es_neardupe.options import DEFAULT_MAX_BUCKET, DEFAULT_PREFIX

if TYPE_CHECKING:
    from es_neardupe.commands.pairs import Pair

__all__ = ["pairs"]


def pairs(
    index: IndexName,
    *,
    measure: options.Measure = "resemblance",
    matching: options.MatchingName = None,
    min: options.Minimum = None,
    max: options.Maximum = 1.0,
    features: FeatureSources = None,
    ngram: options.Ngram = None,
    whitespace: options.Whitespace = False,
    renew: options.Renew = False,
    ignore_common: options.IgnoreCommon = None,
    top: Annotated[
        int | None,
        typer.Option(min=1, help="Maximum number of pairs shown, most similar first.", show_default="all"),
    ] = None,
    max_bucket: options.MaxBucket = DEFAULT_MAX_BUCKET,
    prefix: options.Prefix = DEFAULT_PREFIX,
    as_json: AsJson = False,
) -> None:
    """List all verified pairs with their exact similarity, most similar first. Writes nothing.

    Examples:

      es-neardupe pairs news --min 0.9 --json > pairs.jsonl

      es-neardupe pairs news --features 'title:flatten(words)' --min 0.9 --max 0.999
    """
    from es_neardupe.commands.pairs import pairs as pairs_

    with progress_bars() as progress:
        found = pairs_(
            open_index(index, prefix),
            measure=measure,
            matching=matching,
            min=min,
            max=max,
            features=features or (),
            ngram=ngram,
            whitespace=whitespace,
            renew=renew,
            ignore_common=ignore_common,
            max_bucket=max_bucket,
            progress=progress,
        )
    chosen, several = islice(found, top), len(found.indices) > 1
    if as_json:
        print_lines(map(_pair_line, chosen))
    else:
        rows = [(named(pair.a, several), named(pair.b, several), pair.similarity) for pair in chosen]
        print_table(["a", "b", found.measure], rows)
        range = range_text(found.measure, found.min, found.max)
        say(f"{len(found):,} pairs {range}, from {found.candidates:,} verified candidates")
    say_weights(found.weights)
    say_common(found.common)
    warn_of_detection(found.min, found.detection, found.detection_cases)
    warn_of_buckets(found.large_buckets)
    if found.copies_not_listed:
        warn(f"{found.copies_not_listed:,} pairs of further exact copies are not listed: raise --max-bucket.")
    if found.stale:
        warn(f"{found.stale:,} documents changed since they got their keys: run `es-neardupe enrich {index} --check`.")


def _pair_line(pair: Pair) -> dict[str, Any]:
    """A pair as the documented JSON."""
    return {"a": pair.a, "b": pair.b} | by_measure(pair.measure, pair.similarity)
