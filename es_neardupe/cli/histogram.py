"""A histogram for the terminal, with a logarithmic axis."""

from __future__ import annotations

from math import log10

from es_neardupe.cli.output import results
from es_neardupe.distributions import Histogram

__all__ = ["plot_counts"]

_HEIGHT = 8
_EIGHTHS = " ▁▂▃▄▅▆▇█"
_FOOT = 0.5
"""Decades below 1, so that a single pair can be seen."""


def plot_counts(histogram: Histogram, threshold: float) -> None:
    """Columns as high as the logarithms of the counts, over the similarities; exactly 0 and exactly 1 stand apart."""
    counts = [histogram.zero, *histogram.counts, histogram.one]
    decades = max(1.0, log10(max(1, *counts))) + _FOOT
    heights = [_HEIGHT * (log10(count) + _FOOT) / decades if count else 0.0 for count in counts]
    powers = range(int(decades - _FOOT) + 1)
    rows = {min(_HEIGHT - 1, int(_HEIGHT * (power + _FOOT) / decades)): f"{10**power:,}" for power in powers}
    for level in range(_HEIGHT - 1, -1, -1):
        zero, *bins, one = (_EIGHTHS[round(8 * min(1, max(0, height - level)))] for height in heights)
        label = rows.get(level, "")
        results.print(f"{label:>13} {zero * 2} {''.join(bins)} {one * 2}", markup=False)
    axis = "".join(f"{tenth / 10:<5g}" for tenth in range(10))
    results.print(f"{'':13} =0 {axis}=1", markup=False)
    results.print(f"{'':13}    {'':{round(50 * threshold)}}^ threshold {threshold:g}", markup=False)
