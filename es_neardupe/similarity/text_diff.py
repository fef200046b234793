"""Differences of two aligned texts: the words between common passages, paired where they are in one place."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from rapidfuzz.distance import Levenshtein

from es_neardupe.keys.arrays import U64, Ints
from es_neardupe.similarity.alignment import Alignment

__all__ = ["TextChange", "changes", "characters"]

Range = tuple[int, int]

_REFINED = 200
"""Longer gaps are one change: words that they share by chance mean nothing."""


class TextChange(NamedTuple):
    """Words of a in whose place b has others. One side may be empty: then it is a place between two words."""

    a: Range
    """First word and the one after the last."""
    b: Range


def changes(a: U64, b: U64, alignment: Alignment) -> list[TextChange]:
    """What lies outside the blocks of a literal alignment, by its place in a, then in b.

    Words between two passages that follow each other in both texts are one change, or several where they have
    words in common (Levenshtein 1966). Words between passages that follow each other in one text only are a change
    of that text alone. The beginnings and the ends of the texts count as passages.
    """
    paired, alone = _gaps(alignment, len(a), len(b))
    refined = [change for gap in paired for change in _refined(a, b, gap)]
    return sorted(refined + alone)


def characters(spans: Ints, words: Range) -> Range:
    """A range of words in characters of the text (`es_neardupe.keys.text.spans`); an empty one is a place behind the
    word before it."""
    first, end = words
    if first == end:
        at = int(spans[first - 1, 1]) if first else 0
        return at, at
    return int(spans[first, 0]), int(spans[end - 1, 1])


def _gaps(alignment: Alignment, size_a: int, size_b: int) -> tuple[list[TextChange], list[TextChange]]:
    """The words between neighbouring blocks: of both texts, and of one alone."""
    blocks = [(0, 0, 0), *map(tuple, alignment.blocks.tolist()), (size_a, size_b, 0)]
    inner = range(1, len(blocks) - 1)
    in_b = [0, *sorted(inner, key=lambda k: blocks[k][1]), len(blocks) - 1]
    after_in_b = dict(pairwise(in_b))
    paired, alone = [], []
    for k in range(len(blocks) - 1):
        end_a, end_b = blocks[k][0] + blocks[k][2], blocks[k][1] + blocks[k][2]
        gap_a, gap_b = (end_a, blocks[k + 1][0]), (end_b, blocks[after_in_b[k]][1])
        if after_in_b[k] == k + 1:
            paired.append(TextChange(gap_a, gap_b))
        else:
            alone += [TextChange(gap_a, (end_b, end_b)), TextChange((end_a, end_a), gap_b)]
    return [gap for gap in paired if _holds(gap)], [gap for gap in alone if _holds(gap)]


def _holds(gap: TextChange) -> bool:
    return gap.a[0] < gap.a[1] or gap.b[0] < gap.b[1]


def _refined(a: U64, b: U64, gap: TextChange) -> Iterator[TextChange]:
    (start_a, end_a), (start_b, end_b) = gap
    if not (0 < end_a - start_a <= _REFINED and 0 < end_b - start_b <= _REFINED):
        yield gap
        return
    found: list[TextChange] = []
    for step in Levenshtein.opcodes(a[start_a:end_a].tolist(), b[start_b:end_b].tolist()):
        if step.tag == "equal":
            continue
        part_a = start_a + step.src_start, start_a + step.src_end
        part_b = start_b + step.dest_start, start_b + step.dest_end
        if found and found[-1].a[1] == part_a[0] and found[-1].b[1] == part_b[0]:
            last = found.pop()
            part_a, part_b = (last.a[0], part_a[1]), (last.b[0], part_b[1])
        found.append(TextChange(part_a, part_b))
    yield from found
