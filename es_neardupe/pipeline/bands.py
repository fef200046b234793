"""What a threshold costs and finds, before any index is touched."""

from __future__ import annotations

from dataclasses import dataclass

from es_neardupe.settings import Settings

__all__ = ["BandsReport", "bands"]

_STEPS = 20


@dataclass(frozen=True)
class BandsReport:
    """The bands for a threshold, and their detection curve."""

    threshold: float
    bands: int
    rows: int
    permutations: int
    key_bytes: int
    """Bytes of the keys in each document."""
    detection: float
    """Probability that a pair exactly at the threshold becomes a candidate: ``1 - (1 - s^rows)^bands``."""
    wanted_detection: float
    curve: tuple[tuple[float, float], ...]
    """(similarity, probability), from 0.05 to 1 in steps of 0.05."""


def bands(
    threshold: float,
    *,
    detection: float = 0.99,
    permutations: int = 128,
    bands: int | None = None,
    rows: int | None = None,
) -> BandsReport:
    """The most rows, then the fewest bands, that find ``detection`` of the pairs exactly at the threshold.

    Raises `SettingsError` for values out of range, or if no bands reach it.
    """
    settings = Settings(
        ("text",), threshold=threshold, detection=detection, permutations=permutations, bands=bands, rows=rows
    )
    scheme = settings.scheme
    similarities = [step / _STEPS for step in range(1, _STEPS + 1)]
    return BandsReport(
        threshold=threshold,
        bands=scheme.bands,
        rows=scheme.rows,
        permutations=permutations,
        key_bytes=8 * scheme.bands,
        detection=scheme.detection(threshold),
        wanted_detection=detection,
        curve=tuple((similarity, scheme.detection(similarity)) for similarity in similarities),
    )
