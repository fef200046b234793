"""Resolution of a name whose keys are in sidecar indices."""

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
    """The sidecar index that this user may not ask for, so that nobody knows whether it exists; "" if they may."""
    hidden = sidecar_name(next(iter(mappings_of(client, name))), prefix)
    try:
        client.request("GET", path(hidden, "_mapping"))
    except Forbidden:
        return hidden
    except NotFound:
        pass
    return ""


def open_sidecar_target(
    client: Client, name: str, prefix: str, *, texts: bool, adopting: bool, writes: bool
) -> IndexTarget | None:
    """The target of a name with sidecar indices; None if there is none of them."""
    mappings = mappings_of(client, name)
    sidecars = sidecars_of(client, mappings, prefix)
    if not sidecars:
        return None
    coming = sidecars_of(client, mappings, next_prefix(prefix))
    if (serving := serving_prefix(name, coming, prefix, writes=writes)) != prefix:
        prefix, sidecars = serving, coming
    mappings = with_source_modes(client, name, mappings)
    families = families_of(client, name, mappings)
    _check_each(name, mappings, sidecars, prefix)
    new = tuple(index for index in mappings if index not in sidecars)
    if unknown := not_rolled_over(families, new=new, prepared=sidecars.keys()):
        raise NotInitialised(
            f"Index {', '.join(unknown)} has no sidecar index yet: run `es-neardupe init {name} --sidecar` with the "
            f"same settings again."
        )
    check_new(name, prefix, families, new=new, prepared=sidecars.keys(), adopting=adopting)
    settings = the_one_of({index: stored_settings(one, prefix) for index, one in sidecars.items()}, name)
    for index, mapping in sidecars.items():
        check_fields(sidecar_name(index, prefix), mapping, settings)
        if texts:
            check_seen(index, mappings[index], settings)
    stored = tuple(index for index, mapping in mappings.items() if must_be_stored(index, mapping, settings))
    if stored and len(stored) < len(mappings):
        raise IndexUnusable(f"Of {name}, only {', '.join(stored)} lacks texts in _source: name the indices one by one.")
    names = tuple(sidecar_name(index, prefix) for index in sorted(mappings))
    if len(",".join(names)) > _LONGEST_PATH:
        raise IndexUnusable(
            f"{name} stands for {len(names)} indices: the names of their sidecar indices are too long for one request. "
            f"Use a narrower pattern."
        )
    write_group = any(writes_group(one) for one in sidecars.values())
    there = [sidecar_name(index, prefix) for index in sidecars]
    return IndexTarget(
        name,
        tuple(sorted(mappings)),
        settings,
        min(result_window(client, one) for one in (name, *there)),
        family_named(families, name),
        relations_left_alone(mappings.values(), settings.relations),
        new,
        inherits=inherited_prefix(sidecars.values(), prefix),
        sidecar=SidecarLayout(write_group, stored),
    )


def _check_each(name: str, mappings: Mapping[str, JSON], sidecars: Mapping[str, JSON], prefix: str) -> None:
    """All indices must have a sidecar index."""
    without = [index for index in mappings if index not in sidecars]
    inside = [index for index in without if stored_settings(mappings[index], prefix) is not None]
    if inside:
        raise SchemeMismatch(
            f"Of {name}, {', '.join(inside)} has keys in its documents, and others have a sidecar index: name them "
            f"separately."
        )
    unreadable = [index for index, one in sidecars.items() if stored_settings(one, prefix) is None]
    if unreadable:
        raise NotInitialised(
            f"The sidecar index of {', '.join(unreadable)} has lost its settings: run `es-neardupe init {name} "
            f"--sidecar` with the same settings again."
        )
