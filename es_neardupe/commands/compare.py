"""Two documents of an index, or one and any text, compared by every measure."""

from __future__ import annotations

from es_neardupe.errors import InputError, SettingsError
from es_neardupe.index.document_text import read_text
from es_neardupe.index.settings import DEFAULT_PREFIX
from es_neardupe.index.sidecar.open import opened
from es_neardupe.index.target import Target
from es_neardupe.server.client import Client
from es_neardupe.similarity.comparison import Comparison, compare_texts
from es_neardupe.similarity.formulas import Weights
from es_neardupe.similarity.measure import Measure
from es_neardupe.verification.feature_weights import frequencies
from es_neardupe.verification.read_texts import present_source

__all__ = ["compare"]


def compare(
    client: Client,
    index: str,
    a: str,
    b: str | None = None,
    *,
    text: str | None = None,
    name: str = "text",
    shingle: int | None = None,
    weighted: bool = False,
    prefix: str = DEFAULT_PREFIX,
) -> Comparison:
    """Compare the present texts of the documents ``a`` and ``b``, or of ``a`` and a ``text`` that is called ``name``.

    ``shingle`` is that of the index unless given. ``weighted`` adds that measure, with the frequencies of the index.
    Raises `NotFound` for an unknown id, `InputError` for a document without readable text or a text that is too
    large, `SettingsError` for options that contradict each other.
    """
    if (b is None) == (text is None):
        raise SettingsError("Give either the id of a second document or a text.")
    client, target = opened(client, index, prefix, texts=True)
    w = target.settings.shingle if shingle is None else shingle
    if weighted and w != target.settings.shingle:
        raise SettingsError(
            f"The frequencies of {index} are those of shingles of {target.settings.shingle} words: "
            f"leave out either --shingle or --weighted."
        )
    one = _text(client, target, a)
    other = text if text is not None else _text(client, target, b or "")
    return compare_texts(
        one,
        other,
        names=(a, name if b is None else b),
        shingle=w,
        weights=_weights(client, target) if weighted else None,
        scheme=target.settings.scheme if w == target.settings.shingle else None,
    )


def _text(client: Client, target: Target, id: str) -> str:
    index, source = present_source(client, target, id, target.settings.fields)
    try:
        return read_text(source, target.settings.fields)
    except InputError as error:
        raise InputError(f"Document {id!r} of index {index} cannot be compared: {error}") from error


def _weights(client: Client, target: Target) -> Weights:
    return frequencies(client, target, Measure(shingle=target.settings.shingle)).weights
