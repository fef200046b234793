"""Pipelines of the server, for documents that are indexed or for searches: whether they exist, and are not replaced."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from enum import Enum
from typing import Any

from es_neardupe.errors import IndexUnusable, NotFound
from es_neardupe.server.client import Client, path


class PipelineKind(str, Enum):
    """What a pipeline processes."""

    INGEST = "ingest"
    """Documents."""
    SEARCH = "search"
    """Searches and their answers."""

    def path(self, name: str) -> str:
        """The path of requests for a pipeline; ``*`` in its name is any text."""
        return path(f"_{self.value}", "pipeline", name)


def stored_pipeline(client: Client, kind: PipelineKind, name: str) -> Mapping[str, Any] | None:
    """A pipeline of the server; None if there is none of this name. Raises `Forbidden`."""
    try:
        found: Mapping[str, Any] = client.request("GET", kind.path(name)) or {}
    except NotFound:
        return None
    return found.get(name)


def not_stored(client: Client, kind: PipelineKind, names: Collection[str]) -> set[str]:
    """The pipelines that do not exist. Raises `Forbidden`."""
    return {name for name in set(names) if stored_pipeline(client, kind, name) is None}


def changed_pipeline(kind: PipelineKind, name: str) -> IndexUnusable:
    """The error for a pipeline that has the name of one of this program, and another content."""
    return IndexUnusable(
        f"The {kind.value} pipeline {name} is not as this program makes it, so it is not replaced: rename or delete it."
    )
