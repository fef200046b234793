"""``es-neardupe compare``: two texts by every measure and side by side."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.console import Group
from rich.table import Table
from rich.text import Text

from es_neardupe import options
from es_neardupe.cli.arguments import AsJson
from es_neardupe.cli.connection import open_index
from es_neardupe.cli.derived import with_options_of
from es_neardupe.cli.output import print_json, print_table, printable, results, say, show, warn
from es_neardupe.commands.compare import compare as library
from es_neardupe.display_text import beginning, score_text
from es_neardupe.errors import InputError
from es_neardupe.options import DEFAULT_PREFIX, Matching
from es_neardupe.wording import counted

if TYPE_CHECKING:
    from es_neardupe.pages.terminal_rows import RowPart
    from es_neardupe.similarity.comparison import CompareReport, Side
    from es_neardupe.similarity.explained_scores import Score


_WAYS = "INDEX ID ID, INDEX ID --file FILE, or FILE FILE"
_COLOURS = ("cyan", "green", "magenta", "blue", "yellow", "red")
_MAX_ROWS = 100
_MAX_FACTS = 20
_NARROW = 72
"""Minimum number of columns of the terminal to show the texts side by side."""


@with_options_of(library, summary=False)
def compare(
    what: Annotated[list[str], typer.Argument(metavar="WHAT...", help=f"{_WAYS}.", show_default=False)],
    file: Annotated[
        str | None,
        typer.Option(
            "--file", metavar="FILE", help="With INDEX ID: file with the other text, or -.", show_default=False
        ),
    ] = None,
    *,
    matching: Annotated[
        Matching, typer.Option(help="Matching whose passages are shown; in a page, shown first.")
    ] = Matching.LITERAL,
    context: Annotated[int, typer.Option(min=0, help="Number of words shown around differences.")] = 30,
    html: Annotated[
        Path | None, typer.Option(help="Write an HTML page with the texts instead of printing them.", metavar="FILE")
    ] = None,
    no_color: Annotated[bool, typer.Option("--no-color", help="Print without colours.")] = False,
    prefix: options.Prefix = DEFAULT_PREFIX,
    as_json: AsJson = False,
    **given: Any,
) -> None:
    """Compare two documents or files by every measure, and show their common passages. Files need no server.

    Examples:

      es-neardupe compare news 1001 1003

      es-neardupe compare news 1001 --file letter.txt --html letter.html

      es-neardupe compare old.txt new.txt --context 10
    """

    from es_neardupe.folders import check_file
    from es_neardupe.readers.files import read_text_file
    from es_neardupe.similarity.alignment import DEFAULT_MIN_WORDS

    _check(what, file)
    if html is not None:
        check_file(html)
    if len(what) == 2 and file is None:
        if given["weighted"]:
            raise typer.BadParameter("--weighted needs the frequencies of an index: give INDEX ID ID.")
        if given["fields"]:
            raise typer.BadParameter("--field shows fields of documents, and files have none: give INDEX ID ID.")
        shingle = DEFAULT_MIN_WORDS if given["shingle"] is None else given["shingle"]
        found = _files(what[0], what[1], shingle, given["passage"])
    else:
        text = None if file is None else read_text_file(file)
        found = library(
            open_index(what[0], prefix), what[1], what[2] if text is None else None, text=text, name=file or "", **given
        )
    if html is not None:
        _write(html, found, matching)
    if as_json:
        print_json(found)
        return
    with _colours(not no_color):
        _show(found)
        if html is None:
            _show_texts(found, matching, context)


def _check(what: Sequence[str], file: str | None) -> None:
    """Raises `BadParameter` for a wrong number of arguments."""
    expected = "2 or 3 words" if file is None else "INDEX and ID with --file"
    if len(what) not in ((2, 3) if file is None else (2,)):
        raise typer.BadParameter(f"Give {_WAYS}: {expected}, not {len(what)}.")


def _files(a: str, b: str, given: int | str, passage: int | None) -> CompareReport:
    from es_neardupe.keys.unit import shingle_of
    from es_neardupe.readers.files import read_text_file
    from es_neardupe.similarity.comparison import compare_texts

    shingle, unit = shingle_of(given)
    if a == b == "-":
        raise InputError("Only one text can come from stdin: name a file for the other.")
    for name in (a, b):
        if name != "-" and not Path(name).exists():
            raise InputError(
                f"File {name!r} does not exist. Two arguments are two files; to compare documents of an index, "
                f"give {_WAYS}."
            )
    one, other = read_text_file(a), read_text_file(b)
    return compare_texts(one, other, names=(a, b), shingle=shingle, unit=unit, passage=passage)


def _write(file: Path, found: CompareReport, matching: Matching) -> None:
    from es_neardupe.pages.page import compare_page, write_page
    from es_neardupe.pages.panes import MAX_SHOWN

    write_page(file, compare_page(found, matching))
    say(f"Wrote {file}")
    for side in found.sides:
        if side.characters > MAX_SHOWN:
            warn(f"The page shows the first {MAX_SHOWN:,} of {side.characters:,} characters of {side.name}.")


@contextmanager
def _colours(enabled: bool) -> Iterator[None]:
    before = results.no_color
    results.no_color = before or not enabled
    try:
        yield
    finally:
        results.no_color = before


def _show(found: CompareReport) -> None:
    """Print measures, lengths and differing facts."""
    from es_neardupe.keys.unit import shingle_text
    from es_neardupe.similarity.measure import MEANINGS

    table = [(one.name, _matching(one), _value(one), MEANINGS[one.measure]) for one in found.measures]
    if found.unit.value != "word":
        show(f"Shingles have {shingle_text(found.shingle, found.unit)}; all other measures compare words.")
    print_table(["measure", "matching", "value", "meaning"], table)
    for name, why in found.left_out.items():
        show(f"Omitted: {name}, because {why}.")
    numbers = [(key, one.longer, one.shorter, one.common, one.chunks) for key, one in found.matchings.items()]
    columns = ["matching", "L: longer", "S: shorter", "C: common words", "n: passages"]
    print_table(columns, numbers, title=f"Passages of {counted(found.passage, 'word')} or more")
    for side in found.sides:
        if not side.words:
            warn(f"{side.name} has no words: it is empty.")
        if side.as_prepared:
            warn(
                f"{side.name} is shown as it was prepared: the original text is encoded, or places in it take too "
                "long to find."
            )
    if found.facts:
        facts = [
            (
                ", ".join(kind.value for kind in one.kinds),
                one.words_a or "-",
                one.words_b or "-",
                f"{one.a[0]}",
                f"{one.b[0]}",
            )
            for one in found.facts[:_MAX_FACTS]
        ]
        columns = ["kind", "a", "b", "character in a", "character in b"]
        print_table(columns, facts, title=f"Same form, different facts: {counted(len(found.facts), 'place')}")
        if len(found.facts) > _MAX_FACTS:
            more = counted(len(found.facts) - _MAX_FACTS, "more place is", "more places are")
            show(f"{more} in the output of --json.")


def _matching(score: Score) -> str:
    return score.matching.value if score.matching else ""


def _value(score: Score) -> str:
    if score.interval is None:
        return score_text(score.value)
    return f"{score_text(score.value)} (95 %: {score.interval[0]:.2f} to {score.interval[1]:.2f})"


def _show_texts(found: CompareReport, matching: Matching, context: int) -> None:
    """Print the texts side by side, or below each other in a narrow terminal."""
    from es_neardupe.pages.terminal_rows import rows

    narrow = results.width < _NARROW
    made = rows(found, matching, context)
    table = Table.grid(padding=(0, 2), expand=True)
    heads = [_head(letter, side) for letter, side in zip("ab", found.sides, strict=True)]
    for _ in range(1 if narrow else 2):
        table.add_column(ratio=1, overflow="fold")
    _add(table, heads, narrow=narrow)
    for row in islice(made, _MAX_ROWS):
        cells = [_text(row.a), _text(row.b)]
        if any(cell.plain.strip() for cell in cells):
            _add(table, cells, narrow=narrow)
    results.print(table)
    show("[1 ...]: passage 1, in both texts. {...}: words that differ.")
    if rest := sum(row.changes for row in made):
        warn(
            f"{counted(rest, 'more difference is', 'more differences are')} not shown: --html writes a page with all "
            f"of them."
        )


def _head(letter: str, side: Side) -> Text:
    """Name and shown fields of a text."""
    fields = [f" {printable(beginning(value))}" for value in side.fields.values() if value]
    return Text.assemble((f"{letter}: {printable(side.name)}", "bold"), *fields)


def _add(table: Table, cells: Sequence[Text], *, narrow: bool) -> None:
    table.add_row("")
    if narrow:
        letters = [Text(f"{letter} ", "bold") for letter in "ab"]
        table.add_row(Group(*(Text.assemble(letter, cell) for letter, cell in zip(letters, cells, strict=True))))
    else:
        table.add_row(*cells)


def _text(parts: Sequence[RowPart]) -> Text:
    text = Text()
    for words, style in _styled(parts):
        text.append(words, style)
    return text


def _styled(parts: Sequence[RowPart]) -> Iterator[tuple[str, str]]:
    """The words of a row with their styles, and with marks for output without colours."""
    for part in parts:
        words = printable(part.text) if part.text.strip() else " " * bool(part.text)
        if part.left_out:
            yield f" ... {counted(part.left_out, 'word')} ... ", "italic"
        elif part.change:
            yield f"{{{words}}}", "bold reverse"
        elif part.blocks:
            opens = "".join(f"[{number} " for number in part.opens)
            yield f"{opens}{words}{']' * len(part.closes)}", _COLOURS[(part.blocks[-1] - 1) % len(_COLOURS)]
        else:
            yield words, "dim"
