"""Prepare our index beside each of the user's; the user's get nothing, or with ``--write-group`` the group field."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from es_neardupe.errors import Conflict, MappingConflict, RequestError, SchemeMismatch
from es_neardupe.index import mapping as schema
from es_neardupe.index.index import Index
from es_neardupe.index.mapping import check_source, check_text_fields
from es_neardupe.index.permissions import check_writable
from es_neardupe.index.settings import Settings
from es_neardupe.index.sidecar.names import sidecar_mapping, sidecar_name, writes_group
from es_neardupe.index.sidecar.open import must_be_stored, sidecars_of
from es_neardupe.index.target import mappings_of, prepare_new, stored_settings
from es_neardupe.server.client import Client, path

__all__ = ["Sidecars", "check_inline", "prepare_rolled_over"]

JSON = dict[str, Any]


def check_inline(client: Client, mappings: Mapping[str, JSON], prefix: str) -> None:
    """Raises `SchemeMismatch` where our fields are beside an index already."""
    if found := sidecars_of(client, mappings, prefix):
        raise SchemeMismatch(
            f"The keys of {', '.join(found)} are kept beside it: run init with --sidecar, choose another --prefix, or "
            f"remove them with `es-neardupe clean {next(iter(found))}` first."
        )


def prepare_rolled_over(index: Index) -> None:
    """Give the indices that a rollover made the fields and settings of their siblings, or ours beside them.

    Raises what `prepare_new` does.
    """
    if index.target.sidecar is None:
        prepare_new(index)
    elif index.target.new:
        mappings = {concrete: mappings_of(index.client, concrete)[concrete] for concrete in index.target.new}
        write_group = index.target.sidecar.write_group
        Sidecars(index.client, index.name, mappings, index.settings, write_group=write_group).prepare(index.settings)


class Sidecars:
    """Our indices beside some of the user's, as they are and as they have to be."""

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
        """Put settings in the place of what those tell that are there."""
        for index in self.known:
            self._make(index, settings)

    def make(self, settings: Settings, notes: Mapping[str, Any]) -> None:
        """As `note`, with notes beside the settings; those that are missing are made so."""
        for index in self._mappings:
            self._make(index, settings, notes)

    def _lacks(self, index: str, mapping: JSON, settings: Settings) -> bool:
        prefix = settings.prefix
        if stored_settings(mapping, prefix) is not None:
            raise SchemeMismatch(
                f"Index {index} has keys in its documents already: remove them with `es-neardupe clean {index}` first, "
                f"or choose another --prefix."
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
                f"Index {index} has keys beside it already, with other settings ({'; '.join(differences)}). Use those, "
                f"or go over to the others with `es-neardupe migrate {index}`, or choose another --prefix beside the "
                f"first."
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
