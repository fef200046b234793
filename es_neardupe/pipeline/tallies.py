"""Counting the true pairs of an audit block by block, so that memory does not grow with their number."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Iterable

import numpy as np
from numpy.typing import NDArray

from es_neardupe.audits import Loss, Lost, Missed, Part, Recall, addressed, effective, recalled
from es_neardupe.keys import Scheme
from es_neardupe.kinds import LENGTHS
from es_neardupe.stages.exact import Similarities
from es_neardupe.stages.verdicts import FOUND, Described, lost

__all__ = ["Pairs", "Tally"]

_EXAMPLES = 5

_STEPS = 1000
"""Similarities are kept as thousandths, rounded down."""


class Pairs:
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


class Tally:
    """All that is counted of the true pairs."""

    def __init__(self, sampled: int) -> None:
        self.all, self.within = Pairs(sampled), Pairs(sampled)
        self.lost: Counter[Loss] = Counter()
        self._lengths = {name: Pairs(sampled) for name in LENGTHS}
        self._scripts: dict[str, Pairs] = defaultdict(lambda: Pairs(sampled))
        self._examples: dict[Loss, list[Missed]] = defaultdict(list)
        self._similarities = np.zeros(_STEPS + 1, np.int64)

    def add(self, pairs: Similarities, verdict: NDArray[np.int8], sample: Described, others: Described) -> None:
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
                self._examples[loss].append(Missed(*both, float(similarity[k])))

    @staticmethod
    def _part(
        part: Pairs, ends: Iterable[NDArray[np.intp]], found: NDArray[np.bool_], chosen: NDArray[np.bool_]
    ) -> None:
        part.add([end[chosen] for end in ends], found[chosen])

    def reasons(self) -> tuple[Lost, ...]:
        """Every reason with its number of pairs and the most similar ones of them."""
        nearest = {
            loss: sorted(some, key=lambda one: (-one.similarity, *one.a.values(), *one.b.values()))
            for loss, some in self._examples.items()
        }
        return tuple(Lost(loss, self.lost[loss], tuple(nearest.get(loss, ())[:_EXAMPLES])) for loss in Loss)

    def lengths(self, whole: bool) -> tuple[Part, ...]:
        """The classes of length that have pairs."""
        return _parts(self._lengths, whole)

    def scripts(self, whole: bool) -> tuple[Part, ...]:
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


def _parts(counted: dict[str, Pairs], whole: bool) -> tuple[Part, ...]:
    return tuple(Part(name, one.recall(whole)) for name, one in counted.items() if one.pairs)
