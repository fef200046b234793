"""``es-neardupe pairs``: all verified pairs of an index."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer

from es_neardupe import options
from es_neardupe.cli.arguments import AsJson, IndexName, Output
from es_neardupe.cli.connection import open_index
from es_neardupe.cli.derived import with_options_of
from es_neardupe.cli.messages import (
    match_range,
    say_common,
    say_measure,
    warn_of_boilerplate,
    warn_of_buckets,
    warn_of_detection,
    warn_of_stale,
    warn_of_unprocessed,
)
from es_neardupe.cli.output import (
    check_output,
    print_lines,
    print_table,
    progress_bars,
    say,
    value_cells,
    warn,
    write_output,
)
from es_neardupe.commands.pairs import MAX_SHOWN
from es_neardupe.commands.pairs import pairs as library
from es_neardupe.display_text import named
from es_neardupe.json_results import by_measure
from es_neardupe.options import DEFAULT_PREFIX
from es_neardupe.wording import counted

if TYPE_CHECKING:
    from es_neardupe.commands.pairs.report import Pair


@with_options_of(library)
def pairs(
    index: IndexName,
    *,
    top: Annotated[
        int | None,
        typer.Option(min=1, help="Maximum number of pairs shown, most similar first.", show_default="all"),
    ] = None,
    output: Output = None,
    prefix: options.Prefix = DEFAULT_PREFIX,
    as_json: AsJson = False,
    **given: Any,
) -> None:
    """
    Examples:

      es-neardupe pairs news --min 0.9 --output pairs.parquet

      es-neardupe pairs news --features 'title:flatten(words)' --min 0.9 --max 0.999
    """

    check_output(output)
    with progress_bars() as progress:
        found = library(open_index(index, prefix), progress=progress, **given)
    if as_json:
        print_lines(map(_pair_line, found.with_fields(top)))
        if found.related is not None:
            print_lines(_pair_line(pair) | {"facts": pair.facts} for pair in found.related.with_fields(top))
    if output is not None:
        write_output(output, found.table(top))
    elif not as_json:
        _show(list(found.with_fields(top)), found.measure, several=len(found.indices) > 1)
        if found.related:
            related = list(found.related.with_fields(top))
            _show(related, found.measure, several=len(found.indices) > 1, facts=True)
    if not as_json:
        range = match_range(found.measure, found.min, found.max)
        verified = counted(found.candidates, "verified candidate pair")
        say(f"{counted(len(found), 'pair')} {range}, from {verified} of different texts, and with their exact copies")
    say_measure(found.measure, found.weights, given=given["measure"])
    say_common(found.common)
    warn_of_detection(found.detection)
    warn_of_boilerplate(index, found.boilerplate)
    warn_of_buckets(found.skipped, found.large_buckets)
    if found.other_facts:
        texts = counted(found.other_facts, "more pair of texts is", "more pairs of texts are")
        say(f"{texts} as similar, but with other facts.")
    if found.copies_not_listed:
        pairs = counted(found.copies_not_listed, "pair of further exact copies is", "pairs of further exact copies are")
        warn(f"{pairs} not listed: raise --max-bucket.")
    if found.texts_cut:
        texts = counted(found.texts_cut, "text was", "texts were")
        warn(f"{texts} cut after {MAX_SHOWN:,} characters: --whole-fields shows them whole.")
    warn_of_stale(found.stale, index)
    warn_of_unprocessed(found.unprocessed, index, missing_in="pair")


def _show(shown: list[Pair], measure: str, *, several: bool, facts: bool = False) -> None:
    """Print pairs as a table, with the facts that keep them apart."""
    from es_neardupe.similarity.facts.differing import in_words

    names = list(dict.fromkeys(name for pair in shown for side in pair.fields.values() for name in side))
    columns = ["a", *(f"{name} of a" for name in names), "b", *(f"{name} of b" for name in names), measure]
    if facts:
        columns.append("facts: of a / of b")
    rows = []
    for pair in shown:
        cells = {side: value_cells(values, names, 3) for side, values in pair.fields.items()}
        rows.append((named(pair.a, several), *cells["a"], named(pair.b, several), *cells["b"], pair.similarity))
    if facts:
        rows = [(*row, in_words(pair.facts)) for row, pair in zip(rows, shown, strict=True)]
    print_table(columns, rows, title="Same form, different facts" if facts else None)


def _pair_line(pair: Pair) -> dict[str, Any]:
    """A pair as the documented JSON."""
    return (
        {"a": pair.a, "b": pair.b}
        | by_measure(pair.measure, pair.similarity)
        | {"fields": pair.fields, "cut": pair.cut}
    )
