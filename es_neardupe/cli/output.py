"""How results and messages are shown: results on stdout, everything else on stderr, nothing raw from documents."""

from __future__ import annotations

import json
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from enum import Enum
from typing import Any

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from es_neardupe import progress
from es_neardupe.markup import STEERING
from es_neardupe.records import Address

__all__ = [
    "as_json_text",
    "fail",
    "harmless_cell",
    "named",
    "plain",
    "print_json",
    "print_lines",
    "print_table",
    "printable",
    "progress_bars",
    "results",
    "say",
    "show",
    "warn",
    "without_controls",
]

_CONTROLS = re.compile(rf"[\x00-\x1f\x7f-\x9f{STEERING}]")
"""Control characters, and those that steer the text around them."""

_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""With what cells begin that a spreadsheet would compute."""

_FILE_WIDTH = 140
"""Columns of tables that go into a file or a pipe."""

messages = Console(stderr=True, highlight=False, emoji=False)
results = Console(highlight=False, emoji=False, width=None if sys.stdout.isatty() else _FILE_WIDTH)


def printable(value: object) -> str:
    """A value from outside in one line that cannot steer a terminal: control characters show as U+FFFD.

    Blanks at the beginning stay, since lines of ours are set in by them.
    """
    text = str(value)
    body = text.lstrip(" ")
    return " " * (len(text) - len(body)) + without_controls(re.sub(r"\s+", " ", body))


def without_controls(text: str) -> str:
    """A text that cannot steer a terminal, otherwise as it is."""
    return _CONTROLS.sub("\ufffd", text)


def harmless_cell(text: str) -> str:
    """A cell of CSV that steers no terminal, and that no spreadsheet takes for a formula."""
    plain = without_controls(text)
    return f"'{plain}" if plain.startswith(_FORMULA) else plain


def say(message: str) -> None:
    """A message for the person at the terminal."""
    messages.print(Text(printable(message)), soft_wrap=True)


def warn(message: str) -> None:
    """Something the person should know."""
    messages.print(Text(printable(message), "yellow"), soft_wrap=True)


def fail(error: object) -> None:
    """The one line of a command that cannot go on."""
    messages.print(Text.assemble(("error:", "bold red"), " ", printable(error)), soft_wrap=True)


def show(text: str) -> None:
    """A line of a result."""
    results.print(Text(printable(text)), soft_wrap=True)


def plain(value: Any) -> Any:
    """Records as the types that JSON knows; names that begin with _ are left out, and numbers that it has none for
    are None."""
    if isinstance(value, float) and not math.isfinite(value):
        return None
    if is_dataclass(value) and not isinstance(value, type):
        return {f.name: plain(getattr(value, f.name)) for f in fields(value) if not f.name.startswith("_")}
    if isinstance(value, Enum):
        return value.value
    if isinstance(value, Mapping):
        return {str(key): plain(one) for key, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    return value


def as_json_text(value: Any, indent: int | None = None) -> str:
    """A result as JSON, escaped to ASCII without any control character."""
    return json.dumps(plain(value), indent=indent, allow_nan=False).replace("\x7f", "\\u007f")


def print_json(value: Any) -> None:
    """One result as one line of JSON. Escaped to ASCII, so that any terminal and any text survive it.

    An iterator becomes a list whose elements are written while they are made: it may have millions.
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
    """Results as JSON lines."""
    for value in values:
        sys.stdout.write(as_json_text(value) + "\n")


def print_table(columns: Iterable[str], rows: Iterable[Iterable[object]], title: str | None = None) -> None:
    """Rows under their heads; numbers are set to the right. Long values are folded, never cut."""
    made = [list(row) for row in rows]
    heading = None if title is None else Text(printable(title))
    table = Table(box=box.SIMPLE_HEAD, title=heading, title_justify="left", pad_edge=False)
    for place, name in enumerate(columns):
        numeric = all(isinstance(row[place], int | float) for row in made) and bool(made)
        table.add_column(Text(printable(name)), justify="right" if numeric else "left", overflow="fold")
    for row in made:
        table.add_row(*(Text(_cell(value)) for value in row))
    results.print(table)


def named(address: Address, several: bool) -> str:
    """A document in a table: its id, with its index where ``several`` are involved."""
    return f"{address[0]}/{address[1]}" if several else address[1]


def _cell(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return {True: "yes", False: "no", None: "-"}[value]
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.4f}"
    return printable(value)


@contextmanager
def progress_bars() -> Iterator[progress.Progress]:
    """A bar for each stage, with rate and remaining time; nothing where stderr is no terminal."""
    if not messages.is_terminal:
        yield progress.silent
        return
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

        def told(stage: str, done: int, total: int | None) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total, rate="")
            speed = bars.tasks[tasks[stage]].speed
            rate = f"{speed:,.0f}/s" if speed else ""
            at = done if total is None else min(done, total)
            bars.update(tasks[stage], completed=at, total=total, rate=rate)

        yield told
