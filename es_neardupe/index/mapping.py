"""Mappings: loads ``mappings/*.json``, names the `neardupe` fields, and checks the mappings of indices."""

from __future__ import annotations

import json
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass
from fnmatch import fnmatchcase
from functools import cache
from importlib.resources import files
from pathlib import Path
from typing import Any

from es_neardupe.errors import Forbidden, IndexUnusable, MappingConflict, NotInitialised, SettingsError
from es_neardupe.index.settings import Settings
from es_neardupe.index.stored_fields import group_of, stored_fields
from es_neardupe.server.client import path
from es_neardupe.server.documents import Documents
from es_neardupe.wording import command, option

TEXT_TYPES = frozenset({"text", "match_only_text", "annotated_text", "search_as_you_type"})
"""Field types that hold text in ``_source``."""

WHOLE_TEXTS = frozenset({"keyword", "wildcard"})
"""Types of fields whose values can be texts: keys are made from `_source`."""


VALUE_TYPES = frozenset({"keyword", "constant_keyword", "wildcard", "boolean", "date", "date_nanos", "ip", "version"})
VALUE_TYPES |= {"byte", "short", "integer", "long", "unsigned_long", "half_float", "float", "double", "scaled_float"}
"""Other field types that hold plain values in ``_source``."""


_COUNTED = frozenset({"keyword", "constant_keyword", "boolean", "ip"})


@dataclass(frozen=True, slots=True)
class Fields:
    """The full names of the `neardupe` fields under a prefix."""

    prefix: str

    def __getattr__(self, name: str) -> str:
        """``fields.bands`` is ``"neardupe.bands"``. Raises `AttributeError` for names that are not in
        ``fields.json``."""
        if name not in fields_mapping()["properties"]:
            raise AttributeError(name)
        return f"{self.prefix}.{name}"


@cache
def fields_mapping() -> dict[str, Any]:
    """The mapping of the `neardupe` object, ``mappings/fields.json``. Do not modify the returned object."""
    return load_mapping("fields")


@cache
def load_mapping(name: str) -> dict[str, Any]:
    """The mapping in ``mappings/<name>.json``. Do not modify the returned object."""
    installed = files("es_neardupe") / "mappings"
    folder = installed if installed.is_dir() else Path(__file__).parents[2] / "mappings"  # run from the repository
    mapping: dict[str, Any] = json.loads((folder / f"{name}.json").read_text("utf-8"))
    return mapping


def own_fields(mapping: Mapping[str, Any]) -> frozenset[str]:
    """The fields at the top level of a mapping that this package has added: the objects that `clean` or a migration
    left under any prefix, and the copies of group ids."""
    properties = mapping.get("properties", {})
    objects = {
        name
        for name, one in properties.items()
        if fields_mapping()["properties"].keys() <= one.get("properties", {}).keys()
    }
    stored = [mapping.get("_meta", {}).get(name) for name in objects]
    copies = {meta.get("group_field") for meta in stored if isinstance(meta, Mapping)}
    return frozenset(objects | (copies & properties.keys()))


def text_mapping(names: tuple[str, ...]) -> dict[str, Any]:
    """``properties`` for new text fields; dotted names become objects.

    Raises `SettingsError` if one name is the parent of another: a field is either a text or an object.
    """
    properties: dict[str, Any] = {}
    for name in names:
        inner = next((other for other in names if other.startswith(f"{name}.")), None)
        if inner is not None:
            raise SettingsError(f"{name} cannot be both a text and an object that contains {inner}.")
        *parents, leaf = name.split(".")
        level = properties
        for parent in parents:
            level = level.setdefault(parent, {"properties": {}})["properties"]
        level[leaf] = {"type": "text"}
    return properties


def foreign_value(source: Mapping[str, Any], settings: Settings, *, new_group_field: bool = False) -> str | None:
    """The name of a value in a document that would be overwritten by the fields of the settings, and that this program
    has not written; None if there is none. The field need not be mapped.

    Under the prefix, only objects with `neardupe` fields are not foreign, or such fields with dotted names, as in an
    export. In the group field, so is a text in a document with that object, or in the form of a group id; in a
    ``new_group_field``, only the group id of that object. An empty text there, as of an empty cell of a table, is no
    value.
    """
    known, prefix, copy = fields_mapping()["properties"].keys(), settings.prefix, settings.group_field
    value = source.get(prefix)
    if value is not None and not _has_only(known, value):
        return prefix
    for name in dotted_names(source, prefix):
        if name.removeprefix(f"{prefix}.") not in known:
            return name
    copied = None if copy is None else source.get(copy)
    if new_group_field:
        is_own = copied == (stored_fields(source, prefix).get("group") or source.get(f"{prefix}.group"))
    else:
        is_own = isinstance(copied, str) and bool(value or group_of({"group": copied}))
    return None if copied in (None, "") or is_own else copy


def _has_only(known: Set[str], value: Any) -> bool:
    """Whether a value is an object with known fields only, or a list of such."""
    if isinstance(value, list):
        return all(_has_only(known, one) for one in value)
    return isinstance(value, dict) and value.keys() <= known


def dotted_names(source: Mapping[str, Any], prefix: str) -> list[str]:
    """The names in a document that a program wrote with a dot instead of the object of the prefix."""
    dotted = f"{prefix}."
    return [name for name in source if "." in name and name.startswith(dotted)]  # few names have a dot


def conflicts(mapping: Mapping[str, Any], settings: Settings) -> list[str]:
    """Conflicts of the fields of the settings with a mapping.

    A missing field is not a conflict: it can be added. A field with another type, or with other doc values, cannot be
    changed in place.
    """
    present, names = mapping.get("properties", {}), settings.in_documents
    found = [
        f"{name} is a runtime field"
        for name in mapping.get("runtime", {})
        if name in names or name.startswith(f"{settings.prefix}.")
    ]
    copy = present.get(settings.group_field) if settings.group_field else None
    if copy is not None and (difference := _difference(copy, fields_mapping()["properties"]["group"])):
        found.append(f"{settings.group_field} {difference}")
    prefix = settings.prefix
    existing = present.get(prefix)
    if existing is None:
        return found
    if (kind := existing.get("type", "object")) != "object":
        return [*found, f"{prefix} is mapped as {kind}, not as an object"]
    if existing.get("enabled") is False:
        return [*found, f"{prefix} is disabled (enabled: false)"]
    if others := sorted(existing.get("properties", {}).keys() - fields_mapping()["properties"].keys()):  # the user's
        found.append(f"{prefix} is an object with other fields ({', '.join(others[:5])})")
    for name, required in fields_mapping()["properties"].items():
        actual = existing.get("properties", {}).get(name)
        if actual is not None and (difference := _difference(actual, required)):
            found.append(f"{prefix}.{name} {difference}")
    return found


def has_own_fields(mapping: Mapping[str, Any], prefix: str) -> bool:
    """Whether an index has any `neardupe` field under a prefix."""
    existing = mapping.get("properties", {}).get(prefix, {}).get("properties", {})
    return not existing.keys().isdisjoint(fields_mapping()["properties"])


def _difference(actual: Mapping[str, Any], required: Mapping[str, Any]) -> str:
    kind = actual.get("type", "object")
    if kind != required["type"]:
        return f"is mapped as {kind}, not as {required['type']}"
    if actual.get("index") is False:
        return "is not indexed"
    if "ignore_above" in actual:
        return "has ignore_above"
    if "normalizer" in actual:
        return "has a normalizer"
    if _has_doc_values(actual) != _has_doc_values(required):
        return "has doc values" if _has_doc_values(actual) else "has no doc values"
    return ""


def _has_doc_values(mapping: Mapping[str, Any]) -> bool:
    """As mapped, or the default of the type."""
    return bool(mapping.get("doc_values", mapping["type"] != "binary"))


def properties_of(settings: Settings) -> dict[str, Any]:
    """The ``properties`` of the fields of the settings."""
    copy = {} if settings.group_field is None else {settings.group_field: fields_mapping()["properties"]["group"]}
    return {settings.prefix: fields_mapping(), **copy}


def missing(present: Mapping[str, Any], prefix: str, *, sampled: bool = False) -> list[str]:
    """Full names of the `neardupe` fields that the ``properties`` of a mapping lack. The field of sampled keys is only
    required if features are ``sampled``: older indices lack it."""
    existing = present.get(prefix, {}).get("properties", {})
    required = [name for name in fields_mapping()["properties"] if sampled or name != "samples"]
    return [f"{prefix}.{name}" for name in required if name not in existing]


def is_mapped(properties: Mapping[str, Any], name: str) -> bool:
    """Whether a field or object with a name, which may be dotted, is mapped."""
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


def multi_fields(properties: Mapping[str, Any], field: str) -> list[str]:
    """Full names of the multi-fields of a field."""
    known = field_types(properties)
    return [name for name, kind in known if kind == "multi-field" and name.rpartition(".")[0] == field]


def keyword_fields(properties: Mapping[str, Any], parent: str = "") -> Iterator[str]:
    """Full names of the fields, and multi-fields, that hold whole values which can be counted; not of those inside
    nested objects."""
    for name, mapping in properties.items():
        if mapping.get("type") == "nested":
            continue
        full = f"{parent}{name}"
        subs = ((f"{full}.{sub}", one) for sub, one in mapping.get("fields", {}).items())
        for field, one in ((full, mapping), *subs):
            if one.get("type") in _COUNTED and one.get("doc_values", True) and one.get("index", True):
                yield field
        yield from keyword_fields(mapping.get("properties", {}), f"{full}.")


def nested_objects(properties: Mapping[str, Any], parent: str = "") -> Iterator[str]:
    """Full names of the nested objects. A query of the document itself does not match fields inside them."""
    for name, mapping in properties.items():
        full = f"{parent}{name}"
        if mapping.get("type") == "nested":
            yield full
        yield from nested_objects(mapping.get("properties", {}), f"{full}.")


def lies_in(name: str, objects: Iterable[str]) -> str | None:
    """The innermost of the given objects that contains a field, if any."""
    return max((one for one in objects if name.startswith(f"{one}.")), key=len, default=None)


def value_fields(mappings: Iterable[Mapping[str, Any]], prefix: str) -> list[str]:
    """Names of the fields that hold texts or plain values in at least one of the mappings, without those of this
    package, also those under the prefix; sorted."""
    known = list(mappings)
    own = {prefix}.union(*map(own_fields, known))
    found = (field for mapping in known for field in field_types(mapping.get("properties", {})))
    plain = {name for name, kind in found if kind in VALUE_TYPES | TEXT_TYPES}
    return sorted(name for name in plain - own if not name.startswith(tuple(f"{one}." for one in own)))


def relations(properties: Mapping[str, Any], parent: str = "") -> Iterator[tuple[str, dict[str, tuple[str, ...]]]]:
    """(full name, parent relation -> its child relations) of every join field below ``properties``."""
    for name, mapping in properties.items():
        full = f"{parent}{name}"
        if mapping.get("type") == "join":
            stored = mapping.get("relations", {})
            yield full, {one: (some,) if isinstance(some, str) else tuple(some) for one, some in stored.items()}
        yield from relations(mapping.get("properties", {}), f"{full}.")


def relations_to_skip(mappings: Iterable[Mapping[str, Any]], chosen: Collection[str]) -> dict[str, tuple[str, ...]]:
    """Join field -> the relations whose documents are not processed: all but the chosen ones; without a choice, those
    of children."""
    found: dict[str, set[str]] = {}
    for mapping in mappings:
        for name, children_of in relations(mapping.get("properties", {})):
            children = {child for some in children_of.values() for child in some}
            skipped = (children | children_of.keys()) - set(chosen) if chosen else children
            found.setdefault(name, set()).update(skipped)
    return {name: tuple(sorted(skipped)) for name, skipped in sorted(found.items()) if skipped}


def check_relations(index: str, mapping: Mapping[str, Any], chosen: Sequence[str]) -> None:
    """Raises `IndexUnusable` for a chosen relation that no join field of the index has."""
    existing = {
        relation
        for _, children_of in relations(mapping.get("properties", {}))
        for parent, children in children_of.items()
        for relation in (parent, *children)
    }
    if unknown := [name for name in chosen if name not in existing]:
        known = f"Its relations: {', '.join(sorted(existing))}." if existing else "It has no join field."
        raise IndexUnusable(f"Index {index} has no relation {', '.join(unknown)}. {known}")


def relation_in(source: Mapping[str, Any], field: str) -> str | None:
    """The relation of a document: the value of its join field, ``"answer"`` or ``{"name": "answer", "parent":
    ...}``."""
    value: Any = source
    for part in (field,) if field in source else field.split("."):
        value = value.get(part) if isinstance(value, Mapping) else None
    relation = value.get("name") if isinstance(value, Mapping) else value
    return relation if isinstance(relation, str) else None


def check_fields(index: str, mapping: Mapping[str, Any], settings: Settings, *, prepared: bool = True) -> None:
    """Raises `MappingConflict` if an index cannot have the `neardupe` fields, `NotInitialised` if a ``prepared`` index
    lacks some."""
    properties, prefix = mapping.get("properties", {}), settings.prefix
    if found := conflicts(mapping, settings):
        raise MappingConflict(
            f"Index {index} cannot have the {prefix} fields: {'; '.join(found)}. A mapping cannot be changed in place: "
            f"choose another {option('prefix')}, or re-index without that field."
        )
    lacking = missing(properties, prefix, sampled=settings.scheme.sample_mod > 0)
    lacking += [name for name in settings.in_documents[1:] if name not in properties]
    if prepared and lacking:
        raise NotInitialised(
            f"Index {index} lacks {', '.join(lacking)}: run `es-neardupe init` with the same settings again."
        )


def check_fields_visible(index: str, mapping: Mapping[str, Any], settings: Settings) -> None:
    """Raises `Forbidden` if roles hide a text field: all its texts would be treated as empty, and as identical."""
    if hidden := [name for name in settings.fields if not is_mapped(mapping.get("properties", {}), name)]:
        raise Forbidden(
            f"This user does not see {', '.join(hidden)} of index {index}, which holds the texts to be compared: "
            f"log in as a user whose roles grant it.",
            status=403,
        )


def is_in_source(mapping: Mapping[str, Any], name: str) -> bool:
    """Whether ``_source`` keeps a field: it may be off, or have patterns of the fields and objects to keep or to leave
    out."""
    source = mapping.get("_source", {})
    if source.get("enabled") is False or source.get("mode") == "disabled":
        return False
    includes, excludes = source.get("includes") or (), source.get("excludes") or ()
    return (not includes or _is_named(name, includes)) and not _is_named(name, excludes)


def _is_named(name: str, patterns: str | Sequence[str]) -> bool:
    """Whether a pattern matches a field, or an object that it is in. Only ``*`` has a meaning in a pattern."""
    parts = name.split(".")
    paths = [".".join(parts[: number + 1]) for number in range(len(parts))]
    given = [patterns] if isinstance(patterns, str) else patterns
    plain = [one.replace("[", "[[]").replace("?", "[?]") for one in given]
    return any(fnmatchcase(path, one) for one in plain for path in paths)


def check_source(index: str, mapping: Mapping[str, Any], settings: Settings) -> None:
    """Raises `IndexUnusable` if a partial update would lose values that ``_source`` does not contain."""
    source = mapping.get("_source", {})
    if source.get("enabled") is False or source.get("mode") == "disabled":
        raise IndexUnusable(
            f"Index {index} has _source disabled, so updates are impossible. If its texts are stored fields (`store: "
            f"true`), store the keys in a sidecar index: `{command('init', index)} --field FIELD --sidecar`. "
            "Otherwise re-index it from the original texts, with _source."
        )
    if source.get("excludes") or source.get("includes"):
        raise IndexUnusable(
            f"Index {index} keeps only a part of each document in _source (includes/excludes): any partial update "
            f"would lose the rest, so {settings.prefix} fields are not written there. Store the keys in a sidecar "
            f"index: `{command('init', index)} --field FIELD --sidecar`."
        )


def check_text_fields(index: str, mapping: Mapping[str, Any], settings: Settings) -> None:
    """Raises `IndexUnusable` if a field to fingerprint holds no texts in ``_source``; the message lists text fields, or
    names the fields that do."""
    properties = mapping.get("properties", {})
    types = dict(field_types(properties))
    texts = fields_with_texts(properties)
    known = f"Its text fields: {', '.join(texts)}." if texts else "It has no text field."
    for name in settings.fields:
        kind = types.get(name)
        if kind is None:
            more = f"To join several, repeat {option('fields')}. {known}" if "," in name else known
            raise IndexUnusable(f"Index {index} has no field {name!r}. {more}")
        if kind == "multi-field":
            whole = name.rpartition(".")[0]
            raise IndexUnusable(f"{name} is a multi-field, which _source does not contain: name {whole} itself.")
        if kind == "alias":
            target = mapping_of(properties, name)["path"]
            raise IndexUnusable(f"{name} is an alias, which _source does not contain: name {target} itself.")
        if kind not in TEXT_TYPES | WHOLE_TEXTS:
            raise IndexUnusable(f"Field {name!r} of index {index} is {kind}, not text. {known}")
        if sources := [one for one in types if name in _targets(mapping_of(properties, one))]:
            raise IndexUnusable(
                f"The texts of {name} are copied from {', '.join(sorted(sources))} by copy_to, and _source does not "
                f"contain them: name {' and '.join(sorted(sources))} instead."
            )


def fields_with_texts(properties: Mapping[str, Any], kinds: Collection[str] = TEXT_TYPES) -> list[str]:
    """The fields of these types that can be fingerprinted: without those that others are copied to by ``copy_to``."""
    types = dict(field_types(properties))
    copied = {target for name in types for target in _targets(mapping_of(properties, name))}
    return sorted(name for name, kind in types.items() if kind in kinds and name not in copied)


def mapping_of(properties: Mapping[str, Any], name: str) -> Mapping[str, Any]:
    """The mapping of a field by its full name; empty for one that is not mapped itself, such as a multi-field."""
    mapping: Mapping[str, Any] = {"properties": properties}
    for part in name.split("."):
        mapping = mapping.get("properties", {}).get(part, {})
    return mapping


def _targets(mapping: Mapping[str, Any]) -> Sequence[str]:
    """The fields that a field is copied to."""
    targets = mapping.get("copy_to", ())
    return [targets] if isinstance(targets, str) else targets


def check_range_field(documents: Documents, name: str) -> None:
    """Raises `SettingsError` for a field that no index has: a range over it would match nothing, without an error."""
    params = {"fields": f"{name},*"}
    known = documents.client.request("GET", path(documents.name, "_field_caps"), params=params)["fields"]
    nested = [field for field, kinds in known.items() if "nested" in kinds]
    if (inside := lies_in(name, nested)) is not None:
        raise SettingsError(
            f"{name} is inside the nested objects {inside}, where a range query on documents does not match."
        )
    if name not in known:
        dates = sorted(
            field
            for field, kinds in known.items()
            if {"date", "date_nanos"} & kinds.keys() and not lies_in(field, nested)
        )
        known_dates = f"Its date fields: {', '.join(dates)}." if dates else "It has no date field."
        raise SettingsError(f"Index {documents.name} has no field {name!r}. {known_dates}")
