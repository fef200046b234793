"""Unrelated candidates: texts on other subjects that the keys make meet, by chance or by frequent shingles."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from es_neardupe.keys.arrays import U64, Floats
from es_neardupe.keys.scheme import Scheme
from es_neardupe.keys.unit import Unit
from es_neardupe.similarity.formulas import resemblances

_MILLION = 1_000_000

MANY = 1000
"""Unrelated candidates of a million from which keys are a poor choice."""

_ENOUGH = 100
"""Texts below which a single pair of related texts would look like many candidates of a million."""

_RELATED = 0.5
"""Share of the threshold from which a rare pair is related, such as two versions of a text."""

_RARE = 0.01
"""Share of all pairs. More pairs than that are alike because of frequent shingles."""

_COMMON = 0.1
"""Share of the texts that have a shingle of boilerplate."""

_PASSAGE = 3
"""Words of a shingle that is part of a passage, at least: fewer are frequent in any text."""

_USUAL = {
    (Unit.WORD, 1): (0.0604, 0.0794, 0.0888, 0.0959, 0.1023, 0.1084, 0.1148, 0.1219, 0.1314, 0.1489),
    (Unit.WORD, 2): (0.0034, 0.0072, 0.0093, 0.0111, 0.0128, 0.0145, 0.0163, 0.0186, 0.0218, 0.0293),
    (Unit.WORD, 3): (0, 0, 0, 0, 0.001, 0.0014, 0.002, 0.0028, 0.0042, 0.0087),
    (Unit.WORD, 4): (0, 0, 0, 0, 0, 0, 0, 0, 0.0013, 0.0041),
    (Unit.WORD, 5): (0, 0, 0, 0, 0, 0, 0, 0, 0, 0.0019),
    (Unit.CHARACTER, 2): (0.484, 0.5532, 0.5824, 0.6029, 0.6199, 0.635, 0.6495, 0.6643, 0.6817, 0.7073),
    (Unit.CHARACTER, 3): (0.122, 0.2025, 0.2274, 0.2436, 0.2554, 0.2654, 0.2739, 0.2818, 0.2891, 0.2964),
    (Unit.CHARACTER, 4): (0.0721, 0.1052, 0.1198, 0.1304, 0.14, 0.1495, 0.1591, 0.1695, 0.1823, 0.2054),
    (Unit.CHARACTER, 5): (0.035, 0.0548, 0.0642, 0.0712, 0.0773, 0.0833, 0.0894, 0.0961, 0.1047, 0.1207),
    (Unit.CHARACTER, 6): (0.0188, 0.0312, 0.0376, 0.0425, 0.0467, 0.0508, 0.0552, 0.0601, 0.0664, 0.0785),
    (Unit.CHARACTER, 7): (0.0092, 0.0166, 0.0208, 0.0242, 0.0272, 0.0302, 0.0334, 0.0372, 0.0422, 0.052),
    (Unit.CHARACTER, 8): (0.0046, 0.0091, 0.0118, 0.0141, 0.0162, 0.0183, 0.0207, 0.0235, 0.0275, 0.0357),
    (Unit.CHARACTER, 9): (0.0022, 0.005, 0.0069, 0.0085, 0.0101, 0.0117, 0.0136, 0.0158, 0.019, 0.0265),
    (Unit.SHAPE, 2): (0.6304, 0.6541, 0.6684, 0.6791, 0.6888, 0.6982, 0.7079, 0.7184, 0.7314, 0.753),
    (Unit.SHAPE, 3): (0.3812, 0.3962, 0.4048, 0.4114, 0.4173, 0.423, 0.4289, 0.4356, 0.4439, 0.4582),
    (Unit.SHAPE, 4): (0.1628, 0.1732, 0.1791, 0.1838, 0.1882, 0.1923, 0.1966, 0.2016, 0.2083, 0.2202),
    (Unit.SHAPE, 5): (0.0556, 0.062, 0.0659, 0.0692, 0.0722, 0.0752, 0.0784, 0.0822, 0.0873, 0.0973),
    (Unit.SHAPE, 6): (0.0192, 0.0232, 0.0258, 0.0281, 0.0303, 0.0325, 0.035, 0.0379, 0.0421, 0.0511),
    (Unit.SHAPE, 7): (0.0073, 0.0099, 0.0117, 0.0133, 0.0149, 0.0166, 0.0185, 0.0208, 0.0243, 0.0322),
    (Unit.SHAPE, 8): (0.0029, 0.0046, 0.0059, 0.007, 0.0082, 0.0095, 0.011, 0.0128, 0.0156, 0.0226),
    (Unit.SHAPE, 9): (0.001, 0.0022, 0.003, 0.0039, 0.0047, 0.0057, 0.0069, 0.0084, 0.0106, 0.0166),
    (Unit.SHAPE, 10): (0.0003, 0.0009, 0.0015, 0.0021, 0.0027, 0.0035, 0.0044, 0.0056, 0.0075, 0.0125),
    (Unit.SHAPE, 11): (0, 0.0003, 0.0006, 0.0011, 0.0015, 0.0021, 0.0029, 0.0038, 0.0054, 0.0097),
}
"""Resemblances of unrelated texts by shingle, at 5 %, 15 %, ... 95 % of the pairs of 400 press releases of 350 words.
Larger shingles are hardly ever shared."""


@dataclass(frozen=True, kw_only=True)
class UnrelatedCandidates:
    """How many of a million unrelated texts become candidates of a text: each of them is read and compared."""

    of_a_million: float
    documents: int
    """Random documents whose texts it was computed from; 0: texts of usual lengths in English."""
    boilerplate: bool = False
    """Whether they are that many because of passages that many of these texts have in common."""

    @property
    def too_many(self) -> bool:
        """Whether the keys make unrelated texts meet."""
        return self.of_a_million > MANY


def unrelated_candidates(scheme: Scheme, threshold: float, features: Sequence[U64] = ()) -> UnrelatedCandidates:
    """The candidates of pairs of these texts (features of each) that are not related, or with too few texts those of
    usual ones. Texts that match another one are left out, and rare pairs that are nearly as similar."""
    found = _candidates(scheme, threshold, features)
    if not (found.too_many and found.documents and scheme.unit is Unit.WORD and scheme.shingle >= _PASSAGE):
        return found
    rest = _candidates(scheme, threshold, _without_common(features))
    return replace(found, boilerplate=rest.documents > 0 and not rest.too_many)


def _candidates(scheme: Scheme, threshold: float, features: Sequence[U64]) -> UnrelatedCandidates:
    texts = [one for one in features if len(one)]
    left, right = np.triu_indices(len(texts), 1)
    found = resemblances(texts, left, right) if len(texts) > 1 else np.zeros(0)
    matching = np.union1d(left[found >= threshold], right[found >= threshold])
    documents = len(texts) - len(matching)
    if documents < _ENOUGH:
        usual = np.array(_USUAL.get((scheme.unit, scheme.shingle), (0,)), np.float64)
        return UnrelatedCandidates(of_a_million=_MILLION * _mean_probability(scheme, usual), documents=0)
    found = found[~np.isin(left, matching) & ~np.isin(right, matching)]
    related = found >= _RELATED * threshold
    if related.sum() <= _RARE * len(found):
        found = found[~related]
    return UnrelatedCandidates(of_a_million=_MILLION * _mean_probability(scheme, found), documents=documents)


def _without_common(texts: Sequence[U64]) -> list[U64]:
    """The features of texts without those that many of them have."""
    features, counts = np.unique(np.concatenate(texts), return_counts=True)
    common = features[counts > _COMMON * len(texts)]
    return [np.setdiff1d(text, common, assume_unique=True) for text in texts]


def _mean_probability(scheme: Scheme, resemblance: Floats) -> float:
    """The exact sum, rounded once: the same texts give the same number in whatever order they were read."""
    return math.fsum(scheme.candidate_probability(one) for one in resemblance.tolist()) / len(resemblance)
