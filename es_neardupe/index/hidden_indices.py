"""Indices of our own beside the user's: the registry of groups, and the evidence of pairs.

They are hidden, so that a pattern such as ``news-*`` does not search them with the user's own.
"""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass
from enum import Enum
from typing import TYPE_CHECKING, Any

from es_neardupe.errors import Conflict, Forbidden, NotFound, RequestError
from es_neardupe.index.mapping import companion_mapping
from es_neardupe.index.target import IndexTarget
from es_neardupe.server.client import Client, path, to_json

if TYPE_CHECKING:
    from es_neardupe.index.index import Index

__all__ = [
    "HiddenIndex",
    "StoredDocument",
    "ensure",
    "exists",
    "hidden_index_name",
    "hidden_indices_of_all",
    "read",
    "remove",
    "store",
]

_LONGEST = 255
"""Bytes of the name of an index."""
_NOT_IN_NAMES = re.compile(r"[^a-z0-9._-]")


class HiddenIndex(str, Enum):
    """What an index of ours holds; its mapping is ``mappings/<value>.json``."""

    GROUPS = "groups"
    """The registry: one document a group, the settings of the last run, the lease of a running one."""
    PAIRS = "pairs"
    """The evidence: one document a verified pair."""


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document of ours with the version it was read at."""

    source: Mapping[str, Any]
    seq_no: int
    primary_term: int


def hidden_index_name(target: IndexTarget, kind: HiddenIndex) -> str:
    """``<index>-<prefix>-groups`` beside one concrete index; else ``<prefix>-groups-<name>``, after what was named.

    The second is for an alias or a pattern of several, and for a data stream or an alias with a write index, even if
    that has but one index now. The template of such indices (``<name>-*``) does not take it for another of them. What
    index names may not hold is replaced, one that would be too long is cut, and a hash keeps such names apart.
    """
    prefix = target.settings.prefix.lower()
    if target.family is not None or len(target.indices) > 1:
        front = f"{prefix}-{kind.value}-"
        return front + _plain(target.name, _LONGEST - len(front))
    end = f"-{prefix}-{kind.value}"
    return _plain(target.indices[0], _LONGEST - len(end)) + end


def _plain(name: str, longest: int) -> str:
    """What an index may be called; no dot in front, which is for the indices of the server itself."""
    plain = _NOT_IN_NAMES.sub("_", name).lstrip(".")
    if plain == name and len(plain) <= longest:
        return plain
    hashed = f"-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return plain[: longest - len(hashed)] + hashed


def hidden_indices_of_all(client: Client, prefix: str, kind: HiddenIndex) -> list[str]:
    """The names of the indices of this kind under a prefix, whichever index they are beside; as far as this user may
    know of them."""
    prefix = prefix.lower()
    patterns = f"*-{prefix}-{kind.value},{prefix}-{kind.value}-*"
    try:
        found = client.request("GET", path(patterns, "_settings", "index.uuid"), params={"expand_wildcards": "all"})
    except (Forbidden, NotFound):
        return []
    return sorted(found or ())


def ensure(index: Index, kind: HiddenIndex) -> str:
    """The name of the index, made if it is missing. Raises `RequestError` where the user may not make it."""
    name = hidden_index_name(index.target, kind)
    settings = {"index": {"hidden": True, "number_of_shards": 1, "auto_expand_replicas": "0-1"}}
    try:
        if not exists(index.client, name):
            index.client.request(
                "PUT", path(name), body={"settings": settings, "mappings": companion_mapping(kind.value)}
            )
    except RequestError as error:
        if error.type != "resource_already_exists_exception":  # another run was faster
            raise
    return name


def exists(client: Client, name: str) -> bool:
    """Whether there is an index of this name."""
    try:
        client.request("GET", path(name, "_settings", "index.uuid"))
    except NotFound:
        return False
    return True


def read(client: Client, name: str, id: str) -> StoredDocument | None:
    """One document as it is this moment, before any refresh; None if it, or the index, is missing."""
    try:
        answer = client.request("GET", path(name, "_doc", id))
    except NotFound:
        return None
    return StoredDocument(answer["_source"], answer["_seq_no"], answer["_primary_term"])


def store(client: Client, name: str, id: str, source: Mapping[str, Any], before: StoredDocument | None) -> None:
    """Write one document in the place of what was read before (None: of nothing). `read` sees it at once.

    Raises `Conflict` if somebody else wrote it since. That it stands there as it was to be is none: then the answer to
    our own write was lost, and it was sent again.
    """
    params: dict[str, str | int | bool] = {"op_type": "create"}
    if before is not None:
        params = {"if_seq_no": before.seq_no, "if_primary_term": before.primary_term}
    try:
        client.request("PUT", path(name, "_doc", id), params=params, body=source)
    except Conflict:
        found = read(client, name, id)
        if found is None or found.source != json.loads(to_json(source)):
            raise


def remove(index: Index) -> list[str]:
    """Delete the companions of an index; returns the names of those that were there."""
    removed = []
    for kind in HiddenIndex:
        name = hidden_index_name(index.target, kind)
        with suppress(NotFound):
            index.client.request("DELETE", path(name))
            removed.append(name)
    return removed
