"""The page of a comparison: one file that needs no network, with everything from the documents escaped."""

from __future__ import annotations

import base64
import hashlib
import os
import re
import stat
import tempfile
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from typing import Any
from unicodedata import bidirectional

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup

from es_neardupe.alignment import Matching
from es_neardupe.comparison import Comparison, Side
from es_neardupe.errors import InputError
from es_neardupe.facts import Fact
from es_neardupe.report.segments import Segment, segments, visible_changes
from es_neardupe.scoring import MEANINGS

__all__ = ["MAX_SHOWN", "page", "write_page"]

MAX_SHOWN = 1_000_000
"""Characters of each text that a page shows."""

_MOST_FACTS = 200
_COLOURS = 8
_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")

Changes = Mapping[int, tuple[list[tuple[int, int]], list[tuple[int, int]]]]


@dataclass(frozen=True, slots=True)
class _Piece:
    """A segment as the template needs it."""

    text: str
    blocks: tuple[int, ...]
    change: int | None
    colour: int
    first: int | None
    """The passage that begins here."""
    words: int
    """Its words."""


def page(comparison: Comparison, matching: Matching = Matching.LITERAL) -> str:
    """The page as HTML; ``matching`` is shown first.

    Script and style are inline and named by their hashes, so that a browser runs nothing else and loads nothing.
    Of texts longer than `MAX_SHOWN`, the beginning is shown, and the page says so.
    """
    environment = Environment(
        loader=PackageLoader("es_neardupe.report", ""),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style, script = (files("es_neardupe.report").joinpath(name).read_text("utf-8") for name in ("page.css", "page.js"))
    changes = {one: visible_changes(comparison, one) for one in Matching}
    return environment.get_template("page.html.j2").render(
        comparison=comparison,
        matching=matching,
        matchings=list(Matching),
        meanings=MEANINGS,
        panes={one: [list(_pieces(comparison, one, changes[one], side)) for side in (0, 1)] for one in Matching},
        numbers={one: sorted(found) for one, found in changes.items()},
        directions=[_direction(side.text) for side in comparison.sides],
        cut=[_cut(side) for side in comparison.sides],
        facts=[_fact(one, changes[Matching.LITERAL]) for one in comparison.facts[:_MOST_FACTS]],
        more_facts=max(len(comparison.facts) - _MOST_FACTS, 0),
        style=Markup(style),  # noqa: S704 - our own files
        script=Markup(script),  # noqa: S704
        style_hash=_hash(style),
        script_hash=_hash(script),
        shown=_shown,
    )


def _pieces(comparison: Comparison, matching: Matching, changes: Changes, number: int) -> Iterator[_Piece]:
    side = comparison.sides[number]
    blocks = comparison.matchings[matching].blocks
    seen: set[int] = set()
    for one in segments(comparison, matching, changes, number):
        if one.start >= MAX_SHOWN:
            return
        yield _piece(side, one, seen, {k: blocks[k - 1].words for k in one.blocks})
        seen.update(one.blocks)


def _piece(side: Side, one: Segment, seen: set[int], words: Mapping[int, int]) -> _Piece:
    first = next((number for number in one.blocks if number not in seen), None)
    text = _shown(side.text[one.start : min(one.end, MAX_SHOWN)])
    colour = ((one.blocks[-1] if first is None else first) - 1) % _COLOURS if one.blocks else 0
    return _Piece(text, one.blocks, one.change, colour, first, words[first] if first else 0)


def _shown(text: str) -> str:
    """Text as a file can hold it and a browser shows it: control characters and halves of characters as U+FFFD."""
    return _UNPRINTABLE.sub("\ufffd", text)


def _direction(text: str) -> str:
    """How a text runs, by its first letter. (Browsers find it too, but anew for each passage of a long text.)"""
    strong = (bidirectional(char) for char in text[:MAX_SHOWN])
    return "rtl" if next((kind for kind in strong if kind in ("L", "R", "AL")), "L") != "L" else "ltr"


def _cut(side: Side) -> int:
    """Characters of a text that the page does not show."""
    return max(side.characters - MAX_SHOWN, 0)


def _fact(fact: Fact, changes: Changes) -> dict[str, Any]:
    """A fact with the number of the first change that it is made of."""
    there = (number for number, (in_a, in_b) in changes.items() if _touch(fact.a, in_a[0]) and _touch(fact.b, in_b[0]))
    kinds = ", ".join(kind.value for kind in fact.kinds)
    return {"kinds": kinds, "a": _shown(fact.words_a), "b": _shown(fact.words_b), "change": next(there, None)}


def _touch(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]


def _hash(content: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(content.encode()).digest()).decode()


def write_page(file: Path, content: str) -> None:
    """Write the file, or leave what was there as it was. Raises `InputError` where it cannot be written."""
    if file.exists() and not file.is_file():
        raise InputError(f"{file} is {'a folder' if file.is_dir() else 'no ordinary file'}: name the file to write.")
    try:
        handle, name = tempfile.mkstemp(dir=file.parent, suffix=".tmp")
        temporary = Path(name)
        try:
            with os.fdopen(handle, "w", encoding="utf-8", newline="") as stream:
                stream.write(content)
            temporary.chmod(stat.S_IMODE(file.stat().st_mode) if file.exists() else 0o666 & ~_mask())
            temporary.replace(file)
        finally:
            temporary.unlink(missing_ok=True)
    except OSError as error:
        raise InputError(f"{file} cannot be written: {error.strerror or error}.") from error


def _mask() -> int:
    """What the user takes from new files, which can be read by setting it only."""
    mask = os.umask(0)
    os.umask(mask)
    return mask
