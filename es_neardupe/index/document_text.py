"""The codec between documents and fingerprints: what is read from a source, what is written into it.

Writer and reader stand side by side; the reader checks first, since anybody can write to an index.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from es_neardupe.errors import InputError
from es_neardupe.index.settings import Settings
from es_neardupe.keys.fingerprint import stream_fingerprints, without_keys
from es_neardupe.records import Fingerprint, Hit, State
from es_neardupe.server.client import Client
from es_neardupe.server.search import search

if TYPE_CHECKING:
    from es_neardupe.index.index import Index

__all__ = [
    "field_pages",
    "fingerprint_sources",
    "has_any",
    "read_text",
    "readable_text",
    "text_of",
    "text_pages",
    "values_at",
    "values_by_field",
    "values_of",
]


def fingerprint_sources(
    sources: Sequence[Mapping[str, Any]], settings: Settings, max_chars: int
) -> Iterator[Fingerprint]:
    """The fingerprint of each document's text, in order; state ``failed`` where the fields hold no text."""
    texts = [readable_text(source, settings.fields) for source in sources]
    found = stream_fingerprints([text for text in texts if text is not None], settings.scheme, max_chars=max_chars)
    failed = without_keys(settings.scheme, State.FAILED)
    for text in texts:
        yield failed if text is None else next(found)


def readable_text(source: Mapping[str, Any], fields: Sequence[str]) -> str | None:
    """As `read_text`; None instead of an error."""
    try:
        return read_text(source, fields)
    except InputError:
        return None


def text_of(source: Mapping[str, Any], fields: Sequence[str]) -> str:
    """As `read_text`; "" instead of an error."""
    return readable_text(source, fields) or ""


def has_any(source: Mapping[str, Any], fields: Sequence[str]) -> bool:
    """Whether at least one of the fields stands in the source, be it null."""
    return any(_at(source, name.split(".")) for name in fields)


def read_text(source: Mapping[str, Any], fields: Sequence[str]) -> str:
    """The text of a document: the values of the fields in the given order, one a line.

    Dotted names reach into objects and arrays of objects, and match keys that hold the dot themselves. Arrays
    give their strings in order; null and missing fields give nothing; numbers and booleans are taken as JSON
    writes them. Raises `InputError` where an object stands in the place of a text.
    """
    parts: list[str] = []
    for name in fields:
        value = source.get(name)
        if isinstance(value, str) and "." not in name:  # nearly every document
            parts.append(value)
        else:
            parts += _parts(source, name)
    return "\n".join(parts)


def values_by_field(source: Mapping[str, Any], fields: Sequence[str]) -> dict[str, list[str]]:
    """The values of each field, as `read_text` takes them; none of a field that holds an object."""
    plain = {name: source.get(name) for name in fields if "." not in name}
    return {
        name: [value] if isinstance(value := plain.get(name), str) else values_of(source, [name]) for name in fields
    }


def values_at(source: Mapping[str, Any], name: str) -> list[Any]:
    """What stands under a name that may be dotted, as JSON, in document order; one element where there is one place."""
    return _at(source, name.split("."))


def values_of(source: Mapping[str, Any], fields: Sequence[str]) -> list[str]:
    """The values of the fields in the given order: what `read_text` joins."""
    try:
        return [part for name in fields for part in _parts(source, name)]
    except InputError:
        return []


def _parts(source: Mapping[str, Any], name: str) -> list[str]:
    try:
        return [part for found in _at(source, name.split(".")) for part in _strings(found, name)]
    except RecursionError:
        raise InputError(f"The arrays in field {name} are nested too deeply for a text.") from None


def _at(source: Any, names: Sequence[str]) -> list[Any]:
    """The values that a dotted name reaches, in document order."""
    if isinstance(source, list):
        return [value for element in source for value in _at(element, names)]
    if not isinstance(source, Mapping):
        return []
    found = []
    for length in range(1, len(names) + 1):
        key = ".".join(names[:length])
        if key in source:
            found += [source[key]] if length == len(names) else _at(source[key], names[length:])
    return found


def _strings(value: Any, name: str) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str):
        return [value]
    if isinstance(value, list):
        return [part for element in value for part in _strings(element, name)]
    if isinstance(value, bool | int | float):
        return [json.dumps(value)]
    raise InputError(f"Field {name} holds an object, not a text.")


_PAGE_CHARS = 8_000_000
"""Characters aimed at in one page."""

_FIRST_PAGE = 300
"""Most documents of the first page: while it is read, nobody else has anything to do."""

_SAMPLE = 20
"""Documents that tell how large the others are."""

_MAX = 0.6
"""Share of a document from which on it is read whole."""


def text_pages(index: Index, query: Mapping[str, Any], source: Sequence[str]) -> Iterator[list[Hit]]:
    """The matching documents of an initialised index with the named parts, see `field_pages`.

    Those of an index that came behind the name since the target was opened are left for the next run: our mapping has
    to be there first. (Only where the indices are too many to be named in a request can there be any.)
    """
    known = frozenset(index.target.indices)
    for page in field_pages(index.client, index.path, index.settings.fields, query, source):
        if found := [hit for hit in page if hit.index in known]:
            yield found


def field_pages(
    client: Client, index: str, fields: Sequence[str], query: Mapping[str, Any], source: Sequence[str]
) -> Iterator[list[Hit]]:
    """The matching documents with the named parts, in pages of about `_PAGE_CHARS` characters of the fields, judged
    by the first.

    Where the texts are most of a document, it is read whole: to pick out parts costs the server more than to send all.
    """
    sample = search(client, index, {"size": _SAMPLE, "query": dict(query)})["hits"]["hits"]
    sources = [hit.get("_source", {}) for hit in sample]
    whole = sum(map(_length, sources))
    needed = sum(len(text_of(one, fields)) for one in sources)
    read_whole = needed >= _MAX * whole
    chars = (whole if read_whole else needed) / max(len(sources), 1)
    page_size = max(10, min(1000, int(_PAGE_CHARS / max(chars, 1))))
    body = {"query": dict(query), "_source": True if read_whole else list(source)}
    return client.pages(index, body, page_size=page_size, first_page=min(_FIRST_PAGE, page_size))


def _length(source: object) -> int:
    """Characters of a source, about; 0 for one nested more deeply than Python follows, which has no text."""
    try:
        return len(str(source))
    except RecursionError:
        return 0
