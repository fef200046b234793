"""Names and mapping of the sidecar index."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping
from typing import Any

from es_neardupe.index.mapping import companion_mapping, fields_mapping
from es_neardupe.index.settings import Settings

__all__ = ["REFERENCE", "sidecar_mapping", "sidecar_name", "writes_group"]


REFERENCE = "@source"
"""The object that says of which document an entry is: no prefix can be called so."""


_NOT_IN_NAMES = re.compile(r"^\.+|[^a-z0-9._-]")


_ROLLED_OVER = re.compile(r"^\.ds-|-\d+$")


def sidecar_name(index: str, prefix: str) -> str:
    """``<index>-<prefix>-sidecar`` for a concrete index.

    Of one that a rollover makes (its name ends with a number), ``<prefix>-sidecar-<index>``: else the template of such
    indices would take ours for one of them, and put it behind their alias. Leading dots are reserved for indices of the
    server: what is replaced is kept apart by a hash.
    """
    plain = _NOT_IN_NAMES.sub("", index)
    if plain != index:
        plain += f"-{hashlib.sha256(index.encode()).hexdigest()[:8]}"
    prefix = prefix.lower()
    return f"{prefix}-sidecar-{plain}" if _ROLLED_OVER.search(index) else f"{plain}-{prefix}-sidecar"


def sidecar_mapping(
    index: str, settings: Settings, *, write_group: bool, notes: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The mapping of our index: our object as it is in documents, and the reference; in ``_meta`` the settings, with
    ``notes`` to keep there."""
    mapping = companion_mapping("sidecar")
    meta = {
        settings.prefix: {**settings.to_meta(), **(notes or {})},
        REFERENCE: {"index": index, "write_group": write_group},
    }
    properties = mapping["properties"] | {settings.prefix: fields_mapping()}
    return mapping | {"_meta": meta, "properties": properties}


def writes_group(mapping: Mapping[str, Any]) -> bool:
    """Whether group ids are written into the user's documents, by the mapping of our index."""
    return bool(mapping.get("_meta", {}).get(REFERENCE, {}).get("write_group", False))
