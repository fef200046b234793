"""All true pairs of some texts with any others: exact resemblance by counting every common feature."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from es_neardupe.keys.arrays import U64, Flags, Floats, Ints, Positions

_CELLS = 2_000_000
"""Pairs of texts counted at a time, which bounds the memory of a block to about 50 MB."""


class PairSimilarities(NamedTuple):
    """Pairs of a text inside the index and a given text, by their numbers, and their resemblance."""

    inside: Positions
    given: Positions
    similarity: Floats

    def only(self, kept: Flags) -> PairSimilarities:
        """The pairs selected by ``kept``, bool[pairs]."""
        return PairSimilarities(self.inside[kept], self.given[kept], self.similarity[kept])


class InvertedIndex:
    """Index from each feature of some texts to the texts that have it.

    A product of sparse matrices counts the common features of every pair. No pair is left out because of keys, lengths
    or estimates, so the result is the reference for candidates.
    """

    def __init__(self, features: Sequence[U64]) -> None:
        """``features``: sorted distinct features of each text, as returned by `es_neardupe.keys.shingles.features`."""
        self.features = list(features)
        self.sizes = _sizes(features)
        self._known, columns = np.unique(_joined(features), return_inverse=True)
        rows = np.concatenate(([0], np.cumsum(self.sizes)))
        shape = len(features), max(len(self._known), 1)
        matrix = csr_array((np.ones(len(columns), np.int32), columns.reshape(-1), rows), shape=shape)
        self._transposed = matrix.T.tocsr()

    def similar(self, features: Sequence[U64], minimum: float) -> Iterator[PairSimilarities]:
        """All pairs of a text inside and a given one that are at least ``minimum`` (above 0) similar, in blocks."""
        step = max(1, _CELLS // max(len(self.sizes), 1))
        for begin in range(0, len(features), step):
            block = features[begin : begin + step]
            sizes = _sizes(block)
            common = (self._rows(block, sizes) @ self._transposed).tocoo()
            given, inside = common.row, common.col
            similarity = common.data / (sizes[given] + self.sizes[inside] - common.data)
            true = np.flatnonzero(similarity >= minimum)
            yield PairSimilarities(inside[true].astype(np.intp), given[true].astype(np.intp) + begin, similarity[true])

    def within(self, minimum: float) -> Iterator[PairSimilarities]:
        """All such pairs of two texts inside, each pair once."""
        for inside, given, similarity in self.similar(self.features, minimum):
            once = inside < given
            yield PairSimilarities(inside[once], given[once], similarity[once])

    def _rows(self, block: Sequence[U64], sizes: Ints) -> csr_array:
        """Matrix of the given texts by known features."""
        flat = _joined(block)
        place = np.searchsorted(self._known, flat)
        known = np.zeros(len(flat), np.bool_)
        below = place < len(self._known)
        known[below] = self._known[place[below]] == flat[below]
        bounds = np.concatenate(([0], np.cumsum(known)))[np.concatenate(([0], np.cumsum(sizes)))]
        columns = place[known]
        shape = len(block), max(len(self._known), 1)
        return csr_array((np.ones(len(columns), np.int32), columns, bounds), shape=shape)


def _sizes(features: Sequence[U64]) -> Ints:
    return np.array([len(one) for one in features], np.int64)


def _joined(features: Sequence[U64]) -> U64:
    return np.concatenate([np.empty(0, np.uint64), *features])
