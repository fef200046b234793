"""Clusters of several groups, from pairs of documents in different groups."""

from __future__ import annotations

import numpy as np

from es_neardupe.groups.clusters import RelatedCounts, SplitCluster, split_clusters
from es_neardupe.records import Groupings

NAN = float("nan")


def clusters(groups: str, pairs: dict[tuple[int, int], float]) -> list[SplitCluster]:
    """Those of rows whose groups are letters. ``pairs``: their similarity, NaN for a decision."""
    ids = sorted({*groups})
    group_of = np.array([ids.index(one) for one in groups], np.int32)
    principals = np.array([groups.index(one) for one in ids], np.intp)
    groupings = Groupings(group_of, np.ones(len(groups)), principals, np.array([one.encode() for one in ids], "S16"))
    left, right = np.array(list(pairs), np.intp).reshape(-1, 2).T
    return split_clusters(left, right, np.array(list(pairs.values())), groupings)


def test_matches_between_groups_and_of_documents_that_are_alone() -> None:
    found = clusters("aabbcd", {(0, 2): 0.7, (1, 3): 0.8, (2, 4): 0.9})
    assert found == [SplitCluster(("a", "b"), ("c",), 3, 0.9, 1, 0.9)]


def test_who_is_kept_alone_by_a_decision_only_matches_nothing() -> None:
    found = clusters("aabbc", {(0, 2): NAN, (2, 4): NAN})
    assert found == [SplitCluster(("a", "b"), ("c",), 0, None, 0, None)]


def test_each_cluster_has_its_own_numbers() -> None:
    found = clusters("aabbccdd", {(0, 2): 0.7, (4, 6): 0.6, (5, 7): NAN})
    assert [(one.groups, one.split_pairs, one.split_similarity) for one in found] == [
        (("a", "b"), 1, 0.7),
        (("c", "d"), 1, 0.6),
    ]
    assert RelatedCounts.of(found) == RelatedCounts(0, None, 2, 0.7)
    assert clusters("ab", {}) == []
