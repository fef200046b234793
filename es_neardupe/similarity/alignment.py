"""Common passages of two texts: runs of at least ``minimum`` equal words, found in one of two ways.

*Literal* matching is greedy string tiling (Wise, *String Similarity via Greedy String Tiling and Running Karp-Rabin
Matching*, 1993): the longest common run that is left becomes a tile, its words are used up on both sides, and so on.
Each word is in one tile at most, so a passage that one text has twice and the other once counts once.

*Information* matching ignores repetition: a passage that a text repeats counts once,
in its length too, and runs may overlap.

Texts come as arrays of token hashes (`es_neardupe.keys.token_hashes`): uint64[words]. Both ways give the same result
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
from es_neardupe.similarity.tiling import runs_of, tiles

__all__ = ["DEFAULT_MIN_WORDS", "Alignment", "align", "information", "literal"]


DEFAULT_MIN_WORDS = 5
"""Words from which on a common run counts."""


@dataclass(frozen=True, slots=True)
class Alignment:
    """The common passages of two texts a and b."""

    words: tuple[int, int]
    """Words of a and of b that count: all of them, or for information matching those that are no repeats."""
    common: int
    """C: words in common passages."""
    blocks: Ints
    """int64[n, 3]: first word in a, first word in b, number of words; by their place in a, then in b."""

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
    """`literal` or `information`. Raises `SettingsError` for ``minimum`` below 1."""
    return {Matching.LITERAL: literal, Matching.INFORMATION: information}[matching](a, b, minimum)


def literal(a: U64, b: U64, minimum: int = DEFAULT_MIN_WORDS) -> Alignment:
    """Greedy string tiling. Of equally long runs the one with the smaller sum of its two places comes first, then
    the one that is earlier in the text whose first differing word has the smaller hash.

    Identical texts are one passage, however short. Raises `SettingsError` for ``minimum`` below 1.
    """
    _check(minimum)
    if np.array_equal(a, b):
        return _identical(a)
    first, second, turned = (b, a, True) if _comes_after(a, b) else (a, b, False)
    found = tiles(first, second, minimum)
    blocks = _in_order(found[:, [1, 0, 2]] if turned else found)
    return Alignment((len(a), len(b)), int(blocks[:, 2].sum()), blocks)


def information(a: U64, b: U64, minimum: int = DEFAULT_MIN_WORDS) -> Alignment:
    """Information matching. A word is a repeat if it is in a run of ``minimum`` words that occurred before in its text,
    and not in that former occurrence itself; repeats do not count. ``common`` is the number of counted words that are
    in runs which the other text has too, on the side where they are fewer. (Such a word is also in the first occurrence
    of such a run, so first occurrences are enough.)

    Each block leads to the first occurrence of the passage in b. Identical texts are wholly common, however short.
    Raises `SettingsError` for ``minimum`` below 1.
    """
    _check(minimum)
    if np.array_equal(a, b) and len(a) < minimum:
        return _identical(a)
    one, other = _Windows(a, minimum), _Windows(b, minimum)
    _, in_one, in_other = np.intersect1d(one.distinct, other.distinct, assume_unique=True, return_indices=True)
    sides = (one, one.first[in_one]), (other, other.first[in_other])
    common = min(int((_covered(at, at + minimum, len(side.counts)) & side.counts).sum()) for side, at in sides)
    words = int(one.counts.sum()), int(other.counts.sum())
    return Alignment(words, common, _in_order(runs_of(sides[0][1], sides[1][1], minimum)))


def _in_order(blocks: Ints) -> Ints:
    """By their place in a, then in b."""
    ordered: Ints = blocks[np.lexsort((blocks[:, 1], blocks[:, 0]))]
    return ordered


def _check(minimum: int) -> None:
    if not 1 <= minimum <= MAX_SHINGLE:
        raise SettingsError(f"A common passage has at least 1 word, not {minimum}, and at most {MAX_SHINGLE:,}.")


def _identical(a: U64) -> Alignment:
    return Alignment((len(a), len(a)), len(a), np.array([[0, 0, len(a)]] if len(a) else [], np.int64).reshape(-1, 3))


def _comes_after(a: U64, b: U64) -> bool:
    """An order of texts that does not change when text which is foreign to the other is appended to one."""
    size = min(len(a), len(b))
    different = np.flatnonzero(a[:size] != b[:size])
    return bool(a[different[0]] > b[different[0]]) if different.size else len(a) > len(b)


class _Windows:
    """The distinct windows of a text, where each occurs first, and which words are no repeats."""

    def __init__(self, text: U64, minimum: int) -> None:
        windows = window_hashes(text, minimum)
        order = np.argsort(windows, kind="stable")
        ordered = windows[order]
        fresh = np.ones(len(order), np.bool_)
        fresh[1:] = ordered[1:] != ordered[:-1]
        self.distinct, self.first = ordered[fresh], order[fresh]
        again = order[~fresh]
        earlier = self.first[np.cumsum(fresh) - 1][~fresh]
        self.counts = ~_covered(np.maximum(again, earlier + minimum), again + minimum, len(text))


def _covered(starts: Ints, ends: Ints, size: int) -> Flags:
    """Which of ``size`` words are in any of the intervals."""
    depth = np.bincount(starts, minlength=size + 1) - np.bincount(ends, minlength=size + 1)
    covered: Flags = np.cumsum(depth)[:-1] > 0
    return covered
