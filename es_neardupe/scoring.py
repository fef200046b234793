"""A measure as the user names it: what is computed once per text, and the number for two of these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from enum import Enum
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from es_neardupe import measures
from es_neardupe.alignment import Alignment, Matching, align
from es_neardupe.errors import SettingsError
from es_neardupe.feature_sources import FeatureSource, Values, combined, hashed
from es_neardupe.keys import Scheme, estimate, features, signatures, token_hashes, window_hashes
from es_neardupe.keys.scheme import MAX_SHINGLE
from es_neardupe.measures import Weights
from es_neardupe.progress import Progress, silent, tracked

__all__ = ["ALIGNED", "MEANINGS", "SETS", "Ignored", "Measure", "MeasureName", "Prepared"]

U64 = NDArray[np.uint64]


class MeasureName(str, Enum):
    """The measures by the names that commands take."""

    RESEMBLANCE = "resemblance"
    JACCARD = "jaccard"
    CONTAINMENT = "containment"
    CONTAINMENT_LONGER = "containment-longer"
    BAG = "bag"
    WEIGHTED = "weighted"
    EDIT = "edit"
    ESTIMATE = "estimate"


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


ALIGNED = (MeasureName.JACCARD, MeasureName.CONTAINMENT, MeasureName.CONTAINMENT_LONGER)
"""Those that common passages decide."""

SETS = (MeasureName.RESEMBLANCE, MeasureName.WEIGHTED)
"""Those that compare sets of features."""


class Prepared(NamedTuple):
    """What a measure needs of one text. Parts that it does not need are empty."""

    tokens: U64
    """Token hashes in order."""
    features: U64
    """Sorted distinct features: shingle hashes, unless others were chosen. For `bag` n-grams with repeats."""
    signature: bytes
    """Also empty where there are no tokens."""
    common: bool = False
    """Whether all its features are ignored ones: then it keeps them."""


@dataclass(frozen=True)
class Ignored:
    """Shingles so common that they say nothing."""

    version: str
    """Names the list."""
    features: U64 = field(repr=False, compare=False)
    """Sorted, distinct."""

    def mask(self, features: U64) -> tuple[U64, bool]:
        """The features that are not ignored, and whether there are none of these; then they stay all."""
        if not len(self.features) or not len(features):
            return features, False
        places = np.minimum(np.searchsorted(self.features, features), len(self.features) - 1)
        left = features[self.features[places] != features]
        return (left, False) if len(left) else (features, True)


@dataclass(frozen=True)
class Measure:
    """One measure with all its settings. Raises `SettingsError` for values out of range and for what contradicts."""

    name: MeasureName = MeasureName.RESEMBLANCE
    matching: Matching = Matching.LITERAL
    """How common passages are found; for jaccard and the containments."""
    shingle: int = 5
    """w: words in a shingle, and the least number of words in a common passage."""
    ngram: int = 1
    """n of `bag`."""
    weights: Weights | None = None
    """For `weighted`, which cannot do without."""
    scheme: Scheme | None = None
    """For `estimate`: its signatures; default: 128 slots."""
    whitespace: bool = False
    """For `bag`: words are what stands between blanks, with case and punctuation."""
    sources: tuple[FeatureSource, ...] = ()
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
        return self.at_once and self.ignored is None

    @property
    def at_once(self) -> bool:
        """Whether `scores` takes many pairs together."""
        return self.name is MeasureName.RESEMBLANCE and not self.sources

    @property
    def copies_are_equal(self) -> bool:
        """Whether texts with the same tokens are 1 by definition, and need not be compared."""
        return not self.whitespace and all(source.by_tokens for source in self.sources)

    def fields(self, indexed: Sequence[str]) -> list[str]:
        """The fields of a document to read: those of the index and those of the chosen features."""
        named = (source.field for source in self.sources if source.field is not None)
        return list(dict.fromkeys([*indexed, *named]))

    @property
    def label(self) -> str:
        """The name with what was chosen: ``resemblance``, ``containment (literal)``, ``bag (2-grams)``, ..."""
        chosen = " + ".join(map(str, self.sources))
        if self.name is MeasureName.BAG and not self.sources:
            chosen = f"{self.ngram}-grams" + (" of words as they stand" if self.whitespace else "")
        if self.aligned:
            chosen = self.matching.value
        if self.ignored is not None:
            chosen = f"without the {len(self.ignored.features)} shingles of list {self.ignored.version}"
        return f"{self.name.value} ({chosen})" if chosen else self.name.value

    def prepare(self, texts: Sequence[str], values: Sequence[Values] | None = None) -> list[Prepared]:
        """What `score` needs of each text, computed for all of them at once.

        ``values``: those of each document by field, where features of fields were chosen; of a text without fields,
        it is the only value.
        """
        nothing = [np.empty(0, np.uint64)] * len(texts)
        compared, tokens, slots, common = nothing, nothing, [b""] * len(texts), [False] * len(texts)
        if self.sources:
            found = combined(self.sources, values if values is not None else [{None: [text]} for text in texts])
            compared = [np.sort(one) if self.name is MeasureName.BAG else np.unique(one) for one in found]
        elif self.name in SETS:
            compared = features(texts, self.shingle)
            if self.ignored is not None:
                masked = [self.ignored.mask(one) for one in compared]
                compared, common = [one for one, _ in masked], [every for _, every in masked]
        elif self.name is MeasureName.BAG:
            compared = [self._grams(one) for one in self._words(texts)]
        elif self.name is MeasureName.ESTIMATE:
            slots = [row.tobytes() if row.any() else b"" for row in signatures(texts, self._scheme)]
        else:
            tokens = token_hashes(texts)
        return list(map(Prepared, tokens, compared, slots, common))

    @property
    def _scheme(self) -> Scheme:
        return self.scheme or Scheme(shingle=self.shingle, permutations=128, bands=16, rows=6)

    def _words(self, texts: Sequence[str]) -> list[U64]:
        return [hashed(text.split()) for text in texts] if self.whitespace else token_hashes(texts)

    def _grams(self, tokens: U64) -> U64:
        """The n-grams; of a shorter text the one that all its words make."""
        return np.sort(window_hashes(tokens, min(self.ngram, max(len(tokens), 1))))

    def score(self, a: Prepared, b: Prepared) -> float:
        """The measure of two texts. Without any of the features that were chosen, a document is like no other."""
        if self.sources and not (len(a.features) and len(b.features)):
            return 0.0
        return self._by_name[self.name](a, b)

    def scores(
        self,
        prepared: Sequence[Prepared],
        left: NDArray[np.intp],
        right: NDArray[np.intp],
        progress: Progress = silent,
    ) -> NDArray[np.float64]:
        """The measure of the pairs ``(prepared[left[k]], prepared[right[k]])``, float64 of the pairs' number."""
        if self.at_once:
            return measures.resemblances([one.features for one in prepared], left, right)
        pairs = tracked(zip(left.tolist(), right.tolist(), strict=True), progress, "", len(left))
        return np.fromiter((self.score(prepared[a], prepared[b]) for a, b in pairs), np.float64, len(left))

    @cached_property
    def _by_name(self) -> dict[MeasureName, Callable[[Prepared, Prepared], float]]:
        return {
            MeasureName.RESEMBLANCE: lambda a, b: measures.resemblance(a.features, b.features),
            MeasureName.JACCARD: lambda a, b: measures.jaccard(self._aligned(a, b)),
            MeasureName.CONTAINMENT: lambda a, b: measures.containment(self._aligned(a, b)),
            MeasureName.CONTAINMENT_LONGER: lambda a, b: measures.containment_longer(self._aligned(a, b)),
            MeasureName.BAG: lambda a, b: measures.bag(a.features, b.features),
            MeasureName.WEIGHTED: self._weighted,
            MeasureName.EDIT: lambda a, b: measures.edit(a.tokens, b.tokens),
            MeasureName.ESTIMATE: self._estimated,
        }

    def _aligned(self, a: Prepared, b: Prepared) -> Alignment:
        return align(a.tokens, b.tokens, self.matching, self.shingle)

    @staticmethod
    def _estimated(a: Prepared, b: Prepared) -> float:
        if not (a.signature and b.signature):
            return float(a.signature == b.signature)
        return estimate(a.signature, b.signature).value

    def _weighted(self, a: Prepared, b: Prepared) -> float:
        assert self.weights is not None
        return measures.weighted(a.features, b.features, self.weights)
