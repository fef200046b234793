"""95 % intervals of shares and counts that are estimated from a sample.

A test compares them with those of scipy, with which they agree within 1e-12. Commands that show a share do not load it:
it takes longer than everything else that they load.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import exp, lgamma, log, log1p, sqrt

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
    low = _beta_quantile(hits, number - hits + 1) if hits else 0.0
    high = 1 - _beta_quantile(number - hits, hits + 1) if hits < number else 1.0
    return Estimate(hits / number, low, high)


def _beta_quantile(a: float, b: float) -> float:
    """The number below which a beta distribution has 2.5 %: by Newton's method, or by halving where that leaves the
    interval."""
    low, high = 0.0, 1.0
    at = a / (a + b)
    for _ in range(200):
        share = _beta_below(a, b, at)
        low, high = (at, high) if share < _TAIL else (low, at)
        density = exp(_log_beta_term(a, b, at)) / (at * (1 - at))
        step = (share - _TAIL) / density if density else 1.0
        following = at - step if low < at - step < high else (low + high) / 2
        if abs(following - at) <= 1e-15 * at or following in (low, high):
            return following
        at = following
    return at


def _log_beta_term(a: float, b: float, at: float) -> float:
    return a * log(at) + b * log1p(-at) + lgamma(a + b) - lgamma(a) - lgamma(b)


def _beta_below(a: float, b: float, at: float) -> float:
    """The share of a beta distribution below a number: the continued fraction 8.17.22 of the NIST Handbook of
    Mathematical Functions, by the algorithm of Lentz. It converges fast below the mean."""
    if at > (a + 1) / (a + b + 2):
        return 1 - _beta_below(b, a, 1 - at)
    ratio, inverse = 1.0, 1 / (1 - (a + b) * at / (a + 1))
    fraction = inverse
    for m in range(1, 100_000):
        for part in (
            m * (b - m) * at / ((a + 2 * m - 1) * (a + 2 * m)),
            -(a + m) * (a + b + m) * at / ((a + 2 * m) * (a + 2 * m + 1)),
        ):
            inverse = 1 / (1 + part * inverse)
            ratio = 1 + part / ratio
            fraction *= inverse * ratio
        if abs(inverse * ratio - 1) < 1e-16:
            break
    return exp(_log_beta_term(a, b, at)) * fraction / a


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
