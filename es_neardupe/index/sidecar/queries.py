"""Queries over fields of both indices: which parts are about ours and which about the user's, and one query from both.

A query of ours is made of clauses of both kinds; the user's own scope is one clause of it, which is never interpreted:
only whether it names a field of ours. The parts about the user's fields are answered by the user's index first, as ids
that take their place. Where these parts match very many documents, only those of them count that the other parts can
match, so that the smaller side is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import chain
from typing import TYPE_CHECKING, Any

from es_neardupe.errors import SettingsError
from es_neardupe.index import queries
from es_neardupe.index.sidecar.indices import sidecar_name
from es_neardupe.index.target import IndexTarget
from es_neardupe.records import Address
from es_neardupe.server.bulk import chunked
from es_neardupe.server.client import Client, path

if TYPE_CHECKING:
    from es_neardupe.index.index import Index

__all__ = [
    "MATCH_ALL",
    "MAX_IDS",
    "QueryPart",
    "SidecarNames",
    "Source",
    "TooMany",
    "addresses_of",
    "asks_ours",
    "ids_clause",
    "joined",
    "joined_parts",
    "mentions",
    "of_entries",
    "part_of",
    "relaxed",
    "renamed",
    "split_source",
    "with_clauses",
    "without_entry",
]

JSON = dict[str, Any]
Source = bool | Sequence[str]

_CLAUSES = ("must", "filter", "should", "must_not")
_INNER = {"constant_score": "filter", "function_score": "query"}
_EVERYWHERE = {"match_all", "match_none", "ids"}
_LEAVES = {"term", "terms", "exists", "range", "prefix", "wildcard", "regexp", "match"}

MATCH_ALL: JSON = {"match_all": {}}
MATCH_NONE: JSON = {"match_none": {}}


class QueryPart(Enum):
    """Whose fields a query is about."""

    NEITHER = "neither"
    OURS = "ours"
    THEIRS = "theirs"
    BOTH = "both"


def split_source(source: Any, prefix: str) -> tuple[Source, Source]:
    """The ``_source`` of a request for our documents and for the user's; False where nothing is asked of one."""
    if source is None or isinstance(source, bool):
        return ([prefix] if source is not False else False), source is not False
    names = [source] if isinstance(source, str) else list(source)
    ours = [name for name in names if _is_ours(name, prefix)]
    theirs = [name for name in names if not _is_ours(name, prefix)]
    return ours or False, theirs or False


def _is_ours(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(f"{prefix}.")


def mentions(value: Any, prefix: str) -> bool:
    """Whether a field of ours is named anywhere in some JSON."""
    if isinstance(value, Mapping):
        return any(_named(name, inner, prefix) or mentions(inner, prefix) for name, inner in value.items())
    return isinstance(value, list | tuple) and any(mentions(inner, prefix) for inner in value)


def _named(name: str, inner: Any, prefix: str) -> bool:
    """Fields stand as keys, or as the value of ``field`` or ``fields``."""
    values = [inner] if isinstance(inner, str) else inner if isinstance(inner, list) else []
    fields = [one for one in values if isinstance(one, str)] if name in ("field", "fields") else []
    return any(_is_ours(one, prefix) for one in [name, *fields])


def asks_ours(body: Mapping[str, Any], prefix: str) -> bool:
    """Whether a search is answered by our documents: where its query or what it counts is about our fields."""
    query = body.get("query", MATCH_ALL)
    return part_of(query, prefix) in (QueryPart.OURS, QueryPart.BOTH) or mentions(body.get("aggs", {}), prefix)


def part_of(query: Mapping[str, Any], prefix: str) -> QueryPart:
    """Whose fields a query is about. Raises `SettingsError` for one that cannot be taken apart."""
    ((kind, inner),) = query.items()
    if kind in _EVERYWHERE or (kind in ("term", "terms") and set(inner) <= {"_index", "boost"}):
        return QueryPart.NEITHER
    if kind == "bool" or kind in _INNER:
        found = {part_of(clause, prefix) for _, clause in _children(query)} - {QueryPart.NEITHER}
        if len(found) > 1:
            return QueryPart.BOTH
        return found.pop() if found else QueryPart.NEITHER
    if not mentions(inner, prefix):
        return QueryPart.THEIRS
    if kind not in _LEAVES:
        raise SettingsError(
            f"A query of kind {kind} over fields of {prefix!r} is not supported with a sidecar index: "
            f"combine bool, term, terms, range and exists."
        )
    return QueryPart.OURS


def _children(query: Mapping[str, Any]) -> list[tuple[str, JSON]]:
    """The clauses of a compound query, each with its place."""
    ((kind, inner),) = query.items()
    if kind in _INNER:
        return [(_INNER[kind], inner.get(_INNER[kind], MATCH_ALL))]
    return [(name, clause) for name in _CLAUSES for clause in _listed(inner.get(name, []))]


def _listed(clauses: Any) -> list[JSON]:
    return [dict(clauses)] if isinstance(clauses, Mapping) else list(clauses)


def with_clauses(
    query: Mapping[str, Any], prefix: str, change: Callable[[Mapping[str, Any], bool], JSON], positive: bool = True
) -> JSON:
    """The query with each of its largest parts that are not of both kinds changed. ``change`` takes the part, and
    whether a document has to fulfil it (False: it must not)."""
    if part_of(query, prefix) is not QueryPart.BOTH:
        return change(query, positive)
    ((kind, inner),) = query.items()
    if kind in _INNER:
        name = _INNER[kind]
        return {kind: {**inner, name: with_clauses(inner[name], prefix, change, positive)}}
    made = {
        name: [
            with_clauses(one, prefix, change, positive is (name != "must_not")) for one in _listed(inner.get(name, []))
        ]
        for name in _CLAUSES
        if name in inner
    }
    return {kind: {**inner, **made}}


def relaxed(query: Mapping[str, Any], prefix: str) -> JSON:
    """A query over our fields alone that matches at least the documents which ``query`` matches."""

    def change(part: Mapping[str, Any], positive: bool) -> JSON:
        if part_of(part, prefix) is not QueryPart.THEIRS:
            return dict(part)
        return MATCH_ALL if positive else MATCH_NONE

    return with_clauses(query, prefix, change)


def without_entry(query: Mapping[str, Any], prefix: str) -> JSON | bool:
    """What a query asks of a document that has none of our fields: everything of it (True), nothing (False, it matches
    no such document), or a query over the user's fields."""
    ((kind, inner),) = query.items()
    part = part_of(query, prefix)
    if part is QueryPart.THEIRS or (part is QueryPart.NEITHER and kind != "bool"):
        return kind == "match_all" or (kind != "match_none" and dict(query))
    if kind in _INNER:
        return without_entry(inner[_INNER[kind]], prefix)
    if kind != "bool":
        return False
    asked = [(name, without_entry(clause, prefix)) for name, clause in _children(query)]
    musts = [found for name, found in asked if name in ("must", "filter")]
    nots = [found for name, found in asked if name == "must_not"]
    anything = _any_of([found for name, found in asked if name == "should"], _minimum(inner, bool(musts)))
    if False in [one for one in [*musts, anything] if isinstance(one, bool)] or any(one is True for one in nots):
        return False
    filters = [one for one in [*musts, anything] if not isinstance(one, bool)]
    refused = [one for one in nots if not isinstance(one, bool)]
    if not filters and not refused:
        return True
    return {"bool": {"filter": filters or [MATCH_ALL], "must_not": refused}}


def _minimum(inner: Mapping[str, Any], others: bool) -> int:
    """How many ``should`` clauses have to match, by the rule of servers where nothing is said."""
    if not _listed(inner.get("should", [])):
        return 0
    minimum = inner.get("minimum_should_match", 0 if others else 1)
    if not isinstance(minimum, int):
        raise SettingsError(f"minimum_should_match {minimum!r} is not supported with a sidecar index: use a number.")
    return minimum


def _any_of(found: Sequence[JSON | bool], minimum: int) -> JSON | bool:
    """At least so many of some clauses."""
    minimum -= sum(one is True for one in found)
    asked = [one for one in found if not isinstance(one, bool)]
    if minimum <= 0:
        return True
    return minimum <= len(asked) and {"bool": {"should": asked, "minimum_should_match": minimum}}


MAX_IDS = 50_000
"""Ids of one request: some 2 MB of JSON."""

_CHUNK = 10_000
_PAGE = 10_000


class SidecarNames:
    """Names of the user's indices and of their sidecar indices."""

    def __init__(self, target: IndexTarget) -> None:
        prefix = target.settings.prefix
        self.prefix = prefix
        self.ours = {index: sidecar_name(index, prefix) for index in target.indices}
        self.theirs = {name: index for index, name in self.ours.items()}
        self.there = tuple(self.ours[index] for index in target.indices if index not in target.new)
        """Those of ours that exist."""
        self.path = ",".join(self.there)


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
    """The query for our indices. Raises `SettingsError` where both sides match more than `MAX_IDS` documents."""
    names, prefix = SidecarNames(index.target), index.settings.prefix
    query = of_entries(query, index.target)
    rest = renamed(relaxed(query, prefix), names.ours)

    def answered(part: Mapping[str, Any], positive: bool) -> JSON:
        if part_of(part, prefix) is not QueryPart.THEIRS:
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
        names, prefix = SidecarNames(index.target), index.settings.prefix
        scopes = _conjuncts(of_entries(query, index.target), prefix)
        if scopes is None:
            raise
    ours, theirs = scopes
    for some in chunked(addresses_of(index.plain, index.path, queries.all_of(*theirs)), MAX_IDS):
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


def _fewest(index: Index, names: SidecarNames, part: Mapping[str, Any], rest: Mapping[str, Any]) -> list[Address]:
    """The user's documents that a part of a query matches, as far as the ``rest`` of it (for our indices) can."""
    found = _some(index.plain, index.path, part, min(index.target.max_result_window, _PAGE))
    if found is not None:
        return found
    few = list(_first(index.plain, names.path, rest))
    if few and len(few) <= MAX_IDS:
        among = ids_clause(Address(names.theirs[concrete], id) for concrete, id in few)
        return list(addresses_of(index.plain, index.path, queries.all_of(part, among)))
    many = list(_first(index.plain, index.path, part)) if few else []
    if len(many) > MAX_IDS:
        raise TooMany(
            f"The query matches more than {MAX_IDS:,} documents, and so do the keys it is combined with, which are in "
            f"a sidecar index: narrow the query."
        )
    return many


def _some(client: Client, name: str, query: Mapping[str, Any], maximum: int) -> list[Address] | None:
    """The addresses of all documents that match, by one search; None if they are more than it can tell."""
    body = {"size": maximum, "query": dict(query), "_source": False, "track_total_hits": True}
    found = client.request("POST", path(name, "_search"), body=body)["hits"]
    if found["total"]["value"] > maximum:
        return None
    return [Address(hit["_index"], hit["_id"]) for hit in found["hits"]]


def _first(client: Client, name: str, query: Mapping[str, Any]) -> Iterator[Address]:
    """The addresses of documents that match; no more than one over `MAX_IDS`."""
    for number, address in enumerate(addresses_of(client, name, query)):
        yield address
        if number == MAX_IDS:
            return


def addresses_of(client: Client, name: str, query: Mapping[str, Any]) -> Iterator[Address]:
    """The addresses of all documents that match."""
    pages = client.pages(name, {"query": dict(query), "_source": False}, page_size=_PAGE)
    return (hit.address for hit in chain.from_iterable(pages))


def _conjuncts(query: Mapping[str, Any], prefix: str) -> tuple[list[JSON], list[JSON]] | None:
    """The clauses that all have to hold, ours and theirs; None where the query is no such list."""
    if part_of(query, prefix) is QueryPart.THEIRS:
        return [MATCH_ALL], [dict(query)]
    if list(query) != ["bool"]:
        return None
    inner: Mapping[str, Any] = query["bool"]
    filters = inner.get("filter", [])
    clauses: list[JSON] = [filters] if isinstance(filters, dict) else list(filters)
    theirs = [one for one in clauses if part_of(one, prefix) is QueryPart.THEIRS]
    ours = [one for one in clauses if part_of(one, prefix) is not QueryPart.THEIRS]
    rest: JSON = {"bool": {**inner, "filter": [MATCH_ALL, *ours]}}
    if not theirs or part_of(rest, prefix) in (QueryPart.BOTH, QueryPart.THEIRS):
        return None
    return [rest], theirs
