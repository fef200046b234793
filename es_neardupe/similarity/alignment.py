"""Common passages of two texts: runs of at least ``minimum`` equal words, by literal or information matching.

*Literal* matching is greedy string tiling (Wise, *String Similarity via Greedy String Tiling and Running Karp-Rabin
Matching*, 1993): the longest remaining common run becomes a tile, its words are marked as used in both texts, and so
on. Each word is in at most one tile, so a passage that occurs twice in one text and once in the other counts once.

*Information* matching ignores repetition: a passage that a text repeats counts once, also in the length of the text.
Runs may overlap.

Texts are arrays of token hashes (`es_neardupe.keys.shingles.token_hashes`): uint64[words]. Both give the same result
for (a, b) as for (b, a), with the sides exchanged.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from es_neardupe.errors import SettingsError
from es_neardupe.keys.arrays import U64, Flags, Ints
from es_neardupe.keys.scheme import MAX_SHINGLE
from es_neardupe.keys.shingles import window_hashes
from es_neardupe.options import Matching
from es_neardupe.similarity.tiling import join_windows, tiles

__all__ = ["DEFAULT_MIN_WORDS", "Alignment", "align", "information", "literal"]


DEFAULT_MIN_WORDS = 5
"""Minimum number of words in a common passage."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """The common passages of two texts a and b."""

    words: tuple[int, int]
    """Counted words of a and of b: all words; for information matching, words that are not repeated."""
    common: int
    """C: words in common passages."""
    blocks: Ints
    """int64[n, 3]: first word in a, first word in b, number of words; sorted by position in a, then in b."""

    @property
    def longer(self) -> int:
        """L: words of the longer text."""
        return max(self.words)

    @property
    def shorter(self) -> int:
        """S: words of the shorter text."""
        return min(self.words)

    @property
    def chunks(self) -> int:
        """n: the number of common passages."""
        return len(self.blocks)


def align(a: U64, b: U64, matching: Matching, minimum: int = DEFAULT_MIN_WORDS) -> Alignment:
    """Find common passages by `literal` or `information` matching. Raises `SettingsError` for ``minimum`` below 1."""
    return {Matching.LITERAL: literal, Matching.INFORMATION: information}[matching](a, b, minimum)


def literal(a: U64, b: U64, minimum: int = DEFAULT_MIN_WORDS) -> Alignment:
    """Greedy string tiling. Equally long runs are ordered by the sum of their two positions, then by their position in
    the text whose first differing word has the smaller hash.

    Identical texts are one passage, however short they are. Raises `SettingsError` for ``minimum`` below 1.
    """
    _check(minimum)
    if np.array_equal(a, b):
        return _identical(a)
    found = tiles(b, a, minimum)[:, [1, 0, 2]] if _comes_after(a, b) else tiles(a, b, minimum)
    blocks = found[np.argsort(found[:, 0])]
    return Alignment((len(a), len(b)), int(blocks[:, 2].sum()), blocks)


def information(a: U64, b: U64, minimum: int = DEFAULT_MIN_WORDS) -> Alignment:
    """Information matching. A word is repeated, and does not count, if it is in a run of ``minimum`` words that
    occurred earlier in its text, and is not itself part of that earlier occurrence. ``common`` is the number of counted
    words in runs that the other text has too, in the text with fewer of them. (Such a word is also in the first
    occurrence of such a run, so first occurrences are enough.)

    Each block refers to the first occurrence of the passage in b. Identical texts are completely common, however short
    they are. Raises `SettingsError` for ``minimum`` below 1.
    """
    _check(minimum)
    if np.array_equal(a, b) and len(a) < minimum:
        return _identical(a)
    one, other = _Windows(a, minimum), _Windows(b, minimum)
    _, in_one, in_other = np.intersect1d(one.distinct, other.distinct, assume_unique=True, return_indices=True)
    sides = (one, one.first[in_one]), (other, other.first[in_other])
    common = min(int((_covered(at, at + minimum, len(side.counts)) & side.counts).sum()) for side, at in sides)
    words = int(one.counts.sum()), int(other.counts.sum())
    order = np.argsort(one.first[in_one])
    return Alignment(words, common, join_windows(sides[0][1][order], sides[1][1][order], minimum))


def _check(minimum: int) -> None:
    if not 1 <= minimum <= MAX_SHINGLE:
        raise SettingsError(f"A common passage has at least 1 word, not {minimum}, and at most {MAX_SHINGLE:,}.")


def _identical(a: U64) -> Alignment:
    return Alignment((len(a), len(a)), len(a), np.array([[0, 0, len(a)]] if len(a) else [], np.int64).reshape(-1, 3))


def _comes_after(a: U64, b: U64) -> bool:
    """Whether a comes after b. The order does not change if words that the other text lacks are appended to one."""
    size = min(len(a), len(b))
    different = np.flatnonzero(a[:size] != b[:size])
    return bool(a[different[0]] > b[different[0]]) if different.size else len(a) > len(b)


class _Windows:
    """The distinct windows of a text, the first occurrence of each, and which words count (are not repeated)."""

    def __init__(self, text: U64, minimum: int) -> None:
        windows = window_hashes(text, minimum)
        order = np.argsort(windows, kind="stable")
        ordered = windows[order]
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = ordered[1:] != ordered[:-1]
        self.distinct, self.first = ordered[is_first], order[is_first]
        repeated = order[~is_first]
        earlier = self.first[np.cumsum(is_first) - 1][~is_first]
        self.counts = ~_covered(np.maximum(repeated, earlier + minimum), repeated + minimum, len(text))


def _covered(starts: Ints, ends: Ints, size: int) -> Flags:
    """Whether each of ``size`` words is in any of the intervals: bool[size]."""
    depth = np.bincount(starts, minlength=size + 1) - np.bincount(ends, minlength=size + 1)
    covered: Flags = np.cumsum(depth)[:-1] > 0
    return covered
