"""A measure of many pairs of texts at once: of given ones, or of all, in blocks of bounded memory.

Set measures of all pairs come from one product of sparse matrices (texts x features). A measure of common passages
is 0 where two texts share no run of words, so only the others are aligned. The rest is computed pair by pair.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array

from es_neardupe.keys import window_hashes
from es_neardupe.measures import Weights, resemblances
from es_neardupe.progress import Progress, silent
from es_neardupe.scoring import Measure, MeasureName, Prepared

__all__ = ["Block", "all_pairs", "default_sample", "measure_name", "measure_words", "of_pairs", "weights_of"]

U64 = NDArray[np.uint64]
Ints = NDArray[np.intp]
Floats = NDArray[np.float64]

_SETS = (MeasureName.RESEMBLANCE, MeasureName.BAG, MeasureName.WEIGHTED)

_CELLS = 250_000
"""Pairs in a block."""

_STEP = np.uint64(0x9E3779B97F4A7C15)
"""Tells the repeats of an n-gram in one text apart."""


class Block(NamedTuple):
    """Pairs of numbers of texts, left < right, and their measure."""

    left: Ints
    right: Ints
    similarity: Floats


def default_sample(name: MeasureName) -> int:
    """Texts whose pairs take seconds: 2 million pairs of sets, 125,000 pairs that take some 0.1 ms each."""
    return 2000 if name in _SETS else 500


def measure_words(measure: Measure) -> int | None:
    """Words of a shingle, of an n-gram, or of the shortest common passage; None for a measure without any."""
    if measure.name is MeasureName.EDIT:
        return None
    return measure.ngram if measure.name is MeasureName.BAG else measure.shingle


def measure_name(measure: Measure) -> str:
    """Its name with these words, such as ``bag 2``."""
    words = measure_words(measure)
    return measure.name.value if words is None else f"{measure.name.value} {words}"


def weights_of(prepared: Sequence[Prepared]) -> Weights:
    """The frequencies of the features of these texts."""
    found = [one.features for one in prepared]
    features, frequencies = np.unique(np.concatenate(found or [np.empty(0, np.uint64)]), return_counts=True)
    return Weights(len(found), features, frequencies.astype(np.int64))


def all_pairs(measure: Measure, prepared: Sequence[Prepared]) -> Iterator[Block]:
    """Every pair of texts once, in blocks."""
    if len(prepared) < 2:
        return
    if measure.name in _SETS:
        for left, right, common, whole in _common(_elements(measure, prepared), measure.weights):
            yield Block(left, right, _share(common, whole))
    elif measure.aligned:
        for left, right, common, _ in _common([_windows(one, measure.shingle) for one in prepared], None):
            similarity = np.zeros(len(left))
            some = np.flatnonzero(common)
            similarity[some] = measure.scores(prepared, left[some], right[some])
            yield Block(left, right, similarity)
    else:
        for left, right in _numbers(len(prepared)):
            yield Block(left, right, measure.scores(prepared, left, right))


def of_pairs(
    measure: Measure, prepared: Sequence[Prepared], left: Ints, right: Ints, progress: Progress = silent
) -> Floats:
    """The measure of the pairs ``(prepared[left[k]], prepared[right[k]])``: float64 of their number."""
    if measure.name is MeasureName.BAG:
        return resemblances(_elements(measure, prepared), left, right)
    return measure.scores(prepared, left, right, progress)


def _elements(measure: Measure, prepared: Sequence[Prepared]) -> list[U64]:
    """The set of each text that its measure compares, sorted and distinct. A bag becomes a set when the n-th
    occurrence of an n-gram is an element of its own."""
    found = [one.features for one in prepared]
    return list(map(_bag, found)) if measure.name is MeasureName.BAG else found


def _bag(grams: U64) -> U64:
    first = np.flatnonzero(np.concatenate(([True], grams[1:] != grams[:-1]))) if len(grams) else np.empty(0, np.intp)
    repeat = np.arange(len(grams)) - np.repeat(first, np.diff(np.append(first, len(grams))))
    return np.sort(grams + repeat.astype(np.uint64) * _STEP)


def _windows(one: Prepared, least: int) -> U64:
    """The runs of ``least`` words; of a shorter text all its words, which only an equal text has."""
    return np.unique(window_hashes(one.tokens, min(least, max(len(one.tokens), 1))))


def _common(found: Sequence[U64], weights: Weights | None) -> Iterator[tuple[Ints, Ints, Floats, Floats]]:
    """Of all pairs: the weight of what both sets have, and of what either has."""
    columns, numbers = np.unique(np.concatenate(found), return_inverse=True)
    bounds = np.concatenate(([0], np.cumsum([len(one) for one in found])))
    weight = np.ones(len(columns)) if weights is None else weights.of(columns)
    shape = len(found), max(len(columns), 1)
    numbers = numbers.reshape(-1)
    there = csr_array((np.ones(len(numbers)), numbers, bounds), shape=shape)
    weighted = csr_array((weight[numbers], numbers, bounds), shape=shape)
    totals = weighted.sum(axis=1)
    turned = weighted.T.tocsr()
    for left, right in _numbers(len(found)):
        begin, end = int(left[0]), int(left[-1]) + 1
        shared = (there[begin:end] @ turned).toarray()[left - begin, right]
        yield left, right, shared, totals[left] + totals[right] - shared


def _share(common: Floats, whole: Floats) -> Floats:
    """Sums of weights in another order differ in their last digits, and equal sets must have exactly 1."""
    similarity = np.divide(common, whole, out=np.ones(len(common)), where=whole > 0)
    exact = np.isclose(similarity, 1, rtol=0, atol=1e-12)
    return np.where(exact, 1.0, similarity)


def _numbers(size: int) -> Iterator[tuple[Ints, Ints]]:
    """All pairs of numbers below ``size``, left < right, some rows of the triangle at a time."""
    step = max(1, _CELLS // max(size, 1))
    for begin in range(0, size - 1, step):
        rows = np.arange(begin, min(begin + step, size - 1))
        left, right = np.nonzero(np.arange(size)[None, :] > rows[:, None])
        yield left + begin, right
