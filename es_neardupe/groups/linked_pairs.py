"""Pairs of texts that are linked by matches, but are no candidates: complete linkage compares those that decide.

Complete linkage requires every pair of a group. A pair that was skipped in a large bucket, or that shares no key, would
split a group. So it is compared if both texts match all members of the group before. This is done for each *cluster* by
itself, a connected component of the matches: other texts cannot be in one group. If a cluster has too many such pairs,
none of them is compared, and all of them are open. So the groups of a cluster depend on nothing outside of it, and the
work grows linearly with the number of clusters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from es_neardupe.candidates.pair_arrays import ascends, blocks, components
from es_neardupe.candidates.who_may_meet import GroupRules
from es_neardupe.groups.linkage import complete
from es_neardupe.keys.arrays import Flags, Numbers, Positions
from es_neardupe.progress import Progress, silent
from es_neardupe.similarity.measure import Measure
from es_neardupe.verification.criterion import MatchCriterion
from es_neardupe.verification.current_texts import OneWithMany
from es_neardupe.verification.verify import Verified

PAIRS_AT_ONCE = 1_000_000
"""Maximum number of such pairs of a cluster, for each text of ``max_bucket``. By default 200 million, all pairs of
20,000 texts."""

PAIRS_SINGLY = 1000
"""The same for measures that do not compare one text with many at once, and take longer."""

WORDS = 50_000
"""Maximum number of words of the texts of a cluster, for each text of ``max_bucket``. By default 10 million, some 320
MB of memory."""

_STAGE = "comparing linked texts"


@dataclass(frozen=True)
class LinkedPairs:
    """Pairs of linked texts that are no candidates. Those that did not decide are counted nowhere."""

    compared: int = 0
    open: int = 0
    """Pairs of the clusters that have too many of them."""


@dataclass(frozen=True)
class Cluster:
    """Classes connected by matches. n classes, p candidate pairs."""

    classes: Positions
    """Shape (n,)."""
    left: NDArray[np.int32]
    """The candidate pairs within the cluster, by the places of the classes in it; shape (p,)."""
    right: NDArray[np.int32]
    matches: Flags
    """Shape (p,)."""

    @property
    def others(self) -> int:
        """The number of pairs that are no candidates."""
        return len(self.classes) * (len(self.classes) - 1) // 2 - len(self.left)


def link_clusters(
    verified: Verified,
    criterion: MatchCriterion,
    rules: GroupRules,
    *,
    matches: Flags,
    order: Numbers,
    principal: Numbers,
    progress: Progress = silent,
) -> LinkedPairs:
    """Link the clusters that have pairs without comparison, and compare those that decide. Changes ``principal`` in
    place.

    ``matches``: bool of the candidate pairs. ``order``: the classes in the order of principals.
    """
    clusters = list(incomplete_clusters(verified, matches))
    chosen = [one for one in clusters if _is_affordable(one, verified, criterion.measure, rules.max_bucket)]
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    total, compared = sum(one.others for one in chosen), 0
    for cluster in chosen:
        progress(_STAGE, compared, total)
        comparison = _Comparison(verified, criterion, rules, _ordered(cluster, rank))
        classes = comparison.cluster.classes
        principal[classes] = classes[comparison.principals()]
        compared += comparison.compared
    if chosen:
        progress(_STAGE, total, total)  # including those that did not decide
    return LinkedPairs(compared, sum(one.others for one in clusters) - total)


def incomplete_clusters(verified: Verified, matches: Flags) -> Iterator[Cluster]:
    """The clusters with a pair that is no candidate. ``matches``: bool of the candidate pairs."""
    candidates = verified.candidates
    component = components(len(verified.classes), candidates.left[matches], candidates.right[matches])
    sizes = np.bincount(component)
    missing = sizes * (sizes - 1) // 2
    for _, of in _within(component, verified):
        missing -= np.bincount(of, minlength=len(missing))
    incomplete = missing > 0
    parts = (pairs[incomplete[of]] for pairs, of in _within(component, verified))
    pairs = np.concatenate([np.zeros(0, np.intp), *parts])
    of = component[candidates.left[pairs]]
    pairs = pairs[np.argsort(of, kind="stable")]
    of.sort()
    classes = np.argsort(component, kind="stable")
    ends = np.cumsum(sizes)
    for number in np.flatnonzero(incomplete).tolist():
        members = classes[ends[number] - sizes[number] : ends[number]]
        own = pairs[slice(*np.searchsorted(of, (number, number + 1)))]
        sides = (side[own] for side in (candidates.left, candidates.right))
        left, right = (np.searchsorted(members, side).astype(np.int32) for side in sides)
        yield Cluster(members, left, right, matches[own])


def _within(component: Numbers, verified: Verified) -> Iterator[tuple[Positions, Positions]]:
    """The candidate pairs within components, and their components, in blocks."""
    candidates = verified.candidates
    for some in blocks(len(candidates)):
        of = component[candidates.left[some]]
        found = np.flatnonzero(of == component[candidates.right[some]])
        yield found + some.start, of[found]


def _is_affordable(cluster: Cluster, verified: Verified, measure: Measure, max_bucket: int) -> bool:
    pairs = PAIRS_AT_ONCE if measure.at_once else PAIRS_SINGLY
    words = int(verified.corpus.tokens[verified.classes.first[cluster.classes]].sum())
    return cluster.others <= pairs * max_bucket and words <= WORDS * max_bucket


def _ordered(cluster: Cluster, rank: Positions) -> Cluster:
    """The cluster with its classes in the order of principals, and its pairs in ascending order of ``left``."""
    order = np.argsort(rank[cluster.classes])
    if ascends(order) and ascends(cluster.left):  # as by default: a copy of all pairs would take much memory
        return cluster
    place = np.argsort(order)
    left, right = np.sort(place.astype(np.int32)[np.stack((cluster.left, cluster.right))], axis=0)
    pairs = np.lexsort((right, left))
    return Cluster(cluster.classes[order], left[pairs], right[pairs], cluster.matches[pairs])


class _Comparison:
    """Complete linkage of one cluster, with its texts in memory."""

    def __init__(self, verified: Verified, criterion: MatchCriterion, rules: GroupRules, cluster: Cluster) -> None:
        self.cluster = cluster
        self.compared = 0
        """Pairs that were compared in addition to the candidates."""
        self._matches = criterion.matches
        self._texts = OneWithMany(verified.verifier, cluster.classes)
        self._facts = None  # no facts decide
        if criterion.facts:
            self._facts = OneWithMany(verified.facts(criterion.facts).comparer(), cluster.classes)
        self._rules = rules
        self._corpus = verified.corpus
        self._rows = verified.classes.first[cluster.classes]
        self._marked = np.zeros(len(cluster.classes), np.bool_)
        self._bounds = np.searchsorted(cluster.left, np.arange(len(cluster.classes) + 1))

    def principals(self) -> Positions:
        """The place of the principal of each class."""
        left, right = self.cluster.left[self.cluster.matches], self.cluster.right[self.cluster.matches]
        return complete(len(self.cluster.classes), left, right, self._more)

    def _more(self, one: int, others: Positions) -> Flags:
        """Compare a class with those of the others that are no candidates with it, and that the rules allow."""
        known = self.cluster.right[self._bounds[one] : self._bounds[one + 1]]
        self._marked[known] = True
        chosen = ~self._marked[others]
        self._marked[known] = False
        if self._rules.restrict:
            chosen &= self._rules.allow(self._corpus, self._rows[others], self._rows[one])
        self.compared += int(chosen.sum())
        matches = np.zeros(len(others), np.bool_)
        matches[chosen] = self._matches(self._texts.similarities(one, others[chosen]))
        if self._facts is not None and matches.any():
            matches[matches] = self._facts.similarities(one, others[matches]) != 0
        return matches
