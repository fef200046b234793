"""An ordinary search whose hits are collapsed by group."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from es_neardupe import documents, queries, schema
from es_neardupe.clients import Client
from es_neardupe.errors import SettingsError
from es_neardupe.indices import Target, count, mappings_of, open_target
from es_neardupe.indices import search as ask
from es_neardupe.queries import JSON
from es_neardupe.settings import DEFAULT_PREFIX

__all__ = ["Copy", "Found", "SearchHit", "search", "search_request"]

_MEMBERS = 99
"""With the hit itself 100, the most that servers tell of a group (``index.max_inner_result_window``)."""

_TITLES = ("title", "headline", "subject", "name")
"""Fields by which people recognise a document."""


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


@dataclass(frozen=True)
class _Wanted:
    target: Target
    query: JSON
    body: JSON
    """What is sent for the hits."""
    shown: tuple[str, ...]


def search(
    client: Client,
    index: str,
    text: str | Mapping[str, Any],
    *,
    query: Mapping[str, Any] | None = None,
    size: int = 10,
    start: int = 0,
    fields: Sequence[str] = (),
    expand: bool = False,
    prefix: str = DEFAULT_PREFIX,
) -> Found:
    """What a query finds, one hit for each group, each with the number of its near-copies.

    ``text`` is a query string of Lucene's kind, or a query of the server's DSL, or a body with ``query`` and ``sort``.
    ``query`` filters. ``fields`` are shown of each document: by default its title, if there is one, and the first of
    the fields that have keys. Raises `SettingsError` for unknown fields, other parts of a body, and a page beyond the
    result window; `RequestError` for what the server rejects.
    """
    wanted = _wanted(
        client, index, text, scope=query, size=size, start=start, fields=fields, expand=expand, prefix=prefix
    )
    target = wanted.target
    answer = ask(client, target.path, wanted.body)
    counted = answer["aggregations"]
    missing = counted["without_group"]["doc_count"]
    return Found(
        index=index,
        documents=answer["hits"]["total"]["value"],
        groups=counted["groups"]["value"],
        without_group=missing,
        waiting=counted["waiting"]["doc_count"],
        start=start,
        size=size,
        hits=tuple(_collapsed_hit(client, wanted, hit) for hit in answer["hits"]["hits"]),
        apart=_apart(client, wanted) if missing else (),
    )


def _apart(client: Client, wanted: _Wanted) -> tuple[SearchHit, ...]:
    """The same page of the documents without a group id."""
    plain = {name: part for name, part in wanted.body.items() if name in ("sort", "from", "size", "_source")}
    body = plain | {"query": queries.without_group(wanted.target.fields, wanted.query)}
    hits = ask(client, wanted.target.path, body)["hits"]["hits"]
    return tuple(_hit(wanted, hit, None) for hit in hits)


def search_request(
    client: Client,
    index: str,
    text: str | Mapping[str, Any],
    *,
    query: Mapping[str, Any] | None = None,
    size: int = 10,
    start: int = 0,
    fields: Sequence[str] = (),
    expand: bool = False,
    prefix: str = DEFAULT_PREFIX,
) -> JSON:
    """The body that `search` sends to ``/INDEX/_search`` for its hits. Raises as that does."""
    wanted = _wanted(
        client, index, text, scope=query, size=size, start=start, fields=fields, expand=expand, prefix=prefix
    )
    return wanted.body


def _wanted(
    client: Client,
    index: str,
    text: str | Mapping[str, Any],
    *,
    scope: Mapping[str, Any] | None,
    size: int,
    start: int,
    fields: Sequence[str],
    expand: bool,
    prefix: str,
) -> _Wanted:
    """The options checked and put together."""
    if size < 1 or start < 0:
        raise SettingsError("--size must be 1 or more, --from 0 or more.")
    target = open_target(client, index, prefix)
    if start + size > target.max_result_window:
        raise SettingsError(
            f"--from {start} and --size {size} reach beyond the result window of {target.max_result_window:,} "
            f"(index.max_result_window): narrow the search by more words or by --query."
        )
    types: dict[str, str] = {}
    for mapping in mappings_of(client, target.path).values():
        types |= schema.field_types(mapping.get("properties", {}))
    types = {name: kind for name, kind in types.items() if not name.startswith(f"{prefix}.")}
    found, sort = _parsed(text, types)
    whole = {"bool": {"must": [found], "filter": [dict(scope)]}} if scope else found
    shown = _shown(target, types, fields)
    body = queries.collapsed(
        target.fields,
        whole,
        size=size,
        start=start,
        members=_MEMBERS if expand else 0,
        source=[*shown, target.fields.similarity, target.fields.principal] if expand else shown,
        sort=sort,
    )
    return _Wanted(target, whole, body, shown)


def _parsed(given: str | Mapping[str, Any], types: Mapping[str, str]) -> tuple[JSON, Any]:
    """A query and its order (None: by score). Raises `SettingsError`.

    The words of a query string are looked for in all texts of the user's. (By default servers look into every field:
    also into our ``state``, so that the word "signed" would find all documents.)
    """
    if isinstance(given, str):
        if not given.strip():
            raise SettingsError("The query is empty. `*` finds every document.")
        texts = sorted(name for name, kind in types.items() if kind in schema.TEXT_TYPES)
        return {"query_string": {"query": given, "fields": texts}}, None
    if "query" not in given:
        body: Mapping[str, Any] = {"query": given}
    else:
        body = given
    if others := sorted(set(body) - {"query", "sort"}):
        raise SettingsError(
            f"A body may hold query and sort, not {', '.join(others)}: the rest is ours. `--show-request` prints the "
            f"whole, to be changed as you like."
        )
    if not isinstance(body["query"], Mapping) or not body["query"]:
        raise SettingsError('The query must be an object such as {"match": {"body": "bridge"}}.')
    return dict(body["query"]), body.get("sort")


def _shown(target: Target, types: Mapping[str, str], fields: Sequence[str]) -> tuple[str, ...]:
    """The fields to show. Raises `SettingsError` for one that is not there."""
    there = sorted(name for name, kind in types.items() if kind != "multi-field")
    for name in fields:
        if name not in there:
            raise SettingsError(f"Index {target.name} has no field {name!r} to show. Fields: {', '.join(there)}.")
    title = next((name for name in _TITLES if name in there), None)
    chosen = fields or [name for name in (title, target.settings.fields[0]) if name is not None]
    return tuple(dict.fromkeys(chosen))


def _collapsed_hit(client: Client, wanted: _Wanted, raw: JSON) -> SearchHit:
    """A hit with its near-copies; where the server stopped counting them, they are counted."""
    fields = wanted.target.fields
    (group,) = raw["fields"][fields.group]
    copies = raw["inner_hits"]["copies"]["hits"]
    total = copies["total"]["value"]
    if copies["total"]["relation"] != "eq":
        total = count(client, wanted.target.path, queries.all_of(wanted.query, {"term": {fields.group: group}}))
    others = [one for one in copies["hits"] if (one["_index"], one["_id"]) != (raw["_index"], raw["_id"])]
    return _hit(wanted, raw, group, max(total - 1, 0), tuple(_copy(wanted, one) for one in others[:_MEMBERS]))


def _hit(
    wanted: _Wanted, raw: JSON, group: str | None, near_copies: int = 0, members: tuple[Copy, ...] = ()
) -> SearchHit:
    return SearchHit(raw["_index"], raw["_id"], raw.get("_score"), group, near_copies, _texts(wanted, raw), members)


def _copy(wanted: _Wanted, raw: JSON) -> Copy:
    stored = documents.stored_fields(raw.get("_source", {}), wanted.target.settings.prefix)
    grouping = documents.decode_grouping({"group": "", **stored})
    return Copy(
        raw["_index"],
        raw["_id"],
        None if grouping is None else grouping.similarity,
        grouping is not None and grouping.principal,
        _texts(wanted, raw),
    )


def _texts(wanted: _Wanted, raw: JSON) -> dict[str, str]:
    return {name: documents.text_of(raw.get("_source", {}), [name]) for name in wanted.shown}
