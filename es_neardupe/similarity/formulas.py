"""Formulas of the exact measures, with values from 0 to 1.

Equal inputs have the value 1, also if both are empty; an empty input and any other have 0. Set measures take sorted
distinct features, the others an alignment or token hashes.
"""

from __future__ import annotations

from array import array
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from rapidfuzz.distance import Levenshtein

from es_neardupe.errors import InputError
from es_neardupe.keys.arrays import I32, U64, Floats, Ints, Positions
from es_neardupe.progress import Progress, silent
from es_neardupe.similarity import batch
from es_neardupe.similarity.alignment import Alignment, AlignmentTotals
from es_neardupe.similarity.batch import Batch

_MANY = 16
"""Pairs per text above which it is faster to number all features."""

_PART = 200_000
"""Features of the pairs that are compared at a time in C, which are copied: 1.6 MB."""

_AT_ONCE = 10_000_000
"""Features that are counted without interruption: some ten milliseconds."""

_FEW = 20
"""Pairs below which copying their features takes longer than comparing them one by one."""


_MAX_DISTINCT = (1 << 31) - 1
"""Distinct features that have a number of 32 bits."""


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

    Each element of ``features`` is sorted and distinct. If texts have many partners, pairs are computed by numbers of
    all features (`FeatureSets`), faster if those with the same left side follow each other; a few pairs are computed
    one by one.
    """
    if len(left) > _MANY * len(features):
        return FeatureSets(features).resemblances(left, right)
    if batch.kernel is None or len(left) < _FEW:
        pairs = zip(left.tolist(), right.tolist(), strict=True)
        return np.array([resemblance(features[a], features[b]) for a, b in pairs], np.float64)
    sizes = np.array([len(one) for one in features], np.int64)
    both = sizes[left] + sizes[right]
    cuts = np.flatnonzero(np.diff(np.cumsum(both) // _PART)) + 1
    parts = zip(np.split(left, cuts), np.split(right, cuts), strict=True)
    common = np.concatenate([_counts_in_common(Batch.of(features, *part)) for part in parts])
    return _shares(common, both - common)


def _counts_in_common(pairs: Batch) -> Ints:
    """The number of features that both texts of each pair have."""
    assert batch.kernel is not None
    counts = np.empty(len(pairs.left), np.int64)
    batch.kernel.common(pairs.joined(), pairs.bounds, pairs.left, pairs.right, counts)
    return counts


class FeatureSets:
    """Sets of features for the resemblance of many pairs of them. Not for several threads at once.

    Each feature is replaced by its number among the distinct ones. Those of a set are marked in a vector, and counted
    in all its partners. So a pair in a dense cluster costs one memory access for each feature of one side.

    Up to 5 bytes for each feature of a set, and up to 48 while it is made; 61 without the inner loops in C.
    """

    def __init__(self, features: Sequence[U64]) -> None:
        """Each element of ``features`` is sorted and distinct. Raises `InputError` for more than 2^31 - 1 different
        ones."""
        self._sizes: Ints = np.array([len(one) for one in features], np.int64)
        self._bounds: Ints = np.concatenate(([0], np.cumsum(self._sizes)))
        self._numbers, distinct = _numbered(np.concatenate([np.empty(0, np.uint64), *features]))
        self._marks = np.zeros(distinct, np.uint8)

    def resemblances(self, left: Positions, right: Positions) -> Floats:
        """The resemblance of pairs of sets, by their places: float64[pairs]. Faster if pairs with the same left side
        follow each other."""
        left, right = np.ascontiguousarray(left, np.int64), np.ascontiguousarray(right, np.int64)
        sizes, common = self._sizes[right], np.empty(len(left), np.int64)
        cuts = np.flatnonzero(np.diff(left if batch.kernel is None else np.cumsum(sizes) // _AT_ONCE)) + 1
        for some, others, counts in zip(*(np.split(one, cuts) for one in (left, right, common)), strict=True):
            if batch.kernel is not None:
                batch.kernel.shared(self._numbers, self._bounds, some, others, self._marks, counts)
            elif len(some):
                counts[:] = self._common(int(some[0]), others)
        return _shares(common, self._sizes[left] + sizes - common)

    def _common(self, one: int, others: Positions) -> Ints:
        """The number of features of each of some sets that one set has, too."""
        self._marks[self._set(one)] = 1
        found = self._marks[np.concatenate([self._set(other) for other in others.tolist()])]
        self._marks[self._set(one)] = 0
        sums, ends = np.concatenate(([0], np.cumsum(found, dtype=np.int64))), np.cumsum(self._sizes[others])
        counts: Ints = sums[ends] - sums[ends - self._sizes[others]]
        return counts

    def _set(self, place: int) -> I32:
        return self._numbers[self._bounds[place] : self._bounds[place + 1]]


def _numbered(features: U64) -> tuple[I32, int]:
    """The number of each feature among the distinct ones, and how many these are. Raises `InputError` for too many."""
    numbers = np.empty(len(features), np.int32)
    distinct = -1 if batch.kernel is None else batch.kernel.numbered(features, numbers)
    if distinct < 0:  # not numbered in C
        every, found = np.unique(features, return_inverse=True)
        if len(every) > _MAX_DISTINCT:
            raise InputError(
                f"{len(every):,} different features are too many to compare at once. Compare fewer or shorter texts."
            )
        return found.reshape(-1).astype(np.int32), len(every)
    return numbers, distinct


def _shares(common: Ints | Floats, whole: Ints | Floats) -> Floats:
    """What both sides of each pair have in common, among all that one of them has; 1 if neither has anything."""
    shares: Floats = np.divide(common, whole, out=np.ones(len(whole)), where=whole != 0)
    return shares


def jaccard(alignment: Alignment | AlignmentTotals) -> float:
    """S_J = C / (L + S - C): common words among all words of both texts, where common words count once."""
    common = alignment.common
    return _share(common, alignment.longer + alignment.shorter - common)


def containment(alignment: Alignment | AlignmentTotals) -> float:
    """C / S: the share of the shorter text that is in the longer text."""
    return _share(alignment.common, alignment.shorter) if alignment.shorter else float(not alignment.longer)


def containment_longer(alignment: Alignment | AlignmentTotals) -> float:
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


def weighted_pairs(
    features: Sequence[U64], left: Positions, right: Positions, weights: Weights, progress: Progress = silent
) -> Floats:
    """`weighted` of the pairs ``(features[left[k]], features[right[k]])``: float64[pairs].

    The weights of each text are looked up once. Sums are of the same numbers in the same order as in `weighted`, so the
    last digits are the same, too.
    """
    pairs = Batch.of(features, left, right)
    joined, bounds = pairs.joined(), pairs.bounds
    order = np.argsort(joined)  # sorted searches stay near their last position
    each = np.empty(len(joined))
    each[order] = weights.of(joined[order])
    totals = np.array([one.sum() for one in np.split(each, bounds[1:-1])])
    shared = np.zeros(len(left))
    for part in pairs.parts(progress):
        shared[part] = [
            one.sum() for one in _weights_in_common(joined, bounds, pairs.left[part], pairs.right[part], each)
        ]
    return _shares(shared, totals[pairs.left] + totals[pairs.right] - shared)


def _weights_in_common(features: U64, bounds: Ints, left: Ints, right: Ints, weights: Floats) -> list[Floats]:
    """The weights of the features that both texts of each pair have, sorted by feature."""
    if batch.kernel is not None:
        counts = np.empty(len(left), np.int64)
        places = np.frombuffer(batch.kernel.common(features, bounds, left, right, counts), np.int64)
        return np.split(weights[places], np.cumsum(counts)[:-1])
    texts = [slice(start, end) for start, end in pairwise(bounds.tolist())]
    pairs = ((texts[a], texts[b]) for a, b in zip(left.tolist(), right.tolist(), strict=True))
    return [weights[a][np.isin(features[a], features[b], assume_unique=True)] for a, b in pairs]


def edit(a: U64, b: U64) -> float:
    """1 - d / L, where d is the minimum number of words to insert, delete or replace (Levenshtein 1966)."""
    longer = max(len(a), len(b))
    return _share(longer - _distance(a, b), longer)


def edits(texts: Sequence[U64], left: Positions, right: Positions, progress: Progress = silent) -> Floats:
    """`edit` of the pairs ``(texts[left[k]], texts[right[k]])``: float64[pairs]."""
    pairs = Batch.of(texts, left, right)
    joined, bounds = pairs.joined(), pairs.bounds
    longer = np.maximum(pairs.sizes[pairs.left], pairs.sizes[pairs.right])
    distance = np.full(len(left), -1, np.int64)
    for part in pairs.parts(progress):
        one, other, found = pairs.left[part], pairs.right[part], distance[part]
        if batch.kernel is not None:
            batch.kernel.distances(joined, bounds, one, other, found)
        for k in np.flatnonzero(found < 0).tolist():
            found[k] = _distance(pairs.texts[one[k]], pairs.texts[other[k]])
    similarity: Floats = np.divide(longer - distance, longer, out=np.ones(len(left)), where=longer > 0)
    return similarity


def _distance(a: U64, b: U64) -> int:
    """The edit distance; of arrays, since lists would be lists of objects.

    The hint makes the distance of long near-copies 40 times as fast to compute, and that of unrelated long texts 1.4
    times as slow.
    """
    hint = max(len(a), len(b)) // 64
    return Levenshtein.distance(array("Q", a.tobytes()), array("Q", b.tobytes()), score_hint=hint)
