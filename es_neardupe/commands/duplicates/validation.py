"""Similarity function of a stage that finds pairs: its measure, its name in the diagnostics, its explanations."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from es_neardupe.commands.duplicates.request_plan import RATIO, Validation
from es_neardupe.index.random_samples import address_hashes
from es_neardupe.keys.minhash import estimate_of
from es_neardupe.options import MeasureName
from es_neardupe.records import DocumentsInScope
from es_neardupe.server.client import Client
from es_neardupe.similarity.features import describe, fields_of
from es_neardupe.similarity.formulas import Weights
from es_neardupe.similarity.measure import MEANINGS, Measure, Prepared, weights_of
from es_neardupe.verification.current_texts import current_hits, prepared

__all__ = ["SimilarityFunction", "similarity_function"]


SAMPLE = 2000
"""Documents of the sample that says how common a feature is."""


@dataclass(frozen=True)
class SimilarityFunction:
    """A measure of documents: of the features that it names (`RATIO`), else of their texts."""

    measure: Measure
    fields: tuple[str, ...]
    """Those of the features; or those whose values are the text, in this order, one a line."""

    @property
    def label(self) -> str:
        """The function in the words of the diagnostics."""
        if self.measure.sources:
            return f"pairwiseSimilarity:{RATIO} [{self._features}]"
        words = "" if self.measure.name in (MeasureName.BAG, MeasureName.EDIT) else f"w = {self.measure.shingle}; "
        return f"pairwiseSimilarity:{self.measure.label} [{words}texts {self._from}]"

    def explained(self, similarity: float, sizes: tuple[int, int]) -> str:
        """One sentence on a similarity. ``sizes``: how much of each document is compared (`Measure.prepare`)."""
        if self.measure.sources:
            return self._shares(similarity, sum(sizes))
        meaning = MEANINGS[self.measure.name].partition(":")[0]
        what = f"{self.measure.label} of the texts {self._from}: {meaning}"
        interval = _interval(similarity, sizes[0]) if self.measure.name is MeasureName.ESTIMATE else ""
        return f"Documents are {similarity:.4f} similar{interval} by {what}."

    def _shares(self, similarity: float, both: int) -> str:
        """Of s = c / (a + b - c), the shared features c are s (a + b) / (1 + s)."""
        common = round(similarity * both / (1 + similarity))
        total = both - common
        return f"Documents share {common:,} out of {total:,} distinct feature{'s'[: total != 1]} ({self._features})."

    @property
    def _features(self) -> str:
        return " + ".join(map(describe, self.measure.sources))

    @property
    def _from(self) -> str:
        return f"from field{'s'[: len(self.fields) != 1]}: {', '.join(self.fields)}"


def _interval(similarity: float, slots: int) -> str:
    """The interval of an estimate, from the number of slots that must have agreed."""
    found = estimate_of(round(slots * (similarity + (1 - similarity) / 256)), slots)
    return f" (95 % interval: {found.low:.4f} to {found.high:.4f})"


def similarity_function(
    client: Client, scope: DocumentsInScope, wanted: Validation
) -> tuple[SimilarityFunction, dict[str, Any]]:
    """The function, and what the diagnostics say of the sample behind it: nothing for most."""
    if wanted.features is not None:
        return SimilarityFunction(Measure(sources=(wanted.features,)), fields_of(wanted.features)), {}
    name = MeasureName(wanted.measure)
    weights = _weights(client, scope, wanted) if name is MeasureName.WEIGHTED else None
    ngram = wanted.ngram if name is MeasureName.BAG else 1
    measure = Measure(name, wanted.matching, shingle=wanted.shingle, ngram=ngram, weights=weights)
    sampled = {} if weights is None else {"Documents sampled for weights": weights.documents}
    return SimilarityFunction(measure, wanted.fields), sampled


def _weights(client: Client, scope: DocumentsInScope, wanted: Validation) -> Weights:
    """How many documents of a sample of the scope have each shingle. The sample depends on the addresses only."""
    order = np.argsort(address_hashes(scope.references), kind="stable")
    sample = [scope.references[number] for number in order[:SAMPLE].tolist()]
    sets, found = Measure(shingle=wanted.shingle), list[Prepared]()
    for hits in current_hits(client, sample, wanted.fields):
        found += prepared(sets, [hit.source for hit in hits], wanted.fields)
    return weights_of(found)
