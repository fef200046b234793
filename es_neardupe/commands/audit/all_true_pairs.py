"""Stage: features of some texts -> all texts that are similar to them, by looking at every common feature."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from es_neardupe.keys.arrays import U64

__all__ = ["InvertedIndex", "PairSimilarities"]

Ints = NDArray[np.intp]

_CELLS = 2_000_000
"""Pairs of texts counted at a time: bounds the memory of a block to some 50 MB."""


class PairSimilarities(NamedTuple):
    """Pairs of a number of the texts inside and a number of the texts given, and their resemblance."""

    inside: Ints
    given: Ints
    similarity: NDArray[np.float64]


class InvertedIndex:
    """The features of some texts, each with the texts that have it.

    Compared with everything: a product of sparse matrices counts the common features of every pair, and nothing is
    left out by keys, lengths or estimates. So this is the truth that candidates are measured by.
    """

    def __init__(self, features: Sequence[U64]) -> None:
        """``features``: sorted distinct ones of each text, as `es_neardupe.keys.features` gives them."""
        self._features = list(features)
        self.sizes = _sizes(features)
        self._known, columns = np.unique(_joined(features), return_inverse=True)
        rows = np.concatenate(([0], np.cumsum(self.sizes)))
        shape = len(features), max(len(self._known), 1)
        self._turned = csr_array((np.ones(len(columns), np.int32), columns.reshape(-1), rows), shape=shape).T.tocsr()

    def similar(self, features: Sequence[U64], minimum: float) -> Iterator[PairSimilarities]:
        """All pairs of a text inside and a given one that are ``minimum`` (above 0) similar or more, in blocks."""
        step = max(1, _CELLS // max(len(self.sizes), 1))
        for begin in range(0, len(features), step):
            block = features[begin : begin + step]
            sizes = _sizes(block)
            common = (self._rows(block, sizes) @ self._turned).tocoo()
            given, inside = common.row, common.col
            similarity = common.data / (sizes[given] + self.sizes[inside] - common.data)
            there = np.flatnonzero(similarity >= minimum)
            yield PairSimilarities(
                inside[there].astype(np.intp), given[there].astype(np.intp) + begin, similarity[there]
            )

    def within(self, minimum: float) -> Iterator[PairSimilarities]:
        """The same of the texts inside among themselves, each pair once."""
        for inside, given, similarity in self.similar(self._features, minimum):
            once = inside < given
            yield PairSimilarities(inside[once], given[once], similarity[once])

    def _rows(self, block: Sequence[U64], sizes: NDArray[np.int64]) -> csr_array:
        """A matrix of given texts and known features."""
        flat = _joined(block)
        place = np.searchsorted(self._known, flat)
        known = np.zeros(len(flat), np.bool_)
        below = place < len(self._known)
        known[below] = self._known[place[below]] == flat[below]
        bounds = np.concatenate(([0], np.cumsum(known)))[np.concatenate(([0], np.cumsum(sizes)))]
        columns = place[known]
        shape = len(block), max(len(self._known), 1)
        return csr_array((np.ones(len(columns), np.int32), columns, bounds), shape=shape)


def _sizes(features: Sequence[U64]) -> NDArray[np.int64]:
    return np.array([len(one) for one in features], np.int64)


def _joined(features: Sequence[U64]) -> U64:
    return np.concatenate([np.empty(0, np.uint64), *features])
