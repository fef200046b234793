"""The text blocks that two texts share, as places in the originals and as highlighted HTML.

For example:

    found = overlaps("Lucy had a gray cat.", "I know that Lucy had a gray cat.", least_words=3)
    found.blocks   # (Block(a=(0, 19), b=(12, 31), words=5),)
    found.html_b   # 'I know that <mark class="overlap" data-block="1">Lucy had a gray cat</mark>.'
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from es_neardupe.alignment import DEFAULT_LEAST, literal
from es_neardupe.comparison import Block, blocks_of, side_of
from es_neardupe.keys import token_hashes
from es_neardupe.markup import escaped

__all__ = ["Overlaps", "overlaps"]

Range = tuple[int, int]


@dataclass(frozen=True, slots=True)
class Overlaps:
    """What two texts have in common."""

    blocks: tuple[Block, ...]
    """By their place in a. No two share a word, in a or in b."""
    words: int
    """Words in all blocks."""
    html_a: str
    """Text a, escaped, with block n (counted from 1) in ``<mark class="overlap" data-block="n">``."""
    html_b: str
    """Text b likewise, with the same numbers."""


def overlaps(text_a: str, text_b: str, least_words: int = DEFAULT_LEAST) -> Overlaps:
    """The blocks of at least ``least_words`` equal words, found by greedy string tiling (`alignment.literal`): the
    longest first, and each word is in one block at most. Identical texts are one block, however short.

    Words are equal after normalisation: case and punctuation do not count. Raises `SettingsError` for ``least_words``
    below 1, `InputError` for a text longer than `comparison.MAX_CHARS`.
    """
    a, b = side_of("a", text_a), side_of("b", text_b)
    hashes_a, hashes_b = token_hashes([text_a, text_b])
    found = literal(hashes_a, hashes_b, least_words)
    blocks = blocks_of(a, b, found)
    marked = (_marked(text_a, [one.a for one in blocks]), _marked(text_b, [one.b for one in blocks]))
    return Overlaps(blocks, found.common, *marked)


def _marked(text: str, places: Sequence[Range]) -> str:
    """The whole text; ``places`` are those of the blocks in the order of their numbers, and do not overlap."""
    return "".join(_parts(text, sorted((place, number) for number, place in enumerate(places, 1))))


def _parts(text: str, places: Iterable[tuple[Range, int]]) -> Iterable[str]:
    at = 0
    for (start, end), number in places:
        yield escaped(text[at:start])
        yield f'<mark class="overlap" data-block="{number}">{escaped(text[start:end])}</mark>'
        at = end
    yield escaped(text[at:])
