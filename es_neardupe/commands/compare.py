"""Comparison of two documents of an index, or of a document and any text, by every measure."""

from __future__ import annotations

from es_neardupe import options
from es_neardupe.errors import InputError, SettingsError
from es_neardupe.index.document_text import read_text
from es_neardupe.index.index import Index, opened
from es_neardupe.similarity.comparison import Comparison, compare_texts
from es_neardupe.similarity.measure import Measure
from es_neardupe.verification.current_texts import current_source
from es_neardupe.verification.feature_weights import frequencies

__all__ = ["compare"]


def compare(
    index: Index,
    a: str,
    b: str | None = None,
    *,
    text: str | None = None,
    name: str = "text",
    shingle: options.ShingleOfPassages = None,
    weighted: options.Weighted = False,
) -> Comparison:
    """Compare the current texts of the documents ``a`` and ``b``, or of ``a`` and a ``text``, named ``name``.

    ``shingle`` defaults to that of the index. ``weighted`` adds the measure of that name, with the feature frequencies
    of the index. Raises `NotFound` for an unknown id, `InputError` for a document without readable text and for a text
    that is too long, `SettingsError` for contradicting options.
    """
    if (b is None) == (text is None):
        raise SettingsError("Give either the id of a second document or a text.")
    index = opened(index, texts=True)
    words = index.settings.shingle if shingle is None else shingle
    if weighted and words != index.settings.shingle:
        raise SettingsError(
            f"The feature frequencies of {index.name} are for shingles of {index.settings.shingle} words. Omit either "
            f"`shingle` or `weighted`."
        )
    one = _text(index, a)
    other = text if text is not None else _text(index, b or "")
    weights = frequencies(index, Measure(shingle=words)).weights if weighted else None
    return compare_texts(
        one,
        other,
        names=(a, name if b is None else b),
        shingle=words,
        weights=weights,
        scheme=index.settings.scheme if words == index.settings.shingle else None,
    )


def _text(index: Index, id: str) -> str:
    concrete, source = current_source(index, id, index.settings.fields)
    try:
        return read_text(source, index.settings.fields)
    except InputError as error:
        raise InputError(f"Document {id!r} of index {concrete} cannot be compared: {error}") from error
