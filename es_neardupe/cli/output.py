"""Output of the command line: results on stdout, messages on stderr, without the control characters of documents."""

from __future__ import annotations

import json
import logging
import os
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from enum import IntEnum
from io import TextIOWrapper
from math import log10
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TextIO

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from es_neardupe import progress
from es_neardupe.display_text import STEERING, beginning, score_text, without_passwords
from es_neardupe.errors import InputError, NeardupeError
from es_neardupe.json_results import plain
from es_neardupe.log_events import log_event, logged_progress

if TYPE_CHECKING:
    from es_neardupe.similarity.histogram import Histogram
    from es_neardupe.tables import Table as ResultTable


_CONTROLS = re.compile(rf"[\x00-\x1f\x7f-\x9f{STEERING}]")
"""Control characters, and characters that change the direction or the lines of the text around them."""

_FILE_WIDTH = 140
"""Width of tables in a file or a pipe, in columns."""

_shown = [logging.INFO]
"""Minimum level of printed messages."""


def _for_any_text(stream: TextIO | None) -> TextIO:
    """A standard stream that accepts all characters: those that its encoding lacks are escaped. What is written to a
    closed one, for which Python has None, is discarded."""
    if stream is None:
        return Path(os.devnull).open("w", encoding="utf-8")
    if isinstance(stream, TextIOWrapper):
        stream.reconfigure(errors="backslashreplace")
    return stream


sys.stdout, sys.stderr = _for_any_text(sys.stdout), _for_any_text(sys.stderr)

messages = Console(stderr=True, highlight=False, emoji=False)
results = Console(highlight=False, emoji=False, width=None if sys.stdout.isatty() else _FILE_WIDTH)


def printable(value: object) -> str:
    """A value as one line that cannot control a terminal: control characters become U+FFFD. It shows no password in a
    URL.

    Leading blanks are kept, as the indentation of a line.
    """
    text = without_passwords(str(value))
    body = text.lstrip(" ")
    return " " * (len(text) - len(body)) + without_controls(re.sub(r"\s+", " ", body))


def without_controls(text: str) -> str:
    """A text with U+FFFD instead of control characters, otherwise unchanged."""
    return _CONTROLS.sub("\ufffd", text)


def escaped(json: str) -> str:
    """An equivalent line of JSON, with control characters escaped."""
    return _CONTROLS.sub(lambda one: f"\\u{ord(one[0]):04x}", json)


def show_messages(minimum: int | None) -> None:
    """Set the minimum level of printed messages. None: messages are only logged."""
    _shown[0] = logging.CRITICAL + 1 if minimum is None else minimum


def say(message: str) -> None:
    """Print and log a message."""
    _message(logging.INFO, Text(printable(message)))


def warn(message: str) -> None:
    """Print and log a warning."""
    _message(logging.WARNING, Text(printable(message), "yellow"))


def fail(error: NeardupeError) -> None:
    """Print and log the error that ends a command."""
    message = printable(str(error))
    text = Text.assemble(("error:", "bold red"), " ", message)
    more = {"kind": type(error).__name__, "request": error.request or None}
    _message(logging.ERROR, text, "error", message, **more)


def ask(question: str, *, abort: bool = False) -> bool:
    """Ask on stderr, for a command with ``--yes``. ``abort``: end the command if the answer is no.

    Raises `InputError` if nobody can answer, as in a scheduled job.
    """
    try:
        answer = typer.confirm(printable(question), err=True)
    except typer.Abort:
        if sys.stdin.isatty():
            raise
        typer.echo(err=True)
        raise InputError("Nobody answered the question: add --yes to go on without it.") from None
    if abort and not answer:
        raise typer.Abort
    return answer


def _message(level: int, text: Text, event: str = "message", message: str | None = None, **more: Any) -> None:
    log_event(level, event, message=text.plain if message is None else message, **more)
    if level >= _shown[0]:
        messages.print(text, soft_wrap=True)


def show(text: str) -> None:
    """Print one line of a result."""
    results.print(Text(printable(text)), soft_wrap=True)


def as_json_text(value: Any, indent: int | None = None) -> str:
    """A result as JSON in ASCII, without control characters."""
    return json.dumps(plain(value), indent=indent, allow_nan=False)


def print_json(value: Any) -> None:
    """Print one result as one line of JSON, in ASCII.

    An iterator becomes a list. Its elements are written as they are produced, because there may be millions.
    """
    sys.stdout.writelines(_pieces(value))
    sys.stdout.write("\n")


def _pieces(value: Any) -> Iterator[str]:
    if isinstance(value, Mapping):
        yield "{"
        for place, (key, one) in enumerate(value.items()):
            yield f"{', ' * (place > 0)}{as_json_text(str(key))}: "
            yield from _pieces(one)
        yield "}"
    elif isinstance(value, Iterator):
        yield "["
        for place, one in enumerate(value):
            yield f"{', ' * (place > 0)}{as_json_text(one)}"
        yield "]"
    else:
        yield as_json_text(value)


def print_lines(values: Iterable[Any]) -> None:
    """Print results as JSON lines."""
    for value in values:
        sys.stdout.write(as_json_text(value) + "\n")


def print_csv(table: ResultTable) -> None:
    """Print rows as CSV as they are made, with U+FFFD instead of control characters, but for tabs and line breaks in
    values, which are in quotes. In a file or a pipe, it is UTF-8 in any locale."""
    if isinstance(sys.stdout, TextIOWrapper) and not sys.stdout.isatty():
        sys.stdout.reconfigure(encoding="utf-8")
    for line in table.csv_lines():
        sys.stdout.write(re.sub(r"[^\t\n]+", lambda part: without_controls(part[0]), line.replace("\r\n", "\n")) + "\n")


def check_output(output: Path | None) -> None:
    """Raise `SettingsError` or `InputError` if a table cannot be written to this file, as `check_table_file` does."""
    if output is not None:
        from es_neardupe.tables import check_table_file

        check_table_file(output)


def write_output(output: Path, table: ResultTable) -> None:
    """Write the table of ``--output``. Raises as `Table.write` does."""
    table.write(output)
    say(f"Wrote {output}")


def print_table(columns: Iterable[str], rows: Iterable[Iterable[object]], title: str | None = None) -> None:
    """Print rows under their headings. Long values are folded, never cut.

    A column of numbers is aligned right. In a column of numbers and words, the numbers are aligned with each other.
    """
    values = [list(row) for row in rows]
    heading = None if title is None else Text(printable(title))
    table = Table(box=box.SIMPLE_HEAD, title=heading, title_justify="left", pad_edge=False)
    made = []
    for place, name in enumerate(columns):
        cells, justify = _column([row[place] for row in values])
        table.add_column(Text(printable(name)), justify=justify, overflow="fold")
        made.append(cells)
    for row in zip(*made, strict=True):
        table.add_row(*map(Text, row))
    results.print(table)


def _column(values: list[object]) -> tuple[list[str], Literal["left", "right"]]:
    """The cells of a column, and their alignment."""
    cells, numeric = list(map(_cell, values)), list(map(_is_number, values))
    if all(number or value in _NOTHING for value, number in zip(values, numeric, strict=True)):
        return cells, "right" if any(numeric) else "left"
    width = max((len(cell) for cell, number in zip(cells, numeric, strict=True) if number), default=0)
    return [cell.rjust(width) if number else cell for cell, number in zip(cells, numeric, strict=True)], "left"


_NOTHING = (None, "", "-")
_NUMBER = re.compile(r"-?[0-9,]+\.[0-9]+")
"""A formatted number with decimals. Digits alone may be an id."""


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) or (isinstance(value, str) and _NUMBER.fullmatch(value) is not None)


_MIN_CELL = 20
"""Minimum number of characters that a cell shows of a value."""


def value_cells(fields: Mapping[str, str], names: Sequence[str], columns: int) -> list[str]:
    """The named fields of a document as cells of a table that has about so many columns of this width; "" for a
    missing field."""
    width = max(_MIN_CELL, results.width // (columns * max(1, len(names))))
    return [beginning(fields.get(name, ""), width) for name in names]


def _cell(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return score_text(value)
    return printable(value)


@contextmanager
def progress_bars() -> Iterator[progress.Progress]:
    """A progress callback that draws a bar for each stage and logs it. If stderr is not a terminal, it only logs."""
    logged = logged_progress()
    if not messages.is_terminal or _shown[0] > logging.INFO:
        yield logged
        return
    from rich.progress import (
        BarColumn,
        MofNCompleteColumn,
        Progress,
        TextColumn,
        TimeElapsedColumn,
        TimeRemainingColumn,
    )

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TextColumn("{task.fields[rate]}"),
        TimeElapsedColumn(),
        TimeRemainingColumn(),
    )
    with Progress(*columns, console=messages) as bars:
        tasks: dict[str, Any] = {}

        def drawn(stage: str, done: int, total: int | None) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total, rate="")
            speed = bars.tasks[tasks[stage]].speed
            rate = f"{speed:,.0f}/s" if speed else ""
            at = done if total is None else min(done, total)
            bars.update(tasks[stage], completed=at, total=total, rate=rate)
            logged(stage, done, total)

        yield drawn


_CURVE_HEIGHT = 10
_EIGHTHS = " ▁▂▃▄▅▆▇█"


def plot_curve(curve: Sequence[tuple[float, float]], threshold: float) -> None:
    """Plot probabilities, in [0, 1], over similarities as columns, with a caret at the threshold."""
    width = 2
    for level in range(_CURVE_HEIGHT, 0, -1):
        label = f"{level / _CURVE_HEIGHT:4.1f} " if level in (_CURVE_HEIGHT, _CURVE_HEIGHT // 2) else "     "
        columns = (_EIGHTHS[round(8 * min(1, max(0, p * _CURVE_HEIGHT - level + 1)))] * width for _, p in curve)
        results.print(label + "".join(columns), markup=False)
    labels = "".join(f"{s:<{2 * width}.1f}" for s, _ in curve[1::2])
    results.print("     " + " " * width + labels, markup=False)
    column = min(range(len(curve)), key=lambda place: abs(curve[place][0] - threshold))
    results.print("     " + " " * (width * column) + f"^ threshold {threshold:g}", markup=False)


_HISTOGRAM_HEIGHT = 8
_FOOT = 0.5
"""Decades below 1, so that a count of 1 is visible."""


def plot_counts(histogram: Histogram, threshold: float) -> None:
    """Plot counts over similarities as columns on a logarithmic scale, with separate columns for exactly 0 and 1."""
    counts = histogram.bins
    decades = max(1.0, log10(max(1, *counts))) + _FOOT
    heights = [_HISTOGRAM_HEIGHT * (log10(count) + _FOOT) / decades if count else 0.0 for count in counts]
    powers = range(int(decades - _FOOT) + 1)
    rows = {
        min(_HISTOGRAM_HEIGHT - 1, int(_HISTOGRAM_HEIGHT * (power + _FOOT) / decades)): f"{10**power:,}"
        for power in powers
    }
    for level in range(_HISTOGRAM_HEIGHT - 1, -1, -1):
        zero, *bins, one = (_EIGHTHS[round(8 * min(1, max(0, height - level)))] for height in heights)
        label = rows.get(level, "")
        results.print(f"{label:>13} {zero * 2} {''.join(bins)} {one * 2}", markup=False)
    axis = "".join(f"{tenth / 10:<5g}" for tenth in range(10))
    results.print(f"{'':13} =0 {axis}=1", markup=False)
    results.print(f"{'':13}    {'':{round(50 * threshold)}}^ threshold {threshold:g}", markup=False)


class ExitCode(IntEnum):
    """The exit codes; `docs/operations.md` explains them."""

    DONE = 0
    """Success, perhaps with warnings. Also if the reader of the output closed the pipe, as `head` does."""
    FAILED = 1
    """An error, printed in one line; or documents were rejected or skipped; or a question was answered no."""
    USAGE = 2
    """An unknown command or option, or an invalid value or setting. Nothing was written."""
    INTERRUPTED = 130
    """Interrupted by Ctrl-C. Run the same command again to continue."""
