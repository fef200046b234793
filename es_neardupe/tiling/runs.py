"""Pairs of equal windows, the runs they make, and the tiles chosen from these."""

from __future__ import annotations

from collections.abc import Iterator
from heapq import heapify, heappop, heappush
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

__all__ = ["Equal", "choose", "runs_of", "unused_from"]

U64 = NDArray[np.uint64]
Ints = NDArray[np.int64]
Flags = NDArray[np.bool_]
_Waiting = tuple[int, int, int, int]

_FIRST = 256
"""Runs looked at before the others are looked through for the first time."""


class Equal(NamedTuple):
    """Which windows of one text are equal to which of another."""

    order: Ints
    """The windows of the other text, sorted."""
    low: Ints
    """Of each window of the one text: the first equal one in ``order``."""
    counts: Ints
    """And how many there are."""

    @classmethod
    def of(cls, one: U64 | Ints, other: U64 | Ints) -> Equal:
        order = np.argsort(other, kind="stable")
        ordered = other[order]
        low = np.searchsorted(ordered, one, "left")
        return cls(order, low, np.searchsorted(ordered, one, "right") - low)

    @property
    def pairs(self) -> int:
        return int(self.counts.sum())

    def places(self) -> tuple[Ints, Ints]:
        """All pairs, written down."""
        offsets = np.arange(self.pairs) - np.repeat(np.cumsum(self.counts) - self.counts, self.counts)
        return np.repeat(np.arange(len(self.low)), self.counts), self.order[np.repeat(self.low, self.counts) + offsets]


def runs_of(i: Ints, j: Ints, least: int) -> Ints:
    """Pairs of equal windows -> the longest runs of equal words that they make, each on one diagonal."""
    width = int(i.max(initial=0)) + 2
    order = np.argsort((j - i + width) * width + i)
    i, j = i[order], j[order]
    fresh = np.ones(len(i), np.bool_)
    fresh[1:] = (i[1:] != i[:-1] + 1) | (j[1:] != j[:-1] + 1)
    begin = np.flatnonzero(fresh)
    lengths = np.diff(begin, append=len(i)) + (least - 1)
    return np.stack((i[begin], j[begin], lengths), axis=1)


def choose(runs: Ints, size_a: int, size_b: int, least: int) -> Ints:
    """Choose tiles from runs, the longest first.

    A run that is cut by tiles is cut at its ends only, since they are at least as long as it is: what remains is
    one run, which waits for its turn again. Of texts that repeat themselves most runs are used up before their turn;
    they are dropped by the thousand, now and then.
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
            chosen += _take(waiting, (-size, i + j, i, j), used_a, used_b, least)
            runs = runs[_alive(runs, used_a, used_b, least)]
        else:
            chosen += _take(waiting, (0, 0, 0, 0), used_a, used_b, least)
    return np.array(chosen, np.int64).reshape(-1, 3)


def _take(
    waiting: list[_Waiting], until: _Waiting, used_a: bytearray, used_b: bytearray, least: int
) -> Iterator[tuple[int, int, int]]:
    """The tiles among the runs that come before another one."""
    heapify(waiting)
    while waiting and waiting[0] < until:
        negative, _, i, j = heappop(waiting)
        start, end = _unused(used_a, used_b, i, j, -negative)
        size = end - start
        if size == -negative:
            used_a[i : i + size] = used_b[j : j + size] = b"\1" * size
            yield i, j, size
        elif size >= least:
            heappush(waiting, (-size, i + j + 2 * start, i + start, j + start))


def _alive(runs: Ints, used_a: bytearray, used_b: bytearray, least: int) -> Flags:
    """Of which runs ``least`` words and more are unused."""
    i, j, size = runs.T
    one, other = np.array(used_a, np.bool_), np.array(used_b, np.bool_)
    start = np.minimum(np.maximum(unused_from(~one)[i], unused_from(~other)[j]), size - 1)
    left = np.minimum(np.minimum(unused_from(one)[i + start], unused_from(other)[j + start]), size - start)
    alive: Flags = left >= least
    return alive


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


def unused_from(used: Flags) -> Ints:
    """How many words from each on are unused."""
    places = np.arange(len(used))
    taken = np.where(used, places, len(used))
    ends: Ints = np.minimum.accumulate(taken[::-1])[::-1]
    return ends - places
