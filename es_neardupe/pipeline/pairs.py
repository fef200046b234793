"""List every verified pair of an index with its exact resemblance."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import combinations, product

import numpy as np
from numpy.typing import NDArray

from es_neardupe.clients import Client
from es_neardupe.indices import open_target
from es_neardupe.pipeline.group import check_min, class_keys, read_fingerprints
from es_neardupe.progress import Progress, silent
from es_neardupe.records import Address
from es_neardupe.settings import DEFAULT_PREFIX
from es_neardupe.stages.candidates import DEFAULT_MAX_BUCKET, find_candidates
from es_neardupe.stages.corpus import classes_of
from es_neardupe.stages.verify import Verifier

__all__ = ["Pair", "Pairs", "pairs"]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two documents, ``a < b`` by id and then index, and their exact resemblance."""

    a: Address
    b: Address
    resemblance: float


@dataclass(frozen=True)
class Pairs:
    """Iterate over it for the pairs, most similar first; exact copies come before all others."""

    indices: tuple[str, ...]
    """Concrete indices that were read."""
    min: float
    detection: float
    """Probability that a pair exactly ``min`` similar became a candidate."""
    candidates: int
    """Pairs of distinct texts that were verified."""
    skipped: int
    """Comparisons left out in large buckets."""
    stale: int
    """Documents whose text is not the one that was fingerprinted: in no pair."""
    _classes: list[list[Address]]
    _left: NDArray[np.intp]
    _right: NDArray[np.intp]
    _resemblance: NDArray[np.float64]
    _most_copies: int

    @property
    def listed(self) -> int:
        """How many pairs there are to iterate over."""
        return self._number(self._most_copies)

    @property
    def copies_not_listed(self) -> int:
        """Pairs left out because one of the two is a copy beyond the ``max_bucket``-th of the same text."""
        return self._number(None) - self.listed

    def _number(self, most: int | None) -> int:
        sizes = np.array([len(rows[:most]) for rows in self._classes], np.int64)
        return int((sizes * (sizes - 1) // 2).sum() + (sizes[self._left] * sizes[self._right]).sum())

    def __iter__(self) -> Iterator[Pair]:
        for copies in self._classes:
            for one, other in combinations(copies[: self._most_copies], 2):
                yield _pair(one, other, 1.0)
        for left, right, similarity in zip(
            self._left.tolist(), self._right.tolist(), self._resemblance.tolist(), strict=True
        ):
            both = (self._classes[side][: self._most_copies] for side in (left, right))
            for one, other in product(*both):
                yield _pair(one, other, similarity)


def pairs(
    client: Client,
    index: str,
    *,
    min: float | None = None,
    max_bucket: int = DEFAULT_MAX_BUCKET,
    prefix: str = DEFAULT_PREFIX,
    progress: Progress = silent,
) -> Pairs:
    """Verify all candidate pairs of an enriched index. ``min``: least resemblance (default: the threshold)."""
    target = open_target(client, index, prefix)
    least = check_min(target.settings.threshold if min is None else min)
    corpus = read_fingerprints(client, target, progress)
    classes = classes_of(corpus)
    candidates = find_candidates(class_keys(corpus, classes), max_bucket)
    verifier = Verifier(client, target.settings, corpus, classes)
    similarity = verifier.resemblances(candidates.left, candidates.right, progress)
    verifier.check_copies(progress)
    match = np.flatnonzero(similarity >= least)
    order = match[np.lexsort((candidates.right[match], candidates.left[match], -similarity[match]))]
    away = verifier.away
    return Pairs(
        indices=target.indices,
        min=least,
        detection=target.settings.scheme.detection(least),
        candidates=len(candidates),
        skipped=candidates.skipped,
        stale=len(away),
        _classes=[[corpus.references[row][:2] for row in rows.tolist() if row not in away] for rows in classes.members],
        _left=candidates.left[order],
        _right=candidates.right[order],
        _resemblance=similarity[order],
        _most_copies=max_bucket,
    )


def _pair(one: Address, other: Address, similarity: float) -> Pair:
    a, b = sorted((one, other), key=lambda address: (address[1], address[0]))
    return Pair(a, b, similarity)
