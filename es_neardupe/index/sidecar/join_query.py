"""Queries over fields of both indices, made into queries over ours alone.

The parts about the user's fields are answered by his index first, as ids that take their place. Where these parts match
very many documents, only those of them count that the other parts can match, so that the smaller side is read.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from itertools import chain
from typing import TYPE_CHECKING, Any

from es_neardupe.errors import SettingsError
from es_neardupe.index import queries
from es_neardupe.index.sidecar.names import sidecar_name
from es_neardupe.index.sidecar.split_query import MATCH_ALL, MATCH_NONE, Part, part_of, relaxed, with_clauses
from es_neardupe.index.target import IndexTarget
from es_neardupe.records import Address
from es_neardupe.server.bulk import chunked
from es_neardupe.server.client import Client, path

if TYPE_CHECKING:
    from es_neardupe.index.index import Index

__all__ = [
    "MOST_IDS",
    "Names",
    "TooMany",
    "addresses_of",
    "ids_clause",
    "joined",
    "joined_parts",
    "of_entries",
    "renamed",
]

JSON = dict[str, Any]

MOST_IDS = 50_000
"""Ids of one request: some 2 MB of JSON."""

_CHUNK = 10_000
_PAGE = 10_000


class Names:
    """How the user's indices and ours are called."""

    def __init__(self, target: IndexTarget) -> None:
        prefix = target.settings.prefix
        self.prefix = prefix
        self.ours = {index: sidecar_name(index, prefix) for index in target.indices}
        self.theirs = {name: index for index, name in self.ours.items()}
        self.path = ",".join(self.ours[index] for index in target.indices if index not in target.new)
        """Of those of ours that are there."""


def renamed(query: Any, names: Mapping[str, str]) -> Any:
    """The same query with other names of indices in its ``_index`` clauses."""
    if isinstance(query, list):
        return [renamed(one, names) for one in query]
    if not isinstance(query, Mapping):
        return query
    return {key: _names(value, names) if key == "_index" else renamed(value, names) for key, value in query.items()}


def _names(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        return [_names(one, names) for one in value]
    if isinstance(value, Mapping):
        return {key: _names(one, names) for key, one in value.items()}
    return names.get(value, value) if isinstance(value, str) else value


def ids_clause(addresses: Iterable[Address], names: Mapping[str, str] | None = None) -> JSON:
    """The documents of some addresses, be they in several indices; ``names`` are those that the indices have there."""
    by_index: dict[str, list[str]] = {}
    for index, id in addresses:
        by_index.setdefault((names or {}).get(index, index), []).append(id)
    clauses = [
        queries.all_of({"term": {"_index": index}}, {"ids": {"values": chunk}})
        for index, ids in by_index.items()
        for chunk in chunked(ids, _CHUNK)
    ]
    return {"bool": {"should": clauses, "minimum_should_match": 1}} if clauses else MATCH_NONE


def joined(index: Index, query: Mapping[str, Any]) -> JSON:
    """The query for our indices. Raises `SettingsError` where both sides match more than `MOST_IDS` documents."""
    names, prefix = Names(index.target), index.settings.prefix
    query = of_entries(query, index.target)
    rest = renamed(relaxed(query, prefix), names.ours)

    def answered(part: Mapping[str, Any], positive: bool) -> JSON:
        if part_of(part, prefix) is not Part.THEIRS:
            return dict(renamed(part, names.ours))
        return ids_clause(_fewest(index, names, part, rest), names.ours)

    return with_clauses(query, prefix, answered)


def joined_parts(index: Index, query: Mapping[str, Any]) -> Iterator[JSON]:
    """Queries for our indices that together match what the query matches, each document in one of them: for counting
    and reading, where any number of documents may match."""
    try:
        yield joined(index, query)
        return
    except TooMany:
        names, prefix = Names(index.target), index.settings.prefix
        scopes = _conjuncts(of_entries(query, index.target), prefix)
        if scopes is None:
            raise
    ours, theirs = scopes
    for some in chunked(addresses_of(index.plain, index.path, queries.all_of(*theirs)), MOST_IDS):
        yield queries.all_of(*(renamed(one, names.ours) for one in ours), ids_clause(some, names.ours))


def of_entries(query: Mapping[str, Any], target: IndexTarget) -> JSON:
    """The same query without the clause that leaves documents of some relations alone: these have no entry."""
    return _without(query, queries.of_relations(target.left_alone)) if target.left_alone else dict(query)


def _without(value: Any, clause: JSON) -> Any:
    if isinstance(value, list):
        return [_without(one, clause) for one in value]
    if not isinstance(value, Mapping):
        return value
    made = {key: _without(one, clause) for key, one in value.items()}
    if isinstance(made.get("must_not"), list):
        made["must_not"] = [one for one in made["must_not"] if one != clause]
    return made


class TooMany(SettingsError):
    """Both sides of a query match too many documents to be put into one request."""


def _fewest(index: Index, names: Names, part: Mapping[str, Any], rest: Mapping[str, Any]) -> list[Address]:
    """The user's documents that a part of a query matches, as far as the ``rest`` of it (for our indices) can."""
    found = _some(index.plain, index.path, part, min(index.target.max_result_window, _PAGE))
    if found is not None:
        return found
    few = list(_first(index.plain, names.path, rest))
    if few and len(few) <= MOST_IDS:
        among = ids_clause((names.theirs[concrete], id) for concrete, id in few)
        return list(addresses_of(index.plain, index.path, queries.all_of(part, among)))
    many = list(_first(index.plain, index.path, part)) if few else []
    if len(many) > MOST_IDS:
        raise TooMany(
            f"The query matches more than {MOST_IDS:,} documents, and so do the keys it is combined with, which are in "
            f"an index of their own: narrow the query."
        )
    return many


def _some(client: Client, name: str, query: Mapping[str, Any], most: int) -> list[Address] | None:
    """The addresses of all documents that match, by one search; None if they are more than it can tell."""
    body = {"size": most, "query": dict(query), "_source": False, "track_total_hits": True}
    found = client.request("POST", path(name, "_search"), body=body)["hits"]
    if found["total"]["value"] > most:
        return None
    return [(hit["_index"], hit["_id"]) for hit in found["hits"]]


def _first(client: Client, name: str, query: Mapping[str, Any]) -> Iterator[Address]:
    """The addresses of documents that match; no more than one over `MOST_IDS`."""
    for number, address in enumerate(addresses_of(client, name, query)):
        yield address
        if number == MOST_IDS:
            return


def addresses_of(client: Client, name: str, query: Mapping[str, Any]) -> Iterator[Address]:
    """The addresses of all documents that match."""
    pages = client.pages(name, {"query": dict(query), "_source": False}, page_size=_PAGE)
    return ((hit.index, hit.id) for hit in chain.from_iterable(pages))


def _conjuncts(query: Mapping[str, Any], prefix: str) -> tuple[list[JSON], list[JSON]] | None:
    """The clauses that all have to hold, ours and theirs; None where the query is no such list."""
    if part_of(query, prefix) is Part.THEIRS:
        return [MATCH_ALL], [dict(query)]
    if list(query) != ["bool"]:
        return None
    inner: Mapping[str, Any] = query["bool"]
    filters = inner.get("filter", [])
    clauses: list[JSON] = [filters] if isinstance(filters, dict) else list(filters)
    theirs = [one for one in clauses if part_of(one, prefix) is Part.THEIRS]
    ours = [one for one in clauses if part_of(one, prefix) is not Part.THEIRS]
    rest: JSON = {"bool": {**inner, "filter": [MATCH_ALL, *ours]}}
    if not theirs or part_of(rest, prefix) in (Part.BOTH, Part.THEIRS):
        return None
    return [rest], theirs
