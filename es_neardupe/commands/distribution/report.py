"""Report of a distribution: histograms, what each threshold would find, and what a sample says of the whole."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from es_neardupe.commands.report_parts import one_line
from es_neardupe.keys.intervals import poisson_interval
from es_neardupe.records import Address
from es_neardupe.similarity.histogram import Histogram

__all__ = [
    "Distribution",
    "DistributionReport",
    "EstimatedPairs",
    "SimilarityExample",
    "ThresholdLevel",
    "extrapolated",
    "nearest",
]

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class EstimatedPairs:
    """A number of pairs in the whole index, estimated from a sample, with its 95 % interval."""

    pairs: float
    low: float
    high: float


@dataclass(frozen=True)
class ThresholdLevel:
    """What a threshold would find."""

    threshold: float
    detection: float | None
    """Probability that the bands find a pair exactly so similar; None where they were made for another measure."""
    pairs: int
    """Candidate pairs of documents that reach it, in the whole index."""
    documents: int
    """Documents in these pairs."""
    groups: int
    """Star groups of two documents or more."""
    largest: int
    """Documents of the largest."""
    sample_pairs: int
    """Pairs of the sample that reach it, found by comparing all with all."""
    sample_found: int
    """Of these, candidate pairs by their keys."""
    expected: EstimatedPairs
    """All pairs of the index that reach it, candidates or not."""


@dataclass(frozen=True)
class SimilarityExample:
    """Two documents near the threshold, and how they go on from the first word that differs."""

    similarity: float
    a: Address
    b: Address
    excerpt_a: str
    excerpt_b: str


@dataclass(frozen=True)
class Distribution:
    """Where the numbers of one measure lie."""

    measure: str
    matching: str | None
    """For measures of common passages."""
    shingle: int | None
    """Words of a shingle, of an n-gram, or of the shortest common passage; None for a measure without any."""
    sampled: int
    """Documents whose pairs were all compared."""
    sample: Histogram
    candidates: Histogram
    """Pairs of documents, in the whole index, that are candidates or exact copies."""
    levels: tuple[ThresholdLevel, ...]
    above: tuple[SimilarityExample, ...]
    below: tuple[SimilarityExample, ...]

    @property
    def title(self) -> str:
        """The measure with its settings."""
        words = "" if self.shingle is None else f", {self.shingle} word" + "s" * (self.shingle > 1)
        return self.measure + (f", {self.matching}" if self.matching else "") + words


@dataclass(frozen=True)
class DistributionReport:
    """The distributions of an index. ``edges`` are those of all histograms."""

    index: str
    indices: tuple[str, ...]
    """Concrete indices that were read."""
    scheme: str
    threshold: float
    seed: int
    documents: int
    """Documents with keys: what a sample is drawn from."""
    candidates: int
    """Candidate pairs of distinct texts: each was compared."""
    skipped: int
    """Comparisons left out in large buckets."""
    stale: int
    """Documents among those read that changed or were deleted since they got their keys: in no pair."""
    edges: tuple[float, ...]
    distributions: tuple[Distribution, ...]
    seconds: float = field(compare=False)

    def __repr__(self) -> str:
        return one_line(
            self,
            index=self.index,
            documents=self.documents,
            candidates=self.candidates,
            measures=[one.measure for one in self.distributions],
        )


def nearest(similarity: NDArray[np.float64], threshold: float, maximum: int = 100) -> NDArray[np.intp]:
    """The numbers of up to ``maximum`` pairs just above the threshold, or on it, and as many just below."""
    order = np.argsort(similarity, kind="stable")
    place = int(np.searchsorted(similarity[order], threshold))
    return order[max(0, place - maximum) : place + maximum]


def extrapolated(degrees: Ints, documents: int) -> EstimatedPairs:
    """The pairs of ``documents`` documents, estimated from those of a random sample of them.

    ``degrees`` is the number of pairs that each document of the sample is in. Pairs that share a document are not
    independent: the variance is that of Horvitz & Thompson 1952 for pairs of a sample drawn without replacement. The
    interval is that of a Poisson distribution for the count, widened by the ratio of that variance to the
    count. A cluster of which the sample has no two documents cannot show in it.
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
    """Estimated variance of the number of pairs in the sample: the terms for the same pair, for two pairs that
    share a document, and for two that share none. p2, p3, p4: probabilities that 2, 3, 4 given documents are drawn."""
    size, count = len(degrees), int(degrees.sum()) // 2
    p2, p3, p4 = (_drawn(given, size, documents) for given in (2, 3, 4))
    sharing = int((degrees * (degrees - 1)).sum())
    apart = count * count - count - sharing
    variance = count * (1 - p2)
    if sharing:
        variance += sharing * (1 - p2 * p2 / p3)
    if apart:
        variance += apart * (1 - p2 * p2 / p4)
    return variance


def _drawn(given: int, size: int, documents: int) -> float:
    probability = 1.0
    for number in range(given):
        probability *= (size - number) / (documents - number)
    return probability
