"""How surely the keys find the pairs that a measure calls similar.

Keys are made for the resemblance. Where another measure decides, two texts can be as similar as wanted and have few
shingles in common: then it says nothing that the keys find pairs of the threshold's resemblance.
"""

from __future__ import annotations

from dataclasses import dataclass

from es_neardupe.keys import Scheme
from es_neardupe.scoring import Measure, MeasureName

__all__ = ["DetectionCase", "detection_cases", "detection_of"]

_RATIOS = (1, 2, 5)
_RESEMBLANCES = (0.8, 0.5, 0.2)


@dataclass(frozen=True)
class DetectionCase:
    """Pairs of one shape that are exactly as similar as wanted."""

    shape: str
    """``lengths 1:2``, with the common words in one passage; ``resemblance 0.5`` where the measure leaves that open."""
    resemblance: float
    """The resemblance of such a pair of long texts."""
    probability: float
    """Probability that they share a band key."""


def detection_of(measure: Measure, least: float, scheme: Scheme) -> float | None:
    """Probability that a pair exactly ``least`` similar shares a key; None where the measure does not decide that."""
    return scheme.detection(least) if measure.by_keys else None


def detection_cases(measure: Measure, least: float, scheme: Scheme) -> tuple[DetectionCase, ...]:
    """What can be said instead, for concrete pairs; nothing for the resemblance that the keys are made for."""
    if measure.by_keys:
        return ()
    if measure.aligned or measure.name is MeasureName.EDIT:
        lengths = ((f"lengths 1:{ratio}", _in_one_passage(measure.name, least, 1 / ratio)) for ratio in _RATIOS)
        shapes = [(shape, resemblance) for shape, resemblance in lengths if resemblance is not None]
    else:
        shapes = [(f"resemblance {resemblance:g}", resemblance) for resemblance in _RESEMBLANCES]
    return tuple(DetectionCase(shape, value, scheme.detection(value)) for shape, value in shapes)


def _in_one_passage(name: MeasureName, least: float, shorter: float) -> float | None:
    """The resemblance of two long texts of the lengths 1 and ``shorter`` that have one passage in common.

    C is what the measure says, and the shingles of one long passage are as many as its words: C / (L + S - C).
    None where even a text that is wholly contained does not reach ``least``.
    """
    common = {
        MeasureName.CONTAINMENT: least * shorter,
        MeasureName.JACCARD: least * (1 + shorter) / (1 + least),
    }.get(name, least)
    return common / (1 + shorter - common) if common <= shorter else None
