"""Linkage that respects the decisions of reviewers: *different* is never in one group, *same* always is.

The groups of a *cluster*, a connected component of matches and of texts decided to be the same, depend on nothing
outside of it. If the groups made without decisions contradict none, they are also those made with them. Only clusters
with a contradiction are linked again, with texts decided to be the same as one unit, and a unit only joins a group
without a text that it must be apart from. Star groups are then those of the centres by the number of matches, which are
not exchanged. The result depends only on the pairs and the decisions.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np

from es_neardupe.candidates.pair_arrays import components
from es_neardupe.candidates.who_may_meet import DEFAULT_RULES, GroupRules
from es_neardupe.groups.decisions import PairDecisions
from es_neardupe.groups.stars import Matches, rounded
from es_neardupe.keys.arrays import I32, Bytes, Flags, Numbers, Positions
from es_neardupe.options import Linkage, MeasureName
from es_neardupe.records import FingerprintColumns, TextClasses

Compare = Callable[[Positions, Positions], Flags]
"""Whether pairs of classes match that are no candidates; bool of their number."""


@dataclass(frozen=True)
class DecidedClasses:
    """Decisions between classes. k classes, s pairs, d decisions *same*."""

    left: Positions
    """Pairs of classes decided to be the same, linked if possible; shape (s,)."""
    right: Positions
    decision: Positions
    """The number of the decision of each pair, below d; shape (s,)."""
    same: Positions
    """The places in `PairDecisions` of the decisions *same* about two texts of the classes; shape (d,)."""
    different: int
    """The number of decisions *different* about two texts of the classes."""
    label: I32
    """A number for each class that must be apart from others, equal for copies; -1 for all other classes; shape
    (k,)."""
    apart: Mapping[int, frozenset[int]] = field(repr=False)
    """Label -> the labels that it must be apart from."""

    def __bool__(self) -> bool:
        return bool(len(self.same) or self.different)

    def only(self, pairs: Flags) -> DecidedClasses:
        """With these pairs *same* only (bool of the pairs), and without the decisions that lose all of their pairs."""
        kept = np.setdiff1d(np.arange(len(self.same)), np.setdiff1d(self.decision[~pairs], self.decision[pairs]))
        decision = np.searchsorted(kept, self.decision[pairs])
        return replace(self, left=self.left[pairs], right=self.right[pairs], decision=decision, same=self.same[kept])

    def unsatisfied(self, group: Numbers) -> Positions:
        """The places of the decisions *same* that have a pair in two groups, or no pair that can be linked. ``group``:
        the number of the group of each class; shape (k,)."""
        satisfied = np.zeros(len(self.same), np.bool_)
        satisfied[self.decision] = True
        satisfied[self.decision[group[self.left] != group[self.right]]] = False
        return self.same[~satisfied]


def decided_classes(
    decisions: PairDecisions,
    corpus: FingerprintColumns,
    classes: TextClasses,
    among: Flags,
    rules: GroupRules = DEFAULT_RULES,
) -> DecidedClasses:
    """The decisions about classes, of which only those ``among`` (bool of the classes) are part of the run.

    Copies that the ``rules`` do not allow in one group stay apart, whatever was decided about other copies.
    """
    numbers = np.flatnonzero(among)
    content = corpus.content[classes.first[numbers]]
    known = np.isin(content, np.concatenate((decisions.low, decisions.high)))
    numbers, content = numbers[known], content[known]
    order = np.argsort(content, kind="stable")
    numbers, content = numbers[order], content[order]
    low, high = _ranges(content, decisions.low), _ranges(content, decisions.high)
    both = (low[0] < low[1]) & (high[0] < high[1])
    label = np.full(len(classes), -1, np.int32)
    apart: dict[int, set[int]] = {}
    same = np.flatnonzero(both & decisions.same)
    single = (low[1] - low[0] == 1) & (high[1] - high[0] == 1)
    if rules.restrict:
        single[:] = False
    ends = numbers[low[0, same[single[same]]]], numbers[high[0, same[single[same]]]]
    left, right, of = [np.minimum(*ends)], [np.maximum(*ends)], [np.flatnonzero(single[same])]
    for number in np.flatnonzero(~single[same]).tolist():
        ones, others = (numbers[slice(*bounds[:, same[number]])] for bounds in (low, high))
        pairs = _linkable(corpus, classes, ones, others, rules)
        left.append(np.minimum(*pairs))
        right.append(np.maximum(*pairs))
        of.append(np.full(len(pairs[0]), number))
    for place in np.flatnonzero(both & ~decisions.same).tolist():
        sides = [int(first[place]) for first in (low[0], high[0])]  # the first place of a content is its label
        for side, bounds in zip(sides, (low, high), strict=True):
            label[numbers[slice(*bounds[:, place])]] = side
        apart.setdefault(sides[0], set()).add(sides[1])
        apart.setdefault(sides[1], set()).add(sides[0])
    return DecidedClasses(
        np.concatenate(left),
        np.concatenate(right),
        np.concatenate(of),
        same,
        int((both & ~decisions.same).sum()),
        label,
        {one: frozenset(others) for one, others in apart.items()},
    )


def _ranges(ordered: Bytes, values: Bytes) -> Positions:
    """First and last place of each value among ordered ones; shape (2, n)."""
    return np.stack([np.searchsorted(ordered, values, side=side) for side in ("left", "right")])


def _linkable(
    corpus: FingerprintColumns, classes: TextClasses, ones: Positions, others: Positions, rules: GroupRules
) -> tuple[Positions, Positions]:
    """Pairs of classes of two contents: each with the first one of the other content that it may be grouped with."""
    pairs: set[tuple[int, int]] = set()
    for some, more in ((ones, others), (others, ones)):
        rows, candidates = classes.first[some], classes.first[more]
        for number, row in zip(some.tolist(), rows.tolist(), strict=True):
            fit = rules.allow(corpus, candidates, row)
            if fit.any():
                other = int(more[np.argmax(fit)])
                pairs.add((min(number, other), max(number, other)))
    found = np.array(sorted(pairs), np.intp).reshape(-1, 2)
    return found[:, 0], found[:, 1]


@dataclass(frozen=True)
class LinkedByDecisions:
    """The result of `link_decided`."""

    principal: Numbers
    """The principal of each class; shape (k,)."""
    joined: Positions
    """The numbers of the pairs of `DecidedClasses` that are in one group."""


def link_decided(
    linkage: Linkage,
    principal: Numbers,
    matches: Matches,
    decided: DecidedClasses,
    measure: str,
    *,
    order: Numbers,
    compare: Compare,
) -> LinkedByDecisions:
    """The principal of each class, from those made without decisions. ``measure``: the name of that of the matches.

    ``order``: the classes in the order of principals. With linkage complete, ``compare`` finds further matches.
    """
    left, right = matches.left, matches.right
    size = len(principal)
    rank = np.empty(size, np.intp)
    rank[order] = np.arange(size)
    cluster = components(size, np.concatenate((left, decided.left)), np.concatenate((right, decided.right)))
    wrong = np.zeros(int(cluster.max(initial=-1)) + 1, np.bool_)
    wrong[cluster[decided.left[principal[decided.left] != principal[decided.right]]]] = True
    labelled = np.flatnonzero(decided.label >= 0)
    present = set(zip(principal[labelled].tolist(), decided.label[labelled].tolist(), strict=True))
    for group, label in present:
        if any((group, other) in present for other in decided.apart[label]):
            wrong[cluster[group]] = True
    if wrong.any():
        principal = principal.copy()
        for one in _clusters(cluster, wrong, rank, matches, decided):
            for first, members in one.linked(linkage, compare, measure):
                principal[members] = first
    together = principal[decided.left] == principal[decided.right]
    return LinkedByDecisions(principal, np.flatnonzero(together))


def _clusters(
    cluster: Numbers, wrong: Flags, rank: Positions, matches: Matches, decided: DecidedClasses
) -> Iterator[_Cluster]:
    """The clusters to link again, with their matches and decisions."""
    left, right, similarity = matches
    classes = np.flatnonzero(wrong[cluster])
    classes = classes[np.lexsort((rank[classes], cluster[classes]))]
    chosen = np.flatnonzero(wrong[cluster[left]])
    chosen = chosen[np.argsort(cluster[left[chosen]], kind="stable")]
    same = np.flatnonzero(wrong[cluster[decided.left]])
    same = same[np.argsort(cluster[decided.left[same]], kind="stable")]
    numbers = np.flatnonzero(wrong)
    edges = [
        [np.searchsorted(cluster[of], numbers, side=side) for side in ("left", "right")]
        for of in (classes, left[chosen], decided.left[same])
    ]
    for place in range(len(numbers)):
        members, links, decisions = (slice(first[place], last[place]) for first, last in edges)
        ordered = classes[members].tolist()
        position = {number: k for k, number in enumerate(ordered)}
        found = zip(
            left[chosen[links]].tolist(),
            right[chosen[links]].tolist(),
            rounded(similarity[chosen[links]]).tolist(),
            strict=True,
        )
        pairs = zip(decided.left[same[decisions]].tolist(), decided.right[same[decisions]].tolist(), strict=True)
        yield _Cluster(
            classes[members],
            [(*sorted((position[one], position[other])), value) for one, other, value in found],
            sorted((min(position[one], position[other]), max(position[one], position[other])) for one, other in pairs),
            [int(decided.label[number]) for number in ordered],
            decided.apart,
        )


@dataclass(frozen=True)
class _Cluster:
    """One cluster; its texts have numbers in the order of principals."""

    classes: Positions
    matches: Sequence[tuple[int, int, int]]
    same: Sequence[tuple[int, int]]
    labels: Sequence[int]
    apart: Mapping[int, frozenset[int]]

    def linked(self, linkage: Linkage, compare: Compare, measure: str) -> Iterator[tuple[int, Positions]]:
        """The principal of each group, and its classes."""
        units = _Units(self.labels, self.apart)
        for one, other in self.same:
            units.join(one, other)
        if linkage is Linkage.CHAIN:
            for one, other, _ in sorted(self.matches, key=lambda match: (-match[2], match[0], match[1])):
                units.join(one, other)
            groups: Iterable[tuple[int, list[int]]] = ((min(group), group) for group in units.all())
        elif linkage is Linkage.STAR:
            groups = self._stars(units, measure)
        else:
            groups = ((min(group), group) for group in self._complete(units, compare))
        for first, group in groups:
            yield int(self.classes[first]), self.classes[sorted(group)]

    def _stars(self, units: _Units, measure: str) -> Iterator[tuple[int, list[int]]]:
        """The principal and the texts of each group. Centres are chosen as in `star`, among the texts of units that can
        join no group of an earlier centre. Then the units join, those with the most similar pair of a text and a centre
        first. Those that may join no group any more, because of other members, are processed again by themselves.
        """
        near = self._similarities()
        order = list(range(len(self.labels)))
        if measure != MeasureName.CONTAINMENT:
            order.sort(key=lambda text: -len(near[text]))  # stable
        waiting = set(order)
        while waiting:
            centres: set[int] = set()
            led: set[int] = set()
            for text in order:
                if text in waiting and text not in led:
                    unit = units.members(text)
                    reached = {one for other in unit for one in near[other] if one in centres}
                    if not any(units.fit(text, centre) for centre in reached):
                        centres.add(text)
                        led.update(unit)
            joining = [
                (-value, centre, text)
                for centre in centres
                for text, value in near[centre].items()
                if text in waiting and text not in led
            ]
            for _, centre, text in sorted(joining):
                unit = units.members(text)
                if text not in led and units.join(centre, text):
                    led.update(unit)
            for centre in sorted(centres):
                group = units.members(centre)
                yield self._principal(near, centre, group), group
            waiting -= led

    def _principal(self, near: Sequence[Mapping[int, int]], centre: int, group: Sequence[int]) -> int:
        """The first text of a group that matches all texts that the centre matches, and the centre."""
        reached = {centre, *(text for text in group if text in near[centre])}
        return min(text for text in reached if reached <= {text, *near[text]})

    def _complete(self, units: _Units, compare: Compare) -> Iterator[list[int]]:
        """Groups of units of which each text matches all texts of the other units."""
        partners = self._partners()
        free = set(range(len(self.labels)))
        for first in range(len(self.labels)):
            if first in free:
                free -= set(units.members(first))
                for other in range(first + 1, len(self.labels)):
                    if other in free:
                        unit = units.members(other)
                        if self._all_match(partners, units.members(first), unit, compare) and units.join(first, other):
                            free -= set(unit)
                yield units.members(first)

    def _all_match(self, partners: Sequence[set[int]], ones: list[int], others: list[int], compare: Compare) -> bool:
        """Whether each pair matches; only if one pair is a known match, the others are compared."""
        pairs = [(one, other) for one in ones for other in others]
        unknown = [(one, other) for one, other in pairs if other not in partners[one]]
        if len(unknown) == len(pairs):
            return False
        if unknown:
            sides = np.array(unknown, np.intp)
            return bool(compare(self.classes[sides[:, 0]], self.classes[sides[:, 1]]).all())
        return True

    def _partners(self) -> list[set[int]]:
        return [set(one) for one in self._similarities()]

    def _similarities(self) -> list[dict[int, int]]:
        """The matches of each text, with their similarity."""
        near: list[dict[int, int]] = [{} for _ in self.labels]
        for one, other, value in self.matches:
            near[one][other] = near[other][one] = value
        return near


@dataclass
class _Unit:
    """Texts that are in one group, and the labels of those that have one."""

    members: list[int]
    labels: set[int]


class _Units:
    """Disjoint sets of texts; two sets are not joined if a text of one must be apart from a text of the other."""

    def __init__(self, labels: Sequence[int], apart: Mapping[int, frozenset[int]]) -> None:
        self._apart = apart
        self._unit_of = [_Unit([number], {label} - {-1}) for number, label in enumerate(labels)]

    def members(self, number: int) -> list[int]:
        """The texts of the set of a text."""
        return list(self._unit_of[number].members)

    def all(self) -> Iterator[list[int]]:
        """All sets."""
        for number in range(len(self._unit_of)):
            members = self.members(number)
            if min(members) == number:
                yield members

    def fit(self, one: int, other: int) -> bool:
        """Whether the sets of two texts may be joined."""
        first, second = self._unit_of[one], self._unit_of[other]
        return all(self._apart[label].isdisjoint(second.labels) for label in first.labels)

    def join(self, one: int, other: int) -> bool:
        """Join two sets, or return False if that is not allowed."""
        first, second = self._unit_of[one], self._unit_of[other]
        if first is second:
            return True
        if not self.fit(one, other):
            return False
        first.members += second.members
        first.labels |= second.labels
        for member in second.members:
            self._unit_of[member] = first
        return True
