"""A text cut where passages and changes begin and end."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from es_neardupe.keys.arrays import Flags
from es_neardupe.keys.shingles import window_hashes
from es_neardupe.options import Matching
from es_neardupe.similarity.comparison import Comparison

__all__ = ["Changes", "Segment", "segments", "visible_changes"]

Range = tuple[int, int]
Changes = Mapping[int, tuple[list[Range], list[Range]]]
"""The parts of a and of b, in characters, that each change by its number is made of."""


@dataclass(frozen=True, slots=True)
class Segment:
    """A part of a text. All together are the whole text, in order."""

    start: int
    """First character; ``end`` is the one after the last, and equal where the other text has more words."""
    end: int
    blocks: tuple[int, ...] = ()
    """The common passages it is in, counted from 1 by their place in a; several for information matching only."""
    change: int | None = None
    """The change it is in, counted from 1."""


def visible_changes(comparison: Comparison, matching: Matching) -> Changes:
    """The changes by number, as ranges of characters in a and in b.

    For information matching, words that the other text tells too, wherever it does, are no change.
    """
    told = [_told(comparison, side) if matching is Matching.INFORMATION else None for side in (0, 1)]
    found = {}
    for number, change in enumerate(comparison.changes, 1):
        parts = [
            [side.place(part) for part in _untold(words, known)]
            for side, words, known in zip(comparison.sides, change, told, strict=True)
        ]
        if not any(parts):
            continue
        for side, words, part in zip(comparison.sides, change, parts, strict=True):
            if not part:
                part.append(side.place((words[0], words[0])))
        found[number] = parts[0], parts[1]
    return found


def _told(comparison: Comparison, side: int) -> Flags:
    """Which words of a text are in a run of w words that the other text has."""
    windows = [window_hashes(hashes, comparison.shingle) for hashes in comparison.hashes]
    depth = np.zeros(len(comparison.hashes[side]) + 1, np.int64)
    begin = np.flatnonzero(np.isin(windows[side], windows[1 - side]))
    np.add.at(depth, begin, 1)
    np.add.at(depth, begin + comparison.shingle, -1)
    return np.cumsum(depth)[:-1] > 0


def _untold(words: Range, told: Flags | None) -> list[Range]:
    """The parts of a range of words that are not told; itself, unless empty, where nothing is known of that."""
    first, end = words
    if told is None or first == end:
        return [words] if first < end else []
    edges = np.flatnonzero(np.diff(told[first:end].astype(np.int8), prepend=1, append=1))
    return [(first + start, first + stop) for start, stop in edges.reshape(-1, 2).tolist()]


def segments(comparison: Comparison, matching: Matching, changes: Changes, side: int) -> Iterator[Segment]:
    """Cut the text of a side (0 for a, 1 for b) by its passages and by `visible_changes`.

    There are at most twice as many segments as passages and changes, and one more.
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
        ends_first = sorted(events.get(at, ()))
        for step, kind, number in ends_first:
            if step == 0:
                yield Segment(at, at, (), number)
            elif kind == "block":
                (open_blocks.add if step > 0 else open_blocks.discard)(number)
            else:
                change = number if step > 0 else None
        if at < characters:
            yield Segment(at, min(following, characters), tuple(sorted(open_blocks)), change)
