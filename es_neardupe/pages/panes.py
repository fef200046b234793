"""Two texts side by side, cut into passages and differences: segments, and the panes that a page shows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise
from typing import Any
from unicodedata import bidirectional

import numpy as np

from es_neardupe.display_text import shown
from es_neardupe.keys.arrays import Flags
from es_neardupe.keys.shingles import window_hashes
from es_neardupe.keys.text import Range
from es_neardupe.options import Matching
from es_neardupe.similarity.comparison import CompareReport, Side
from es_neardupe.similarity.facts.differing import Fact

Changes = Mapping[int, tuple[list[Range], list[Range]]]
"""For each change, by its number: its parts in a and in b, as ranges of characters."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a text. The segments of a text are its characters in order, without gaps."""

    start: int
    """First character. ``end`` is the one after the last; an empty segment marks words that only the other text has."""
    end: int
    blocks: tuple[int, ...] = ()
    """The common passages it is in, counted from 1 by their position in a; several only for information matching."""
    change: int | None = None
    """The change it is in, counted from 1."""


def visible_changes(comparison: CompareReport, matching: Matching) -> Changes:
    """The changes by number, as ranges of characters in a and in b.

    For information matching, words in a passage that occurs anywhere in the other text are not part of a change.
    """
    common = [_in_both(comparison, side) if matching is Matching.INFORMATION else None for side in (0, 1)]
    visible = {}
    for number, change in enumerate(comparison.changes, 1):
        parts = [
            [side.place(part) for part in _without(words, in_both)]
            for side, words, in_both in zip(comparison.sides, change, common, strict=True)
        ]
        if not any(parts):
            continue
        for side, words, part in zip(comparison.sides, change, parts, strict=True):
            if not part:
                part.append(side.place((words[0], words[0])))
        visible[number] = parts[0], parts[1]
    return visible


def _in_both(comparison: CompareReport, side: int) -> Flags:
    """Whether each word of a text is in a run of w words that the other text has: bool[words]."""
    windows = [window_hashes(hashes, comparison.passage) for hashes in comparison.hashes]
    depth = np.zeros(len(comparison.hashes[side]) + 1, np.int64)
    begin = np.flatnonzero(np.isin(windows[side], windows[1 - side]))
    np.add.at(depth, begin, 1)
    np.add.at(depth, begin + comparison.passage, -1)
    return np.cumsum(depth)[:-1] > 0


def _without(words: Range, flags: Flags | None) -> list[Range]:
    """The parts of a range of words that are not flagged; without flags the range itself, unless it is empty."""
    first, end = words
    if flags is None or first == end:
        return [words] if first < end else []
    edges = np.flatnonzero(np.diff(flags[first:end].astype(np.int8), prepend=1, append=1))
    return [(first + start, first + stop) for start, stop in edges.reshape(-1, 2).tolist()]


def segments(comparison: CompareReport, matching: Matching, changes: Changes, side: int) -> Iterator[Segment]:
    """Split the text of a side (0 for a, 1 for b) at its passages and `visible_changes`.

    For n passages and changes, there are at most 2 n + 1 segments.
    """
    events: dict[int, list[tuple[int, str, int]]] = {}
    for number, block in enumerate(comparison.matchings[matching].blocks, 1):
        start, end = (block.a, block.b)[side]
        events.setdefault(start, []).append((1, "block", number))
        events.setdefault(end, []).append((-1, "block", number))
    for number, parts in changes.items():
        for start, end in parts[side]:
            events.setdefault(start, []).append((1 if start < end else 0, "change", number))
            if start < end:
                events.setdefault(end, []).append((-1, "change", number))
    yield from _swept(events, comparison.sides[side].characters)


def _swept(events: Mapping[int, list[tuple[int, str, int]]], characters: int) -> Iterator[Segment]:
    open_blocks: set[int] = set()
    change: int | None = None
    for at, following in pairwise(sorted({0, characters, *events, characters + 1})):
        for step, kind, number in sorted(events.get(at, ())):  # ends before starts
            if step == 0:
                yield Segment(at, at, (), number)
            elif kind == "block":
                (open_blocks.add if step > 0 else open_blocks.discard)(number)
            elif step > 0:
                change = number
            elif change == number:  # two changes may share the character that their words come from
                change = None
        if at < characters:
            yield Segment(at, min(following, characters), tuple(sorted(open_blocks)), change)


MAX_SHOWN = 1_000_000
"""Characters of each text that a page shows."""

_COLOURS = 8


@dataclass(frozen=True, slots=True)
class Piece:
    """A segment prepared for the template."""

    text: str
    blocks: tuple[int, ...]
    change: int | None
    colour: int
    first: int | None
    """The passage that begins here."""
    words: int
    """Number of words of the passage that begins here."""
    begins: bool
    """Whether it is the first part of its change in this text."""


@dataclass(frozen=True, slots=True)
class Pane:
    """One of the two texts."""

    side: Side
    pieces: tuple[Piece, ...]
    direction: str
    """``ltr`` or ``rtl``."""
    cut: int
    """Number of characters at the end that are not shown."""


def panes(comparison: CompareReport, matching: Matching, changes: Changes) -> tuple[Pane, Pane]:
    """Both texts with their `visible_changes`. Only the beginning of a text longer than `MAX_SHOWN` is shown."""
    one, other = (_pane(comparison, matching, changes, number) for number in (0, 1))
    return one, other


def _pane(comparison: CompareReport, matching: Matching, changes: Changes, number: int) -> Pane:
    side = comparison.sides[number]
    pieces = tuple(_pieces(comparison, matching, changes, number))
    return Pane(side, pieces, _direction(side.text), max(side.characters - MAX_SHOWN, 0))


def _pieces(comparison: CompareReport, matching: Matching, changes: Changes, number: int) -> Iterator[Piece]:
    side = comparison.sides[number]
    blocks = comparison.matchings[matching].blocks
    seen: set[int] = set()
    begun: set[int | None] = {None}
    for one in segments(comparison, matching, changes, number):
        if one.start >= MAX_SHOWN:
            return
        yield _piece(side, one, seen, {k: blocks[k - 1].words for k in one.blocks}, one.change not in begun)
        seen.update(one.blocks)
        begun.add(one.change)


def _piece(side: Side, one: Segment, seen: set[int], words: Mapping[int, int], begins: bool) -> Piece:
    first = next((number for number in one.blocks if number not in seen), None)
    text = shown(side.text[one.start : min(one.end, MAX_SHOWN)])
    colour = ((one.blocks[-1] if first is None else first) - 1) % _COLOURS if one.blocks else 0
    return Piece(text, one.blocks, one.change, colour, first, words[first] if first else 0, begins)


def _direction(text: str) -> str:
    """The writing direction of a text, by its first letter. (Browsers would determine it again for each passage.)"""
    strong = (bidirectional(char) for char in text[:MAX_SHOWN])
    return "rtl" if next((kind for kind in strong if kind in ("L", "R", "AL")), "L") != "L" else "ltr"


def facts(comparison: CompareReport, changes: Changes, maximum: int) -> list[dict[str, Any]]:
    """The first facts that differ, each with the number of its first change."""
    return [_fact(one, changes) for one in comparison.facts[:maximum]]


def _fact(fact: Fact, changes: Changes) -> dict[str, Any]:
    numbers = (k for k, (in_a, in_b) in changes.items() if _touch(fact.a, in_a[0]) and _touch(fact.b, in_b[0]))
    kinds = ", ".join(kind.value for kind in fact.kinds)
    return {"kinds": kinds, "a": shown(fact.words_a), "b": shown(fact.words_b), "change": next(numbers, None)}


def _touch(one: tuple[int, int], other: tuple[int, int]) -> bool:
    return one[0] <= other[1] and other[0] <= one[1]
