"""Queries that combine fields of documents with `neardupe` fields, which are in the entries of a sidecar index.

A query is split into its largest parts that concern fields of one kind. The query that a user gives as scope is one
clause of it; of this, only the names of fields are examined. Parts about document fields are answered first, by the
index: the ids that match take the place of the part. If they are very many, the search is limited to documents that the
other parts can match, so that the smaller side is read.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from enum import Enum
from itertools import chain
from typing import Any

from es_neardupe.errors import SettingsError
from es_neardupe.index import queries
from es_neardupe.index.handle import IndexHandle
from es_neardupe.index.queries import TooManyDocuments
from es_neardupe.index.storage.sidecar.indices import SidecarNames
from es_neardupe.index.target import IndexTarget
from es_neardupe.records import Address
from es_neardupe.server.bulk import chunked
from es_neardupe.server.client import JSON
from es_neardupe.server.documents import Documents

Source = bool | Sequence[str]
"""The ``_source`` of a request: names of fields, all (True) or none (False)."""

_CLAUSES = ("must", "filter", "should", "must_not")
_INNER = {"constant_score": "filter", "function_score": "query"}
_EVERYWHERE = {"match_all", "match_none", "ids"}
_LEAVES = {"term", "terms", "exists", "range", "prefix", "wildcard", "regexp", "match"}

MATCH_ALL: JSON = {"match_all": {}}
MATCH_NONE: JSON = {"match_none": {}}

MAX_IDS = 50_000
"""Maximum number of ids in one request: about 2 MB of JSON."""

_CHUNK = 10_000
_PAGE = 10_000


class FieldLocation(Enum):
    """Where the fields of a query are."""

    NONE = "none"
    """It has no fields, such as ``match_all`` and ``ids``: the query means the same in both indices."""
    ENTRIES = "entries"
    """In entries of the sidecar index: `neardupe` fields."""
    DOCUMENTS = "documents"
    BOTH = "both"


def split_source(source: Any, prefix: str) -> tuple[Source, Source]:
    """The ``_source`` of a request, split into that for entries and that for documents."""
    if source is None or isinstance(source, bool):
        return ([prefix] if source is not False else False), source is not False
    names = [source] if isinstance(source, str) else list(source)
    of_entries = [name for name in names if _is_under(name, prefix)]
    of_documents = [name for name in names if not _is_under(name, prefix)]
    return of_entries or False, of_documents or False


def _is_under(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(f"{prefix}.")


def mentions(value: Any, prefix: str) -> bool:
    """Whether a field under the prefix is named anywhere in a JSON value."""
    if isinstance(value, Mapping):
        return any(_named(name, inner, prefix) or mentions(inner, prefix) for name, inner in value.items())
    return isinstance(value, list | tuple) and any(mentions(inner, prefix) for inner in value)


def _named(name: str, inner: Any, prefix: str) -> bool:
    """Fields are named by a key, or by the value of ``field`` or ``fields``."""
    values = [inner] if isinstance(inner, str) else inner if isinstance(inner, list) else []
    fields = [one for one in values if isinstance(one, str)] if name in ("field", "fields") else []
    return any(_is_under(one, prefix) for one in [name, *fields])


def uses_entries(body: Mapping[str, Any], prefix: str) -> bool:
    """Whether the query or the aggregations of a search use `neardupe` fields, so that the sidecar index answers it."""
    query = body.get("query", MATCH_ALL)
    in_query = location_of(query, prefix) in (FieldLocation.ENTRIES, FieldLocation.BOTH)
    return in_query or mentions(body.get("aggs", {}), prefix)


def location_of(query: Mapping[str, Any], prefix: str) -> FieldLocation:
    """Where the fields of a query are. Raises `SettingsError` for a query that cannot be split."""
    ((kind, inner),) = query.items()
    if kind in _EVERYWHERE or (kind in ("term", "terms") and set(inner) <= {"_index", "boost"}):
        return FieldLocation.NONE
    if kind == "bool" or kind in _INNER:
        locations = {location_of(clause, prefix) for _, clause in _children(query)} - {FieldLocation.NONE}
        if len(locations) > 1:
            return FieldLocation.BOTH
        return locations.pop() if locations else FieldLocation.NONE
    if not mentions(inner, prefix):
        return FieldLocation.DOCUMENTS
    if kind not in _LEAVES:
        raise SettingsError(
            f"A query of kind {kind} over fields of {prefix!r} is not supported with a sidecar index: "
            f"combine bool, term, terms, range and exists."
        )
    return FieldLocation.ENTRIES


def _children(query: Mapping[str, Any]) -> list[tuple[str, JSON]]:
    """The clauses of a compound query, each with the name of its list."""
    ((kind, inner),) = query.items()
    if kind in _INNER:
        return [(_INNER[kind], inner.get(_INNER[kind], MATCH_ALL))]
    return [(name, clause) for name in _CLAUSES for clause in _listed(inner.get(name, []))]


def _listed(clauses: Any) -> list[JSON]:
    return [dict(clauses)] if isinstance(clauses, Mapping) else list(clauses)


def change_parts(
    query: Mapping[str, Any], prefix: str, change: Callable[[Mapping[str, Any], bool], JSON], positive: bool = True
) -> JSON:
    """The query with ``change`` applied to each of its largest parts whose fields are not in `FieldLocation.BOTH`.

    ``change`` takes the part, and whether documents must match it (True) or must not (False).
    """
    if location_of(query, prefix) is not FieldLocation.BOTH:
        return change(query, positive)
    ((kind, inner),) = query.items()
    if kind in _INNER:
        name = _INNER[kind]
        return {kind: {**inner, name: change_parts(inner[name], prefix, change, positive)}}
    clauses = {
        name: [
            change_parts(one, prefix, change, positive is (name != "must_not")) for one in _listed(inner.get(name, []))
        ]
        for name in _CLAUSES
        if name in inner
    }
    return {kind: {**inner, **clauses}}


def relaxed(query: Mapping[str, Any], prefix: str) -> JSON:
    """A query without document fields that matches at least the documents that ``query`` matches."""

    def change(part: Mapping[str, Any], positive: bool) -> JSON:
        if location_of(part, prefix) is not FieldLocation.DOCUMENTS:
            return dict(part)
        return MATCH_ALL if positive else MATCH_NONE

    return change_parts(query, prefix, change)


def without_entry(query: Mapping[str, Any], prefix: str) -> JSON | bool:
    """The condition for a document without an entry to match a query: always (True), never (False), or a query over
    document fields."""
    ((kind, inner),) = query.items()
    location = location_of(query, prefix)
    if location is FieldLocation.DOCUMENTS or (location is FieldLocation.NONE and kind != "bool"):
        return kind == "match_all" or (kind != "match_none" and dict(query))
    if kind in _INNER:
        return without_entry(inner[_INNER[kind]], prefix)
    if kind != "bool":
        return False
    clauses = [(name, without_entry(clause, prefix)) for name, clause in _children(query)]
    musts = [condition for name, condition in clauses if name in ("must", "filter")]
    nots = [condition for name, condition in clauses if name == "must_not"]
    shoulds = [condition for name, condition in clauses if name == "should"]
    musts.append(_at_least(shoulds, _minimum_should_match(inner, bool(musts))))
    if any(one is False for one in musts) or any(one is True for one in nots):
        return False
    filters = [one for one in musts if not isinstance(one, bool)]
    excluded = [one for one in nots if not isinstance(one, bool)]
    if not filters and not excluded:
        return True
    return {"bool": {"filter": filters or [MATCH_ALL], "must_not": excluded}}


def _minimum_should_match(inner: Mapping[str, Any], others: bool) -> int:
    """The number of ``should`` clauses that must match; the server's default depends on whether there are ``others``,
    required ones."""
    if not _listed(inner.get("should", [])):
        return 0
    minimum = inner.get("minimum_should_match", 0 if others else 1)
    if not isinstance(minimum, int):
        raise SettingsError(f"minimum_should_match {minimum!r} is not supported with a sidecar index: use a number.")
    return minimum


def _at_least(conditions: Sequence[JSON | bool], minimum: int) -> JSON | bool:
    """The condition that at least ``minimum`` of the conditions hold."""
    minimum -= sum(one is True for one in conditions)
    clauses = [one for one in conditions if not isinstance(one, bool)]
    if minimum <= 0:
        return True
    return minimum <= len(clauses) and {"bool": {"should": clauses, "minimum_should_match": minimum}}


def rename_indices(query: Any, names: Mapping[str, str]) -> Any:
    """The query with other index names in its ``_index`` clauses."""
    if isinstance(query, list):
        return [rename_indices(one, names) for one in query]
    if not isinstance(query, Mapping):
        return query
    return {
        key: _renamed(value, names) if key == "_index" else rename_indices(value, names) for key, value in query.items()
    }


def _renamed(value: Any, names: Mapping[str, str]) -> Any:
    if isinstance(value, list):
        return [_renamed(one, names) for one in value]
    if isinstance(value, Mapping):
        return {key: _renamed(one, names) for key, one in value.items()}
    return names.get(value, value) if isinstance(value, str) else value


def ids_clause(addresses: Iterable[Address], names: Mapping[str, str] | None = None) -> JSON:
    """A query for the documents with the given addresses, in one or several indices. ``names``: index -> the name to
    use for it in the query."""
    by_index: dict[str, list[str]] = {}
    for index, id in addresses:
        by_index.setdefault((names or {}).get(index, index), []).append(id)
    clauses = [
        queries.all_of({"term": {"_index": index}}, {"ids": {"values": chunk}})
        for index, ids in by_index.items()
        for chunk in chunked(ids, _CHUNK)
    ]
    return {"bool": {"should": clauses, "minimum_should_match": 1}} if clauses else MATCH_NONE


def joined(index: IndexHandle, query: Mapping[str, Any]) -> JSON:
    """The query for the sidecar indices, with ids in the place of each part about document fields.

    Raises `TooManyDocuments` if both that part and the rest match more than `MAX_IDS` documents.
    """
    names, prefix = SidecarNames(index.target), index.settings.prefix
    query = without_skipped_relations(query, index.target)
    rest = rename_indices(relaxed(query, prefix), names.sidecars)

    def answer(part: Mapping[str, Any], positive: bool) -> JSON:
        if location_of(part, prefix) is not FieldLocation.DOCUMENTS:
            return dict(rename_indices(part, names.sidecars))
        return ids_clause(_matching(index, names, part, rest), names.sidecars)

    return change_parts(query, prefix, answer)


def joined_queries(index: IndexHandle, query: Mapping[str, Any]) -> Iterator[JSON]:
    """One or more queries for the sidecar indices that together match what the query matches, and no document twice.

    For counting and reading, where any number of documents may match. Raises what `joined` raises if the query is not a
    conjunction that can be divided.
    """
    try:
        yield joined(index, query)
        return
    except TooManyDocuments:
        names, prefix = SidecarNames(index.target), index.settings.prefix
        conjuncts = _conjuncts(without_skipped_relations(query, index.target), prefix)
        if conjuncts is None:
            raise
    of_entries, of_documents = conjuncts
    for chunk in chunked(addresses_of(index.plain_documents, queries.all_of(*of_documents)), MAX_IDS):
        renamed = (rename_indices(one, names.sidecars) for one in of_entries)
        yield queries.all_of(*renamed, ids_clause(chunk, names.sidecars))


def without_skipped_relations(query: Mapping[str, Any], target: IndexTarget) -> JSON:
    """The query without the clause that excludes documents of skipped relations: these have no entries."""
    return _without(query, queries.of_relations(target.skipped_relations)) if target.skipped_relations else dict(query)


def _without(value: Any, clause: JSON) -> Any:
    if isinstance(value, list):
        return [_without(one, clause) for one in value]
    if not isinstance(value, Mapping):
        return value
    copy = {key: _without(one, clause) for key, one in value.items()}
    if isinstance(copy.get("must_not"), list):
        copy["must_not"] = [one for one in copy["must_not"] if one != clause]
    return copy


def _matching(
    index: IndexHandle, names: SidecarNames, part: Mapping[str, Any], rest: Mapping[str, Any]
) -> list[Address]:
    """The documents that a part of a query matches; if they are many, only those that the ``rest`` of the query, for
    the sidecar indices, can match."""
    documents = index.plain_documents
    found = _all_in_one_search(documents, part, min(index.target.max_result_window, _PAGE))
    if found is not None:
        return found
    few = list(_first(Documents(index.server, names.path), rest))
    if few and len(few) <= MAX_IDS:
        among = ids_clause(Address(names.indices[sidecar], id) for sidecar, id in few)
        return list(addresses_of(documents, queries.all_of(part, among)))
    many = list(_first(documents, part)) if few else []
    if len(many) > MAX_IDS:
        raise TooManyDocuments(
            f"The query matches more than {MAX_IDS:,} documents, and so do the keys it is combined with, which are in "
            f"a sidecar index: narrow the query."
        )
    return many


def _all_in_one_search(documents: Documents, query: Mapping[str, Any], maximum: int) -> list[Address] | None:
    """The addresses of all documents that match; None if they are more than ``maximum``."""
    body = {"size": maximum, "query": dict(query), "_source": False, "track_total_hits": True}
    found = documents.search(body)["hits"]
    if found["total"]["value"] > maximum:
        return None
    return [Address(hit["_index"], hit["_id"]) for hit in found["hits"]]


def _first(documents: Documents, query: Mapping[str, Any]) -> Iterator[Address]:
    """The addresses of documents that match; at most `MAX_IDS` + 1."""
    for number, address in enumerate(addresses_of(documents, query)):
        yield address
        if number == MAX_IDS:
            return


def addresses_of(documents: Documents, query: Mapping[str, Any]) -> Iterator[Address]:
    """The addresses of all documents that match."""
    pages = documents.pages({"query": dict(query), "_source": False}, page_size=_PAGE)
    return (hit.address for hit in chain.from_iterable(pages))


def _conjuncts(query: Mapping[str, Any], prefix: str) -> tuple[list[JSON], list[JSON]] | None:
    """The clauses that must all match, for entries and for documents; None if the query is not such a list."""
    if location_of(query, prefix) is FieldLocation.DOCUMENTS:
        return [MATCH_ALL], [dict(query)]
    if list(query) != ["bool"]:
        return None
    inner: Mapping[str, Any] = query["bool"]
    filters = inner.get("filter", [])
    clauses: list[JSON] = [filters] if isinstance(filters, dict) else list(filters)
    of_documents = [one for one in clauses if location_of(one, prefix) is FieldLocation.DOCUMENTS]
    of_entries = [one for one in clauses if location_of(one, prefix) is not FieldLocation.DOCUMENTS]
    rest: JSON = {"bool": {**inner, "filter": [MATCH_ALL, *of_entries]}}
    if not of_documents or location_of(rest, prefix) in (FieldLocation.BOTH, FieldLocation.DOCUMENTS):
        return None
    return [rest], of_documents
