"""What a name stands for on the server: concrete indices, their mapping, our settings in it, their limits."""

from __future__ import annotations

import unicodedata
from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from es_neardupe.errors import BeingMigrated, NotFound, NotInitialised, RolledOver, SchemeMismatch, SettingsError
from es_neardupe.index import mapping as schema
from es_neardupe.index import queries
from es_neardupe.index.mapping import (
    Fields,
    check_fields,
    check_seen,
    check_source,
    check_text_fields,
    relations_left_alone,
)
from es_neardupe.index.migration_state import inherited_prefix, is_switching, next_prefix
from es_neardupe.index.rollover import RolloverAlias, families_of, family_named
from es_neardupe.index.settings import Settings
from es_neardupe.options import DEFAULT_PREFIX
from es_neardupe.records import Product
from es_neardupe.server.client import Client, path

if TYPE_CHECKING:
    from es_neardupe.index.index import Index

__all__ = [
    "IndexTarget",
    "SidecarLayout",
    "check_name",
    "check_new",
    "mappings_of",
    "not_rolled_over",
    "open_target",
    "our_mapping",
    "prepare_new",
    "put_settings",
    "remove_settings",
    "result_window",
    "serving_prefix",
    "stored_settings",
    "the_one_of",
    "with_source_modes",
]

JSON = dict[str, Any]

_LONGEST_PATH = 2000
"""Servers refuse request lines over 4,096 bytes."""


@dataclass(frozen=True, slots=True)
class SidecarLayout:
    """Properties of the sidecar indices that hold keys and groups, so that the user's indices are not written."""

    write_group: bool
    """Whether group ids, and they alone, are written into the user's documents."""
    stored: tuple[str, ...]
    """Those of the user's indices whose texts are in stored fields, not in ``_source``."""


@dataclass(frozen=True, slots=True)
class IndexTarget:
    """An index, alias or pattern that was initialised: what every command works on."""

    name: str
    indices: tuple[str, ...]
    settings: Settings
    max_result_window: int
    family: RolloverAlias | None = None
    """The data stream or the alias with a write index that the name is: other indices come and go behind it."""
    left_alone: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Join field -> the relations whose documents we leave alone."""
    new: tuple[str, ...] = ()
    """Of the indices, those that a rollover made and nobody has prepared yet."""
    inherits: str | None = None
    """The prefix whose group ids documents take over with their first keys: where a migration is being prepared."""
    sidecar: SidecarLayout | None = None
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
) -> IndexTarget:
    """Find the concrete indices behind a name and check that all of them were initialised alike.

    ``texts``: the caller compares texts, so this user must see the fields that they are in. ``adopting``: the caller
    prepares what a rollover made, the target's `new` indices. While a migration switches documents to a new scheme,
    the target is that of the new keys, under their own prefix, and who ``writes`` is refused. Raises `NotFound`,
    `NotInitialised`, `SchemeMismatch`, `MappingConflict`, `IndexUnusable` or `Forbidden`; so a command that got a
    target may write to it, but for `new`.
    """
    mappings = mappings_of(client, name)
    families = families_of(client, name, mappings)
    prefix = serving_prefix(name, mappings, prefix, writes=writes)
    stored = {index: stored_settings(mapping, prefix) for index, mapping in mappings.items()}
    new = tuple(index for index, settings in stored.items() if settings is None)
    check_new(name, prefix, families, new=new, prepared=stored.keys() - set(new), adopting=adopting)
    settings = the_one_of(stored, name)
    for index, mapping in mappings.items():
        check_fields(index, mapping, settings, prepared=index not in new)
        check_source(index, mapping, settings)
        if texts:
            check_seen(index, mapping, settings)
    return IndexTarget(
        name,
        tuple(sorted(mappings)),
        settings,
        result_window(client, name),
        family=family_named(families, name),
        left_alone=relations_left_alone(mappings.values(), settings.relations),
        new=new,
        inherits=inherited_prefix(mappings.values(), prefix),
    )


def serving_prefix(name: str, mappings: Mapping[str, JSON], prefix: str, *, writes: bool) -> str:
    """The prefix whose keys commands use: that of the new ones while a migration switches to them. Raises
    `BeingMigrated` then for who ``writes``."""
    if not is_switching(mappings.values(), prefix):
        return prefix
    if writes:
        raise BeingMigrated(
            f"Index {name} is on its way to other keys, which `es-neardupe migrate` has begun to switch to: run "
            f"`es-neardupe migrate {name}` to the end first. Searches go on meanwhile."
        )
    return next_prefix(prefix)


def check_new(
    name: str,
    prefix: str,
    families: Collection[RolloverAlias],
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


def not_rolled_over(
    families: Collection[RolloverAlias], *, new: Collection[str], prepared: Collection[str]
) -> list[str]:
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


def prepare_new(index: Index) -> None:
    """Put our fields and the settings into the indices that a rollover made. Raises `IndexUnusable` where their text
    fields are others, `Forbidden` without the right to change a mapping."""
    for name in index.target.new:
        mapping = mappings_of(index.client, name)[name]
        check_text_fields(name, mapping, index.settings)
        put_settings(index.client, name, mapping, index.settings)


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
