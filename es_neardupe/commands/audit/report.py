"""Report of an audit: how many of the true pairs the index finds, with intervals, and why the others were lost."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from es_neardupe.commands.audit.all_true_pairs import PairSimilarities
from es_neardupe.commands.audit.why_missed import FOUND, LENGTHS, DocumentStates, LossReason, lost
from es_neardupe.commands.report_parts import one_line
from es_neardupe.keys.intervals import wilson_interval
from es_neardupe.keys.scheme import Scheme
from es_neardupe.records import Address

__all__ = [
    "AuditReport",
    "BandsAdvice",
    "LostPairs",
    "MissedPair",
    "PairCounter",
    "Recall",
    "RecallCounts",
    "RecallPart",
    "RefutedPair",
    "addressed",
    "effective",
    "recalled",
]


@dataclass(frozen=True)
class Recall:
    """The share of true pairs that the index finds, with its 95 % interval; all three are None without any pair."""

    pairs: int
    found: int
    recall: float | None
    low: float | None
    high: float | None


@dataclass(frozen=True)
class RecallPart:
    """The recall among the pairs of one kind."""

    name: str
    recall: Recall


@dataclass(frozen=True)
class MissedPair:
    """A pair that the index does not find."""

    a: Address
    b: Address
    similarity: float


@dataclass(frozen=True)
class LostPairs:
    """The pairs lost for one reason, with some of them."""

    reason: LossReason
    pairs: int
    examples: tuple[MissedPair, ...]


@dataclass(frozen=True)
class RefutedPair:
    """A pair and the similarity that verification, or a stored group, claims, where the texts have another one."""

    a: Address
    b: Address
    claimed: float
    actual: float


@dataclass(frozen=True)
class BandsAdvice:
    """Bands that would find the wanted share of just these pairs."""

    bands: int
    rows: int
    shingle: int
    permutations: int
    """As in the index."""
    detection: float
    """To ask of ``init``: at the least similarity."""
    expected: float
    """Share of the true pairs that they find on average."""


@dataclass(frozen=True)
class AuditReport:
    """``recall.pairs = recall.found + sum of the pairs in lost``; so do the pairs of ``lengths`` and of ``scripts``."""

    index: str
    indices: tuple[str, ...]
    """Concrete indices that were read."""
    scheme: str
    min: float
    """Pairs are true from this exact resemblance on."""
    max_bucket: int
    seed: int
    documents: int
    """In the index, with or without keys."""
    sampled: int
    """Documents compared with all others."""
    recall: Recall
    """Of the pairs of a document of the sample and any other of the index."""
    within: Recall
    """Of those, the pairs with both documents in the sample."""
    promised: float
    """Probability that the bands find a pair exactly ``min`` similar."""
    expected: float | None
    """Share of just these pairs that the bands find on average; None without pairs."""
    lengths: tuple[RecallPart, ...]
    """By the number of tokens of the shorter document."""
    scripts: tuple[RecallPart, ...]
    """By the script that most letters of the shorter document have."""
    lost: tuple[LostPairs, ...]
    """Every reason, in the order in which they are looked for."""
    claims: int
    """Pairs of texts from ``min`` on that verification finds among the candidates of the sample."""
    members: int | None
    """Documents of the sample stored as at least ``min`` similar to their principal; None unless the last run of
    ``group`` went by the resemblance."""
    denied: int
    """Of both, those that comparing the texts denies."""
    precision: float | None
    """``1 - denied / (claims + members)``: anything but 1 is an error of the program. None where both are 0."""
    wrong: tuple[RefutedPair, ...]
    """Some of the denied pairs."""
    advice: BandsAdvice | None
    """Given where pairs were lost by the bands and fewer are found than was promised."""
    seconds: float = field(compare=False)

    def __repr__(self) -> str:
        return one_line(
            self,
            index=self.index,
            recall=self.recall.recall,
            pairs=self.recall.pairs,
            found=self.recall.found,
            precision=self.precision,
        )


def addressed(one: Address, other: Address) -> tuple[Address, Address]:
    """Two documents in the order of their addresses."""
    return (one, other) if one <= other else (other, one)


def effective(degrees: NDArray[np.int64]) -> float:
    """The number of independent pairs that say as much as the pairs of these documents.

    ``degrees``: pairs of each document of the sample. Pairs of one document are not independent; here they are taken
    to be found or lost all together (Kish 1965, with full correlation), which makes the interval rather too wide.
    """
    squares = float((degrees.astype(np.float64) ** 2).sum())
    return float(degrees.sum()) ** 2 / squares if squares else 0.0


def recalled(pairs: int, found: int, independent: float, *, whole: bool) -> Recall:
    """The share with its interval (`wilson_interval`) for so many ``independent`` pairs, at most ``pairs``.

    ``whole``: the sample is all there is, and nothing is estimated.
    """
    if not pairs:
        return Recall(0, 0, None, None, None)
    share = found / pairs
    if whole:
        return Recall(pairs, found, share, share, share)
    size = min(max(independent, 1.0), float(pairs))
    return Recall(pairs, found, share, *wilson_interval(share, size))


_EXAMPLES = 5

_STEPS = 1000
"""Similarities are kept as thousandths, rounded down."""


class PairCounter:
    """Pairs of one kind: how many, how many of them were found, and in how many each document of the sample is."""

    def __init__(self, sampled: int) -> None:
        self.pairs = self.found = 0
        self.degrees = np.zeros(sampled, np.int64)

    def add(self, ends: Iterable[NDArray[np.intp]], found: NDArray[np.bool_]) -> None:
        """Count pairs; ``ends``: one or both documents of each, as numbers of the sample."""
        self.pairs += len(found)
        self.found += int(found.sum())
        for end in ends:
            self.degrees += np.bincount(end, minlength=len(self.degrees))

    def recall(self, whole: bool) -> Recall:
        """The share found. ``whole``: the sample is the index."""
        return recalled(self.pairs, self.found, effective(self.degrees), whole=whole)


class RecallCounts:
    """Counts of the true pairs."""

    def __init__(self, sampled: int) -> None:
        self.all, self.within = PairCounter(sampled), PairCounter(sampled)
        self.lost: Counter[LossReason] = Counter()
        self._lengths = {name: PairCounter(sampled) for name in LENGTHS}
        self._scripts: dict[str, PairCounter] = defaultdict(lambda: PairCounter(sampled))
        self._examples: dict[LossReason, list[MissedPair]] = defaultdict(list)
        self._similarities = np.zeros(_STEPS + 1, np.int64)

    def add(
        self, pairs: PairSimilarities, verdict: NDArray[np.int8], sample: DocumentStates, others: DocumentStates
    ) -> None:
        """Count a block of pairs; the others may be the sample itself."""
        inside, given, similarity = pairs
        within = others is sample
        ends = (inside, given) if within else (inside,)
        found = verdict == FOUND
        self.all.add(ends, found)
        if within:
            self.within.add(ends, found)
        self._similarities += np.bincount((similarity * _STEPS).astype(np.intp), minlength=_STEPS + 1)
        shorter = sample.tokens[inside] <= others.tokens[given]
        length = np.where(shorter, sample.lengths[inside], others.lengths[given])
        for number in np.unique(length).tolist():
            self._part(self._lengths[LENGTHS[number]], ends, found, length == number)
        names, codes = np.unique(np.concatenate((sample.scripts, others.scripts)), return_inverse=True)
        mine, theirs = np.split(codes.reshape(-1), [len(sample.scripts)])
        script = np.where(shorter, mine[inside], theirs[given])
        for number in np.unique(script).tolist():
            self._part(self._scripts[str(names[number])], ends, found, script == number)
        for loss, numbers in lost(verdict):
            self.lost[loss] += len(numbers)
            for k in numbers[np.argsort(-similarity[numbers], kind="stable")][:_EXAMPLES].tolist():
                both = addressed(sample.addresses[inside[k]], others.addresses[given[k]])
                self._examples[loss].append(MissedPair(*both, float(similarity[k])))

    @staticmethod
    def _part(
        part: PairCounter, ends: Iterable[NDArray[np.intp]], found: NDArray[np.bool_], chosen: NDArray[np.bool_]
    ) -> None:
        part.add([end[chosen] for end in ends], found[chosen])

    def reasons(self) -> tuple[LostPairs, ...]:
        """Every reason with its number of pairs and the most similar ones of them."""
        nearest = {
            loss: sorted(some, key=lambda one: (-one.similarity, one.a, one.b)) for loss, some in self._examples.items()
        }
        return tuple(LostPairs(loss, self.lost[loss], tuple(nearest.get(loss, ())[:_EXAMPLES])) for loss in LossReason)

    def lengths(self, whole: bool) -> tuple[RecallPart, ...]:
        """The classes of length that have pairs."""
        return _parts(self._lengths, whole)

    def scripts(self, whole: bool) -> tuple[RecallPart, ...]:
        """The scripts, the one with most pairs first."""
        order = sorted(self._scripts, key=lambda name: (-self._scripts[name].pairs, name))
        return _parts({name: self._scripts[name] for name in order}, whole)

    def expected(self, scheme: Scheme) -> float | None:
        """The share of these pairs that bands find on average; a little low, since similarities are rounded down."""
        if not self.all.pairs:
            return None
        there = np.flatnonzero(self._similarities)
        probabilities = [scheme.detection(step / _STEPS) for step in there.tolist()]
        return float(np.average(probabilities, weights=self._similarities[there]))


def _parts(counted: dict[str, PairCounter], whole: bool) -> tuple[RecallPart, ...]:
    return tuple(RecallPart(name, one.recall(whole)) for name, one in counted.items() if one.pairs)
