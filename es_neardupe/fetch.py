"""Documents by their address: the present state of each, read in real time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from es_neardupe.bulk import chunked
from es_neardupe.clients import Client
from es_neardupe.errors import RequestError
from es_neardupe.records import Hit, Reference

__all__ = ["fetch"]


def fetch(
    client: Client, references: Iterable[Reference], source: Sequence[str], *, batch: int = 500
) -> Iterator[Hit | None]:
    """The named parts of each document, in the order of the references; None where it does not exist (any more)."""
    for chunk in chunked(references, batch):
        docs = [_request(reference, source) for reference in chunk]
        for found in client.request("POST", "/_mget", body={"docs": docs})["docs"]:
            yield _hit(found)


def _request(reference: Reference, source: Sequence[str]) -> dict[str, Any]:
    index, id, routing = reference
    wanted: dict[str, Any] = {"_index": index, "_id": id, "_source": list(source)}
    return wanted if routing is None else wanted | {"routing": routing}


def _hit(found: dict[str, Any]) -> Hit | None:
    if "error" in found:
        error = found["error"]
        if error.get("type") == "index_not_found_exception":
            return None
        raise RequestError(
            f"Document {found['_id']!r} of index {found['_index']} cannot be read: {error.get('reason', error)}.",
            status=500,
            type=error.get("type", ""),
            reason=error.get("reason", ""),
        )
    if not found["found"]:
        return None
    return Hit(
        index=found["_index"],
        id=found["_id"],
        routing=found.get("_routing"),
        seq_no=found["_seq_no"],
        primary_term=found["_primary_term"],
        source=found.get("_source", {}),
    )
