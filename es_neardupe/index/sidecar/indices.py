"""Sidecar indices: their names and mappings, which of them exist, and how they are made.

Each index of the user's has one of its own. The user's indices get nothing, or with ``--write-group`` the group field.
"""

from __future__ import annotations

import hashlib
import re
from collections.abc import Mapping, Sequence
from typing import Any

from es_neardupe.errors import Conflict, Forbidden, IndexUnusable, MappingConflict, RequestError, SchemeMismatch
from es_neardupe.index import mapping as schema
from es_neardupe.index.mapping import check_source, check_text_fields, companion_mapping, fields_mapping
from es_neardupe.index.permissions import check_writable
from es_neardupe.index.settings import Settings
from es_neardupe.index.target import stored_settings
from es_neardupe.server.bulk import chunked
from es_neardupe.server.client import Client, path

__all__ = [
    "REFERENCE",
    "Sidecars",
    "check_inline",
    "must_be_stored",
    "sidecar_mapping",
    "sidecar_name",
    "sidecars_of",
    "writes_group",
]

JSON = dict[str, Any]

REFERENCE = "@source"
"""The object that names the document of an entry; no prefix can have this name."""


_NOT_IN_NAMES = re.compile(r"^\.+|[^a-z0-9._-]")


_ROLLED_OVER = re.compile(r"^\.ds-|-\d+$")


def sidecar_name(index: str, prefix: str) -> str:
    """``<index>-<prefix>-sidecar`` for a concrete index.

    For an index that a rollover makes (its name ends with a number), ``<prefix>-sidecar-<index>``: otherwise the
    template of such indices would match the sidecar index, and put it behind their alias. Leading dots are reserved for
    indices of the server: they are removed, and a hash keeps such names distinct.
    """
    plain = _NOT_IN_NAMES.sub("", index)
    if plain != index:
        plain += f"-{hashlib.sha256(index.encode()).hexdigest()[:8]}"
    prefix = prefix.lower()
    return f"{prefix}-sidecar-{plain}" if _ROLLED_OVER.search(index) else f"{plain}-{prefix}-sidecar"


def sidecar_mapping(
    index: str, settings: Settings, *, write_group: bool, notes: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The mapping of a sidecar index: our object as it is in documents, and the reference; in ``_meta`` the settings
    and ``notes``."""
    mapping = companion_mapping("sidecar")
    meta = {
        settings.prefix: {**settings.to_meta(), **(notes or {})},
        REFERENCE: {"index": index, "write_group": write_group},
    }
    properties = mapping["properties"] | {settings.prefix: fields_mapping()}
    return mapping | {"_meta": meta, "properties": properties}


def writes_group(mapping: Mapping[str, Any]) -> bool:
    """Whether group ids are written into the user's documents, by the mapping of the sidecar index."""
    return bool(mapping.get("_meta", {}).get(REFERENCE, {}).get("write_group", False))


def sidecars_of(client: Client, mappings: Mapping[str, JSON], prefix: str) -> dict[str, JSON]:
    """Concrete index -> the mapping of its sidecar index, for those that have one which this user may know of."""
    found: dict[str, JSON] = {}
    names = {sidecar_name(index, prefix): index for index in mappings}
    for some in chunked(names, 20):
        answer = _visible_mappings(client, some)
        found |= {names[name]: answer[name]["mappings"] for name in some if name in answer}
    return found


def _visible_mappings(client: Client, names: Sequence[str]) -> dict[str, JSON]:
    """Those of the indices that exist and that this user has rights on. OpenSearch refuses a request as a whole if
    there are none on one of the names, even if no index has it."""
    try:
        return client.request("GET", path(",".join(names), "_mapping"), params={"ignore_unavailable": True}) or {}
    except Forbidden:
        if len(names) == 1:
            return {}
        return {index: mapping for name in names for index, mapping in _visible_mappings(client, [name]).items()}


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


def check_inline(client: Client, mappings: Mapping[str, JSON], prefix: str) -> None:
    """Raises `SchemeMismatch` if an index has a sidecar index already."""
    if found := sidecars_of(client, mappings, prefix):
        raise SchemeMismatch(
            f"The keys of {', '.join(found)} are in a sidecar index: run init with `sidecar`, choose another `prefix`, "
            f"or remove them with `es-neardupe clean {next(iter(found))}` first."
        )


class Sidecars:
    """The sidecar indices of some indices of the user's, as they are and as they have to be."""

    def __init__(
        self, client: Client, name: str, mappings: Mapping[str, JSON], settings: Settings, *, write_group: bool
    ) -> None:
        self._client = client
        self._name = name
        self._mappings = mappings
        self.known = sidecars_of(client, mappings, settings.prefix)
        """The mappings of those that are there, by the user's index."""
        self.names = tuple(sidecar_name(index, settings.prefix) for index in sorted(mappings))
        self.write_group = write_group or any(writes_group(one) for one in self.known.values())
        """Once chosen, it stays till `clean`."""

    def prepare(self, settings: Settings) -> tuple[str, ...]:
        """Make what is missing; returns the user's indices for which anything was. Raises what forbids it, before
        anything is written."""
        lacking = [index for index, mapping in self._mappings.items() if self._lacks(index, mapping, settings)]
        if self.write_group and lacking:
            check_writable(self._client, self._name)
        for index in lacking:
            if self.write_group:
                self._map_group(index, settings.prefix)
            self._make(index, settings)
        return tuple(lacking)

    def note(self, settings: Settings) -> None:
        """Replace the settings in those that exist."""
        for index in self.known:
            self._make(index, settings)

    def make(self, settings: Settings, notes: Mapping[str, Any]) -> None:
        """As `note`, with ``notes`` in addition to the settings; missing ones are made so."""
        for index in self._mappings:
            self._make(index, settings, notes)

    def _lacks(self, index: str, mapping: JSON, settings: Settings) -> bool:
        prefix = settings.prefix
        if stored_settings(mapping, prefix) is not None:
            raise SchemeMismatch(
                f"Index {index} has keys in its documents already: remove them with `es-neardupe clean {index}` first, "
                f"or choose another `prefix`."
            )
        check_text_fields(index, mapping, settings)
        must_be_stored(index, mapping, settings)
        if self.write_group:
            check_source(index, mapping, settings)
            if found := schema.conflicts(mapping.get("properties", {}), prefix):
                raise MappingConflict(f"Index {index} cannot take {prefix}.group: {'; '.join(found)}.")
        known = self.known.get(index)
        stored = None if known is None else stored_settings(known, prefix)
        if known is None or stored is None:
            return True
        if differences := stored.differences(settings):
            raise SchemeMismatch(
                f"Index {index} already has a sidecar index with other settings ({'; '.join(differences)}). Use those, "
                f"or switch to the others with `es-neardupe migrate {index}`, or choose another `prefix`."
            )
        return self.write_group is not writes_group(known)

    def _map_group(self, index: str, prefix: str) -> None:
        group = schema.fields_mapping()["properties"]["group"]
        body = {"properties": {prefix: {"dynamic": "strict", "properties": {"group": group}}}}
        self._client.request("PUT", path(index, "_mapping"), body=body)

    def _make(self, index: str, settings: Settings, notes: Mapping[str, Any] | None = None) -> None:
        """As many shards as the user's index has, so that reading both takes as long."""
        mapping = sidecar_mapping(index, settings, write_group=self.write_group, notes=notes)
        name = path(sidecar_name(index, settings.prefix))
        if index in self.known:
            meta = {**self.known[index].get("_meta", {}), **mapping["_meta"]}  # with what --tune notes there
            self._client.request("PUT", f"{name}/_mapping", body={"_meta": meta})
            return
        shards = {"number_of_shards": _shards(self._client, index)}
        body = {"settings": {"index": {"hidden": True, "auto_expand_replicas": "0-1", **shards}}, "mappings": mapping}
        try:
            self._client.request("PUT", name, body=body)
        except RequestError as error:
            if error.type == "resource_already_exists_exception":
                raise Conflict(
                    f"Somebody else made {name[1:]} at the same time: run init again.",
                    status=409,
                    type=error.type,
                    reason=error.reason,
                ) from error
            raise


def _shards(client: Client, index: str) -> int:
    found = client.request("GET", path(index, "_settings", "index.number_of_shards"), params={"flat_settings": "true"})
    return int(found[index]["settings"]["index.number_of_shards"])
