"""Changes between the tokens of two texts: runs that are replaced, inserted or removed, also where passages moved.

1. The common beginning and end of the texts, then common runs of at least 4 tokens as by literal matching, are blocks.
   In short texts shorter runs are blocks, too, if they have a word with a meaning: numbers alone would make exchanged
   numbers look like moved ones. Only in titles are they in any order.
2. Between two blocks that follow each other in both texts: the steps of the edit distance (Levenshtein 1966).
3. Between two that follow each other in one text only, a passage moved. The rest of the sentence before a block in one
   text is compared with the rest before the same block in the other one, and likewise after it.

The same in C is in `_changes.h`.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Iterator, Sequence
from enum import IntEnum
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from rapidfuzz.distance import Levenshtein

from es_neardupe.keys.arrays import U64
from es_neardupe.keys.text import Range
from es_neardupe.similarity import batch
from es_neardupe.similarity.alignment import literal
from es_neardupe.similarity.facts.token_flags import TokenFlag
from es_neardupe.similarity.facts.tokens import TITLE, FactTokens

MIN_TOKENS = 4
"""Tokens of a block."""
SHORT = 40
"""Maximum number of tokens of texts in which shorter blocks are found."""
MAX_GAP = 400
"""Maximum number of tokens, in each text, between blocks that are compared token by token."""
AROUND = 6
"""Tokens on each side of a change that must be equal for the most part."""


class Surroundings(IntEnum):
    """The tokens around a change."""

    OTHER = 0
    """Others in both texts: the change is part of a rewritten passage."""
    SIMILAR = 1
    """Those next to it are equal, and at least half of all."""
    EQUAL = 2
    """Those next to it are equal, and at least four of five."""


class TokenChange(NamedTuple):
    """Tokens of a that are replaced by tokens of b. A side may be empty."""

    a: Range
    b: Range
    surroundings: Surroundings


class _Block(NamedTuple):
    a: int
    b: int
    size: int


def token_changes(a: FactTokens, b: FactTokens) -> list[TokenChange]:
    """The changes, sorted by position in a, then in b. The result for (b, a) may be another one."""
    found = None if batch.kernel is None else batch.kernel.changes(a.keys, b.keys, a.flags, b.flags)
    if found is None:  # no kernel, or too many repetitions
        return _Changes(a, b, _joined_blocks(_blocks(a, b))).with_surroundings()
    return [
        TokenChange((x, y), (z, w), Surroundings(around))
        for x, y, z, w, around in np.frombuffer(found, np.int64).reshape(-1, 5).tolist()
    ]


def _blocks(a: FactTokens, b: FactTokens) -> list[_Block]:
    """The common beginning and end, and the common runs between them."""
    size = min(len(a), len(b))
    head = _common(a.keys[:size], b.keys[:size])
    tail = _common(a.keys[::-1][: size - head], b.keys[::-1][: size - head])
    rest_a, rest_b = a.keys[head : len(a) - tail], b.keys[head : len(b) - tail]
    blocks = [_Block(0, 0, head), _Block(len(a) - tail, len(b) - tail, tail)]
    found = [_Block(*row) for row in literal(rest_a, rest_b, MIN_TOKENS).blocks.tolist()]
    if max(len(a), len(b)) <= SHORT:
        content = (a.flags[head : len(a) - tail] & TokenFlag.CONTENT != 0).tolist()
        is_title = max(len(a), len(b)) <= TITLE
        found += _short_blocks(rest_a.tolist(), rest_b.tolist(), content, found, is_title=is_title)
    blocks += [_Block(i + head, j + head, length) for i, j, length in found]
    return sorted(one for one in blocks if one.size)


def _common(a: U64, b: U64) -> int:
    """The number of equal tokens that two arrays of one length begin with."""
    different = np.flatnonzero(a != b)
    return int(different[0]) if len(different) else len(a)


def _short_blocks(
    a: Sequence[int], b: Sequence[int], content: Sequence[bool], found: Iterable[_Block], *, is_title: bool
) -> Iterator[_Block]:
    """Runs of less than `MIN_TOKENS` tokens of short texts, the longest first: of two or more with a word that has a
    meaning, then single words that have one and are unique in both texts. Only those of titles move: otherwise two
    words that change places, as in ``the buyer pays the seller``, would make no difference."""
    blocks: list[_Block] = []
    free_a, free_b = [True] * len(a), [True] * len(b)

    def take(block: _Block) -> None:
        blocks.append(block)
        free_a[block.a : block.a + block.size] = [False] * block.size
        free_b[block.b : block.b + block.size] = [False] * block.size

    for block in found:
        take(block)
    for size in range(MIN_TOKENS - 1, 0, -1):
        equal = [
            _Block(i, j, size)
            for i in range(len(a) - size + 1)
            for j in range(len(b) - size + 1)
            if a[i : i + size] == b[j : j + size] and any(content[i : i + size])
        ]
        for block in sorted(equal, key=lambda one: (abs(one.a - one.b), one)):
            i, j, _ = block
            is_free = all(free_a[i : i + size]) and all(free_b[j : j + size])
            is_moved = not is_title and any((i < other.a) != (j < other.b) for other in blocks)
            if is_free and not is_moved and (size > 1 or (a.count(a[i]) == 1 and b.count(a[i]) == 1)):
                take(block)
                yield block


def _joined_blocks(blocks: Sequence[_Block]) -> list[_Block]:
    """Blocks that touch in both texts as one."""
    joined: list[_Block] = []
    for one in blocks:
        if joined and (joined[-1].a + joined[-1].size, joined[-1].b + joined[-1].size) == (one.a, one.b):
            joined[-1] = joined[-1]._replace(size=joined[-1].size + one.size)
        else:
            joined.append(one)
    return joined


class _Changes:
    """The changes between blocks, and the tokens that are in none and are compared with the other text."""

    def __init__(self, a: FactTokens, b: FactTokens, blocks: Sequence[_Block]) -> None:
        self._keys = a.keys, b.keys
        self._starts = tuple(np.flatnonzero(one.flags & TokenFlag.START).tolist() for one in (a, b))
        self._found: list[tuple[Range, Range]] = []
        self._other = bytearray(b"\1" * len(a)), bytearray(b"\1" * len(b))
        """Whether each token has no equal one in the other text at the same place."""
        self._compared = bytearray(len(a)), bytearray(len(b))
        """Whether each token was compared next to a moved passage."""
        rows = [_Block(-1, -1, 1), *blocks, _Block(len(a), len(b), 1)]
        in_b = sorted(range(len(rows)), key=lambda k: rows[k].b)
        after = dict(pairwise(in_b))
        for block in blocks:
            self._mark((block.a, block.a + block.size), (block.b, block.b + block.size), 0)
        sides: list[tuple[int, int, bool, int]] = []
        for k in range(len(rows) - 1):
            if after[k] == k + 1:
                self._compare(
                    _gap(rows[k].a, rows[k].size, rows[k + 1].a), _gap(rows[k].b, rows[k].size, rows[k + 1].b)
                )
            else:
                for number, is_before in ((k, False), (k + 1, True)):
                    sides.append((self._anchor(rows[number], is_before), rows[number].size, is_before, number))
        before = {later: k for k, later in after.items()}
        for *_, is_before, k in sorted(sides, reverse=True):
            if is_before:
                self._before(rows[k], rows[k - 1], rows[before[k]])
            else:
                self._after(rows[k], rows[k + 1], rows[after[k]])
        self._found.sort()

    def _anchor(self, block: _Block, is_before: bool) -> int:
        """The number of tokens of a block that are in the same sentence as those before or after it."""
        sizes = []
        for starts, first in zip(self._starts, (block.a, block.b), strict=True):
            if is_before:
                at = bisect_right(starts, first)
                sizes.append(min(starts[at] - first, block.size) if at < len(starts) else block.size)
            else:
                end = first + block.size
                at = bisect_left(starts, end) - 1
                sizes.append(min(end - starts[at], block.size) if at >= 0 else block.size)
        return min(sizes)

    def _before(self, block: _Block, in_a: _Block, in_b: _Block) -> None:
        """Compare the rest of the sentence before a block. ``in_a``, ``in_b``: the blocks before it in each text."""
        parts = []
        for side, (high, earlier) in enumerate(((block.a, in_a.a + in_a.size), (block.b, in_b.b + in_b.size))):
            starts, size = self._starts[side], len(self._keys[side])
            if high <= 0:
                return
            start = starts[bisect_right(starts, min(high, size - 1)) - 1]
            low = max(earlier, start)
            while low < high and self._compared[side][low]:
                low += 1
            parts.append((low, high))
        self._compare_moved(parts[0], parts[1])

    def _after(self, block: _Block, in_a: _Block, in_b: _Block) -> None:
        """The same for what is after a block."""
        parts = []
        for side, (low, later) in enumerate(((block.a + block.size, in_a.a), (block.b + block.size, in_b.b))):
            starts = self._starts[side]
            at = (bisect_left if low else bisect_right)(starts, low)
            high = min(later, starts[at]) if at < len(starts) else later
            while low < high and self._compared[side][high - 1]:
                high -= 1
            parts.append((low, high))
        self._compare_moved(parts[0], parts[1])

    def _compare_moved(self, a: Range, b: Range) -> None:
        is_empty = a[0] >= a[1] or b[0] >= b[1]
        if is_empty or max(a[1] - a[0], b[1] - b[0]) > MAX_GAP:
            return
        if any(self._compared[0][slice(*a)]) or any(self._compared[1][slice(*b)]):
            return
        self._compared[0][slice(*a)] = b"\1" * (a[1] - a[0])
        self._compared[1][slice(*b)] = b"\1" * (b[1] - b[0])
        self._compare(a, b)

    def _compare(self, a: Range, b: Range) -> None:
        """Add the changes of two runs."""
        size_a, size_b = a[1] - a[0], b[1] - b[0]
        if not (size_a or size_b):
            return
        if not size_a or not size_b or max(size_a, size_b) > MAX_GAP:
            self._add(a, b)
            return
        self._mark(a, b, 0)
        steps = Levenshtein.opcodes(self._keys[0][slice(*a)].tolist(), self._keys[1][slice(*b)].tolist())
        run: tuple[Range, Range] | None = None
        for step in steps:
            if step.tag == "equal":
                continue
            part_a = a[0] + step.src_start, a[0] + step.src_end
            part_b = b[0] + step.dest_start, b[0] + step.dest_end
            if run and run[0][1] == part_a[0] and run[1][1] == part_b[0]:
                run = (run[0][0], part_a[1]), (run[1][0], part_b[1])
                continue
            if run:
                self._add(*run)
            run = part_a, part_b
        if run:
            self._add(*run)

    def _add(self, a: Range, b: Range) -> None:
        self._mark(a, b, 1)
        self._found.append((a, b))

    def _mark(self, a: Range, b: Range, value: int) -> None:
        for other, (start, end) in zip(self._other, (a, b), strict=True):
            other[start:end] = bytes([value]) * (end - start)

    def with_surroundings(self) -> list[TokenChange]:
        """All changes, in order."""
        return [TokenChange(a, b, min(self._around(0, a), self._around(1, b))) for a, b in self._found]

    def _around(self, side: int, words: Range) -> Surroundings:
        start, end = words
        before, after = self._other[side][max(start - AROUND, 0) : start], self._other[side][end : end + AROUND]
        if before[-1:] == b"\1" or after[:1] == b"\1":
            return Surroundings.OTHER
        others, around = sum(before) + sum(after), len(before) + len(after)
        if 5 * others <= around:
            return Surroundings.EQUAL
        return Surroundings.SIMILAR if 2 * others <= around else Surroundings.OTHER


def _gap(start: int, size: int, end: int) -> Range:
    return start + size, end
