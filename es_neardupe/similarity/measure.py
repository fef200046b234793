"""Measures with their settings: prepare texts once, then score pairs of them."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import NamedTuple, TypeAlias

import numpy as np

from es_neardupe.errors import SettingsError
from es_neardupe.keys.arrays import U64, Floats, Positions
from es_neardupe.keys.fingerprint import signatures
from es_neardupe.keys.hashing import GOLDEN
from es_neardupe.keys.minhash import estimate
from es_neardupe.keys.scheme import MAX_SHINGLE, Scheme
from es_neardupe.keys.shingles import features, token_hashes, window_hashes
from es_neardupe.keys.unit import Unit
from es_neardupe.options import Matching, MeasureName, names_of
from es_neardupe.progress import Progress, silent
from es_neardupe.similarity import formulas
from es_neardupe.similarity.alignment import Alignment, AlignmentTotals, align, check_passage, totals
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
from es_neardupe.wording import counted, option

MEANINGS: dict[MeasureName, str] = {
    MeasureName.RESEMBLANCE: "Jaccard similarity of the sets of shingles: basis of the keys",
    MeasureName.JACCARD: "words in common passages among all words of both",
    MeasureName.CONTAINMENT: "words of the shorter text that are in common passages",
    MeasureName.CONTAINMENT_LONGER: "words of the longer text that are in common passages",
    MeasureName.BAG: "shared n-grams, counted with repetitions, in any order",
    MeasureName.WEIGHTED: "shared shingles, weighted by rarity",
    MeasureName.EDIT: "words that do not change when one text is edited into the other",
    MeasureName.ESTIMATE: "resemblance, estimated from the signatures",
}
"""A description of each measure in one line."""


ALIGNED: dict[MeasureName, Callable[[Alignment | AlignmentTotals], float]] = {
    MeasureName.JACCARD: formulas.jaccard,
    MeasureName.CONTAINMENT: formulas.containment,
    MeasureName.CONTAINMENT_LONGER: formulas.containment_longer,
}
"""Measures that are computed from common passages."""

SETS = (MeasureName.RESEMBLANCE, MeasureName.WEIGHTED)
"""Measures that compare sets of features."""

_WITH_FEATURES = (*SETS, MeasureName.BAG)

_CELLS = 250_000
"""Pairs in a block of `all_pairs`."""

Prepared: TypeAlias = U64
"""A text prepared for a measure: its token hashes in order, its features, or the slots of its signature.

Features are sorted and distinct: shingle hashes by default. For `bag`, they are n-grams whose n-th occurrence is an
element of its own, so that formulas of sets give those of bags. Empty for a text without features, tokens or signature.
"""


@dataclass(frozen=True)
class Ignored:
    """Shingles that are ignored because they are too common."""

    version: str
    """Version of the list."""
    features: U64 = field(repr=False, compare=False)
    """Sorted, distinct."""

    def without(self, features: U64) -> U64:
        """The features that are not ignored."""
        if not len(self.features) or not len(features):
            return features
        positions = np.minimum(np.searchsorted(self.features, features), len(self.features) - 1)
        kept: U64 = features[self.features[positions] != features]
        return kept


@dataclass(frozen=True)
class Measure:
    """A measure with its settings. Raises `SettingsError` for values out of range and contradictory settings."""

    name: MeasureName = MeasureName.RESEMBLANCE
    matching: Matching = Matching.LITERAL
    """How common passages are found; for jaccard and the containments."""
    shingle: int = 5
    """w: words in a shingle; with `unit`, characters or shapes."""
    ngram: int = 1
    """n of `bag`."""
    weights: Weights | None = None
    """Required for `weighted`."""
    scheme: Scheme | None = None
    """For `estimate`: the scheme of the signatures; default: 128 slots."""
    whitespace: bool = False
    """For `bag`: words are separated by white space, and keep case and punctuation."""
    sources: tuple[FeatureTree, ...] = ()
    """Features to use instead of shingles; for resemblance, weighted and `bag`."""
    ignored: Ignored | None = None
    """Shingles that do not count; for resemblance and weighted. They do count in a text that has no others: such a text
    is similar only to texts that consist of ignored shingles too."""
    unit: Unit = Unit.WORD
    """What shingles consist of. Common passages always consist of words."""
    min_words: int | None = None
    """Minimum number of words in a common passage, for jaccard and the containments; default: those of a shingle, or 1
    with shingles of characters."""

    def __post_init__(self) -> None:
        if not 1 <= self.shingle <= MAX_SHINGLE or not 1 <= self.ngram <= 7:
            raise SettingsError(
                "A shingle has 1 word or more and at most 1,000,000, an n-gram of the bag measure 1 to 7."
            )
        if self.min_words is not None:
            if not self.aligned:
                raise SettingsError(
                    f"{option('passage')} is only for measures of common passages, not for {self.name.value}."
                )
            check_passage(self.min_words)
        if self.name is MeasureName.WEIGHTED and self.weights is None:
            raise SettingsError("The measure weighted needs the frequencies of features in an index.")
        if self.sources and self.name not in _WITH_FEATURES:
            raise SettingsError(f"The measure {self.name.value} compares words in order: it takes no other features.")
        if self.ignored is not None and (self.name not in SETS or self.sources):
            raise SettingsError("Only the measures resemblance and weighted of shingles can ignore common shingles.")
        if self.name is not MeasureName.BAG and (self.ngram > 1 or self.whitespace):
            raise SettingsError(f"{option('ngram')} and {option('whitespace')} are only for the measure bag.")
        if self.sources and (self.ngram > 1 or self.whitespace):
            raise SettingsError(
                f"The measure bag takes {option('features')}, or {option('ngram')} and {option('whitespace')}, not "
                f"both."
            )

    @property
    def aligned(self) -> bool:
        """Whether the measure is computed from common passages."""
        return self.name in ALIGNED

    @property
    def passage(self) -> int:
        """Minimum number of words in a common passage."""
        return self.unit.passage(self.shingle) if self.min_words is None else self.min_words

    @property
    def by_keys(self) -> bool:
        """Whether this is the resemblance that the band keys are based on."""
        return self.name is MeasureName.RESEMBLANCE and not self.sources and self.ignored is None

    @property
    def at_once(self) -> bool:
        """Whether one text is compared with many others by numbers of all features, which takes much less time."""
        return self.name in (MeasureName.RESEMBLANCE, MeasureName.BAG)

    @property
    def copies_are_equal(self) -> bool:
        """Whether texts with the same tokens always have the value 1, and need not be compared."""
        return not self.whitespace and all(map(decided_by_tokens, self.sources))

    def fields(self, indexed: Sequence[str]) -> list[str]:
        """The fields of a document to read: the fields of the index and of the features."""
        return list(dict.fromkeys([*indexed, *named_fields(self.sources)]))

    @property
    def label(self) -> str:
        """The name and its settings: ``resemblance``, ``containment (literal)``, ``bag (2-grams)``, ..."""
        settings = " + ".join(map(spelled, self.sources))
        if self.name is MeasureName.BAG and not self.sources:
            settings = f"{self.ngram}-grams" + (" of words as they stand" if self.whitespace else "")
        if self.aligned:
            usual = self.passage == self.unit.passage(self.shingle)
            settings = self.matching.value + ("" if usual else f", passages of {counted(self.passage, 'word')}")
        if self.ignored is not None:
            settings = f"without the {counted(len(self.ignored.features), 'shingle')} of list {self.ignored.version}"
        return f"{self.name.value} ({settings})" if settings else self.name.value

    def prepare(self, texts: Sequence[str], documents: Sequence[Document] | None = None) -> list[Prepared]:
        """Prepare texts for `score`, all at once.

        ``documents``: the values by field, for features of fields; by default, each text is the only value.
        """
        if self.sources:
            found = combined(self.sources, documents if documents is not None else [{INDEXED: [one]} for one in texts])
            return list(map(_bag, found.each())) if self.name is MeasureName.BAG else distinct(found).each()
        if self.name in SETS:
            return [self._counting(one) for one in features(texts, self.shingle, self.unit)]
        if self.name is MeasureName.BAG:
            return [_bag(self._grams(one)) for one in self._words(texts)]
        if self.name is MeasureName.ESTIMATE:
            scheme = self.scheme or Scheme(shingle=self.shingle, unit=self.unit, bands=16, rows=6)
            return [row[: len(row) * row.any()].astype(np.uint64) for row in signatures(texts, scheme)]
        return token_hashes(texts)

    def _counting(self, features: U64) -> U64:
        """The features that count: those that are not ignored; all if all are ignored."""
        kept = features if self.ignored is None else self.ignored.without(features)
        return kept if len(kept) else features

    def only_ignored(self, one: Prepared) -> bool:
        """Whether all features of a text are ignored ones, which then count."""
        return self.ignored is not None and len(one) > 0 and not len(self.ignored.without(one[:1]))

    def _words(self, texts: Sequence[str]) -> list[U64]:
        return [hashed(text.split()) for text in texts] if self.whitespace else token_hashes(texts)

    def _grams(self, tokens: U64) -> U64:
        """The n-grams; for a shorter text the one of all its words."""
        return window_hashes(tokens, min(self.ngram, max(len(tokens), 1)))

    def score(self, a: Prepared, b: Prepared) -> float:
        """The measure of two texts. A document without any of the chosen ``sources`` has similarity 0."""
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
        """The measure of the pairs ``(prepared[left[k]], prepared[right[k]])``: float64[pairs]."""
        similarity = self._scores(prepared, left, right, progress)
        if self.sources:
            has_features = np.array([len(one) > 0 for one in prepared], np.bool_)
            similarity[~(has_features[left] & has_features[right])] = 0
        return similarity

    def _scores(self, prepared: Sequence[Prepared], left: Positions, right: Positions, progress: Progress) -> Floats:
        if self.aligned:
            formula = ALIGNED[self.name]
            found = totals(prepared, left, right, self.matching, self.passage, progress=progress)
            return np.array([formula(one) for one in found], np.float64)
        if self.name is MeasureName.WEIGHTED:
            assert self.weights is not None
            return formulas.weighted_pairs(prepared, left, right, self.weights, progress)
        if self.name is MeasureName.EDIT:
            return formulas.edits(prepared, left, right, progress)
        if self.name is MeasureName.ESTIMATE:
            pairs = zip(left.tolist(), right.tolist(), strict=True)
            return np.array([_estimated(prepared[a], prepared[b]) for a, b in pairs], np.float64)
        return formulas.resemblances(prepared, left, right)

    @cached_property
    def _formula(self) -> Callable[[Prepared, Prepared], float]:
        if self.aligned:
            formula = ALIGNED[self.name]
            return lambda a, b: formula(align(a, b, self.matching, self.passage))
        if self.name is MeasureName.WEIGHTED:
            assert self.weights is not None
            return partial(formulas.weighted, weights=self.weights)
        return {MeasureName.EDIT: formulas.edit, MeasureName.ESTIMATE: _estimated}.get(self.name, formulas.resemblance)


def _estimated(a: Prepared, b: Prepared) -> float:
    return estimate(a, b).value if len(a) and len(b) else float(len(a) == len(b))


def _bag(grams: U64) -> U64:
    """The n-grams sorted, with the n-th occurrence of each as an element of its own."""
    grams = np.sort(grams)
    first = np.flatnonzero(np.concatenate(([True], grams[1:] != grams[:-1]))) if len(grams) else np.empty(0, np.intp)
    repeat = np.arange(len(grams)) - np.repeat(first, np.diff(np.append(first, len(grams))))
    return np.sort(grams + repeat.astype(np.uint64) * GOLDEN)


class ScoredPairs(NamedTuple):
    """Pairs of texts by their numbers, left < right, and their similarity."""

    left: Positions
    right: Positions
    similarity: Floats


def named_measure(name: str, known: Sequence[MeasureName] = tuple(MeasureName)) -> MeasureName:
    """The measure with this name or symbol. Raises `SettingsError` for any other."""
    for one in known:
        if name in (one.value, one.symbol):
            return one
    raise SettingsError(f"Unknown measure {str(name)!r}. Known: {', '.join(names_of(known))}.")


def default_sample(name: MeasureName) -> int:
    """Number of texts whose pairs take seconds: 2 million pairs of sets, or 125,000 pairs of up to 0.2 ms each."""
    return 2000 if name in _WITH_FEATURES else 500


def measure_size(measure: Measure) -> tuple[int, Unit] | None:
    """Words, characters or shapes in a shingle, words in an n-gram or in the shortest common passage; None for a
    measure without these."""
    if measure.name is MeasureName.EDIT:
        return None
    if measure.name is MeasureName.BAG:
        return measure.ngram, Unit.WORD
    return (measure.passage, Unit.WORD) if measure.aligned else (measure.shingle, measure.unit)


def measure_name(measure: Measure) -> str:
    """The name with its `measure_size`, such as ``bag 2`` or ``resemblance 5c``."""
    size = measure_size(measure)
    return measure.name.value if size is None else f"{measure.name.value} {size[0]}{size[1].letter}"


def weights_of(prepared: Sequence[Prepared]) -> Weights:
    """Weights by the frequencies of features in these texts."""
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
        for left, right, common, _ in _common([_windows(one, measure.passage) for one in prepared], None):
            similarity = np.zeros(len(left))
            sharing = np.flatnonzero(common)
            similarity[sharing] = measure.scores(prepared, left[sharing], right[sharing])
            yield ScoredPairs(left, right, similarity)
    else:
        for left, right in _numbers(len(prepared)):
            yield ScoredPairs(left, right, measure.scores(prepared, left, right))


def _windows(tokens: U64, minimum: int) -> U64:
    """The runs of ``minimum`` words; for a shorter text the run of all its words, which only an equal text has."""
    return np.unique(window_hashes(tokens, min(minimum, max(len(tokens), 1))))


def _common(found: Sequence[U64], weights: Weights | None) -> Iterator[tuple[Positions, Positions, Floats, Floats]]:
    """All pairs with the weights of their intersection and their union."""
    from scipy.sparse import csr_array  # slow to load, and most commands compare no pairs

    columns, numbers = np.unique(np.concatenate(found), return_inverse=True)
    bounds = np.concatenate(([0], np.cumsum([len(one) for one in found])))
    weight = np.ones(len(columns)) if weights is None else weights.of(columns)
    shape = len(found), max(len(columns), 1)
    numbers = numbers.reshape(-1)
    members = csr_array((np.ones(len(numbers)), numbers, bounds), shape=shape)
    weighted = csr_array((weight[numbers], numbers, bounds), shape=shape)
    totals = weighted.sum(axis=1)
    transposed = weighted.T.tocsr()
    for left, right in _numbers(len(found)):
        begin, end = int(left[0]), int(left[-1]) + 1
        shared = (members[begin:end] @ transposed).toarray()[left - begin, right]
        yield left, right, shared, totals[left] + totals[right] - shared


def _share(common: Floats, whole: Floats) -> Floats:
    """``common / whole``, exactly 1 for equal sets: the last digits of sums of weights depend on their order."""
    similarity = np.divide(common, whole, out=np.ones(len(common)), where=whole > 0)
    exact = np.isclose(similarity, 1, rtol=0, atol=1e-12)
    return np.where(exact, 1.0, similarity)


def _numbers(size: int) -> Iterator[tuple[Positions, Positions]]:
    """All pairs of numbers below ``size``, left < right, in blocks of rows of the triangle."""
    step = max(1, _CELLS // max(size, 1))
    for begin in range(0, size - 1, step):
        rows = np.arange(begin, min(begin + step, size - 1))
        left, right = np.nonzero(np.arange(size)[None, :] > rows[:, None])
        yield left + begin, right
