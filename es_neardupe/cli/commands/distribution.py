"""The command that shows where the similarities of an index lie."""

from __future__ import annotations

from typing import Annotated

import typer

from es_neardupe.candidates.join import DEFAULT_MAX_BUCKET
from es_neardupe.cli.charts import plot_counts
from es_neardupe.cli.options import AsJson, IndexName, MaxBucket, Prefix, connected, listed
from es_neardupe.cli.output import print_json, print_table, progress_bars, say, show, warn
from es_neardupe.commands.distribution.distribution import distribution as distribution_
from es_neardupe.commands.distribution.report import Distribution, DistributionReport, Example, Level
from es_neardupe.index.index import Index
from es_neardupe.index.settings import DEFAULT_PREFIX
from es_neardupe.server.client import Client
from es_neardupe.similarity.alignment import Matching
from es_neardupe.similarity.measure import MeasureName

__all__ = ["register"]


def distribution(
    client: Client,
    index: IndexName,
    *,
    measure: Annotated[
        list[MeasureName] | None,
        typer.Option("--measure", help="What to compute; may be repeated.", show_default="resemblance"),
    ] = None,
    matching: Annotated[Matching, typer.Option(help="For jaccard and the containments.")] = Matching.LITERAL,
    shingle: Annotated[
        str | None,
        typer.Option("--shingle", metavar="N,...", help="Words of a shingle, as 1,2,3.", show_default="of the index"),
    ] = None,
    sample: Annotated[
        int | None,
        typer.Option("--sample", min=2, help="Documents to compare all with all.", show_default="2000 or 500"),
    ] = None,
    seed: Annotated[int, typer.Option("--seed", min=0, help="Another one draws another sample.")] = 1,
    threshold: Annotated[
        float | None,
        typer.Option("--threshold", help="The one to look at, in (0, 1].", show_default="that of the index"),
    ] = None,
    thresholds: Annotated[
        str | None,
        typer.Option("--thresholds", metavar="S,...", help="Those of the table.", show_default="0.3 to 1 by 0.05"),
    ] = None,
    plot: Annotated[
        str | None,
        typer.Option("--plot", metavar="FILE", help="Draw a picture, .png or .svg.", show_default=False),
    ] = None,
    max_bucket: MaxBucket = DEFAULT_MAX_BUCKET,
    prefix: Prefix = DEFAULT_PREFIX,
    as_json: AsJson = False,
) -> None:
    """Show where similarities lie and what each threshold would find. Writes nothing into the index.

    Examples:

      es-neardupe distribution news --plot news.png

      es-neardupe distribution news --measure bag --shingle 1,2,3,4 --sample 1000 --json
    """
    with progress_bars() as progress:
        found = distribution_(
            Index(index, client, prefix),
            measure=measure,
            matching=matching,
            shingle=listed(int, "whole numbers")(shingle),
            sample=sample,
            seed=seed,
            threshold=threshold,
            thresholds=listed(float, "numbers")(thresholds),
            plot=plot,
            max_bucket=max_bucket,
            progress=progress,
        )
    if as_json:
        print_json(found)
    else:
        for one in found.distributions:
            _show(found, one)
    _say(found, plot)


def _show(report: DistributionReport, one: Distribution) -> None:
    show(f"{one.title}: all {one.sample.pairs:,} pairs of a sample, {one.sampled:,} of {report.documents:,} documents")
    plot_counts(one.sample, report.threshold)
    show(f"{one.title}: {one.candidates.pairs:,} candidate pairs of the index")
    plot_counts(one.candidates, report.threshold)
    columns = ["threshold", "pairs", "documents", "groups", "largest", "detection", "in sample", "candidates"]
    print_table([*columns, "all pairs, estimated (95 %)"], map(_row, one.levels))
    for side, examples in (("above", one.above), ("below", one.below)):
        if examples:
            rows = [row for example in examples for row in _example(example, len(report.indices) > 1)]
            print_table([f"just {side}", "id", "where they begin to differ"], rows)
        else:
            show(f"just {side}: no pair")


def _row(level: Level) -> tuple[object, ...]:
    expected = f"{level.expected.pairs:,.0f} ({level.expected.low:,.0f} to {level.expected.high:,.0f})"
    detection = "-" if level.detection is None else f"{level.detection:.4f}"
    found = (level.pairs, level.documents, level.groups, level.largest)
    return f"{level.threshold:g}", *found, detection, level.sample_pairs, level.sample_found, expected


def _example(example: Example, several: bool) -> list[tuple[object, ...]]:
    """A line for each document of the pair."""
    sides = ((f"{example.similarity:.4f}", example.a, example.excerpt_a), ("", example.b, example.excerpt_b))
    return [
        (value, f"{name['index']}/{name['id']}" if several else name["id"], excerpt) for value, name, excerpt in sides
    ]


def _say(found: DistributionReport, plot: str | None) -> None:
    if plot is not None:
        say(f"drawn in {plot}")
    if found.skipped:
        warn(f"{found.skipped:,} comparisons in large buckets were left out: raise --max-bucket.")
    if found.stale:
        warn(
            f"{found.stale:,} documents changed since they got their keys, and are in no pair: "
            f"run `es-neardupe enrich {found.index} --check`."
        )


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command()(connected(distribution))
