"""``es-neardupe moved``: the current address of documents that have moved."""

from __future__ import annotations

from collections import Counter, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from es_neardupe import options
from es_neardupe.cli.arguments import AsJson, IndexName, Output
from es_neardupe.cli.connection import open_index
from es_neardupe.cli.derived import with_options_of
from es_neardupe.cli.messages import warn_of_candidates, warn_of_detection, warn_of_unprocessed
from es_neardupe.cli.output import (
    ExitCode,
    check_output,
    print_csv,
    print_json,
    print_table,
    say,
    show,
    value_cells,
    warn,
    write_output,
)
from es_neardupe.commands.moved import moved as library
from es_neardupe.commands.moved import moved_all
from es_neardupe.display_text import beginning, score_text
from es_neardupe.options import DEFAULT_PREFIX, MAX_VERSIONS
from es_neardupe.wording import counted

if TYPE_CHECKING:
    from es_neardupe.commands.moved.report import MovedReport, NewPlace


@with_options_of(library)
def moved(
    index: IndexName,
    address: Annotated[
        str | None,
        typer.Argument(metavar="ADDRESS", help="Former address, or id, of a document.", show_default=False),
    ] = None,
    gone: Annotated[
        str | None,
        typer.Option(
            "--gone",
            metavar="FILE",
            help="File with one former address per line, or -; prints CSV.",
            show_default=False,
        ),
    ] = None,
    *,
    output: Output = None,
    prefix: options.Prefix = DEFAULT_PREFIX,
    as_json: AsJson = False,
    **given: Any,
) -> None:
    """
    Examples:

      es-neardupe moved pages https://example.org/old.html

      es-neardupe moved pages --gone dead-links.txt > moved.csv
    """
    from es_neardupe.readers.files import read_lines

    if (address is None) == (gone is None):
        raise typer.BadParameter("Give either ADDRESS or --gone.")
    check_output(output)
    opened = open_index(index, prefix)
    if gone is not None:
        return _print_all(index, moved_all(opened, read_lines(gone), **given), given["fields"], output, as_json)
    found = library(opened, str(address), **given)
    if as_json:
        print_json(found)
    if output is not None:
        write_output(output, found.table())
    elif not as_json:
        _show(found)
    if not as_json:
        say(_fields(found))
    _warn(index, found)
    if found.basis is None:
        raise typer.Exit(ExitCode.FAILED)
    return None


def _show(found: MovedReport) -> None:
    """Print the document that was at the address, and a timeline of its copies."""
    show(_was(found))
    for name, value in found.fields.items():
        show(f"{name}: {beginning(value)}")
    if found.places:
        names = list(found.places[0].fields)
        heads = ["date", "rank", "address", *names, "resemblance", "replaced", "document", *_more_heads(found)]
        ranked = sorted(enumerate(found.places, 1), key=lambda one: (one[1].date or "", one[0]))
        print_table(heads, [(*_row(rank, one, names), *_more(found, one)) for rank, one in ranked])
    best = found.best
    if best is None:
        show(f"Not found: {found.reason}.")
    else:
        show(f"Now at {best.address}, {score_text(best.similarity)} similar.")


def _fields(found: MovedReport) -> str:
    return f"Addresses are from {found.url_field}, dates from {found.date_field}."


def _was(found: MovedReport) -> str:
    if found.basis is None:
        return f"{found.address}: unknown address."
    document = f"{found.address}: document {found.index}/{found.id}"
    if found.basis == "evidence" and found.versions:
        return f"{document}, which now has another text; the former text is known from evidence, without its date."
    if found.basis in ("evidence", "grouping"):
        return f"{document}, which was deleted; known only from {found.basis}, without its date."
    what = f"{document}, {_day(found.date) or 'without a date'}"
    if found.versions > 1:
        which = "the latest" if found.version == 1 else f"number {found.version} from the latest"
        notice = "; a later one is a notice" if found.notices and found.best else ""
        return f"{what}, {which} of {found.versions:,} with this address{notice}."
    return f"{what}, known from its {found.basis}."


def _row(rank: int, one: NewPlace, names: Sequence[str]) -> tuple[object, ...]:
    shown, document = value_cells(one.fields, names, 3), f"{one.index}/{one.id}"
    return _day(one.date), rank, one.address, *shown, one.similarity, _day(one.replaced), document


def _more_heads(found: MovedReport) -> list[str]:
    return ["known from", "since"] if _remembered(found) else []


def _more(found: MovedReport, one: NewPlace) -> list[object]:
    how = one.basis if one.measure == "resemblance" else f"{one.basis}, {one.measure}"
    return [how, one.known_at] if _remembered(found) else []


def _remembered(found: MovedReport) -> bool:
    return any(one.basis != "texts" for one in found.places)


def _day(date: str | None) -> str:
    """A date, without the time of day if it is midnight."""
    return (date or "").removesuffix("T00:00:00.000Z")


def _warn(index: str, found: MovedReport) -> None:
    if found.versions > MAX_VERSIONS and found.best is None:
        warn(
            f"Only the latest {MAX_VERSIONS:,} of its {found.versions:,} documents were searched for: name another one "
            f"by its id."
        )
    if found.detection is not None:
        warn_of_detection(found.detection)
    if found.gone:
        copies = counted(
            found.gone,
            "copy of a notice, at other addresses of the list, is",
            "copies of a notice, at other addresses of the list, are",
        )
        warn(f"{copies} not shown.")
    if found.earlier:
        warn(
            f"{counted(found.earlier, 'copy with an earlier date is', 'copies with an earlier date are')} not shown: "
            f"add --earlier."
        )
    if found.less_similar:
        warn(
            f"{counted(found.less_similar, 'document of its group is less', 'documents of its group are less')} than "
            f"{found.min:g} similar to it: lower --min."
        )
    if found.changed:
        warn(
            f"{counted(found.changed, 'document now has another text', 'documents now have another text')} than the "
            f"one that was compared."
        )
    warn_of_candidates(found.not_compared)
    warn_of_unprocessed(found.unprocessed, index)


def _print_all(
    index: str, answers: Iterable[MovedReport], fields: Sequence[str], output: Path | None, as_json: bool
) -> None:
    """Print one line for each address as soon as its result is known, or write it to the table; then the counts."""
    from es_neardupe.commands.moved.report import moved_table

    seen = _Seen()
    answers = seen.passing(answers, as_json)
    answers = chain(list(islice(answers, 1)), answers)  # an error comes before the heading
    if output is not None:
        write_output(output, moved_table(answers, fields))
    elif as_json:
        deque(answers, 0)
    else:
        print_csv(moved_table(answers, fields))
    seen.report(index)


class _Seen:
    """What was found for a list of addresses."""

    def __init__(self) -> None:
        self._counts: Counter[str] = Counter()
        self._not_compared = self._several = 0
        self._last: MovedReport | None = None

    def passing(self, answers: Iterable[MovedReport], as_json: bool) -> Iterator[MovedReport]:
        """The results as they are counted and, on request, printed as JSON."""
        for found in answers:
            if as_json:
                print_json(found)
            self._counts[found.reason or "found"] += 1
            self._not_compared += found.not_compared
            self._several += found.versions > MAX_VERSIONS and found.best is None
            self._last = found if self._last is None or found.detection is not None else self._last
            yield found

    def report(self, index: str) -> None:
        """Print the counts, and warn of what was not searched."""
        parts = [f"{number:,} {reason}" for reason, number in sorted(self._counts.items())]
        say(f"{counted(self._counts.total(), 'address', 'addresses')}: {'; '.join(parts) or 'the list is empty'}")
        if self._last is None:
            return
        say(_fields(self._last))
        if self._last.detection is not None:
            warn_of_detection(self._last.detection)
        warn_of_unprocessed(self._last.unprocessed, index)
        if self._several:
            without = counted(self._several, "address without a result has", "addresses without a result have")
            warn(
                f"{without} more than {MAX_VERSIONS:,} documents, and only the latest were searched for: name the "
                f"others by their ids."
            )
        warn_of_candidates(self._not_compared)
