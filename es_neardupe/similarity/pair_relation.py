"""Relation of two similar texts: exact copy, revision with other facts, contained, or near."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np

from es_neardupe.keys.arrays import U64
from es_neardupe.keys.scheme import Unit
from es_neardupe.keys.shingles import features, token_hashes
from es_neardupe.keys.text import spans
from es_neardupe.similarity import formulas
from es_neardupe.similarity.alignment import Alignment, literal
from es_neardupe.similarity.differences import changes, facts

__all__ = [
    "CONTAINED",
    "MAX_CELLS",
    "MUCH_SHORTER",
    "REVISION",
    "ComparedText",
    "PairDescription",
    "Relation",
    "compared_texts",
    "describe_pair",
]


REVISION = 0.8
"""Minimum edit similarity of revisions: texts that differ in facts."""

CONTAINED = 0.9
"""Minimum share of the words of a contained text that are in common passages with the longer text."""

MUCH_SHORTER = 0.8
"""A contained text has fewer words than this share of the words of the longer text."""

MAX_CELLS = 10**8
"""Maximum product of the numbers of words for which the edit similarity is computed; it takes some milliseconds."""


class Relation(str, Enum):
    """Relation of a pair: the first of these that holds. Every pair has one, and it does not depend on the order.

    No pair can be both revision and contained: if a text has fewer than 0.8 times the words of the other, their edit
    similarity is below 0.8.
    """

    EXACT = "exact"
    """The same tokens in the same order, so the same content hash."""
    REVISION = "revision"
    """Edit similarity of at least `REVISION`, and different numbers, dates, amounts, negations or names."""
    CONTAINED = "contained"
    """At least `CONTAINED` of the shorter text's words are in common passages, and it is `MUCH_SHORTER`."""
    NEAR = "near"
    """Any other candidate pair. Its measures show the similarity."""


class ComparedText(NamedTuple):
    """A text prepared for comparison."""

    text: str
    tokens: U64
    """Token hashes in order."""
    features: U64
    """Sorted distinct shingle hashes."""


@dataclass(frozen=True, slots=True)
class PairDescription:
    """The relation of a pair, and the measures that it is based on."""

    resemblance: float
    jaccard: float
    """By literal matching, like containment."""
    containment: float
    edit: float | None
    """None for texts that are too long for it (`MAX_CELLS`). Such texts are not revisions."""
    relation: Relation


def compared_texts(texts: Sequence[str], shingle: int, unit: Unit = Unit.WORD) -> list[ComparedText]:
    """Prepare texts for `describe_pair`, all at once."""
    return list(map(ComparedText, texts, token_hashes(texts), features(texts, shingle, unit)))


def describe_pair(a: ComparedText, b: ComparedText, passage: int) -> PairDescription:
    """Compare two texts. ``passage``: minimum number of words in a common passage."""
    if b.text < a.text:  # changes may depend on the order
        a, b = b, a
    found = literal(a.tokens, b.tokens, passage)
    affordable = len(a.tokens) * len(b.tokens) <= MAX_CELLS
    edit = formulas.edit(a.tokens, b.tokens) if affordable else None
    return PairDescription(
        formulas.resemblance(a.features, b.features),
        formulas.jaccard(found),
        formulas.containment(found),
        edit,
        _relation(a, b, found, edit),
    )


def _relation(a: ComparedText, b: ComparedText, found: Alignment, edit: float | None) -> Relation:
    if np.array_equal(a.tokens, b.tokens):
        return Relation.EXACT
    if edit is not None and edit >= REVISION and _facts_differ(a, b, found):
        return Relation.REVISION
    if formulas.containment(found) >= CONTAINED and found.shorter < MUCH_SHORTER * found.longer:
        return Relation.CONTAINED
    return Relation.NEAR


def _facts_differ(a: ComparedText, b: ComparedText, found: Alignment) -> bool:
    differing = changes(a.tokens, b.tokens, found)
    return next(facts((a.text, b.text), (spans(a.text), spans(b.text)), differing), None) is not None
