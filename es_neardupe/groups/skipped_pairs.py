"""Pairs that large buckets skipped although their texts are linked by matches: complete linkage compares them.

Complete linkage requires every pair of a group. A pair in a large bucket that was not compared would split a group, so
it is compared when a text matches all members of a group but for such pairs. This is done for each *cluster* by itself,
a connected component of the matches: other texts cannot be in one group. A cluster with too many skipped pairs is left
as it is, and all of them stay open. So the groups of a cluster depend on nothing outside of it, and the work grows
linearly with the number of clusters.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from es_neardupe.candidates.large_buckets import LargeBuckets
from es_neardupe.candidates.pair_arrays import blocks, components
from es_neardupe.candidates.who_may_meet import GroupRules
from es_neardupe.groups.linkage import complete
from es_neardupe.keys.arrays import Flags, Floats, Positions
from es_neardupe.progress import Progress, silent
from es_neardupe.similarity.measure import Measure
from es_neardupe.verification.criterion import MatchCriterion
from es_neardupe.verification.one_with_many import OneWithMany
from es_neardupe.verification.verify import Verified

__all__ = ["PAIRS_AT_ONCE", "PAIRS_SINGLY", "WORDS", "Cluster", "SkippedPairs", "incomplete_clusters", "link_skipped"]

PAIRS_AT_ONCE = 1_000_000
"""Maximum number of skipped pairs of a cluster that is compared, for each text of ``max_bucket``. By default 200
million, all pairs of 20,000 texts."""

PAIRS_SINGLY = 1000
"""The same for measures that compare one pair at a time."""

WORDS = 50_000
"""Maximum number of words of the texts of such a cluster, for each text of ``max_bucket``: by default 10 million, 320
MB of memory."""

_STAGE = "comparing skipped pairs"


@dataclass(frozen=True)
class SkippedPairs:
    """Skipped pairs of linked texts. The others were not needed, because another pair decided."""

    compared: int = 0
    open: int = 0
    """Pairs of the clusters that have too many of them."""


@dataclass(frozen=True)
class Cluster:
    """Classes connected by matches, some of whose pairs were skipped. n classes, p candidate pairs."""

    classes: Positions
    """Ascending; shape (n,)."""
    left: Positions
    """The candidate pairs within the cluster, by the places of the classes in it, ascending; shape (p,)."""
    right: Positions
    matches: Flags
    """Shape (p,)."""
    buckets: LargeBuckets
    """The large buckets of the classes."""
    skipped: int
    """Pairs that share a large bucket and are no candidates."""


def link_skipped(
    verified: Verified,
    criterion: MatchCriterion,
    rules: GroupRules,
    *,
    matches: Flags,
    order: Positions,
    principal: Positions,
    progress: Progress = silent,
) -> SkippedPairs:
    """Link the clusters with skipped pairs again, and compare those pairs that decide. Changes ``principal`` in place.

    ``matches``: bool of the candidate pairs. ``order``: the classes in the order of principals.
    """
    clusters = list(incomplete_clusters(verified, matches))
    chosen = [one for one in clusters if _affordable(one, verified, criterion.measure, rules.max_bucket)]
    rank = np.empty_like(order)
    rank[order] = np.arange(len(order))
    total, compared = sum(one.skipped for one in chosen), 0
    for cluster in chosen:
        progress(_STAGE, compared, total)
        ordered = _ordered(cluster, rank)
        comparison = _Comparison(verified, criterion, rules, ordered)
        principal[ordered.classes] = ordered.classes[comparison.principals()]
        compared += comparison.compared
    progress(_STAGE, total, total)  # those that were not needed, too
    return SkippedPairs(compared, sum(one.skipped for one in clusters) - total)


def incomplete_clusters(verified: Verified, matches: Flags) -> Iterator[Cluster]:
    """The clusters with skipped pairs. ``matches``: bool of the candidate pairs."""
    candidates, size = verified.candidates, len(verified.classes)
    if not candidates.in_buckets.buckets:
        return
    component = components(size, candidates.left[matches], candidates.right[matches])
    pairs = np.zeros(int(component.max()) + 1, np.int64)
    for _, within in _within(component, verified):
        pairs += np.bincount(within, minlength=len(pairs))
    sizes = np.bincount(component)
    incomplete = pairs < sizes * (sizes - 1) // 2
    places = np.concatenate([np.zeros(0, np.intp), *(some for some, _ in _within(component, verified, incomplete))])
    of = component[candidates.left[places]]
    places = places[np.argsort(of, kind="stable")]
    of.sort()
    classes = np.argsort(component, kind="stable")
    starts = np.cumsum(sizes) - sizes
    for number in np.flatnonzero(incomplete).tolist():
        members = classes[starts[number] : starts[number] + sizes[number]]
        own = places[slice(*np.searchsorted(of, (number, number + 1)))]
        left, right = (np.searchsorted(members, side[own]) for side in (candidates.left, candidates.right))
        buckets = candidates.in_buckets.of(members)
        if skipped := buckets.skipped(left, right):
            yield Cluster(members, left, right, matches[own], buckets, skipped)


def _within(
    component: Positions, verified: Verified, chosen: Flags | None = None
) -> Iterator[tuple[Positions, Positions]]:
    """The candidate pairs within (chosen) components, and their components, in blocks."""
    candidates = verified.candidates
    for some in blocks(len(candidates)):
        of = component[candidates.left[some]]
        same = of == component[candidates.right[some]]
        if chosen is not None:
            same &= chosen[of]
        found = np.flatnonzero(same)
        yield found + some.start, of[found]


def _affordable(cluster: Cluster, verified: Verified, measure: Measure, max_bucket: int) -> bool:
    pairs = PAIRS_AT_ONCE if measure.at_once else PAIRS_SINGLY
    words = int(verified.corpus.tokens[verified.classes.first[cluster.classes]].sum())
    return cluster.skipped <= pairs * max_bucket and words <= WORDS * max_bucket


def _ordered(cluster: Cluster, rank: Positions) -> Cluster:
    """The cluster with its classes in the order of principals."""
    order = np.argsort(rank[cluster.classes])
    if (order[1:] > order[:-1]).all():
        return cluster
    place = np.argsort(order)
    left, right = np.sort(place[np.stack((cluster.left, cluster.right))], axis=0)
    pairs = np.lexsort((right, left))
    return Cluster(
        cluster.classes[order],
        left[pairs],
        right[pairs],
        cluster.matches[pairs],
        cluster.buckets.of(order),
        cluster.skipped,
    )


class _Comparison:
    """Complete linkage of one cluster, with its texts in memory."""

    def __init__(self, verified: Verified, criterion: MatchCriterion, rules: GroupRules, cluster: Cluster) -> None:
        self.cluster = cluster
        self.compared = 0
        """Skipped pairs that were compared."""
        self._criterion = criterion
        self._texts = OneWithMany(verified.verifier, cluster.classes)
        self._days: Floats | None = None
        if rules.window is not None:
            self._days, self._limit = verified.corpus.days[verified.classes.first[cluster.classes]], rules.window.days
        self._bounds = np.searchsorted(cluster.left, np.arange(len(cluster.classes) + 1))

    def principals(self) -> Positions:
        """The place of the principal of each class."""
        cluster = self.cluster
        left, right = cluster.left[cluster.matches], cluster.right[cluster.matches]
        return complete(len(cluster.classes), left, right, self._more)

    def _more(self, one: int, others: Positions) -> Flags:
        """Compare a class with the others whose pair with it was skipped."""
        matches = np.zeros(len(others), np.bool_)
        skipped = self.cluster.buckets.sharing(one, others)
        if self._days is not None:
            skipped &= np.abs(self._days[others] - self._days[one]) <= self._limit
        known = self.cluster.right[self._bounds[one] : self._bounds[one + 1]]
        skipped &= ~np.isin(others, known, assume_unique=True)
        similarity = self._texts.similarities(one, others[skipped])
        self.compared += len(similarity)
        matches[skipped] = self._criterion.matches(similarity)
        return matches
