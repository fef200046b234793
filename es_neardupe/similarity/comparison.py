"""Comparison of two texts: all measures with their formulas, common passages, differences, and containment."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from enum import Enum
from typing import ClassVar

import numpy as np

from es_neardupe.display_text import beginning
from es_neardupe.errors import InputError, SettingsError
from es_neardupe.keys.arrays import U64, Flags, Ints
from es_neardupe.keys.hashing import mix64
from es_neardupe.keys.prepare.placed import PlacedText
from es_neardupe.keys.prepare.preparation import AS_IT_IS, Preparation, Text
from es_neardupe.keys.scheme import MAX_SHINGLE, Scheme
from es_neardupe.keys.shingles import token_hashes, window_hashes
from es_neardupe.keys.text import Range
from es_neardupe.keys.unit import Unit
from es_neardupe.options import Matching, MeasureName
from es_neardupe.records import one_line
from es_neardupe.similarity import formulas
from es_neardupe.similarity.alignment import DEFAULT_MIN_WORDS, Alignment, align
from es_neardupe.similarity.differences import TextChange, changes, characters
from es_neardupe.similarity.explained_scores import Score, left_out, scores
from es_neardupe.similarity.facts.differing import Fact, differing_facts
from es_neardupe.similarity.facts.tokens import FactTokens, fact_tokens
from es_neardupe.similarity.formulas import Weights

MAX_CHARS = 10_000_000
"""Maximum number of characters of a text that is compared."""

NEAR_COPIES = 0.5
"""Minimum literal jaccard of two texts of the same form, for which differing facts are reported."""


@dataclass(frozen=True, slots=True)
class Side:
    """One of the two texts."""

    name: str
    """File name or document id."""
    characters: int
    words: int
    """Words that are compared; of a prepared text, those that are left."""
    _text: PlacedText = field(repr=False)
    as_prepared: bool = False
    """Whether it is shown as it was prepared, with places in that text: the original is encoded, or places in it take
    too long to find."""
    fields: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Field -> its text, for the fields to show; empty for a file."""

    @classmethod
    def of(cls, name: str, text: str | PlacedText) -> Side:
        """A text with its words."""
        placed = PlacedText(text, text) if isinstance(text, str) else text
        return cls(name, len(placed.original), len(placed.spans), placed, placed.as_prepared)

    @property
    def text(self) -> str:
        """The text that is shown: the original, or else the prepared one."""
        return self._text.original

    @property
    def prepared(self) -> str:
        """What is compared of it."""
        return self._text.prepared

    @property
    def spans(self) -> Ints:
        """int64[words, 2]: the first character of each word in the original text, and the one after its last."""
        return self._text.spans

    def place(self, words: Range) -> Range:
        """A range of words as a range of characters (see `characters`)."""
        return characters(self.spans, words)


@dataclass(frozen=True, slots=True)
class Block:
    """A common passage, as ranges of characters in the original texts."""

    a: Range
    b: Range
    words: int


@dataclass(frozen=True, slots=True)
class Matched:
    """The common passages by one kind of matching."""

    longer: int
    """L: words of the longer text; for information matching, words that are not repeated."""
    shorter: int
    """S, likewise."""
    common: int
    """C: words in common passages."""
    chunks: int
    """n: common passages."""
    blocks: tuple[Block, ...]
    """The common passages, sorted by position in a, then in b."""
    _alignment: Alignment = field(repr=False, compare=False)

    @property
    def alignment(self) -> Alignment:
        """The same passages as ranges of words."""
        return self._alignment


@dataclass(frozen=True, slots=True)
class Difference:
    """What one text has in place of the other between two literal passages."""

    a: Range
    """Characters of the original text. An empty range is a position between two words."""
    b: Range
    words_a: str
    """The text of range ``a``."""
    words_b: str


@dataclass(frozen=True, slots=True)
class CompareReport:
    """The result of a comparison."""

    JSON_PROPERTIES: ClassVar = ("differences",)
    """What its JSON form has besides the fields."""

    a: Side
    b: Side
    shingle: int
    """Words, characters or shapes in a shingle."""
    unit: Unit
    """What shingles consist of."""
    passage: int
    """w: minimum number of words in a common passage."""
    measures: tuple[Score, ...]
    left_out: Mapping[str, str]
    """Measures that were not computed, each with the reason."""
    matchings: Mapping[str, Matched]
    """The common passages by each kind of matching, by the names of `Matching`."""
    near_copies: bool
    """Whether literal jaccard is at least `NEAR_COPIES`."""
    facts: tuple[Fact, ...]
    """Facts that differ between near-copies; empty for other texts."""
    _changes: tuple[TextChange, ...] = field(repr=False)
    _hashes: tuple[U64, U64] = field(repr=False, compare=False)

    def __repr__(self) -> str:
        return one_line(
            self,
            a=self.a.name,
            b=self.b.name,
            shingle=self.shingle,
            unit=self.unit.value,
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
        """The differences between literal passages, as ranges of words."""
        return self._changes

    @property
    def differences(self) -> tuple[Difference, ...]:
        """The differences between literal passages, as text."""
        return tuple(
            Difference(a, b, self.a.text[slice(*a)], self.b.text[slice(*b)])
            for a, b in ((self.a.place(one.a), self.b.place(one.b)) for one in self._changes)
        )

    @property
    def hashes(self) -> tuple[U64, U64]:
        """The token hashes of both texts."""
        return self._hashes

    def value(self, measure: MeasureName, matching: Matching | None = None) -> float:
        """The value of one measure. Raises `KeyError` for one that was left out."""
        return {(one.measure, one.matching): one.value for one in self.measures}[measure, matching]


def compare_texts(
    a: str | PlacedText,
    b: str | PlacedText,
    *,
    names: tuple[str, str] = ("a", "b"),
    shingle: int = DEFAULT_MIN_WORDS,
    unit: Unit = Unit.WORD,
    passage: int | None = None,
    weights: Weights | None = None,
    scheme: Scheme | None = None,
) -> CompareReport:
    """Compare two texts by every measure. Of a prepared text, what is left is compared, and all is shown. ``passage``
    is the minimum number of words in a common passage (default: the words of a shingle, or 1 with shingles of
    characters). ``weighted`` is left out without ``weights``; ``scheme`` defines the signatures for ``estimate``
    (default: 128 slots).

    Raises `SettingsError` for ``shingle`` or ``passage`` below 1, `InputError` for a text longer than `MAX_CHARS`.
    """
    if not 1 <= shingle <= MAX_SHINGLE:
        raise SettingsError(f"A shingle has 1 {unit.value} or more, not {shingle}, and at most {MAX_SHINGLE:,}.")
    one, other = side_of(names[0], a), side_of(names[1], b)
    prepared = one.prepared, other.prepared
    hashes_a, hashes_b = token_hashes(prepared)
    least = unit.passage(shingle) if passage is None else passage
    alignments = {matching: align(hashes_a, hashes_b, matching, least) for matching in Matching}
    differing = changes(hashes_a, hashes_b, alignments[Matching.LITERAL])
    near = formulas.jaccard(alignments[Matching.LITERAL]) >= NEAR_COPIES
    return CompareReport(
        one,
        other,
        shingle,
        unit,
        least,
        tuple(scores(prepared, alignments, shingle, unit, weights=weights, scheme=scheme)),
        left_out((one.words, other.words), weights),
        {matching.value: _matched(one, other, found) for matching, found in alignments.items()},
        near,
        tuple(differing_facts(facts_of(one), facts_of(other))) if near else (),
        tuple(differing),
        (hashes_a, hashes_b),
    )


def side_of(name: str, text: str | PlacedText) -> Side:
    """A text as a side of a comparison. Raises `InputError` if it is longer than `MAX_CHARS`."""
    characters = len(text) if isinstance(text, str) else len(text.original)
    if characters > MAX_CHARS:
        raise InputError(
            f"{name} is too large to compare: {characters:,} characters, the maximum is {MAX_CHARS:,}. Shorten it "
            f"first."
        )
    return Side.of(name, text)


def placed_text(side: Side) -> PlacedText:
    """The text, and what is compared of it."""
    return side._text


def facts_of(side: Side) -> FactTokens:
    """The words and facts of a text."""
    return fact_tokens(placed_text(side))


def blocks_of(a: Side, b: Side, found: Alignment) -> tuple[Block, ...]:
    """The common passages as ranges of characters in the original texts."""
    return tuple(Block(a.place((i, i + size)), b.place((j, j + size)), size) for i, j, size in found.blocks.tolist())


def _matched(a: Side, b: Side, found: Alignment) -> Matched:
    return Matched(found.longer, found.shorter, found.common, found.chunks, blocks_of(a, b, found), found)


_EXCERPT = 100
"""Characters of the longest passage that are shown."""


class Direction(str, Enum):
    """Relation of a document to the probe."""

    CONTAINS = "contains the probe"
    CONTAINED = "is contained in the probe"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Containment:
    """Exact containment of a probe and a document in each other."""

    direction: Direction
    of_probe: float
    """Share of the probe's words that are in common passages."""
    of_document: float
    """Share of the document's words that are in common passages."""
    common_words: int
    passages: tuple[Block, ...]
    """``a`` is in the probe, ``b`` in the document; none if one of them is shown as it was prepared."""
    excerpt: str
    """The beginning of the longest passage."""


_FIRST_OF_PROBE, _FIRST_OF_DOCUMENT = 1, 1 << 32
"""Numbers of the first ignored words, so that the two texts share none."""


@dataclass(frozen=True)
class WordsCompared:
    """What is compared of texts."""

    preparation: Preparation = AS_IT_IS
    ignored: Callable[[str], Flags] | None = None
    """Which words of a prepared text do not count and are in no passage; None: none."""

    def words(self, prepared: str, first: int) -> tuple[U64, int]:
        """The token hashes of a prepared text, and the number of ignored words. Each of these gets a hash of its own,
        by its number from ``first``: it is in no common passage, and is no repetition."""
        (hashes,) = token_hashes([prepared])
        if self.ignored is None:
            return hashes, 0
        places = np.flatnonzero(self.ignored(prepared))
        hashes[places] = mix64(np.arange(first, first + len(places), dtype=np.uint64))
        return hashes, len(places)


AS_WRITTEN = WordsCompared()
"""All words of texts as they are."""


class Containments:
    """Finds texts that contain a probe or are contained in it.

    ``passage`` is the minimum number of words in a common passage, ``minimum`` the minimum share of the words of either
    text that are in common passages.
    """

    def __init__(
        self, probe: Side, matching: Matching, passage: int, minimum: float, reading: WordsCompared = AS_WRITTEN
    ) -> None:
        """``reading``: of the texts, that of the probe."""
        self.probe = probe
        self.reading = reading
        self.matching = matching
        self.passage = passage
        self.minimum = minimum
        self._hashes, self._ignored = reading.words(probe.prepared, _FIRST_OF_PROBE)
        self._windows = np.unique(window_hashes(self._hashes, passage))

    def of(self, text: Text) -> Containment | None:
        """The containment of the probe and this text; None if neither share reaches the minimum."""
        preparation = self.reading.preparation
        hashes, ignored = self.reading.words(preparation.text(text), _FIRST_OF_DOCUMENT)
        shorter = min(len(hashes) - ignored, len(self._hashes) - self._ignored)
        if not shorter or self._upper_bound(hashes, shorter) < self.minimum:
            return None
        found = align(self._hashes, hashes, self.matching, self.passage)
        of_probe = found.common / (found.words[0] - self._ignored)
        of_document = found.common / (found.words[1] - ignored)
        if max(of_probe, of_document) < self.minimum:
            return None
        document = Side.of("document", preparation.placed(text))
        passages = blocks_of(self.probe, document, found)
        excerpt = self._excerpt(passages)
        if self.probe.as_prepared or document.as_prepared:
            passages = ()
        direction = _direction(of_probe >= self.minimum, of_document >= self.minimum)
        return Containment(direction, of_probe, of_document, found.common, passages, excerpt)

    def _upper_bound(self, hashes: U64, shorter: int) -> float:
        """An upper bound of both shares: a common passage consists of windows that both texts have. For a long probe,
        this is much faster than `align`."""
        windows = window_hashes(hashes, self.passage)
        if self.matching is not Matching.LITERAL or not len(windows) or not len(self._windows):
            return 1.0  # information matching ignores repeated words, and a short text is compared as a whole
        places = np.minimum(np.searchsorted(self._windows, windows), len(self._windows) - 1)
        starts = np.flatnonzero(self._windows[places] == windows)
        words = int(np.minimum(np.diff(starts), self.passage).sum()) + self.passage * min(len(starts), 1)
        return words / shorter

    def _excerpt(self, passages: Sequence[Block]) -> str:
        longest = max(passages, key=lambda one: one.words)
        return beginning(self.probe.text[slice(*longest.a)], _EXCERPT)


def _direction(contains: bool, is_contained: bool) -> Direction:
    if contains and is_contained:
        return Direction.BOTH
    return Direction.CONTAINS if contains else Direction.CONTAINED
