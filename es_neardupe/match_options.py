"""Options that decide which documents match, the same for all commands that compare pairs.

A command takes them as ``**given: Unpack[MatchOptions]``, and all of them are there by `with_defaults`. None is the
default.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, TypedDict

import typer

from es_neardupe import options
from es_neardupe.options import DEFAULT_MAX_BUCKET, MEASURE_PANEL, parse_fraction

Maximum = Annotated[
    float | None, typer.Option("--max", parser=parse_fraction, metavar="FLOAT", help="Maximum similarity, in (0, 1].")
]
Features = Annotated[
    Sequence[str] | None,
    typer.Option(
        "--features",
        metavar="[FIELD:]SOURCE",
        help="For resemblance, weighted and bag: compare these features instead of shingles. Repeatable.",
        show_default=False,
        rich_help_panel=MEASURE_PANEL,
    ),
]
Ngram = Annotated[
    int | None,
    typer.Option(
        "--ngram", help="For bag: words in an n-gram, 1 to 7.", show_default="1", rich_help_panel=MEASURE_PANEL
    ),
]
Whitespace = Annotated[
    bool | None,
    typer.Option("--whitespace", help="For bag: split words at whitespace only.", rich_help_panel=MEASURE_PANEL),
]
Within = Annotated[
    Sequence[str] | None,
    typer.Option(
        "--within",
        metavar="FIELD",
        help="Compare only documents with the same value of this field. Repeatable: of all these fields.",
        show_default=False,
    ),
]
Facts = Annotated[
    Sequence[str] | str | None,
    typer.Option(
        "--facts",
        metavar="VALUES",
        help="Texts that differ in these facts do not match: figures, facts or all, or kinds such as amounts, dates, "
        "names, separated by commas. Repeatable.",
        show_default=False,
    ),
]
Across = Annotated[
    str | None,
    typer.Option(
        "--across",
        metavar="FIELD",
        help="Compare only documents with different values of this field.",
        show_default=False,
    ),
]
Bucket = Annotated[int | None, options.like(options.MaxBucket)]


class MatchOptions(TypedDict, total=False):
    """Whether two documents match."""

    measure: options.Measure
    matching: options.MatchingName
    passage: options.Passage
    min: options.Minimum
    features: Features
    ngram: Ngram
    whitespace: Whitespace
    facts: Facts
    within: Within
    across: Across


class RuleOptions(MatchOptions, total=False):
    """Which pairs of an index match."""

    max: Maximum
    ignore_common: options.IgnoreCommon
    max_bucket: Bucket


MATCH_DEFAULTS: MatchOptions = {
    "measure": None,
    "matching": None,
    "passage": None,
    "min": None,
    "features": (),
    "ngram": None,
    "whitespace": False,
    "facts": None,
    "within": (),
    "across": None,
}
RULE_DEFAULTS: RuleOptions = {
    **MATCH_DEFAULTS,
    "max": 1.0,
    "ignore_common": None,
    "max_bucket": DEFAULT_MAX_BUCKET,
}
