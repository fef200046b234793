"""Report of an audit: the share of true pairs that the index finds, with intervals, and why the others are lost."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from dataclasses import astuple, dataclass, field

import numpy as np
from numpy.typing import NDArray

from es_neardupe.commands.audit.true_pairs import PairSimilarities
from es_neardupe.commands.audit.why_missed import FOUND, LENGTHS, DocumentStates, LossReason, lost
from es_neardupe.groups.clusters import RelatedCounts
from es_neardupe.keys.arrays import Flags, Ints, Positions
from es_neardupe.keys.intervals import wilson_interval
from es_neardupe.keys.scheme import Scheme
from es_neardupe.keys.unit import Unit
from es_neardupe.records import Address, one_line
from es_neardupe.tables import Cell, Table, Tabular
from es_neardupe.verification.boilerplate import Boilerplate


@dataclass(frozen=True)
class Recall:
    """The share of true pairs that the index finds, with its 95 % interval; all three are None without pairs."""

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
    """The pairs lost for one reason, with examples."""

    reason: LossReason
    pairs: int
    examples: tuple[MissedPair, ...]


@dataclass(frozen=True)
class RefutedPair:
    """A pair whose texts have another similarity than verification, or a stored group, claims."""

    a: Address
    b: Address
    claimed: float
    actual: float


@dataclass(frozen=True)
class ReviewedPairs:
    """Pairs of different texts that reviewers have decided about: ``pairs`` is the sum of the counts that follow.

    Reviewers choose the pairs that they look at, so this is no random sample.
    """

    pairs: int
    same: int
    """At least ``min`` similar, and *same* for all reviewers of the pair."""
    different: int
    """At least ``min`` similar, and *different* for all reviewers of the pair."""
    below_same: int
    """Less than ``min`` similar, and *same*."""
    below_different: int
    disputed: int
    """Their reviewers disagree."""
    gone: int
    """A text is no longer in the index: the document was deleted, or its text changed."""
    precision: float | None
    """``same / (same + different)``; None if both are 0."""


@dataclass(frozen=True)
class BandsAdvice:
    """Bands that would find the required share of these pairs."""

    bands: int
    rows: int
    shingle: int
    unit: Unit
    permutations: int
    """As in the index."""
    detection: float
    """Detection probability at the minimum similarity, the option of ``init``."""
    expected: float
    """Share of the true pairs that these bands find on average."""


@dataclass(frozen=True)
class AuditReport(Tabular):
    """``recall.pairs = recall.found + sum of the pairs in lost``; so do the pairs of ``lengths`` and of ``scripts``."""

    index: str
    indices: tuple[str, ...]
    """Concrete indices that were read."""
    scheme: str
    min: float
    """Minimum exact resemblance of true pairs."""
    max_bucket: int
    seed: int
    documents: int
    """Documents in the index, with or without keys."""
    sampled: int
    """Documents compared with all others."""
    recall: Recall
    """Recall among the pairs of a sampled document and any other document of the index."""
    within: Recall
    """Recall among the pairs with both documents in the sample."""
    boilerplate: Boilerplate
    """The clusters of verified pairs of sampled documents that only boilerplate holds together."""
    only_boilerplate: Recall | None
    """Pairs of a sampled document with any other that are similar only because of these passages. They count nowhere
    else. None without such passages."""
    promised: float
    """Probability that the bands find a pair exactly ``min`` similar."""
    expected: float | None
    """Share of these pairs that the bands find on average; None without pairs."""
    lengths: tuple[RecallPart, ...]
    """By the number of tokens of the shorter document."""
    scripts: tuple[RecallPart, ...]
    """By the script of most letters of the shorter document."""
    lost: tuple[LostPairs, ...]
    """All reasons, in the order in which they are checked."""
    claims: int
    """Pairs of texts with at least ``min`` that verification finds among the candidates of the sample."""
    members: int | None
    """Sampled documents whose stored similarity to their principal is at least ``min``, and whose texts have both not
    changed since they were enriched; None unless the last run of ``group`` used the resemblance."""
    denied: int
    """Claims and members that the comparison of texts refutes."""
    precision: float | None
    """``1 - denied / (claims + members)``: any value except 1 is an error of the program. None if both are 0."""
    precision_without_boilerplate: float | None
    """The share of the ``claims`` that are also at least ``min`` similar without these passages. None without claims,
    and without such passages."""
    wrong: tuple[RefutedPair, ...]
    """Some of the refuted pairs."""
    related: RelatedCounts | None
    """Matches of the whole index that are not in one group, as the last run of ``group`` counted them; None if no run
    has finished."""
    reviewed: ReviewedPairs | None
    """What reviewers say about pairs of the whole index; None if there are no decisions."""
    advice: BandsAdvice | None
    """Other bands, if the bands lost pairs and find fewer than promised; else None."""
    seconds: float = field(compare=False)

    def table(self) -> Table:
        """A row for each share: of all pairs, of those of each kind, and of those lost for each reason."""
        columns: dict[str, type] = {"index": str, "scheme": str, "min": float, "part": str, "name": str}
        columns |= {"pairs": int, "found": int, "recall": float, "low": float, "high": float}
        return Table(columns, ((self.index, self.scheme, self.min, *row) for row in self._rows()))

    def _rows(self) -> Iterator[tuple[Cell, ...]]:
        shares = {"recall": self.recall, "within": self.within, "only_boilerplate": self.only_boilerplate}
        for part, share in shares.items():
            if share is not None:
                yield part, None, *astuple(share)
        for part, shares_of in {"lengths": self.lengths, "scripts": self.scripts}.items():
            for one in shares_of:
                yield part, one.name, *astuple(one.recall)
        for reason in self.lost:
            yield "lost", reason.reason.value, reason.pairs, 0, None, None, None

    def __repr__(self) -> str:
        return one_line(
            self,
            index=self.index,
            recall=self.recall.recall,
            pairs=self.recall.pairs,
            found=self.recall.found,
            precision=self.precision,
        )


def ordered(one: Address, other: Address) -> tuple[Address, Address]:
    """Two documents, ordered by their addresses."""
    return (one, other) if one <= other else (other, one)


def effective(degrees: Ints) -> float:
    """The effective number of independent pairs.

    ``degrees``: number of pairs of each sampled document. Pairs of one document are not independent; they are assumed
    to be found or lost all together (Kish 1965, with full correlation), so the interval is rather too wide.
    """
    squares = float((degrees.astype(np.float64) ** 2).sum())
    return float(degrees.sum()) ** 2 / squares if squares else 0.0


def recall_of(pairs: int, found: int, independent: float, *, whole: bool) -> Recall:
    """The share found, with its interval (`wilson_interval`) for this number of ``independent`` pairs, at most
    ``pairs``.

    ``whole``: the sample is the whole index, so the share is exact.
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
"""Similarities are counted in thousandths, rounded down."""


class PairCounter:
    """Counts of pairs of one kind: all of them, those found, and those of each sampled document."""

    def __init__(self, sampled: int) -> None:
        self.pairs = self.found = 0
        self.degrees = np.zeros(sampled, np.int64)

    def add(self, ends: Iterable[Positions], found: Flags) -> None:
        """Count pairs; ``ends``: one or both documents of each pair, as numbers in the sample."""
        self.pairs += len(found)
        self.found += int(found.sum())
        for end in ends:
            self.degrees += np.bincount(end, minlength=len(self.degrees))

    def recall(self, whole: bool) -> Recall:
        """The share found. ``whole``: the sample is the whole index."""
        return recall_of(self.pairs, self.found, effective(self.degrees), whole=whole)


class RecallCounts:
    """Counts of the true pairs, by length, script and reason of loss."""

    def __init__(self, sampled: int) -> None:
        self.all, self.within, self.only_boilerplate = (PairCounter(sampled) for _ in range(3))
        self.lost: Counter[LossReason] = Counter()
        self._lengths = {name: PairCounter(sampled) for name in LENGTHS}
        self._scripts: dict[str, PairCounter] = defaultdict(lambda: PairCounter(sampled))
        self._examples: dict[LossReason, list[MissedPair]] = defaultdict(list)
        self._similarities = np.zeros(_STEPS + 1, np.int64)

    def add(
        self, pairs: PairSimilarities, verdict: NDArray[np.int8], sample: DocumentStates, others: DocumentStates
    ) -> None:
        """Count a block of pairs; ``others`` may be the sample itself."""
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
        sampled, other = np.split(codes.reshape(-1), [len(sample.scripts)])
        script = np.where(shorter, sampled[inside], other[given])
        for number in np.unique(script).tolist():
            self._part(self._scripts[str(names[number])], ends, found, script == number)
        for loss, numbers in lost(verdict):
            self.lost[loss] += len(numbers)
            least = np.sort(similarity[numbers])[-_EXAMPLES:][0]
            examples = self._examples[loss]
            for k in numbers[similarity[numbers] >= least].tolist():
                both = ordered(sample.address(inside[k]), others.address(given[k]))
                examples.append(MissedPair(*both, float(similarity[k])))
            self._examples[loss] = sorted(examples, key=lambda one: (-one.similarity, one.a, one.b))[:_EXAMPLES]

    def add_boilerplate(
        self, pairs: PairSimilarities, verdict: NDArray[np.int8], apart: Flags, *, within: bool
    ) -> None:
        """Count the pairs that are similar only because of boilerplate (``apart``), which `add` does not get."""
        ends = (pairs.inside, pairs.given) if within else (pairs.inside,)
        self._part(self.only_boilerplate, ends, verdict == FOUND, apart)

    @staticmethod
    def _part(part: PairCounter, ends: Iterable[Positions], found: Flags, chosen: Flags) -> None:
        part.add([end[chosen] for end in ends], found[chosen])

    def reasons(self) -> tuple[LostPairs, ...]:
        """Every reason with its number of pairs and the most similar of them."""
        return tuple(LostPairs(loss, self.lost[loss], tuple(self._examples.get(loss, ()))) for loss in LossReason)

    def lengths(self, whole: bool) -> tuple[RecallPart, ...]:
        """Recall by length, for the lengths that have pairs."""
        return _parts(self._lengths, whole)

    def scripts(self, whole: bool) -> tuple[RecallPart, ...]:
        """Recall by script, in descending order of pairs."""
        order = sorted(self._scripts, key=lambda name: (-self._scripts[name].pairs, name))
        return _parts({name: self._scripts[name] for name in order}, whole)

    def expected(self, scheme: Scheme) -> float | None:
        """The share of these pairs that bands find on average; slightly low, since similarities are rounded down."""
        if not self.all.pairs:
            return None
        steps = np.flatnonzero(self._similarities)
        probabilities = [scheme.detection(step / _STEPS) for step in steps.tolist()]
        return float(np.average(probabilities, weights=self._similarities[steps]))


def _parts(counted: dict[str, PairCounter], whole: bool) -> tuple[RecallPart, ...]:
    return tuple(RecallPart(name, one.recall(whole)) for name, one in counted.items() if one.pairs)
