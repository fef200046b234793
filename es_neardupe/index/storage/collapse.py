"""Searches collapsed by group: request and result, and collapsing on the server by the group ids in documents."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from es_neardupe.index import queries
from es_neardupe.index.handle import IndexHandle
from es_neardupe.server.client import JSON
from es_neardupe.server.documents import Documents
from es_neardupe.server.request_sizes import fits_at_once

MEMBERS = 99
"""Maximum number of near-copies per hit: with the hit itself 100, the default ``index.max_inner_result_window``."""


@dataclass(frozen=True)
class CollapsedSearch:
    """A search to collapse by group, and the fields to return."""

    query: JSON
    sort: Any
    """None sorts by score."""
    start: int
    size: int
    shown: tuple[str, ...]
    """Fields to return of each document."""
    expand: bool
    """Whether near-copies are returned with each hit."""


@dataclass(frozen=True)
class CollapsedHit:
    """The first hit of a group."""

    hit: JSON
    group: str
    near_copies: int
    """Number of other documents of the group that match the query."""
    members: Sequence[JSON]
    """Up to `MEMBERS` of these, with their `neardupe` fields."""


@dataclass(frozen=True)
class CollapsedPage:
    """A page of groups, and counts of all hits."""

    documents: int
    """Number of documents that match the query and have a group id."""
    groups: int
    without_group: int
    without_similarity: int
    """Number of documents without a similarity, including those without a group id."""
    hits: Sequence[CollapsedHit]
    apart: Sequence[JSON]
    """The same page of hits without a group id."""


def collapse_request(index: IndexHandle, request: CollapsedSearch, *, grouping: bool = True) -> JSON:
    """The body of the search. ``grouping``: documents have all `neardupe` fields, not only the group id."""
    fields, shown = index.fields, list(request.shown)
    body = queries.collapsed(
        fields,
        request.query,
        size=request.size,
        start=request.start,
        members=MEMBERS if request.expand else 0,
        source=[*shown, fields.similarity, fields.principal] if request.expand and grouping else shown,
        sort=request.sort,
    )
    if not grouping:
        del body["aggs"]["without_similarity"]
    return body


def collapsed_by_server(
    index: IndexHandle, documents: Documents, request: CollapsedSearch, body: JSON
) -> CollapsedPage:
    """The result of the server's ``collapse``. If documents have no `neardupe` field but the group id, all with an id
    count as grouped."""
    at_once = fits_at_once(documents.client, request.size * (1 + (MEMBERS if request.expand else 0)))
    body = body if at_once else _without_texts(index, body)
    answer = documents.search(body)
    counted = answer["aggregations"]
    without = counted["without_group"]["doc_count"]
    page = CollapsedPage(
        documents=answer["hits"]["total"]["value"],
        groups=counted["groups"]["value"],
        without_group=without,
        without_similarity=counted.get("without_similarity", counted["without_group"])["doc_count"],
        hits=[_collapsed_hit(index, documents, request, body, hit) for hit in answer["hits"]["hits"]],
        apart=_apart(index, documents, request, body) if without else (),
    )
    if not at_once:
        _add_texts(documents, request, page)
    return page


def _without_texts(index: IndexHandle, body: JSON) -> JSON:
    """The search with only the `neardupe` fields of each document."""
    source = [index.fields.similarity, index.fields.principal]
    collapse = {**body["collapse"], "inner_hits": {**body["collapse"]["inner_hits"], "_source": source}}
    return {**body, "_source": source, "collapse": collapse}


def _add_texts(documents: Documents, request: CollapsedSearch, page: CollapsedPage) -> None:
    """Read the fields to show, as many documents at a time as fit into memory. Deleted documents have none."""
    hits = [*page.apart, *(raw for one in page.hits for raw in (one.hit, *one.members))]
    references = [(hit["_index"], hit["_id"], hit.get("_routing")) for hit in hits]
    for hit, document in zip(hits, documents.fetch(references, list(request.shown)), strict=True):
        if document is not None:
            hit["_source"] = {**document.source, **hit.get("_source", {})}


def _collapsed_hit(
    index: IndexHandle, documents: Documents, request: CollapsedSearch, body: JSON, hit: JSON
) -> CollapsedHit:
    """A hit with its near-copies. If the server stopped counting them, they are counted by another request.

    The server searches inner hits with the default search pipeline of the index, even if the request has another one.
    Such a pipeline may drop hits, so then another request searches them.
    """
    (group,) = hit["fields"][index.fields.group]
    of_group = {"term": {index.fields.group: group}}
    copies = hit["inner_hits"]["copies"]["hits"]
    total, members = copies["total"]["value"], copies["hits"]
    if copies["total"]["relation"] != "eq":
        total = documents.count(queries.all_of(request.query, of_group))
    if request.expand and any(state.search_pipeline for state in index.target.states.values()):
        inner = {name: one for name, one in body["collapse"]["inner_hits"].items() if name != "name"}
        query = {"bool": {"must": [request.query], "filter": [of_group]}}
        members = documents.search({**inner, "query": query})["hits"]["hits"]
    others = [one for one in members if (one["_index"], one["_id"]) != (hit["_index"], hit["_id"])]
    return CollapsedHit(hit, group, max(total - 1, 0), others[:MEMBERS])


def _apart(index: IndexHandle, documents: Documents, request: CollapsedSearch, body: JSON) -> list[JSON]:
    plain = {name: part for name, part in body.items() if name in ("sort", "from", "size", "_source")}
    query = queries.without_group(index.fields, request.query)
    hits: list[JSON] = documents.search(plain | {"query": query})["hits"]["hits"]
    return hits
