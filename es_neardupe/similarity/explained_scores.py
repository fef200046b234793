"""Scores of two texts by all measures, each with its formula."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field

import numpy as np

from es_neardupe.keys.minhash import estimate
from es_neardupe.keys.scheme import Scheme
from es_neardupe.keys.unit import Unit
from es_neardupe.options import Matching, MeasureName
from es_neardupe.similarity.alignment import Alignment
from es_neardupe.similarity.formulas import Weights
from es_neardupe.similarity.measure import ALIGNED, Measure, Prepared

_MAX_EDITS = 3 * 10**10
"""Maximum product of the numbers of words for the edit measure, which takes a few seconds for it."""


@dataclass(frozen=True, slots=True)
class Score:
    """The value of a measure for two texts."""

    measure: MeasureName
    symbol: str | None = field(init=False)
    """``S_R``, ``S_J`` or ``S_L``; None for other measures."""
    matching: Matching | None
    """None for measures that do not use common passages."""
    value: float
    interval: tuple[float, float] | None
    """95 % interval of an estimate; None for exact measures and texts without words."""
    formula: str
    """L, S, C and n as in `es_neardupe.similarity.comparison.Matched`; w: words in a shingle."""
    filled: str
    """The formula with numbers."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "symbol", self.measure.symbol)

    @property
    def name(self) -> str:
        """The name of the measure with its symbol."""
        return self.measure.value if self.symbol is None else f"{self.measure.value} ({self.symbol})"


def left_out(words: tuple[int, int], weights: Weights | None) -> dict[str, str]:
    """The measures that are not computed, each with the reason."""
    reasons = {}
    if weights is None:
        reasons[MeasureName.WEIGHTED.value] = "it needs the frequencies of shingles in an index"
    if words[0] * words[1] > _MAX_EDITS:
        reasons[MeasureName.EDIT.value] = f"the texts are too long for it, {words[0]:,} and {words[1]:,} words"
    return reasons


def scores(
    texts: tuple[str, str],
    alignments: Mapping[Matching, Alignment],
    shingle: int,
    unit: Unit,
    *,
    weights: Weights | None = None,
    scheme: Scheme | None = None,
) -> Iterator[Score]:
    """The scores by every measure that is not in `left_out`. ``scheme`` defines the signatures for the estimate."""
    literal = alignments[Matching.LITERAL]
    missing = left_out(literal.words, weights)
    yield _resemblance(Measure(shingle=shingle, unit=unit), texts, literal)
    for matching, found in alignments.items():
        yield from _of_passages(matching, found)
    yield _bag(texts, literal)
    if MeasureName.WEIGHTED.value not in missing:
        value, *_ = _scored(Measure(MeasureName.WEIGHTED, shingle=shingle, unit=unit, weights=weights), texts)
        formula = "weight of shared shingles / weight of all shingles"
        yield Score(MeasureName.WEIGHTED, None, value, None, formula, "")
    if MeasureName.EDIT.value not in missing:
        value, *_ = _scored(Measure(MeasureName.EDIT), texts)
        edits = round((1 - value) * literal.longer)
        yield Score(MeasureName.EDIT, None, value, None, "1 - d / L", f"1 - {edits} / {literal.longer}")
    yield _estimate(Measure(MeasureName.ESTIMATE, shingle=shingle, unit=unit, scheme=scheme), texts)


def _scored(measure: Measure, texts: tuple[str, str]) -> tuple[float, Prepared, Prepared]:
    """The value of a measure, and both texts as prepared for it."""
    one, other = measure.prepare(texts)
    return measure.score(one, other), one, other


def _resemblance(measure: Measure, texts: tuple[str, str], found: Alignment) -> Score:
    """The score by resemblance. The formula relates it to L, S, C and n if this gives both parts of the fraction."""
    value, one, other = _scored(measure, texts)
    shared = len(np.intersect1d(one, other, assume_unique=True))
    whole = len(one) + len(other) - shared
    longer, shorter, common, n, w = found.longer, found.shorter, found.common, found.chunks, measure.shingle
    formula, filled = "shared shingles / all shingles", f"{shared} / {whole}"
    if measure.unit is Unit.WORD and (shared, whole) == (
        common - n * (w - 1),
        longer + shorter - common + (n - 2) * (w - 1),
    ):
        formula += " = (C - n(w-1)) / (L + S - C + (n-2)(w-1))"
        filled += f" = ({common} - {n}*{w - 1}) / ({longer} + {shorter} - {common} {'+-'[n < 2]} {abs(n - 2)}*{w - 1})"
    return Score(measure.name, None, value, None, formula, filled)


def _of_passages(matching: Matching, found: Alignment) -> Iterator[Score]:
    longer, shorter, common = found.longer, found.shorter, found.common
    for name, formula, filled in (
        (MeasureName.JACCARD, "C / (L + S - C)", f"{common} / ({longer} + {shorter} - {common})"),
        (MeasureName.CONTAINMENT, "C / S", f"{common} / {shorter}"),
        (MeasureName.CONTAINMENT_LONGER, "C / L", f"{common} / {longer}"),
    ):
        yield Score(name, matching, ALIGNED[name](found), None, formula, filled)


def _bag(texts: tuple[str, str], found: Alignment) -> Score:
    value, *_ = _scored(Measure(MeasureName.BAG), texts)
    both = found.longer + found.shorter
    shared = round(value * both / (1 + value)) if both else 0
    filled = f"{shared} / ({found.longer} + {found.shorter} - {shared})"
    return Score(MeasureName.BAG, None, value, None, "c / (L + S - c), c: words that both have", filled)


def _estimate(measure: Measure, texts: tuple[str, str]) -> Score:
    value, one, other = _scored(measure, texts)
    formula = "(e - 1/256) / (1 - 1/256), e: share of equal slots in the signatures"
    if not (len(one) and len(other)):
        return Score(measure.name, None, value, None, formula, "no signature without words")
    found = estimate(one, other)
    equal = int(np.count_nonzero(one == other))
    return Score(measure.name, None, value, (found.low, found.high), formula, f"e = {equal} / {len(one)}")
