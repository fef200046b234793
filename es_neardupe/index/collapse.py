"""Search whose hits the server collapses by the group ids in the user's documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from es_neardupe.index import queries
from es_neardupe.index.queries import JSON
from es_neardupe.server.client import Client
from es_neardupe.server.search import count, search

if TYPE_CHECKING:
    from es_neardupe.index.index import Index

__all__ = ["MEMBERS", "CollapsedHit", "CollapsedPage", "CollapsedSearch", "collapse_request", "collapsed_by_server"]

MEMBERS = 99
"""With the hit itself 100, the most that servers return of a group (``index.max_inner_result_window``)."""


@dataclass(frozen=True)
class CollapsedSearch:
    """A search, and what is shown of its hits."""

    query: JSON
    sort: Any
    """None: by score."""
    start: int
    size: int
    shown: tuple[str, ...]
    """Fields of each document."""
    expand: bool
    """Whether near-copies are returned with each hit."""


@dataclass(frozen=True)
class CollapsedHit:
    """The first hit of a group."""

    hit: JSON
    group: str
    near_copies: int
    """Other documents of the group that the query finds."""
    members: Sequence[JSON]
    """Some of these, with our fields."""


@dataclass(frozen=True)
class CollapsedPage:
    """A page of groups, and what is counted of all hits."""

    documents: int
    """With a group id, that the query finds."""
    groups: int
    without_group: int
    waiting: int
    """For ``group``, those without a group id included."""
    hits: Sequence[CollapsedHit]
    apart: Sequence[JSON]
    """The same page of the hits without a group id."""


def collapse_request(index: Index, wanted: CollapsedSearch, *, grouping: bool = True) -> JSON:
    """The body of the search. ``grouping``: the documents have all of our fields, not only the group id."""
    fields, shown = index.fields, list(wanted.shown)
    body = queries.collapsed(
        fields,
        wanted.query,
        size=wanted.size,
        start=wanted.start,
        members=MEMBERS if wanted.expand else 0,
        source=[*shown, fields.similarity, fields.principal] if wanted.expand and grouping else shown,
        sort=wanted.sort,
    )
    if not grouping:
        del body["aggs"]["waiting"]
    return body


def collapsed_by_server(index: Index, client: Client, wanted: CollapsedSearch, body: JSON) -> CollapsedPage:
    """The answer of the server's ``collapse``. Without our other fields in the documents, all that have a group id
    count as grouped."""
    answer = search(client, index.path, body)
    counted = answer["aggregations"]
    without = counted["without_group"]["doc_count"]
    return CollapsedPage(
        documents=answer["hits"]["total"]["value"],
        groups=counted["groups"]["value"],
        without_group=without,
        waiting=counted.get("waiting", counted["without_group"])["doc_count"],
        hits=[_collapsed_hit(index, client, wanted, hit) for hit in answer["hits"]["hits"]],
        apart=_apart(index, client, wanted, body) if without else (),
    )


def _collapsed_hit(index: Index, client: Client, wanted: CollapsedSearch, hit: JSON) -> CollapsedHit:
    """A hit with its near-copies; where the server stopped counting them, they are counted."""
    (group,) = hit["fields"][index.fields.group]
    copies = hit["inner_hits"]["copies"]["hits"]
    total = copies["total"]["value"]
    if copies["total"]["relation"] != "eq":
        total = count(client, index.path, queries.all_of(wanted.query, {"term": {index.fields.group: group}}))
    others = [one for one in copies["hits"] if (one["_index"], one["_id"]) != (hit["_index"], hit["_id"])]
    return CollapsedHit(hit, group, max(total - 1, 0), others[:MEMBERS])


def _apart(index: Index, client: Client, wanted: CollapsedSearch, body: JSON) -> list[JSON]:
    plain = {name: part for name, part in body.items() if name in ("sort", "from", "size", "_source")}
    hits: list[JSON] = search(client, index.path, plain | {"query": queries.without_group(index.fields, wanted.query)})[
        "hits"
    ]["hits"]
    return hits
