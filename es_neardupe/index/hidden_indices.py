"""Hidden indices: the registry of groups and the evidence of pairs, each in a separate index.

They are hidden so that a pattern such as ``news-*`` does not include them in a search.
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
from es_neardupe.index.mapping import load_mapping
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

_MAX_NAME = 255
"""Maximum length of the name of an index, in bytes."""
_NOT_IN_NAMES = re.compile(r"[^a-z0-9._-]")


class HiddenIndex(str, Enum):
    """Kind of a hidden index; its mapping is ``mappings/<value>.json``."""

    GROUPS = "groups"
    """The registry: one document per group, the settings of the last run, and the lease of a running one."""
    PAIRS = "pairs"
    """The evidence: one document per verified pair."""


@dataclass(frozen=True, slots=True)
class StoredDocument:
    """A document of a hidden index, with the version that was read."""

    source: Mapping[str, Any]
    seq_no: int
    primary_term: int


def hidden_index_name(target: IndexTarget, kind: HiddenIndex) -> str:
    """``<index>-<prefix>-groups`` for one concrete index; otherwise ``<prefix>-groups-<name>``, by the opened name.

    The second form is for names that resolve to several indices, and for rollover aliases, even if these have only one
    index now. The template of such indices (``<name>-*``) does not match it. Characters that are not allowed in index
    names are replaced, and names that are too long are cut; a hash keeps such names distinct.
    """
    prefix = target.settings.prefix.lower()
    if target.rollover_alias is not None or len(target.indices) > 1:
        front = f"{prefix}-{kind.value}-"
        return front + _plain(target.name, _MAX_NAME - len(front))
    end = f"-{prefix}-{kind.value}"
    return _plain(target.indices[0], _MAX_NAME - len(end)) + end


def _plain(name: str, maximum: int) -> str:
    """A valid index name of at most ``maximum`` characters. Leading dots, reserved for the server, are removed."""
    plain = _NOT_IN_NAMES.sub("_", name).lstrip(".")
    if plain == name and len(plain) <= maximum:
        return plain
    hashed = f"-{hashlib.sha256(name.encode()).hexdigest()[:8]}"
    return plain[: maximum - len(hashed)] + hashed


def hidden_indices_of_all(client: Client, prefix: str, kind: HiddenIndex) -> list[str]:
    """The names of all hidden indices of a kind under a prefix, of any index; only those that this user may see."""
    prefix = prefix.lower()
    patterns = f"*-{prefix}-{kind.value},{prefix}-{kind.value}-*"
    try:
        names = client.request("GET", path(patterns, "_settings", "index.uuid"), params={"expand_wildcards": "all"})
    except (Forbidden, NotFound):
        return []
    return sorted(names or ())


def ensure(index: Index, kind: HiddenIndex) -> str:
    """The name of a hidden index, created if it is missing. Raises `RequestError` if the user may not create it."""
    name = hidden_index_name(index.target, kind)
    settings = {"index": {"hidden": True, "number_of_shards": 1, "auto_expand_replicas": "0-1"}}
    try:
        if not exists(index.client, name):
            index.client.request("PUT", path(name), body={"settings": settings, "mappings": load_mapping(kind.value)})
    except RequestError as error:
        if error.type != "resource_already_exists_exception":  # another run was faster
            raise
    return name


def exists(client: Client, name: str) -> bool:
    """Whether an index of this name exists."""
    try:
        client.request("GET", path(name, "_settings", "index.uuid"))
    except NotFound:
        return False
    return True


def read(client: Client, name: str, id: str) -> StoredDocument | None:
    """The current version of a document, without a refresh; None if it or the index does not exist."""
    try:
        answer = client.request("GET", path(name, "_doc", id))
    except NotFound:
        return None
    return StoredDocument(answer["_source"], answer["_seq_no"], answer["_primary_term"])


def store(client: Client, name: str, id: str, source: Mapping[str, Any], before: StoredDocument | None) -> None:
    """Replace the version ``before`` of a document, or create it (None). `read` returns it at once.

    Raises `Conflict` if another client has written it since. If the stored document equals ``source``, this is not a
    conflict: the answer to this write was lost, and the request was repeated.
    """
    params: dict[str, str | int | bool] = {"op_type": "create"}
    if before is not None:
        params = {"if_seq_no": before.seq_no, "if_primary_term": before.primary_term}
    try:
        client.request("PUT", path(name, "_doc", id), params=params, body=source)
    except Conflict:
        stored = read(client, name, id)
        if stored is None or stored.source != json.loads(to_json(source)):
            raise


def remove(index: Index) -> list[str]:
    """Delete the hidden indices of an index; returns the names of those that existed."""
    removed = []
    for kind in HiddenIndex:
        name = hidden_index_name(index.target, kind)
        with suppress(NotFound):
            index.client.request("DELETE", path(name))
            removed.append(name)
    return removed
