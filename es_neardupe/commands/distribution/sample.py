"""Random sample of an index: the similarities of all its pairs, and estimates for the whole index."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from es_neardupe.candidates.fingerprints import keyed_rows
from es_neardupe.index.slices import address_hashes
from es_neardupe.keys.arrays import U64, Floats, Ints, Positions
from es_neardupe.keys.bands import share_keys
from es_neardupe.keys.intervals import poisson_interval
from es_neardupe.progress import Progress, silent
from es_neardupe.records import FingerprintColumns
from es_neardupe.similarity.histogram import EDGES, binned
from es_neardupe.similarity.measure import Measure, all_pairs, measure_name


@dataclass(frozen=True)
class EstimatedPairs:
    """Number of pairs in the whole index, estimated from a sample, with its 95 % interval."""

    pairs: float
    low: float
    high: float


@dataclass(frozen=True)
class Sample:
    """Similarities of all pairs of n documents, with t thresholds."""

    counts: Ints
    """Histogram as returned by `binned`."""
    degrees: Ints
    """Number of pairs of each document that reach each threshold; shape (t, n)."""
    found: Ints
    """Number of pairs that reach each threshold and share enough band keys; shape (t,)."""
    near: Floats
    """Pairs nearest to one threshold: similarity and the numbers of both documents; shape (pairs, 3)."""


def random_rows(corpus: FingerprintColumns, seed: int) -> Positions:
    """The rows with keys in a random order that depends only on the seed and the addresses.

    The first n rows are a sample of n documents, so a smaller sample is part of a larger one.
    """
    rows = keyed_rows(corpus)
    hashes = address_hashes((corpus.references[row] for row in rows.tolist()), seed)
    return rows[np.argsort(hashes, kind="stable")]


def compare_sample(
    measure: Measure,
    texts: Sequence[str],
    keys: U64,
    *,
    thresholds: Sequence[float],
    threshold: float,
    agree: int = 1,
    progress: Progress = silent,
) -> Sample:
    """Compare all texts with each other.

    ``keys``: the band keys of the texts, shape (n, bands); candidates share ``agree`` of them. ``threshold``: the one
    for `Sample.near`. Memory holds the features of the texts and one block of pairs.
    """
    size, pairs = len(texts), len(texts) * (len(texts) - 1) // 2
    counts = np.zeros(len(EDGES) + 1, np.int64)
    degrees, found = np.zeros((len(thresholds), size), np.int64), np.zeros(len(thresholds), np.int64)
    near = np.empty((0, 3))
    stage = f"sample, {measure_name(measure)}"
    progress(stage, 0, pairs)
    for left, right, similarity in all_pairs(measure, measure.prepare(texts)):
        counts += binned(similarity)
        some = np.flatnonzero(similarity >= min(thresholds))
        shared = share_keys(keys[left[some]], keys[right[some]], agree)
        for place, level in enumerate(thresholds):
            reached = similarity[some] >= level
            ends = np.concatenate((left[some][reached], right[some][reached]))
            degrees[place] += np.bincount(ends, minlength=size)
            found[place] += int((reached & shared).sum())
        block = nearest(similarity, threshold)
        near = np.concatenate((near, np.stack((similarity[block], left[block], right[block]), axis=1)))
        near = near[nearest(near[:, 0], threshold)]
        progress(stage, int(counts.sum()), pairs)
    return Sample(counts, degrees, found, near)


def nearest(similarity: Floats, threshold: float, maximum: int = 100) -> Positions:
    """The positions of up to ``maximum`` pairs at or just above the threshold, and of as many just below it."""
    order = np.argsort(similarity, kind="stable")
    place = int(np.searchsorted(similarity[order], threshold))
    return order[max(0, place - maximum) : place + maximum]


def extrapolated(degrees: Ints, documents: int) -> EstimatedPairs:
    """The number of pairs among ``documents`` documents, estimated from a random sample of them.

    ``degrees``: the number of pairs of each document of the sample. Pairs that share a document are not independent,
    so the variance is that of Horvitz & Thompson 1952 for pairs of a sample drawn without replacement. The interval is
    that of a Poisson distribution for the count, widened by the ratio of this variance to the count. A cluster of
    which the sample has fewer than two documents does not affect it.
    """
    size, count = len(degrees), int(degrees.sum()) // 2
    both = size * (size - 1) / (documents * (documents - 1))
    if size >= documents:
        return EstimatedPairs(float(count), float(count), float(count))
    ratio = max(_variance(degrees, documents) / count if count else 0.0, 1 - both)
    low, high = poisson_interval(count / ratio)
    maximum = documents * (documents - 1) / 2
    return EstimatedPairs(count / both, max(ratio * low / both, count), min(ratio * high / both, maximum))


def _variance(degrees: Ints, documents: int) -> float:
    """Estimated variance of the number of pairs in the sample: the terms for the same pair, for two pairs that share a
    document, and for two that share none."""
    size, count = len(degrees), int(degrees.sum()) // 2
    p2 = _drawn(2, size, documents)
    sharing = int((degrees * (degrees - 1)).sum())
    apart = count * count - count - sharing
    variance = count * (1 - p2)
    if sharing:
        variance += sharing * (1 - p2 * p2 / _drawn(3, size, documents))
    if apart:
        variance += apart * (1 - p2 * p2 / _drawn(4, size, documents))
    return variance


def _drawn(given: int, size: int, documents: int) -> float:
    """The probability that so many given documents are drawn."""
    probability = 1.0
    for number in range(given):
        probability *= (size - number) / (documents - number)
    return probability
