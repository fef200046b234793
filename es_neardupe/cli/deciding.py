"""The options that say what decides whether a pair is a match."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import wraps
from typing import Annotated, Any

import typer

from es_neardupe.alignment import Matching
from es_neardupe.cli.options import Min, parameters_of
from es_neardupe.clients import Client
from es_neardupe.pipeline.criteria import DECIDING

__all__ = ["deciding"]

_MEASURE = "Measure"

Max = Annotated[float, typer.Option("--max", help="Greatest exact similarity, in (0, 1].")]
MeasureName = Annotated[
    str,
    typer.Option(
        "--measure", metavar="|".join(one.value for one in DECIDING), help="What decides.", rich_help_panel=_MEASURE
    ),
]
MatchingName = Annotated[
    str | None,
    typer.Option(
        "--matching",
        metavar="|".join(one.value for one in Matching),
        help="How common passages are found, for jaccard and the containments.",
        show_default="literal",
        rich_help_panel=_MEASURE,
    ),
]
Features = Annotated[
    list[str],
    typer.Option(
        "--features",
        metavar="[FIELD:]SOURCE",
        help="For resemblance, weighted and bag: other features than shingles. Repeatable.",
        default_factory=list,
        show_default=False,
        rich_help_panel=_MEASURE,
    ),
]
Ngram = Annotated[
    int | None,
    typer.Option("--ngram", help="For bag: words in an n-gram, 1 to 7.", show_default="1", rich_help_panel=_MEASURE),
]
Whitespace = Annotated[
    bool,
    typer.Option("--whitespace", help="For bag: words as they stand between blanks.", rich_help_panel=_MEASURE),
]
Renew = Annotated[
    bool,
    typer.Option("--renew", help="Take the frequencies of features anew, where they count.", rich_help_panel=_MEASURE),
]
IgnoreCommon = Annotated[
    float | None,
    typer.Option(
        "--ignore-common",
        metavar="SHARE",
        help="Shingles that more than this share of the documents have do not count.",
        show_default=False,
        rich_help_panel=_MEASURE,
    ),
]


def _choice(
    *,
    measure: MeasureName = "resemblance",
    matching: MatchingName = None,
    min: Min = None,
    max: Max = 1.0,
    features: Features,
    ngram: Ngram = None,
    whitespace: Whitespace = False,
    renew: Renew = False,
    ignore_common: IgnoreCommon = None,
) -> None:
    """The options that say what decides: see `deciding`."""


def deciding(*without: str) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Give a command the options of what decides, but for some, where its own parameters have ``choice``; it gets
    all of them in that, by their names."""

    def decorated(command: Callable[..., None]) -> Callable[..., None]:
        own = parameters_of(command)
        options = [parameter for parameter in parameters_of(_choice) if parameter.name not in without]
        place = next(number for number, parameter in enumerate(own) if parameter.name == "choice")

        @wraps(command)
        def run(client: Client, **given: Any) -> None:
            choice = {parameter.name: given.pop(parameter.name) for parameter in options}
            command(client, choice=choice, **given)

        run.__signature__ = inspect.Signature([*own[:place], *options, *own[place + 1 :]])  # type: ignore[attr-defined]
        return run

    return decorated
