"""Parents and children: the documents of a join field, and which of its relations are to be processed."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

from es_neardupe.errors import IndexUnusable

__all__ = ["check_relations", "relation_in", "relations", "relations_left_alone"]

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
