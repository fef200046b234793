"""Two texts side by side as rows for a terminal: common passages are in the same row, and long ones are shortened."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

from es_neardupe.keys.text import Range
from es_neardupe.options import Matching
from es_neardupe.pages.panes import Segment, segments, visible_changes
from es_neardupe.similarity.comparison import CompareReport, Side

_FULL = 40
"""Words of a row after which it ends with the next passage."""
_MIN_CUT = 10
"""Minimum number of words that are left out."""
_MIN_SHOWN = 20
"""Minimum number of words that are shown at each end of a long difference."""


@dataclass(frozen=True, slots=True)
class RowPart:
    """A piece of a text in a row."""

    text: str
    """The original characters; empty if words are left out, or only the other text has words here."""
    blocks: tuple[int, ...] = ()
    """The common passages that it is in."""
    opens: tuple[int, ...] = ()
    """The passages that begin with it."""
    closes: tuple[int, ...] = ()
    """The passages that end with it."""
    change: bool = False
    left_out: int = 0
    """Number of words that are left out here."""


@dataclass(slots=True)
class Row:
    """The parts of both texts in one row."""

    a: list[RowPart] = field(default_factory=list)
    b: list[RowPart] = field(default_factory=list)

    @property
    def changes(self) -> int:
        """The number of differing parts, of the text that has more of them."""
        return max(sum(part.change for part in parts) for parts in (self.a, self.b))


def rows(comparison: CompareReport, matching: Matching, context: int) -> Iterator[Row]:
    """The rows of both texts in order. Of common passages, ``context`` words are shown before and after differences."""
    changes = visible_changes(comparison, matching)
    a, b = (_Cut(comparison, matching, k, list(segments(comparison, matching, changes, k))) for k in (0, 1))
    end_a, end_b, words = 0, 0, 0
    row = Row()
    maximum = max(2 * context, _MIN_SHOWN)
    for i, j, size in _chain(comparison, matching):
        row.a += a.ends((end_a, i), maximum, maximum)
        row.b += b.ends((end_b, j), maximum, maximum)
        tail = 0 if (i + size, j + size) == (a.side.words, b.side.words) else context
        head = 0 if (i, j) == (0, 0) and tail else context
        if cut := size > head + tail + _MIN_CUT:
            left = RowPart("", left_out=size - head - tail)
            row.a += [*a.parts((i, i + head)), left]
            row.b += [*b.parts((j, j + head)), left]
        words += max(i - end_a, j - end_b) + (head if cut else size)
        if cut or not size:
            yield row
            row, words, size_left = Row(), 0, tail
        else:
            size_left = size
        row.a += a.parts((i + size - size_left, i + size))
        row.b += b.parts((j + size - size_left, j + size))
        if words > _FULL:
            yield row
            row, words = Row(), 0
        end_a, end_b = i + size, j + size
    if row.a or row.b:
        yield row


class _Cut:
    """A text with its segments."""

    def __init__(self, comparison: CompareReport, matching: Matching, number: int, cut: Sequence[Segment]) -> None:
        self.side: Side = comparison.sides[number]
        self._segments = cut
        self._ends = [one.end for one in cut]
        blocks = comparison.matchings[matching].blocks
        self._places = [(one.a, one.b)[number] for one in blocks]

    def ends(self, words: Range, head: int, tail: int) -> list[RowPart]:
        """The parts at the beginning and the end of a range of words, and the number of words left out between them."""
        first, end = words
        if end - first <= head + tail + _MIN_CUT:
            return self.parts(words)
        left = end - first - head - tail
        return [*self.parts((first, first + head)), RowPart("", left_out=left), *self.parts((end - tail, end))]

    def parts(self, words: Range) -> list[RowPart]:
        """The parts of a range of words, including the characters up to the next word."""
        start, end = self._bound(words[0]), self._bound(words[1])
        parts = []
        for number in range(bisect_left(self._ends, start), len(self._segments)):
            one = self._segments[number]
            if one.start > end or (one.start == end and end < self.side.characters):
                break
            if part := self._part(one, start, end):
                parts.append(part)
        return parts

    def _bound(self, word: int) -> int:
        """Where a word begins. The beginning and the end of the text belong to the first and the last word."""
        if word == 0:
            return 0
        return self.side.characters if word == self.side.words else int(self.side.spans[word, 0])

    def _part(self, one: Segment, start: int, end: int) -> RowPart | None:
        low, high = max(one.start, start), min(one.end, end)
        if one.start == one.end:
            return RowPart("", change=True) if start < one.start or start == 0 else None
        if low >= high:
            return None
        opens = tuple(k for k in one.blocks if self._places[k - 1][0] == low)
        closes = tuple(k for k in one.blocks if self._places[k - 1][1] == high)
        return RowPart(self.side.text[low:high], one.blocks, opens, closes, one.change is not None)


def _chain(comparison: CompareReport, matching: Matching) -> Iterator[tuple[int, int, int]]:
    """The passages in the same order in both texts that have the most words together, then the end of the texts.

    This is the heaviest increasing subsequence, computed by a list of ends in b in which heavier chains end later.
    """
    blocks = comparison.matchings[matching].alignment.blocks.tolist()
    ends: list[int] = []
    best: list[tuple[int, int]] = []  # words of the chain, number of its last block
    before: list[int] = []
    for number, (_, j, size) in enumerate(blocks):
        place = bisect_left(ends, j)
        words, last = best[place - 1] if place else (0, -1)
        before.append(last)
        stop = place
        while stop < len(ends) and best[stop][0] <= words + size:
            stop += 1
        ends[place:stop], best[place:stop] = [j], [(words + size, number)]
    chain = []
    at = best[-1][1] if best else -1
    while at >= 0:
        chain.append(blocks[at])
        at = before[at]
    yield from _apart(chain[::-1])
    yield comparison.a.words, comparison.b.words, 0


def _apart(chain: Sequence[tuple[int, int, int]]) -> Iterator[tuple[int, int, int]]:
    """Shorten passages that overlap, as they may by information matching."""
    end_a, end_b = 0, 0
    for i, j, size in chain:
        shift = max(end_a - i, end_b - j, 0)
        if shift < size:
            end_a, end_b = i + size, j + size
            yield i + shift, j + shift, size - shift
