"""Texts of ``compare``, and their names."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress

from es_neardupe.display_text import named
from es_neardupe.errors import InputError
from es_neardupe.index.document_text import read_values, text_of
from es_neardupe.index.index import Index
from es_neardupe.index.shown_fields import ShownFields
from es_neardupe.keys.prepare.placed import PlacedText
from es_neardupe.records import Address
from es_neardupe.verification.current_texts import current_source


def name_of_document(index: Index, document: str | Address) -> str:
    """The name by which a document is shown."""
    if not isinstance(document, Address):
        return document
    return named(document, several=len(index.target.indices) > 1)


def characters(index: Index, documents: Sequence[str | Address]) -> int:
    """The characters of the texts of some documents together, without those that cannot be read. Raises errors as
    `current_source`."""
    number = 0
    for one in documents:
        _, source = current_source(index, one, index.settings.fields)
        with suppress(InputError):
            number += len(text_of(source, index.settings.fields))
    return number


def text_of_document(index: Index, document: str | Address, shown: ShownFields) -> tuple[PlacedText, dict[str, str]]:
    """The prepared text of a document, and its fields to show."""
    address, source = current_source(index, document, [*index.settings.fields, *shown.names])
    try:
        values = read_values(source, index.settings.fields)
    except InputError as error:
        raise InputError(f"Document {address.id!r} of index {address.index} cannot be compared: {error}") from error
    return index.settings.scheme.preparation.placed(values), shown.of(source)
