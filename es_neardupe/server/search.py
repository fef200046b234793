"""Reads that return complete answers: searches, counts, and documents by id; also refreshes.

Documents by id are read in real time, so each has its current version. While a shard is unavailable, as in the seconds
after a restart, such a request succeeds and each document of that shard is an error, so the client cannot know that the
request must be sent again: `fetch` does so.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import Any

from es_neardupe.errors import Forbidden, RequestError, UnexpectedAnswer
from es_neardupe.records import Address, Hit, Product, Reference, Server
from es_neardupe.server.bulk import chunked
from es_neardupe.server.client import JSON, Client, path
from es_neardupe.server.pacing import PART_RETRIES, retrying
from es_neardupe.server.responses import hit_of

__all__ = [
    "count",
    "counts",
    "fetch",
    "fetch_whole",
    "knows",
    "refresh",
    "refresh_if_allowed",
    "search",
    "whole_source",
]


def knows(client: Client, method: str, endpoint: str, body: Mapping[str, Any] | None = None) -> bool:
    """Whether the server knows this request, even if the user may not send it."""
    try:
        client.request(method, endpoint, body=body)
    except RequestError as error:
        return isinstance(error, Forbidden)
    return True


def refresh(client: Client, name: str) -> None:
    """Make everything written so far visible to searches."""
    client.request("POST", path(name, "_refresh"))


def refresh_if_allowed(client: Client, name: str) -> None:
    """Refresh, or do nothing if the user may not: read-only commands then see what every search sees."""
    with suppress(Forbidden):
        refresh(client, name)


def search(client: Client, name: str, body: Mapping[str, Any]) -> JSON:
    """One search. Raises `IncompleteAnswer` if shards failed or it timed out."""
    answer: JSON = client.request("POST", path(name, "_search"), body=body)
    return answer


def count(client: Client, name: str, query: Mapping[str, Any] | None = None) -> int:
    """The exact number of documents that match a query."""
    body = {"size": 0, "track_total_hits": True, "query": query or {"match_all": {}}}
    return int(search(client, name, body)["hits"]["total"]["value"])


def counts(client: Client, name: str, **queries: Mapping[str, Any]) -> dict[str, int]:
    """The exact number of documents that match each of the queries, counted in one search."""
    body = {"size": 0, "aggs": {part: {"filter": dict(query)} for part, query in queries.items()}}
    buckets = search(client, name, body)["aggregations"]
    return {part: int(buckets[part]["doc_count"]) for part in queries}


_NO_SHARD = "no_shard_available_action_exception"
_ABSENT = ("index_not_found_exception", "routing_missing_exception")
"""The second: the index requires a routing and the request has none, so there is no such document."""

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
    status 503 if its shard stays unavailable.
    """
    for chunk in chunked(references, batch):
        docs = [_doc_of(reference, source, stored) for reference in chunk]
        yield from retrying(PART_RETRIES, _lacks_shard)(_fetch_once, client, docs)


_HIDES_VECTORS = (9, 2, 0)
"""From this version on, Elasticsearch removes vectors from the source that it returns, and rewrites its numbers, if the
index has a field of vectors."""


def _hides_vectors(server: Server) -> bool:
    return server.product is Product.ELASTICSEARCH and server.version >= _HIDES_VECTORS


def whole_source(server: Server) -> bool | JSON:
    """The ``_source`` of a search that returns sources as they were sent."""
    return {"exclude_vectors": False} if _hides_vectors(server) else True


def fetch_whole(client: Client, references: Sequence[Reference]) -> Iterator[Hit | None]:
    """As `fetch`, with sources as they were sent. On servers that can hide vectors, documents are read by a search, so
    changes since the last refresh are not seen."""
    if not _hides_vectors(client.server):
        yield from fetch(client, references, True, batch=_WHOLE_BATCH)
        return
    for chunk in chunked(references, _WHOLE_BATCH):
        ids: dict[str, list[str]] = {}
        for index, id, _ in chunk:
            ids.setdefault(index, []).append(id)
        found = {hit.address: hit for index, some in ids.items() for hit in _search_ids(client, index, some)}
        yield from (found.get(Address(index, id)) for index, id, _ in chunk)


_WHOLE_BATCH = 100


def _search_ids(client: Client, index: str, ids: Sequence[str]) -> Iterator[Hit]:
    body = {
        "query": {"ids": {"values": list(ids)}},
        "size": len(ids),
        "_source": whole_source(client.server),
        "seq_no_primary_term": True,
        "version": True,
    }
    yield from map(hit_of, search(client, index, body)["hits"]["hits"])


def _lacks_shard(error: BaseException) -> bool:
    return isinstance(error, RequestError) and error.type == _NO_SHARD


def _fetch_once(client: Client, docs: Sequence[dict[str, Any]]) -> list[Hit | None]:
    found = client.request("POST", "/_mget", body={"docs": docs})["docs"]
    if len(found) != len(docs):
        raise UnexpectedAnswer(
            f"{client.url} answered {len(found)} of {len(docs)} documents. Check any proxy in front of the server."
        )
    return [_hit_or_none(item) for item in found]


def _doc_of(reference: Reference, source: Sequence[str] | bool, stored: Sequence[str]) -> dict[str, Any]:
    """One entry of the request."""
    index, id, routing = reference
    doc: dict[str, Any] = {"_index": index, "_id": id, "_source": source if isinstance(source, bool) else list(source)}
    if stored:
        doc["stored_fields"] = list(stored)
    return doc if routing is None else doc | {"routing": routing}


def _hit_or_none(item: dict[str, Any]) -> Hit | None:
    if "error" in item:
        error = item["error"]
        if error.get("type") in _ABSENT:
            return None
        kind, status = _KINDS.get(error.get("type", ""), (RequestError, 500))
        raise kind(
            f"Document {item['_id']!r} of index {item['_index']} cannot be read: {error.get('reason', error)}.",
            status=status,
            type=error.get("type", ""),
            reason=error.get("reason", ""),
        )
    return hit_of(item) if item["found"] else None
