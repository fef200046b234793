"""Rollover aliases: data streams and aliases with a write index, which get new indices by rollover."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from es_neardupe.errors import IndexUnusable, NotFound, RequestError
from es_neardupe.index.queries import JSON
from es_neardupe.server.client import Client, path

__all__ = ["RolloverAlias", "alias_named", "next_index_has", "rollover_aliases"]

_MAX = 20
"""Maximum number of indices named in one request: backing indices have long names, and the length of URLs is
limited."""

_NUMBERED = re.compile(r"(.*-)(\d+)")


@dataclass(frozen=True, slots=True)
class RolloverAlias:
    """A data stream or an alias with a write index."""

    name: str
    indices: frozenset[str]
    """Those of its indices that the opened name resolves to."""
    data_stream: bool
    writes_to: str
    """The index that new documents of an alias go to; "" for a data stream."""


def rollover_aliases(client: Client, name: str, mappings: Mapping[str, Mapping[str, Any]]) -> list[RolloverAlias]:
    """The rollover aliases of the indices that a name resolves to. Raises `IndexUnusable` if the name is an alias with
    a filter: requests name the indices themselves, so the filter would not apply."""
    streams = _streams(client, [index for index, mapping in mappings.items() if "_data_stream_timestamp" in mapping])
    data_streams = [RolloverAlias(stream, frozenset(indices), True, "") for stream, indices in sorted(streams.items())]
    return data_streams + _aliases(client, name)


def alias_named(aliases: Iterable[RolloverAlias], name: str) -> RolloverAlias | None:
    """The rollover alias with this name, if any."""
    return next((one for one in aliases if one.name == name), None)


def _aliases(client: Client, name: str) -> list[RolloverAlias]:
    try:
        answer = client.request("GET", path(name, "_alias"))
    except NotFound:  # a data stream
        return []
    indices: dict[str, set[str]] = {}
    write: dict[str, str] = {}
    for index, entry in answer.items():
        for alias, properties in entry["aliases"].items():
            if alias in name.split(",") and "filter" in properties:
                raise IndexUnusable(
                    f"Alias {alias} of index {index} has a filter, which would be ignored: name {index} itself, and "
                    f"use the filter as a query if the command takes one."
                )
            indices.setdefault(alias, set()).add(index)
            if properties.get("is_write_index"):
                write[alias] = index
    return [RolloverAlias(alias, frozenset(indices[alias]), False, index) for alias, index in sorted(write.items())]


def _streams(client: Client, indices: Iterable[str]) -> dict[str, set[str]]:
    """Data stream -> those of the given indices that belong to it."""
    streams: dict[str, set[str]] = {}
    backing = sorted(indices)
    for start in range(0, len(backing), _MAX):
        named = ",".join(backing[start : start + _MAX])
        for one in client.request("GET", path("_resolve", "index", named))["indices"]:
            if "data_stream" in one:
                streams.setdefault(one["data_stream"], set()).add(one["name"])
    return streams


def next_index_has(client: Client, alias: RolloverAlias, prefix: str, meta: Mapping[str, Any]) -> bool | None:
    """Whether the index templates give the next index of an alias these settings; None if the user may not ask."""
    try:
        answer = client.request("POST", _simulation(client, alias))
    except RequestError:  # not permitted
        return None
    mappings: JSON = (answer or {}).get("template", {}).get("mappings", {})
    return bool(mappings.get("_meta", {}).get(prefix) == meta)


def _simulation(client: Client, alias: RolloverAlias) -> str:
    """The path of the request that simulates the next index. It does not accept the name of a data stream."""
    if alias.data_stream:
        (stream,) = client.request("GET", path("_data_stream", alias.name))["data_streams"]
        return path("_index_template", "_simulate", stream["template"])
    return path("_index_template", "_simulate_index", _following(alias.writes_to))


def _following(index: str) -> str:
    """The name of the next index: ``logs-000002`` after ``logs-000001``. For a name without a number, which a rollover
    does not continue, a similar name that the same templates are likely to match."""
    numbered = _NUMBERED.fullmatch(index)
    return f"{index}-2" if numbered is None else f"{numbered[1]}{int(numbered[2]) + 1:06}"
