"""Whether fields are as a command needs them: ours in the mapping, the texts, what ``_source`` holds of them."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from es_neardupe import schema
from es_neardupe.clients import Client, path
from es_neardupe.errors import Forbidden, IndexUnusable, MappingConflict, NotInitialised, SettingsError
from es_neardupe.settings import Settings

__all__ = ["check_fields", "check_range_field", "check_seen", "check_source", "check_text_fields"]


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
