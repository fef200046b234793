"""What a name stands for where our fields are in an index of our own, and the client that joins both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from es_neardupe.errors import Forbidden, IndexUnusable, NotFound, NotInitialised, SchemeMismatch
from es_neardupe.index.mapping import check_fields, check_seen, relations_left_alone
from es_neardupe.index.migration_state import inherited_prefix, next_prefix, replaced_prefix
from es_neardupe.index.rollover import families_of, family_named
from es_neardupe.index.settings import Settings
from es_neardupe.index.sidecar.names import sidecar_name, writes_group
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
)
from es_neardupe.records import Product
from es_neardupe.server.bulk import chunked
from es_neardupe.server.client import Client, path

__all__ = [
    "hidden_sidecar",
    "kept_beside",
    "must_be_stored",
    "open_sidecar_target",
    "sidecars_of",
    "telling_mappings",
    "with_source_modes",
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


def sidecars_of(client: Client, mappings: Mapping[str, JSON], prefix: str) -> dict[str, JSON]:
    """Concrete index -> the mapping of our index beside it, for those that have one which this user may know of."""
    found: dict[str, JSON] = {}
    names = {sidecar_name(index, prefix): index for index in mappings}
    for some in chunked(names, 20):
        answer = _visible_mappings(client, some)
        found |= {names[name]: answer[name]["mappings"] for name in some if name in answer}
    return found


def _visible_mappings(client: Client, names: Sequence[str]) -> dict[str, JSON]:
    """Those of the indices that are there and that this user has rights on. OpenSearch refuses a request as a whole if
    there are none on one of the names, be it the name of nothing."""
    try:
        return client.request("GET", path(",".join(names), "_mapping"), params={"ignore_unavailable": True}) or {}
    except Forbidden:
        if len(names) == 1:
            return {}
        return {index: mapping for name in names for index, mapping in _visible_mappings(client, [name]).items()}


def kept_beside(client: Client, mappings: Mapping[str, JSON], prefix: str) -> dict[str, JSON]:
    """As `sidecars_of`, where no index has keys in its documents; nothing is asked where one has."""
    inside = any(prefix in mapping.get("_meta", {}) for mapping in mappings.values())
    return {} if inside else sidecars_of(client, mappings, prefix)


def telling_mappings(client: Client, name: str, prefix: str) -> dict[str, JSON]:
    """Concrete index -> the mapping whose ``_meta`` tells of our keys under a prefix, and of a migration from or to
    them: its own, or where they are beside it, one with all that our indices there tell."""
    mappings = mappings_of(client, name)
    plain = replaced_prefix(prefix)
    kept = dict.fromkeys((plain, prefix))
    if any(one in mapping.get("_meta", {}) for mapping in mappings.values() for one in (*kept, next_prefix(prefix))):
        return mappings
    metas: dict[str, JSON] = {index: {} for index in mappings}
    for beside in (
        sidecars_of(client, mappings, plain),
        *(sidecars_of(client, mappings, next_prefix(one)) for one in kept),
    ):
        for index, mapping in beside.items():
            metas[index] |= mapping.get("_meta", {})
    return {index: {"_meta": meta} for index, meta in metas.items()} if any(metas.values()) else mappings


def with_source_modes(client: Client, name: str, mappings: Mapping[str, JSON]) -> dict[str, JSON]:
    """The mappings of the indices behind a name, with the mode of ``_source`` in them: Elasticsearch can have it as a
    setting instead."""
    if client.server.product is not Product.ELASTICSEARCH:
        return dict(mappings)
    setting = "index.mapping.source.mode"
    found = client.request("GET", path(name, "_settings", setting), params={"flat_settings": "true"}) or {}
    modes = {index: entry["settings"].get(setting) for index, entry in found.items()}
    return {
        index: {"_source": {"mode": modes[index]}, **mapping} if modes.get(index) else mapping
        for index, mapping in mappings.items()
    }


def must_be_stored(index: str, mapping: Mapping[str, Any], settings: Settings) -> bool:
    """Whether texts are read from stored fields because ``_source`` lacks them. Raises `IndexUnusable` where they
    are in neither."""
    source = mapping.get("_source", {})
    off = source.get("enabled") is False or source.get("mode") == "disabled"
    if not off and not source.get("excludes") and not source.get("includes"):
        return False
    lacking = [name for name in settings.fields if not _is_stored(mapping.get("properties", {}), name)]
    if lacking:
        raise IndexUnusable(
            f"Index {index} keeps {', '.join(lacking)} neither in _source nor as a stored field: its texts cannot be "
            f"read back, and no keys made. Re-index it from where the texts are, with _source or `store: true`."
        )
    return True


def _is_stored(properties: Mapping[str, Any], name: str) -> bool:
    mapping: Mapping[str, Any] = {"properties": properties}
    for part in name.split("."):
        mapping = mapping.get("properties", {}).get(part, {})
    return mapping.get("store") in (True, "true")


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
    there = tuple(sidecar_name(index, prefix) for index in sorted(beside))
    return IndexTarget(
        name,
        tuple(sorted(mappings)),
        settings,
        min(result_window(client, one) for one in (name, *there)),
        family_named(families, name),
        relations_left_alone(mappings.values(), settings.relations),
        new,
        inherits=inherited_prefix(beside.values(), prefix),
        sidecar=SidecarLayout(there, write_group, stored),
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
