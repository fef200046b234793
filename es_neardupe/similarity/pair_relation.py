"""Relation of two near texts: one text, the same form with other facts, one inside the other, or only near."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

import numpy as np

from es_neardupe.keys.arrays import U64
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
"""Edit similarity from which on texts that differ in facts are revisions of one text."""

CONTAINED = 0.9
"""Part of the shorter text, in words of common passages, from which on it is contained in the longer one."""

MUCH_SHORTER = 0.8
"""A contained text has fewer words than this part of the longer one's: else both are versions of one length."""

MAX_CELLS = 10**8
"""Words times words of two texts up to which the edit similarity is computed: some milliseconds."""


class Relation(str, Enum):
    """The first that holds. The same for (a, b) as for (b, a), and every pair has one.

    A text with fewer than 0.8 of the other's words has an edit similarity below 0.8: no pair could be a revision and
    contained.
    """

    EXACT = "exact"
    """The same tokens in the same order, so the same content hash."""
    REVISION = "revision"
    """Edit similarity of at least `REVISION`, and other numbers, dates, amounts, negations or names."""
    CONTAINED = "contained"
    """`CONTAINED` of the shorter text's words lie in common passages, and it is `MUCH_SHORTER`."""
    NEAR = "near"
    """Any other pair that became a candidate; how near, its measures say."""


class ComparedText(NamedTuple):
    """A text as it is compared."""

    text: str
    tokens: U64
    """Token hashes in order."""
    features: U64
    """Sorted distinct shingle hashes."""


@dataclass(frozen=True, slots=True)
class PairDescription:
    """The measures that are cheap on texts at hand, and the relation."""

    resemblance: float
    jaccard: float
    """Like containment, by literal matching."""
    containment: float
    edit: float | None
    """None for texts too long for it (`MAX_CELLS`); they are taken for no revision."""
    relation: Relation


def compared_texts(texts: Sequence[str], shingle: int) -> list[ComparedText]:
    """Texts prepared for `describe_pair`, computed for all of them at once."""
    return list(map(ComparedText, texts, token_hashes(texts), features(texts, shingle)))


def describe_pair(a: ComparedText, b: ComparedText, shingle: int) -> PairDescription:
    """Compare two texts. ``shingle``: words in a shingle, and the least number of words in a common passage."""
    if b.text < a.text:  # how changes are found may depend on the order
        a, b = b, a
    found = literal(a.tokens, b.tokens, shingle)
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
