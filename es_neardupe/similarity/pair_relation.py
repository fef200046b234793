"""Relation of two similar texts: exact copy, revision with other facts, contained, or near."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from functools import cached_property

import numpy as np

from es_neardupe.keys.arrays import U64
from es_neardupe.keys.shingles import features, token_hashes, window_hashes
from es_neardupe.keys.unit import Unit
from es_neardupe.similarity import formulas
from es_neardupe.similarity.alignment import Alignment, literal
from es_neardupe.similarity.facts.differing import facts_agree
from es_neardupe.similarity.facts.kinds import FACTS
from es_neardupe.similarity.facts.tokens import FactTokens, fact_tokens

REVISION = 0.8
"""Minimum edit similarity of revisions: texts that differ in facts."""

CONTAINED = 0.9
"""Minimum share of the words of a contained text that are in common passages with the longer text."""

MUCH_SHORTER = 0.8
"""A contained text has fewer words than this share of the words of the longer text."""

MAX_CELLS = 10**8
"""Maximum product of the numbers of words for which the edit similarity is computed; it takes some milliseconds."""

MAX_EQUAL = 16
MAX_RUNS = 0.5
"""Maximum numbers of pairs of equal windows, and of runs of such pairs, for each word of two longer texts for which
common passages are computed: it takes about a second for a million words. With more, it would take minutes."""


class Relation(str, Enum):
    """Relation of a pair: the first of these that holds. Every pair has one, and it does not depend on the order.

    No pair can be both revision and contained: if a text has fewer than 0.8 times the words of the other, their edit
    similarity is below 0.8.
    """

    EXACT = "exact"
    """The same tokens in the same order, so the same content hash."""
    REVISION = "revision"
    """Edit similarity of at least `REVISION`, and facts that differ: figures, names or negations."""
    CONTAINED = "contained"
    """At least `CONTAINED` of the shorter text's words are in common passages, and it is `MUCH_SHORTER`."""
    NEAR = "near"
    """Any other candidate pair. Its measures show the similarity."""


@dataclass(frozen=True)
class ComparedText:
    """A text prepared for comparison."""

    text: str
    tokens: U64
    """Token hashes in order."""
    features: U64
    """Sorted distinct shingle hashes."""
    equal: float = 0.0
    """Pairs of equal windows of this text with itself; 0 for a short text."""
    runs: float = 0.0
    """Runs of these."""

    @cached_property
    def fact_tokens(self) -> FactTokens:
        """Its words and facts."""
        return fact_tokens(self.text)


@dataclass(frozen=True, slots=True)
class PairDescription:
    """The relation of a pair, and the measures that it is based on."""

    resemblance: float
    jaccard: float | None
    """By literal matching, like containment. None for texts that are too long and too repetitive for common passages
    (`MAX_CELLS`, `MAX_EQUAL`, `MAX_RUNS`). Such texts are not classified as contained."""
    containment: float | None
    edit: float | None
    """None for texts that are too long for it (`MAX_CELLS`). Such texts are not revisions."""
    relation: Relation


def compared_texts(texts: Sequence[str], shingle: int, unit: Unit = Unit.WORD) -> list[ComparedText]:
    """Prepare texts for `describe_pair`, all at once."""
    tokens = token_hashes(texts)
    equal, runs = zip(*(_repetitions(one, unit.passage(shingle)) for one in tokens), strict=True) if texts else ((), ())
    return list(map(ComparedText, texts, tokens, features(texts, shingle, unit), equal, runs))


def describe_pair(a: ComparedText, b: ComparedText, passage: int) -> PairDescription:
    """Compare two texts. ``passage``: minimum number of words in a common passage."""
    affordable = len(a.tokens) * len(b.tokens) <= MAX_CELLS
    found = literal(a.tokens, b.tokens, passage) if affordable or _seldom_repeat(a, b) else None
    edit = formulas.edit(a.tokens, b.tokens) if affordable else None
    return PairDescription(
        formulas.resemblance(a.features, b.features),
        None if found is None else formulas.jaccard(found),
        None if found is None else formulas.containment(found),
        edit,
        _relation(a, b, found, edit),
    )


def _repetitions(tokens: U64, passage: int) -> tuple[float, float]:
    """`ComparedText.equal` and `ComparedText.runs`. A run of n pairs of windows has n - 1 of windows that are one word
    longer."""
    if len(tokens) <= _SHORT:
        return 0.0, 0.0
    equal, longer = (_equal_pairs(window_hashes(tokens, size)) for size in (passage, passage + 1))
    return equal, equal - longer


def _equal_pairs(windows: U64) -> float:
    windows = np.sort(windows)
    ends = np.flatnonzero(np.append(windows[1:] != windows[:-1], True)) + 1
    return float(np.square(np.diff(ends, prepend=0), dtype=np.float64).sum())


_SHORT = 1000
"""Words of a text that has few repetitions together with any other, whatever it holds."""


def _seldom_repeat(a: ComparedText, b: ComparedText) -> bool:
    """Whether two texts have few pairs of equal windows for their length: at most the geometric mean of those that each
    has with itself (Cauchy-Schwarz), so each text is examined once. Of the runs, this is an estimate."""
    words = len(a.tokens) + len(b.tokens)
    return math.sqrt(a.equal * b.equal) <= MAX_EQUAL * words and math.sqrt(a.runs * b.runs) <= MAX_RUNS * words


def _relation(a: ComparedText, b: ComparedText, found: Alignment | None, edit: float | None) -> Relation:
    if np.array_equal(a.tokens, b.tokens):
        return Relation.EXACT
    if found is None:
        return Relation.NEAR
    if edit is not None and edit >= REVISION and not facts_agree(a.fact_tokens, b.fact_tokens, FACTS):
        return Relation.REVISION
    if formulas.containment(found) >= CONTAINED and found.shorter < MUCH_SHORTER * found.longer:
        return Relation.CONTAINED
    return Relation.NEAR
