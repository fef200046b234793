"""Dry runs: a client that reads from the server, and records writes instead of sending them."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from es_neardupe.errors import SettingsError
from es_neardupe.server.client import Before, Client, ForwardingClient, Params, query_of, to_json
from es_neardupe.server.client import path as path_of
from es_neardupe.wording import option


@dataclass(frozen=True, slots=True)
class ShownRequest:
    """A request that would have been sent without the dry run."""

    method: str
    path: str
    """With its query string."""
    body: str
    """JSON, or newline-delimited JSON for a bulk request."""


class DryRunClient(ForwardingClient):
    """A `Client` that forwards reads, and answers every write with success; it keeps the first ``maximum`` of them.

    A mapping that is read contains the fields that the dry run added to it. Refreshes count as reads. Raises
    `SettingsError` if ``maximum`` is not 0 without a dry run.
    """

    def __init__(self, client: Client, maximum: int, *, dry_run: bool) -> None:
        if maximum and not dry_run:
            raise SettingsError(f"{option('show_requests')} needs {option('dry_run')}.")
        super().__init__(client)
        self._maximum = maximum
        self._shown: list[ShownRequest] = []
        self._mappings: dict[str, Mapping[str, Any]] = {}
        """Path of the mapping of an index -> the fields added to it."""

    @property
    def shown(self) -> tuple[ShownRequest, ...]:
        """The first writes, in order."""
        return tuple(self._shown)

    @property
    def full(self) -> bool:
        """Whether no more writes are kept."""
        return len(self._shown) >= self._maximum

    def keep(self, requests: Sequence[ShownRequest]) -> None:
        """Keep also the writes that a command has shown in a dry run through this client."""
        self._shown += requests[: self._maximum - len(self._shown)]

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
            return self._with_added_fields(answer) if self._mappings and _has_mappings(path) else answer
        if path.endswith("/_mapping") and body is not None:
            self._mappings[path] = _joined(self._mappings.get(path, {}), body)
        self._keep(method, path + query_of(params), b"" if body is None else to_json(body))
        return {"acknowledged": True}

    def bulk(self, body: bytes, *, params: Mapping[str, str] | None = None, before: Before | None = None) -> Any:
        """See ``Client.bulk``: each item succeeds."""
        self._keep("POST", "/_bulk" + query_of(params), body)
        return {"errors": False, "items": [{op: {"status": 200}} for op in _operations(body)]}

    def close(self) -> None:
        """Do nothing: the other client belongs to its owner."""

    def _with_added_fields(self, answer: Mapping[str, Any]) -> dict[str, Any]:
        """Mappings of indices with the fields that the dry run added to them."""
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


def _has_mappings(path: str) -> bool:
    """Whether an answer has the mappings of indices: to ``/INDEX/_mapping``, or ``/INDEX``, with all about them."""
    return path.endswith("/_mapping") or (path.count("/") == 1 and not path.startswith("/_"))


def _joined(mapping: Mapping[str, Any], added: Mapping[str, Any]) -> dict[str, Any]:
    """A mapping after an update by another one: fields are added, ``_meta`` is replaced."""
    return {**mapping, **added, "properties": {**mapping.get("properties", {}), **added.get("properties", {})}}


def _operations(body: bytes) -> Iterator[str]:
    """The operation of each action of a bulk request."""
    lines = iter(body.splitlines())
    for line in lines:
        (op,) = json.loads(line)
        yield op
        if op != "delete":
            next(lines)
