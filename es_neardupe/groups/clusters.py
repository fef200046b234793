"""Clusters of several groups: texts connected by matches, of which some matching pairs are in different groups.

The registry has a record of each. It shows which groups are related. And if a document is deleted, nothing else shows
which others it has matched, so an incremental run forms all groups of its cluster again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from dataclasses import astuple, dataclass

import numpy as np

from es_neardupe.candidates.pair_arrays import blocks, components
from es_neardupe.keys.arrays import Floats, Numbers
from es_neardupe.records import Groupings


@dataclass(frozen=True, slots=True)
class SplitCluster:
    """A cluster of several groups. A document that is alone has a group id, too."""

    groups: tuple[str, ...]
    """The ids of its groups of two or more documents, ascending."""
    alone: tuple[str, ...]
    """The group ids of its documents that are alone, ascending."""
    split_pairs: int
    """Matching pairs of texts in different groups."""
    split_similarity: float | None
    """The highest similarity of such a pair; None if only decisions of reviewers connect the groups."""
    alone_matching: int
    """The documents that are alone, although they match another one."""
    alone_similarity: float | None
    """The highest similarity of one of them to another document."""

    @property
    def ids(self) -> tuple[str, ...]:
        """All group ids."""
        return self.groups + self.alone

    @property
    def id(self) -> str:
        """The id of its record."""
        return f"cluster-{min(self.ids)}"


@dataclass(frozen=True, slots=True)
class RelatedCounts:
    """Totals over the clusters of several groups."""

    alone: int = 0
    """Documents that match another document, but are alone."""
    alone_similarity: float | None = None
    """The highest similarity of one of them to another document."""
    pairs: int = 0
    """Matching pairs of distinct texts in different groups."""
    similarity: float | None = None
    """The highest similarity of such a pair."""

    def __add__(self, other: RelatedCounts) -> RelatedCounts:
        return RelatedCounts(
            self.alone + other.alone,
            _highest(self.alone_similarity, other.alone_similarity),
            self.pairs + other.pairs,
            _highest(self.similarity, other.similarity),
        )

    @classmethod
    def of(cls, clusters: Iterable[SplitCluster]) -> RelatedCounts:
        """Totals over these clusters."""
        total = cls()
        for one in clusters:
            total += cls(one.alone_matching, one.alone_similarity, one.split_pairs, one.split_similarity)
        return total


def _highest(*values: float | None) -> float | None:
    return max((one for one in values if one is not None), default=None)


@dataclass(frozen=True, slots=True)
class ClusterSum:
    """Number and checksum of records of clusters. A run stores those of all, so that the next one notices if others
    have changed or deleted some."""

    number: int = 0
    hashes: int = 0
    """The sum of the hashes of the records, modulo 2**48."""

    def __add__(self, other: ClusterSum) -> ClusterSum:
        return ClusterSum(self.number + other.number, (self.hashes + other.hashes) % _HASHES)

    def __sub__(self, other: ClusterSum) -> ClusterSum:
        return ClusterSum(self.number - other.number, (self.hashes - other.hashes) % _HASHES)

    @classmethod
    def of(cls, records: Mapping[str, SplitCluster | None]) -> ClusterSum:
        """That of some records (id -> record)."""
        return cls(len(records), sum(_hash(id, one) for id, one in records.items()) % _HASHES)


_HASHES = 2**48


def _hash(id: str, record: SplitCluster | None) -> int:
    return int(checksum([id, None if record is None else astuple(record)]), 16)


def checksum(value: object) -> str:
    """Twelve hexadecimal digits for anything that JSON can contain; the order of names does not matter."""
    return hashlib.blake2b(json.dumps(value, sort_keys=True).encode(), digest_size=6).hexdigest()


@dataclass(frozen=True)
class ClusterUpdate:
    """The records of clusters to write after a run, and the ids of those to delete."""

    written: tuple[SplitCluster, ...] = ()
    deleted: tuple[str, ...] = ()

    @classmethod
    def of(cls, before: Mapping[str, SplitCluster | None], after: Iterable[SplitCluster]) -> ClusterUpdate:
        """What changes the records ``before`` (id -> record) to those ``after``."""
        new = {one.id: one for one in after}
        written = tuple(one for id, one in new.items() if before.get(id) != one)
        return cls(written, tuple(sorted(before.keys() - new.keys())))

    def __bool__(self) -> bool:
        return bool(self.written or self.deleted)


NO_UPDATE = ClusterUpdate()


def split_clusters(left: Numbers, right: Numbers, similarity: Floats, groupings: Groupings) -> list[SplitCluster]:
    """The clusters of several groups, from pairs of rows in different groups. ``similarity``: NaN if a decision
    connects a pair, but no match."""
    sides = np.stack((groupings.group_of[left], groupings.group_of[right]))
    groups, places = np.unique(sides, return_inverse=True)
    places = places.reshape(sides.shape)
    if not len(groups):
        return []
    sizes = np.zeros(len(groupings.ids), np.int64)
    for some in blocks(len(groupings.group_of)):
        of = groupings.group_of[some]
        sizes += np.bincount(of[of >= 0], minlength=len(sizes))
    single = sizes[groups] == 1
    matching = ~np.isnan(similarity)
    highest = np.full(len(groups), -1.0)
    for side in places:
        np.maximum.at(highest, side[matching], similarity[matching])
    cluster = components(len(groups), *places)
    number = int(cluster.max()) + 1
    pairs = np.bincount(cluster[places[0]][matching], minlength=number).tolist()
    top = np.full(number, -1.0)
    np.maximum.at(top, cluster, highest)
    lonely = single & (highest >= 0)
    alone = np.bincount(cluster[lonely], minlength=number).tolist()
    alone_similarity = np.full(number, -1.0)
    np.maximum.at(alone_similarity, cluster[lonely], highest[lonely])
    members: list[tuple[list[str], list[str]]] = [([], []) for _ in range(number)]
    ids = groupings.ids[groups].tolist()
    for id, of, is_single in zip(ids, cluster.tolist(), single.tolist(), strict=True):
        members[of][is_single].append(id.decode())
    return [
        SplitCluster(
            tuple(sorted(some)),
            tuple(sorted(single_ones)),
            pairs[one],
            float(top[one]) if pairs[one] else None,
            alone[one],
            float(alone_similarity[one]) if alone[one] else None,
        )
        for one, (some, single_ones) in enumerate(members)
    ]
