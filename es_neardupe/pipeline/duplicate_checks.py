"""Whether an index has what a request names, before anything is read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from fnmatch import fnmatchcase
from typing import Any

from es_neardupe import schema
from es_neardupe.errors import IndexUnusable, SettingsError
from es_neardupe.requests import ContentPlan, RequestPlan

__all__ = ["check_fields"]

_NAMED = 40


def check_fields(index: str, mappings: Mapping[str, Mapping[str, Any]], plan: RequestPlan, prefix: str) -> None:
    """Raises `SettingsError` for a field whose values are in the documents of no index, `IndexUnusable` for an index
    that keeps no ``_source``, or leaves a field out of it."""
    for name, mapping in mappings.items():
        source = mapping.get("_source", {})
        if source.get("enabled") is False or source.get("mode") == "disabled":
            raise IndexUnusable(f"Index {name} has _source disabled: its texts cannot be read back.")
    known = schema.value_fields(mappings.values(), prefix)
    whole = _every_name(mappings.values())
    for stage in plan.stages:
        content = isinstance(stage, ContentPlan)
        for field in stage.fields:
            if field not in (whole if content else known):
                raise SettingsError(f"{_problem(index, field, mappings)} Fields there: {_listed(known)}.")
            if without := [name for name, mapping in mappings.items() if _left_out(field, mapping)]:
                raise IndexUnusable(
                    f"Index {', '.join(without)} leaves {field} out of _source (includes/excludes): its values cannot "
                    f"be read back. Name another field."
                )


def _left_out(field: str, mapping: Mapping[str, Any]) -> bool:
    """Whether ``_source`` is kept without this field."""
    source, parts = mapping.get("_source", {}), field.split(".")
    names = [".".join(parts[:end]) for end in range(1, len(parts) + 1)]

    def named(patterns: Sequence[str]) -> bool:
        return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)

    includes = source.get("includes", [])
    return named(source.get("excludes", [])) or (bool(includes) and not named(includes))


def _every_name(mappings: Iterable[Mapping[str, Any]]) -> set[str]:
    """Every field that ``_source`` may hold, objects too."""
    names: set[str] = set()
    for mapping in mappings:
        for field, kind in schema.field_types(mapping.get("properties", {})):
            if kind not in ("multi-field", "alias"):
                parts = field.split(".")
                names.update(".".join(parts[:end]) for end in range(1, len(parts) + 1))
    return names


def _problem(index: str, field: str, mappings: Mapping[str, Mapping[str, Any]]) -> str:
    kinds = {
        kind
        for mapping in mappings.values()
        for name, kind in schema.field_types(mapping.get("properties", {}))
        if name == field
    }
    if "multi-field" in kinds:
        whole = field.rpartition(".")[0]
        return f"{field} is a multi-field, which documents do not hold: name {whole} itself."
    if kinds:
        return f"Field {field!r} of index {index} is {'/'.join(sorted(kinds))}, which holds no text."
    return f"Index {index} has no field {field!r} with values."


def _listed(names: Sequence[str]) -> str:
    if not names:
        return "none"
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more
