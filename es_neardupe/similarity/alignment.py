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

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from types import ModuleType
from typing import NamedTuple

import numpy as np

from es_neardupe.errors import SettingsError
from es_neardupe.keys.arrays import U64, Flags, Ints, Positions
from es_neardupe.keys.scheme import MAX_SHINGLE
from es_neardupe.keys.shingles import window_hashes
from es_neardupe.options import Matching
from es_neardupe.progress import Progress, silent, tracked
from es_neardupe.similarity import batch
from es_neardupe.similarity.batch import Batch
from es_neardupe.similarity.tiling import join_windows, tiles

DEFAULT_MIN_WORDS = 5
"""Minimum number of words in a common passage."""


class AlignmentTotals(NamedTuple):
    """The numbers of an alignment, from which measures are computed."""

    longer: int
    """L: words of the longer text."""
    shorter: int
    """S: words of the shorter text."""
    common: int
    """C: words in common passages."""
    chunks: int
    """n: the number of common passages."""


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

    @property
    def totals(self) -> AlignmentTotals:
        """The numbers without the passages."""
        return AlignmentTotals(self.longer, self.shorter, self.common, self.chunks)


def align(a: U64, b: U64, matching: Matching, minimum: int = DEFAULT_MIN_WORDS) -> Alignment:
    """Find common passages by `literal` or `information` matching. Raises `SettingsError` for ``minimum`` below 1."""
    return {Matching.LITERAL: literal, Matching.INFORMATION: information}[matching](a, b, minimum)


def totals(
    texts: Sequence[U64],
    left: Positions,
    right: Positions,
    matching: Matching,
    minimum: int = DEFAULT_MIN_WORDS,
    *,
    progress: Progress = silent,
) -> Iterator[AlignmentTotals]:
    """The numbers of the alignments of the pairs ``(texts[left[k]], texts[right[k]])``, as by `align`."""
    if matching is Matching.LITERAL and batch.kernel is not None:
        yield from _literal_totals(batch.kernel, Batch.of(texts, left, right), minimum, progress)
        return
    for a, b in tracked(zip(left.tolist(), right.tolist(), strict=True), progress, "", len(left)):
        yield align(texts[a], texts[b], matching, minimum).totals


def _literal_totals(kernel: ModuleType, pairs: Batch, minimum: int, progress: Progress) -> Iterator[AlignmentTotals]:
    check_passage(minimum)
    words, bounds = pairs.joined(), pairs.bounds
    for part in pairs.parts(progress):
        left, right = pairs.left[part], pairs.right[part]
        found = np.empty((len(left), 2), np.int64)
        kernel.totals(words, bounds, left, right, found, minimum)
        sizes = np.stack((pairs.sizes[left], pairs.sizes[right]))
        rows = zip(sizes.max(axis=0).tolist(), sizes.min(axis=0).tolist(), *found.T.tolist(), strict=True)
        for k, row in enumerate(rows):
            known = AlignmentTotals(*row)
            if known.common < 0:  # too many repetitions
                known = literal(pairs.texts[left[k]], pairs.texts[right[k]], minimum).totals
            yield known


def literal(a: U64, b: U64, minimum: int = DEFAULT_MIN_WORDS) -> Alignment:
    """Greedy string tiling. Equally long runs are ordered by the sum of their two positions, then by their position in
    the text whose first differing word has the smaller hash.

    Identical texts are one passage, however short they are. Raises `SettingsError` for ``minimum`` below 1.
    """
    check_passage(minimum)
    blocks = None if batch.kernel is None else batch.kernel.tiles(a, b, minimum)
    if blocks is not None:
        return _literal(a, b, np.frombuffer(blocks, np.int64).reshape(-1, 3))
    if np.array_equal(a, b):
        return _identical(a)
    found = tiles(b, a, minimum)[:, [1, 0, 2]] if _comes_after(a, b) else tiles(a, b, minimum)
    return _literal(a, b, found[np.argsort(found[:, 0])])


def _literal(a: U64, b: U64, blocks: Ints) -> Alignment:
    return Alignment((len(a), len(b)), int(blocks[:, 2].sum()), blocks)


def information(a: U64, b: U64, minimum: int = DEFAULT_MIN_WORDS) -> Alignment:
    """Information matching.

    A word is repeated if it is in a run of ``minimum`` words that occurred earlier in its text, and is not itself part
    of that earlier occurrence. Words that are not repeated count. Of a common run, the words at the same place of its
    first occurrences in both texts correspond to each other. If a word that counts corresponds to repeated words only,
    these count too. ``common`` is the number of counted words in runs that the other text has too, in the text with
    fewer of them. (Such a word is also in the first occurrence of such a run, so first occurrences are enough.)

    A text X of ``minimum`` words or more has the same information as X X, even if X repeats itself. Proof: each run of
    X has the same first occurrence in both texts, so each word of X corresponds to itself in the first X, and to no
    word of the second. There, the runs across the seam can make more words repeated than in X; those that count in X
    count after all. All words of the second X are repeated.

    Each block refers to the first occurrence of the passage in b. Identical texts are completely common, however short
    they are. Raises `SettingsError` for ``minimum`` below 1.
    """
    check_passage(minimum)
    if np.array_equal(a, b) and len(a) < minimum:
        return _identical(a)
    one, other = _Windows(a, minimum), _Windows(b, minimum)
    both = np.concatenate((one.distinct, other.distinct))
    merged = np.argsort(both, kind="stable")
    same = np.flatnonzero(both[merged[1:]] == both[merged[:-1]])
    in_a, in_b = one.first[merged[same]], other.first[merged[same + 1] - len(one.distinct)]
    order = np.argsort(in_a)
    blocks = join_windows(in_a[order], in_b[order], minimum)
    starts_a, starts_b, sizes = blocks.T
    common_a, common_b = _covered(starts_a, starts_a + sizes, len(a)), _covered(starts_b, starts_b + sizes, len(b))
    counts_a, counts_b = ~one.repeated, ~other.repeated
    if (one.repeated & common_a).any() or (other.repeated & common_b).any():
        _count_opposites(counts_a, counts_b, blocks)
    common = min(int((common_a & counts_a).sum()), int((common_b & counts_b).sum()))
    return Alignment((int(counts_a.sum()), int(counts_b.sum())), common, blocks)


def check_passage(minimum: int) -> None:
    """Raises `SettingsError` unless a common passage can have at least so many words."""
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
    """The distinct windows of a text, the first occurrence of each, and which words are repeated."""

    def __init__(self, text: U64, minimum: int) -> None:
        windows = window_hashes(text, minimum)
        order = np.argsort(windows, kind="stable")
        ordered = windows[order]
        is_first = np.ones(len(order), np.bool_)
        is_first[1:] = ordered[1:] != ordered[:-1]
        self.distinct, self.first = ordered[is_first], order[is_first]
        others = np.flatnonzero(~is_first)
        again, earlier = order[others], self.first[np.cumsum(is_first)[others] - 1]
        self.repeated = _covered(np.maximum(again, earlier + minimum), again + minimum, len(text))


def _count_opposites(counts_a: Flags, counts_b: Flags, blocks: Ints) -> None:
    """If a word that counts corresponds to words that do not count only, let these count too."""
    starts_a, starts_b, sizes = blocks.T
    before = np.cumsum(sizes) - sizes
    places = np.arange(int(sizes.sum()))
    a, b = places + np.repeat(starts_a - before, sizes), places + np.repeat(starts_b - before, sizes)
    in_a, in_b = counts_a[a], counts_b[b]
    if np.array_equal(in_a, in_b):
        return
    known_a, known_b = np.zeros_like(counts_a), np.zeros_like(counts_b)
    known_a[a[in_b]] = known_b[b[in_a]] = True
    counts_a[a[in_b & ~known_b[b]]] = True
    counts_b[b[in_a & ~known_a[a]]] = True


def _covered(starts: Ints, ends: Ints, size: int) -> Flags:
    """Whether each of ``size`` words is in any of the intervals: bool[size]."""
    if not len(starts):
        return np.zeros(size, np.bool_)
    depth = np.bincount(starts, minlength=size + 1) - np.bincount(ends, minlength=size + 1)
    covered: Flags = np.cumsum(depth)[:-1] > 0
    return covered
