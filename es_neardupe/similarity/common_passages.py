"""Common passages of several texts, in their own words."""

from __future__ import annotations

from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from es_neardupe.keys.hashing import U64
from es_neardupe.keys.shingles import token_hashes, window_hashes
from es_neardupe.keys.text import spans

__all__ = ["common_passage", "covered_passages"]


_MIN_WORDS = 5
"""Words from which on a common run is a passage."""


def covered_passages(texts: Sequence[str], covering: U64, shingle: int) -> list[tuple[str, int]]:
    """The runs of words whose shingles (of so many words) are all in ``covering`` (sorted), and how many texts have
    each: the most frequent first, then the longest. Shown as the first text that has it writes it, in one line."""
    numbers: Counter[bytes] = Counter()
    written: dict[bytes, str] = {}
    for text, words in zip(texts, token_hashes(texts), strict=True):
        inside = np.isin(window_hashes(words, shingle), covering)
        edges = np.flatnonzero(np.diff(inside, prepend=False, append=False)).reshape(-1, 2)
        at = spans(text)
        runs = {words[a : b + shingle - 1].tobytes(): text[at[a, 0] : at[b + shingle - 2, 1]] for a, b in edges}
        numbers.update(runs.keys())
        written = runs | written
    ranked = sorted(numbers, key=lambda run: (-numbers[run], -len(run), written[run]))
    return [(" ".join(written[run].split()), numbers[run]) for run in ranked]


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
        if length >= _MIN_WORDS:
            return _cut(texts, hashes, _shared(hashes, length, needed), length)
    return ""


def _shared(hashes: Sequence[NDArray[np.uint64]], length: int, needed: int) -> NDArray[np.uint64]:
    """The windows of so many words that at least ``needed`` texts have, sorted."""
    windows = [np.unique(window_hashes(one, length)) for one in hashes]
    found, counts = np.unique(np.concatenate(windows), return_counts=True)
    return found[counts >= needed]


def _cut(texts: Sequence[str], hashes: Sequence[NDArray[np.uint64]], shared: NDArray[np.uint64], length: int) -> str:
    """The first of the shared windows, as the text writes it."""
    for text, words in zip(texts, hashes, strict=True):
        places = np.flatnonzero(np.isin(window_hashes(words, length), shared))
        if len(places):
            at = spans(text)
            return text[at[places[0], 0] : at[places[0] + length - 1, 1]]
    return ""
