"""What keeps an index from being written, as when a disk was full: found before work is done in vain."""

from __future__ import annotations

import json
from collections.abc import Sequence

from es_neardupe.clients import Client, path
from es_neardupe.errors import Blocked

__all__ = ["check_writable", "way_to_lift", "write_blocks"]


def write_blocks(client: Client, name: str) -> list[str]:
    """The blocks that keep an index from being written, such as ``index.blocks.read_only``."""
    found = client.request("GET", path(name, "_settings", "index.blocks.*"), params={"flat_settings": "true"})
    return sorted(
        {
            key
            for entry in (found or {}).values()
            for key, value in entry["settings"].items()
            if str(value) == "true" and key.rpartition(".")[2] in ("read_only", "read_only_allow_delete", "write")
        }
    )


def check_writable(client: Client, name: str) -> None:
    """Raises `Blocked` for an index that is read-only, before any work is done in vain."""
    if blocks := write_blocks(client, name):
        raise Blocked(
            f"Index {name} is blocked for writing by {', '.join(blocks)}. {way_to_lift(name, blocks)}",
            status=403,
            type="cluster_block_exception",
        )


def way_to_lift(name: str, blocks: Sequence[str]) -> str:
    """What to say of `write_blocks`."""
    settings = json.dumps(dict.fromkeys(blocks))
    return f"If that is a mistake, or the disk has room again: PUT /{name}/_settings {settings}"
