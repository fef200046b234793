"""Data streams and aliases with a write index, for tests that roll them over."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import Any

import pytest
from server_tools import JSON, TEXT, family, make_index, new_name, send

from es_neardupe.errors import NotFound, RequestError
from es_neardupe.server.client import Client, path

KINDS = (
    pytest.param("stream", marks=pytest.mark.product("opensearch")),
    pytest.param("alias", marks=pytest.mark.product("elasticsearch")),
)
"""What can be rolled over. The local Elasticsearch has no data streams; an alias is the same on both products."""


class Rolling:
    """A data stream, or an alias with a write index."""

    def __init__(self, client: Client, name: str, *, stream: bool) -> None:
        self.client, self.name, self.stream = client, name, stream
        self.texts = family(name, 9)
        template: JSON = {"index_patterns": [f"{name}*"], "priority": 500}
        template["template"] = {"mappings": {"properties": {**TEXT, "@timestamp": {"type": "date"}}}}
        self.template = template | ({"data_stream": {}} if stream else {})
        client.request("PUT", path("_index_template", name), body=self.template)
        if stream:
            client.request("PUT", path("_data_stream", name))
        else:
            make_index(client, f"{name}-000001", aliases={name: {"is_write_index": True}})

    def add(self, first: int, last: int) -> None:
        """Index some of the texts, as an application would."""
        actions: Any = (
            (
                {"create": {"_index": self.name, "_id": f"d{number}"}},
                {"@timestamp": "2026-01-01", "text": self.texts[number]},
            )
            for number in range(first, last)
        )
        send(self.client, actions)

    def roll(self) -> str:
        """Roll over; returns the name of the new index."""
        return str(self.client.request("POST", path(self.name, "_rollover"))["new_index"])

    def remove(self) -> None:
        every = {"expand_wildcards": "all"}
        if self.stream:
            self.client.request("DELETE", path("_data_stream", self.name))
        for index in self.client.request("GET", path(f"*{self.name}*", "_settings"), params=every) or ():
            self.client.request("DELETE", path(index))
        self.client.request("DELETE", path("_index_template", self.name))
        with suppress(NotFound):
            self.client.request("DELETE", path("_component_template", self.name))


@contextmanager
def rolled(client: Client, kind: str) -> Iterator[Rolling]:
    """A data stream (kind ``stream``) or an alias with a write index for a block; the test is skipped if the server
    does not support it."""
    name = new_name()
    try:
        made = Rolling(client, name, stream=kind == "stream")
    except RequestError as error:
        with suppress(NotFound):
            client.request("DELETE", path("_index_template", name))
        pytest.skip(f"this server has no data streams: {error.reason[:80]}")
    yield made
    made.remove()
