"""Detection: the probability that the keys find pairs of a given similarity.

Keys are made for resemblance. By another measure, two texts can be very similar and have few shingles in common. The
probability then depends on how the texts differ, and is given for some typical cases.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from es_neardupe.keys.scheme import Scheme
from es_neardupe.options import MeasureName
from es_neardupe.similarity.measure import Measure

__all__ = ["DetectionCase", "detection_cases", "detection_of"]

_RATIOS = (1, 2, 5)
_RESEMBLANCES = (0.8, 0.5, 0.2)


@dataclass(frozen=True)
class DetectionCase:
    """Pairs of one shape whose similarity is exactly the minimum."""

    shape: str
    """Such as ``one passage, lengths 1:2``, or ``resemblance 0.5`` if the measure does not determine it."""
    resemblance: float
    """Resemblance of such a pair of long texts."""
    probability: float
    """Probability that such a pair is a candidate."""


def detection_of(measure: Measure, minimum: float, scheme: Scheme) -> float | None:
    """Probability that a pair exactly ``minimum`` similar is a candidate; None if the measure does not determine it."""
    return scheme.detection(minimum) if measure.by_keys else None


def detection_cases(measure: Measure, minimum: float, scheme: Scheme) -> tuple[DetectionCase, ...]:
    """The probabilities for typical pairs if `detection_of` is None; otherwise empty."""
    if measure.by_keys:
        return ()
    if measure.aligned or measure.name is MeasureName.EDIT:
        shapes = [*_passages(measure.name, minimum), _throughout(measure, minimum, scheme.shingle)]
    else:
        shapes = [(f"resemblance {resemblance:g}", resemblance) for resemblance in _RESEMBLANCES]
    return tuple(DetectionCase(shape, value, scheme.detection(value)) for shape, value in shapes)


def _passages(name: MeasureName, minimum: float) -> Iterator[tuple[str, float]]:
    """The resemblance of long texts with one common passage: C / (L + S - C), since a long passage has about as many
    shingles as words.

    A ratio of lengths is left out if even a text that is contained completely does not reach ``minimum``.
    """
    for ratio in _RATIOS:
        shorter = 1 / ratio
        if (common := _common(name, minimum, shorter)) <= shorter:
            yield f"one passage, lengths 1:{ratio}", common / (1 + shorter - common)


def _throughout(measure: Measure, minimum: float, w: int) -> tuple[str, float]:
    """The resemblance of equally long texts with single words changed, evenly spread: each change ends a passage, and n
    passages have C - n (w - 1) shingles. Measures of common passages ignore those of fewer than w words."""
    common = _common(measure.name, minimum, 1.0)
    passages = min(1 - common, common / w) if measure.aligned else 1 - common
    shared = max(0.0, common - passages * (w - 1))
    return "changes throughout, lengths 1:1", shared / (2 - shared)


def _common(name: MeasureName, minimum: float, shorter: float) -> float:
    """C for texts of the lengths 1 and ``shorter`` that are exactly ``minimum`` similar."""
    if name is MeasureName.CONTAINMENT:
        return minimum * shorter
    return minimum * (1 + shorter) / (1 + minimum) if name is MeasureName.JACCARD else minimum
