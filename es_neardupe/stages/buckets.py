"""Stage: large buckets -> the signatures to choose comparisons by, and the passage that their texts share."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from es_neardupe import documents
from es_neardupe.clients import Client
from es_neardupe.errors import CorruptFingerprint
from es_neardupe.fetch import fetch
from es_neardupe.indices import Target
from es_neardupe.keys import spans, token_hashes, window_hashes
from es_neardupe.records import Classes, Corpus

__all__ = ["common_passage", "passages", "read_signatures"]

_LEAST = 5
"""Words from which on a common run is a passage."""

_SHOWN = 200
"""Characters of a passage that are kept."""


def read_signatures(
    client: Client, target: Target, corpus: Corpus, classes: Classes, numbers: NDArray[np.intp]
) -> NDArray[np.uint8]:
    """The stored signatures of classes, uint8[classes, slots]: 128 bytes each, by default as many as their keys have.

    Where a signature cannot be read (any more), it is all zeros: such a text is compared with fewer or other ones.
    """
    field = target.fields.signature
    slots = target.settings.scheme.permutations
    found = np.zeros((len(numbers), slots), np.uint8)
    references = (corpus.references[classes.members[number][0]] for number in numbers.tolist())
    wanted = [f"{target.settings.prefix}.{name}" for name in ("scheme", "state", "content", "tokens", "features")]
    for place, hit in enumerate(fetch(client, references, [field, *wanted])):
        signature = b"" if hit is None else _signature(documents.stored_fields(hit.source, target.settings.prefix))
        if len(signature) == slots:
            found[place] = np.frombuffer(signature, np.uint8)
    return found


def _signature(stored: Mapping[str, Any]) -> bytes:
    try:
        return documents.decode(stored).signature
    except CorruptFingerprint:
        return b""


def passages(
    client: Client, target: Target, corpus: Corpus, classes: Classes, samples: Sequence[Sequence[int]]
) -> list[str]:
    """The beginning of the passage that the present texts of each sample of classes share; "" where there is none."""
    numbers = sorted({number for sample in samples for number in sample})
    fields = target.settings.fields
    references = [corpus.references[classes.members[number][0]] for number in numbers]
    hits = fetch(client, references, fields, batch=50)
    text_of = {
        number: "" if hit is None else documents.readable_text(hit.source, fields) or ""
        for number, hit in zip(numbers, hits, strict=True)
    }
    return [_beginning(common_passage([text_of[number] for number in sample])) for sample in samples]


def _beginning(passage: str) -> str:
    """In one line; of a long one the words that fit, and `...` for the rest."""
    plain = " ".join(passage.split())
    if len(plain) <= _SHOWN:
        return plain
    kept = plain[: _SHOWN + 1].rpartition(" ")[0] or plain[:_SHOWN]
    return f"{kept}..."


def common_passage(texts: Sequence[str]) -> str:
    """The longest run of words that all the texts have; if that is short of five words, the longest that all but one
    have, and so on down to two texts, else "". Shown as the first text that has it writes it.

    Found by bisection: texts with a run of n words in common have one of n - 1, and the common windows of one length
    are found by sorting.
    """
    hashes = token_hashes(texts)
    for needed in range(len(texts), 1, -1):
        longest = sorted(map(len, hashes))[-needed]
        length = bisect_left(range(longest), True, key=lambda n: not len(_shared(hashes, n + 1, needed)))
        if length >= _LEAST:
            return _cut(texts, hashes, _shared(hashes, length, needed), length)
    return ""


def _shared(hashes: Sequence[NDArray[np.uint64]], length: int, needed: int) -> NDArray[np.uint64]:
    """The windows of so many words that at least ``needed`` texts have, sorted."""
    windows = [np.unique(window_hashes(one, length)) for one in hashes]
    found, counts = np.unique(np.concatenate(windows), return_counts=True)
    return found[counts >= needed]


def _cut(texts: Sequence[str], hashes: Sequence[NDArray[np.uint64]], shared: NDArray[np.uint64], length: int) -> str:
    """The first of the shared windows, as it stands in the text."""
    for text, words in zip(texts, hashes, strict=True):
        places = np.flatnonzero(np.isin(window_hashes(words, length), shared))
        if len(places):
            at = spans(text)
            return text[at[places[0], 0] : at[places[0] + length - 1, 1]]
    return ""
