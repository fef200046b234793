"""Arrays of millions of pairs of numbers: all pairs of groups, distinct pairs, connected components, portions.

The pairs themselves may fill most of the memory, so all of these work on blocks of them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass

import numpy as np

from es_neardupe.keys.arrays import I32, U64, Flags, Ints, Numbers, Positions

BLOCK = 1_000_000
"""Pairs generated or processed at a time. `DistinctPairs` removes repeated pairs after some multiple of it."""

_PORTION = 1 << 15
"""Rows sorted at a time."""

_FACTOR = np.uint64(0x9E3779B97F4A7C15)


def blocks(size: int, step: int = 0) -> Iterator[slice]:
    """Slices of an array of this size, of at most ``step`` elements each (default: `BLOCK`)."""
    step = step or BLOCK
    for start in range(0, size, step):
        yield slice(start, start + step)


def sorted_runs(keys: U64) -> Iterator[tuple[Positions, Positions, Positions, U64]]:
    """Portions of the rows that have a key, sorted by it; and for each run of two or more rows with equal keys its
    start, its length and the key. Rows ascend within a run. A run is in one portion, of about `_PORTION` rows if not
    many have equal keys."""
    number = len(keys) // _PORTION + 1
    portion = np.empty(len(keys), np.uint16)
    for some in blocks(len(keys), _PORTION):  # multiplied, because the characters of keys are in few ranges
        portion[some] = (keys[some] * _FACTOR >> np.uint64(48)) * np.uint64(number) >> np.uint64(16)
        portion[some][keys[some] == 0] = number
    for one in range(number):
        rows = np.flatnonzero(portion == one)
        yield _sorted_runs(keys[rows], rows)


def _sorted_runs(keys: U64, rows: Positions) -> tuple[Positions, Positions, Positions, U64]:
    """The rows sorted by their keys, and the runs of equal keys, as in `sorted_runs`."""
    order = np.argsort(keys, kind="stable")
    keys, rows = keys[order], rows[order]
    fresh = np.ones(len(keys) + 1, np.bool_)
    np.not_equal(keys[1:], keys[:-1], out=fresh[1:-1])
    starts = np.flatnonzero(fresh[:-1] & ~fresh[1:])
    sizes = np.flatnonzero(~fresh[:-1] & fresh[1:]) + 1 - starts
    return rows, starts, sizes, keys[starts]


def buckets(
    keys: U64, numbers: I32 | None, maximum: int
) -> Iterator[tuple[Iterator[Positions], list[tuple[np.uint64, I32]]]]:
    """Buckets of equal keys (0 = none), in portions: all pairs of those with up to ``maximum`` members, shape (pairs,
    2), in blocks, and the others with their members. ``numbers``: of the members, ascending; by default, their places.
    """
    for rows, starts, sizes, names in sorted_runs(keys):
        members: Positions = rows if numbers is None else numbers[rows].astype(np.intp)
        large = [
            (names[one], members[starts[one] : starts[one] + sizes[one]].astype(np.int32))
            for one in np.flatnonzero(sizes > maximum).tolist()
        ]
        yield small_groups(members, starts, sizes, maximum), large


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
    """A growing set of pairs of numbers below ``rows``. Each pair is stored once, in 8 bytes, and a pair that was just
    added in up to 17 more."""

    def __init__(self, rows: int, check: Callable[[int], None] = lambda pairs: None) -> None:
        """``check`` is called with the number of pairs whenever it may have grown."""
        self._rows = max(rows, 1)
        self._check = check
        self._sorted: list[Ints] = []
        """Distinct pairs as ``left * rows + right``, ascending from piece to piece."""
        self._size = 0
        self._added: list[Ints] = []
        self._waiting = 0

    def add(self, pairs: Positions) -> None:
        """Add pairs, left <= right, shape (pairs, 2). Pairs of equal numbers are ignored."""
        pairs = pairs[pairs[:, 0] != pairs[:, 1]]
        self._added.append(pairs[:, 0].astype(np.int64) * self._rows + pairs[:, 1])
        self._waiting += len(pairs)
        if self._waiting > max(2 * BLOCK, self._size // 4):
            self._merge()

    def __len__(self) -> int:
        self._merge()
        return self._size

    def blocks(self) -> Iterator[Positions]:
        """The pairs in ascending order, in blocks of shape (pairs, 2)."""
        self._merge()
        for codes in self._sorted:
            yield np.stack(np.divmod(codes, self._rows), axis=1)

    def taken(self) -> tuple[I32, I32]:
        """Both sides of all pairs, in ascending order; the set is empty afterwards."""
        left, right = np.empty(len(self), np.int32), np.empty(len(self), np.int32)
        pieces, self._sorted = self._sorted[::-1], []
        start = self._size = 0
        while pieces:
            codes = pieces.pop()
            end = start + len(codes)
            left[start:end], right[start:end] = np.divmod(codes, self._rows)
            start = end
        return left, right

    def _merge(self) -> None:
        """Merge the added pairs piece by piece, so that only one piece is in memory twice."""
        if not self._added:
            return
        fresh = _distinct(np.concatenate(self._added))
        self._added, self._waiting = [], 0
        pieces, self._sorted = self._sorted[::-1], []
        start = self._size = 0
        while pieces or start < len(fresh):
            piece = pieces.pop() if pieces else np.zeros(0, np.int64)
            end = int(np.searchsorted(fresh, pieces[-1][0])) if pieces else len(fresh)
            merged = _distinct(np.concatenate((piece, fresh[start:end])))
            start = end
            self._size += len(merged)
            self._sorted += [merged[some] for some in blocks(len(merged))]
            self._check(self._size)


def _distinct(codes: Ints) -> Ints:
    """The distinct codes, sorted. Sorts in place, with half as much memory more: pieces that are sorted already are
    merged, which takes a twentieth of the time of sorting them again. (`np.unique` of newer numpy versions hashes
    first, which is several times slower.)"""
    codes.sort(kind="stable")
    fresh = np.ones(len(codes), np.bool_)
    np.not_equal(codes[1:], codes[:-1], out=fresh[1:])
    return codes[fresh]


def components(size: int, left: Numbers, right: Numbers) -> I32:
    """The number of the connected component of each of ``size`` nodes; the pairs are the edges. Components are numbered
    in the order of their first nodes."""
    from scipy.sparse import coo_array  # slow to load, and most commands link no pairs
    from scipy.sparse.csgraph import connected_components

    component = np.arange(size, dtype=np.int32)
    for some in blocks(len(left)):
        a, b = component[left[some]], component[right[some]]
        apart = a != b
        if apart.any():
            number = int(component.max()) + 1
            links = coo_array((np.ones(int(apart.sum()), np.int8), (a[apart], b[apart])), shape=(number, number))
            component = connected_components(links, directed=False)[1].astype(np.int32)[component]
    return component


@dataclass(frozen=True)
class Portion:
    """Pairs of some connected components."""

    nodes: Positions
    """All nodes of the components, ascending."""
    _starts: Positions
    """Position of the first pair of each node, as the left one."""
    _counts: Positions
    """Number of these pairs."""
    _order: Positions | None
    """The pairs in the order of their left nodes; None if they are in this order."""

    def __len__(self) -> int:
        """Number of pairs."""
        return int(self._counts.sum())

    def pairs(self, nodes: slice = slice(None)) -> Iterator[Positions]:
        """The positions of the pairs whose left node is one of ``self.nodes[nodes]``, in blocks, ascending by it."""
        starts, counts = self._starts[nodes], self._counts[nodes]
        ends = np.cumsum(counts)
        total = int(ends[-1]) if len(ends) else 0
        for some in blocks(total, 2 * BLOCK):
            place = np.arange(some.start, min(some.stop, total))
            node = np.searchsorted(ends, place, side="right")
            place += (starts - (ends - counts))[node]
            yield place if self._order is None else self._order[place]


def portions(left: Numbers, right: Numbers, weights: Ints, limit: int) -> Iterator[Portion]:
    """The pairs, divided into portions of whole connected components. The nodes of a portion weigh about ``limit``
    together, or it has a single heavier component."""
    if not len(left):
        return
    order = None if ascends(left) else np.argsort(left, kind="stable")
    used = np.zeros(len(weights), np.bool_)
    for some in blocks(len(left)):
        used[left[some]] = used[right[some]] = True
    nodes = np.flatnonzero(used).astype(left.dtype)
    bounds = np.searchsorted(left, nodes, sorter=order)
    counts = np.searchsorted(left, nodes, side="right", sorter=order) - bounds
    _, component = np.unique(components(len(weights), left, right)[nodes], return_inverse=True)
    portion = (np.cumsum(np.bincount(component, weights[nodes])) // limit)[component]
    order_of_nodes = np.argsort(portion, kind="stable")
    for some_nodes in np.split(order_of_nodes, np.flatnonzero(np.diff(portion[order_of_nodes])) + 1):
        yield Portion(nodes[some_nodes].astype(np.intp), bounds[some_nodes], counts[some_nodes], order)


def ascends(numbers: Numbers) -> bool:
    """Whether no number is less than the one before."""
    ascending: Flags = numbers[1:] >= numbers[:-1]
    return bool(ascending.all())
