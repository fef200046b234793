"""Stage: the texts of a random sample -> a measure of all their pairs, counted as they are made."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from es_neardupe.commands.distribution.report import nearest
from es_neardupe.index.random_samples import address_hashes
from es_neardupe.keys.bands import share_keys
from es_neardupe.progress import Progress, silent
from es_neardupe.records import FingerprintColumns
from es_neardupe.similarity.histogram import EDGES, counted
from es_neardupe.similarity.measure import Measure, all_pairs, measure_name

__all__ = ["Sample", "compare_sample", "random_rows"]

Ints = NDArray[np.int64]


@dataclass(frozen=True)
class Sample:
    """All pairs of n documents. t thresholds."""

    counts: Ints
    """As `counted` gives them."""
    degrees: Ints
    """Pairs that each document is in and that reach each threshold; shape (t, n)."""
    found: Ints
    """Pairs that reach each threshold and share enough band keys; shape (t,)."""
    near: NDArray[np.float64]
    """Pairs nearest to one threshold: similarity and the two numbers; shape (pairs, 3)."""


def random_rows(corpus: FingerprintColumns, seed: int) -> NDArray[np.intp]:
    """The rows that have keys in random order, which depends on seed and addresses only: the first so many of them
    are a sample, and a smaller sample is a part of a larger one."""
    rows = np.flatnonzero(corpus.keys.any(axis=1))
    hashes = address_hashes((corpus.references[row] for row in rows.tolist()), seed)
    return rows[np.argsort(hashes, kind="stable")]


def compare_sample(
    measure: Measure,
    texts: Sequence[str],
    keys: NDArray[np.uint64],
    *,
    thresholds: Sequence[float],
    threshold: float,
    agree: int = 1,
    progress: Progress = silent,
) -> Sample:
    """Compare all with all. ``keys`` are those of the texts, shape (n, bands), of which a candidate shares ``agree``;
    ``threshold`` the one that `near` is about. Memory is bounded by the texts' features and one block of pairs."""
    size, pairs = len(texts), len(texts) * (len(texts) - 1) // 2
    counts = np.zeros(len(EDGES) + 1, np.int64)
    degrees, found = np.zeros((len(thresholds), size), np.int64), np.zeros(len(thresholds), np.int64)
    near = np.empty((0, 3))
    stage = f"sample, {measure_name(measure)}"
    progress(stage, 0, pairs)
    for left, right, similarity in all_pairs(measure, measure.prepare(texts)):
        counts += counted(similarity)
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
