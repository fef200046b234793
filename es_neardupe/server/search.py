"""Searches and counts with complete answers, refreshes, and whether a server knows a request."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import suppress
from typing import Any

from es_neardupe.errors import Forbidden, RequestError
from es_neardupe.server.client import Client, path

__all__ = ["count", "counts", "knows", "refresh", "refresh_if_allowed", "search"]

JSON = dict[str, Any]


def knows(client: Client, method: str, target: str, body: Mapping[str, Any] | None = None) -> bool:
    """Whether the server knows this request, even if the user may not send it."""
    try:
        client.request(method, target, body=body)
    except RequestError as error:
        return isinstance(error, Forbidden)
    return True


def refresh(client: Client, name: str) -> None:
    """Make everything written so far visible to searches."""
    client.request("POST", path(name, "_refresh"))


def refresh_if_allowed(client: Client, name: str) -> None:
    """The same, or nothing if the user may not refresh: read-only commands then see what every search sees."""
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


def counts(client: Client, name: str, **parts: Mapping[str, Any]) -> dict[str, int]:
    """The exact number of documents that match each of the queries, counted in one search."""
    body = {"size": 0, "aggs": {part: {"filter": dict(query)} for part, query in parts.items()}}
    found = search(client, name, body)["aggregations"]
    return {part: int(found[part]["doc_count"]) for part in parts}
