"""A probe: the document of an index, or the text, that documents are compared with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from es_neardupe.errors import SettingsError
from es_neardupe.index.document_text import given_text, read_values
from es_neardupe.index.index import Index
from es_neardupe.keys.fingerprint import fingerprints
from es_neardupe.options import DEFAULT_MAX_CHARS
from es_neardupe.records import Address, Fingerprint
from es_neardupe.verification.current_texts import current_source

_SHOWN = 80
"""Maximum number of characters of a text that reports show."""


@dataclass(frozen=True)
class Probe:
    """A document, or a text as a document with this text in the first text field of the index."""

    values: Sequence[str]
    """Those of the text fields."""
    source: Mapping[str, Any]
    name: dict[str, Any]
    """``index`` and ``id``, or the beginning of the ``text``, as reports show it."""
    address: Address | None = None

    @classmethod
    def of_document(cls, index: Index, address: Address, source: Mapping[str, Any]) -> Probe:
        """A document with its text fields. Raises `InputError` if it has no readable text."""
        return cls(read_values(source, index.settings.fields), source, address._asdict(), address)

    @classmethod
    def of_text(cls, index: Index, text: str) -> Probe:
        """Any text. Raises `InputError` for one that is not valid Unicode."""
        return cls([given_text(text)], {index.settings.fields[0]: text}, {"text": text[:_SHOWN]})

    def fingerprint(self, index: Index) -> Fingerprint:
        """The keys of its text, by the scheme of an index."""
        (fingerprint,) = fingerprints([self.values], index.settings.scheme, max_chars=DEFAULT_MAX_CHARS)
        return fingerprint


def check_probe(id: str | Address | None, text: str | None) -> None:
    """Raise `SettingsError` unless either a document or a text is given."""
    if (id is None) == (text is None):
        raise SettingsError("Give either the id of a document or a text.")


def read_probe(
    index: Index, id: str | Address | None, text: str | None, fields: Sequence[str], *, unique: bool = False
) -> Probe:
    """The probe that is given by `check_probe`: a document with its current text and other ``fields`` to read, or a
    text. Raises as `current_source`, `Probe.of_document` and `Probe.of_text`."""
    if id is None:
        return Probe.of_text(index, text or "")
    address, source = current_source(index, id, fields, unique=unique)
    return Probe.of_document(index, address, source)
