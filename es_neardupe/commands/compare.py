"""Comparison of two documents of an index, or of a document and any text, by every measure."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated

import typer

from es_neardupe import options
from es_neardupe.errors import SettingsError

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
        metavar="N|Nc|Ns",
        help="Words in a shingle; 5c: 5 characters; 7s: 7 shapes.",
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
    from es_neardupe.index.document_text import given_text
    from es_neardupe.index.index import opened
    from es_neardupe.verification.texts_to_compare import ReadText, compared, read_texts

    if (b is None) == (text is None):
        raise SettingsError("Give either the id of a second document or a text.")
    index = opened(index, texts=True)
    texts = read_texts(index, a, ReadText(name, [given_text(text or "")]) if b is None else b, fields)
    return compared(index, texts, shingle=shingle, passage=passage, weighted=weighted)
