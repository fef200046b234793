"""Exact measures on features: the set measure that band keys are made for, over many pairs at once."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

__all__ = ["resemblance", "resemblances"]

_BLOCK = 4_000_000
"""Features compared at a time: bounds the temporary arrays to some 40 MB."""


def resemblance(a: NDArray[np.uint64], b: NDArray[np.uint64]) -> float:
    """|a & b| / |a | b| of two sorted arrays of distinct features.

    Two empty sets resemble each other fully (the texts are equal as far as tokens go); an empty one and
    another not at all.
    """
    if not len(a) or not len(b):
        return float(len(a) == len(b))
    common = len(np.intersect1d(a, b, assume_unique=True))
    return common / (len(a) + len(b) - common)


def resemblances(
    features: Sequence[NDArray[np.uint64]], left: NDArray[np.intp], right: NDArray[np.intp]
) -> NDArray[np.float64]:
    """Resemblance of the pairs ``(features[left[k]], features[right[k]])``, float64 of the pairs' number.

    Each element of ``features`` is sorted and distinct. Pairs are taken by their left side: its features are
    marked in a table of all features, and one gather over all its partners counts what they share. So a dense
    cluster costs one memory access per partner's feature, without any sorting per pair.
    """
    result = np.zeros(len(left), np.float64)
    if not len(left):
        return result
    sizes = np.array([len(one) for one in features], np.int64)
    numbers = _numbered(features, sizes)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    marked = np.zeros(int(numbers.max(initial=-1)) + 1, np.bool_)
    order = np.argsort(left, kind="stable")
    cuts = np.flatnonzero(np.diff(left[order])) + 1
    for run in np.split(order, cuts):
        own = int(left[run[0]])
        mine = numbers[starts[own] : starts[own + 1]]
        marked[mine] = True
        for block in _blocks(run, sizes[right[run]]):
            partners = right[block]
            common = _shared(marked, numbers, starts, sizes[partners], partners)
            total = sizes[own] + sizes[partners] - common
            result[block] = np.divide(common, total, out=np.ones(len(block)), where=total > 0)
        marked[mine] = False
    return result


def _numbered(features: Sequence[NDArray[np.uint64]], sizes: NDArray[np.int64]) -> NDArray[np.int64]:
    """All features one after the other, each replaced by its rank among the distinct ones."""
    if not sizes.sum():
        return np.zeros(0, np.int64)
    return np.unique(np.concatenate(features), return_inverse=True)[1].reshape(-1).astype(np.int64)


def _blocks(run: NDArray[np.intp], weights: NDArray[np.int64]) -> list[NDArray[np.intp]]:
    """Cut a run where the sum of weights passes a multiple of the block size."""
    block = np.cumsum(weights) // _BLOCK
    return np.split(run, np.flatnonzero(np.diff(block)) + 1)


def _shared(
    marked: NDArray[np.bool_],
    numbers: NDArray[np.int64],
    starts: NDArray[np.int64],
    lengths: NDArray[np.int64],
    partners: NDArray[np.intp],
) -> NDArray[np.int64]:
    """How many features of each partner are marked; int64 of the partners' number."""
    ends = np.cumsum(lengths)
    places = np.arange(ends[-1]) + np.repeat(starts[partners] - (ends - lengths), lengths)
    hits = np.concatenate([[0], np.cumsum(marked[numbers[places]])])
    counts: NDArray[np.int64] = hits[ends] - hits[ends - lengths]
    return counts
