"""What verification says of the candidates, held against comparing everything."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from es_neardupe import documents
from es_neardupe.audits import Denied, addressed
from es_neardupe.clients import Client
from es_neardupe.fetch import fetch
from es_neardupe.indices import Target
from es_neardupe.keys import features
from es_neardupe.keys.content import contents
from es_neardupe.measures import resemblance
from es_neardupe.progress import Progress
from es_neardupe.records import Classes, Corpus
from es_neardupe.scoring import Measure
from es_neardupe.stages.exact import Inverted, Similarities
from es_neardupe.stages.verdicts import FOUND, Candidacy, Described
from es_neardupe.stages.verify import Verifier

__all__ = ["Claims", "Ground"]

_TOLERANCE = 1e-9
"""Two ways to divide the same numbers."""


class Ground(NamedTuple):
    """What is known before texts are compared: the keys of the index, and the documents of the sample."""

    corpus: Corpus
    classes: Classes
    left: NDArray[np.intp]
    right: NDArray[np.intp]
    """The candidate pairs of classes."""
    candidacy: Candidacy
    sample: Described
    inverted: Inverted
    """The features of the sample."""
    least: float


class Claims:
    """The candidate pairs with a document of the sample that verification calls similar.

    Comparing everything has to confirm each of them, with the same similarity.
    """

    def __init__(self, client: Client, target: Target, ground: Ground, progress: Progress) -> None:
        self._client, self._target, self._corpus = client, target, ground.corpus
        self._candidacy = ground.candidacy
        measure = Measure(shingle=target.settings.shingle)
        self._verifier = Verifier(client, target.settings, ground.corpus, ground.classes, measure)
        sampled = np.zeros(len(ground.classes), np.bool_)
        sampled[ground.sample.classes[ground.sample.condition == FOUND]] = True
        touched = sampled[ground.left] | sampled[ground.right]
        left, right = ground.left[touched], ground.right[touched]
        similarity = self._verifier.similarities(left, right, progress)
        similar = similarity >= ground.least
        self._left, self._right, self._similarity = left[similar], right[similar], similarity[similar]
        self._codes = ground.candidacy.coded(self._left, self._right)
        self._confirmed = np.zeros(len(self._codes), np.bool_)

    def __len__(self) -> int:
        return len(self._codes)

    def confirm(self, pairs: Similarities, sample: Described, others: Described) -> None:
        """Take note of true pairs."""
        inside, given, similarity = pairs
        fine = np.flatnonzero((sample.condition[inside] == FOUND) & (others.condition[given] == FOUND))
        codes = self._candidacy.coded(sample.classes[inside[fine]], others.classes[given[fine]])
        place = np.searchsorted(self._codes, codes)
        there = np.flatnonzero(place < len(self._codes))
        there = there[self._codes[place[there]] == codes[there]]
        same = np.abs(self._similarity[place[there]] - similarity[fine[there]]) <= _TOLERANCE
        self._confirmed[place[there[same]]] = True

    def denied(self) -> Iterator[Denied]:
        """The claims that nothing confirmed, compared once more; one whose texts changed meanwhile is no claim."""
        for k in np.flatnonzero(~self._confirmed).tolist():
            rows = [self._verifier.first_row(int(side[k])) for side in (self._left, self._right)]
            texts = self._texts([row for row in rows if row is not None])
            if texts is None or len(texts) < 2:
                self._confirmed[k] = True
                continue
            actual = resemblance(*features(texts, self._target.settings.shingle))
            claimed = float(self._similarity[k])
            one, other = (self._corpus.references[row][:2] for row in rows if row is not None)
            if abs(claimed - actual) > _TOLERANCE:
                yield Denied(*addressed(one, other), claimed, actual)

    def _texts(self, rows: list[int]) -> list[str] | None:
        """The present texts, None if one is no longer what was fingerprinted."""
        fields = self._target.settings.fields
        hits = list(fetch(self._client, [self._corpus.references[row] for row in rows], fields))
        texts = ["" if hit is None else documents.text_of(hit.source, fields) for hit in hits]
        stored = [self._corpus.content[row].decode() for row in rows]
        return texts if contents(texts) == stored else None
