"""Comparison of two documents of an index, or of a document and any text, by every measure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from es_neardupe import options
from es_neardupe.errors import SettingsError
from es_neardupe.wording import option

if TYPE_CHECKING:
    from es_neardupe.index.index import Index
    from es_neardupe.records import Address
    from es_neardupe.similarity.comparison import CompareReport


PageFields = Annotated[
    Sequence[str],
    typer.Option("--field", metavar="FIELD", help="Field to show with the texts. Repeatable.", show_default="title"),
]
SizeOfShingles = Annotated[
    int | str | None,
    typer.Option(
        "--shingle",
        parser=options.parse_shingle,
        metavar="N|Nc",
        help="Words in a shingle; 5c: 5 characters.",
        show_default="that of the index; 5 for files",
    ),
]
MinimumOfPassages = Annotated[
    int | None,
    options.like(options.Passage, help="Minimum number of words in a common passage.", rich_help_panel=None),
]
Weighted = Annotated[
    bool, typer.Option("--weighted", help="Also compute the weighted measure, with the frequencies of the index.")
]


def compare(
    index: Index,
    a: str | Address,
    b: str | Address | None = None,
    *,
    text: str | None = None,
    name: str = "text",
    shingle: SizeOfShingles = None,
    passage: MinimumOfPassages = None,
    weighted: Weighted = False,
    fields: PageFields = (),
) -> CompareReport:
    """Compare the current texts of the documents ``a`` and ``b``, or of ``a`` and a ``text``, named ``name``.

    A document is given by its id, or by its `Address` if several indices have this id.
    ``shingle`` defaults to that of the index, and ``passage``, the minimum number of words in a common passage, to the
    words of a shingle. ``weighted`` adds the measure of that name, with the feature frequencies
    of the index. ``fields`` are shown of each document; by default its title, if one exists. Raises `NotFound` for an
    unknown id, `InputError` for a document without readable text and for a text that is too long, `SettingsError` for
    contradicting options.

    >>> report = news.compare("1001", "1002")
    >>> round(report.value("resemblance"), 4)
    0.7835
    >>> [(fact.kinds[0].value, fact.words_b) for fact in report.facts]
    [('title', 'Bridge repair will cost five million'), ('number', 'five million')]
    """
    from es_neardupe.index.index import opened
    from es_neardupe.index.shown_fields import NO_FIELDS, shown_fields
    from es_neardupe.keys.unit import shingle_of, shingle_text
    from es_neardupe.similarity.comparison import compare_texts
    from es_neardupe.similarity.measure import Measure
    from es_neardupe.verification.current_texts import name_of_document, text_of_document
    from es_neardupe.verification.feature_weights import frequencies

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
    one, fields_a = text_of_document(index, a, shown)
    other, fields_b = (
        text_of_document(index, b, shown) if b is not None else (scheme.preparation.placed(text or ""), {})
    )
    found = compare_texts(
        one,
        other,
        names=(name_of_document(index, a), name if b is None else name_of_document(index, b)),
        shingle=size,
        unit=unit,
        passage=passage,
        weights=frequencies(index, Measure(shingle=size, unit=unit)).weights if weighted else None,
        scheme=scheme if of_index else None,
    )
    return replace(found, a=replace(found.a, fields=fields_a), b=replace(found.b, fields=fields_b))
