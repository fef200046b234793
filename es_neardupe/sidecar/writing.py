"""Writes of our fields, sent to our index instead of the user's."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from typing import Any

from es_neardupe.clients import to_json
from es_neardupe.sidecar.names import REFERENCE

__all__ = ["redirected"]


def redirected(body: bytes, names: Mapping[str, str], *, mark: bool) -> bytes:
    """The same bulk request with other names of indices. ``mark``: updates say that the user's document does not have
    its group id yet."""
    return b"".join(_lines(body.split(b"\n"), names, mark))


def _lines(lines: list[bytes], names: Mapping[str, str], mark: bool) -> Iterator[bytes]:
    waiting = iter(lines)
    for line in waiting:
        if not line:
            continue
        head: dict[str, Any] = json.loads(line)
        ((op, meta),) = head.items()
        ours = meta["_index"] in names
        meta["_index"] = names.get(meta["_index"], meta["_index"])
        yield to_json(head) + b"\n"
        if op == "delete":
            continue
        content = next(waiting)
        if mark and ours and op == "update":
            change = json.loads(content)
            change["doc"][REFERENCE] = {"mirrored": False}
            content = to_json(change)
        yield content + b"\n"
