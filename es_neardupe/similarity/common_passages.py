"""Common passages of several texts, as written in the texts."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

import numpy as np

from es_neardupe.keys.arrays import U64, Flags
from es_neardupe.keys.shingles import token_hashes, window_hashes
from es_neardupe.keys.text import spans, tokenize
from es_neardupe.keys.unit import Unit

_MIN_WORDS = 5
"""Minimum number of words in a passage."""


def covered_passages(
    texts: Sequence[str], covering: U64, shingle: int, unit: Unit = Unit.WORD
) -> list[tuple[str, int]]:
    """The runs of words, or of characters, whose shingles are all in ``covering`` (sorted), each with the number of
    texts that have it; most frequent first, then longest. A run is given in one line, in whole words, as written in the
    first text that has it."""
    frequencies: Counter[bytes] = Counter()
    written: dict[bytes, str] = {}
    for text, words in zip(texts, token_hashes(texts, unit), strict=True):
        inside = np.isin(window_hashes(words, shingle), covering)
        edges = np.flatnonzero(np.diff(inside, prepend=False, append=False)).reshape(-1, 2)
        at = spans(text, unit)
        runs = {words[a : b + shingle - 1].tobytes(): text[at[a, 0] : at[b + shingle - 2, 1]] for a, b in edges}
        frequencies.update(runs.keys())
        written = runs | written
    ranked = sorted(frequencies, key=lambda run: (-frequencies[run], -len(run), written[run]))
    return [(" ".join(written[run].split()), frequencies[run]) for run in ranked]


def covered_words(text: str, covering: U64, shingle: int, unit: Unit = Unit.WORD) -> Flags:
    """Whether each word of a text is in shingles in ``covering`` (sorted); with shingles of characters, each of its
    characters: bool[words]."""
    (hashes,) = token_hashes([text], unit)
    size = min(shingle, max(len(hashes), 1))  # a shorter text is one shingle
    starts = np.flatnonzero(np.isin(window_hashes(hashes, size), covering))
    depth = np.bincount(starts, minlength=len(hashes) + 1) - np.bincount(starts + size, minlength=len(hashes) + 1)
    covered: Flags = np.cumsum(depth)[:-1] > 0
    if unit is Unit.WORD or not len(hashes):
        return covered
    lengths = [len(token) for token in tokenize(text)]
    return np.logical_and.reduceat(covered, np.cumsum([0, *lengths[:-1]]))


def common_passage(texts: Sequence[str]) -> str:
    """The longest run of words that all texts have, as written in the first text that has it.

    If it has fewer than five words, the longest run that all but one have, and so on down to two texts; otherwise "".
    Found by bisection: texts with a common run of n words have one of n - 1 words, and the common windows of one length
    are found by sorting.
    """
    hashes = token_hashes(texts)
    for needed in range(len(texts), 1, -1):
        longest = sorted(map(len, hashes))[-needed]
        length = bisect_left(range(longest), True, key=lambda n: not len(_shared(hashes, n + 1, needed)))
        if length >= _MIN_WORDS:
            return _cut(texts, hashes, _shared(hashes, length, needed), length)
    return ""


def _shared(hashes: Sequence[U64], length: int, needed: int) -> U64:
    """The hashes of the windows of ``length`` words that at least ``needed`` texts have, sorted."""
    of_each = [np.unique(window_hashes(one, length)) for one in hashes]
    windows, counts = np.unique(np.concatenate(of_each), return_counts=True)
    return windows[counts >= needed]


def _cut(texts: Sequence[str], hashes: Sequence[U64], shared: U64, length: int) -> str:
    """The first of the shared windows, as written in the first text that has one."""
    for text, words in zip(texts, hashes, strict=True):
        places = np.flatnonzero(np.isin(window_hashes(words, length), shared))
        if len(places):
            at = spans(text)
            return text[at[places[0], 0] : at[places[0] + length - 1, 1]]
    return ""
