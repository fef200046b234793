"""What keeps an index from being written, as when a disk was full: found before work is done in vain."""

from __future__ import annotations

import json
from collections.abc import Mapping
from itertools import chain

from es_neardupe.clients import Client, path
from es_neardupe.errors import Blocked

__all__ = ["ASKED", "check_writable", "names_of", "way_out", "write_blocks"]

_STORE = "index.store.type"
_SNAPSHOTS = ("snapshot", "remote_snapshot")
"""Stores of searchable snapshots, in Elasticsearch and in OpenSearch: such an index is never written again."""

ASKED = f"index.blocks.*,{_STORE}"
"""The settings that tell."""

Blocks = Mapping[str, list[str]]
"""Concrete index -> the names of the settings that keep it from being written, at least one."""


def write_blocks(client: Client, name: str) -> Blocks:
    """What keeps an index, or those behind a name, from being written, such as ``index.blocks.read_only``."""
    answer = client.request("GET", path(name, "_settings", ASKED), params={"flat_settings": "true"}) or {}
    found = {
        index: sorted(key for key, value in entry["settings"].items() if _forbids(key, value))
        for index, entry in sorted(answer.items())
    }
    return {index: keys for index, keys in found.items() if keys}


def _forbids(key: str, value: object) -> bool:
    if key == _STORE:
        return value in _SNAPSHOTS
    return str(value) == "true" and key.rpartition(".")[2] in ("read_only", "read_only_allow_delete", "write")


def check_writable(client: Client, name: str, *, new: bool = False) -> None:
    """Raises `Blocked` for an index that is read-only, before any work is done in vain. ``new``: it has no keys yet,
    and these can be elsewhere."""
    if blocks := write_blocks(client, name):
        raise Blocked(
            f"Index {name} is blocked for writing by {', '.join(names_of(blocks))}. {way_out(name, blocks, new=new)}",
            status=403,
            type="cluster_block_exception",
        )


def names_of(blocks: Blocks) -> list[str]:
    """The settings, each once."""
    return sorted({*chain.from_iterable(blocks.values())})


def way_out(name: str, blocks: Blocks, *, new: bool = False) -> str:
    """What to say of the `write_blocks` of a name; see `check_writable`."""
    frozen = [index for index, keys in blocks.items() if _STORE in keys]
    others = {index: keys for index, keys in blocks.items() if index not in frozen}
    beside, said = f"`es-neardupe init {name} --sidecar`", []
    if frozen:
        said.append(
            f"{', '.join(frozen)}: a searchable snapshot, which nobody can write to. Keep keys and group ids "
            f"beside it, with {beside}."
        )
    if others:
        settings = json.dumps(dict.fromkeys(names_of(others)))
        said.append(f"If that is a mistake, or the disk has room again: PUT /{','.join(others)}/_settings {settings}")
        if new and not frozen:
            said.append(f"If it is meant to stay, keep the keys beside the index, with {beside}.")
    return " ".join(said)
