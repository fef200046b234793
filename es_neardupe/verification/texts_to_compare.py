"""The texts that ``compare`` reads, and their comparison."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from es_neardupe.display_text import named
from es_neardupe.errors import InputError, SettingsError
from es_neardupe.index.document_text import read_values
from es_neardupe.index.index import Index
from es_neardupe.index.shown_fields import NO_FIELDS, ShownFields, shown_fields
from es_neardupe.keys.unit import shingle_of, shingle_text
from es_neardupe.records import Address
from es_neardupe.similarity.comparison import CompareReport, compare_texts
from es_neardupe.similarity.measure import Measure
from es_neardupe.verification.current_texts import current_source
from es_neardupe.verification.feature_weights import frequencies
from es_neardupe.wording import option


@dataclass(frozen=True)
class ReadText:
    """A text as it was read, before it is prepared."""

    name: str
    values: Sequence[str]
    """The values of its fields."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """The fields to show."""


class ReadTexts(NamedTuple):
    """The two texts of a comparison."""

    a: ReadText
    b: ReadText

    @property
    def characters(self) -> int:
        """Of both together."""
        return sum(len(value) for one in self for value in one.values)


def read_document(index: Index, document: str | Address, shown: ShownFields) -> ReadText:
    """The current text of a document, and its fields to show. Raises `InputError` if a field holds an object."""
    address, source = current_source(index, document, [*index.settings.fields, *shown.names])
    try:
        values = read_values(source, index.settings.fields)
    except InputError as error:
        raise InputError(f"Document {address.id!r} of index {address.index} cannot be compared: {error}") from error
    return ReadText(_name(index, document), values, shown.of(source))


def _name(index: Index, document: str | Address) -> str:
    """The name by which a document is shown."""
    if not isinstance(document, Address):
        return document
    return named(document, several=len(index.target.indices) > 1)


def read_texts(index: Index, a: str | Address, b: str | Address | ReadText, fields: Sequence[str] = ()) -> ReadTexts:
    """Two documents of an opened index, or one and any text. ``fields``: to show; by default the title."""
    shown = shown_fields(index, fields)
    if shown.beginning_of is not None:  # of the texts that are compared anyway
        shown = NO_FIELDS
    one = read_document(index, a, shown)
    return ReadTexts(one, b if isinstance(b, ReadText) else read_document(index, b, shown))


def compared(
    index: Index,
    texts: ReadTexts,
    *,
    shingle: int | str | None = None,
    passage: int | None = None,
    weighted: bool = False,
) -> CompareReport:
    """Compare two texts: see `es_neardupe.commands.compare.compare`."""
    scheme = index.settings.scheme
    size, unit = (scheme.shingle, scheme.unit) if shingle is None else shingle_of(shingle)
    of_index = (size, unit) == (scheme.shingle, scheme.unit)
    if weighted and not of_index:
        raise SettingsError(
            f"The feature frequencies of {index.name} are for shingles of {shingle_text(scheme.shingle, scheme.unit)}. "
            f"Omit either {option('shingle')} or {option('weighted')}."
        )
    one, other = (scheme.preparation.placed(text.values) for text in texts)
    found = compare_texts(
        one,
        other,
        names=(texts.a.name, texts.b.name),
        shingle=size,
        unit=unit,
        passage=passage,
        weights=frequencies(index, Measure(shingle=size, unit=unit)).weights if weighted else None,
        scheme=scheme if of_index else None,
    )
    return replace(found, a=replace(found.a, fields=texts.a.fields), b=replace(found.b, fields=texts.b.fields))
