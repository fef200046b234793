"""Documents by id: the current version of each, read in real time.

While a shard is unavailable, as in the seconds after a restart, the request succeeds and each document of that shard
is an error, so the client cannot know that the request must be sent again.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

from es_neardupe.errors import Forbidden, RequestError
from es_neardupe.records import Hit, Reference
from es_neardupe.server.bulk import chunked
from es_neardupe.server.client import Client
from es_neardupe.server.responses import hit_of
from es_neardupe.server.retries import PART_RETRIES, retrying

__all__ = ["fetch"]

_NO_SHARD = "no_shard_available_action_exception"
_NOWHERE = ("index_not_found_exception", "routing_missing_exception")
"""The second: an index that requires a routing was asked without one, so there is no such document."""

_KINDS = {_NO_SHARD: (RequestError, 503), "security_exception": (Forbidden, 403)}


def fetch(
    client: Client,
    references: Iterable[Reference],
    source: Sequence[str] | bool,
    *,
    stored: Sequence[str] = (),
    batch: int = 500,
) -> Iterator[Hit | None]:
    """The ``source`` fields of each document, in the order of the references; None for a document that does
    not exist. True means all fields of the source, False none. ``stored`` fields are read too.

    Raises `Forbidden` for a document that the user may not read, and `RequestError` for one that cannot be read, with
    status 503 if its shard does not come back.
    """
    for chunk in chunked(references, batch):
        docs = [_request(reference, source, stored) for reference in chunk]
        yield from retrying(PART_RETRIES, _lacks_shard)(_read, client, docs)


def _lacks_shard(error: BaseException) -> bool:
    return isinstance(error, RequestError) and error.type == _NO_SHARD


def _read(client: Client, docs: Sequence[dict[str, Any]]) -> list[Hit | None]:
    return [_hit(found) for found in client.request("POST", "/_mget", body={"docs": docs})["docs"]]


def _request(reference: Reference, source: Sequence[str] | bool, stored: Sequence[str]) -> dict[str, Any]:
    index, id, routing = reference
    parts = source if isinstance(source, bool) else list(source)
    wanted: dict[str, Any] = {"_index": index, "_id": id, "_source": parts}
    if stored:
        wanted["stored_fields"] = list(stored)
    return wanted if routing is None else wanted | {"routing": routing}


def _hit(found: dict[str, Any]) -> Hit | None:
    if "error" in found:
        error = found["error"]
        if error.get("type") in _NOWHERE:
            return None
        kind, status = _KINDS.get(error.get("type", ""), (RequestError, 500))
        raise kind(
            f"Document {found['_id']!r} of index {found['_index']} cannot be read: {error.get('reason', error)}.",
            status=status,
            type=error.get("type", ""),
            reason=error.get("reason", ""),
        )
    return hit_of(found) if found["found"] else None
