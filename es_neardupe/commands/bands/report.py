"""What ``bands`` returns: apart from the function, since it needs numpy, and from the detection of an index, since that
needs most of the package."""

from __future__ import annotations

from dataclasses import dataclass

from es_neardupe.candidates.unrelated import UnrelatedCandidates
from es_neardupe.records import one_line


@dataclass(frozen=True)
class BandsReport:
    """The bands for a threshold, and their detection curve."""

    threshold: float
    bands: int
    rows: int
    agree: int
    """Bands that a candidate pair shares."""
    permutations: int
    key_bytes: int
    """Bytes of the keys in each document."""
    detection: float
    """Probability that a pair exactly at the threshold becomes a candidate: ``1 - (1 - s^rows)^bands`` if one band
    is enough."""
    wanted_detection: float
    step: float
    """Similarity near which the curve rises most steeply: ``(1/bands)^(1/rows)`` if one band is enough."""
    unrelated: UnrelatedCandidates
    """How many of a million unrelated texts become candidates."""
    curve: tuple[tuple[float, float], ...]
    """(similarity, probability), from 0.05 to 1 in steps of 0.05."""

    def __repr__(self) -> str:
        return one_line(
            self, threshold=self.threshold, bands=self.bands, rows=self.rows, agree=self.agree, detection=self.detection
        )
