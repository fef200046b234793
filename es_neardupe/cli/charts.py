"""A small plot for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from math import log10
from typing import TYPE_CHECKING

from es_neardupe.cli.output import results

if TYPE_CHECKING:
    from es_neardupe.similarity.histogram import Histogram

__all__ = ["plot_counts", "plot_curve"]


_HEIGHT = 10
_EIGHTHS = " ▁▂▃▄▅▆▇█"


def plot_curve(curve: Sequence[tuple[float, float]], threshold: float) -> None:
    """Columns as high as the probabilities, in [0, 1], over the similarities; a caret at the threshold."""
    width = 2
    for level in range(_HEIGHT, 0, -1):
        label = f"{level / _HEIGHT:4.1f} " if level in (_HEIGHT, _HEIGHT // 2) else "     "
        columns = (_EIGHTHS[round(8 * min(1, max(0, p * _HEIGHT - level + 1)))] * width for _, p in curve)
        results.print(label + "".join(columns), markup=False)
    labels = "".join(f"{s:<{2 * width}.1f}" for s, _ in curve[1::2])
    results.print("     " + " " * width + labels, markup=False)
    at = min(range(len(curve)), key=lambda place: abs(curve[place][0] - threshold))
    results.print("     " + " " * (width * at) + f"^ threshold {threshold:g}", markup=False)


_HISTOGRAM_HEIGHT = 8
_FOOT = 0.5
"""Decades below 1, so that a single pair can be seen."""


def plot_counts(histogram: Histogram, threshold: float) -> None:
    """Columns as high as the logarithms of the counts, over the similarities; exactly 0 and exactly 1 stand apart."""
    counts = [histogram.zero, *histogram.counts, histogram.one]
    decades = max(1.0, log10(max(1, *counts))) + _FOOT
    heights = [_HISTOGRAM_HEIGHT * (log10(count) + _FOOT) / decades if count else 0.0 for count in counts]
    powers = range(int(decades - _FOOT) + 1)
    rows = {
        min(_HISTOGRAM_HEIGHT - 1, int(_HISTOGRAM_HEIGHT * (power + _FOOT) / decades)): f"{10**power:,}"
        for power in powers
    }
    for level in range(_HISTOGRAM_HEIGHT - 1, -1, -1):
        zero, *bins, one = (_EIGHTHS[round(8 * min(1, max(0, height - level)))] for height in heights)
        label = rows.get(level, "")
        results.print(f"{label:>13} {zero * 2} {''.join(bins)} {one * 2}", markup=False)
    axis = "".join(f"{tenth / 10:<5g}" for tenth in range(10))
    results.print(f"{'':13} =0 {axis}=1", markup=False)
    results.print(f"{'':13}    {'':{round(50 * threshold)}}^ threshold {threshold:g}", markup=False)
