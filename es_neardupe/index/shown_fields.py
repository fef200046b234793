"""Fields to show of documents: which ones, and their values."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from es_neardupe.display_text import beginning
from es_neardupe.errors import SettingsError
from es_neardupe.index import mapping as schema
from es_neardupe.index.document_text import text_of
from es_neardupe.index.target import mappings_of
from es_neardupe.records import Address, Reference
from es_neardupe.server.search import fetch

if TYPE_CHECKING:
    from es_neardupe.index.index import Index

__all__ = [
    "NO_FIELDS",
    "URLS",
    "ShownFields",
    "UserFields",
    "chosen_fields",
    "collated_fields",
    "read_shown_fields",
    "shown_fields",
    "title_fields",
    "user_fields",
]

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


def user_fields(mappings: Iterable[Mapping[str, Any]], *prefixes: str) -> UserFields:
    """The fields of some mappings, without those below the ``prefixes``."""
    types: dict[str, str] = {}
    nested: set[str] = set()
    for one in mappings:
        types |= schema.field_types(one.get("properties", {}))
        nested.update(schema.nested_objects(one.get("properties", {})))
    excluded = tuple(f"{prefix}." for prefix in prefixes)
    return UserFields({name: kind for name, kind in types.items() if not name.startswith(excluded)}, frozenset(nested))


def _first(known: UserFields, names: Sequence[str]) -> str | None:
    """The first of these names that a field has; None if none has."""
    return next((name for name in names if known.types.get(name, "multi-field") != "multi-field"), None)


def _check(index: Index, known: UserFields, fields: Sequence[str]) -> None:
    """Raises `SettingsError` for a field that the index does not have."""
    names = sorted(name for name, kind in known.types.items() if kind != "multi-field")
    for name in fields:
        if name not in names:
            raise SettingsError(f"Index {index.name} has no field {name!r} to show. Fields: {', '.join(names)}.")


def chosen_fields(index: Index, known: UserFields, fields: Sequence[str]) -> tuple[str, ...]:
    """The ``fields``, or by default the field with the title, if one exists, and the first text field.

    Raises `SettingsError` for a field that the index does not have.
    """
    _check(index, known, fields)
    texts, sidecar, title = index.settings.fields, index.target.sidecar, _first(known, _TITLES)
    if title not in texts and sidecar is not None and sidecar.stored:  # a field that cannot be read
        title = None
    return tuple(dict.fromkeys(fields or [name for name in (title, texts[0]) if name is not None]))


def title_fields(index: Index, fields: Sequence[str]) -> tuple[str, ...]:
    """The ``fields``, or by default the field with the title, if one exists. The index need not be initialised.

    Raises `SettingsError` for a field that the index does not have.
    """
    known = user_fields(mappings_of(index.plain, index.name).values(), index.prefix)
    _check(index, known, fields)
    return tuple(dict.fromkeys(fields or [name for name in (_first(known, _TITLES),) if name is not None]))


@dataclass(frozen=True)
class ShownFields:
    """The fields to show of each document of a result."""

    names: tuple[str, ...]
    only_beginning: bool = False
    """Whether only the beginning of each value is shown: by default, of a text that has no title."""

    def of(self, source: Mapping[str, Any]) -> dict[str, str]:
        """Field -> its value in a document; "" if it has none."""
        values = {name: text_of(source, [name]) for name in self.names}
        return {name: beginning(value) for name, value in values.items()} if self.only_beginning else values


NO_FIELDS = ShownFields(())


def shown_fields(index: Index, fields: Sequence[str] | None) -> ShownFields:
    """The ``fields`` of an opened index; by default its title, or the beginning of its first text field; None: none.

    Raises as `chosen_fields` does.
    """
    if fields is None:
        return NO_FIELDS
    known = user_fields(index.target.mappings.values(), index.prefix, index.settings.prefix)
    names = chosen_fields(index, known, fields)
    if fields:
        return ShownFields(names)
    return ShownFields(names[:1], only_beginning=names[0] not in _TITLES)


def collated_fields(index: Index, fields: Sequence[str]) -> ShownFields:
    """The ``fields`` of an opened index to show with a collation; by default those of `shown_fields` and, if that
    is a title, where each document is from: a field with its source, its date and its URL, if such fields exist.

    Raises as `chosen_fields` does.
    """
    shown, sidecar = shown_fields(index, fields), index.target.sidecar
    if fields or shown.only_beginning or (sidecar is not None and sidecar.stored):  # which keeps the texts only
        return shown
    known = user_fields(index.target.mappings.values(), index.prefix, index.settings.prefix)
    found = filter(None, (_first(known, names) for names in _ORIGINS))
    return replace(shown, names=tuple(dict.fromkeys([*shown.names, *found])))


def read_shown_fields(
    index: Index, shown: ShownFields, references: Sequence[Reference]
) -> dict[Address, dict[str, str]]:
    """The fields to show of some documents, without documents that were deleted."""
    if not shown.names:
        return {}
    small = _SMALL.issuperset(shown.names)
    hits = fetch(index.client, references, shown.names, batch=_BATCH if small else None)
    return {hit.address: shown.of(hit.source) for hit in hits if hit is not None}
