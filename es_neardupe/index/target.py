"""Index target: the concrete indices that a name resolves to, their mappings, settings and limits, and where these are
read and written."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from itertools import islice
from typing import Any, NamedTuple

from es_neardupe.errors import (
    BeingMigrated,
    Conflict,
    IndexUnusable,
    NeardupeError,
    NotFound,
    NotInitialised,
    RequestError,
    RolledOver,
    SchemeMismatch,
    SettingsError,
)
from es_neardupe.index import mapping as schema
from es_neardupe.index import queries
from es_neardupe.index.mapping import (
    Fields,
    check_fields,
    check_fields_visible,
    check_source,
    relations_to_skip,
)
from es_neardupe.index.migration_state import inherited_prefix, is_switching, next_prefix
from es_neardupe.index.rollover import RolloverAlias, alias_named, rollover_aliases
from es_neardupe.index.settings import OPTIONAL_IN_META, Settings
from es_neardupe.options import DEFAULT_PREFIX, Versions
from es_neardupe.server.bulk import MIN_GC_DELETES
from es_neardupe.server.client import JSON, Client, Params, path
from es_neardupe.wording import command, indices, option

_TOO_MANY_FIELDS = re.compile(r"Limit of total fields \[(\d+)\]")
_MORE_FIELDS = 50
"""Enough for two prefixes, which a migration needs."""

_NO_FIELDS = {
    "derive source": "derives _source from its fields (index.derived_source)",
    "subobjects is set to false": "has no objects (subobjects: false)",
    "Limit of mapping depth": "allows no fields in objects (index.mapping.depth.limit)",
}
"""Part of the reason of a server -> why an index cannot have the fields."""

_UUIDS = ("index.uuid", "index.history.uuid")
DEFAULT_PIPELINE = "index.default_pipeline"
FINAL_PIPELINE = "index.final_pipeline"
SEARCH_PIPELINE = "index.search.default_pipeline"
_WINDOW = "index.max_result_window"
_SHARDS = "index.number_of_shards"
_SOURCE_MODE = "index.mapping.source.mode"
_UNNUMBERED = "index.disable_sequence_numbers"
_GC_DELETES = "index.gc_deletes"
_META = "*.mappings._meta"
_TIME = re.compile(r"([0-9.]+)(nanos|micros|ms|s|m|h|d)", re.ASCII | re.IGNORECASE)
_SECONDS = {"nanos": 1e-9, "micros": 1e-6, "ms": 1e-3, "s": 1, "m": 60, "h": 3600, "d": 86400}
_WRITE_BLOCKS = tuple(f"index.blocks.{one}" for one in ("read_only", "read_only_allow_delete", "write"))
_CLOSED = "index.verified_before_close"
STORE_TYPE = "index.store.type"
_SNAPSHOTS = ("snapshot", "remote_snapshot")
"""Store types of searchable snapshots, in Elasticsearch and in OpenSearch: such an index can never be written."""
MAX_NAME = 255
"""Maximum length of the name of an index, in bytes."""
MAX_WINDOW = 10_000
"""The default of the servers."""

_ALIKE = 0.85
"""Similarity of two names of which one is probably meant by the other, as `difflib` counts it."""

_MAX_PATH = 2000
"""Maximum length of the index names in a request path: servers reject request lines over 4,096 bytes."""


class IndexState(NamedTuple):
    """Settings of a concrete index when it was opened. The first two must not change during a run that writes."""

    uuid: str
    """An index that was deleted and created again has another uuid, and its sequence numbers start again. A snapshot
    that is restored over a closed index replaces the documents and keeps the uuid, but sets a uuid of their history,
    which is then appended."""
    final_pipeline: str | None
    """The pipeline that processes each document that is written as a whole."""
    max_result_window: int = MAX_WINDOW
    shards: int = 1
    search_pipeline: str | None = None
    """On OpenSearch: the pipeline that changes requests and hits of searches which do not name another one."""
    sequence_numbers: bool = True
    """Whether documents keep their sequence numbers."""
    source_mode: str | None = None
    """On Elasticsearch: the mode of ``_source`` if it is a setting of the index."""
    blocks: tuple[str, ...] = ()
    """The names of the settings that make it read-only."""
    default_pipeline: str | None = None
    """The ingest pipeline for requests that name no other one."""
    gc_deletes: str = "60s"
    """For how long it remembers the versions of deleted documents."""


class IndexMetadata(NamedTuple):
    """What the server knows about the concrete indices of a name, as of one moment. Each is a dict by their names."""

    mappings: dict[str, JSON]
    aliases: dict[str, dict[str, JSON]]
    """Alias -> its properties."""
    data_streams: dict[str, str]
    """The data stream that an index belongs to, for those that do."""
    states: dict[str, IndexState]

    @property
    def with_source_modes(self) -> dict[str, JSON]:
        """The mappings with the mode of ``_source`` added where it is a setting of the index instead."""
        modes = {index: state.source_mode for index, state in self.states.items() if state.source_mode}
        return {
            index: {"_source": {"mode": modes[index]}, **mapping} if index in modes else mapping
            for index, mapping in self.mappings.items()
        }

    def rollover_aliases(self, name: str) -> list[RolloverAlias]:
        """See `es_neardupe.index.rollover.rollover_aliases`; ``name``: the one that was resolved."""
        return rollover_aliases(name, self.aliases, self.data_streams)


@dataclass(frozen=True, slots=True)
class SidecarLayout:
    """Properties of sidecar storage."""

    write_group: bool
    """Whether group ids, and nothing else, are written into documents."""
    stored: tuple[str, ...]
    """The concrete indices whose texts are in stored fields, not in ``_source``."""


@dataclass(frozen=True, slots=True)
class IndexTarget:
    """The concrete indices of an initialised index, alias, data stream or pattern."""

    name: str
    indices: tuple[str, ...]
    settings: Settings
    max_result_window: int
    rollover_alias: RolloverAlias | None = None
    """The data stream or alias with a write index, if the name is one: its indices change by rollover."""
    skipped_relations: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Join field -> the relations whose documents are not processed."""
    new: tuple[str, ...] = ()
    """The concrete indices that a rollover created and that are not yet prepared."""
    inherits: str | None = None
    """While a migration is being prepared: the old prefix, whose group ids documents keep with their first new keys."""
    sidecar: SidecarLayout | None = None
    """None for inline storage."""
    states: Mapping[str, IndexState] = field(default_factory=dict)
    """Concrete index -> its state when it was opened."""
    mappings: Mapping[str, JSON] = field(default_factory=dict, repr=False, compare=False)
    """Concrete index -> its mapping when it was opened."""
    opened_with: Mapping[str, Settings] = field(default_factory=dict, repr=False)
    """Index, or sidecar index, that stores settings -> those that it had when it was opened. They must not change
    during a run that writes; empty for a run that replaces them."""

    @property
    def uuids(self) -> dict[str, str]:
        """Concrete index -> its uuid when it was opened."""
        return {index: state.uuid for index, state in self.states.items()}

    @property
    def guarded(self) -> tuple[Settings, ...]:
        """The settings under whose names an application can have values, which no write may overwrite: while a
        migration is being prepared, those of both prefixes, since the switch writes the fields of the old one."""
        if self.inherits is None:
            return (self.settings,)
        replaced = (stored_settings(one, self.inherits) for one in self.mappings.values())
        return (self.settings, *islice((one for one in replaced if one is not None), 1))

    @property
    def mark_seeds(self) -> dict[str, str]:
        """Concrete index -> what the marks in its documents are made from, besides their versions: its uuid, and the
        group field whose values were looked at. See `es_neardupe.index.storage.field_writes`."""
        copies = [one.group_field for one in self.guarded if one.group_field is not None]
        return {index: " ".join((uuid, *copies)) for index, uuid in self.uuids.items()}

    @property
    def shards(self) -> int:
        """The maximum number of shards of an index."""
        return max((state.shards for state in self.states.values()), default=1)

    @property
    def fields(self) -> Fields:
        """The full names of the `neardupe` fields."""
        return Fields(self.settings.prefix)

    @property
    def path(self) -> str:
        """The concrete indices as a part of a request path, or the name if they are too many for a URL."""
        joined = ",".join(self.indices)
        return joined if len(joined) <= _MAX_PATH else self.name

    @property
    def scheme_id(self) -> str:
        """The id of the scheme that fingerprints must have."""
        return self.settings.scheme.id

    def check_settings(self, mappings: Mapping[str, JSON]) -> None:
        """Raises `Conflict` if settings with which the target was opened were removed or replaced since, and
        `BeingMigrated` if a migration switches documents to other keys. ``mappings``: those of `opened_with` now."""
        for index, before in self.opened_with.items():
            serving_prefix(self.name, mappings, before.prefix, writes=True)
            now = stored_settings(mappings.get(index, {}), before.prefix)
            if now is None:
                raise Conflict(
                    f"The settings of index {index} were removed during this run, so nothing more is written: to "
                    f"process it again, run `{command('init', self.name)} --field FIELD`.",
                    status=409,
                )
            external = stored_versions(mappings.values()) is Versions.EXTERNAL
            if now != before or (external and self.settings.versions is not Versions.EXTERNAL):
                raise Conflict(
                    f"The settings of index {index} were replaced during this run, so nothing more is written: run "
                    f"the same command again.",
                    status=409,
                )

    def within(self, query: Mapping[str, Any] | None = None) -> Mapping[str, Any] | None:
        """A scope without the documents of skipped relations; None: all documents."""
        return queries.without_relations(self.skipped_relations, query)

    def stale(self, query: Mapping[str, Any] | None = None) -> JSON:
        """A query for the documents of a scope without a complete fingerprint of the scheme."""
        return queries.stale(self.fields, self.scheme_id, self.within(query))

    def without_copy(self, query: Mapping[str, Any] | None = None) -> JSON:
        """A query for the documents of a scope that lack the copy of their group id."""
        copy = self.settings.group_field
        lacking = {"match_none": {}} if copy is None else {"bool": {"must_not": [{"exists": {"field": copy}}]}}
        return queries.all_of(self.within(query), lacking)


@dataclass(frozen=True)
class Definitions:
    """The mappings, settings and aliases of the indices of a name, read and written through one connection."""

    client: Client
    name: str

    def metadata(self) -> IndexMetadata:
        """What the server knows about the concrete indices. Raises `NotFound`, and `IndexUnusable` if one is closed:
        its documents would be missing without a word, from a pattern, or make every search fail, from an alias."""
        closed_too: dict[str, str] = {"expand_wildcards": "open,closed"} if "*" in self.name else {}
        found = self._read(flat_settings=True, **closed_too)
        if closed := [index for index, one in found.items() if one["settings"].get(_CLOSED) == "true"]:
            raise IndexUnusable(
                f"Index {closed[0]} is closed. Open it with `POST /{closed[0]}/_open`, then run the command again."
            )
        return IndexMetadata(
            {index: one["mappings"] for index, one in found.items()},
            {index: one["aliases"] for index, one in found.items()},
            {index: one["data_stream"] for index, one in found.items() if "data_stream" in one},
            {index: _state(one["settings"]) for index, one in found.items()},
        )

    def mappings(self) -> dict[str, JSON]:
        """Concrete index -> its mapping. Raises `NotFound`."""
        return {index: one["mappings"] for index, one in self._read("_mapping").items()}

    def settings(self, *names: str, **params: str | bool) -> dict[str, Mapping[str, str]]:
        """Concrete index -> the values of these settings, for those that have any, sorted by the names of the indices.
        Empty if there is no index."""
        wanted = path(self.name, "_settings", ",".join(names))
        found = self.client.request("GET", wanted, params={"flat_settings": True, **params}) or {}
        return {index: one["settings"] for index, one in sorted(found.items())}

    def states(self) -> dict[str, IndexState]:
        """Concrete index -> its state, for those that exist."""
        names = (_WINDOW, _SHARDS, *_UUIDS, SEARCH_PIPELINE, DEFAULT_PIPELINE, _GC_DELETES, FINAL_PIPELINE)
        return {index: _state(one) for index, one in self.settings(*names, ignore_unavailable=True).items()}

    def states_and_meta(self) -> tuple[dict[str, IndexState], dict[str, JSON]]:
        """The states as by `states`, and concrete index -> its mapping with ``_meta`` alone."""
        params: Params = {"flat_settings": True, "ignore_unavailable": True, "filter_path": f"*.settings,{_META}"}
        found: Mapping[str, JSON] = self.client.request("GET", path(self.name), params=params) or {}
        states = {index: _state(one["settings"]) for index, one in sorted(found.items())}
        return states, {index: one.get("mappings", {}) for index, one in found.items()}

    def meta(self) -> dict[str, JSON]:
        """Concrete index -> its mapping with ``_meta`` alone, for those that exist and have one."""
        params: Params = {"ignore_unavailable": True, "filter_path": _META}
        found: Mapping[str, JSON] = self.client.request("GET", path(self.name, "_mapping"), params=params) or {}
        return {index: one["mappings"] for index, one in found.items()}

    def put_settings(
        self,
        mapping: Mapping[str, Any],
        *settings: Settings,
        notes: Mapping[str, Mapping[str, Any]] | None = None,
    ) -> None:
        """Add the `neardupe` fields and settings to the mapping of a concrete index; the rest of ``_meta`` is kept.

        Several settings with different prefixes can be added at once. ``notes``: prefix -> JSON to store with its
        settings. Raises as `put_fields`.
        """
        body: JSON = {"_meta": dict(mapping.get("_meta", {})), "properties": {}}
        for one in settings:
            added, stored = mapping_to_add(one), body["_meta"].get(one.prefix, {})
            before = {name: value for name, value in stored.items() if name not in OPTIONAL_IN_META}
            body["_meta"][one.prefix] = {**before, **added["_meta"][one.prefix], **(notes or {}).get(one.prefix, {})}
            body["properties"] |= added["properties"]
        sidecar = f"{command('init', self.name)} --field FIELD --sidecar"
        self.put_fields(body, instead=f"store the keys in a sidecar index, with `{sidecar}`")

    def put_fields(self, body: JSON, *, instead: str) -> None:
        """Add `neardupe` fields to the mapping of a concrete index. Raises `IndexUnusable` if the index may not have so
        many fields, or not such fields; ``instead``: what to do then."""
        try:
            self.client.request("PUT", path(self.name, "_mapping"), body=body)
        except RequestError as error:
            if (limit := _TOO_MANY_FIELDS.search(error.reason)) is not None:
                more = json.dumps({"index.mapping.total_fields.limit": int(limit[1]) + _MORE_FIELDS})
                raise IndexUnusable(
                    f"Index {self.name} may have only {limit[1]} fields, and needs more for keys and groups. Raise the "
                    f"limit with `PUT /{self.name}/_settings {more}`, then run the command again."
                ) from error
            if (why := next((why for part, why in _NO_FIELDS.items() if part in error.reason), None)) is not None:
                prefix = next(iter(body["properties"]))
                raise IndexUnusable(
                    f"Index {self.name} {why}, which the {prefix} fields do not support: {instead}."
                ) from error
            raise

    def remove_settings(self, mapping: Mapping[str, Any], prefix: str) -> None:
        """Remove the settings from the ``_meta`` of a concrete index; the rest of ``_meta`` is kept."""
        meta = {name: value for name, value in mapping.get("_meta", {}).items() if name != prefix}
        self.client.request("PUT", path(self.name, "_mapping"), body={"_meta": meta})

    def _read(self, *what: str, **params: bool | str) -> dict[str, JSON]:
        """The answer about the concrete indices, sorted by their names. Raises `NotFound`."""
        check_name(self.name)
        try:
            answer: Mapping[str, JSON] = self.client.request("GET", path(self.name, *what), params=params)
        except NotFound as error:
            raise self._no_index(error) from error
        if not answer:
            raise self._no_index(None)
        return dict(sorted(answer.items()))

    def _no_index(self, error: NotFound | None) -> NotFound:
        name = self.name
        several = "*" in name or "," in name
        create = "" if several else f", or create it with `{command('init', name)} --create --field FIELD`"
        kind = error.type if error else "index_not_found_exception"
        if not several and (similar := get_close_matches(name.lower(), _names(self.client), 1, _ALIKE)):
            return NotFound(f"There is no index {name!r}. Did you mean {similar[0]}?", status=404, type=kind)
        return NotFound(f"There is no index {name!r}. Name an existing one{create}.", status=404, type=kind)


def _names(client: Client) -> list[str]:
    """The names of the indices, aliases and data streams that this user sees; none if the server does not say."""
    with suppress(NeardupeError):
        found: JSON = client.request("GET", path("_resolve", "index", "*"))
        return [one["name"] for kind in ("indices", "aliases", "data_streams") for one in found.get(kind, ())]
    return []


def open_target(
    definitions: Definitions,
    prefix: str = DEFAULT_PREFIX,
    *,
    texts: bool = False,
    adopting: bool = False,
    writes: bool = False,
    groups: bool = False,
) -> IndexTarget:
    """Resolve a name to concrete indices, and check that all of them have the same settings.

    ``texts``: the caller compares texts, so the user must have access to the text fields. ``adopting``: the caller
    prepares the `new` indices of the target, which a rollover created. ``writes``: the caller writes. ``groups``: the
    caller needs no keys, so that a prefix that holds only groups is possible. While a migration
    switches documents to a new scheme, the target is that of the new keys, under their own prefix, and writing is not
    possible.

    Raises `NotFound`, `NotInitialised`, `RolledOver`, `BeingMigrated`, `SchemeMismatch`, `MappingConflict`,
    `IndexUnusable` or `Forbidden`. Fingerprints can be written to every index of the target that is not `new`.
    """
    metadata, name = definitions.metadata(), definitions.name
    mappings, states, aliases = metadata.mappings, metadata.states, metadata.rollover_aliases(name)
    prefix = serving_prefix(name, mappings, prefix, writes=writes)
    stored = {index: stored_settings(mapping, prefix) for index, mapping in mappings.items()}
    new = tuple(index for index, settings in stored.items() if settings is None)
    check_unprepared(name, prefix, mappings, aliases, new=new, prepared=stored.keys() - set(new), adopting=adopting)
    settings = with_stored_versions(common_settings(stored, name, aliases), mappings.values())
    if settings.groups_only and not groups:
        raise IndexUnusable(
            f"The prefix {prefix!r} of index {name} holds groups that `duplicates` wrote, and no keys: use another "
            f"prefix."
        )
    for index, mapping in mappings.items():
        check_fields(index, mapping, settings, prepared=index not in new)
        check_source(index, mapping, settings)
        if texts:
            check_fields_visible(index, mapping, settings)
    return IndexTarget(
        name,
        tuple(sorted(mappings)),
        settings,
        result_window(states.values()),
        rollover_alias=alias_named(aliases, name),
        skipped_relations=relations_to_skip(mappings.values(), settings.relations),
        new=new,
        inherits=inherited_prefix(mappings.values(), prefix),
        states=states,
        mappings=mappings,
        opened_with={index: one for index, one in stored.items() if one is not None},
    )


def check_same_settings(client: Client, target: IndexTarget) -> None:
    """Raises as `IndexTarget.check_settings`, by what is stored now."""
    if target.opened_with:
        names = ",".join(target.opened_with)
        is_long = target.sidecar is None and len(names) > _MAX_PATH
        target.check_settings(Definitions(client, target.name if is_long else names).meta())


def serving_prefix(name: str, mappings: Mapping[str, JSON], prefix: str, *, writes: bool) -> str:
    """The prefix of the keys that commands use: while a migration switches to new keys, that of the new ones. Raises
    `BeingMigrated` then if the caller ``writes``."""
    if not is_switching(mappings.values(), prefix):
        return prefix
    if writes:
        raise BeingMigrated(
            f"Index {name} is being migrated to other keys: run `{command('migrate', name)}` "
            f"to the end first. Searches work in the meantime."
        )
    return next_prefix(prefix)


def check_unprepared(
    name: str,
    prefix: str,
    mappings: Mapping[str, JSON],
    aliases: Collection[RolloverAlias],
    *,
    new: Collection[str],
    prepared: Collection[str],
    adopting: bool,
) -> None:
    """Raises `NotInitialised` for indices without settings that no rollover created, and `RolledOver` for those that
    one created unless the caller is ``adopting``: prepares them."""
    if unknown := not_rolled_over(aliases, new=new, prepared=prepared):
        raise NotInitialised(
            _unprepared(name, prefix, {index: mappings[index] for index in unknown}, alone=not prepared)
        )
    if new and not adopting:
        raise RolledOver(
            f"{indices(new, 'was', 'were')} created by a rollover, without near-duplicate keys: run "
            f"`{command('enrich', name)}`, which prepares new indices like those before them."
        )


def _unprepared(name: str, prefix: str, mappings: Mapping[str, JSON], *, alone: bool) -> str:
    """Says that indices have no settings under a prefix, and what to do. ``alone``: no other index of the name has."""
    if alone and (others := sorted({other for mapping in mappings.values() for other in _prepared_prefixes(mapping)})):
        return (
            f"{indices(mappings, 'has', 'have')} no near-duplicate keys under {prefix!r}, but under "
            f"{', '.join(map(repr, others))}: add {option('prefix')} {others[0]}."
        )
    plain = Settings(("text",), prefix=prefix)
    if found := {one for mapping in mappings.values() for one in schema.conflicts(mapping, plain)}:
        return (
            f"{indices(mappings, 'has', 'have')} no settings, and cannot have the {prefix} fields: "
            f"{'; '.join(sorted(found))}. If it is a copy of a prepared index, copy again, into an index with the "
            f"mapping of that one. Or run `{command('init', name, prefix='other')} --field FIELD`: a prefix of your "
            f"choice."
        )
    return (
        f"{indices(mappings, 'has', 'have')} no near-duplicate keys under {prefix!r} yet: "
        f"run `{command('init', name)} --field FIELD` first."
    )


def _prepared_prefixes(mapping: Mapping[str, Any]) -> Iterator[str]:
    """The prefixes under which `init` has stored settings."""
    for prefix in mapping.get("_meta", {}):
        with suppress(NeardupeError):
            if (settings := stored_settings(mapping, prefix)) is not None and not settings.groups_only:
                yield prefix


def not_rolled_over(
    aliases: Collection[RolloverAlias], *, new: Collection[str], prepared: Collection[str]
) -> list[str]:
    """The new indices that have no rollover alias in common with a prepared one."""
    known = {index for alias in aliases if not alias.indices.isdisjoint(prepared) for index in alias.indices}
    return [index for index in new if index not in known]


def check_name(name: str) -> None:
    """Raises `SettingsError` if a name is not valid for an index, an alias or a pattern."""
    parts = name.split(",")  # a later part may begin with -, which excludes indices
    if (
        name.startswith("-")
        or any(not part or part.startswith(("_", "+")) or part in (".", "..") for part in parts)
        or any(char in ' "\\/|<>#?' or unicodedata.category(char) == "Cc" for char in name)
    ):
        raise SettingsError(f"{name!r} is not a valid name of an index, an alias or a pattern.")


def check_new_name(name: str, *, pattern: bool) -> None:
    """Raises `SettingsError` if a new index cannot have a valid name, nor, with ``pattern``, one that matches it."""
    if name != name.lower():
        raise SettingsError(f"A new index cannot have the name {name!r}: use {name.lower()!r}.") from None
    if not pattern and (set(name) & set("*,:") or len(name.encode()) > MAX_NAME):
        raise SettingsError(
            f"A new index cannot have the name {name!r}: use at most {MAX_NAME} bytes, without *, a comma and a colon."
        ) from None


def _state(settings: Mapping[str, str]) -> IndexState:
    pipelines = (settings.get(name, "_none") for name in (FINAL_PIPELINE, SEARCH_PIPELINE, DEFAULT_PIPELINE))
    final, search, default = (None if pipeline == "_none" else pipeline for pipeline in pipelines)
    uuid = "/".join(settings[one] for one in _UUIDS if one in settings)
    return IndexState(
        uuid,
        final,
        int(settings.get(_WINDOW, MAX_WINDOW)),
        int(settings.get(_SHARDS, 1)),
        search,
        settings.get(_UNNUMBERED) != "true",
        settings.get(_SOURCE_MODE),
        write_blocks(settings),
        default,
        settings.get(_GC_DELETES, "60s"),
    )


def check_gc_deletes(states: Mapping[str, IndexState]) -> None:
    """Raises `IndexUnusable` if an index forgets deletions too early for writes with the versions of another system:
    such a write could bring back a document that this system has deleted."""
    for name, state in states.items():
        if _seconds(state.gc_deletes) < MIN_GC_DELETES:
            setting = json.dumps({_GC_DELETES: "60s"})
            raise IndexUnusable(
                f"Index {name} remembers deletions for {state.gc_deletes} only ({_GC_DELETES}): a write with the "
                f"version of another system could bring back a document that this system has deleted. Set "
                f"{MIN_GC_DELETES:g}s or more, such as the default, with `PUT /{name}/_settings {setting}`, or use a "
                f"sidecar index."
            )


def _seconds(time: str) -> float:
    """The seconds of the value of a setting; 0 for one without a time, such as -1."""
    match = _TIME.fullmatch(time)
    return float(match[1]) * _SECONDS[match[2].lower()] if match else 0.0


def write_blocks(settings: Mapping[str, str]) -> tuple[str, ...]:
    """The names of those settings of an index that make it read-only, such as ``index.blocks.read_only``."""
    return tuple(sorted(key for key, value in settings.items() if _forbids(key, value)))


def _forbids(key: str, value: str) -> bool:
    if key == STORE_TYPE:
        return value in _SNAPSHOTS
    return value == "true" and key in _WRITE_BLOCKS


def stored_settings(mapping: Mapping[str, Any], prefix: str) -> Settings | None:
    """The settings that ``init`` stored in a mapping; None if it was not initialised under this prefix."""
    meta = mapping.get("_meta", {}).get(prefix)
    return None if meta is None else Settings.from_meta(meta, prefix)


def stored_group_field(mappings: Iterable[Mapping[str, Any]], prefix: str) -> str | None:
    """The group field that ``init`` stored under a prefix; None if there is none. The settings of a migration, under
    their own prefix, have none: the copies are those of the groups that searches use."""
    stored = (stored_settings(mapping, prefix) for mapping in mappings)
    return next((one.group_field for one in stored if one is not None and one.group_field is not None), None)


def stored_versions(mappings: Iterable[Mapping[str, Any]]) -> Versions | None:
    """Who sets the versions of documents, by the settings of all prefixes: a document has one version for all of them.
    None if none of them says so."""
    of_prefixes = [meta for mapping in mappings for meta in mapping.get("_meta", {}).values()]
    found = {meta.get("versions") for meta in of_prefixes if isinstance(meta, Mapping) and "scheme" in meta}
    return next((one for one in (Versions.EXTERNAL, Versions.INTERNAL) if one.value in found), None)


def with_stored_versions(settings: Settings, mappings: Iterable[Mapping[str, Any]]) -> Settings:
    """The settings of one prefix, with `Versions.EXTERNAL` if those of any other one have it."""
    external = stored_versions(mappings) is Versions.EXTERNAL and settings.versions is not Versions.EXTERNAL
    return replace(settings, versions=Versions.EXTERNAL) if external else settings


def common_settings(
    stored: Mapping[str, Settings | None], name: str, aliases: Collection[RolloverAlias] = ()
) -> Settings:
    """The settings that all indices have in common, except those without any. Raises `SchemeMismatch` if they
    differ. ``aliases``: the rollover aliases of the indices."""
    (first, settings), *others = [(index, one) for index, one in stored.items() if one is not None]
    for index, other in others:
        if differences := settings.differences(other):
            rolled_over = not not_rolled_over(aliases, new=[index], prepared=[first])
            clean, enrich = command("clean", index), command("enrich", name)
            mend = f", or run `{clean}`, then `{enrich}`, which prepares {index} like {first}" if rolled_over else ""
            raise SchemeMismatch(
                f"The indices of {name!r} have different settings: {first} has {'; '.join(differences)} as in {index}. "
                f"Name one of them{mend}."
            )
    return settings


def mapping_to_add(settings: Settings) -> JSON:
    """The mapping that ``init`` adds to an index: the `neardupe` fields, and the settings in ``_meta``."""
    return {"_meta": {settings.prefix: settings.to_meta()}, "properties": schema.properties_of(settings)}


def result_window(states: Iterable[IndexState]) -> int:
    """The minimum ``index.max_result_window`` of indices; at most 10,000, the default."""
    return min([MAX_WINDOW, *(state.max_result_window for state in states)])
