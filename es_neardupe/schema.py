"""Our part of a mapping: loads ``mappings/*.json``, owns the field names, compares with what is there."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from importlib.resources import files
from typing import Any

from es_neardupe.errors import SettingsError

__all__ = [
    "TEXT_TYPES",
    "VALUE_TYPES",
    "Fields",
    "companion_mapping",
    "conflicts",
    "field_types",
    "fields_mapping",
    "is_mapped",
    "lies_in",
    "missing",
    "nested_objects",
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
    mapping: dict[str, Any] = json.loads(files("es_neardupe.mappings").joinpath(f"{name}.json").read_text("utf-8"))
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
