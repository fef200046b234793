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
from es_neardupe.index.sidecar.join_query import TooMany, ids_clause
from es_neardupe.index.sidecar.joined_client import View
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


def fold(view: View, asked: Wanted, *, start: int, size: int, expand: bool) -> Folded:
    """Collapse the hits of a query by the groups of our entries.

    Raises `SettingsError` where the page lies beyond the first `max_result_window` hits.
    """
    total = count(view.plain, asked.target.path, asked.query)
    documents, groups, waiting = _totals(view, asked)
    first, apart = _first_hits(view, asked, start + size, total - documents)
    page = dict(list(first.items())[start : start + size])
    members = _members(view, asked, list(page), expand=expand)
    shown = _shown(view, asked, [*page.values(), *apart[start : start + size]])
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


def _totals(view: View, asked: Wanted) -> tuple[int, int, int]:
    """Documents with a group that the query finds, (about) their groups, and those that wait for ``group``."""
    fields, path = asked.target.fields, asked.target.path
    grouped = queries.all_of(asked.query, {"exists": {"field": fields.group}})
    waiting = {"bool": {"must_not": [{"exists": {"field": fields.similarity}}]}}
    aggs = {"groups": {"cardinality": {"field": fields.group}}, "waiting": {"filter": waiting}}
    try:
        found = ask(view, path, {"size": 0, "track_total_hits": True, "query": grouped, "aggs": aggs})
    except TooMany:
        return _totals_by_reading(view, asked, grouped)
    counted = found["aggregations"]
    return found["hits"]["total"]["value"], counted["groups"]["value"], counted["waiting"]["doc_count"]


def _totals_by_reading(view: View, asked: Wanted, grouped: JSON) -> tuple[int, int, int]:
    """The same where the documents are too many for one request."""
    fields, prefix = asked.target.fields, asked.target.settings.prefix
    documents, waiting, groups = 0, 0, set[str]()
    body = {"query": grouped, "_source": [fields.group, fields.similarity]}
    for page in view.pages(asked.target.path, body, page_size=5000):
        for stored in (stored_fields(hit.source, prefix) for hit in page):
            documents += 1
            waiting += stored.get("similarity") is None
            groups.add(str(stored["group"]))
    return documents, len(groups), waiting


def _first_hits(view: View, asked: Wanted, wanted: int, without: int) -> tuple[dict[str, JSON], list[JSON]]:
    """The first hit of each group, and the hits without a group, up to so many of each; in the order of the search."""
    window = asked.target.max_result_window
    body = {"query": asked.query, "size": window, "_source": False, "track_total_hits": True, **_order(asked)}
    answer = ask(view.plain, asked.target.path, body)["hits"]
    first: dict[str, JSON] = {}
    apart: list[JSON] = []
    for some in chunked(answer["hits"], _STEP):
        for hit, group in zip(some, _groups(view, asked, some), strict=True):
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


def _groups(view: View, asked: Wanted, hits: list[JSON]) -> Iterator[str | None]:
    for stored in _stored(view, asked, hits):
        group = stored.get("group")
        yield group if isinstance(group, str) else None


def _stored(view: View, asked: Wanted, hits: list[JSON]) -> Iterator[Mapping[str, Any]]:
    """Our fields of some hits."""
    fields, prefix = asked.target.fields, asked.target.settings.prefix
    names = [fields.group, fields.similarity, fields.principal]
    for found in view.entries([(hit["_index"], hit["_id"], hit.get("_routing")) for hit in hits], names):
        yield stored_fields(found.source if found else {}, prefix)


def _members(view: View, asked: Wanted, groups: list[str], *, expand: bool) -> dict[str, list[JSON]]:
    """All hits of the query in some groups, by group, in the order of the search."""
    name, window = asked.target.fields.group, asked.target.max_result_window
    group_of: dict[Address, str] = {}
    for page in view.pages(asked.target.path, {"query": {"terms": {name: groups}}, "_source": [name]}):
        for hit in page:
            group_of[hit.address] = stored_fields(hit.source, asked.target.settings.prefix)["group"]
    found: dict[str, list[JSON]] = {}
    source = list(asked.shown) if expand else False
    for some in chunked(sorted(group_of), window):
        query = {"bool": {"must": [asked.query], "filter": [ids_clause(some)]}}
        body = {"query": query, "size": window, "_source": source, **_order(asked)}
        for hit in ask(view, asked.target.path, body)["hits"]["hits"]:
            found.setdefault(group_of[_address(hit)], []).append(hit)
    for members in found.values() if expand else ():
        _add_stored(view, asked, members)
    return found


def _add_stored(view: View, asked: Wanted, hits: list[JSON]) -> None:
    for hit, stored in zip(hits, _stored(view, asked, hits), strict=True):
        hit["_source"] = {**hit.get("_source", {}), asked.target.settings.prefix: stored}


def _shown(view: View, asked: Wanted, hits: list[JSON]) -> dict[Address, JSON]:
    """The hits with the parts that are shown of each document."""
    found: dict[Address, JSON] = {}
    for some in chunked(hits, _STEP):
        references = [(hit["_index"], hit["_id"], hit.get("_routing")) for hit in some]
        for hit, parts in zip(some, view.their_parts(references, list(asked.shown)), strict=True):
            found[_address(hit)] = {**hit, "_source": parts.source if parts else {}}
    return found


def _address(hit: Mapping[str, Any]) -> Address:
    return hit["_index"], hit["_id"]


def server_collapsed(view: View, asked: Wanted) -> JSON:
    """The answer of the server's own ``collapse``, with what our entries know added."""
    answer = ask(view.plain, asked.target.path, asked.body)
    fields = asked.target.fields
    waiting = queries.all_of(
        asked.query,
        {"exists": {"field": fields.group}},
        {"bool": {"must_not": [{"exists": {"field": fields.similarity}}]}},
    )
    counted = answer["aggregations"]
    counted["waiting"] = {"doc_count": counted["without_group"]["doc_count"] + count(view, asked.target.path, waiting)}
    for hit in answer["hits"]["hits"]:
        _add_stored(view, asked, hit["inner_hits"]["copies"]["hits"]["hits"])
    return answer
