"""What a name stands for where our fields are in an index of our own, and the client that joins both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from es_neardupe.errors import Forbidden, IndexUnusable, NotFound, NotInitialised, SchemeMismatch
from es_neardupe.index.mapping import check_fields, check_seen, relations_left_alone
from es_neardupe.index.migration_state import inherited_prefix, next_prefix
from es_neardupe.index.rollover import families_of, family_named
from es_neardupe.index.sidecar.indices import must_be_stored, sidecar_name, sidecars_of, writes_group
from es_neardupe.index.target import (
    IndexTarget,
    SidecarLayout,
    check_new,
    mappings_of,
    not_rolled_over,
    result_window,
    serving_prefix,
    stored_settings,
    the_one_of,
    with_source_modes,
)
from es_neardupe.server.client import Client, path

__all__ = [
    "hidden_sidecar",
    "open_sidecar_target",
]

JSON = dict[str, Any]

_LONGEST_PATH = 3500
"""Servers refuse request lines over 4,096 bytes."""


def hidden_sidecar(client: Client, name: str, prefix: str) -> str:
    """The index beside that this user may not ask for, so that nobody knows whether it is there; "" if he may."""
    beside = sidecar_name(next(iter(mappings_of(client, name))), prefix)
    try:
        client.request("GET", path(beside, "_mapping"))
    except Forbidden:
        return beside
    except NotFound:
        pass
    return ""


def open_sidecar_target(
    client: Client, name: str, prefix: str, *, texts: bool, adopting: bool, writes: bool
) -> IndexTarget | None:
    """The target where our indices are beside the user's; None if there is none of them."""
    mappings = mappings_of(client, name)
    beside = sidecars_of(client, mappings, prefix)
    if not beside:
        return None
    coming = sidecars_of(client, mappings, next_prefix(prefix))
    if (serving := serving_prefix(name, coming, prefix, writes=writes)) != prefix:
        prefix, beside = serving, coming
    mappings = with_source_modes(client, name, mappings)
    families = families_of(client, name, mappings)
    _check_each(name, mappings, beside, prefix)
    new = tuple(index for index in mappings if index not in beside)
    if unknown := not_rolled_over(families, new=new, prepared=beside.keys()):
        raise NotInitialised(
            f"Index {', '.join(unknown)} has no keys beside it yet: run `es-neardupe init {name} --sidecar` with the "
            f"same settings again."
        )
    check_new(name, prefix, families, new=new, prepared=beside.keys(), adopting=adopting)
    settings = the_one_of({index: stored_settings(one, prefix) for index, one in beside.items()}, name)
    for index, mapping in beside.items():
        check_fields(sidecar_name(index, prefix), mapping, settings)
        if texts:
            check_seen(index, mappings[index], settings)
    stored = tuple(index for index, mapping in mappings.items() if must_be_stored(index, mapping, settings))
    if stored and len(stored) < len(mappings):
        raise IndexUnusable(f"Of {name}, only {', '.join(stored)} lacks texts in _source: name the indices one by one.")
    names = tuple(sidecar_name(index, prefix) for index in sorted(mappings))
    if len(",".join(names)) > _LONGEST_PATH:
        raise IndexUnusable(
            f"{name} stands for {len(names)} indices: the names of those beside them are too long for one request. "
            f"Name some of them, by a narrower pattern."
        )
    write_group = any(writes_group(one) for one in beside.values())
    there = [sidecar_name(index, prefix) for index in beside]
    return IndexTarget(
        name,
        tuple(sorted(mappings)),
        settings,
        min(result_window(client, one) for one in (name, *there)),
        family_named(families, name),
        relations_left_alone(mappings.values(), settings.relations),
        new,
        inherits=inherited_prefix(beside.values(), prefix),
        sidecar=SidecarLayout(write_group, stored),
    )


def _check_each(name: str, mappings: Mapping[str, JSON], beside: Mapping[str, JSON], prefix: str) -> None:
    """All indices must have ours beside them."""
    without = [index for index in mappings if index not in beside]
    inside = [index for index in without if stored_settings(mappings[index], prefix) is not None]
    if inside:
        raise SchemeMismatch(
            f"Of {name}, {', '.join(inside)} has keys in its documents, and others have them beside: name them apart."
        )
    unreadable = [index for index, one in beside.items() if stored_settings(one, prefix) is None]
    if unreadable:
        raise NotInitialised(
            f"The index beside {', '.join(unreadable)} has lost its settings: run `es-neardupe init {name} --sidecar` "
            f"with the same settings again."
        )
