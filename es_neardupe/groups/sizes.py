"""Sizes of groups, counted by the server."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from heapq import nsmallest
from typing import Any

from es_neardupe.index import queries
from es_neardupe.index.index import Index
from es_neardupe.index.stored_fields import group_of

_PAGE = 5000
"""Groups counted in one request."""


def group_sizes(index: Index) -> Iterator[tuple[str, int]]:
    """The stored groups of two or more documents, each with its size, counted in pages. A group whose principal was
    deleted has only its members."""
    after: Mapping[str, Any] | None = None
    while True:
        page = index.documents.search(queries.member_counts(index.fields, _PAGE, after))
        found = page["aggregations"]["groups"]
        members = {bucket["key"]["group"]: int(bucket["doc_count"]) for bucket in found["buckets"]}
        members = {group: number for group, number in members.items() if group_of({"group": group})}
        if members:
            answer = index.documents.search(queries.principal_counts(index.fields, list(members)))
            principals = {bucket["key"] for bucket in answer["aggregations"]["groups"]["buckets"]}
            sizes = ((group, number + (group in principals)) for group, number in members.items())
            yield from ((group, size) for group, size in sizes if size > 1)
        after = found.get("after_key")
        if after is None or len(found["buckets"]) < _PAGE:
            return


def largest_groups(index: Index, number: int) -> dict[str, int]:
    """The ids of so many of the largest groups, largest first, each with its size."""
    return dict(nsmallest(number, group_sizes(index), key=lambda one: (-one[1], one[0])))
