"""Arrays of millions of pairs of numbers: all pairs of groups, distinct pairs, connected components."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

from es_neardupe.keys.arrays import Ints, Positions

__all__ = ["BLOCK", "DistinctPairs", "components", "first_with_all", "portions", "small_groups"]


BLOCK = 1_000_000
"""Pairs generated at a time. `DistinctPairs` removes repeated pairs after some multiple of it."""


def small_groups(rows: Positions, starts: Positions, sizes: Positions, maximum: int) -> Iterator[Positions]:
    """All pairs of every group of 2 to ``maximum`` members, shape (pairs, 2), in blocks; groups of one size at a time.

    Group k has the members ``rows[starts[k] : starts[k] + sizes[k]]``.
    """
    for size in np.unique(sizes[(sizes > 1) & (sizes <= maximum)]):
        of_size = starts[sizes == size]
        if size * (size - 1) // 2 > BLOCK:
            for start in of_size.tolist():
                members = rows[start : start + size]
                yield from (members[pairs] for pairs in first_with_all(int(size), int(size)))
            continue
        first, second = np.triu_indices(size, 1)
        step = max(1, BLOCK // len(first))
        for begin in range(0, len(of_size), step):
            members = rows[of_size[begin : begin + step, None] + np.arange(size)]
            yield np.stack([members[:, first].reshape(-1), members[:, second].reshape(-1)], axis=1)


def first_with_all(size: int, count: int) -> Iterator[Positions]:
    """Pairs of each number below ``count`` with every greater one below ``size``, shape (pairs, 2), in blocks."""
    members = np.arange(size)
    step = max(1, BLOCK // size)
    for begin in range(0, count, step):
        some = members[begin : min(begin + step, count)]
        left, right = np.repeat(some, size), np.tile(members, len(some))
        yield np.stack([left, right], axis=1)[left < right]


class DistinctPairs:
    """A growing set of pairs, each coded as one integer."""

    def __init__(self) -> None:
        self._parts: list[Ints] = []
        self._size = 0
        self._limit = 4 * BLOCK

    def add(self, pairs: Positions, rows: int) -> None:
        """Add pairs of numbers below ``rows``, left <= right, shape (pairs, 2). Pairs of equal numbers are ignored."""
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        self._parts.append(pairs[:, 0].astype(np.int64) * rows + pairs[:, 1])
        self._size += len(pairs)
        if self._size > self._limit:
            self._limit = max(self._limit, 2 * len(self.all()))

    def all(self) -> Ints:
        """The codes of the pairs, sorted. (`np.unique` of newer numpy versions hashes first, which is several times
        slower.)"""
        codes = np.concatenate([np.zeros(0, np.int64), *self._parts])
        codes.sort()
        fresh = np.ones(len(codes), np.bool_)
        np.not_equal(codes[1:], codes[:-1], out=fresh[1:])
        self._parts = [codes[fresh]]
        self._size = len(self._parts[0])
        return self._parts[0]


def components(size: int, left: Positions, right: Positions) -> Positions:
    """The number of the connected component of each of ``size`` nodes; the pairs are the edges."""
    links = coo_array((np.ones(len(left), np.int8), (left, right)), shape=(size, size))
    return connected_components(links, directed=False)[1].astype(np.intp)


def portions(left: Positions, right: Positions, weights: Ints, limit: int) -> list[Positions]:
    """The positions of the pairs, divided into portions of whole connected components. The nodes of a portion weigh
    about ``limit`` together, or it has a single heavier component."""
    if not len(left):
        return []
    component = components(len(weights), left, right)
    linked = np.unique(component[left])
    totals = np.bincount(component, weights)[linked]
    portion = (np.cumsum(totals) // limit)[np.searchsorted(linked, component[left])]
    order = np.argsort(portion, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(portion[order])) + 1)
