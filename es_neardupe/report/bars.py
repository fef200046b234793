"""A histogram of similarities as bars that a page can draw by itself."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from math import log10

import numpy as np
from numpy.typing import NDArray

from es_neardupe.distributions import EDGES, Histogram, counted

__all__ = ["Bar", "Bars", "bars"]

_WIDTH, _HEIGHT = 720, 160
_GAP = 0.15
"""Of the place of a bar, what is left free on each side."""
_TENTH = 5
"""Bins of the histogram in a tenth."""


@dataclass(frozen=True, slots=True)
class Bar:
    """One bin: where it is drawn, and what it says."""

    x: float
    y: float
    width: float
    height: float
    label: str
    """The similarities it stands for."""
    pairs: int


@dataclass(frozen=True, slots=True)
class Bars:
    """All of them, with the marks at both axes. Heights are logarithmic, so that one pair is seen beside a million."""

    width: int
    height: int
    bars: tuple[Bar, ...]
    below: tuple[tuple[float, str], ...]
    """Place from the left and text of each mark below."""
    beside: tuple[tuple[float, str], ...]
    """Place from above and text of each line across."""


def bars(similarities: NDArray[np.float64]) -> Bars:
    """From the tenth in which the least similar pair lies up to 1; pairs of exactly 0 and of exactly 1 stand aside.

    ``similarities``: float64[pairs] in [0, 1], one or more.
    """
    histogram = Histogram.of(counted(similarities))
    slots = list(_slots(histogram))
    step, most = _WIDTH / len(slots), max(pairs for _, _, pairs in slots)
    drawn = tuple(_bar(number * step, step, label, pairs, most) for number, (label, _, pairs) in enumerate(slots))
    below = tuple(
        (round((number + (0.5 if "=" in mark else 0)) * step, 1), mark)
        for number, (_, mark, _) in enumerate(slots)
        if mark
    )
    levels = {10**power for power in range(int(log10(most)) + 1)} | {most}
    beside = tuple(
        (_top(level, most), f"{level:,}") for level in sorted(levels) if level in (1, most) or 2 * level < most
    )
    return Bars(_WIDTH, _HEIGHT, drawn, below, beside)


def _slots(histogram: Histogram) -> Iterator[tuple[str, str, int]]:
    """What each bar stands for, the mark at its left edge (or below it), and its pairs."""
    filled = [number for number, pairs in enumerate(histogram.counts) if pairs]
    first = 0 if histogram.zero else (filled[0] if filled else len(histogram.counts)) // _TENTH * _TENTH
    if histogram.zero:
        yield "exactly 0", "= 0", histogram.zero
    for number in range(first, len(histogram.counts)):
        low, high = EDGES[number], EDGES[number + 1]
        mark = f"{low:.1f}" if number % _TENTH == 0 else ""
        yield f"{low:.2f} to below {high:.2f}", mark, histogram.counts[number]
    yield "exactly 1", "= 1", histogram.one


def _bar(x: float, step: float, label: str, pairs: int, most: int) -> Bar:
    top = _top(pairs, most)
    return Bar(
        round(x + _GAP * step, 1), top, round(min(step * (1 - 2 * _GAP), 60), 1), round(_HEIGHT - top, 1), label, pairs
    )


def _top(pairs: int, most: int) -> float:
    return round(_HEIGHT * (1 - log10(1 + pairs) / log10(1 + most)), 1)
