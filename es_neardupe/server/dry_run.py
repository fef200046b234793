"""A client for dry runs: it reads from the server, and keeps what it was given to write."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any

from es_neardupe.errors import SettingsError
from es_neardupe.records import Hit
from es_neardupe.server.client import Client, ClientOver, Params, query_of, to_json
from es_neardupe.server.client import path as path_of

__all__ = ["Rehearsal", "ShownRequest"]


@dataclass(frozen=True, slots=True)
class ShownRequest:
    """A request that a dry run would have sent, word for word."""

    method: str
    path: str
    """With its query."""
    body: str
    """JSON, or newline-delimited JSON for a bulk request."""


class Rehearsal(ClientOver):
    """A `Client` that passes on what reads, and takes every write for done; ``most`` of these are kept.

    Whoever reads the mapping of an index finds there what was put into it here. Without a dry run nothing can be
    shown: raises `SettingsError` then. Refreshing counts as reading.
    """

    def __init__(self, client: Client, most: int, *, dry_run: bool) -> None:
        if most and not dry_run:
            raise SettingsError("--show-requests shows what a dry run would send: give --dry-run too.")
        super().__init__(client)
        self._most = most
        self._shown: list[ShownRequest] = []
        self._mappings: dict[str, Mapping[str, Any]] = {}
        """Path of the mapping of an index -> what was put there."""

    @property
    def shown(self) -> tuple[ShownRequest, ...]:
        """The first writes, in their order."""
        return tuple(self._shown)

    @property
    def full(self) -> bool:
        """Whether no further write is kept."""
        return len(self._shown) >= self._most

    def request(
        self,
        method: str,
        path: str,
        *,
        params: Params | None = None,
        body: Mapping[str, Any] | None = None,
    ) -> Any:
        """See ``Client.request``."""
        if method not in {"PUT", "DELETE"}:
            answer = self.plain.request(method, path, params=params, body=body)
            return self._rehearsed(answer) if path.endswith("/_mapping") and self._mappings else answer
        if path.endswith("/_mapping") and body is not None:
            self._mappings[path] = _joined(self._mappings.get(path, {}), body)
        self._keep(method, path + query_of(params), b"" if body is None else to_json(body))
        return {"acknowledged": True}

    def bulk(self, body: bytes, *, params: Mapping[str, str] | None = None) -> Any:
        """See ``Client.bulk``: each item is done."""
        self._keep("POST", "/_bulk" + query_of(params), body)
        return {"errors": False, "items": [{op: {"status": 200}} for op in _operations(body)]}

    def pages(self, index: str, body: Mapping[str, Any], **options: Any) -> Iterator[list[Hit]]:
        """See ``Client.pages``."""
        return self.plain.pages(index, body, **options)

    def close(self) -> None:
        """Nothing: the client is somebody else's."""

    def _rehearsed(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """Mappings of indices with what was put into them here."""
        return {
            name: {
                **one,
                "mappings": _joined(one.get("mappings", {}), self._mappings.get(path_of(name, "_mapping"), {})),
            }
            for name, one in answer.items()
        }

    def _keep(self, method: str, path: str, body: bytes) -> None:
        if not self.full:
            self._shown.append(ShownRequest(method, path, body.decode()))


def _joined(mapping: Mapping[str, Any], put: Mapping[str, Any]) -> dict[str, Any]:
    """A mapping after another was put: fields are added, ``_meta`` is the last one."""
    return {**mapping, **put, "properties": {**mapping.get("properties", {}), **put.get("properties", {})}}


def _operations(body: bytes) -> Iterator[str]:
    """What each action of a bulk request does."""
    lines = iter(body.splitlines())
    for line in lines:
        (op,) = json.loads(line)
        yield op
        if op != "delete":
            next(lines)
