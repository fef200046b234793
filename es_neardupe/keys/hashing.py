"""Hash arithmetic of scheme v1 on unsigned 64-bit numbers: splitmix64 (Steele, Lea, Flood 2014)."""

from __future__ import annotations

import numpy as np

from es_neardupe.compiled import compiled
from es_neardupe.keys.arrays import U64

GOLDEN = np.uint64(0x9E3779B97F4A7C15)
"""Increment of the splitmix64 stream."""
MULTIPLIER = np.uint64(0xD1342543DE82EF95)
"""Base of the Horner sums (an odd number; a well tested LCG multiplier, Steele & Vigna 2021)."""

_FIRST = np.uint64(0xBF58476D1CE4E5B9)
_SECOND = np.uint64(0x94D049BB133111EB)
_S30, _S27, _S31 = np.uint64(30), np.uint64(27), np.uint64(31)


def mix64(values: U64) -> U64:
    """The splitmix64 finaliser, a bijection of 64-bit numbers, in place; returns ``values``."""
    values ^= values >> _S30
    values *= _FIRST
    values ^= values >> _S27
    values *= _SECOND
    values ^= values >> _S31
    return values


def stream(seed: int, count: int) -> U64:
    """The first ``count`` numbers of the splitmix64 generator that starts at ``seed`` (uint64[count])."""
    return mix64(np.arange(1, count + 1, dtype=np.uint64) * GOLDEN + np.uint64(seed))


kernel = compiled("keys._kernel")
