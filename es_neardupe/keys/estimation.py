"""What two signatures say about resemblance, and how surely."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import comb, fsum

import numpy as np
from numpy.typing import NDArray

from es_neardupe.errors import SettingsError

__all__ = ["Estimate", "estimate"]

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
    return _estimate(int(np.count_nonzero(left == right)), len(left))


def _slots(signature: bytes | NDArray[np.uint8]) -> NDArray[np.uint8]:
    return np.frombuffer(signature, np.uint8) if isinstance(signature, bytes) else signature


@lru_cache(maxsize=4096)
def _estimate(agreeing: int, slots: int) -> Estimate:
    low, high = _exact_interval(agreeing, slots)
    return Estimate(_corrected(agreeing / slots), _corrected(low), _corrected(high))


def _corrected(share: float) -> float:
    return max(0.0, (share - _CHANCE) / (1 - _CHANCE))


def _exact_interval(agreeing: int, slots: int) -> tuple[float, float]:
    """The shares at which as many slots or more, and as few or fewer, agree with probability 2.5 %."""
    low = _root(lambda p: _at_most(slots - agreeing, slots, 1 - p) - _TAIL) if agreeing else 0.0
    high = _root(lambda p: _TAIL - _at_most(agreeing, slots, p)) if agreeing < slots else 1.0
    return low, high


def _at_most(count: int, slots: int, share: float) -> float:
    """The binomial distribution function."""
    return fsum(comb(slots, i) * share**i * (1 - share) ** (slots - i) for i in range(count + 1))


def _root(rising: Callable[[float], float]) -> float:
    """Where a rising function of 0 to 1 crosses zero, by bisection."""
    low, high = 0.0, 1.0
    for _ in range(50):
        middle = (low + high) / 2
        low, high = (low, middle) if rising(middle) > 0 else (middle, high)
    return (low + high) / 2
