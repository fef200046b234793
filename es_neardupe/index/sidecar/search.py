"""Search whose hits are collapsed by groups in a sidecar index: here, unless the documents have the group ids.

With ``init --write-group`` they have, and the server collapses; only our other fields are added then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from es_neardupe.errors import SettingsError
from es_neardupe.index import collapse, queries
from es_neardupe.index.collapse import MEMBERS, CollapsedHit, CollapsedPage, CollapsedSearch
from es_neardupe.index.queries import JSON
from es_neardupe.index.sidecar.entries import entries, their_parts
from es_neardupe.index.sidecar.queries import TooMany, ids_clause
from es_neardupe.index.stored_fields import stored_fields
from es_neardupe.records import Address
from es_neardupe.server.bulk import chunked
from es_neardupe.server.search import count
from es_neardupe.server.search import search as ask

if TYPE_CHECKING:
    from es_neardupe.index.index import Index

__all__ = ["collapsed_by_server", "folded"]

_STEP = 500


def folded(index: Index, asked: CollapsedSearch) -> CollapsedPage:
    """Collapse the hits of a query by the groups of our entries.

    Raises `SettingsError` where the page lies beyond the first `max_result_window` hits.
    """
    total, end = count(index.plain, index.path, asked.query), asked.start + asked.size
    documents, groups, waiting = _totals(index, asked)
    first, apart = _first_hits(index, asked, end, total - documents)
    page, apart = dict(list(first.items())[asked.start : end]), apart[asked.start : end]
    members = _members(index, asked, list(page))
    shown = _shown(index, asked, [*page.values(), *apart])
    hits = []
    for group, hit in page.items():
        others = [one for one in members.get(group, []) if _address(one) != _address(hit)]
        hits.append(CollapsedHit(shown[_address(hit)], group, len(others), others[:MEMBERS] if asked.expand else ()))
    return CollapsedPage(
        documents=documents,
        groups=groups,
        without_group=total - documents,
        waiting=waiting + total - documents,
        hits=hits,
        apart=[shown[_address(hit)] for hit in apart],
    )


def _totals(index: Index, asked: CollapsedSearch) -> tuple[int, int, int]:
    """Documents with a group that the query finds, (about) their groups, and those that wait for ``group``."""
    fields, path = index.fields, index.path
    grouped = queries.all_of(asked.query, {"exists": {"field": fields.group}})
    waiting = {"bool": {"must_not": [{"exists": {"field": fields.similarity}}]}}
    aggs = {"groups": {"cardinality": {"field": fields.group}}, "waiting": {"filter": waiting}}
    try:
        found = ask(index.client, path, {"size": 0, "track_total_hits": True, "query": grouped, "aggs": aggs})
    except TooMany:
        return _totals_by_reading(index, asked, grouped)
    counted = found["aggregations"]
    return found["hits"]["total"]["value"], counted["groups"]["value"], counted["waiting"]["doc_count"]


def _totals_by_reading(index: Index, asked: CollapsedSearch, grouped: JSON) -> tuple[int, int, int]:
    """The same where the documents are too many for one request."""
    fields, prefix = index.fields, index.settings.prefix
    documents, waiting, groups = 0, 0, set[str]()
    body = {"query": grouped, "_source": [fields.group, fields.similarity]}
    for page in index.client.pages(index.path, body, page_size=5000):
        for stored in (stored_fields(hit.source, prefix) for hit in page):
            documents += 1
            waiting += stored.get("similarity") is None
            groups.add(str(stored["group"]))
    return documents, len(groups), waiting


def _first_hits(index: Index, asked: CollapsedSearch, wanted: int, without: int) -> tuple[dict[str, JSON], list[JSON]]:
    """The first hit of each group, and the hits without a group, up to so many of each; in the order of the search."""
    window = index.target.max_result_window
    body = {"query": asked.query, "size": window, "_source": False, "track_total_hits": True, **_order(asked)}
    answer = ask(index.plain, index.path, body)["hits"]
    first: dict[str, JSON] = {}
    apart: list[JSON] = []
    for some in chunked(answer["hits"], _STEP):
        for hit, group in zip(some, _groups(index, some), strict=True):
            if group is None:
                apart.append(hit)
            else:
                first.setdefault(group, hit)
        if len(first) >= wanted and len(apart) >= min(wanted, without):
            break
    else:
        if answer["total"]["value"] > window and len(first) < wanted:
            raise SettingsError(
                f"The first {window:,} hits are in {len(first):,} groups, and the page lies beyond them. Narrow the "
                f"search, or use `init --sidecar --write-group`, so that the server collapses."
            )
    return first, apart


def _order(asked: CollapsedSearch) -> JSON:
    return {} if asked.sort is None else {"sort": asked.sort}


def _groups(index: Index, hits: list[JSON]) -> Iterator[str | None]:
    for stored in _stored(index, hits):
        group = stored.get("group")
        yield group if isinstance(group, str) else None


def _stored(index: Index, hits: Sequence[JSON]) -> Iterator[Mapping[str, Any]]:
    """Our fields of some hits."""
    fields, prefix = index.fields, index.settings.prefix
    names = [fields.group, fields.similarity, fields.principal]
    for found in entries(index, [(hit["_index"], hit["_id"], hit.get("_routing")) for hit in hits], names):
        yield stored_fields(found.source if found else {}, prefix)


def _members(index: Index, asked: CollapsedSearch, groups: list[str]) -> dict[str, list[JSON]]:
    """All hits of the query in some groups, by group, in the order of the search."""
    name, window = index.fields.group, index.target.max_result_window
    group_of: dict[Address, str] = {}
    for page in index.client.pages(index.path, {"query": {"terms": {name: groups}}, "_source": [name]}):
        for hit in page:
            group_of[hit.address] = stored_fields(hit.source, index.settings.prefix)["group"]
    found: dict[str, list[JSON]] = {}
    source = list(asked.shown) if asked.expand else False
    for some in chunked(sorted(group_of), window):
        query = {"bool": {"must": [asked.query], "filter": [ids_clause(some)]}}
        body = {"query": query, "size": window, "_source": source, **_order(asked)}
        for hit in ask(index.client, index.path, body)["hits"]["hits"]:
            found.setdefault(group_of[_address(hit)], []).append(hit)
    for members in found.values() if asked.expand else ():
        _add_stored(index, members)
    return found


def _add_stored(index: Index, hits: Sequence[JSON]) -> None:
    for hit, stored in zip(hits, _stored(index, hits), strict=True):
        hit["_source"] = {**hit.get("_source", {}), index.settings.prefix: stored}


def _shown(index: Index, asked: CollapsedSearch, hits: list[JSON]) -> dict[Address, JSON]:
    """The hits with the parts that are shown of each document."""
    found: dict[Address, JSON] = {}
    for some in chunked(hits, _STEP):
        references = [(hit["_index"], hit["_id"], hit.get("_routing")) for hit in some]
        for hit, parts in zip(some, their_parts(index, references, list(asked.shown)), strict=True):
            found[_address(hit)] = {**hit, "_source": parts.source if parts else {}}
    return found


def _address(hit: Mapping[str, Any]) -> Address:
    return Address(hit["_index"], hit["_id"])


def collapsed_by_server(index: Index, asked: CollapsedSearch, body: JSON) -> CollapsedPage:
    """The answer of the server's own ``collapse``, completed from our entries."""
    page = collapse.collapsed_by_server(index, index.plain, asked, body)
    ungrouped = {"bool": {"must_not": [{"exists": {"field": index.fields.similarity}}]}}
    waiting = queries.all_of(asked.query, {"exists": {"field": index.fields.group}}, ungrouped)
    for one in page.hits:
        _add_stored(index, one.members)
    return replace(page, waiting=page.without_group + count(index.client, index.path, waiting))
