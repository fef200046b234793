"""A search whose hits are collapsed by groups that the user's index does not know: they are folded on our side.

With ``init --write-group`` it knows them, and collapses by itself; only what else we know of documents is added then.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from es_neardupe.commands.search.request import Wanted
from es_neardupe.errors import SettingsError
from es_neardupe.index import queries
from es_neardupe.index.queries import JSON
from es_neardupe.index.sidecar.complete_hits import entries, their_parts
from es_neardupe.index.sidecar.join_query import TooMany, ids_clause
from es_neardupe.index.stored_fields import stored_fields
from es_neardupe.records import Address
from es_neardupe.server.bulk import chunked
from es_neardupe.server.search import count
from es_neardupe.server.search import search as ask

__all__ = ["Folded", "fold", "server_collapsed"]

_STEP = 500


@dataclass(frozen=True)
class Folded:
    """A page of groups, each by its first hit, with all hits of it that are told; and what is counted of all hits."""

    documents: int
    groups: int
    without_group: int
    waiting: int
    hits: list[tuple[JSON, str, int, list[JSON]]]
    """The hit, its group, the number of other documents of the group that the query finds, and some of these."""
    apart: list[JSON]
    """The same page of hits without a group."""


def fold(asked: Wanted, *, start: int, size: int, expand: bool) -> Folded:
    """Collapse the hits of a query by the groups of our entries.

    Raises `SettingsError` where the page lies beyond the first `max_result_window` hits.
    """
    total = count(asked.index.plain, asked.index.path, asked.query)
    documents, groups, waiting = _totals(asked)
    first, apart = _first_hits(asked, start + size, total - documents)
    page = dict(list(first.items())[start : start + size])
    members = _members(asked, list(page), expand=expand)
    shown = _shown(asked, [*page.values(), *apart[start : start + size]])
    hits = []
    for group, hit in page.items():
        others = [one for one in members.get(group, []) if _address(one) != _address(hit)]
        hits.append((shown[_address(hit)], group, len(others), others if expand else []))
    return Folded(
        documents=documents,
        groups=groups,
        without_group=total - documents,
        waiting=waiting + total - documents,
        hits=hits,
        apart=[shown[_address(hit)] for hit in apart[start : start + size]],
    )


def _totals(asked: Wanted) -> tuple[int, int, int]:
    """Documents with a group that the query finds, (about) their groups, and those that wait for ``group``."""
    fields, path = asked.index.fields, asked.index.path
    grouped = queries.all_of(asked.query, {"exists": {"field": fields.group}})
    waiting = {"bool": {"must_not": [{"exists": {"field": fields.similarity}}]}}
    aggs = {"groups": {"cardinality": {"field": fields.group}}, "waiting": {"filter": waiting}}
    try:
        found = ask(asked.index.client, path, {"size": 0, "track_total_hits": True, "query": grouped, "aggs": aggs})
    except TooMany:
        return _totals_by_reading(asked, grouped)
    counted = found["aggregations"]
    return found["hits"]["total"]["value"], counted["groups"]["value"], counted["waiting"]["doc_count"]


def _totals_by_reading(asked: Wanted, grouped: JSON) -> tuple[int, int, int]:
    """The same where the documents are too many for one request."""
    fields, prefix = asked.index.fields, asked.index.settings.prefix
    documents, waiting, groups = 0, 0, set[str]()
    body = {"query": grouped, "_source": [fields.group, fields.similarity]}
    for page in asked.index.client.pages(asked.index.path, body, page_size=5000):
        for stored in (stored_fields(hit.source, prefix) for hit in page):
            documents += 1
            waiting += stored.get("similarity") is None
            groups.add(str(stored["group"]))
    return documents, len(groups), waiting


def _first_hits(asked: Wanted, wanted: int, without: int) -> tuple[dict[str, JSON], list[JSON]]:
    """The first hit of each group, and the hits without a group, up to so many of each; in the order of the search."""
    window = asked.index.target.max_result_window
    body = {"query": asked.query, "size": window, "_source": False, "track_total_hits": True, **_order(asked)}
    answer = ask(asked.index.plain, asked.index.path, body)["hits"]
    first: dict[str, JSON] = {}
    apart: list[JSON] = []
    for some in chunked(answer["hits"], _STEP):
        for hit, group in zip(some, _groups(asked, some), strict=True):
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
                f"search; or have group ids written with `init --sidecar --write-group`, so that the server collapses."
            )
    return first, apart


def _order(asked: Wanted) -> JSON:
    return {"sort": asked.body["sort"]} if "sort" in asked.body else {}


def _groups(asked: Wanted, hits: list[JSON]) -> Iterator[str | None]:
    for stored in _stored(asked, hits):
        group = stored.get("group")
        yield group if isinstance(group, str) else None


def _stored(asked: Wanted, hits: list[JSON]) -> Iterator[Mapping[str, Any]]:
    """Our fields of some hits."""
    fields, prefix = asked.index.fields, asked.index.settings.prefix
    names = [fields.group, fields.similarity, fields.principal]
    for found in entries(asked.index, [(hit["_index"], hit["_id"], hit.get("_routing")) for hit in hits], names):
        yield stored_fields(found.source if found else {}, prefix)


def _members(asked: Wanted, groups: list[str], *, expand: bool) -> dict[str, list[JSON]]:
    """All hits of the query in some groups, by group, in the order of the search."""
    name, window = asked.index.fields.group, asked.index.target.max_result_window
    group_of: dict[Address, str] = {}
    for page in asked.index.client.pages(asked.index.path, {"query": {"terms": {name: groups}}, "_source": [name]}):
        for hit in page:
            group_of[hit.address] = stored_fields(hit.source, asked.index.settings.prefix)["group"]
    found: dict[str, list[JSON]] = {}
    source = list(asked.shown) if expand else False
    for some in chunked(sorted(group_of), window):
        query = {"bool": {"must": [asked.query], "filter": [ids_clause(some)]}}
        body = {"query": query, "size": window, "_source": source, **_order(asked)}
        for hit in ask(asked.index.client, asked.index.path, body)["hits"]["hits"]:
            found.setdefault(group_of[_address(hit)], []).append(hit)
    for members in found.values() if expand else ():
        _add_stored(asked, members)
    return found


def _add_stored(asked: Wanted, hits: list[JSON]) -> None:
    for hit, stored in zip(hits, _stored(asked, hits), strict=True):
        hit["_source"] = {**hit.get("_source", {}), asked.index.settings.prefix: stored}


def _shown(asked: Wanted, hits: list[JSON]) -> dict[Address, JSON]:
    """The hits with the parts that are shown of each document."""
    found: dict[Address, JSON] = {}
    for some in chunked(hits, _STEP):
        references = [(hit["_index"], hit["_id"], hit.get("_routing")) for hit in some]
        for hit, parts in zip(some, their_parts(asked.index, references, list(asked.shown)), strict=True):
            found[_address(hit)] = {**hit, "_source": parts.source if parts else {}}
    return found


def _address(hit: Mapping[str, Any]) -> Address:
    return hit["_index"], hit["_id"]


def server_collapsed(asked: Wanted) -> JSON:
    """The answer of the server's own ``collapse``, with what our entries know added."""
    answer = ask(asked.index.plain, asked.index.path, asked.body)
    fields = asked.index.fields
    waiting = queries.all_of(
        asked.query,
        {"exists": {"field": fields.group}},
        {"bool": {"must_not": [{"exists": {"field": fields.similarity}}]}},
    )
    counted = answer["aggregations"]
    counted["waiting"] = {
        "doc_count": counted["without_group"]["doc_count"] + count(asked.index.client, asked.index.path, waiting)
    }
    for hit in answer["hits"]["hits"]:
        _add_stored(asked, hit["inner_hits"]["copies"]["hits"]["hits"])
    return answer
