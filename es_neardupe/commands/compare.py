"""Comparison of two documents of an index, or of a document and any text, by every measure."""

from __future__ import annotations

from dataclasses import replace

from es_neardupe import options
from es_neardupe.display_text import named
from es_neardupe.errors import InputError, SettingsError
from es_neardupe.index.document_text import read_values
from es_neardupe.index.index import Index, opened
from es_neardupe.index.shown_fields import NO_FIELDS, ShownFields, shown_fields
from es_neardupe.keys.prepare.placed import PlacedText
from es_neardupe.keys.scheme import shingle_of, shingle_text
from es_neardupe.records import Address
from es_neardupe.similarity.comparison import CompareReport, compare_texts
from es_neardupe.similarity.measure import Measure
from es_neardupe.verification.current_texts import current_source
from es_neardupe.verification.feature_weights import frequencies
from es_neardupe.wording import option


def compare(
    index: Index,
    a: str | Address,
    b: str | Address | None = None,
    *,
    text: str | None = None,
    name: str = "text",
    shingle: options.ShingleOfPassages = None,
    weighted: options.Weighted = False,
    fields: options.PageFields = (),
) -> CompareReport:
    """Compare the current texts of the documents ``a`` and ``b``, or of ``a`` and a ``text``, named ``name``.

    A document is given by its id, or by its `Address` if several indices have this id.
    ``shingle`` defaults to that of the index. ``weighted`` adds the measure of that name, with the feature frequencies
    of the index. ``fields`` are shown of each document; by default its title, if one exists. Raises `NotFound` for an
    unknown id, `InputError` for a document without readable text and for a text that is too long, `SettingsError` for
    contradicting options.

    >>> report = news.compare("1001", "1002")
    >>> round(report.value("resemblance"), 4)
    0.7835
    >>> [(fact.words_a, fact.words_b) for fact in report.facts]
    [('four', 'five')]
    """
    if (b is None) == (text is None):
        raise SettingsError("Give either the id of a second document or a text.")
    index = opened(index, texts=True)
    scheme = index.settings.scheme
    size, unit = (scheme.shingle, scheme.unit) if shingle is None else shingle_of(shingle)
    of_index = (size, unit) == (scheme.shingle, scheme.unit)
    if weighted and not of_index:
        raise SettingsError(
            f"The feature frequencies of {index.name} are for shingles of {shingle_text(scheme.shingle, scheme.unit)}. "
            f"Omit either {option('shingle')} or {option('weighted')}."
        )
    shown = shown_fields(index, fields)
    if shown.beginning_of is not None:  # of the texts that are compared anyway
        shown = NO_FIELDS
    one, fields_a = _text(index, a, shown)
    other, fields_b = _text(index, b, shown) if b is not None else (scheme.preparation.placed(text or ""), {})
    found = compare_texts(
        one,
        other,
        names=(_name(index, a), name if b is None else _name(index, b)),
        shingle=size,
        unit=unit,
        weights=frequencies(index, Measure(shingle=size, unit=unit)).weights if weighted else None,
        scheme=scheme if of_index else None,
    )
    return replace(found, a=replace(found.a, fields=fields_a), b=replace(found.b, fields=fields_b))


def _name(index: Index, document: str | Address) -> str:
    if not isinstance(document, Address):
        return document
    return named(document, several=len(index.target.indices) > 1)


def _text(index: Index, document: str | Address, shown: ShownFields) -> tuple[PlacedText, dict[str, str]]:
    """The prepared text of a document, and its fields to show."""
    address, source = current_source(index, document, [*index.settings.fields, *shown.names])
    try:
        values = read_values(source, index.settings.fields)
    except InputError as error:
        raise InputError(f"Document {address.id!r} of index {address.index} cannot be compared: {error}") from error
    return index.settings.scheme.preparation.placed(values), shown.of(source)
