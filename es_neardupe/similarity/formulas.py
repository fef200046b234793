"""Formulas of the exact measures, with values from 0 to 1.

Equal inputs have the value 1, also if both are empty; an empty input and any other have 0. Set measures take sorted
distinct features, the others an alignment or token hashes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from rapidfuzz.distance import Levenshtein

from es_neardupe.keys.arrays import U64, Flags, Floats, Ints, Positions
from es_neardupe.similarity.alignment import Alignment

__all__ = [
    "Weights",
    "containment",
    "containment_longer",
    "edit",
    "jaccard",
    "resemblance",
    "resemblances",
    "weighted",
]

_BLOCK = 4_000_000
"""Features compared at a time. Limits the temporary arrays to about 40 MB."""

_MANY = 16
"""Pairs per text above which a table of all features is faster."""


def resemblance(a: U64, b: U64) -> float:
    """|a & b| / |a | b| of two sorted arrays of distinct features.

    The resemblance of two empty sets is 1 (both texts have no tokens), that of an empty set and any other 0.
    """
    if not len(a) or not len(b):
        return float(len(a) == len(b))
    both = np.concatenate((a, b))
    both.sort()
    common = int(np.count_nonzero(both[1:] == both[:-1]))
    return common / (len(a) + len(b) - common)


def resemblances(features: Sequence[U64], left: Positions, right: Positions) -> Floats:
    """Resemblance of the pairs ``(features[left[k]], features[right[k]])``: float64[pairs].

    Each element of ``features`` is sorted and distinct. If texts have few partners, pairs are computed one by one, else
    by a table of all features (`_by_table`).
    """
    if len(left) > _MANY * len(features):
        return _by_table(features, left, right)
    pairs = zip(left.tolist(), right.tolist(), strict=True)
    return np.array([resemblance(features[a], features[b]) for a, b in pairs], np.float64)


def _by_table(features: Sequence[U64], left: Positions, right: Positions) -> Floats:
    """Resemblance of pairs, grouped by their left side: its features are marked in a table of all features, and one
    gather over all its partners counts the common features. So a dense cluster costs one memory access for each feature
    of a partner, and no sorting per pair.
    """
    result = np.zeros(len(left), np.float64)
    sizes = np.array([len(one) for one in features], np.int64)
    numbers = _numbered(features, sizes)
    starts = np.concatenate([[0], np.cumsum(sizes)])
    marked = np.zeros(int(numbers.max(initial=-1)) + 1, np.bool_)
    order = np.argsort(left, kind="stable")
    cuts = np.flatnonzero(np.diff(left[order])) + 1
    for run in np.split(order, cuts):
        one = int(left[run[0]])
        of_one = numbers[starts[one] : starts[one + 1]]
        marked[of_one] = True
        for block in _blocks(run, sizes[right[run]]):
            partners = right[block]
            common = _shared(marked, numbers, starts, sizes[partners], partners)
            total = sizes[one] + sizes[partners] - common
            result[block] = np.divide(common, total, out=np.ones(len(block)), where=total > 0)
        marked[of_one] = False
    return result


def _numbered(features: Sequence[U64], sizes: Ints) -> Ints:
    """All features in a row, each replaced by its rank among the distinct features."""
    if not sizes.sum():
        return np.zeros(0, np.int64)
    return np.unique(np.concatenate(features), return_inverse=True)[1].reshape(-1).astype(np.int64)


def _blocks(run: Positions, weights: Ints) -> list[Positions]:
    """Split a run where the sum of weights passes a multiple of the block size."""
    block = np.cumsum(weights) // _BLOCK
    return np.split(run, np.flatnonzero(np.diff(block)) + 1)


def _shared(
    marked: Flags,
    numbers: Ints,
    starts: Ints,
    lengths: Ints,
    partners: Positions,
) -> Ints:
    """The number of marked features of each partner: int64[partners]."""
    ends = np.cumsum(lengths)
    places = np.arange(ends[-1]) + np.repeat(starts[partners] - (ends - lengths), lengths)
    hits = np.concatenate([[0], np.cumsum(marked[numbers[places]])])
    counts: Ints = hits[ends] - hits[ends - lengths]
    return counts


def jaccard(alignment: Alignment) -> float:
    """S_J = C / (L + S - C): common words among all words of both texts, where common words count once."""
    common = alignment.common
    return _share(common, alignment.longer + alignment.shorter - common)


def containment(alignment: Alignment) -> float:
    """C / S: the share of the shorter text that is in the longer text."""
    return _share(alignment.common, alignment.shorter) if alignment.shorter else float(not alignment.longer)


def containment_longer(alignment: Alignment) -> float:
    """S_L = C / L: the share of the longer text that is in the shorter text."""
    return _share(alignment.common, alignment.longer)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0


@dataclass(frozen=True, slots=True)
class Weights:
    """Weights of features: ln((N + 1) / (n + 1)) + 1 for a feature that n of N sampled documents have (smoothed inverse
    document frequency, Spaerck Jones 1972)."""

    documents: int
    """N: documents in the sample."""
    features: U64
    """The features of the sample, sorted."""
    frequencies: Ints
    """n of each feature."""

    def of(self, features: U64) -> Floats:
        """The weights of features: float64[features]."""
        frequency = np.zeros(len(features), np.int64)
        if len(self.features):
            places = np.minimum(np.searchsorted(self.features, features), len(self.features) - 1)
            frequency = np.where(self.features[places] == features, self.frequencies[places], 0)
        weights: Floats = np.log((self.documents + 1) / (frequency + 1)) + 1
        return weights


def weighted(a: U64, b: U64, weights: Weights) -> float:
    """Weighted Jaccard of sorted distinct features: rare features count more than boilerplate."""
    _, in_a, _ = np.intersect1d(a, b, assume_unique=True, return_indices=True)
    of_a, of_b = weights.of(a), weights.of(b)
    shared = float(of_a[in_a].sum())
    whole = float(of_a.sum()) + float(of_b.sum()) - shared
    return shared / whole if whole else 1.0


def edit(a: U64, b: U64) -> float:
    """1 - d / L, where d is the minimum number of words to insert, delete or replace (Levenshtein 1966)."""
    longer = max(len(a), len(b))
    return _share(longer - Levenshtein.distance(a.tolist(), b.tolist()), longer)
