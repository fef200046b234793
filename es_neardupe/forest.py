"""Which members of a large bucket to compare: by their signatures, in work that is n log n in their number.

Each of many *orders* sorts the members by slots of the signature in a sequence of its own, as the trees of an LSH
forest do (Bawa, Condie & Ganesan, LSH Forest: Self-Tuning Indexes for Similarity Search, 2005). Similar signatures
agree in the first slots of some of these sequences, and so stand close together there. In each order a member is
compared with

- its next neighbours, which finds the few texts that are like it, wherever they are in the bucket;
- the representatives of its *clumps*. A clump are the members that agree in the first few slots, and its representative
  the one of them that comes first in the order of principals. So the later principal of a cluster meets nearly
  all of it, and the cluster does not fall apart, however large it is.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from es_neardupe.keys.mixing import stream

__all__ = ["near_pairs"]

Ints = NDArray[np.intp]

_NEIGHBOURS = 3
_CLUMPS = (3, 6)
"""Slots in which the members of a clump agree: the few gather texts that are just similar enough, the many tell
clusters apart that have boilerplate in common."""

_PER_ORDER = _NEIGHBOURS + len(_CLUMPS)
_COLUMNS = 16
"""Slots that decide an order; members that agree in all of them stand in the order of principals."""

_SEED = 1


def near_pairs(signatures: NDArray[np.uint8], most: int) -> Iterator[Ints]:
    """Pairs of members: blocks of shape (pairs, 2), first < second; a pair may come several times.

    ``signatures`` have the shape (n, slots), with the members in the order of principals. There are at most
    ``most`` * n pairs (5 n for a ``most`` below 5). They depend on the signatures in that order and on nothing else.
    """
    for sequence in _sequences(max(1, most // _PER_ORDER), signatures.shape[1]):
        leading, rest = np.ascontiguousarray(signatures[:, sequence]).view(">u8").astype(np.uint64).T
        order = np.lexsort((rest, leading))
        for distance in range(1, _NEIGHBOURS + 1):
            yield np.sort(np.stack((order[:-distance], order[distance:]), axis=1), axis=1)
        for slots in _CLUMPS:
            first = _representatives(order, leading[order] >> np.uint64(64 - 8 * slots))
            yield np.stack((first, order), axis=1)[first < order]


def _representatives(order: Ints, clumps: NDArray[np.uint64]) -> Ints:
    """For each member its clump's first one; clumps are runs of an equal number."""
    starts = np.flatnonzero(np.concatenate(([True], clumps[1:] != clumps[:-1])))
    return np.repeat(np.minimum.reduceat(order, starts), np.diff(starts, append=len(order)))


@lru_cache(maxsize=8)
def _sequences(number: int, slots: int) -> tuple[Ints, ...]:
    """So many sequences of slots: the same ones in all buckets, so that buckets with the same members choose alike."""
    drawn = stream(_SEED, number * slots).reshape(number, slots)
    return tuple(np.resize(np.argsort(one), _COLUMNS) for one in drawn)
