"""Listing of groups in bounded requests: filtered, sorted pages of their records, and their numbers by size and by
similarity. All read the registry, so the numbers are those of the last run of ``group``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from es_neardupe.errors import Forbidden, SettingsError
from es_neardupe.groups.registry import GroupRecord, Registry
from es_neardupe.index.index import Index
from es_neardupe.index.permissions import check_sees_all
from es_neardupe.index.queries import MAX_TERMS
from es_neardupe.records import one_line
from es_neardupe.server.bulk import chunked
from es_neardupe.similarity.histogram import EDGES
from es_neardupe.wording import option

_SIZES = (2, 3, 4, 5, 10, 20, 50, 100, 1000)
"""First sizes of the bars of `group_overview`."""

_MAX_PAGE = 1000


class GroupOrder(str, Enum):
    """Order of groups. Groups that are equal are sorted by id."""

    LARGEST = "largest"
    MOST_TEXTS = "most-texts"
    LEAST_SIMILAR = "least-similar"
    NEWEST = "newest"
    REVIEW = "review"
    """Disputed ones, then open ones, then reviewed ones."""
    PRINCIPAL = "principal"
    """By the id of the principal."""


_ORDERS = {
    GroupOrder.LARGEST: {"size": "desc"},
    GroupOrder.MOST_TEXTS: {"texts": "desc"},
    GroupOrder.LEAST_SIMILAR: {"min_similarity": "asc"},
    GroupOrder.NEWEST: {"updated": "desc"},
    GroupOrder.REVIEW: {"_score": "desc"},
    GroupOrder.PRINCIPAL: {"principal.id": "asc"},
}


@dataclass(frozen=True)
class GroupFilter:
    """Which groups to list: those that satisfy all conditions."""

    min_size: int = 2
    max_size: int | None = None
    min_similarity: float | None = None
    """Minimum of the minimum similarity of a member to the principal."""
    below: float | None = None
    """The minimum similarity is lower than this."""
    ids: Sequence[str] | None = None
    """Only these groups."""
    without: Sequence[str] = ()
    """Not these groups."""
    min_texts: int | None = None
    """Minimum number of distinct texts."""

    def among(self, ids: Sequence[str]) -> GroupFilter:
        """Only these groups, of those that the filter allows."""
        return replace(self, ids=ids if self.ids is None else sorted(set(self.ids) & set(ids)))

    def clauses(self) -> list[dict[str, Any]]:
        """The conditions as queries of the registry."""
        sizes = {"gte": self.min_size} | ({} if self.max_size is None else {"lte": self.max_size})
        similarity = {"gte": self.min_similarity, "lt": self.below}
        given = {name: value for name, value in similarity.items() if value is not None}
        return [
            {"range": {"size": sizes}},
            *([{"range": {"min_similarity": given}}] if given else []),
            *([_any_of(self.ids)] if self.ids is not None else []),
            *([{"bool": {"must_not": [_any_of(self.without)]}}] if self.without else []),
            *([{"range": {"texts": {"gte": self.min_texts}}}] if self.min_texts is not None else []),
        ]


@dataclass(frozen=True)
class ReviewedIds:
    """Groups by the state of their review; open ones are all others with different texts."""

    disputed: Sequence[str] = ()
    reviewed: Sequence[str] = ()

    def scores(self) -> list[dict[str, Any]]:
        """Queries that give the groups scores for `GroupOrder.REVIEW`: 2, 1 for open ones, and 0."""
        known = _any_of([*self.disputed, *self.reviewed])
        unknown = {"bool": {"filter": GroupFilter(min_texts=2).clauses(), "must_not": [known]}}
        return [
            {"constant_score": {"filter": _any_of(self.disputed), "boost": 2}},
            {"constant_score": {"filter": unknown, "boost": 1}},
        ]


def _any_of(ids: Sequence[str]) -> dict[str, Any]:
    clauses = [{"terms": {"group": chunk}} for chunk in chunked(ids, MAX_TERMS)]
    return {"bool": {"should": clauses, "minimum_should_match": 1}} if clauses else {"match_none": {}}


@dataclass(frozen=True)
class GroupPage:
    """One page of groups."""

    total: int
    """Groups that satisfy the filter; exact."""
    groups: tuple[GroupRecord, ...]
    after: tuple[Any, ...] | None
    """Continues with the next page; None after the last one."""

    def __repr__(self) -> str:
        return one_line(self, total=self.total, groups=len(self.groups))


@dataclass(frozen=True)
class GroupCount:
    """Number of groups in a range: ``first`` is included, ``end`` is not; None: no end."""

    first: float
    end: float | None
    groups: int


@dataclass(frozen=True)
class GroupOverview:
    """Groups of two or more documents: ``groups`` is the sum of ``sizes`` and that of ``similarities``."""

    groups: int
    documents: int
    different: int
    """Groups with two distinct texts or more; the others are of exact copies."""
    sizes: tuple[GroupCount, ...]
    similarities: tuple[GroupCount, ...]
    """By the minimum similarity of a member to the principal. The last one holds exactly 1."""


def list_groups(
    index: Index,
    only: GroupFilter | None = None,
    *,
    order: GroupOrder = GroupOrder.LARGEST,
    after: Sequence[Any] | None = None,
    size: int = 50,
    reviewed: ReviewedIds | None = None,
) -> GroupPage:
    """A page of groups of an opened index. ``after``: that of the previous page; ``reviewed``: for the order by review.

    Sends one search, whatever the number of groups. Raises `SettingsError` for a wrong size, and `Forbidden` if the
    user may see only a part of the documents: the numbers count all of them.
    """
    if not 1 <= size <= _MAX_PAGE:
        raise SettingsError(f"{option('size')} must lie between 1 and {_MAX_PAGE:,}.")
    check_sees_all(index, "the list of groups")
    body: dict[str, Any] = {"size": size + 1, "track_total_hits": True, "sort": [_ORDERS[order], {"group": "asc"}]}
    if after is not None:
        body["search_after"] = list(after)
    scores = (reviewed or ReviewedIds()).scores() if order is GroupOrder.REVIEW else []
    answer = Registry(index).search((only or GroupFilter()).clauses(), body, scores)
    if answer is None:
        return GroupPage(0, (), None)
    hits = answer["hits"]["hits"]
    records = tuple(record for hit in hits[:size] if (record := GroupRecord.read(hit["_id"], hit["_source"])))
    last = tuple(hits[size - 1]["sort"]) if len(hits) > size else None
    return GroupPage(int(answer["hits"]["total"]["value"]), records, last)


@dataclass(frozen=True)
class QueuePlace:
    """Where a group stands among those with different texts, the largest first."""

    number: int
    """From 1."""
    total: int
    previous: str | None
    """The group before it."""


def queue_place(index: Index, group: str, size: int) -> QueuePlace | None:
    """The place of a group of so many documents in the queue of `list_groups`, with one search; None if the user may
    see only a part of the documents."""
    try:
        check_sees_all(index, "the list of groups")
    except Forbidden:
        return None
    smaller = {"bool": {"filter": [{"term": {"size": size}}, {"range": {"group": {"lt": group}}}]}}
    before = {"bool": {"should": [{"range": {"size": {"gt": size}}}, smaller], "minimum_should_match": 1}}
    nearest = {"size": 1, "sort": [{"size": "asc"}, {"group": "desc"}], "_source": ["group"]}
    counted = {"before": {"filter": before, "aggs": {"last": {"top_hits": nearest}}}}
    body = {"size": 0, "track_total_hits": True, "aggs": counted}
    answer = Registry(index).search(GroupFilter(min_texts=2).clauses(), body)
    if answer is None:
        return None
    found = answer["aggregations"]["before"]
    last = found["last"]["hits"]["hits"]
    total = int(answer["hits"]["total"]["value"])
    return QueuePlace(int(found["doc_count"]) + 1, total, str(last[0]["_id"]) if last else None)


def group_overview(index: Index) -> GroupOverview:
    """Count the groups of an opened index by size and by minimum similarity, with one search. Raises `Forbidden` as
    `list_groups` does."""
    check_sees_all(index, "the number of groups")
    edges = [float(edge) for edge in EDGES]
    aggregations = {
        "documents": {"sum": {"field": "size"}},
        "different": {"filter": {"range": {"texts": {"gte": 2}}}},
        "sizes": {"range": {"field": "size", "ranges": _ranges([float(one) for one in _SIZES])}},
        "similarities": {"range": {"field": "min_similarity", "ranges": _ranges(edges)}},
    }
    body = {"size": 0, "track_total_hits": True, "aggs": aggregations}
    answer = Registry(index).search(GroupFilter().clauses(), body)
    if answer is None:
        return GroupOverview(0, 0, 0, (), ())
    found = answer["aggregations"]
    similarities = _counts(found["similarities"])
    first = next((place for place, one in enumerate(similarities) if one.groups), 0)
    return GroupOverview(
        groups=int(answer["hits"]["total"]["value"]),
        documents=int(found["documents"]["value"] or 0),
        different=int(found["different"]["doc_count"]),
        sizes=_counts(found["sizes"]),
        similarities=similarities[first:],
    )


def _ranges(edges: Sequence[float]) -> list[dict[str, float]]:
    ends = [*edges[1:], None]
    return [{"from": first} | ({} if end is None else {"to": end}) for first, end in zip(edges, ends, strict=True)]


def _counts(aggregation: Mapping[str, Any]) -> tuple[GroupCount, ...]:
    return tuple(GroupCount(one["from"], one.get("to"), int(one["doc_count"])) for one in aggregation["buckets"])
