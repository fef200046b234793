"""Measures as the user names them: what is computed once per text, and the scores of pairs of these."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import NamedTuple, TypeAlias

import numpy as np
from scipy.sparse import csr_array

from es_neardupe.errors import SettingsError
from es_neardupe.keys.arrays import U64, Floats, Positions
from es_neardupe.keys.hashing import GOLDEN
from es_neardupe.keys.minhash import estimate, signatures
from es_neardupe.keys.scheme import MAX_SHINGLE, Scheme
from es_neardupe.keys.shingles import features, token_hashes, window_hashes
from es_neardupe.options import Matching, MeasureName
from es_neardupe.progress import Progress, silent, tracked
from es_neardupe.similarity import formulas
from es_neardupe.similarity.alignment import Alignment, align
from es_neardupe.similarity.features import (
    INDEXED,
    Document,
    FeatureTree,
    combined,
    decided_by_tokens,
    distinct,
    hashed,
    named_fields,
    spelled,
)
from es_neardupe.similarity.formulas import Weights

__all__ = [
    "ALIGNED",
    "MEANINGS",
    "SETS",
    "Ignored",
    "Measure",
    "Prepared",
    "ScoredPairs",
    "all_pairs",
    "default_sample",
    "measure_name",
    "measure_words",
    "weights_of",
]


MEANINGS: dict[MeasureName, str] = {
    MeasureName.RESEMBLANCE: "shared shingles among all shingles of both: what the keys are made for",
    MeasureName.JACCARD: "words in common passages among all words of both",
    MeasureName.CONTAINMENT: "words of the shorter text that are in common passages",
    MeasureName.CONTAINMENT_LONGER: "words of the longer text that are in common passages",
    MeasureName.BAG: "shared n-grams, each as often as it occurs, wherever it stands",
    MeasureName.WEIGHTED: "shared shingles, rare ones counting more",
    MeasureName.EDIT: "words left as they are when one text is edited into the other",
    MeasureName.ESTIMATE: "resemblance as the signatures estimate it",
}
"""One line for each."""


ALIGNED: dict[MeasureName, Callable[[Alignment], float]] = {
    MeasureName.JACCARD: formulas.jaccard,
    MeasureName.CONTAINMENT: formulas.containment,
    MeasureName.CONTAINMENT_LONGER: formulas.containment_longer,
}
"""Those that are computed from common passages."""

SETS = (MeasureName.RESEMBLANCE, MeasureName.WEIGHTED)
"""Those that compare sets of features."""


Prepared: TypeAlias = U64
"""What a measure compares of one text: its token hashes in order, its features, or the slots of its signature.

Features are sorted and distinct: shingle hashes, unless others were chosen. Those of `bag` are n-grams of which the
n-th occurrence is an element of its own, so that shares of sets are shares of bags. Empty for a text without any.
"""


@dataclass(frozen=True)
class Ignored:
    """Shingles so common that they say nothing."""

    version: str
    """Names the list."""
    features: U64 = field(repr=False, compare=False)
    """Sorted, distinct."""

    def without(self, features: U64) -> U64:
        """The features that are not ignored."""
        if not len(self.features) or not len(features):
            return features
        places = np.minimum(np.searchsorted(self.features, features), len(self.features) - 1)
        left: U64 = features[self.features[places] != features]
        return left


@dataclass(frozen=True)
class Measure:
    """One measure with all its settings. Raises `SettingsError` for values out of range and for what contradicts."""

    name: MeasureName = MeasureName.RESEMBLANCE
    matching: Matching = Matching.LITERAL
    """How common passages are found; for jaccard and the containments."""
    shingle: int = 5
    """w: words in a shingle, and the minimum number of words in a common passage."""
    ngram: int = 1
    """n of `bag`."""
    weights: Weights | None = None
    """For `weighted`, which cannot do without."""
    scheme: Scheme | None = None
    """For `estimate`: its signatures; default: 128 slots."""
    whitespace: bool = False
    """For `bag`: words are separated by blanks, and keep case and punctuation."""
    sources: tuple[FeatureTree, ...] = ()
    """Other features than shingles; for resemblance, weighted and `bag`."""
    ignored: Ignored | None = None
    """Shingles that do not count; for resemblance and weighted. A text that has no others keeps them: it is compared
    with what others have besides, and so is like another one only if that consists of such shingles too."""

    def __post_init__(self) -> None:
        if not 1 <= self.shingle <= MAX_SHINGLE or not 1 <= self.ngram <= 7:
            raise SettingsError(
                "A shingle has 1 word or more and at most 1,000,000, an n-gram of the bag measure 1 to 7."
            )
        if self.name is MeasureName.WEIGHTED and self.weights is None:
            raise SettingsError("The measure weighted needs the frequencies of features in an index.")
        if self.sources and self.name not in (*SETS, MeasureName.BAG):
            raise SettingsError(f"The measure {self.name.value} compares words in order: it takes no other features.")
        if self.ignored is not None and (self.name not in SETS or self.sources):
            raise SettingsError("Only the measures resemblance and weighted of shingles can ignore common shingles.")
        if self.name is not MeasureName.BAG and (self.ngram > 1 or self.whitespace):
            raise SettingsError("N-grams of other words and sizes are for the measure bag.")
        if self.sources and (self.ngram > 1 or self.whitespace):
            raise SettingsError("The features of a bag are either n-grams or other ones, not both.")

    @property
    def aligned(self) -> bool:
        """Whether common passages decide."""
        return self.name in ALIGNED

    @property
    def by_keys(self) -> bool:
        """Whether it is the resemblance that the keys are made for."""
        return self.name is MeasureName.RESEMBLANCE and not self.sources and self.ignored is None

    @property
    def at_once(self) -> bool:
        """Whether `scores` takes many pairs together."""
        return self.name in (MeasureName.RESEMBLANCE, MeasureName.BAG)

    @property
    def copies_are_equal(self) -> bool:
        """Whether texts with the same tokens are 1 by definition, and need not be compared."""
        return not self.whitespace and all(map(decided_by_tokens, self.sources))

    def fields(self, indexed: Sequence[str]) -> list[str]:
        """The fields of a document to read: those of the index and those of the chosen features."""
        return list(dict.fromkeys([*indexed, *named_fields(self.sources)]))

    @property
    def label(self) -> str:
        """The name with what was chosen: ``resemblance``, ``containment (literal)``, ``bag (2-grams)``, ..."""
        chosen = " + ".join(map(spelled, self.sources))
        if self.name is MeasureName.BAG and not self.sources:
            chosen = f"{self.ngram}-grams" + (" of words as they stand" if self.whitespace else "")
        if self.aligned:
            chosen = self.matching.value
        if self.ignored is not None:
            chosen = f"without the {len(self.ignored.features)} shingles of list {self.ignored.version}"
        return f"{self.name.value} ({chosen})" if chosen else self.name.value

    def prepare(self, texts: Sequence[str], documents: Sequence[Document] | None = None) -> list[Prepared]:
        """What `score` compares of each text, computed for all of them at once.

        ``documents``: the values by field, where features of fields were chosen; of a text without fields, it is the
        only value.
        """
        if self.sources:
            found = combined(self.sources, documents if documents is not None else [{INDEXED: [one]} for one in texts])
            return list(map(_bag, found.each())) if self.name is MeasureName.BAG else distinct(found).each()
        if self.name in SETS:
            return [self._counting(one) for one in features(texts, self.shingle)]
        if self.name is MeasureName.BAG:
            return [_bag(self._grams(one)) for one in self._words(texts)]
        if self.name is MeasureName.ESTIMATE:
            scheme = self.scheme or Scheme(shingle=self.shingle, permutations=128, bands=16, rows=6)
            return [row[: len(row) * row.any()].astype(np.uint64) for row in signatures(texts, scheme)]
        return token_hashes(texts)

    def _counting(self, features: U64) -> U64:
        """The features that count: where all are ignored, all of them."""
        left = features if self.ignored is None else self.ignored.without(features)
        return left if len(left) else features

    def only_ignored(self, one: Prepared) -> bool:
        """Whether a text has no other features than ignored ones, which count then."""
        return self.ignored is not None and len(one) > 0 and not len(self.ignored.without(one[:1]))

    def _words(self, texts: Sequence[str]) -> list[U64]:
        return [hashed(text.split()) for text in texts] if self.whitespace else token_hashes(texts)

    def _grams(self, tokens: U64) -> U64:
        """The n-grams; of a shorter text the one that all its words make."""
        return window_hashes(tokens, min(self.ngram, max(len(tokens), 1)))

    def score(self, a: Prepared, b: Prepared) -> float:
        """The measure of two texts. Without any of the features that were chosen, a document is like no other."""
        if self.sources and not (len(a) and len(b)):
            return 0.0
        return self._formula(a, b)

    def scores(
        self,
        prepared: Sequence[Prepared],
        left: Positions,
        right: Positions,
        progress: Progress = silent,
    ) -> Floats:
        """The measure of the pairs ``(prepared[left[k]], prepared[right[k]])``, float64 of the pairs' number."""
        if not self.at_once:
            pairs = tracked(zip(left.tolist(), right.tolist(), strict=True), progress, "", len(left))
            return np.fromiter((self.score(prepared[a], prepared[b]) for a, b in pairs), np.float64, len(left))
        similarity = formulas.resemblances(prepared, left, right)
        if self.sources:
            some = np.array([len(one) > 0 for one in prepared], np.bool_)
            similarity[~(some[left] & some[right])] = 0
        return similarity

    @cached_property
    def _formula(self) -> Callable[[Prepared, Prepared], float]:
        if self.aligned:
            formula = ALIGNED[self.name]
            return lambda a, b: formula(align(a, b, self.matching, self.shingle))
        if self.name is MeasureName.WEIGHTED:
            assert self.weights is not None
            return partial(formulas.weighted, weights=self.weights)
        return {MeasureName.EDIT: formulas.edit, MeasureName.ESTIMATE: _estimated}.get(self.name, formulas.resemblance)


def _estimated(a: Prepared, b: Prepared) -> float:
    return estimate(a, b).value if len(a) and len(b) else float(len(a) == len(b))


def _bag(grams: U64) -> U64:
    """The n-th occurrence of an n-gram as an element of its own."""
    grams = np.sort(grams)
    first = np.flatnonzero(np.concatenate(([True], grams[1:] != grams[:-1]))) if len(grams) else np.empty(0, np.intp)
    repeat = np.arange(len(grams)) - np.repeat(first, np.diff(np.append(first, len(grams))))
    return np.sort(grams + repeat.astype(np.uint64) * GOLDEN)


_WITH_FEATURES = (*SETS, MeasureName.BAG)

_CELLS = 250_000
"""Pairs in a block."""


class ScoredPairs(NamedTuple):
    """Pairs of numbers of texts, left < right, and their measure."""

    left: Positions
    right: Positions
    similarity: Floats


def default_sample(name: MeasureName) -> int:
    """Texts whose pairs take seconds: 2 million pairs of sets, 125,000 pairs that take some 0.1 ms each."""
    return 2000 if name in _WITH_FEATURES else 500


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
    features, frequencies = np.unique(np.concatenate([np.empty(0, np.uint64), *prepared]), return_counts=True)
    return Weights(len(prepared), features, frequencies.astype(np.int64))


def all_pairs(measure: Measure, prepared: Sequence[Prepared]) -> Iterator[ScoredPairs]:
    """Every pair of texts once, in blocks."""
    if len(prepared) < 2:
        return
    if measure.name in _WITH_FEATURES:
        for left, right, common, whole in _common(prepared, measure.weights):
            yield ScoredPairs(left, right, _share(common, whole))
    elif measure.aligned:
        for left, right, common, _ in _common([_windows(one, measure.shingle) for one in prepared], None):
            similarity = np.zeros(len(left))
            some = np.flatnonzero(common)
            similarity[some] = measure.scores(prepared, left[some], right[some])
            yield ScoredPairs(left, right, similarity)
    else:
        for left, right in _numbers(len(prepared)):
            yield ScoredPairs(left, right, measure.scores(prepared, left, right))


def _windows(tokens: U64, minimum: int) -> U64:
    """The runs of ``minimum`` words; of a shorter text all its words, which only an equal text has."""
    return np.unique(window_hashes(tokens, min(minimum, max(len(tokens), 1))))


def _common(found: Sequence[U64], weights: Weights | None) -> Iterator[tuple[Positions, Positions, Floats, Floats]]:
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


def _numbers(size: int) -> Iterator[tuple[Positions, Positions]]:
    """All pairs of numbers below ``size``, left < right, some rows of the triangle at a time."""
    step = max(1, _CELLS // max(size, 1))
    for begin in range(0, size - 1, step):
        rows = np.arange(begin, min(begin + step, size - 1))
        left, right = np.nonzero(np.arange(size)[None, :] > rows[:, None])
        yield left + begin, right
