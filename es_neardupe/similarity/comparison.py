"""Comparison of two texts: all measures with the numbers they are made of, the common passages, and what differs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from es_neardupe.errors import InputError, SettingsError
from es_neardupe.keys.hashing import U64
from es_neardupe.keys.scheme import MAX_SHINGLE, Scheme
from es_neardupe.keys.shingles import token_hashes
from es_neardupe.keys.text import spans
from es_neardupe.options import Matching, MeasureName
from es_neardupe.records import one_line
from es_neardupe.similarity import formulas
from es_neardupe.similarity.alignment import DEFAULT_MIN_WORDS, Alignment, align
from es_neardupe.similarity.differing_facts import Fact, facts
from es_neardupe.similarity.explained_scores import Score, left_out, scores
from es_neardupe.similarity.formulas import Weights
from es_neardupe.similarity.text_diff import TextChange, changes, characters

__all__ = [
    "MAX_CHARS",
    "NEAR_COPIES",
    "Block",
    "Comparison",
    "Matched",
    "Side",
    "blocks_of",
    "compare_texts",
    "side_of",
]

Ints = NDArray[np.int64]
Range = tuple[int, int]

MAX_CHARS = 10_000_000
"""Characters of a text that is compared."""

NEAR_COPIES = 0.5
"""Literal jaccard from which on two texts have the same form, so that differing facts mean something."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two texts."""

    name: str
    """File, or id of the document."""
    characters: int
    words: int
    _text: str = field(repr=False)
    _spans: Ints = field(repr=False, compare=False)
    fields: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Field -> its text, for the fields to show; empty for a file."""

    @classmethod
    def of(cls, name: str, text: str) -> Side:
        """A text, its words counted and placed."""
        found = spans(text)
        return cls(name, len(text), len(found), text, found)

    @property
    def text(self) -> str:
        """The original text."""
        return self._text

    @property
    def spans(self) -> Ints:
        """int64[words, 2]: first character of each word and the one after its last."""
        return self._spans

    def place(self, words: Range) -> Range:
        """See `characters`."""
        return characters(self._spans, words)


@dataclass(frozen=True, slots=True)
class Block:
    """A common passage, in characters of the original texts: the first, and the one after the last."""

    a: Range
    b: Range
    words: int


@dataclass(frozen=True, slots=True)
class Matched:
    """What one kind of matching finds."""

    longer: int
    """L: words of the longer text; for information matching, those that are no repeats."""
    shorter: int
    """S, likewise."""
    common: int
    """C: words in common passages."""
    chunks: int
    """n: common passages."""
    blocks: tuple[Block, ...]
    """By their place in a, then in b."""
    _alignment: Alignment = field(repr=False, compare=False)

    @property
    def alignment(self) -> Alignment:
        """The same in words."""
        return self._alignment


@dataclass(frozen=True, slots=True)
class Comparison:
    """All that is known of two texts."""

    a: Side
    b: Side
    shingle: int
    """w: words in a shingle, and the least number of words in a common passage."""
    measures: tuple[Score, ...]
    left_out: Mapping[str, str]
    """Measures that were not computed, and why."""
    matchings: Mapping[str, Matched]
    """By the names of `Matching`."""
    near_copies: bool
    """Whether literal jaccard is at least `NEAR_COPIES`."""
    facts: tuple[Fact, ...]
    """Where near-copies differ materially; empty for others."""
    _changes: tuple[TextChange, ...] = field(repr=False)
    _hashes: tuple[U64, U64] = field(repr=False, compare=False)

    def __repr__(self) -> str:
        return one_line(
            self,
            a=self.a.name,
            b=self.b.name,
            shingle=self.shingle,
            measures=len(self.measures),
            near_copies=self.near_copies,
            facts=len(self.facts),
        )

    @property
    def sides(self) -> tuple[Side, Side]:
        """Both texts."""
        return self.a, self.b

    @property
    def changes(self) -> tuple[TextChange, ...]:
        """What lies outside literal passages, in words."""
        return self._changes

    @property
    def hashes(self) -> tuple[U64, U64]:
        """The token hashes of both texts."""
        return self._hashes

    def value(self, measure: MeasureName, matching: Matching | None = None) -> float:
        """The value of one measure. Raises `KeyError` for one that was left out."""
        return {(one.measure, one.matching): one.value for one in self.measures}[measure, matching]


def compare_texts(
    a: str,
    b: str,
    *,
    names: tuple[str, str] = ("a", "b"),
    shingle: int = DEFAULT_MIN_WORDS,
    weights: Weights | None = None,
    scheme: Scheme | None = None,
) -> Comparison:
    """Compare two texts by every measure. ``weighted`` is left out without ``weights``; ``scheme`` is that of the
    signatures for ``estimate`` (default: 128 slots).

    Raises `SettingsError` for ``shingle`` below 1, `InputError` for a text longer than `MAX_CHARS`.
    """
    if not 1 <= shingle <= MAX_SHINGLE:
        raise SettingsError(f"A shingle has 1 word or more, not {shingle}, and at most {MAX_SHINGLE:,}.")
    one, other = side_of(names[0], a), side_of(names[1], b)
    hashes_a, hashes_b = token_hashes([a, b])
    alignments = {matching: align(hashes_a, hashes_b, matching, shingle) for matching in Matching}
    differing = changes(hashes_a, hashes_b, alignments[Matching.LITERAL])
    near = formulas.jaccard(alignments[Matching.LITERAL]) >= NEAR_COPIES
    return Comparison(
        one,
        other,
        shingle,
        tuple(scores((a, b), alignments, shingle, weights=weights, scheme=scheme)),
        left_out((one.words, other.words), weights),
        {matching.value: _matched(one, other, found) for matching, found in alignments.items()},
        near,
        tuple(facts((a, b), (one.spans, other.spans), differing)) if near else (),
        tuple(differing),
        (hashes_a, hashes_b),
    )


def side_of(name: str, text: str) -> Side:
    """A text that is to be compared. Raises `InputError` for one longer than `MAX_CHARS`."""
    if len(text) > MAX_CHARS:
        raise InputError(
            f"{name} is too large to compare: {len(text):,} characters, the most are {MAX_CHARS:,}. Cut it first."
        )
    return Side.of(name, text)


def blocks_of(a: Side, b: Side, found: Alignment) -> tuple[Block, ...]:
    """The common passages in characters of the originals."""
    return tuple(Block(a.place((i, i + size)), b.place((j, j + size)), size) for i, j, size in found.blocks.tolist())


def _matched(a: Side, b: Side, found: Alignment) -> Matched:
    return Matched(found.longer, found.shorter, found.common, found.chunks, blocks_of(a, b, found), found)
