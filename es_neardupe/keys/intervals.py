"""95 % intervals of shares and counts that are estimated from a sample.

They use the quantiles of `scipy.special`: a sample whose parts depend on each other has an effective size that is not a
whole number, and `scipy.stats.binomtest` takes only whole numbers. For these, both agree within 1e-12.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import sqrt

_TAIL = 0.025
_Z = 1.959963984540054
"""97.5 % of a normal distribution lie below it."""


@dataclass(frozen=True, slots=True)
class Estimate:
    """An estimated share with its 95 % interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.0%} ({self.low:.0%} to {self.high:.0%})"


def exact_share(hits: int, number: int) -> Estimate:
    """The share estimated from ``hits`` in a random sample of ``number`` (1 or more), with its exact interval.

    The interval is that of Clopper & Pearson 1934.
    At its lower end, this many hits or more have probability 2.5 %; at its upper end, this many or fewer.
    """
    from scipy.special import betaincinv  # half of the time of a command that prints no interval

    low = float(betaincinv(hits, number - hits + 1, _TAIL)) if hits else 0.0
    high = float(betaincinv(hits + 1, number - hits, 1 - _TAIL)) if hits < number else 1.0
    return Estimate(hits / number, low, high)


def wilson_interval(share: float, size: float) -> tuple[float, float]:
    """The interval of a share in a sample of ``size`` (Wilson 1927). It contains the share itself."""
    middle = (share + _Z**2 / (2 * size)) / (1 + _Z**2 / size)
    half = _Z * sqrt(share * (1 - share) / size + _Z**2 / (4 * size**2)) / (1 + _Z**2 / size)
    return max(0.0, min(share, middle - half)), min(1.0, max(share, middle + half))


def poisson_interval(count: float) -> tuple[float, float]:
    """The exact interval of the mean of a Poisson distribution of which ``count`` was observed (Garwood 1936)."""
    from scipy.special import gammaincinv

    low = float(gammaincinv(count, _TAIL)) if count else 0.0
    return low, float(gammaincinv(count + 1, 1 - _TAIL))
