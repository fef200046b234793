"""What a name stands for on the server: concrete indices, their mapping, our settings in it, their limits."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from es_neardupe import queries, schema
from es_neardupe.clients import Client, path
from es_neardupe.errors import (
    BeingMigrated,
    Forbidden,
    IndexUnusable,
    MappingConflict,
    NotFound,
    NotInitialised,
    RolledOver,
    SchemeMismatch,
    SettingsError,
)
from es_neardupe.families import Family, families_of
from es_neardupe.joins import relations_left_alone
from es_neardupe.migrations import inherited_prefix, is_switching, next_prefix
from es_neardupe.schema import Fields
from es_neardupe.settings import DEFAULT_PREFIX, Settings

__all__ = [
    "Beside",
    "Target",
    "check_fields",
    "check_name",
    "check_new",
    "check_range_field",
    "check_seen",
    "check_source",
    "check_text_fields",
    "mappings_of",
    "not_rolled_over",
    "open_target",
    "our_mapping",
    "prepare_new",
    "put_settings",
    "remove_settings",
    "result_window",
    "stored_settings",
    "the_one_of",
]

JSON = dict[str, Any]

_LONGEST_PATH = 2000
"""Servers refuse request lines over 4,096 bytes."""


@dataclass(frozen=True, slots=True)
class Beside:
    """Indices of ours that hold all that is ours, so that the user's are not written."""

    names: tuple[str, ...]
    """One for each of the target's indices that is not new, in their order."""
    write_group: bool
    """Whether group ids, and they alone, are written into the user's documents."""
    stored: tuple[str, ...]
    """Those of the user's indices whose texts are in stored fields, not in ``_source``."""


@dataclass(frozen=True, slots=True)
class Target:
    """An index, alias or pattern that was initialised: what every command works on."""

    name: str
    indices: tuple[str, ...]
    settings: Settings
    max_result_window: int
    family: Family | None = None
    """The data stream or the alias with a write index that the name is: other indices come and go behind it."""
    left_alone: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Join field -> the relations whose documents we leave alone."""
    new: tuple[str, ...] = ()
    """Of the indices, those that a rollover made and nobody has prepared yet."""
    inherits: str | None = None
    """The prefix whose group ids documents take over with their first keys: where a migration is being prepared."""
    beside: Beside | None = None
    """None: our fields are in the user's documents."""

    @property
    def fields(self) -> Fields:
        """The full names of our fields."""
        return Fields(self.settings.prefix)

    @property
    def path(self) -> str:
        """What requests name: the checked indices themselves, or the name where they are too many for a URL."""
        joined = ",".join(self.indices)
        return joined if len(joined) <= _LONGEST_PATH else self.name

    @property
    def scheme_id(self) -> str:
        """The scheme that its documents must have."""
        return self.settings.scheme.id

    def within(self, query: Mapping[str, Any] | None = None) -> Mapping[str, Any] | None:
        """The user's scope without the documents that we leave alone; None: all documents."""
        return queries.without_relations(self.left_alone, query)

    def stale(self, query: Mapping[str, Any] | None = None) -> JSON:
        """A query for the documents of the scope without a complete fingerprint of the scheme."""
        return queries.stale(self.fields, self.scheme_id, self.within(query))


def open_target(
    client: Client,
    name: str,
    prefix: str = DEFAULT_PREFIX,
    *,
    texts: bool = False,
    adopting: bool = False,
    writes: bool = False,
) -> Target:
    """Find the concrete indices behind a name and check that all of them were initialised alike.

    ``texts``: the caller compares texts, so this user must see the fields that they are in. ``adopting``: the caller
    prepares what a rollover made, the target's `new` indices. While a migration switches documents to a new scheme,
    the target is that of the new keys, under their own prefix, and who ``writes`` is refused. Raises `NotFound`,
    `NotInitialised`, `SchemeMismatch`, `MappingConflict`, `IndexUnusable` or `Forbidden`; so a command that got a
    target may write to it, but for `new`.
    """
    mappings = mappings_of(client, name)
    families = families_of(client, name, mappings)
    if is_switching(mappings.values(), prefix):
        if writes:
            raise BeingMigrated(
                f"Index {name} is on its way to other keys, which `es-neardupe migrate` has begun to switch to: run "
                f"`es-neardupe migrate {name}` to the end first. Searches go on meanwhile."
            )
        prefix = next_prefix(prefix)
    stored = {index: stored_settings(mapping, prefix) for index, mapping in mappings.items()}
    new = tuple(index for index, settings in stored.items() if settings is None)
    check_new(name, prefix, families, new=new, prepared=stored.keys() - set(new), adopting=adopting)
    settings = the_one_of(stored, name)
    for index, mapping in mappings.items():
        check_fields(index, mapping, settings, prepared=index not in new)
        check_source(index, mapping, settings)
        if texts:
            check_seen(index, mapping, settings)
    return Target(
        name,
        tuple(sorted(mappings)),
        settings,
        result_window(client, name),
        family=next((one for one in families if one.name == name), None),
        left_alone=relations_left_alone(mappings.values(), settings.relations),
        new=new,
        inherits=inherited_prefix(mappings.values(), prefix),
    )


def check_new(
    name: str,
    prefix: str,
    families: Collection[Family],
    *,
    new: Collection[str],
    prepared: Collection[str],
    adopting: bool,
) -> None:
    """Raises `NotInitialised` for indices without settings, unless a rollover put them beside a prepared one and the
    caller will prepare them."""
    if unknown := not_rolled_over(families, new=new, prepared=prepared):
        raise NotInitialised(
            f"Index {', '.join(unknown)} has no near-duplicate keys under {prefix!r} yet: "
            f"run `es-neardupe init {name} --field FIELD` first."
        )
    if new and not adopting:
        raise RolledOver(
            f"Index {', '.join(new)} came by a rollover and has no near-duplicate keys yet: run "
            f"`es-neardupe enrich {name}`, which prepares it like the indices before it."
        )


def not_rolled_over(families: Collection[Family], *, new: Collection[str], prepared: Collection[str]) -> list[str]:
    """Of new indices, those that no rollover can have put beside a prepared one."""
    known = {index for family in families if not family.indices.isdisjoint(prepared) for index in family.indices}
    return [index for index in new if index not in known]


def check_name(name: str) -> None:
    """Raises `SettingsError` for what can be no index, alias or pattern of one."""
    parts = name.split(",")  # a later part may begin with -, which leaves out
    if (
        name.startswith("-")
        or any(not part or part.startswith(("_", "+")) or part in (".", "..") for part in parts)
        or any(char in ' "\\/|<>#?' or unicodedata.category(char) == "Cc" for char in name)
    ):
        raise SettingsError(f"{name!r} is no name of an index, an alias or a pattern.")


def mappings_of(client: Client, name: str) -> dict[str, JSON]:
    """Concrete index -> its mapping, for an index, alias, data stream or pattern. Raises `NotFound`."""
    check_name(name)
    try:
        answer: Mapping[str, JSON] = client.request("GET", path(name, "_mapping"))
    except NotFound as error:
        raise _no_index(name, error) from error
    if not answer:
        raise _no_index(name, None)
    return {index: entry["mappings"] for index, entry in sorted(answer.items())}


def _no_index(name: str, error: NotFound | None) -> NotFound:
    several = "*" in name or "," in name
    made = "" if several else f"; `es-neardupe init {name} --create --field FIELD` makes it"
    return NotFound(
        f"There is no index {name!r}. Name an existing one{made}.",
        status=404,
        type=error.type if error else "index_not_found_exception",
    )


def stored_settings(mapping: Mapping[str, Any], prefix: str) -> Settings | None:
    """The settings that ``init`` left in a mapping; None if it was never initialised under this prefix."""
    meta = mapping.get("_meta", {}).get(prefix)
    return None if meta is None else Settings.from_meta(meta, prefix)


def prepare_new(client: Client, target: Target) -> None:
    """Put our fields and the settings into the indices that a rollover made. Raises `IndexUnusable` where their text
    fields are others, `Forbidden` without the right to change a mapping."""
    for index in target.new:
        mapping = mappings_of(client, index)[index]
        check_text_fields(index, mapping, target.settings)
        put_settings(client, index, mapping, target.settings)


def the_one_of(stored: Mapping[str, Settings | None], name: str) -> Settings:
    """The settings that all indices behind a name have. Raises `SchemeMismatch` where they differ."""
    (first, settings), *others = [(index, one) for index, one in stored.items() if one is not None]
    for index, other in others:
        if differences := settings.differences(other):
            raise SchemeMismatch(
                f"The indices behind {name!r} have different settings: {first} has {'; '.join(differences)} "
                f"of {index}. Name one of them."
            )
    return settings


def check_fields(index: str, mapping: Mapping[str, Any], settings: Settings, *, prepared: bool = True) -> None:
    """Raises `MappingConflict` or, of a ``prepared`` index, `NotInitialised` where our fields are not as they have to
    be."""
    properties, prefix = mapping.get("properties", {}), settings.prefix
    if found := schema.conflicts(properties, prefix):
        raise MappingConflict(
            f"Index {index} cannot take our fields: {'; '.join(found)}. A mapping cannot be changed in place: "
            f"choose another --prefix, or re-index without that field."
        )
    lacking = schema.missing(properties, prefix, sampled=settings.scheme.sample_mod > 0)
    if prepared and lacking:
        raise NotInitialised(
            f"Index {index} lacks {', '.join(lacking)}: run `es-neardupe init` with the same settings again."
        )


def check_seen(index: str, mapping: Mapping[str, Any], settings: Settings) -> None:
    """Raises `Forbidden` where roles hide a text field: its texts would be taken for empty, and be all alike."""
    if hidden := [name for name in settings.fields if not schema.is_mapped(mapping.get("properties", {}), name)]:
        raise Forbidden(
            f"This user does not see {', '.join(hidden)} of index {index}, which holds the texts to be compared: "
            f"log in as a user whose roles grant it.",
            status=403,
        )


def check_source(index: str, mapping: Mapping[str, Any], settings: Settings) -> None:
    """Raises `IndexUnusable` where a partial update would lose what ``_source`` does not hold."""
    source = mapping.get("_source", {})
    if source.get("enabled") is False or source.get("mode") == "disabled":
        raise IndexUnusable(
            f"Index {index} has _source disabled: its texts cannot be read back, and updates are impossible. "
            f"Re-index it from where the texts are, with _source."
        )
    if source.get("excludes") or source.get("includes"):
        raise IndexUnusable(
            f"Index {index} keeps only a part of each document in _source (includes/excludes): any partial update "
            f"would lose the rest for good, so {settings.prefix} fields are not written there."
        )


def check_text_fields(index: str, mapping: Mapping[str, Any], settings: Settings) -> None:
    """Raises `IndexUnusable` unless every field to fingerprint is a text field; names those that are."""
    types = dict(schema.field_types(mapping.get("properties", {})))
    texts = sorted(name for name, kind in types.items() if kind in schema.TEXT_TYPES)
    known = f"Text fields there: {', '.join(texts)}." if texts else "It has no text field at all."
    for name in settings.fields:
        kind = types.get(name)
        if kind is None:
            raise IndexUnusable(f"Index {index} has no field {name!r}. {known}")
        if kind == "multi-field":
            whole = name.rpartition(".")[0]
            raise IndexUnusable(f"{name} is a multi-field, which _source does not hold: name {whole} itself. {known}")
        if kind not in schema.TEXT_TYPES:
            raise IndexUnusable(f"Field {name!r} of index {index} is {kind}, not text. {known}")


def check_range_field(client: Client, index: str, name: str) -> None:
    """Raises `SettingsError` for a field that no index has: a range over it would match nothing, silently."""
    known = client.request("GET", path(index, "_field_caps"), params={"fields": f"{name},*"})["fields"]
    nested = [field for field, kinds in known.items() if "nested" in kinds]
    if (inside := schema.lies_in(name, nested)) is not None:
        raise SettingsError(f"{name} lies in the nested objects {inside}, which a range over documents does not see.")
    if name not in known:
        dates = sorted(
            field
            for field, kinds in known.items()
            if {"date", "date_nanos"} & kinds.keys() and not schema.lies_in(field, nested)
        )
        there = f"Date fields there: {', '.join(dates)}." if dates else "It has no date field at all."
        raise SettingsError(f"Index {index} has no field {name!r}. {there}")


def put_settings(
    client: Client,
    index: str,
    mapping: Mapping[str, Any],
    *settings: Settings,
    notes: Mapping[str, Mapping[str, Any]] | None = None,
) -> None:
    """Add our fields and our part of ``_meta`` to a concrete index, keeping whatever else ``_meta`` holds.

    Several settings, of different prefixes, are put at once. ``notes``: what to keep with the settings of a prefix.
    """
    body: JSON = {"_meta": dict(mapping.get("_meta", {})), "properties": {}}
    for one in settings:
        ours, before = our_mapping(one), body["_meta"].get(one.prefix, {})
        body["_meta"][one.prefix] = {**before, **ours["_meta"][one.prefix], **(notes or {}).get(one.prefix, {})}
        body["properties"] |= ours["properties"]
    client.request("PUT", path(index, "_mapping"), body=body)


def our_mapping(settings: Settings) -> JSON:
    """Our fields and our part of ``_meta``, as a mapping has them."""
    prefix = settings.prefix
    return {"_meta": {prefix: settings.to_meta()}, "properties": {prefix: schema.fields_mapping()}}


def remove_settings(client: Client, index: str, mapping: Mapping[str, Any], prefix: str) -> None:
    """Take our part out of a concrete index's ``_meta``; the rest of it stays."""
    meta = {name: value for name, value in mapping.get("_meta", {}).items() if name != prefix}
    client.request("PUT", path(index, "_mapping"), body={"_meta": meta})


def result_window(client: Client, name: str) -> int:
    """The least ``index.max_result_window`` of the indices behind a name."""
    found = client.request(
        "GET",
        path(name, "_settings", "index.max_result_window"),
        params={"flat_settings": "true"},
    )
    windows = [
        int(entry["settings"]["index.max_result_window"]) for entry in (found or {}).values() if entry["settings"]
    ]
    return min([10_000, *windows])
