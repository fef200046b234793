"""Histogram of similarities: 50 bins, and the pairs of exactly 0 and exactly 1."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from es_neardupe.keys.arrays import Floats, Ints

__all__ = ["EDGES", "Histogram", "counted"]


EDGES: Floats = np.arange(51) / 50
"""Bin k holds similarities from ``EDGES[k]`` to below ``EDGES[k + 1]``; exactly 0 and exactly 1 are in none."""


@dataclass(frozen=True)
class Histogram:
    """Pairs of documents by their similarity: ``pairs = zero + sum(counts) + one``."""

    pairs: int
    zero: int
    """Exactly 0."""
    counts: tuple[int, ...]
    """One number for each bin between two edges."""
    one: int
    """Exactly 1."""

    @classmethod
    def of(cls, counts: Ints) -> Histogram:
        """Name the counts that `counted` gives."""
        zero, *bins, one = counts.tolist()
        return cls(sum(bins) + zero + one, zero, tuple(bins), one)


def counted(similarity: Floats, weights: Ints | None = None) -> Ints:
    """How many are exactly 0, in each bin, and exactly 1: int64[bins + 2]. ``weights``: how often each counts."""
    place = np.searchsorted(EDGES, similarity, side="right")
    place[similarity == 0] = 0
    counts = np.bincount(place, weights, len(EDGES) + 1)
    return np.rint(counts).astype(np.int64)
