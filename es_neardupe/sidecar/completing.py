"""What our entries lack of documents, read from the user's index; and who is gone there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from es_neardupe.bulk import chunked
from es_neardupe.clients import Client, path
from es_neardupe.errors import IndexUnusable
from es_neardupe.indices import Target
from es_neardupe.records import Address, Reference
from es_neardupe.sidecar.joining import Names, ids_clause
from es_neardupe.sidecar.splitting import Source

__all__ = ["entries", "read_params", "their_parts", "their_values"]

JSON = dict[str, Any]

_BATCH = 1000


def read_params(target: Target, theirs: Source) -> JSON:
    """The part of a request that asks for parts of the user's documents: of ``_source``, or where that is not kept, of
    stored fields. Raises `IndexUnusable` for a field that is in neither."""
    assert target.beside is not None
    if not target.beside.stored or theirs is False:
        return {"_source": theirs}
    names = list(target.settings.fields) if theirs is True else list(theirs)
    if lacking := sorted(set(names) - set(target.settings.fields)):
        raise IndexUnusable(
            f"Index {target.name} keeps {', '.join(lacking)} not in _source: of its documents, only the stored fields "
            f"{', '.join(target.settings.fields)} can be read."
        )
    return {"_source": False, "stored_fields": names}


def their_parts(client: Client, target: Target, references: Sequence[Reference], theirs: Source) -> list[JSON | None]:
    """The named parts of the user's documents as they are now, in the order of the references; None for one that is
    gone."""
    params = read_params(target, theirs)
    found: list[JSON | None] = []
    for chunk in chunked(references, _BATCH):
        docs = [_asked(index, id, routing, params) for index, id, routing in chunk]
        answer = client.request("POST", "/_mget", body={"docs": docs})["docs"]
        found += [None if _is_gone(one) else parts_of(one) for one in answer]
    return found


def parts_of(found: Mapping[str, Any]) -> JSON:
    """What was read of a document, from ``_source`` or stored fields."""
    return {**found.get("_source", {}), **found.get("fields", {})}


def _is_gone(found: Mapping[str, Any]) -> bool:
    """An error of another kind than that of a deleted index is not a document that is gone."""
    error = found.get("error", {}).get("type", "")
    return not found.get("found", False) if not error else error == "index_not_found_exception"


def entries(
    client: Client, target: Target, references: Sequence[Reference], ours: Source
) -> list[Mapping[str, Any] | None]:
    """Our entries of documents as the server gives them, with their own version; None where there is none."""
    names = Names(target)
    found: list[Mapping[str, Any] | None] = []
    for chunk in chunked(references, _BATCH):
        docs = [_asked(names.ours[index], id, routing, {"_source": ours}) for index, id, routing in chunk]
        answer = client.request("POST", "/_mget", body={"docs": docs})["docs"]
        found += [one if one.get("found") or "error" in one else None for one in answer]
    return found


def _asked(index: str, id: str, routing: str | None, params: Mapping[str, Any]) -> JSON:
    wanted: JSON = {"_index": index, "_id": id, **params}
    return wanted if routing is None else wanted | {"routing": routing}


def their_values(
    client: Client, target: Target, references: Sequence[Reference], asked: Sequence[Any]
) -> dict[Address, JSON]:
    """``docvalue_fields`` of the user's documents, as ``fields`` of a hit."""
    found: dict[Address, JSON] = {}
    if not asked:
        return found
    for chunk in chunked(references, _BATCH):
        query = ids_clause((index, id) for index, id, _ in chunk)
        body = {"size": len(chunk), "query": query, "_source": False, "docvalue_fields": list(asked)}
        for hit in client.request("POST", path(target.path, "_search"), body=body)["hits"]["hits"]:
            found[hit["_index"], hit["_id"]] = hit.get("fields", {})
    return found
