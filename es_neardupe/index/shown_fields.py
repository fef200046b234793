"""Fields of the user: those to search, and those to show, with their values."""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from es_neardupe.display_text import beginning
from es_neardupe.errors import InputError, SettingsError
from es_neardupe.index import mapping as schema
from es_neardupe.index.document_text import read_text, values_at
from es_neardupe.index.handle import IndexHandle
from es_neardupe.lists import check_list
from es_neardupe.query_strings import problem_of_string
from es_neardupe.records import Address, Reference

_TITLES = ("title", "headline", "subject", "name")
"""Names of fields by which people recognise a document, best first."""

URLS = ("url", "uri", "link", "permalink", "href")
"""Names of fields with the URL of a document, best first."""

_ORIGINS = (
    ("source", "publisher", "author", "sender", "from"),
    ("date", "published", "published_at", "publication_date", "created", "created_at", "timestamp", "@timestamp"),
    URLS,
)
"""Names of fields that say where a document is from, of each kind the best first."""

_READABLE = schema.TEXT_TYPES | {"keyword", "wildcard", "date", "date_nanos"}
"""Types of fields whose values people read."""

_SMALL = frozenset(_TITLES).union(*_ORIGINS)

_BATCH = 500
"""Documents read in one request if only fields of these names are read. Others may hold megabytes."""


@dataclass(frozen=True)
class UserFields:
    """Fields of an index that are not those of this package."""

    types: Mapping[str, str]
    """Full name -> type."""
    nested: frozenset[str]
    """Full names of the nested objects."""
    kept: frozenset[str] = frozenset()
    """Full names of those that ``_source`` keeps, in at least one mapping."""
    readable: tuple[frozenset[str], ...] = ()
    """Of each mapping, the names of the kept fields, outside objects, whose values people read."""

    def best(self, names: Sequence[str]) -> tuple[str, ...]:
        """The first of these names that a readable field has, in each of the mappings; none where none has."""
        found = (next((name for name in names if name in readable), None) for readable in self.readable)
        return tuple(dict.fromkeys(name for name in found if name is not None))

    def query_of(self, text: str) -> dict[str, Any]:
        """A query for documents that match a query string in any text field.

        A server indexes nested objects as documents of their own: one of them must match the whole query, and the best
        one counts. Raises `SettingsError` if the string is too long, or too deeply nested.
        """
        if problem := problem_of_string(text):
            raise SettingsError(problem)
        by_object: dict[str | None, list[str]] = {None: []}
        for name in sorted(name for name, kind in self.types.items() if kind in schema.TEXT_TYPES):
            by_object.setdefault(schema.lies_in(name, self.nested), []).append(name)
        parts = {path: {"query_string": {"query": text, "fields": names}} for path, names in by_object.items()}
        plain = parts.pop(None)
        if not parts:
            return plain
        inside = [{"nested": {"path": path, "query": query, "score_mode": "max"}} for path, query in parts.items()]
        return {"bool": {"should": [*([plain] if by_object[None] else ()), *inside], "minimum_should_match": 1}}


def user_fields(mappings: Iterable[Mapping[str, Any]], *prefixes: str) -> UserFields:
    """The fields of some mappings, without those of this package, also those below the ``prefixes``."""
    types: dict[str, str] = {}
    nested: set[str] = set()
    kept: set[str] = set()
    readable: list[frozenset[str]] = []
    own = {*prefixes}
    for one in mappings:
        own |= schema.own_fields(one)
        properties: Mapping[str, Any] = one.get("properties", {})
        of_mapping = dict(schema.field_types(properties))
        types |= of_mapping
        nested.update(schema.nested_objects(properties))
        in_source = {name for name in of_mapping if schema.is_in_source(one, name)}
        kept |= in_source
        readable.append(frozenset(in_source & {name for name in properties if of_mapping.get(name) in _READABLE}))
    below = tuple(f"{name}." for name in own)
    users = {name: kind for name, kind in types.items() if name not in own and not name.startswith(below)}
    return UserFields(users, frozenset(nested), frozenset(kept), tuple(readable))


def _check(index: IndexHandle, known: UserFields, fields: Sequence[str], texts: Sequence[str] = ()) -> None:
    """Raises `SettingsError` for a field that the index does not have, or that is in no ``_source``."""
    check_list("fields", fields)
    plain = {name for name, kind in known.types.items() if kind not in ("multi-field", "alias")}
    names = sorted(plain & {*known.kept, *texts})
    listed = ", ".join(names)
    for name in fields:
        if name in plain and name not in names:
            raise SettingsError(
                f"Index {index.name} does not keep {name} in _source, so it cannot be shown. Fields: {listed}."
            )
        if name not in names:
            raise SettingsError(f"Index {index.name} has no field {name!r} to show. Fields: {listed}.")


def _only_texts(index: IndexHandle) -> bool:
    """Whether other fields than the texts cannot be read, because these are stored fields."""
    sidecar = index.target.sidecar
    return sidecar is not None and bool(sidecar.stored)


def _titles(index: IndexHandle, known: UserFields) -> tuple[str, ...]:
    """The fields with the titles of the documents of an opened index."""
    if _only_texts(index):
        return tuple(name for name in _TITLES if name in index.settings.fields)[:1]
    return known.best(_TITLES)


def chosen_fields(index: IndexHandle, known: UserFields, fields: Sequence[str]) -> tuple[str, ...]:
    """The ``fields``, or by default the field with the title, if one exists, and the first text field.

    Raises `SettingsError` for a field that the index does not have.
    """
    _check(index, known, fields, index.settings.fields)
    return tuple(dict.fromkeys(fields or [*_titles(index, known), index.settings.fields[0]]))


def title_fields(index: IndexHandle, fields: Sequence[str]) -> tuple[str, ...]:
    """The ``fields``, or by default the field with the title, if one exists. The index need not be initialised.

    Raises `SettingsError` for a field that the index does not have.
    """
    known = user_fields(index.definitions.mappings().values(), index.prefix)
    _check(index, known, fields)
    return tuple(dict.fromkeys(fields or known.best(_TITLES)))


def shown_value(source: Mapping[str, Any], name: str) -> str:
    """The value of a field in a document: a text, several ones in lines, objects as JSON; "" if it has none."""
    try:
        return read_text(source, [name])
    except InputError:
        try:
            return "\n".join(json.dumps(one, ensure_ascii=False) for one in values_at(source, name))
        except RecursionError:
            return ""


@dataclass(frozen=True)
class ShownFields:
    """The fields to show of each document of a result."""

    names: tuple[str, ...]
    beginning_of: str | None = None
    """The field of which only the beginning is shown: by default, the text of an index without a title."""
    origin: tuple[str, ...] = ()
    """Those of the ``names`` that say where a document is from."""

    def of(self, source: Mapping[str, Any]) -> dict[str, str]:
        """Field -> its value in a document; "" if it has none."""
        values = {name: shown_value(source, name) for name in self.names}
        if self.beginning_of is not None:
            values[self.beginning_of] = beginning(values[self.beginning_of])
        return values

    @property
    def whole(self) -> ShownFields:
        """The fields that are shown whole."""
        return ShownFields(tuple(name for name in self.names if name != self.beginning_of))


NO_FIELDS = ShownFields(())


def shown_fields(index: IndexHandle, fields: Sequence[str] | None, *, origin: bool = False) -> ShownFields:
    """The ``fields`` of an opened index; by default its title, or the beginning of its first text field; None: none.

    ``origin``: by default, also where each document is from: a field with its source, its date and its URL, if such
    fields exist. Raises as `chosen_fields` does.
    """
    if fields is None:
        return NO_FIELDS
    known = user_fields(index.target.mappings.values(), index.prefix, index.settings.prefix)
    if fields:
        return ShownFields(chosen_fields(index, known, fields))
    titles = _titles(index, known)
    text = None if titles else index.settings.fields[0]
    named = titles if text is None else (text,)
    if not origin or _only_texts(index):
        return ShownFields(named, beginning_of=text)
    found = tuple(name for kind in _ORIGINS for name in known.best(kind) if name not in named)
    return ShownFields(named + found, beginning_of=text, origin=found)


def read_shown_fields(
    index: IndexHandle, shown: ShownFields, references: Sequence[Reference]
) -> dict[Address, dict[str, str]]:
    """The fields to show of some documents, without documents that were deleted."""
    return dict(read_each_shown_fields(index, shown, references))


def read_each_shown_fields(
    index: IndexHandle, shown: ShownFields, references: Sequence[Reference]
) -> Iterator[tuple[Address, dict[str, str]]]:
    """As `read_shown_fields`, one document after the other."""
    if not shown.names:
        return
    small = _SMALL.issuperset(shown.names)
    for hit in index.documents.fetch(references, shown.names, batch=_BATCH if small else None):
        if hit is not None:
            yield hit.address, shown.of(hit.source)
