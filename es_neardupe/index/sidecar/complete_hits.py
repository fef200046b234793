"""What our entries lack of documents, read from the user's index; and who is gone there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from es_neardupe.errors import IndexUnusable, SettingsError
from es_neardupe.index.sidecar.join_query import Names, ids_clause, joined_parts
from es_neardupe.index.sidecar.split_query import MATCH_ALL, Source, without_entry
from es_neardupe.index.target import IndexTarget
from es_neardupe.records import Address, Hit, Reference
from es_neardupe.server.bulk import chunked
from es_neardupe.server.client import path
from es_neardupe.server.fetch import fetch
from es_neardupe.server.search import count

if TYPE_CHECKING:
    from es_neardupe.index.index import Index

__all__ = [
    "count_without_entry",
    "entries",
    "parts_of",
    "read_params",
    "their_parts",
    "their_values",
    "with_those_without_entry",
]


JSON = dict[str, Any]

_BATCH = 1000


def read_params(target: IndexTarget, theirs: Source) -> JSON:
    """The part of a request that asks for parts of the user's documents: of ``_source``, or where that is not kept, of
    stored fields. Raises `IndexUnusable` for a field that is in neither."""
    assert target.sidecar is not None
    if not target.sidecar.stored or theirs is False:
        return {"_source": theirs}
    names = list(target.settings.fields) if theirs is True else list(theirs)
    if lacking := sorted(set(names) - set(target.settings.fields)):
        raise IndexUnusable(
            f"Index {target.name} keeps {', '.join(lacking)} not in _source: of its documents, only the stored fields "
            f"{', '.join(target.settings.fields)} can be read."
        )
    return {"_source": False, "stored_fields": names}


def their_parts(index: Index, references: Sequence[Reference], theirs: Source) -> list[Hit | None]:
    """The user's documents as they are now, in the order of the references, with the named parts; None for one that is
    gone. Raises what `fetch` does."""
    params = read_params(index.target, theirs)
    return list(fetch(index.plain, references, params["_source"], stored=params.get("stored_fields", ())))


def entries(index: Index, references: Sequence[Reference], ours: Source) -> list[Hit | None]:
    """Our entries of documents, of their own version but under the names of the user's indices; None where there is
    none. Raises what `fetch` does."""
    names = Names(index.target)
    asked = [(names.ours[concrete], id, routing) for concrete, id, routing in references]
    found = fetch(index.plain, asked, ours)
    return [None if one is None else replace(one, index=names.theirs[one.index]) for one in found]


def parts_of(found: Mapping[str, Any]) -> JSON:
    """What was read of a document, from ``_source`` or stored fields."""
    return {**found.get("_source", {}), **found.get("fields", {})}


def their_values(index: Index, references: Sequence[Reference], asked: Sequence[Any]) -> dict[Address, JSON]:
    """``docvalue_fields`` of the user's documents, as ``fields`` of a hit."""
    found: dict[Address, JSON] = {}
    if not asked:
        return found
    for chunk in chunked(references, _BATCH):
        query = ids_clause((concrete, id) for concrete, id, _ in chunk)
        body = {"size": len(chunk), "query": query, "_source": False, "docvalue_fields": list(asked)}
        for hit in index.plain.request("POST", path(index.path, "_search"), body=body)["hits"]["hits"]:
            found[hit["_index"], hit["_id"]] = hit.get("fields", {})
    return found


def count_without_entry(index: Index, names: Names, query: Mapping[str, Any]) -> int:
    """Documents that a query matches although our index does not know them.

    These are all that match without any field of ours, less those that it knows. Entries of deleted documents, which
    stand till the next ``enrich``, can make it too small, never less than none.
    """
    rest = without_entry(query, index.settings.prefix)
    if rest is False:
        return 0
    asked = MATCH_ALL if rest is True else rest
    assert not isinstance(asked, bool)
    known = sum(count(index.plain, names.path, part) for part in joined_parts(index, asked))
    return max(0, count(index.plain, index.path, asked) - known)


def with_those_without_entry(answer: JSON, number: int, body: Mapping[str, Any], prefix: str) -> JSON:
    """The answer to a search for counts, with so many more documents that have none of our fields."""
    if not number:
        return answer
    total = answer["hits"].get("total")
    if total is not None:
        total["value"] += number
    for name, asked in body.get("aggs", {}).items():
        found = answer["aggregations"][name]
        if "filter" in asked and _fits(asked["filter"], prefix):
            found["doc_count"] += number
        if "filters" in asked:
            fitting = [key for key, query in asked["filters"]["filters"].items() if _fits(query, prefix)]
            for key in fitting or [asked["filters"].get("other_bucket_key")]:
                if key is not None:
                    found["buckets"][key]["doc_count"] += number
    return answer


def _fits(query: Mapping[str, Any], prefix: str) -> bool:
    """Whether a document without any field of ours fulfils a query over them."""
    found = without_entry(query, prefix)
    if isinstance(found, bool):
        return found
    raise SettingsError("Counts over the user's fields and ours at once cannot be asked from the side.")
