"""Reads that return complete answers: searches, counts, and documents by id; also refreshes.

Documents by id are read in real time, so each has its current version. While a shard is unavailable, as in the seconds
after a restart, such a request succeeds and each document of that shard is an error, so the client cannot know that the
request must be sent again: `fetch` does so.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import Any

from es_neardupe.errors import DocumentTooLarge, Forbidden, NeardupeError, RequestError, UnexpectedAnswer
from es_neardupe.records import Address, Hit, Product, Reference, Server
from es_neardupe.server.client import JSON, Client, path
from es_neardupe.server.pacing import PART_RETRIES, with_retries
from es_neardupe.server.read_all import of_shard
from es_neardupe.server.request_sizes import RequestSize, in_requests, is_too_large
from es_neardupe.server.responses import advice_on, hit_of
from es_neardupe.wording import counted

_BUCKETS = 10_000
"""Buckets read in one request."""


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


def search(client: Client, name: str, body: Mapping[str, Any], *, shard: int | None = None) -> JSON:
    """One search. Raises `IncompleteAnswer` if shards failed or it timed out. ``shard``: see ``Client.pages``."""
    params = of_shard(client.server, shard)
    answer: JSON = client.request("POST", path(name, "_search"), params=params, body=body)
    return answer


def buckets(
    client: Client, name: str, query: Mapping[str, Any], fields: Mapping[str, str], optional: Collection[str] = ()
) -> Iterator[JSON]:
    """The different values that documents have in some fields, ascending: several times as fast as reading documents.

    ``fields``: key -> field; each result has these keys. Documents without one of the fields are left out, except for
    the keys ``optional``, which are then None. Raises as `search` does.
    """
    sources = [
        {key: {"terms": {"field": field, **({"missing_bucket": True} if key in optional else {})}}}
        for key, field in fields.items()
    ]
    page: JSON = {"size": _BUCKETS, "sources": sources}
    while True:
        body = {"size": 0, "track_total_hits": False, "query": query, "aggs": {"values": {"composite": page}}}
        found = search(client, name, body)["aggregations"]["values"]
        yield from (one["key"] for one in found["buckets"])
        if (after := found.get("after_key")) is None:
            return
        page = {**page, "after": after}


def first_hits(client: Client, name: str, body: Mapping[str, Any], maximum: int) -> list[JSON]:
    """Up to ``maximum`` hits of a search for documents of any size, fewer if they do not fit into memory; none if the
    first does not."""
    size = RequestSize.of_documents(client, maximum)
    while True:
        try:
            answer = size.ask(partial(search, client, name, {**body, "size": size.number}))
        except NeardupeError as error:
            if not is_too_large(error):
                raise
            return []
        if answer is not None:
            found: list[JSON] = answer["hits"]["hits"]
            return found


def count(client: Client, name: str, query: Mapping[str, Any] | None = None, *, shard: int | None = None) -> int:
    """The exact number of documents that match a query. ``shard``: see ``Client.pages``."""
    body = {"size": 0, "track_total_hits": True, "query": query or {"match_all": {}}}
    return int(search(client, name, body, shard=shard)["hits"]["total"]["value"])


def counts(client: Client, name: str, *, shard: int | None = None, **queries: Mapping[str, Any]) -> dict[str, int]:
    """The exact number of documents that match each of the queries, counted in one search. ``shard``: see
    ``Client.pages``."""
    body = {"size": 0, "aggs": {part: {"filter": dict(query)} for part, query in queries.items()}}
    buckets = search(client, name, body, shard=shard)["aggregations"]
    return {part: int(buckets[part]["doc_count"]) for part in queries}


_BATCH = 500
"""Maximum number of documents in one request."""

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
    batch: int | None = None,
) -> Iterator[Hit | None]:
    """See `fetch_portions`; one document after the other."""
    for portion in fetch_portions(client, references, source, stored=stored, batch=batch):
        yield from portion


def fetch_portions(
    client: Client,
    references: Iterable[Reference],
    source: Sequence[str] | bool,
    *,
    stored: Sequence[str] = (),
    batch: int | None = None,
    skip: Callable[[Reference, DocumentTooLarge], None] | None = None,
) -> Iterator[list[Hit | None]]:
    """The ``source`` fields of each document, in the order of the references; None for a document that does
    not exist. True means all fields of the source, False none. ``stored`` fields are read too.

    Each request is for at most ``batch`` documents; None is for documents of any size: each portion has as many as fit
    into memory (`es_neardupe.server.request_sizes`).

    A document that does not fit into memory raises `DocumentTooLarge`, or is omitted and passed to ``skip``.

    Raises `Forbidden` for a document that the user may not read, and `RequestError` for one that cannot be read, with
    status 503 if its shard stays unavailable.
    """
    small = batch is not None or (source is False and not stored)
    size = RequestSize.fixed(batch or _BATCH) if small else RequestSize.of_documents(client, _BATCH)
    docs = (_doc_of(reference, source, stored) for reference in references)

    def request(some: list[JSON]) -> list[Hit | None]:
        return with_retries(partial(_fetch_once, client, some), PART_RETRIES, _lacks_shard)

    yield from in_requests(size, docs, request, _reference_of, skip)


def find(client: Client, index: str, ids: Iterable[str], source: Sequence[str]) -> Iterator[JSON]:
    """The ``source`` fields of documents by id, found by searches, which need no routing; in any order."""

    def request(some: list[str]) -> list[JSON]:
        body = {"size": len(some), "query": {"ids": {"values": some}}, "_source": list(source)}
        found: list[JSON] = search(client, index, body)["hits"]["hits"]
        return found

    for hits in in_requests(RequestSize.of_documents(client, _BATCH), ids, request, lambda id: (index, id, None)):
        yield from hits


_HIDES_VECTORS = (9, 2, 0)
"""From this version on, Elasticsearch removes vectors from the source that it returns, and rewrites its numbers, if the
index has a field of vectors."""


def _hides_vectors(server: Server) -> bool:
    return server.product is Product.ELASTICSEARCH and server.version >= _HIDES_VECTORS


def whole_source(server: Server) -> bool | JSON:
    """The ``_source`` of a search that returns sources as they were sent."""
    return {"exclude_vectors": False} if _hides_vectors(server) else True


def fetch_whole(
    client: Client,
    references: Iterable[Reference],
    *,
    skip: Callable[[Reference, DocumentTooLarge], None] | None = None,
) -> Iterator[list[Hit | None]]:
    """As `fetch_portions`, with sources as they were sent. Servers that can hide vectors are asked by searches, which
    do not see changes since the last refresh."""
    if _hides_vectors(client.server):
        size = RequestSize.of_documents(client, _BATCH)
        yield from in_requests(size, references, partial(_search_whole, client), lambda one: one, skip)
    else:
        yield from fetch_portions(client, references, True, skip=skip)


def _search_whole(client: Client, references: Sequence[Reference]) -> list[Hit | None]:
    ids: dict[str, list[str]] = {}
    for index, id, _ in references:
        ids.setdefault(index, []).append(id)
    found: dict[Address, Hit] = {}
    for index, some in ids.items():
        body = {
            "query": {"ids": {"values": some}},
            "size": len(some),
            "_source": whole_source(client.server),
            "seq_no_primary_term": True,
            "version": True,
        }
        hits = map(hit_of, search(client, index, body)["hits"]["hits"])
        found |= {hit.address: hit for hit in hits}
    return [found.get(Address(index, id)) for index, id, _ in references]


def _lacks_shard(error: BaseException) -> bool:
    return isinstance(error, RequestError) and error.type == _NO_SHARD


def _fetch_once(client: Client, docs: Sequence[dict[str, Any]]) -> list[Hit | None]:
    found = client.request("POST", "/_mget", body={"docs": docs})["docs"]
    if len(found) != len(docs):
        raise UnexpectedAnswer(
            f"{client.url} answered {len(found)} of {counted(len(docs), 'document')}. Check any proxy in front of the "
            f"server."
        )
    return [_hit_or_none(item) for item in found]


def _doc_of(reference: Reference, source: Sequence[str] | bool, stored: Sequence[str]) -> dict[str, Any]:
    """One entry of the request."""
    index, id, routing = reference
    doc: dict[str, Any] = {"_index": index, "_id": id, "_source": source if isinstance(source, bool) else list(source)}
    if stored:
        doc["stored_fields"] = list(stored)
    return doc if routing is None else doc | {"routing": routing}


def _reference_of(doc: Mapping[str, Any]) -> Reference:
    """The document of an entry of a request."""
    return doc["_index"], doc["_id"], doc.get("routing")


def _hit_or_none(item: dict[str, Any]) -> Hit | None:
    if "error" in item:
        error = item["error"]
        if error.get("type") in _ABSENT:
            return None
        kind, status = _KINDS.get(error.get("type", ""), (RequestError, 500))
        why = ". ".join(filter(None, (str(error.get("reason", error)), advice_on(error).rstrip("."))))
        raise kind(
            f"Document {item['_id']!r} of index {item['_index']} cannot be read: {why}.",
            status=status,
            type=error.get("type", ""),
            reason=error.get("reason", ""),
        )
    return hit_of(item) if item["found"] else None
