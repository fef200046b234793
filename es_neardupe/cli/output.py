"""How results and messages are shown: results on stdout, everything else on stderr, nothing raw from documents."""

from __future__ import annotations

import json
import logging
import math
import re
import sys
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import fields, is_dataclass
from enum import Enum, IntEnum
from typing import Any, Protocol

from rich import box
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn, TimeRemainingColumn
from rich.table import Table
from rich.text import Text

from es_neardupe import progress
from es_neardupe.cli.phrasing import phrase
from es_neardupe.display_text import STEERING, beginning
from es_neardupe.errors import NeardupeError
from es_neardupe.log_events import log_event, logged_progress

__all__ = [
    "ExitCode",
    "as_json_text",
    "escaped",
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
    "show_messages",
    "value_cells",
    "warn",
    "without_controls",
]


_CONTROLS = re.compile(rf"[\x00-\x1f\x7f-\x9f{STEERING}]")
"""Control characters, and those that steer the text around them."""

_FORMULA = ("=", "+", "-", "@", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""With what cells begin that a spreadsheet would compute."""

_FILE_WIDTH = 140
"""Columns of tables that go into a file or a pipe."""

_shown = [logging.INFO]
"""The least level of messages that are printed."""

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


def escaped(json: str) -> str:
    """A line of JSON that says the same and cannot steer a terminal."""
    return _CONTROLS.sub(lambda one: f"\\u{ord(one[0]):04x}", json)


def harmless_cell(text: str) -> str:
    """A cell of CSV that steers no terminal, and that no spreadsheet takes for a formula."""
    plain = without_controls(text)
    return f"'{plain}" if plain.startswith(_FORMULA) else plain


def show_messages(minimum: int | None) -> None:
    """From which level on messages are printed; None: they are events of the log only."""
    _shown[0] = logging.CRITICAL + 1 if minimum is None else minimum


def say(message: str) -> None:
    """A message for the person at the terminal."""
    _message(logging.INFO, Text(printable(phrase(message))))


def warn(message: str) -> None:
    """Something the person should know."""
    _message(logging.WARNING, Text(printable(phrase(message)), "yellow"))


def fail(error: NeardupeError) -> None:
    """The error that ends a command."""
    message = printable(phrase(str(error)))
    text = Text.assemble(("error:", "bold red"), " ", message)
    more = {"kind": type(error).__name__, "request": error.request or None}
    _message(logging.ERROR, text, "error", message, **more)


def _message(level: int, text: Text, event: str = "message", message: str | None = None, **more: Any) -> None:
    log_event(level, event, message=text.plain if message is None else message, **more)
    if level >= _shown[0]:
        messages.print(text, soft_wrap=True)


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
    if isinstance(value, tuple) and hasattr(value, "_asdict"):
        value = value._asdict()
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
    """Rows under their headings; numbers are aligned right, also among words. Long values are folded, never cut."""
    made = [list(row) for row in rows]
    heading = None if title is None else Text(printable(title))
    table = Table(box=box.SIMPLE_HEAD, title=heading, title_justify="left", pad_edge=False)
    for place, name in enumerate(columns):
        cells = [row[place] for row in made if row[place] not in _NOTHING]
        numeric = bool(cells) and all(map(_is_number, cells))
        table.add_column(Text(printable(name)), justify="right" if numeric else "left", overflow="fold")
    for row in made:
        table.add_row(*(Text(_cell(value), justify="right" if _is_number(value) else None) for value in row))
    results.print(table)


_NOTHING = (None, "", "-")
_NUMBER = re.compile(r"-?[0-9,]+\.[0-9]+")
"""A number with decimals that somebody else has formatted; digits alone may be an id."""


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) or (isinstance(value, str) and _NUMBER.fullmatch(value) is not None)


class Located(Protocol):
    """A document, or something about it."""

    @property
    def index(self) -> str: ...
    @property
    def id(self) -> str: ...


def named(document: Located, several: bool) -> str:
    """A document in a table: its id, with its index where ``several`` are involved."""
    return f"{document.index}/{document.id}" if several else document.id


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
        return f"{value:.4f}"
    return printable(value)


@contextmanager
def progress_bars() -> Iterator[progress.Progress]:
    """A bar for each stage, with rate and remaining time; where stderr is no terminal, events of the log only."""
    logged = logged_progress()
    if not messages.is_terminal or _shown[0] > logging.INFO:
        yield logged
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

        def drawn(stage: str, done: int, total: int | None) -> None:
            if stage not in tasks:
                tasks[stage] = bars.add_task(stage, total=total, rate="")
            speed = bars.tasks[tasks[stage]].speed
            rate = f"{speed:,.0f}/s" if speed else ""
            at = done if total is None else min(done, total)
            bars.update(tasks[stage], completed=at, total=total, rate=rate)
            logged(stage, done, total)

        yield drawn


def by_measure(measure: str, similarity: float) -> dict[str, Any]:
    """The similarity of a pair: ``resemblance``, or the name of another measure and its value."""
    if measure == "resemblance":
        return {"resemblance": similarity}
    return {"measure": measure, "similarity": similarity}


class ExitCode(IntEnum):
    """The exit codes; `docs/operations.md` explains them."""

    DONE = 0
    """All was done; there may be warnings. Also where the reader of the output closed it, as `head` does."""
    FAILED = 1
    """An error, said in one line; or documents were refused or left; or a question was answered no."""
    USAGE = 2
    """An unknown command or option, or a value that is not valid: nothing was written."""
    INTERRUPTED = 130
    """Ctrl-C: the same command can be run again."""
