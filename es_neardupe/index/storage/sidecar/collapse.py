"""Search hits collapsed by the groups of a sidecar index.

With ``init --write-group``, documents have group ids: the server collapses, and the other fields are added from the
entries. Otherwise hits are collapsed in this process.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

from es_neardupe.errors import SettingsError
from es_neardupe.index import queries
from es_neardupe.index.handle import IndexHandle
from es_neardupe.index.queries import TooManyDocuments
from es_neardupe.index.storage import collapse
from es_neardupe.index.storage.collapse import MEMBERS, CollapsedHit, CollapsedPage, CollapsedSearch
from es_neardupe.index.storage.sidecar.entries import fetch_documents, fetch_entries, reference_of
from es_neardupe.index.storage.sidecar.queries import ids_clause
from es_neardupe.index.stored_fields import stored_fields
from es_neardupe.records import Address
from es_neardupe.server.bulk import chunked
from es_neardupe.server.client import JSON
from es_neardupe.wording import counted

_STEP = 500
"""Hits whose entries or documents are fetched at once."""


def collapse_here(index: IndexHandle, request: CollapsedSearch) -> CollapsedPage:
    """Collapse the hits of a query by the groups of their entries, in this process.

    Raises `SettingsError` if the page is beyond the first `max_result_window` hits.
    """
    total, end = index.plain_documents.count(request.query), request.start + request.size
    documents, groups, waiting = _totals(index, request)
    first, apart = _first_hits(index, request, end, total - documents)
    page, apart = dict(list(first.items())[request.start : end]), apart[request.start : end]
    members = _members(index, request, list(page))
    shown = _shown(index, request, [*page.values(), *apart])
    hits = []
    for group, hit in page.items():
        copies = [one for one in members.get(group, []) if _address(one) != _address(hit)]
        expanded = copies[:MEMBERS] if request.expand else ()
        hits.append(CollapsedHit(shown[_address(hit)], group, len(copies), expanded))
    return CollapsedPage(
        documents=documents,
        groups=groups,
        without_group=total - documents,
        without_similarity=waiting + total - documents,
        hits=hits,
        apart=[shown[_address(hit)] for hit in apart],
    )


def _totals(index: IndexHandle, request: CollapsedSearch) -> tuple[int, int, int]:
    """Documents of the query that have a group, the (approximate) number of groups, and documents that wait for
    ``group``."""
    fields = index.fields
    grouped = queries.all_of(request.query, {"exists": {"field": fields.group}})
    aggs = {
        "groups": {"cardinality": {"field": fields.group}},
        "without_similarity": {"filter": queries.without_similarity(fields)},
    }
    try:
        answer = index.documents.search({"size": 0, "track_total_hits": True, "query": grouped, "aggs": aggs})
    except TooManyDocuments:
        return _totals_by_reading(index, grouped)
    counted = answer["aggregations"]
    return answer["hits"]["total"]["value"], counted["groups"]["value"], counted["without_similarity"]["doc_count"]


def _totals_by_reading(index: IndexHandle, grouped: JSON) -> tuple[int, int, int]:
    """As `_totals`, if the documents are too many for one request."""
    fields, prefix = index.fields, index.settings.prefix
    documents, waiting, groups = 0, 0, set[str]()
    body = {"query": grouped, "_source": [fields.group, fields.similarity]}
    for page in index.documents.pages(body, page_size=5000):
        for stored in (stored_fields(hit.source, prefix) for hit in page):
            documents += 1
            waiting += stored.get("similarity") is None
            groups.add(str(stored["group"]))
    return documents, len(groups), waiting


def _first_hits(
    index: IndexHandle, request: CollapsedSearch, maximum: int, without_group: int
) -> tuple[dict[str, JSON], list[JSON]]:
    """The first hit of each group, and the hits without a group; at least ``maximum`` of each if there are as many, in
    the order of the search."""
    window = index.target.max_result_window
    body = {"query": request.query, "size": window, "_source": False, "track_total_hits": True, **_order(request)}
    answer = index.plain_documents.search(body)["hits"]
    first: dict[str, JSON] = {}
    apart: list[JSON] = []
    for chunk in chunked(answer["hits"], _STEP):
        for hit, group in zip(chunk, _groups(index, chunk), strict=True):
            if group is None:
                apart.append(hit)
            else:
                first.setdefault(group, hit)
        if len(first) >= maximum and len(apart) >= min(maximum, without_group):
            break
    else:
        if answer["total"]["value"] > window and len(first) < maximum:
            raise SettingsError(
                f"The first {window:,} hits are in {counted(len(first), 'group')}, and the page lies beyond them. "
                f"Narrow the search, or use `init --sidecar --write-group`, so that the server collapses."
            )
    return first, apart


def _order(request: CollapsedSearch) -> JSON:
    return {} if request.sort is None else {"sort": request.sort}


def _groups(index: IndexHandle, hits: list[JSON]) -> Iterator[str | None]:
    for stored in _stored(index, hits):
        group = stored.get("group")
        yield group if isinstance(group, str) else None


def _stored(index: IndexHandle, hits: Sequence[JSON]) -> Iterator[Mapping[str, Any]]:
    """Group, similarity and principal of hits, from their entries."""
    fields, prefix = index.fields, index.settings.prefix
    names = [fields.group, fields.similarity, fields.principal]
    for entry in fetch_entries(index, [reference_of(hit) for hit in hits], names):
        yield stored_fields(entry.source if entry else {}, prefix)


def _members(index: IndexHandle, request: CollapsedSearch, groups: list[str]) -> dict[str, list[JSON]]:
    """All hits of the query that are in the given groups, by group, in the order of the search."""
    name, window = index.fields.group, index.target.max_result_window
    group_of: dict[Address, str] = {}
    for page in index.documents.pages({"query": {"terms": {name: groups}}, "_source": [name]}):
        for hit in page:
            group_of[hit.address] = stored_fields(hit.source, index.settings.prefix)["group"]
    members: dict[str, list[JSON]] = {}
    for chunk in chunked(sorted(group_of), window):
        query = {"bool": {"must": [request.query], "filter": [ids_clause(chunk)]}}
        body = {"query": query, "size": window, "_source": False, **_order(request)}
        for hit in index.documents.search(body)["hits"]["hits"]:
            members.setdefault(group_of[_address(hit)], []).append(hit)
    for group, hits in members.items() if request.expand else ():
        shown = _shown(index, request, hits)
        members[group] = [shown[_address(hit)] for hit in hits]
        _add_stored(index, members[group])
    return members


def _add_stored(index: IndexHandle, hits: Sequence[JSON]) -> None:
    for hit, stored in zip(hits, _stored(index, hits), strict=True):
        hit["_source"] = {**hit.get("_source", {}), index.settings.prefix: stored}


def _shown(index: IndexHandle, request: CollapsedSearch, hits: list[JSON]) -> dict[Address, JSON]:
    """The hits with the fields to show."""
    shown: dict[Address, JSON] = {}
    for chunk in chunked(hits, _STEP):
        documents = fetch_documents(index, [reference_of(hit) for hit in chunk], list(request.shown))
        for hit, document in zip(chunk, documents, strict=True):
            shown[_address(hit)] = {**hit, "_source": document.source if document else {}}
    return shown


def _address(hit: Mapping[str, Any]) -> Address:
    return Address(hit["_index"], hit["_id"])


def collapsed_by_server(index: IndexHandle, request: CollapsedSearch, body: JSON) -> CollapsedPage:
    """The result of the server's ``collapse``, completed from the entries."""
    page = collapse.collapsed_by_server(index, index.plain_documents, request, body)
    waiting = queries.all_of(
        request.query, {"exists": {"field": index.fields.group}}, queries.without_similarity(index.fields)
    )
    for one in page.hits:
        _add_stored(index, one.members)
    return replace(page, without_similarity=page.without_group + index.documents.count(waiting))
