"""What two signatures say about resemblance, and how surely."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv

from es_neardupe.errors import SettingsError

__all__ = ["Estimate", "estimate", "estimate_of", "exact_share"]

_CHANCE = 1 / 256  # two unrelated slots of 8 bits agree
_TAIL = 0.025


@dataclass(frozen=True, slots=True)
class Estimate:
    """A resemblance estimated from signatures, with its 95 % confidence interval."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.0%} ({self.low:.0%} to {self.high:.0%})"


def estimate(a: bytes | NDArray[np.uint8], b: bytes | NDArray[np.uint8]) -> Estimate:
    """Estimate the resemblance of two texts from their signatures (uint8[slots] or as many bytes).

    Agreement by chance (1/256 a slot) is taken off, as in Li & Koenig 2010. The interval is the exact one
    of Clopper & Pearson 1934 for the number of slots: with 200 slots and 69 %, 62 to 76 %.
    Raises SettingsError if the signatures are empty or of unequal length.
    """
    left, right = _slots(a), _slots(b)
    if len(left) != len(right) or not len(left):
        raise SettingsError(f"signatures of {len(left)} and {len(right)} slots cannot be compared")
    return estimate_of(int(np.count_nonzero(left == right)), len(left))


def _slots(signature: bytes | NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.frombuffer(signature, np.uint8) if isinstance(signature, bytes) else signature


@lru_cache(maxsize=4096)
def estimate_of(agreeing: int, slots: int) -> Estimate:
    """As `estimate`, of signatures of which so many slots agree."""
    low, high = _exact_interval(agreeing, slots)
    return Estimate(_corrected(agreeing / slots), _corrected(low), _corrected(high))


def _corrected(share: float) -> float:
    return max(0.0, (share - _CHANCE) / (1 - _CHANCE))


def exact_share(hits: int, number: int) -> Estimate:
    """The share that ``hits`` of a random sample of ``number`` (1 or more) estimate, with its exact interval."""
    return Estimate(hits / number, *_exact_interval(hits, number))


def _exact_interval(hits: int, number: int) -> tuple[float, float]:
    """The shares at which as many hits or more, and as few or fewer, have probability 2.5 %: quantiles of the beta
    distribution, which is the binomial one seen from the other side."""
    low = float(betaincinv(hits, number - hits + 1, _TAIL)) if hits else 0.0
    high = float(betaincinv(hits + 1, number - hits, 1 - _TAIL)) if hits < number else 1.0
    return low, high
