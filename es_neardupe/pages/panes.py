"""The texts of a comparison as panes that stand side by side, cut into passages and differences."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any
from unicodedata import bidirectional

from es_neardupe.display_text import shown
from es_neardupe.options import Matching
from es_neardupe.pages.segments import Changes, Segment, segments
from es_neardupe.similarity.comparison import Comparison, Side
from es_neardupe.similarity.differing_facts import Fact

__all__ = ["MAX_SHOWN", "Pane", "Piece", "facts", "panes"]

MAX_SHOWN = 1_000_000
"""Characters of each text that a page shows."""

_COLOURS = 8


@dataclass(frozen=True, slots=True)
class Piece:
    """A segment as the template needs it."""

    text: str
    blocks: tuple[int, ...]
    change: int | None
    colour: int
    first: int | None
    """The passage that begins here."""
    words: int
    """Its words."""


@dataclass(frozen=True, slots=True)
class Pane:
    """One of the two texts."""

    side: Side
    pieces: tuple[Piece, ...]
    direction: str
    """``ltr`` or ``rtl``."""
    cut: int
    """Characters at the end that are not shown."""


def panes(comparison: Comparison, matching: Matching, changes: Changes) -> tuple[Pane, Pane]:
    """Both texts with what `visible_changes` tells. Of texts longer than `MAX_SHOWN`, the beginning is shown."""
    one, other = (_pane(comparison, matching, changes, number) for number in (0, 1))
    return one, other


def _pane(comparison: Comparison, matching: Matching, changes: Changes, number: int) -> Pane:
    side = comparison.sides[number]
    pieces = tuple(_pieces(comparison, matching, changes, number))
    return Pane(side, pieces, _direction(side.text), max(side.characters - MAX_SHOWN, 0))


def _pieces(comparison: Comparison, matching: Matching, changes: Changes, number: int) -> Iterator[Piece]:
    side = comparison.sides[number]
    blocks = comparison.matchings[matching].blocks
    seen: set[int] = set()
    for one in segments(comparison, matching, changes, number):
        if one.start >= MAX_SHOWN:
            return
        yield _piece(side, one, seen, {k: blocks[k - 1].words for k in one.blocks})
        seen.update(one.blocks)


def _piece(side: Side, one: Segment, seen: set[int], words: Mapping[int, int]) -> Piece:
    first = next((number for number in one.blocks if number not in seen), None)
    text = shown(side.text[one.start : min(one.end, MAX_SHOWN)])
    colour = ((one.blocks[-1] if first is None else first) - 1) % _COLOURS if one.blocks else 0
    return Piece(text, one.blocks, one.change, colour, first, words[first] if first else 0)


def _direction(text: str) -> str:
    """How a text runs, by its first letter. (Browsers find it too, but anew for each passage of a long text.)"""
    strong = (bidirectional(char) for char in text[:MAX_SHOWN])
    return "rtl" if next((kind for kind in strong if kind in ("L", "R", "AL")), "L") != "L" else "ltr"


def facts(found: Comparison, changes: Changes, maximum: int) -> list[dict[str, Any]]:
    """The first facts that differ, each with the number of the first change that it is made of."""
    return [_fact(one, changes) for one in found.facts[:maximum]]


def _fact(fact: Fact, changes: Changes) -> dict[str, Any]:
    there = (number for number, (in_a, in_b) in changes.items() if _touch(fact.a, in_a[0]) and _touch(fact.b, in_b[0]))
    kinds = ", ".join(kind.value for kind in fact.kinds)
    return {"kinds": kinds, "a": shown(fact.words_a), "b": shown(fact.words_b), "change": next(there, None)}


def _touch(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]
