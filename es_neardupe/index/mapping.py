"""Our part of a mapping: loads ``mappings/*.json``, owns the field names, compares with what is there."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from es_neardupe.errors import Forbidden, IndexUnusable, MappingConflict, NotInitialised, SettingsError
from es_neardupe.index.settings import Settings
from es_neardupe.server.client import Client, path

__all__ = [
    "TEXT_TYPES",
    "VALUE_TYPES",
    "Fields",
    "check_fields",
    "check_range_field",
    "check_relations",
    "check_seen",
    "check_source",
    "check_text_fields",
    "companion_mapping",
    "conflicts",
    "field_types",
    "fields_mapping",
    "is_mapped",
    "lies_in",
    "missing",
    "nested_objects",
    "relation_in",
    "relations",
    "relations_left_alone",
    "text_mapping",
    "value_fields",
]


TEXT_TYPES = frozenset({"text", "match_only_text", "annotated_text", "search_as_you_type"})
"""Field types whose value in ``_source`` is running text."""


VALUE_TYPES = frozenset({"keyword", "constant_keyword", "wildcard", "boolean", "date", "date_nanos", "ip", "version"})
VALUE_TYPES |= {"byte", "short", "integer", "long", "unsigned_long", "half_float", "float", "double", "scaled_float"}
"""Field types, besides texts, that hold plain values in ``_source``."""


@dataclass(frozen=True, slots=True)
class Fields:
    """The full names of our fields below a prefix."""

    prefix: str

    def __getattr__(self, name: str) -> str:
        """``fields.bands`` is ``"neardupe.bands"``; only names that ``fields.json`` has."""
        if name not in fields_mapping()["properties"]:
            raise AttributeError(name)
        return f"{self.prefix}.{name}"


@cache
def fields_mapping() -> dict[str, Any]:
    """The mapping of our object field, as ``mappings/fields.json`` has it. Do not change what is returned."""
    return companion_mapping("fields")


@cache
def companion_mapping(name: str) -> dict[str, Any]:
    """The mapping in ``mappings/<name>.json``. Do not change what is returned."""
    installed = files("es_neardupe") / "mappings"
    folder = installed if installed.is_dir() else Path(__file__).parents[2] / "mappings"  # run from the repository
    mapping: dict[str, Any] = json.loads((folder / f"{name}.json").read_text("utf-8"))
    return mapping


def text_mapping(names: tuple[str, ...]) -> dict[str, Any]:
    """``properties`` for new text fields; dotted names become objects.

    Raises `SettingsError` where one name is the beginning of another: a field is a text or an object.
    """
    properties: dict[str, Any] = {}
    for name in names:
        inner = next((other for other in names if other.startswith(f"{name}.")), None)
        if inner is not None:
            raise SettingsError(f"{name} cannot be a text and hold {inner}.")
        *parents, leaf = name.split(".")
        level = properties
        for parent in parents:
            level = level.setdefault(parent, {"properties": {}})["properties"]
        level[leaf] = {"type": "text"}
    return properties


def conflicts(present: Mapping[str, Any], prefix: str) -> list[str]:
    """What stands in the way of our fields in the ``properties`` of a mapping; empty if nothing does.

    A field of ours that is missing is no conflict: it can be added. One with another type, or with doc values
    where we have none, can never be changed in place.
    """
    there = present.get(prefix)
    if there is None:
        return []
    if (kind := there.get("type", "object")) != "object":
        return [f"{prefix} is mapped as {kind}, not as an object"]
    if there.get("enabled") is False:
        return [f"{prefix} is switched off (enabled: false)"]
    found = []
    for name, wanted in fields_mapping()["properties"].items():
        actual = there.get("properties", {}).get(name)
        if actual is not None and (said := _difference(actual, wanted)):
            found.append(f"{prefix}.{name} {said}")
    return found


def _difference(actual: Mapping[str, Any], wanted: Mapping[str, Any]) -> str:
    kind = actual.get("type", "object")
    if kind != wanted["type"]:
        return f"is mapped as {kind}, not as {wanted['type']}"
    if actual.get("index") is False:
        return "is not indexed"
    if "ignore_above" in actual:
        return "has ignore_above"
    if "normalizer" in actual:
        return "has a normalizer"
    if _has_doc_values(actual) != _has_doc_values(wanted):
        return "has doc values" if _has_doc_values(actual) else "has no doc values"
    return ""


def _has_doc_values(mapping: Mapping[str, Any]) -> bool:
    """As mapped, or by default of the type."""
    return bool(mapping.get("doc_values", mapping["type"] != "binary"))


def missing(present: Mapping[str, Any], prefix: str, *, sampled: bool = False) -> list[str]:
    """Names of our fields that a mapping's ``properties`` lack. Only where features are ``sampled`` is the field of
    sampled keys among them: older indices have none."""
    there = present.get(prefix, {}).get("properties", {})
    wanted = [name for name in fields_mapping()["properties"] if sampled or name != "samples"]
    return [f"{prefix}.{name}" for name in wanted if name not in there]


def is_mapped(properties: Mapping[str, Any], name: str) -> bool:
    """Whether anything stands under a name that may be dotted, be it an object."""
    if name in properties:
        return True
    parent, _, rest = name.partition(".")
    return bool(rest) and is_mapped(properties.get(parent, {}).get("properties", {}), rest)


def field_types(properties: Mapping[str, Any], parent: str = "") -> Iterator[tuple[str, str]]:
    """(full name, type) of every field below ``properties``; multi-fields as ``FIELD.SUB`` of type ``multi-field``."""
    for name, mapping in properties.items():
        full = f"{parent}{name}"
        if "type" in mapping and mapping["type"] not in ("object", "nested"):
            yield full, mapping["type"]
        for sub in mapping.get("fields", {}):
            yield f"{full}.{sub}", "multi-field"
        yield from field_types(mapping.get("properties", {}), f"{full}.")


def nested_objects(properties: Mapping[str, Any], parent: str = "") -> Iterator[str]:
    """Full names of the nested objects: what lies in them a query of the document itself does not see."""
    for name, mapping in properties.items():
        full = f"{parent}{name}"
        if mapping.get("type") == "nested":
            yield full
        yield from nested_objects(mapping.get("properties", {}), f"{full}.")


def lies_in(name: str, objects: Iterable[str]) -> str | None:
    """The innermost of some objects that a field lies in, if any."""
    return max((one for one in objects if name.startswith(f"{one}.")), key=len, default=None)


def value_fields(mappings: Iterable[Mapping[str, Any]], prefix: str) -> list[str]:
    """The fields that hold texts or plain values in at least one of the mappings, sorted; ours left out."""
    found = (field for mapping in mappings for field in field_types(mapping.get("properties", {})))
    plain = {name for name, kind in found if kind in VALUE_TYPES | TEXT_TYPES}
    return sorted(name for name in plain if not name.startswith(f"{prefix}."))


JSON = Mapping[str, Any]


def relations(properties: JSON, parent: str = "") -> Iterator[tuple[str, dict[str, tuple[str, ...]]]]:
    """(full name, parent relation -> its child relations) of every join field below ``properties``."""
    for name, mapping in properties.items():
        full = f"{parent}{name}"
        if mapping.get("type") == "join":
            stored = mapping.get("relations", {})
            yield full, {one: (some,) if isinstance(some, str) else tuple(some) for one, some in stored.items()}
        yield from relations(mapping.get("properties", {}), f"{full}.")


def relations_left_alone(mappings: Iterable[JSON], chosen: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Join field -> the relations whose documents are left alone: all but the chosen ones; without a choice, those
    that are children."""
    found: dict[str, set[str]] = {}
    for mapping in mappings:
        for name, families in relations(mapping.get("properties", {})):
            children = {child for some in families.values() for child in some}
            unwanted = (children | families.keys()) - set(chosen) if chosen else children
            found.setdefault(name, set()).update(unwanted)
    return {name: tuple(sorted(unwanted)) for name, unwanted in sorted(found.items()) if unwanted}


def check_relations(index: str, mapping: JSON, chosen: Sequence[str]) -> None:
    """Raises `IndexUnusable` for a chosen relation that no join field of the index has."""
    there = {
        relation
        for _, families in relations(mapping.get("properties", {}))
        for parent, children in families.items()
        for relation in (parent, *children)
    }
    if unknown := [name for name in chosen if name not in there]:
        known = f"Relations there: {', '.join(sorted(there))}." if there else "It has no join field at all."
        raise IndexUnusable(f"Index {index} has no relation {', '.join(unknown)}. {known}")


def relation_in(source: JSON, field: str) -> str | None:
    """The relation of a document by its join field: of ``"answer"``, or of ``{"name": "answer", "parent": ...}``."""
    value: Any = source
    for part in (field,) if field in source else field.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    told = value.get("name") if isinstance(value, Mapping) else value
    return told if isinstance(told, str) else None


def check_fields(index: str, mapping: Mapping[str, Any], settings: Settings, *, prepared: bool = True) -> None:
    """Raises `MappingConflict` or, of a ``prepared`` index, `NotInitialised` where our fields are not as they have to
    be."""
    properties, prefix = mapping.get("properties", {}), settings.prefix
    if found := conflicts(properties, prefix):
        raise MappingConflict(
            f"Index {index} cannot take our fields: {'; '.join(found)}. A mapping cannot be changed in place: "
            f"choose another `prefix`, or re-index without that field."
        )
    lacking = missing(properties, prefix, sampled=settings.scheme.sample_mod > 0)
    if prepared and lacking:
        raise NotInitialised(
            f"Index {index} lacks {', '.join(lacking)}: run `es-neardupe init` with the same settings again."
        )


def check_seen(index: str, mapping: Mapping[str, Any], settings: Settings) -> None:
    """Raises `Forbidden` where roles hide a text field: its texts would be taken for empty, and be all alike."""
    if hidden := [name for name in settings.fields if not is_mapped(mapping.get("properties", {}), name)]:
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
    types = dict(field_types(mapping.get("properties", {})))
    texts = sorted(name for name, kind in types.items() if kind in TEXT_TYPES)
    known = f"Text fields there: {', '.join(texts)}." if texts else "It has no text field at all."
    for name in settings.fields:
        kind = types.get(name)
        if kind is None:
            raise IndexUnusable(f"Index {index} has no field {name!r}. {known}")
        if kind == "multi-field":
            whole = name.rpartition(".")[0]
            raise IndexUnusable(f"{name} is a multi-field, which _source does not hold: name {whole} itself. {known}")
        if kind not in TEXT_TYPES:
            raise IndexUnusable(f"Field {name!r} of index {index} is {kind}, not text. {known}")


def check_range_field(client: Client, index: str, name: str) -> None:
    """Raises `SettingsError` for a field that no index has: a range over it would match nothing, silently."""
    known = client.request("GET", path(index, "_field_caps"), params={"fields": f"{name},*"})["fields"]
    nested = [field for field, kinds in known.items() if "nested" in kinds]
    if (inside := lies_in(name, nested)) is not None:
        raise SettingsError(f"{name} lies in the nested objects {inside}, which a range over documents does not see.")
    if name not in known:
        dates = sorted(
            field
            for field, kinds in known.items()
            if {"date", "date_nanos"} & kinds.keys() and not lies_in(field, nested)
        )
        there = f"Date fields there: {', '.join(dates)}." if dates else "It has no date field at all."
        raise SettingsError(f"Index {index} has no field {name!r}. {there}")
