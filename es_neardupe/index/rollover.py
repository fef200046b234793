"""Rollover aliases: data streams and aliases with a write index, which get new indices by rollover."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from es_neardupe.errors import IndexUnusable, RequestError
from es_neardupe.server.client import JSON, Client, path

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


def rollover_aliases(
    name: str, aliases: Mapping[str, Mapping[str, Any]], data_streams: Mapping[str, str]
) -> list[RolloverAlias]:
    """The rollover aliases of the indices that a name resolves to. ``aliases``: index -> alias -> its properties;
    ``data_streams``: index -> the data stream that it belongs to.

    Raises `IndexUnusable` if the name is an alias with a filter: requests name the indices themselves, so the filter
    would not apply."""
    streams: dict[str, set[str]] = {}
    for index, stream in data_streams.items():
        streams.setdefault(stream, set()).add(index)
    found = [RolloverAlias(stream, frozenset(indices), True, "") for stream, indices in sorted(streams.items())]
    indices: dict[str, set[str]] = {}
    write: dict[str, str] = {}
    for index, of_index in aliases.items():
        for alias, properties in of_index.items():
            if alias in name.split(",") and "filter" in properties:
                raise IndexUnusable(
                    f"Alias {alias} of index {index} has a filter, which would be ignored: name {index} itself, and "
                    f"use the filter as a query if the command takes one."
                )
            indices.setdefault(alias, set()).add(index)
            if properties.get("is_write_index"):
                write[alias] = index
    ordered = sorted(write.items())
    return found + [RolloverAlias(alias, frozenset(indices[alias]), False, index) for alias, index in ordered]


def alias_named(aliases: Iterable[RolloverAlias], name: str) -> RolloverAlias | None:
    """The rollover alias with this name, if any."""
    return next((one for one in aliases if one.name == name), None)


def settings_of_next(client: Client, alias: RolloverAlias, prefix: str) -> Mapping[str, Any] | None:
    """The settings, as they are stored in a mapping, that the index templates give the next index of an alias: empty if
    they give none, None if the user may not ask."""
    try:
        answer = client.request("POST", _simulation(client, alias))
    except RequestError:  # not permitted
        return None
    mappings: JSON = (answer or {}).get("template", {}).get("mappings", {})
    found: Mapping[str, Any] = mappings.get("_meta", {}).get(prefix, {})
    return found


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
