"""Sidecar indices: their names and mappings, their creation, and the resolution of an index name to them.

Each index has a sidecar index of its own. The index itself gets no `neardupe` fields, or with ``--write-group`` only
the group field.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from es_neardupe.errors import (
    Conflict,
    Forbidden,
    IndexUnusable,
    MappingConflict,
    NotFound,
    NotInitialised,
    RequestError,
    SchemeMismatch,
)
from es_neardupe.index import mapping as schema
from es_neardupe.index.handle import IndexHandle, UnpreparedIndex
from es_neardupe.index.hidden_indices import OwnerMark, hidden_settings, index_name
from es_neardupe.index.mapping import (
    check_fields,
    check_fields_visible,
    check_source,
    check_text_fields,
    fields_mapping,
    load_mapping,
    relations_to_skip,
)
from es_neardupe.index.migration_state import inherited_prefix, next_prefix
from es_neardupe.index.permissions import check_writable
from es_neardupe.index.rollover import alias_named
from es_neardupe.index.settings import Settings
from es_neardupe.index.target import (
    Definitions,
    IndexTarget,
    SidecarLayout,
    check_unprepared,
    common_settings,
    not_rolled_over,
    result_window,
    serving_prefix,
    stored_settings,
    with_stored_versions,
)
from es_neardupe.server.bulk import chunked
from es_neardupe.server.client import JSON, Client, path
from es_neardupe.wording import command, option

REFERENCE = "@source"
"""Object field of an entry that names its document. No prefix can have this name."""

_MAX_PATH = 3500
"""Maximum length of the names of sidecar indices in one request: servers reject request lines over 4,096 bytes."""

_ROLLED_OVER = re.compile(r"^\.ds-|-\d+$")


def sidecar_name(index: str, prefix: str) -> str:
    """``<index>-<prefix>-sidecar`` for a concrete index.

    For an index that a rollover makes (its name ends with a number), ``<prefix>-sidecar-<index>``: otherwise the
    template of such indices would match the sidecar index, and add it to their alias.
    """
    prefix = prefix.lower()
    if _ROLLED_OVER.search(index):
        return index_name(index, front=f"{prefix}-sidecar-", instead="")
    return index_name(index, end=f"-{prefix}-sidecar", instead="")


class SidecarNames:
    """Names of the concrete indices of a target and of their sidecar indices, in both directions."""

    def __init__(self, target: IndexTarget) -> None:
        self.sidecars = {index: sidecar_name(index, target.settings.prefix) for index in target.indices}
        """Concrete index -> its sidecar index."""
        self.indices = {name: index for index, name in self.sidecars.items()}
        """Sidecar index -> the concrete index that it belongs to."""
        self.existing = tuple(self.sidecars[index] for index in target.indices if index not in target.new)
        """The sidecar indices that exist."""
        self.path = ",".join(self.existing)
        """These, as a part of a request path."""


def sidecar_mapping(
    index: str, settings: Settings, *, write_group: bool, notes: Mapping[str, Any] | None = None
) -> dict[str, Any]:
    """The mapping of a sidecar index: the `neardupe` object as in documents, and the reference to the document; in
    ``_meta`` the mark, the settings and ``notes``."""
    mapping = load_mapping("sidecar")
    meta = {
        **_mark(index, settings.prefix).to_meta(),
        settings.prefix: {**settings.to_meta(), **(notes or {})},
        REFERENCE: {"write_group": write_group},
    }
    properties = mapping["properties"] | {settings.prefix: fields_mapping()}
    return mapping | {"_meta": meta, "properties": properties}


def _mark(index: str, prefix: str) -> OwnerMark:
    return OwnerMark("sidecar", index, prefix)


def writes_group(mapping: Mapping[str, Any]) -> bool:
    """Whether group ids are written into documents, by the mapping of the sidecar index."""
    return bool(mapping.get("_meta", {}).get(REFERENCE, {}).get("write_group", False))


def sidecars_of(client: Client, indices: Iterable[str], prefix: str) -> dict[str, JSON]:
    """Concrete index -> the mapping of its sidecar index, for those that have one that this user may see. Raises
    `NameTaken` if another index has the name of one."""
    found: dict[str, JSON] = {}
    names = {sidecar_name(index, prefix): index for index in indices}
    for chunk in chunked(names, 20):
        answer = _visible_mappings(client, chunk)
        found |= {names[name]: answer[name]["mappings"] for name in chunk if name in answer}
    for index, mapping in found.items():
        _mark(index, prefix).check(sidecar_name(index, prefix), mapping)
    return found


def _visible_mappings(client: Client, names: Sequence[str]) -> dict[str, JSON]:
    """The mappings of those indices that exist and that this user has privileges on. OpenSearch rejects the whole
    request if the user has none on one of the names, even if no such index exists."""
    try:
        return client.request("GET", path(",".join(names), "_mapping"), params={"ignore_unavailable": True}) or {}
    except Forbidden:
        if len(names) == 1:
            return {}
        return {index: mapping for name in names for index, mapping in _visible_mappings(client, [name]).items()}


def delete_unmarked(client: Client, names: Sequence[str]) -> None:
    """Delete those of the sidecar indices of an opened index that the server has created for a write of entries, after
    they were deleted: they have nothing but entries, or nothing at all, and neither mark nor ``dynamic``. An index of
    another name, behind an alias, stays. Does nothing if this user may not."""
    for name, one in _visible_mappings(client, names).items():
        mapping = one["mappings"]
        if name not in names or mapping.keys() - {"properties"}:
            continue
        with suppress(Forbidden, NotFound):
            fields = mapping.get("properties", {}).keys()
            if REFERENCE in fields or (not fields and client.request("POST", path(name, "_count"))["count"] == 0):
                client.request("DELETE", path(name))


def must_be_stored(index: str, mapping: Mapping[str, Any], settings: Settings) -> bool:
    """Whether texts are read from stored fields because ``_source`` lacks them. Raises `IndexUnusable` if they are in
    neither."""
    if all(schema.is_in_source(mapping, name) for name in settings.fields):
        return False
    properties = mapping.get("properties", {})
    not_stored = [
        name for name in settings.fields if schema.mapping_of(properties, name).get("store") not in (True, "true")
    ]
    lost = [name for name in not_stored if not schema.is_in_source(mapping, name)]
    if not_stored and not lost:
        raise IndexUnusable(
            f"Index {index} keeps {', '.join(not_stored)} only in _source, and other texts only as stored fields: a "
            f"text is read from one of both. Re-index it with all text fields in _source."
        )
    if lost:
        raise IndexUnusable(
            f"Index {index} keeps {', '.join(lost)} neither in _source nor as a stored field: its texts cannot be "
            f"read back, and no keys made. Re-index it from the original texts, with _source or `store: true`."
        )
    return True


def check_inline(client: Client, mappings: Mapping[str, JSON], prefix: str) -> None:
    """Raises `SchemeMismatch` if an index already has a sidecar index."""
    if found := sidecars_of(client, mappings, prefix):
        raise SchemeMismatch(
            f"The keys of {', '.join(found)} are in a sidecar index: run init with {option('sidecar')}, choose another "
            f"{option('prefix')}, or remove them with `{command('clean', next(iter(found)))}` first."
        )


class Sidecars:
    """The sidecar indices of some concrete indices: checks, creates and updates them."""

    def __init__(self, index: UnpreparedIndex, *, write_group: bool) -> None:
        self._index = index
        self.known = sidecars_of(index.client, index.mappings, index.settings.prefix)
        """Concrete index -> the mapping of its sidecar index, for those that exist."""
        self.names = tuple(sidecar_name(one, index.settings.prefix) for one in sorted(index.mappings))
        self.write_group = write_group or any(writes_group(one) for one in self.known.values())
        """Once chosen, it applies until `clean`."""

    def prepare(self, settings: Settings) -> tuple[str, ...]:
        """Create or complete sidecar indices; returns the concrete indices for which this was necessary.

        All checks are made before the first write. Raises `SchemeMismatch`, `IndexUnusable`, `MappingConflict`,
        `Blocked` or `Conflict`.
        """
        lacking = [index for index, mapping in self._index.mappings.items() if self._lacks(index, mapping, settings)]
        if self.write_group and lacking:
            check_writable(self._index, new=True)
        for index in lacking:
            if self.write_group:
                self._map_group(index, settings.prefix)
            self._store(index, settings)
        return tuple(lacking)

    def replace_settings(self, settings: Settings) -> None:
        """Replace the settings in existing sidecar indices."""
        for index in self.known:
            self._store(index, settings)

    def store_settings(self, settings: Settings, notes: Mapping[str, Any]) -> None:
        """Store settings with additional ``notes`` in all sidecar indices; creates missing ones."""
        for index in self._index.mappings:
            self._store(index, settings, notes)

    def _lacks(self, index: str, mapping: JSON, settings: Settings) -> bool:
        prefix = settings.prefix
        if stored_settings(mapping, prefix) is not None:
            raise SchemeMismatch(
                f"Index {index} has keys in its documents already: remove them with `{command('clean', index)}` first, "
                f"or choose another {option('prefix')}."
            )
        check_text_fields(index, mapping, settings)
        must_be_stored(index, mapping, settings)
        if self.write_group:
            check_source(index, mapping, settings)
            if found := schema.conflicts(mapping, settings):
                raise MappingConflict(f"Index {index} cannot have {prefix}.group: {'; '.join(found)}.")
        known = self.known.get(index)
        stored = None if known is None else stored_settings(known, prefix)
        if known is None or stored is None:
            return True
        if differences := stored.differences(settings):
            raise SchemeMismatch(
                f"Index {index} already has a sidecar index with other settings ({'; '.join(differences)}). Use those, "
                f"or switch to the others with `{command('migrate', self._index.name)}`, or choose another "
                f"{option('prefix')}."
            )
        return self.write_group is not writes_group(known)

    def _map_group(self, index: str, prefix: str) -> None:
        group = schema.fields_mapping()["properties"]["group"]
        body = {"properties": {prefix: {"dynamic": "strict", "properties": {"group": group}}}}
        definitions, omit = Definitions(self._index.client, index), f"omit {option('write_group')}"
        definitions.put_fields(body, instead=omit)

    def _store(self, index: str, settings: Settings, notes: Mapping[str, Any] | None = None) -> None:
        """Create or update one. It has as many shards as its index, so that both are read equally fast."""
        mapping = sidecar_mapping(index, settings, write_group=self.write_group, notes=notes)
        name = path(sidecar_name(index, settings.prefix))
        if index in self.known:
            meta = {**self.known[index].get("_meta", {}), **mapping["_meta"]}  # keeps the record of --tune
            self._index.client.request("PUT", f"{name}/_mapping", body={"_meta": meta})
            return
        shards = Definitions(self._index.client, index).states()[index].shards
        body = {"settings": hidden_settings(self._index.client.server, shards=shards), "mappings": mapping}
        try:
            self._index.client.request("PUT", name, body=body)
        except RequestError as error:
            if error.type == "resource_already_exists_exception":
                found = sidecars_of(self._index.client, [index], settings.prefix).get(index, {})
                if found.get("_meta") == mapping["_meta"]:  # the answer was lost, and the request was repeated
                    return
                raise Conflict(
                    f"Another run created {name[1:]} at the same time: run init again.",
                    status=409,
                    type=error.type,
                    reason=error.reason,
                ) from error
            raise


def invisible_sidecar(index: IndexHandle, prefix: str) -> str:
    """The name of the sidecar index if this user has no privilege to see whether it exists, else ""."""
    sidecar = sidecar_name(next(iter(index.definitions.mappings())), prefix)
    try:
        index.server.request("GET", path(sidecar, "_mapping"))
    except Forbidden:
        return sidecar
    except NotFound:
        pass
    return ""


def open_sidecar_target(
    definitions: Definitions, prefix: str, *, texts: bool, adopting: bool, writes: bool
) -> IndexTarget | None:
    """The target of a name with sidecar indices; None if no index has one. See `open_target`."""
    client, name, metadata = definitions.client, definitions.name, definitions.metadata()
    mappings, states, aliases = metadata.with_source_modes, metadata.states, metadata.rollover_aliases(name)
    sidecars = sidecars_of(client, mappings, prefix)
    if not sidecars:
        return None
    coming = sidecars_of(client, mappings, next_prefix(prefix))
    if (serving := serving_prefix(name, coming, prefix, writes=writes)) != prefix:
        prefix, sidecars = serving, coming
    _check_each(name, mappings, sidecars, prefix)
    new = tuple(index for index in mappings if index not in sidecars)
    if unknown := not_rolled_over(aliases, new=new, prepared=sidecars.keys()):
        raise NotInitialised(
            f"Index {', '.join(unknown)} has no sidecar index yet: "
            f"run `{command('init', name)} --field FIELD --sidecar` with the same settings again."
        )
    check_unprepared(name, prefix, mappings, aliases, new=new, prepared=sidecars.keys(), adopting=adopting)
    stored_in = {index: stored_settings(one, prefix) for index, one in sidecars.items()}
    settings = common_settings(stored_in, name, aliases)
    settings = with_stored_versions(settings, mappings.values())
    for index, mapping in sidecars.items():
        check_fields(sidecar_name(index, prefix), mapping, settings)
        if texts:
            check_fields_visible(index, mappings[index], settings)
    stored = tuple(index for index, mapping in mappings.items() if must_be_stored(index, mapping, settings))
    if stored and len(stored) < len(mappings):
        raise IndexUnusable(f"Of {name}, only {', '.join(stored)} lacks texts in _source: name the indices one by one.")
    names = tuple(sidecar_name(index, prefix) for index in sorted(mappings))
    if len(",".join(names)) > _MAX_PATH:
        raise IndexUnusable(
            f"{name} resolves to {len(names)} indices: the names of their sidecar indices are too long for one "
            f"request. Use a narrower pattern."
        )
    of_sidecars = Definitions(client, ",".join(sidecar_name(index, prefix) for index in sidecars)).states()
    return IndexTarget(
        name,
        tuple(sorted(mappings)),
        settings,
        result_window([*states.values(), *of_sidecars.values()]),
        alias_named(aliases, name),
        relations_to_skip(mappings.values(), settings.relations),
        new,
        inherits=inherited_prefix(sidecars.values(), prefix),
        sidecar=SidecarLayout(any(writes_group(one) for one in sidecars.values()), stored),
        states=states,
        mappings=mappings,
        opened_with={sidecar_name(index, prefix): one for index, one in stored_in.items() if one is not None},
    )


def _check_each(name: str, mappings: Mapping[str, JSON], sidecars: Mapping[str, JSON], prefix: str) -> None:
    """Raises `SchemeMismatch` if indices without a sidecar index have keys in their documents, `NotInitialised` if
    sidecar indices have no settings."""
    inline = [index for index in mappings if index not in sidecars]
    inline = [index for index in inline if stored_settings(mappings[index], prefix) is not None]
    if inline:
        raise SchemeMismatch(
            f"Of {name}, {', '.join(inline)} has keys in its documents, and others have a sidecar index: name them "
            f"separately."
        )
    unreadable = [index for index, one in sidecars.items() if stored_settings(one, prefix) is None]
    if unreadable:
        raise NotInitialised(
            f"The sidecar index of {', '.join(unreadable)} has lost its settings: run `{command('init', name)} "
            f"--field FIELD --sidecar` with the same settings again."
        )
