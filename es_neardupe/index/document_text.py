"""Texts of documents: reading pages of documents, joining their text fields, and fingerprinting the result."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from decimal import Decimal
from typing import Any
from uuid import UUID

from es_neardupe.errors import DocumentTooLarge, InputError
from es_neardupe.index.handle import IndexHandle
from es_neardupe.index.settings import Settings
from es_neardupe.keys.prepare.preparation import AS_IT_IS, Preparation
from es_neardupe.records import Fingerprint, Hit, State
from es_neardupe.server.documents import Documents
from es_neardupe.server.request_sizes import size_of
from es_neardupe.server.search import whole_source
from es_neardupe.wording import option


def fingerprint_sources(
    sources: Sequence[Mapping[str, Any]], settings: Settings, max_chars: int
) -> Iterator[Fingerprint]:
    """The fingerprint of each document's text, in order; of state ``failed`` if a field does not contain text."""
    from es_neardupe.keys.fingerprint import stream_fingerprints, without_keys

    # a text whose values are prepared one by one is not joined before
    read = readable_values if settings.scheme.preparation else readable_text
    texts = [read(source, settings.fields) for source in sources]
    readable = [text for text in texts if text is not None]
    fingerprints = stream_fingerprints(readable, settings.scheme, max_chars=max_chars)
    failed = without_keys(settings.scheme, State.FAILED)
    for text in texts:
        yield failed if text is None else next(fingerprints)


@dataclass(frozen=True)
class TextFields:
    """The fields whose values make up the texts of documents, and what is compared of these."""

    names: tuple[str, ...]
    preparation: Preparation = AS_IT_IS

    @classmethod
    def of(cls, settings: Settings) -> TextFields:
        """Those of an index."""
        return cls(settings.fields, settings.scheme.preparation)

    def text(self, source: Mapping[str, Any]) -> str:
        """The prepared text of a document; "" if a field contains an object."""
        if not self.preparation:
            return text_of(source, self.names)
        return self.preparation.text(values_of(source, self.names))

    def values(self, source: Mapping[str, Any]) -> list[str]:
        """The prepared values; none if a field contains an object."""
        values = values_of(source, self.names)
        return self.preparation.texts(values) if self.preparation else values


def given_text(text: str) -> str:
    """A text that is given, not that of a document. Raises `InputError` for one that is not valid Unicode."""
    try:
        text.encode()
    except UnicodeEncodeError:
        raise InputError(f"{option('text')} contains half of a surrogate pair; allowed: valid Unicode.") from None
    return text


def prepared_text(source: Mapping[str, Any], settings: Settings) -> str:
    """The text of a document as it is compared: prepared as for the keys of the index."""
    return TextFields.of(settings).text(source)


def readable_text(source: Mapping[str, Any], fields: Sequence[str]) -> str | None:
    """As `read_text`; None instead of an error."""
    try:
        return read_text(source, fields)
    except InputError:
        return None


def text_of(source: Mapping[str, Any], fields: Sequence[str]) -> str:
    """As `read_text`; "" instead of an error."""
    return readable_text(source, fields) or ""


def readable_values(source: Mapping[str, Any], fields: Sequence[str]) -> list[str] | None:
    """As `read_values`; None instead of an error."""
    try:
        return read_values(source, fields)
    except InputError:
        return None


def has_any(source: Mapping[str, Any], fields: Sequence[str]) -> bool:
    """Whether the source contains at least one of the fields, even if it is null."""
    return any(_at(source, name.split(".")) for name in fields)


def read_text(source: Mapping[str, Any], fields: Sequence[str]) -> str:
    """The text of a document: the values of the fields in the given order, one per line.

    Dotted names refer to fields of objects and of arrays of objects, and also match keys that contain the dot. Arrays
    yield their strings in order; null and missing fields yield nothing; numbers and booleans are formatted as in JSON.
    Values of Python that the drivers serialise, in actions, are read as these write them.
    Raises `InputError` if a field contains an object instead of a text.
    """
    parts: list[str] = []
    for name in fields:
        value = source.get(name)
        if isinstance(value, str) and "." not in name:  # nearly every document
            parts.append(value)
        else:
            parts += _parts(source, name)
    return "\n".join(parts)


def read_values(source: Mapping[str, Any], fields: Sequence[str]) -> list[str]:
    """The values that `read_text` joins."""
    return [part for name in fields for part in _parts(source, name)]


def values_by_field(source: Mapping[str, Any], fields: Sequence[str]) -> dict[str, list[str]]:
    """The values of each field, as in `read_text`; none for a field that contains an object."""
    plain = {name: source.get(name) for name in fields if "." not in name}
    return {
        name: [value] if isinstance(value := plain.get(name), str) else values_of(source, [name]) for name in fields
    }


def values_at(source: Mapping[str, Any], name: str) -> list[Any]:
    """The JSON values under a name, which may be dotted, in document order; arrays are not flattened."""
    return _at(source, name.split("."))


def values_of(source: Mapping[str, Any], fields: Sequence[str]) -> list[str]:
    """As `read_values`; none if a field contains an object."""
    return readable_values(source, fields) or []


def _parts(source: Mapping[str, Any], name: str) -> list[str]:
    try:
        return [part for value in _at(source, name.split(".")) for part in _strings(value, name)]
    except RecursionError:
        raise InputError(f"The arrays in field {name} are nested too deeply for a text.") from None


def _at(source: Any, names: Sequence[str]) -> list[Any]:
    """The values that a dotted name refers to, in document order."""
    if isinstance(source, list | tuple):
        return [value for element in source for value in _at(element, names)]
    if not isinstance(source, Mapping):
        return []
    values = []
    for length in range(1, len(names) + 1):
        key = ".".join(names[:length])
        if key in source:
            values += [source[key]] if length == len(names) else _at(source[key], names[length:])
    return values


def _strings(value: Any, name: str) -> list[str]:
    if value is None:
        return []
    if isinstance(value, str):
        return [value]
    if isinstance(value, list | tuple):
        return [part for element in value for part in _strings(element, name)]
    if isinstance(value, bool | int | float):
        return [json.dumps(value)]
    return _strings(_as_serialised(value, name), name)


def _as_serialised(value: Any, name: str) -> Any:
    """The value that the drivers write for one of Python."""
    if isinstance(value, Decimal):
        return float(value)
    if isinstance(value, date):  # a datetime is one
        return value.isoformat()
    if isinstance(value, UUID):
        return str(value)
    if callable(listed := getattr(value, "tolist", None)):  # an array or a number of numpy
        return listed()
    raise InputError(f"Field {name} holds an object, not a text.")


_SAMPLE = 20
"""Number of documents that decide whether whole documents are read."""

_WHOLE = 0.6
"""Minimum share of the fields in a document for reading the whole document."""

_SMALL = 8000
"""Maximum mean size in bytes of documents that are read whole by a search for a few of them."""


def whole_pages(
    index: IndexHandle,
    query: Mapping[str, Any],
    skip: Callable[[Hit, DocumentTooLarge], None],
    *,
    shard: int | None = None,
    slice: tuple[int, int] | None = None,
) -> Iterator[list[Hit]]:
    """The matching documents of an opened index, in pages that fit into memory. ``skip``, ``shard``, ``slice``: see
    ``Client.pages``."""
    body = {"query": dict(query), "_source": whole_source(index.client.server)}
    return _known(index, index.documents.pages(body, page_size=None, skip=skip, shard=shard, slice=slice))


def text_pages(
    index: IndexHandle, query: Mapping[str, Any], source: Sequence[str], slice: tuple[int, int] | None = None
) -> Iterator[list[Hit]]:
    """The matching documents of an opened index with the ``source`` fields, see `field_pages`."""
    return _known(index, field_pages(index.documents, index.settings.fields, query, source, slice=slice))


def _known(index: IndexHandle, pages: Iterable[list[Hit]]) -> Iterator[list[Hit]]:
    """The documents of the target.

    Documents of an index that the name resolves to only since the target was opened are skipped: the index must be
    prepared first. This can only happen if the concrete indices are too many to be named in a request.
    """
    known = frozenset(index.target.indices)
    for page in pages:
        if hits := [hit for hit in page if hit.index in known]:
            yield hits


def are_small(index: IndexHandle) -> bool:
    """Whether the documents of an opened index are so small that reading a few of them whole is faster than reading
    some of their fields, as estimated from the first documents. Asks the server once."""
    if index.small_documents is None:
        sources = [hit.get("_source") for hit in index.documents.first_hits({}, _SAMPLE)]
        index.small_documents = sum(map(size_of, sources)) <= _SMALL * len(sources)
    return index.small_documents


def field_pages(
    documents: Documents,
    fields: Sequence[str],
    query: Mapping[str, Any],
    source: Sequence[str],
    *,
    slice: tuple[int, int] | None = None,
) -> Iterator[list[Hit]]:
    """The matching documents with the ``source`` fields, in pages that fit into memory. ``slice``: see
    ``Client.pages``.

    If the texts in ``fields`` are most of a document, as estimated from the first documents, the whole document is
    read: extracting fields takes the server longer than sending all of them.
    """
    sources = [hit.get("_source", {}) for hit in documents.first_hits({"query": dict(query)}, _SAMPLE)]
    needed = sum(size_of(text_of(one, fields)) for one in sources)
    read_whole = needed >= _WHOLE * sum(map(size_of, sources))
    body = {"query": dict(query), "_source": read_whole or list(source)}
    return documents.pages(body, page_size=None, slice=slice)
