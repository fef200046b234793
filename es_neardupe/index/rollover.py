"""Names whose indices change by themselves: data streams, and aliases with a write index, get new ones by rollover."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from es_neardupe.errors import IndexUnusable, NotFound, RequestError
from es_neardupe.server.client import Client, path

__all__ = ["RolloverAlias", "families_of", "family_named", "next_index_has"]

JSON = dict[str, Any]

_MAX = 20
"""Indices named in one request: backing indices have long names, and a URL has an end."""

_NUMBERED = re.compile(r"(.*-)(\d+)")


@dataclass(frozen=True, slots=True)
class RolloverAlias:
    """A data stream or an alias with a write index, and those of its indices that a name stands for."""

    name: str
    indices: frozenset[str]
    data_stream: bool
    writes_to: str
    """The index that new documents of an alias go to; "" for a data stream."""


def families_of(client: Client, name: str, mappings: Mapping[str, Mapping[str, Any]]) -> list[RolloverAlias]:
    """The families that the indices behind a name belong to. Raises `IndexUnusable` if the name is an alias with a
    filter: requests name the indices behind it, so it would not count."""
    streams = _streams(client, [index for index, mapping in mappings.items() if "_data_stream_timestamp" in mapping])
    found = [RolloverAlias(stream, frozenset(indices), True, "") for stream, indices in sorted(streams.items())]
    return found + _aliases(client, name)


def family_named(families: Iterable[RolloverAlias], name: str) -> RolloverAlias | None:
    """The one that the name itself is; None for any other name, behind which no index comes or goes."""
    return next((one for one in families if one.name == name), None)


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
                    f"Alias {alias} of index {index} has a filter, which we would pass over: name {index} itself, "
                    f"with the filter as a query where the command takes one."
                )
            indices.setdefault(alias, set()).add(index)
            if properties.get("is_write_index"):
                write[alias] = index
    return [RolloverAlias(alias, frozenset(indices[alias]), False, index) for alias, index in sorted(write.items())]


def _streams(client: Client, indices: Iterable[str]) -> dict[str, set[str]]:
    """Data stream -> its indices among those given."""
    found: dict[str, set[str]] = {}
    backing = sorted(indices)
    for start in range(0, len(backing), _MAX):
        named = ",".join(backing[start : start + _MAX])
        for one in client.request("GET", path("_resolve", "index", named))["indices"]:
            if "data_stream" in one:
                found.setdefault(one["data_stream"], set()).add(one["name"])
    return found


def next_index_has(client: Client, family: RolloverAlias, prefix: str, meta: Mapping[str, Any]) -> bool | None:
    """Whether the templates of the cluster give the next index of a family these settings; None where nobody tells."""
    try:
        answer = client.request("POST", _simulation(client, family))
    except RequestError:  # not permitted
        return None
    mappings: JSON = (answer or {}).get("template", {}).get("mappings", {})
    return bool(mappings.get("_meta", {}).get(prefix) == meta)


def _simulation(client: Client, family: RolloverAlias) -> str:
    """The request that tells what the next index would be like. The name of a data stream itself will not do there."""
    if family.data_stream:
        (stream,) = client.request("GET", path("_data_stream", family.name))["data_streams"]
        return path("_index_template", "_simulate", stream["template"])
    return path("_index_template", "_simulate_index", _following(family.writes_to))


def _following(index: str) -> str:
    """``logs-000002`` after ``logs-000001``, as a rollover names it; a name without a number takes a new one of the
    user's, for which the same templates are likely to hold."""
    numbered = _NUMBERED.fullmatch(index)
    return f"{index}-2" if numbered is None else f"{numbered[1]}{int(numbered[2]) + 1:06}"
