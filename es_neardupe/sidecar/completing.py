"""What our entries lack of documents, read from the user's index; and who is gone there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from es_neardupe.bulk import chunked
from es_neardupe.clients import Client, path
from es_neardupe.errors import IndexUnusable
from es_neardupe.fetch import fetch
from es_neardupe.indices import Target
from es_neardupe.records import Address, Hit, Reference
from es_neardupe.sidecar.joining import Names, ids_clause
from es_neardupe.sidecar.splitting import Source

__all__ = ["entries", "parts_of", "read_params", "their_parts", "their_values"]

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


def their_parts(client: Client, target: Target, references: Sequence[Reference], theirs: Source) -> list[Hit | None]:
    """The user's documents as they are now, in the order of the references, with the named parts; None for one that is
    gone. Raises what `fetch` does."""
    params = read_params(target, theirs)
    return list(fetch(client, references, params["_source"], stored=params.get("stored_fields", ())))


def entries(client: Client, target: Target, references: Sequence[Reference], ours: Source) -> list[Hit | None]:
    """Our entries of documents, of their own version but under the names of the user's indices; None where there is
    none. Raises what `fetch` does."""
    names = Names(target)
    asked = [(names.ours[index], id, routing) for index, id, routing in references]
    found = fetch(client, asked, ours)
    return [None if one is None else replace(one, index=names.theirs[one.index]) for one in found]


def parts_of(found: Mapping[str, Any]) -> JSON:
    """What was read of a document, from ``_source`` or stored fields."""
    return {**found.get("_source", {}), **found.get("fields", {})}


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
