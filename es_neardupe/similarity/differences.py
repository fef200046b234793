"""Differences of two aligned texts: the words outside their common passages."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

from rapidfuzz.distance import Levenshtein

from es_neardupe.keys.arrays import U64, Ints
from es_neardupe.keys.text import Range
from es_neardupe.similarity.alignment import Alignment

_REFINED = 200
"""Maximum number of words of a gap that is divided into several changes. Words that longer gaps share are chance."""


class TextChange(NamedTuple):
    """Words of a that are replaced by words of b. A side may be empty: then it is a position between two words."""

    a: Range
    """The first word and the one after the last."""
    b: Range


def changes(a: U64, b: U64, alignment: Alignment) -> list[TextChange]:
    """The changes between the blocks of a literal alignment, sorted by position in a, then in b.

    The words between two passages that follow each other in both texts are one change, or several if they have words
    in common (Levenshtein 1966). The words between passages that follow each other in one text only are a change of
    that text alone. The beginnings and the ends of the texts count as passages.
    """
    paired, alone = _gaps(alignment, len(a), len(b))
    refined = [change for gap in paired for change in _refined(a, b, gap)]
    return sorted(refined + alone)


def characters(spans: Ints, words: Range) -> Range:
    """A range of words as a range of characters, given the `es_neardupe.keys.text.spans` of the text. An empty range of
    words becomes the position after the word before it."""
    first, end = words
    if first == end:
        at = int(spans[first - 1, 1]) if first else 0
        return at, at
    return int(spans[first, 0]), int(spans[end - 1, 1])


def _gaps(alignment: Alignment, size_a: int, size_b: int) -> tuple[list[TextChange], list[TextChange]]:
    """The words between adjacent blocks: of both texts, and of one text alone."""
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
    return [gap for gap in paired if _has_words(gap)], [gap for gap in alone if _has_words(gap)]


def _has_words(gap: TextChange) -> bool:
    return gap.a[0] < gap.a[1] or gap.b[0] < gap.b[1]


def _refined(a: U64, b: U64, gap: TextChange) -> Iterator[TextChange]:
    (start_a, end_a), (start_b, end_b) = gap
    if not (0 < end_a - start_a <= _REFINED and 0 < end_b - start_b <= _REFINED):
        yield gap
        return
    refined: list[TextChange] = []
    for step in Levenshtein.opcodes(a[start_a:end_a].tolist(), b[start_b:end_b].tolist()):
        if step.tag == "equal":
            continue
        part_a = start_a + step.src_start, start_a + step.src_end
        part_b = start_b + step.dest_start, start_b + step.dest_end
        if refined and refined[-1].a[1] == part_a[0] and refined[-1].b[1] == part_b[0]:
            last = refined.pop()
            part_a, part_b = (last.a[0], part_a[1]), (last.b[0], part_b[1])
        refined.append(TextChange(part_a, part_b))
    yield from refined


_MAX_EXTENSION = 8
"""Words by which a change is extended on each side, to include all of ``2.0.1`` or ``$45,000``."""

_JOINT = re.compile(r"[.,٬٫:/'’+@&-]")
_BEFORE, _AFTER = re.compile(r"[$€£¥+-]$"), re.compile(r"^\s?%")


def extended(change: TextChange, texts: tuple[str, str], spans: tuple[Ints, Ints]) -> TextChange:
    """Extend a change, equally in both texts, while it begins or ends inside a unit such as ``45,000`` or ``don't``."""
    (a, end_a), (b, end_b) = change

    def inside_unit(word_a: int, word_b: int) -> bool:
        in_a = a < end_a and _is_joined(texts[0], spans[0], word_a)
        return in_a or (b < end_b and _is_joined(texts[1], spans[1], word_b))

    for _ in range(_MAX_EXTENSION):
        if not (a and b and inside_unit(a, b)):
            break
        a, b = a - 1, b - 1
    for _ in range(_MAX_EXTENSION):
        if end_a >= len(spans[0]) or end_b >= len(spans[1]) or not inside_unit(end_a, end_b):
            break
        end_a, end_b = end_a + 1, end_b + 1
    return TextChange((a, end_a), (b, end_b))


def _is_joined(text: str, spans: Ints, word: int) -> bool:
    """Whether only a sign such as a comma or an apostrophe separates a word from the one before it."""
    return bool(_JOINT.fullmatch(text[spans[word - 1, 1] : spans[word, 0]]))


def characters_with_signs(text: str, spans: Ints, words: Range) -> Range:
    """The range of characters of some words, including the signs that belong to a number."""
    start, stop = characters(spans, words)
    if start == stop:
        return start, stop
    if text[start].isdigit() and _BEFORE.search(text[max(start - 1, 0) : start]):
        start -= 1
    if text[stop - 1].isdigit() and (after := _AFTER.match(text[stop : stop + 2])):
        stop += after.end()
    return start, stop
