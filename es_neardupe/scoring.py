"""A measure as the user names it: what is computed once per text, and the number for two of these."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from es_neardupe import measures
from es_neardupe.alignment import Alignment, Matching, align
from es_neardupe.errors import SettingsError
from es_neardupe.keys import Scheme, estimate, features, signatures, token_hashes, window_hashes
from es_neardupe.measures import Weights

__all__ = ["MEANINGS", "Measure", "MeasureName", "Prepared"]

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


class Prepared(NamedTuple):
    """What a measure needs of one text. Parts that it does not need are empty."""

    tokens: U64
    """Token hashes in order."""
    features: U64
    """Sorted distinct shingle hashes."""
    signature: bytes
    """Also empty where there are no tokens."""


@dataclass(frozen=True)
class Measure:
    """One measure with all its settings. Raises `SettingsError` for values out of range."""

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

    def __post_init__(self) -> None:
        if self.shingle < 1 or not 1 <= self.ngram <= 7:
            raise SettingsError("A shingle has 1 word or more, an n-gram of the bag measure 1 to 7.")
        if self.name is MeasureName.WEIGHTED and self.weights is None:
            raise SettingsError("The measure weighted needs the frequencies of features in an index.")

    def prepare(self, texts: Sequence[str]) -> list[Prepared]:
        """What `score` needs of each text, computed for all of them at once."""
        none: list[U64] = [np.empty(0, np.uint64)] * len(texts)
        sets = self.name in (MeasureName.RESEMBLANCE, MeasureName.WEIGHTED)
        signed = self.name is MeasureName.ESTIMATE
        found = features(texts, self.shingle) if sets else none
        tokens = none if sets or signed else token_hashes(texts)
        slots = [row.tobytes() if row.any() else b"" for row in signatures(texts, self._scheme)] if signed else []
        return list(map(Prepared, tokens, found, slots or [b""] * len(texts)))

    @property
    def _scheme(self) -> Scheme:
        return self.scheme or Scheme(shingle=self.shingle, permutations=128, bands=16, rows=6)

    def score(self, a: Prepared, b: Prepared) -> float:
        """The measure of two texts."""
        return self._by_name[self.name](a, b)

    @property
    def _by_name(self) -> dict[MeasureName, Callable[[Prepared, Prepared], float]]:
        return {
            MeasureName.RESEMBLANCE: lambda a, b: measures.resemblance(a.features, b.features),
            MeasureName.JACCARD: lambda a, b: measures.jaccard(self._aligned(a, b)),
            MeasureName.CONTAINMENT: lambda a, b: measures.containment(self._aligned(a, b)),
            MeasureName.CONTAINMENT_LONGER: lambda a, b: measures.containment_longer(self._aligned(a, b)),
            MeasureName.BAG: lambda a, b: measures.bag(self._grams(a), self._grams(b)),
            MeasureName.WEIGHTED: self._weighted,
            MeasureName.EDIT: lambda a, b: measures.edit(a.tokens, b.tokens),
            MeasureName.ESTIMATE: self._estimated,
        }

    def _aligned(self, a: Prepared, b: Prepared) -> Alignment:
        return align(a.tokens, b.tokens, self.matching, self.shingle)

    def _grams(self, one: Prepared) -> U64:
        """The n-grams; of a shorter text the one that all its words make."""
        return window_hashes(one.tokens, min(self.ngram, max(len(one.tokens), 1)))

    @staticmethod
    def _estimated(a: Prepared, b: Prepared) -> float:
        if not (a.signature and b.signature):
            return float(a.signature == b.signature)
        return estimate(a.signature, b.signature).value

    def _weighted(self, a: Prepared, b: Prepared) -> float:
        assert self.weights is not None
        return measures.weighted(a.features, b.features, self.weights)
