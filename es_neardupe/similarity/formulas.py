"""Exact measures. Each is a number from 0 to 1; equal inputs have 1, also two empty ones, an empty one and another 0.

Set measures take sorted distinct features, the others an alignment or token hashes.
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
"""Features compared at a time: bounds the temporary arrays to some 40 MB."""

_MANY = 16
"""Pairs per text from which on a table of all features is worth its making."""


def resemblance(a: U64, b: U64) -> float:
    """|a & b| / |a | b| of two sorted arrays of distinct features.

    Two empty sets resemble each other fully (the texts are equal as far as tokens go); an empty one and
    another not at all.
    """
    if not len(a) or not len(b):
        return float(len(a) == len(b))
    both = np.concatenate((a, b))
    both.sort()
    common = int(np.count_nonzero(both[1:] == both[:-1]))
    return common / (len(a) + len(b) - common)


def resemblances(features: Sequence[U64], left: Positions, right: Positions) -> Floats:
    """Resemblance of the pairs ``(features[left[k]], features[right[k]])``, float64 of the pairs' number.

    Each element of ``features`` is sorted and distinct. Where texts have few partners, the pairs are taken one by
    one; see `_by_table` for the others.
    """
    if len(left) > _MANY * len(features):
        return _by_table(features, left, right)
    pairs = zip(left.tolist(), right.tolist(), strict=True)
    return np.array([resemblance(features[a], features[b]) for a, b in pairs], np.float64)


def _by_table(features: Sequence[U64], left: Positions, right: Positions) -> Floats:
    """Pairs by their left side: its features are marked in a table of all features, and one gather over all its
    partners counts what they share. So a dense cluster costs one memory access per partner's feature, without any
    sorting per pair.
    """
    result = np.zeros(len(left), np.float64)
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


def _numbered(features: Sequence[U64], sizes: Ints) -> Ints:
    """All features one after the other, each replaced by its rank among the distinct ones."""
    if not sizes.sum():
        return np.zeros(0, np.int64)
    return np.unique(np.concatenate(features), return_inverse=True)[1].reshape(-1).astype(np.int64)


def _blocks(run: Positions, weights: Ints) -> list[Positions]:
    """Cut a run where the sum of weights passes a multiple of the block size."""
    block = np.cumsum(weights) // _BLOCK
    return np.split(run, np.flatnonzero(np.diff(block)) + 1)


def _shared(
    marked: Flags,
    numbers: Ints,
    starts: Ints,
    lengths: Ints,
    partners: Positions,
) -> Ints:
    """How many features of each partner are marked; int64 of the partners' number."""
    ends = np.cumsum(lengths)
    places = np.arange(ends[-1]) + np.repeat(starts[partners] - (ends - lengths), lengths)
    hits = np.concatenate([[0], np.cumsum(marked[numbers[places]])])
    counts: Ints = hits[ends] - hits[ends - lengths]
    return counts


def jaccard(alignment: Alignment) -> float:
    """S_J = C / (L + S - C): the common words among all words of both texts, common ones taken once."""
    common = alignment.common
    return _share(common, alignment.longer + alignment.shorter - common)


def containment(alignment: Alignment) -> float:
    """C / S: how much of the shorter text is in the longer one."""
    return _share(alignment.common, alignment.shorter) if alignment.shorter else float(not alignment.longer)


def containment_longer(alignment: Alignment) -> float:
    """S_L = C / L: how much of the longer text is in the shorter one. Who has read either knows that much of both."""
    return _share(alignment.common, alignment.longer)


def _share(part: int, whole: int) -> float:
    return part / whole if whole else 1.0


@dataclass(frozen=True, slots=True)
class Weights:
    """How much each feature says: ln((N + 1) / (n + 1)) + 1 for one that n of N sampled documents have, so that one
    which none of them has says most (smoothed inverse document frequency, Spaerck Jones 1972)."""

    documents: int
    """N: the documents of the sample."""
    features: U64
    """Sorted; those that the sample has."""
    frequencies: Ints
    """n of each."""

    def of(self, features: U64) -> Floats:
        """The weights of features (float64 of their number)."""
        frequency = np.zeros(len(features), np.int64)
        if len(self.features):
            places = np.minimum(np.searchsorted(self.features, features), len(self.features) - 1)
            frequency = np.where(self.features[places] == features, self.frequencies[places], 0)
        weights: Floats = np.log((self.documents + 1) / (frequency + 1)) + 1
        return weights


def weighted(a: U64, b: U64, weights: Weights) -> float:
    """Jaccard of sorted distinct features, each with its weight: what is rare counts more than boilerplate."""
    _, in_a, _ = np.intersect1d(a, b, assume_unique=True, return_indices=True)
    of_a, of_b = weights.of(a), weights.of(b)
    shared = float(of_a[in_a].sum())
    whole = float(of_a.sum()) + float(of_b.sum()) - shared
    return shared / whole if whole else 1.0


def edit(a: U64, b: U64) -> float:
    """1 - d / L, where d is the least number of words to insert, delete or replace (Levenshtein 1966)."""
    longer = max(len(a), len(b))
    return _share(longer - Levenshtein.distance(a.tolist(), b.tolist()), longer)
