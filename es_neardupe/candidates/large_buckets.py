"""Large buckets: band keys that more texts share than are compared with each other, and the pairs that are skipped."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

import numpy as np
from numpy.typing import NDArray

from es_neardupe.candidates.pair_arrays import blocks, components
from es_neardupe.keys.arrays import I32, U64, Flags, Numbers, Positions


@dataclass(frozen=True, slots=True)
class Bucket:
    """A band key that is shared by more classes than ``max_bucket``."""

    key: str
    """If several bands must agree, their keys, joined by ``+``."""
    size: int
    """Number of classes."""
    compared: int
    """Candidate pairs of these classes, because of this key or another."""
    skipped: int
    """Other pairs of these classes. A pair that shares several large buckets is among the skipped ones of each."""
    documents: int = 0
    """Documents of these classes, including exact copies."""
    passage: str = ""
    """Beginning of the passage that the texts have in common; empty if there is none or it was not determined."""
    _sample: tuple[int, ...] = field(default=(), compare=False)

    @property
    def sample(self) -> tuple[int, ...]:
        """Numbers of some of the classes, evenly spread."""
        return self._sample


_BITS = 1 << 25
"""Bits of the members of buckets that are held at a time: 4 MB, and 32 MB while they are made."""

_WORDS = 1 << 17
"""Words of the united sets of rows that are made at a time: 1 MB."""

_ONES: NDArray[np.uint8] = np.unpackbits(np.arange(1 << 16, dtype=np.uint16).view(np.uint8).reshape(-1, 2), axis=1).sum(
    axis=1, dtype=np.uint8
)
"""Number of one bits of each 16-bit number. (`np.bitwise_count` is new in numpy 2.)"""


@dataclass(frozen=True)
class LargeBuckets:
    """The large buckets of k classes, and which of the classes are in them. c joint keys of each class."""

    buckets: tuple[Bucket, ...]
    """Without the numbers of pairs, which depend on the candidates."""
    rows: I32
    """The r classes that are in a large bucket, ascending."""
    member: I32
    """Number of the bucket, from 1, that each of their joint keys belongs to, 0 for a small bucket; shape (r, c)."""
    size: int
    """k."""
    among: Flags | None = None
    """If given, only pairs with at least one of these classes are counted; shape (k,)."""

    def members(self, bucket: Bucket) -> Numbers:
        """The classes in one of the buckets, ascending."""
        number = [one.key for one in self.buckets].index(bucket.key) + 1
        inside: I32 = self.rows[(self.member == number).any(axis=1)]
        return inside

    def counted(self, left: Numbers, right: Numbers) -> tuple[tuple[Bucket, ...], int]:
        """The buckets with the numbers of pairs, for these candidates, largest first; and the number of all pairs in
        large buckets that are not among the candidates, each pair once."""
        compared, distinct = np.zeros(len(self.buckets) + 1, np.int64), 0
        for some in blocks(len(left) if self.buckets else 0):
            shares = np.zeros(len(left[some]), np.bool_)
            for key in self._columns():
                same = _same(key, left[some], right[some])
                compared += np.bincount(same, minlength=len(compared))
                shares |= same > 0
            distinct += int(shares.sum())
        found = [
            replace(bucket, compared=number, skipped=every - number)
            for bucket, number, every in zip(self.buckets, compared[1:].tolist(), self._sizes(), strict=True)
        ]
        return tuple(sorted(found, key=lambda bucket: (-bucket.size, bucket.key))), self._pairs() - distinct

    def _columns(self) -> Iterator[I32]:
        """Each joint key: the number of the bucket of each class, 0 for none; shape (k,)."""
        for key in self.member.T[self.member.any(axis=0)]:
            column = np.zeros(self.size, np.int32)
            column[self.rows] = key
            yield column

    def _sizes(self) -> list[int]:
        """The number of pairs of each bucket."""
        sizes = np.array([bucket.size for bucket in self.buckets], np.int64)
        every = sizes * (sizes - 1) // 2
        if self.among is not None and len(sizes):
            of_others = np.bincount(self.member[~self.among[self.rows]].reshape(-1), minlength=len(sizes) + 1)[1:]
            every -= of_others * (of_others - 1) // 2
        return [int(one) for one in every]

    def _pairs(self) -> int:
        """The number of distinct pairs that share a large bucket: for each row, the members of all its buckets are
        united as sets of bits. Clusters that share no bucket are counted apart, so the work grows with the square of
        the largest one: for 20,000 rows with 16 keys, 100 million operations."""
        rows, member = self.rows, self.member
        if not len(rows):
            return 0
        among = np.ones(len(rows), np.bool_) if self.among is None else self.among[rows]
        row, key = np.nonzero(member)
        of = components(len(rows) + len(self.buckets), row, len(rows) + member[row, key] - 1)[: len(rows)]
        order = np.argsort(of, kind="stable")
        clusters = np.split(order, np.flatnonzero(np.diff(of[order])) + 1)
        return sum(_distinct_pairs(member[cluster], among[cluster]) for cluster in clusters)


def _same(key: I32, left: Numbers, right: Numbers) -> I32:
    """The number of the bucket that both sides of each pair are in by this key, 0 if there is none."""
    one = key[left]
    one[one != key[right]] = 0
    return one


def _distinct_pairs(member: I32, among: Flags) -> int:
    """The number of pairs of rows of ``member`` that have a number above 0 in the same column, with at least one row
    that is ``among``."""
    numbers, places = np.unique(np.append(member, 0), return_inverse=True)
    own = places[:-1].reshape(len(among), -1)
    own = own[:, own.any(axis=0)]
    chosen = np.flatnonzero(among)
    twice = 0  # pairs of two chosen rows are counted by both of them
    for columns in blocks(len(among), max(64, _BITS // len(numbers) // 64 * 64)):
        table = _bits(own[columns], len(numbers))
        also = np.packbits(among[columns], bitorder="little")
        also = np.pad(also, (0, table.shape[1] * 8 - len(also))).view(np.uint64)
        for some in blocks(len(chosen), max(1, _WORDS // table.shape[1])):
            united = table[own[chosen[some], 0]]
            for key in range(1, own.shape[1]):
                united |= table[own[chosen[some], key]]
            both = int(_ONES[(united & also).view(np.uint16)].sum(dtype=np.int64))
            twice += 2 * int(_ONES[united.view(np.uint16)].sum(dtype=np.int64)) - both
    return (twice - len(chosen)) // 2  # each row also has all numbers in common with itself


def _bits(own: Positions, numbers: int) -> U64:
    """The rows that have each number, as bits; none have 0. Shape (numbers, words)."""
    has = np.zeros((numbers, -(-len(own) // 64) * 64), np.bool_)
    for key in own.T:
        has[key, np.arange(len(own))] = True
    has[0] = False
    return np.packbits(has, axis=1, bitorder="little").view(np.uint64)
