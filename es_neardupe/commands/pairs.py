"""List every verified pair of an index with its exact similarity."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import combinations, islice, product
from typing import overload

import numpy as np
from numpy.typing import NDArray

from es_neardupe import options
from es_neardupe.candidates.detection import DetectionCase
from es_neardupe.candidates.fingerprints import read_fingerprints
from es_neardupe.candidates.join import Bucket, with_passages
from es_neardupe.candidates.who_may_meet import GroupRules
from es_neardupe.commands.report_parts import one_line
from es_neardupe.index.index import Index, opened
from es_neardupe.options import DEFAULT_MAX_BUCKET
from es_neardupe.progress import Progress, silent
from es_neardupe.records import Address
from es_neardupe.verification.common_shingles import CommonShinglesUsed, used
from es_neardupe.verification.criterion import MatchOptions, WeightsUsed, match_criterion
from es_neardupe.verification.verify import verified_pairs

__all__ = ["Pair", "Pairs", "pairs"]


@dataclass(frozen=True, slots=True)
class Pair:
    """Two documents, ``a < b`` by id and then index, and their exact similarity by ``measure``."""

    a: Address
    b: Address
    similarity: float
    measure: str = "resemblance"

    @property
    def resemblance(self) -> float | None:
        """The similarity if it is the resemblance, None for another measure."""
        return self.similarity if self.measure == "resemblance" else None


@dataclass(frozen=True, eq=False)
class Pairs(Sequence[Pair]):
    """A list of pairs, most similar first; copies that need no comparing come before all others.

    Each pair is made when it is asked for: there may be millions.
    """

    indices: tuple[str, ...]
    """Concrete indices that were read."""
    measure: str
    """What decided, in words."""
    min: float
    max: float
    detection: float | None
    """Probability that a pair exactly ``min`` similar became a candidate; None where the measure does not decide it."""
    detection_cases: tuple[DetectionCase, ...]
    """In that case, for some kinds of pairs."""
    weights: WeightsUsed | None
    """For the measure weighted: where the weights are from."""
    common: CommonShinglesUsed | None
    """With ``ignore_common``: the shingles that did not count."""
    candidates: int
    """Pairs of distinct texts that were verified."""
    skipped: int
    """Comparisons left out in large buckets."""
    large_buckets: tuple[Bucket, ...]
    stale: int
    """Documents whose text is not the one that was fingerprinted: in no pair."""
    _classes: list[list[Address]]
    _left: NDArray[np.intp]
    _right: NDArray[np.intp]
    _similarity: NDArray[np.float64]
    _copies: bool
    """Whether exact copies are pairs of their own."""
    _maximum_copies: int

    def __repr__(self) -> str:
        return one_line(
            self,
            indices=self.indices,
            measure=self.measure,
            min=self.min,
            max=self.max,
            pairs=len(self),
            candidates=self.candidates,
            skipped=self.skipped,
        )

    @property
    def copies_not_listed(self) -> int:
        """Pairs left out because one of the two is a copy beyond the ``max_bucket``-th of the same text."""
        return int(self._numbers(None).sum()) - len(self)

    def _numbers(self, maximum: int | None) -> NDArray[np.int64]:
        """How many pairs each class of copies makes, then each pair of classes."""
        sizes = np.array([len(rows[:maximum]) for rows in self._classes], np.int64)
        copies = sizes * (sizes - 1) // 2 * self._copies
        return np.concatenate([copies, sizes[self._left] * sizes[self._right]])

    @cached_property
    def _ends(self) -> NDArray[np.int64]:
        """Up to which place the pairs of each of them are listed."""
        return np.cumsum(self._numbers(self._maximum_copies))

    def __len__(self) -> int:
        return int(self._ends[-1]) if len(self._ends) else 0

    @overload
    def __getitem__(self, place: int) -> Pair: ...
    @overload
    def __getitem__(self, place: slice) -> list[Pair]: ...
    def __getitem__(self, place: int | slice) -> Pair | list[Pair]:
        if isinstance(place, slice):
            return [self._at(k) for k in range(*place.indices(len(self)))]
        if not -len(self) <= place < len(self):
            raise IndexError(place)
        return self._at(place % len(self))

    def _at(self, place: int) -> Pair:
        """The pair that iterating comes to after ``place`` others."""
        source = int(np.searchsorted(self._ends, place, "right"))
        rest = place - (int(self._ends[source - 1]) if source else 0)
        if source < len(self._classes):
            copies = self._classes[source][: self._maximum_copies]
            return self._pair(*next(islice(combinations(copies, 2), rest, None)), 1.0)
        number = source - len(self._classes)
        left, right = (self._classes[side[number]][: self._maximum_copies] for side in (self._left, self._right))
        one, other = divmod(rest, len(right))
        return self._pair(left[one], right[other], float(self._similarity[number]))

    def __iter__(self) -> Iterator[Pair]:
        for copies in self._classes if self._copies else []:
            for one, other in combinations(copies[: self._maximum_copies], 2):
                yield self._pair(one, other, 1.0)
        for left, right, similarity in zip(
            self._left.tolist(), self._right.tolist(), self._similarity.tolist(), strict=True
        ):
            both = (self._classes[side][: self._maximum_copies] for side in (left, right))
            for one, other in product(*both):
                yield self._pair(one, other, similarity)

    def _pair(self, one: Address, other: Address, similarity: float) -> Pair:
        a, b = sorted((one, other), key=lambda address: (address[1], address[0]))
        return Pair(a, b, similarity, self.measure)


def pairs(
    index: Index,
    *,
    measure: options.Measure = "resemblance",
    matching: options.MatchingName = None,
    min: options.Minimum = None,
    max: options.Maximum = 1.0,
    features: options.Features = (),
    ngram: options.Ngram = None,
    whitespace: options.Whitespace = False,
    renew: options.Renew = False,
    ignore_common: options.IgnoreCommon = None,
    max_bucket: options.MaxBucket = DEFAULT_MAX_BUCKET,
    progress: Progress = silent,
) -> Pairs:
    """Verify all candidate pairs of an enriched index, and list those from ``min`` (default: the threshold of the
    index) to ``max`` similar by ``measure``, both included. Options are those of `group`, but nothing is written, no
    list of common shingles either. Raises `SettingsError` as `group` does."""
    index = opened(index, texts=True)
    options = MatchOptions().having(
        measure=measure,
        matching=matching,
        min=min,
        max=max,
        features=features,
        ngram=ngram,
        whitespace=whitespace,
        ignore_common=ignore_common,
    )
    wanted = match_criterion(index, options, renew=renew)
    corpus = read_fingerprints(index, progress)
    copies, rules = wanted.measure.copies_are_equal, GroupRules(max_bucket=max_bucket)
    found = verified_pairs(index, wanted.measure, corpus, copies=copies, rules=rules, progress=progress)
    classes, candidates, verifier, similarity = found.classes, found.candidates, found.verifier, found.similarity
    verifier.check_copies(progress)
    match = np.flatnonzero(wanted.matches(similarity))
    order = match[np.lexsort((candidates.right[match], candidates.left[match], -similarity[match]))]
    away = verifier.documents.changed_or_deleted
    return Pairs(
        indices=index.target.indices,
        measure=wanted.measure.label,
        min=wanted.min,
        max=wanted.max,
        detection=wanted.detection,
        detection_cases=wanted.detection_cases,
        weights=wanted.weights,
        common=used(wanted.common, verifier) if wanted.common else None,
        candidates=len(candidates),
        skipped=candidates.skipped,
        large_buckets=with_passages(index, corpus, classes, candidates.large),
        stale=int(away.sum()),
        _classes=[
            [Address(*corpus.references[row][:2]) for row in rows.tolist() if not away[row]] for rows in classes.members
        ],
        _left=candidates.left[order],
        _right=candidates.right[order],
        _similarity=similarity[order],
        _copies=wanted.copies_match,
        _maximum_copies=max_bucket,
    )
