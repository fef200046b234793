"""An ordinary search whose hits are collapsed by group."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from es_neardupe import options
from es_neardupe.commands.search.request import MEMBERS, Wanted, wanted
from es_neardupe.commands.search.sidecar import Folded, fold, server_collapsed
from es_neardupe.index import queries
from es_neardupe.index.document_text import text_of
from es_neardupe.index.index import Index
from es_neardupe.index.queries import JSON
from es_neardupe.index.stored_fields import decode_grouping, stored_fields
from es_neardupe.server.search import count
from es_neardupe.server.search import search as ask

__all__ = ["Copy", "Found", "SearchHit", "search"]


@dataclass(frozen=True)
class Copy:
    """Another document of a hit's group that the query finds too."""

    index: str
    id: str
    similarity: float | None
    """To the principal of the group; None for one that waits for ``group``."""
    principal: bool
    fields: Mapping[str, str]


@dataclass(frozen=True)
class SearchHit:
    """The first document of a group, in the order of the search; or one without a group id."""

    index: str
    id: str
    score: float | None
    """The server's; None where something else sorts."""
    group: str | None
    near_copies: int
    """Other documents of the group that the query finds. Exact."""
    fields: Mapping[str, str]
    """What is shown of the document: the texts of the named fields."""
    members: tuple[Copy, ...]
    """With ``expand``, up to 99 of the near-copies."""


@dataclass(frozen=True)
class Found:
    """A page of the answer."""

    index: str
    documents: int
    """With a group id, that the query finds."""
    groups: int
    """About so many groups they are in: the server's ``cardinality``, which is approximate."""
    without_group: int
    """Documents that the query finds, but that have no group id: they are in ``apart``, not in ``hits``."""
    waiting: int
    """Documents that the query finds and that ``group`` has not seen yet, those without a group id included."""
    start: int
    size: int
    hits: tuple[SearchHit, ...]
    apart: tuple[SearchHit, ...]
    """The same page of the documents without a group id."""


def search(
    index: Index,
    text: str | Mapping[str, Any],
    *,
    query: options.Query = None,
    size: options.Size = 10,
    start: options.Start = 0,
    fields: options.ShownFields = (),
    expand: options.Expand = False,
) -> Found:
    """What a query finds, one hit for each group, each with the number of its near-copies.

    ``text`` is a query string of Lucene's kind, or a query of the server's DSL, or a body with ``query`` and ``sort``.
    ``query`` filters. ``fields`` are shown of each document: by default its title, if there is one, and the first of
    the fields that have keys. Raises `SettingsError` for unknown fields, other parts of a body, and a page beyond the
    result window; `RequestError` for what the server rejects.
    """
    asked = wanted(index, text, scope=query, size=size, start=start, fields=fields, expand=expand)
    sidecar = asked.index.target.sidecar
    if sidecar is not None and not sidecar.write_group:
        return _folded(asked, fold(asked, start=start, size=size, expand=expand), start, size)
    answer = ask(asked.index.client, asked.index.path, asked.body) if sidecar is None else server_collapsed(asked)
    counted = answer["aggregations"]
    missing = counted["without_group"]["doc_count"]
    return Found(
        index=index.name,
        documents=answer["hits"]["total"]["value"],
        groups=counted["groups"]["value"],
        without_group=missing,
        waiting=counted["waiting"]["doc_count"],
        start=start,
        size=size,
        hits=tuple(_collapsed_hit(asked, hit) for hit in answer["hits"]["hits"]),
        apart=_apart(asked) if missing else (),
    )


def _folded(asked: Wanted, found: Folded, start: int, size: int) -> Found:
    """What was folded on our side, as the answer."""
    hits = []
    for hit, group, near_copies, members in found.hits:
        hits.append(_hit(asked, hit, group, near_copies, tuple(_copy(asked, one, group) for one in members[:MEMBERS])))
    return Found(
        index=asked.index.name,
        documents=found.documents,
        groups=found.groups,
        without_group=found.without_group,
        waiting=found.waiting,
        start=start,
        size=size,
        hits=tuple(hits),
        apart=tuple(_hit(asked, hit, None) for hit in found.apart),
    )


def _apart(asked: Wanted) -> tuple[SearchHit, ...]:
    """The same page of the documents without a group id."""
    plain = {name: part for name, part in asked.body.items() if name in ("sort", "from", "size", "_source")}
    body = plain | {"query": queries.without_group(asked.index.fields, asked.query)}
    hits = ask(asked.index.client, asked.index.path, body)["hits"]["hits"]
    return tuple(_hit(asked, hit, None) for hit in hits)


def _collapsed_hit(asked: Wanted, raw: JSON) -> SearchHit:
    """A hit with its near-copies; where the server stopped counting them, they are counted."""
    fields = asked.index.fields
    (group,) = raw["fields"][fields.group]
    copies = raw["inner_hits"]["copies"]["hits"]
    total = copies["total"]["value"]
    if copies["total"]["relation"] != "eq":
        total = count(
            asked.index.client, asked.index.path, queries.all_of(asked.query, {"term": {fields.group: group}})
        )
    others = [one for one in copies["hits"] if (one["_index"], one["_id"]) != (raw["_index"], raw["_id"])]
    return _hit(asked, raw, group, max(total - 1, 0), tuple(_copy(asked, one, group) for one in others[:MEMBERS]))


def _hit(
    asked: Wanted, raw: JSON, group: str | None, near_copies: int = 0, members: tuple[Copy, ...] = ()
) -> SearchHit:
    return SearchHit(raw["_index"], raw["_id"], raw.get("_score"), group, near_copies, _texts(asked, raw), members)


def _copy(asked: Wanted, raw: JSON, group: str) -> Copy:
    stored = stored_fields(raw.get("_source", {}), asked.index.settings.prefix)
    grouping = decode_grouping({**stored, "group": group})
    return Copy(
        raw["_index"],
        raw["_id"],
        None if grouping is None else grouping.similarity,
        grouping is not None and grouping.principal,
        _texts(asked, raw),
    )


def _texts(asked: Wanted, raw: JSON) -> dict[str, str]:
    return {name: text_of(raw.get("_source", {}), [name]) for name in asked.shown}
