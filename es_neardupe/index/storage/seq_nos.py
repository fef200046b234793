"""Sets of sequence numbers of writes, as ranges."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Sequence

import numpy as np
from numpy.typing import ArrayLike, NDArray

Ranges = NDArray[np.int64]
"""First and last number of each range; shape (n, 2). Ascending, with at least one number between two ranges."""


class SeqNos:
    """A set of sequence numbers of one shard, as ranges."""

    def __init__(self, ranges: ArrayLike = ()) -> None:
        """``ranges``: first and last number of each, in any order; they may overlap."""
        self.ranges: Ranges = _merged(np.array(ranges, np.int64).reshape(-1, 2))
        self._firsts: list[int] = self.ranges[:, 0].tolist()
        self._lasts: list[int] = self.ranges[:, 1].tolist()

    @classmethod
    def of(cls, numbers: Sequence[int]) -> SeqNos:
        """The set of these numbers."""
        column = np.array(numbers, np.int64)
        return cls(np.stack((column, column), axis=1))

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The ranges, as first and last number of each."""
        return [(first, last) for first, last in self.ranges.tolist()]

    @property
    def last(self) -> int:
        """The greatest number; -1 for an empty set."""
        return int(self.ranges[-1, 1]) if len(self.ranges) else -1

    def __eq__(self, other: object) -> bool:
        return isinstance(other, SeqNos) and np.array_equal(self.ranges, other.ranges)

    __hash__ = None  # type: ignore[assignment]  # as for other objects that hold arrays

    def __or__(self, other: SeqNos) -> SeqNos:
        return SeqNos(np.concatenate((self.ranges, other.ranges)))

    def __sub__(self, other: SeqNos) -> SeqNos:
        return (self.missing(self.last) | other).missing(self.last)

    def has(self, number: int) -> bool:
        """Whether a number is in the set."""
        place = bisect_right(self._firsts, number) - 1  # numpy would hand over to the threads that read each time
        return place >= 0 and number <= self._lasts[place]

    def up_to(self, last: int) -> SeqNos:
        """The numbers that are not greater than ``last``."""
        kept = self.ranges[self.ranges[:, 0] <= last]
        return SeqNos(np.minimum(kept, last))

    def latest(self, number: int) -> SeqNos:
        """The numbers in the last ranges, at most this number of ranges."""
        return SeqNos(self.ranges[-number:])

    def longest(self, number: int) -> SeqNos:
        """The numbers in the longest ranges, at most this number of ranges."""
        lengths = self.ranges[:, 1] - self.ranges[:, 0]
        return SeqNos(self.ranges[np.argsort(-lengths, kind="stable")[:number]])

    def fewer(self, number: int) -> SeqNos:
        """At most this number of ranges, which include the set: those with the smallest gaps in between are joined."""
        gaps = self.ranges[1:, 0] - self.ranges[:-1, 1]
        wide = np.sort(np.argsort(-gaps, kind="stable")[: number - 1])
        firsts = np.concatenate((self.ranges[:1, 0], self.ranges[1:, 0][wide]))
        lasts = np.concatenate((self.ranges[:-1, 1][wide], self.ranges[-1:, 1]))
        return SeqNos(np.stack((firsts, lasts), axis=1))

    def missing(self, last: int) -> SeqNos:
        """The numbers from 0 to ``last`` that are not in the set."""
        inside = self.up_to(last).ranges
        firsts = np.concatenate(([0], inside[:, 1] + 1))
        lasts = np.concatenate((inside[:, 0] - 1, [last]))
        return SeqNos(np.stack((firsts, lasts), axis=1)[firsts <= lasts])


def _merged(ranges: Ranges) -> Ranges:
    """The same numbers as ascending ranges that neither overlap nor adjoin."""
    if not len(ranges):
        return ranges
    ranges = ranges[np.argsort(ranges[:, 0], kind="stable")]
    lasts = np.maximum.accumulate(ranges[:, 1])
    begins = np.concatenate(([True], ranges[1:, 0] > lasts[:-1] + 1))
    ends = np.concatenate((begins[1:], [True]))
    return np.stack((ranges[begins, 0], lasts[ends]), axis=1)
