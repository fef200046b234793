"""Detection: the probability that the keys find pairs of a given similarity.

Keys are made for resemblance. By another measure, two texts can be very similar and have few shingles in common. The
probability then depends on how the texts differ and on their lengths, and is given for some typical cases.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from es_neardupe.index import queries
from es_neardupe.index.index import Index
from es_neardupe.keys.scheme import Scheme
from es_neardupe.options import MeasureName
from es_neardupe.server.search import search
from es_neardupe.similarity.measure import Measure

__all__ = ["DetectionCase", "cases_in_index", "detection_cases", "detection_of"]

_RATIOS = (1, 2, 5)
_RESEMBLANCES = (0.8, 0.5, 0.2)


@dataclass(frozen=True)
class DetectionCase:
    """Pairs of one shape that only just reach the minimum: no pair of this shape has a lower similarity that does."""

    shape: str
    """Such as ``one passage, 6 and 8 words``, or ``resemblance 0.5`` if the measure does not determine it."""
    resemblance: float
    """Resemblance of such a pair."""
    probability: float
    """Probability that such a pair is a candidate."""


def detection_of(measure: Measure, minimum: float, scheme: Scheme) -> float | None:
    """Probability that a pair exactly ``minimum`` similar is a candidate; None if the measure does not determine it."""
    return scheme.detection(minimum) if measure.by_keys else None


def detection_cases(measure: Measure, minimum: float, scheme: Scheme, words: int) -> tuple[DetectionCase, ...]:
    """If `detection_of` is None, the probabilities for typical pairs of a text of this many ``words`` and an equally
    long or longer one; otherwise empty. Also empty if only exact copies can reach ``minimum``: they share all keys."""
    if measure.by_keys:
        return ()
    if _by_order(measure):
        shapes = list(_shapes(measure, minimum, scheme.shingle, words))
    else:
        shapes = [(f"resemblance {resemblance:g}", resemblance) for resemblance in _RESEMBLANCES]
    return tuple(DetectionCase(shape, value, scheme.detection(value)) for shape, value in shapes)


def cases_in_index(index: Index, measure: Measure, minimum: float) -> tuple[DetectionCase, ...]:
    """`detection_cases` for texts of the median length in an index."""
    words = _median_words(index) if _by_order(measure) else 0
    return detection_cases(measure, minimum, index.settings.scheme, words)


def _by_order(measure: Measure) -> bool:
    """Whether the measure compares words in order, so that lengths and common passages determine the resemblance."""
    return measure.aligned or measure.name is MeasureName.EDIT


def _median_words(index: Index) -> int:
    """The median number of tokens of the documents that have any, as the server estimates it; 0 without such."""
    found = search(index.client, index.path, queries.median_tokens(index.fields))["aggregations"]["tokens"]["values"]
    return round(found["50.0"] or 0)


def _shapes(measure: Measure, minimum: float, w: int, words: int) -> Iterator[tuple[str, float]]:
    """Pairs of texts without repeated words that have as few common words as ``minimum`` allows, and their resemblance.

    First with one common passage. If a longer text is too long to reach ``minimum`` even if it contains all of the
    shorter one, the longest that does takes its place. Then equally long texts with single words changed, evenly
    spread: so they have the fewest common shingles.
    """
    longest = math.inf if measure.name is MeasureName.CONTAINMENT else _floor(words / minimum)
    for longer in dict.fromkeys(int(min(ratio * words, longest)) for ratio in _RATIOS):
        if common := _common(measure, minimum, w, words, longer):
            yield f"one passage, {words} and {longer} words", _resemblance(words, longer, [common], w)
    if common := _common(measure, minimum, w, words, words):
        passages = words - common + 1
        if measure.aligned:  # ignores passages of fewer than w words
            passages = min(passages, common // w)
        sizes = [(common + k) // passages for k in range(passages)]
        yield f"changes throughout, {words} and {words} words", _resemblance(words, words, sizes, w)


def _common(measure: Measure, minimum: float, w: int, shorter: int, longer: int) -> int:
    """C: the lowest number of common words with which texts of these lengths reach ``minimum``; 0 if none does."""
    wanted = {
        MeasureName.JACCARD: minimum * (shorter + longer) / (1 + minimum),
        MeasureName.CONTAINMENT: minimum * shorter,
    }.get(measure.name, minimum * longer)
    common = max(-_floor(-wanted), w if measure.aligned else 1)
    return common if common <= shorter else 0


def _resemblance(shorter: int, longer: int, passages: Sequence[int], w: int) -> float:
    """The resemblance of texts of these lengths with common passages of these lengths."""
    if sum(passages) == longer:
        return 1.0
    shared = sum(max(size - w + 1, 0) for size in passages)
    return shared / (max(shorter - w + 1, 1) + max(longer - w + 1, 1) - shared)


def _floor(number: float) -> int:
    """The largest whole number up to a number that was computed with rounding errors."""
    return math.floor(number + 1e-9)
