"""``bands``: the bands for a threshold, with their size and detection curve. Needs no server."""

from __future__ import annotations

from dataclasses import dataclass

from es_neardupe import options
from es_neardupe.index.settings import Settings
from es_neardupe.records import one_line

_STEPS = 20


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
    curve: tuple[tuple[float, float], ...]
    """(similarity, probability), from 0.05 to 1 in steps of 0.05."""

    def __repr__(self) -> str:
        return one_line(
            self, threshold=self.threshold, bands=self.bands, rows=self.rows, agree=self.agree, detection=self.detection
        )


def bands(
    threshold: options.Threshold = None,
    *,
    preset: options.PresetOfBands = None,
    detection: options.Detection = None,
    permutations: options.Permutations = None,
    bands: options.Bands = None,
    rows: options.Rows = None,
    agree: options.Agree = None,
) -> BandsReport:
    """The maximum number of rows, then the minimum number of bands, that find ``detection`` of the pairs exactly at the
    threshold.

    None: the default of `Settings.chosen`. Raises `SettingsError` for values out of range, or if no bands reach
    ``detection``.
    """
    settings = Settings.chosen(
        ("text",),
        preset=preset,
        threshold=threshold,
        detection=detection,
        permutations=permutations,
        bands=bands,
        rows=rows,
        agree=agree,
    )
    threshold, scheme = settings.threshold, settings.scheme
    similarities = [step / _STEPS for step in range(1, _STEPS + 1)]
    return BandsReport(
        threshold=threshold,
        bands=scheme.bands,
        rows=scheme.rows,
        agree=scheme.agree,
        permutations=scheme.permutations,
        key_bytes=8 * scheme.bands,
        detection=scheme.detection(threshold),
        wanted_detection=settings.detection,
        step=scheme.step,
        curve=tuple((similarity, scheme.detection(similarity)) for similarity in similarities),
    )
