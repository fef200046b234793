"""Which passages two texts have in common: runs of at least ``least`` equal words, found in one of two ways.

*Literal* matching is greedy string tiling (Wise, *String Similarity via Greedy String Tiling and Running Karp-Rabin
Matching*, 1993): the longest common run that is left becomes a tile, its words are used up on both sides, and so on.
Each word is in one tile at most, so a passage that one text has twice and the other once counts once.

*Information* matching asks what one text tells that the other does not: a passage that a text repeats counts
once, in its length too, and runs may overlap.

Texts come as arrays of token hashes (`es_neardupe.keys.token_hashes`): uint64[words]. Both ways give the same result
for (a, b) as for (b, a), with the sides exchanged.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from enum import Enum
from functools import partial
from heapq import heapify, heappop, heappush

import numpy as np
from numpy.typing import NDArray

from es_neardupe.errors import SettingsError
from es_neardupe.keys import window_hashes

__all__ = ["DEFAULT_LEAST", "Alignment", "Matching", "align", "information", "literal"]

U64 = NDArray[np.uint64]
Ints = NDArray[np.int64]

DEFAULT_LEAST = 5
"""Words from which on a common run counts."""


class Matching(str, Enum):
    """The two ways to find common passages."""

    LITERAL = "literal"
    INFORMATION = "information"


@dataclass(frozen=True, slots=True)
class Alignment:
    """The common passages of two texts a and b."""

    words: tuple[int, int]
    """Words of a and of b that count: all of them, or for information matching those that are no repeats."""
    common: int
    """C: words in common passages."""
    blocks: Ints
    """int64[n, 3]: first word in a, first word in b, number of words; by their place in a, then in b."""

    @property
    def longer(self) -> int:
        """L: words of the longer text."""
        return max(self.words)

    @property
    def shorter(self) -> int:
        """S: words of the shorter text."""
        return min(self.words)

    @property
    def chunks(self) -> int:
        """n: the number of common passages."""
        return len(self.blocks)


def align(a: U64, b: U64, matching: Matching, least: int = DEFAULT_LEAST) -> Alignment:
    """`literal` or `information`. Raises `SettingsError` for ``least`` below 1."""
    return {Matching.LITERAL: literal, Matching.INFORMATION: information}[matching](a, b, least)


def literal(a: U64, b: U64, least: int = DEFAULT_LEAST) -> Alignment:
    """Greedy string tiling. Of equally long runs the one with the smaller sum of its two places comes first, then
    the one that is earlier in the text whose first differing word has the smaller hash.

    Identical texts are one passage, however short. Raises `SettingsError` for ``least`` below 1.
    """
    _check(least)
    if np.array_equal(a, b):
        return _identical(a)
    first, second, turned = (b, a, True) if _comes_after(a, b) else (a, b, False)
    tiles = _tiles(first, second, least)
    if turned:
        tiles = tiles[:, [1, 0, 2]]
    blocks = tiles[np.lexsort((tiles[:, 1], tiles[:, 0]))]
    return Alignment((len(a), len(b)), int(blocks[:, 2].sum()), blocks)


def information(a: U64, b: U64, least: int = DEFAULT_LEAST) -> Alignment:
    """What both texts tell. A word is a repeat if it is in a run of ``least`` words that occurred before in its text,
    and not in that former occurrence itself; repeats do not count. ``common`` is the number of counted words that are
    in runs which the other text has too, on the side where they are fewer.

    Each block leads to the first occurrence of the passage in b. Identical texts are wholly common, however short.
    Raises `SettingsError` for ``least`` below 1.
    """
    _check(least)
    if np.array_equal(a, b) and len(a) < least:
        return _identical(a)
    one, other = _Told(a, least), _Told(b, least)
    common = min(one.common(other), other.common(one))
    return Alignment((int(one.counts.sum()), int(other.counts.sum())), common, one.blocks(other))


def _check(least: int) -> None:
    if least < 1:
        raise SettingsError(f"A common passage has at least 1 word, not {least}.")


def _identical(a: U64) -> Alignment:
    return Alignment((len(a), len(a)), len(a), np.array([[0, 0, len(a)]] if len(a) else [], np.int64).reshape(-1, 3))


def _comes_after(a: U64, b: U64) -> bool:
    """An order of texts that does not change when text which is foreign to the other is appended to one."""
    size = min(len(a), len(b))
    different = np.flatnonzero(a[:size] != b[:size])
    return bool(a[different[0]] > b[different[0]]) if different.size else len(a) > len(b)


# -- literal -----------------------------------------------------------------------------------------------------------


def _tiles(a: U64, b: U64, least: int) -> Ints:
    """The tiles in any order: int64[n, 3]."""
    in_a, in_b = window_hashes(a, least), window_hashes(b, least)
    order = np.argsort(in_b, kind="stable")
    ordered = in_b[order]
    low = np.searchsorted(ordered, in_a, "left")
    counts = np.searchsorted(ordered, in_a, "right") - low
    pairs = int(counts.sum())
    if not pairs:
        return np.empty((0, 3), np.int64)
    if pairs > 4 * (len(a) + len(b)) + 1000:  # so repetitive that there is no writing down of all pairs
        return _tiles_by_length(a, b, least)
    starts_a = np.repeat(np.arange(len(in_a)), counts)
    offsets = np.arange(pairs) - np.repeat(np.cumsum(counts) - counts, counts)
    starts_b = order[np.repeat(low, counts) + offsets]
    return _tile(_runs(starts_a, starts_b, len(a), least), len(a), len(b), least)


def _runs(starts_a: Ints, starts_b: Ints, size: int, least: int) -> Ints:
    """Pairs of equal windows -> the longest runs of equal words that they make, each on one diagonal."""
    order = np.argsort((starts_b - starts_a + size) * (size + 1) + starts_a)
    i, j = starts_a[order], starts_b[order]
    first = np.ones(len(i), np.bool_)
    first[1:] = (i[1:] != i[:-1] + 1) | (j[1:] != j[:-1] + 1)
    begin = np.flatnonzero(first)
    lengths = np.diff(begin, append=len(i)) + (least - 1)
    return np.stack((i[begin], j[begin], lengths), axis=1)


def _tile(runs: Ints, size_a: int, size_b: int, least: int) -> Ints:
    """Choose tiles from runs, the longest first.

    A run that is cut by tiles is cut at its ends only, since they are at least as long as it is: what remains is
    one run, which waits for its turn again.
    """
    if not (_overlap(runs[:, 0], runs[:, 2]) or _overlap(runs[:, 1], runs[:, 2])):
        return runs
    used_a, used_b = bytearray(size_a), bytearray(size_b)
    waiting = [(-size, i + j, i, j) for i, j, size in runs.tolist()]
    heapify(waiting)
    tiles = []
    while waiting:
        negative, _, i, j = heappop(waiting)
        start, end = _unused(used_a, used_b, i, j, -negative)
        size = end - start
        if size == -negative:
            used_a[i : i + size] = used_b[j : j + size] = b"\1" * size
            tiles.append((i, j, size))
        elif size >= least:
            heappush(waiting, (-size, i + j + 2 * start, i + start, j + start))
    return np.array(tiles, np.int64).reshape(-1, 3)


def _overlap(starts: Ints, sizes: Ints) -> bool:
    order = np.argsort(starts)
    starts, ends = starts[order], (starts + sizes)[order]
    return bool((starts[1:] < ends[:-1]).any())


def _unused(used_a: bytearray, used_b: bytearray, i: int, j: int, size: int) -> tuple[int, int]:
    """The part of a run that no tile covers, as offsets."""
    free_a, free_b = used_a.find(0, i, i + size), used_b.find(0, j, j + size)
    if free_a < 0 or free_b < 0:
        return 0, 0
    start = max(free_a - i, free_b - j)
    taken_a, taken_b = used_a.find(1, i + start, i + size), used_b.find(1, j + start, j + size)
    end = min(taken_a - i if taken_a >= 0 else size, taken_b - j if taken_b >= 0 else size)
    return start, max(start, end)


def _tiles_by_length(a: U64, b: U64, least: int) -> Ints:
    """The same tiles, for texts that repeat themselves: all tiles of the greatest length left, then of the next.

    There are fewer than sqrt(2 * words) lengths, and each takes sorting the windows of a few lengths.
    """
    ranks = _Ranks(a, b)
    used_a, used_b = np.zeros(len(a), np.bool_), np.zeros(len(b), np.bool_)
    tiles: list[tuple[int, int, int]] = []
    longest = min(len(a), len(b))
    while True:
        free_a, free_b = _free(used_a), _free(used_b)
        longest = min(longest, int(free_a.max(initial=0)), int(free_b.max(initial=0)))
        length = _last(partial(ranks.share, free_a=free_a, free_b=free_b), least, longest)
        if length < least:
            return np.array(tiles, np.int64).reshape(-1, 3)
        tiles += _equal_tiles(ranks.classes(length, free_a, free_b), used_a, used_b, length)
        longest = length - 1


def _free(used: NDArray[np.bool_]) -> Ints:
    """How many words from each on are unused."""
    places = np.arange(len(used))
    taken = np.where(used, places, len(used))
    ends: Ints = np.minimum.accumulate(taken[::-1])[::-1]
    return ends - places


def _last(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The greatest number from ``low`` to ``high`` for which it holds, low - 1 if none; once false, it stays so."""
    low -= 1
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low


class _Ranks:
    """Numbers for the windows of two texts, of any length: equal windows have equal numbers, others other ones.

    Windows of 1, 2, 4, ... words are ranked, each by its two halves (Karp, Miller & Rosenberg 1972); a window of
    another length is covered by two of these.
    """

    def __init__(self, a: U64, b: U64) -> None:
        self._sizes = len(a), len(b)
        numbers = np.unique(np.concatenate((a, b)), return_inverse=True)[1].reshape(-1).astype(np.int64)
        self._levels = [(numbers[: len(a)], numbers[len(a) :])]

    def share(self, size: int, free_a: Ints, free_b: Ints) -> bool:
        """Whether an unused window of a is equal to one of b."""
        (_, one), (_, other) = self._windows(size, free_a, free_b)
        return bool(np.isin(one, other).any())

    def classes(self, size: int, free_a: Ints, free_b: Ints) -> Iterator[tuple[list[int], list[int]]]:
        """The places in a and in b of each window that both have unused."""
        (at_a, one), (at_b, other) = self._windows(size, free_a, free_b)
        common = np.intersect1d(one, other)
        yield from zip(_places(at_a, one, common), _places(at_b, other, common), strict=True)

    def _windows(self, size: int, free_a: Ints, free_b: Ints) -> tuple[tuple[Ints, Ints], tuple[Ints, Ints]]:
        """Where the unused windows of both begin, and their numbers."""
        level = size.bit_length() - 1
        while len(self._levels) <= level:
            self._double()
        shift = size - (1 << level)
        factor = 1 + max(int(ranks.max(initial=0)) for ranks in self._levels[level])
        found = []
        for free, ranks in zip((free_a, free_b), self._levels[level], strict=True):
            places = np.flatnonzero(free >= size)
            found.append((places, ranks[places] * factor + ranks[places + shift]))
        return found[0], found[1]

    def _double(self) -> None:
        half = 1 << (len(self._levels) - 1)
        factor = 1 + max(int(ranks.max(initial=0)) for ranks in self._levels[-1])
        pairs = [ranks[:-half] * factor + ranks[half:] for ranks in self._levels[-1]]
        numbers = np.unique(np.concatenate(pairs), return_inverse=True)[1].reshape(-1).astype(np.int64)
        self._levels.append((numbers[: len(pairs[0])], numbers[len(pairs[0]) :]))


def _places(places: Ints, numbers: Ints, wanted: Ints) -> list[list[int]]:
    """The places that have each wanted number, ascending."""
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    low, high = (np.searchsorted(ordered, wanted, side) for side in ("left", "right"))
    return [places[order[start:end]].tolist() for start, end in zip(low.tolist(), high.tolist(), strict=True)]


def _equal_tiles(
    classes: Iterator[tuple[list[int], list[int]]], used_a: NDArray[np.bool_], used_b: NDArray[np.bool_], size: int
) -> list[tuple[int, int, int]]:
    """The tiles of one length, and mark them as used.

    All windows were unused before, and all tiles are as long as they are, so the two ends of a window tell all.
    """
    fronts = [(iter(in_a), iter(in_b)) for in_a, in_b in classes]
    waiting: list[tuple[int, int, int, int]] = []
    for number, (in_a, in_b) in enumerate(fronts):
        i, j = next(in_a), next(in_b)
        waiting.append((i + j, i, j, number))
    heapify(waiting)
    tiles = []
    while waiting:
        _, i, j, number = heappop(waiting)
        taken_a, taken_b = used_a[i] or used_a[i + size - 1], used_b[j] or used_b[j + size - 1]
        if not (taken_a or taken_b):
            used_a[i : i + size] = used_b[j : j + size] = True
            tiles.append((i, j, size))
            taken_a = taken_b = True
        in_a, in_b = fronts[number]
        later_a = next((at for at in in_a if not (used_a[at] or used_a[at + size - 1])), -1) if taken_a else i
        later_b = next((at for at in in_b if not (used_b[at] or used_b[at + size - 1])), -1) if taken_b else j
        if later_a >= 0 and later_b >= 0:
            heappush(waiting, (later_a + later_b, later_a, later_b, number))
    return tiles


# -- information -------------------------------------------------------------------------------------------------------


class _Told:
    """The windows of a text, and which of its words are no repeats."""

    def __init__(self, text: U64, least: int) -> None:
        self._least = least
        self._windows = window_hashes(text, least)
        self._distinct, self._first, inverse = np.unique(self._windows, return_index=True, return_inverse=True)
        self._earlier = self._first[inverse.reshape(-1)]
        """Where each window occurred first: its own place if that is here."""
        starts = np.maximum(np.arange(len(self._windows)), self._earlier + least)
        again = self._earlier < np.arange(len(self._windows))
        ends = np.arange(len(self._windows)) + least
        self.counts = ~_covered(starts[again], ends[again], len(text))

    def common(self, other: _Told) -> int:
        """How many words that count are in windows that the other text has too."""
        begin = np.flatnonzero(np.isin(self._windows, other._distinct))
        return int((_covered(begin, begin + self._least, len(self.counts)) & self.counts).sum())

    def blocks(self, other: _Told) -> Ints:
        """Runs of first windows that lead to consecutive first windows of the other text."""
        common, mine, theirs = np.intersect1d(self._distinct, other._distinct, return_indices=True)
        if not len(common):
            return np.empty((0, 3), np.int64)
        starts = self._first[mine]
        order = np.argsort(starts)
        i, j = starts[order], other._first[theirs][order]
        fresh = np.ones(len(i), np.bool_)
        fresh[1:] = (i[1:] != i[:-1] + 1) | (j[1:] != j[:-1] + 1)
        begin = np.flatnonzero(fresh)
        return np.stack((i[begin], j[begin], np.diff(begin, append=len(i)) + self._least - 1), axis=1)


def _covered(starts: Ints, ends: Ints, size: int) -> NDArray[np.bool_]:
    """Which of ``size`` words are in any of the intervals."""
    depth = np.zeros(size + 1, np.int64)
    np.add.at(depth, starts, 1)
    np.add.at(depth, ends, -1)
    return np.cumsum(depth)[:-1] > 0
