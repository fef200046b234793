"""Greedy string tiling: the longest common runs of two texts first, each word in at most one tile.

Texts with many repetitions have too many pairs of equal windows to list them all; they are tiled in rounds.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from heapq import heapify, heappop, heappush
from itertools import chain
from typing import NamedTuple

import numpy as np

from es_neardupe.keys.arrays import U64, Flags, Ints
from es_neardupe.keys.shingles import window_hashes

_Waiting = tuple[int, int, int, int]

_FIRST = 256
"""Runs processed before the other runs are filtered for the first time."""


class EqualWindows(NamedTuple):
    """The pairs of equal windows of two texts."""

    order: Ints
    """The numbers of the windows of the second text, sorted by their hashes."""
    low: Ints
    """For each window of the first text: the position of the first equal window in ``order``."""
    counts: Ints
    """For each window of the first text: the number of equal windows."""

    @classmethod
    def of(cls, one: U64 | Ints, other: U64 | Ints) -> EqualWindows:
        order = np.argsort(other, kind="stable")
        ordered = other[order]
        low = np.searchsorted(ordered, one, "left")
        return cls(order, low, np.searchsorted(ordered, one, "right") - low)

    @property
    def pairs(self) -> int:
        return int(self.counts.sum())

    def places(self) -> tuple[Ints, Ints]:
        """All pairs: numbers of windows of the first text and of the second."""
        offsets = np.arange(self.pairs) - np.repeat(np.cumsum(self.counts) - self.counts, self.counts)
        return np.repeat(np.arange(len(self.low)), self.counts), self.order[np.repeat(self.low, self.counts) + offsets]


def runs_of(i: Ints, j: Ints, minimum: int) -> Ints:
    """The maximal runs of equal words formed by the pairs of equal windows ``(i[k], j[k])``, each on one diagonal:
    int64[n, 3], first word in both texts, number of words."""
    width = int(i.max(initial=0)) + 2
    order = np.argsort((j - i + width) * width + i)
    return join_windows(i[order], j[order], minimum)


def join_windows(i: Ints, j: Ints, minimum: int) -> Ints:
    """Join pairs of equal windows of ``minimum`` words that follow each other in both texts.

    Returns one row (start in a, start in b, words) for each run, int64 of shape (n, 3).
    """
    fresh = np.ones(len(i), np.bool_)
    fresh[1:] = (i[1:] != i[:-1] + 1) | (j[1:] != j[:-1] + 1)
    begin = np.flatnonzero(fresh)
    lengths = np.diff(begin, append=len(i)) + (minimum - 1)
    return np.stack((i[begin], j[begin], lengths), axis=1)


def choose(runs: Ints, size_a: int, size_b: int, minimum: int) -> Ints:
    """Choose tiles from runs, the longest first.

    Tiles overlap a run only at its ends, since they are at least as long as the run: what remains is one run, which is
    queued again. In texts with many repetitions, most runs are covered before their turn; they are filtered out from
    time to time.
    """
    if not (_overlap(runs[:, 0], runs[:, 2]) or _overlap(runs[:, 1], runs[:, 2])):
        return runs
    used_a, used_b = bytearray(size_a), bytearray(size_b)
    runs = runs[np.lexsort((runs[:, 0], runs[:, 0] + runs[:, 1], -runs[:, 2]))]
    waiting: list[_Waiting] = []
    chosen: list[tuple[int, int, int]] = []
    step = _FIRST
    while len(runs) or waiting:
        waiting += [(-size, i + j, i, j) for i, j, size in runs[:step].tolist()]
        runs, step = runs[step:], 2 * step
        if len(runs):
            i, j, size = runs[0].tolist()
            chosen += _take(waiting, (-size, i + j, i, j), used_a, used_b, minimum)
            runs = runs[_alive(runs, used_a, used_b, minimum)]
        else:
            chosen += _take(waiting, (0, 0, 0, 0), used_a, used_b, minimum)
    return np.array(chosen, np.int64).reshape(-1, 3)


def _take(
    waiting: list[_Waiting], until: _Waiting, used_a: bytearray, used_b: bytearray, minimum: int
) -> Iterator[tuple[int, int, int]]:
    """The tiles among the queued runs that come before ``until``."""
    heapify(waiting)
    while waiting and waiting[0] < until:
        negative, _, i, j = heappop(waiting)
        start, end = _unused(used_a, used_b, i, j, -negative)
        size = end - start
        if size == -negative:
            used_a[i : i + size] = used_b[j : j + size] = b"\1" * size
            yield i, j, size
        elif size >= minimum:
            heappush(waiting, (-size, i + j + 2 * start, i + start, j + start))


def _alive(runs: Ints, used_a: bytearray, used_b: bytearray, minimum: int) -> Flags:
    """Whether each run still has ``minimum`` unused words in a row: bool[runs]."""
    i, j, size = runs.T
    one, other = np.array(used_a, np.bool_), np.array(used_b, np.bool_)
    start = np.minimum(np.maximum(unused_from(~one)[i], unused_from(~other)[j]), size - 1)
    left = np.minimum(np.minimum(unused_from(one)[i + start], unused_from(other)[j + start]), size - start)
    alive: Flags = left >= minimum
    return alive


def _overlap(starts: Ints, sizes: Ints) -> bool:
    order = np.argsort(starts)
    starts, ends = starts[order], (starts + sizes)[order]
    return bool((starts[1:] < ends[:-1]).any())


def _unused(used_a: bytearray, used_b: bytearray, i: int, j: int, size: int) -> tuple[int, int]:
    """The part of a run that is not covered by tiles, as offsets."""
    free_a, free_b = used_a.find(0, i, i + size), used_b.find(0, j, j + size)
    if free_a < 0 or free_b < 0:
        return 0, 0
    start = max(free_a - i, free_b - j)
    taken_a, taken_b = used_a.find(1, i + start, i + size), used_b.find(1, j + start, j + size)
    end = min(taken_a - i if taken_a >= 0 else size, taken_b - j if taken_b >= 0 else size)
    return start, max(start, end)


def unused_from(used: Flags) -> Ints:
    """The number of unused words in a row from each word on."""
    positions = np.arange(len(used))
    taken = np.where(used, positions, len(used))
    ends: Ints = np.minimum.accumulate(taken[::-1])[::-1]
    return ends - positions


def tiles_in_rounds(a: U64, b: U64, minimum: int, limit: int) -> Ints:
    """All tiles: int64[n, 3], as in `tiles`, computed in rounds.

    Each round chooses tiles of a range of lengths: from the longest remaining length down to the shortest at which all
    runs have at most ``limit`` words together. If already the longest runs have more, the round chooses tiles of that
    length only, without listing the runs (`_pick_equal`).
    """
    ranks = _Ranks(a, b)
    used_a, used_b = np.zeros(len(a), np.bool_), np.zeros(len(b), np.bool_)
    found = [np.empty((0, 3), np.int64)]
    longest = min(len(a), len(b))
    while True:
        free_a, free_b = unused_from(used_a), unused_from(used_b)
        longest = min(longest, int(free_a.max(initial=0)), int(free_b.max(initial=0)))
        if longest < minimum:
            return np.concatenate(found)
        is_crowded = partial(ranks.crowded, free_a=free_a, free_b=free_b, limit=limit)
        crowded = (_last if len(found) == 1 else _last_from_above)(is_crowded, minimum, longest)
        some = choose(ranks.runs(crowded + 1, free_a, free_b), len(a), len(b), crowded + 1)
        longest = crowded
        if not len(some) and crowded >= minimum:
            some = _pick_equal(ranks.classes(crowded, free_a, free_b), len(a), len(b), crowded)
            longest = crowded - 1
        for i, j, size in some.tolist():
            used_a[i : i + size] = used_b[j : j + size] = True
        found.append(some)


def _last(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The greatest number from ``low`` to ``high`` for which ``holds`` is true, low - 1 if none. After the first number
    for which it is false, it must be false for all greater ones.

    The search goes up in doubling steps, since the answer is mostly small, and great lengths are expensive to check.
    """
    step, low = 1, low - 1
    while low + step <= high and holds(low + step):
        low, step = low + step, 2 * step
    return _between(holds, low, min(low + step - 1, high))


def _last_from_above(holds: Callable[[int], bool], low: int, high: int) -> int:
    """Like `_last`, if the answer is expected near ``high``."""
    step, beyond = 1, high + 1
    while high >= low and not holds(high):
        beyond, high, step = high, high - step, 2 * step
    return _between(holds, max(high, low - 1), beyond - 1)


def _between(holds: Callable[[int], bool], low: int, high: int) -> int:
    """The result of `_last` by bisection, if it is at least ``low``."""
    while low < high:
        middle = (low + high + 1) // 2
        low, high = (middle, high) if holds(middle) else (low, middle - 1)
    return low


class _Ranks:
    """Numbers for the windows of two texts, for any length: two windows have equal numbers only if they are equal.

    Windows of 1, 2, 4, ... words are ranked, each by its two halves (Karp, Miller & Rosenberg 1972); a window of
    another length is covered by two of these.
    """

    def __init__(self, a: U64, b: U64) -> None:
        self._levels = [_ranked(a, b)]

    def crowded(self, size: int, free_a: Ints, free_b: Ints, limit: int) -> bool:
        """Whether the runs of at least ``size`` unused words have more than ``limit`` words together.

        A run of n words has n - size + 1 pairs of windows of ``size`` words, and one pair fewer of windows that are one
        word longer.
        """
        pairs = self._pairs(size, free_a, free_b)
        if pairs > limit or pairs * size <= limit:
            return pairs > limit
        longer = self._pairs(size + 1, free_a, free_b)
        return pairs + (pairs - longer) * (size - 1) > limit

    def runs(self, size: int, free_a: Ints, free_b: Ints) -> Ints:
        """All runs of at least ``size`` unused words."""
        (at_a, one), (at_b, other) = self._windows(size, free_a, free_b)
        in_one, in_other = EqualWindows.of(one, other).places()
        return runs_of(at_a[in_one], at_b[in_other], size)

    def classes(self, size: int, free_a: Ints, free_b: Ints) -> Iterator[tuple[list[int], list[int]]]:
        """The positions in a and in b of each unused window that both texts have."""
        (at_a, one), (at_b, other) = self._windows(size, free_a, free_b)
        common = np.intersect1d(one, other)
        yield from zip(_positions_of(common, at_a, one), _positions_of(common, at_b, other), strict=True)

    def _pairs(self, size: int, free_a: Ints, free_b: Ints) -> int:
        (_, one), (_, other) = self._windows(size, free_a, free_b)
        one, other = np.sort(one), np.sort(other)
        return int((np.searchsorted(other, one, "right") - np.searchsorted(other, one, "left")).sum())

    def _windows(self, size: int, free_a: Ints, free_b: Ints) -> tuple[tuple[Ints, Ints], tuple[Ints, Ints]]:
        """For each text, where its unused windows begin, and their numbers."""
        at_a, at_b = np.flatnonzero(free_a >= size), np.flatnonzero(free_b >= size)
        if not (len(at_a) and len(at_b)):
            return (at_a[:0], at_a[:0]), (at_b[:0], at_b[:0])
        level = size.bit_length() - 1
        while len(self._levels) <= level:
            half = 1 << (len(self._levels) - 1)
            self._levels.append(_ranked(*_joined(self._levels[-1], half)))
        numbers = _joined(self._levels[level], size - (1 << level))
        return (at_a, numbers[0][at_a]), (at_b, numbers[1][at_b])


def _ranked(a: U64 | Ints, b: U64 | Ints) -> tuple[Ints, Ints]:
    """The rank of each value among the distinct values of both arrays."""
    ranks = np.unique(np.concatenate((a, b)), return_inverse=True)[1].reshape(-1).astype(np.int64)
    return ranks[: len(a)], ranks[len(a) :]


def _joined(both: tuple[Ints, Ints], shift: int) -> list[Ints]:
    """One number for each pair of a value and the value ``shift`` positions later."""
    factor = 1 + max(int(ranks.max(initial=0)) for ranks in both)
    return [ranks[: max(len(ranks) - shift, 0)] * factor + ranks[shift:] for ranks in both]


def _positions_of(common: Ints, positions: Ints, numbers: Ints) -> list[list[int]]:
    """The ascending ``positions`` whose ``numbers`` are equal to each of the common numbers."""
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    low, high = (np.searchsorted(ordered, common, side) for side in ("left", "right"))
    return [positions[order[start:end]].tolist() for start, end in zip(low.tolist(), high.tolist(), strict=True)]


def _pick_equal(classes: Iterator[tuple[list[int], list[int]]], size_a: int, size_b: int, size: int) -> Ints:
    """The tiles of one length, the greatest remaining one.

    All windows are unused at first, and have the length of all tiles: so it is enough to check both ends of a window.
    """
    used_a, used_b = bytearray(size_a), bytearray(size_b)
    fronts = [(iter(in_a), iter(in_b)) for in_a, in_b in classes]
    waiting = [(i + j, i, j, k) for k, (i, j) in enumerate((next(in_a), next(in_b)) for in_a, in_b in fronts)]
    heapify(waiting)
    chosen = []
    while waiting:
        _, i, j, number = heappop(waiting)
        if not (_taken(used_a, i, size) or _taken(used_b, j, size)):
            used_a[i : i + size] = used_b[j : j + size] = b"\1" * size
            chosen.append((i, j, size))
        later_a, later_b = _later(used_a, i, size, fronts[number][0]), _later(used_b, j, size, fronts[number][1])
        if later_a >= 0 and later_b >= 0:
            heappush(waiting, (later_a + later_b, later_a, later_b, number))
    return np.array(chosen, np.int64).reshape(-1, 3)


def _taken(used: bytearray, at: int, size: int) -> bool:
    return bool(used[at] or used[at + size - 1])


def _later(used: bytearray, at: int, size: int, following: Iterator[int]) -> int:
    """The first unused position among ``at`` and the following ones of its class, -1 if there is none."""
    return next((one for one in chain((at,), following) if not _taken(used, one, size)), -1)


def tiles(a: U64, b: U64, minimum: int) -> Ints:
    """The tiles of at least ``minimum`` words, in any order: int64[n, 3], first word in a, first word in b, size."""
    equal = EqualWindows.of(window_hashes(a, minimum), window_hashes(b, minimum))
    if not equal.pairs:
        return np.empty((0, 3), np.int64)
    limit = 4 * (len(a) + len(b)) + 1000
    if equal.pairs > limit:
        return tiles_in_rounds(a, b, minimum, limit)
    return choose(runs_of(*equal.places(), minimum), len(a), len(b), minimum)
