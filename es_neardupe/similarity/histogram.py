"""Histogram of similarities: 50 bins, and the pairs of exactly 0 and exactly 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from es_neardupe.keys.arrays import Floats, Ints

EDGES: Floats = np.arange(51) / 50
"""Bin k holds similarities from ``EDGES[k]`` to below ``EDGES[k + 1]``; exactly 0 and exactly 1 are in none."""


@dataclass(frozen=True)
class Histogram:
    """Numbers of pairs by similarity: ``pairs = zero + sum(counts) + one``."""

    pairs: int
    zero: int
    """Pairs of exactly 0."""
    counts: tuple[int, ...]
    """Pairs in each bin."""
    one: int
    """Pairs of exactly 1."""

    @property
    def bins(self) -> tuple[int, ...]:
        """Pairs of exactly 0, in each bin, and of exactly 1."""
        return self.zero, *self.counts, self.one

    @classmethod
    def of(cls, counts: Ints) -> Histogram:
        """The histogram of the counts by `binned`."""
        zero, *bins, one = counts.tolist()
        return cls(sum(bins) + zero + one, zero, tuple(bins), one)


def binned(similarity: Floats, weights: Ints | None = None) -> Ints:
    """The numbers of values that are exactly 0, in each bin, and exactly 1: int64[bins + 2]. ``weights``: how many
    times each value counts."""
    place = np.searchsorted(EDGES, similarity, side="right")
    place[similarity == 0] = 0
    counts = np.bincount(place, weights, len(EDGES) + 1)
    return np.rint(counts).astype(np.int64)
