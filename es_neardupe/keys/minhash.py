"""MinHash signatures with 8 bits per slot (Broder 1997; b-bit minwise hashing: Li & Koenig 2010)."""

from __future__ import annotations

from functools import lru_cache
from typing import TypeAlias

import numpy as np

from es_neardupe.errors import SettingsError
from es_neardupe.keys.arrays import U32, U64, Ints, Octets
from es_neardupe.keys.hashing import stream
from es_neardupe.keys.intervals import Estimate, exact_share
from es_neardupe.keys.scheme import Scheme
from es_neardupe.keys.shingles import Shingles
from es_neardupe.wording import counted

Signatures = Octets

_SHIFTS = 8


def sign(found: Shingles, scheme: Scheme) -> Signatures:
    """The signatures of a chunk: uint8[texts, permutations], zeros for a text without shingles.

    Without the kernel, which signs text by text.
    """
    signed = np.zeros((len(found.tokens), scheme.permutations), np.uint8)
    if (occupied := found.occupied()).size:
        extremes = _extremes(found.values.astype(np.uint32), found.bounds[occupied], scheme)
        signed[occupied] = _cut(extremes).T
    return signed


@lru_cache(maxsize=8)
def constants(seed: int, multipliers: int) -> tuple[U32, U32]:
    """The upper halves of the stream: 8 shifts, then the multipliers, made odd."""
    drawn = (stream(seed, _SHIFTS + multipliers) >> np.uint64(32)).astype(np.uint32)
    return drawn[:_SHIFTS], drawn[_SHIFTS:] | np.uint32(1)


def _extremes(values: U32, starts: Ints, scheme: Scheme) -> U32:
    """The minimum of ``(value + shift) * multiplier`` of each text, then the complements of the maximum:
    uint32[permutations, texts].

    Several permutations share a shift, so that it is added once. Taking the maximum too saves half of the
    multiplications; the variance of estimates does not grow, but becomes a little smaller (Ji, Li, Yan, Tian & Zhang,
    Min-Max Hash for Jaccard Similarity, ICDM 2013). The two slots of a permutation are half a signature apart, never in
    one band.
    """
    half = (scheme.permutations + 1) // 2
    extremes = np.empty((2 * half, len(starts)), np.uint32)
    _permute(values, starts, *constants(scheme.seed, half), extremes)
    np.invert(extremes[half:], out=extremes[half:])
    return extremes[: scheme.permutations]


def _permute(values: U32, starts: Ints, shifts: U32, multipliers: U32, extremes: U32) -> None:
    """Fill ``extremes`` with the minimum of each permutation, then the maximum."""
    half = len(multipliers)
    permuted = np.empty_like(values)
    for lane, shift in enumerate(shifts):
        shifted = values + shift
        for number in range(lane, half, _SHIFTS):
            np.multiply(shifted, multipliers[number], out=permuted)
            np.minimum.reduceat(permuted, starts, out=extremes[number])
            np.maximum.reduceat(permuted, starts, out=extremes[half + number])


def slot_minima(values: U64, scheme: Scheme) -> tuple[U32, Ints]:
    """For each slot of one text, the number that `sign` makes the byte from (uint32[permutations]): the minimum of a
    permutation, in the second half of the slots that of its complement. And the place of the first shingle hash that
    gives it (int64[permutations]). ``values``: the shingle hashes, at least one.
    """
    half = (scheme.permutations + 1) // 2
    shifts, multipliers = constants(scheme.seed, half)
    low = values.astype(np.uint32)
    minima, places = np.empty(2 * half, np.uint32), np.empty(2 * half, np.int64)
    for number in range(half):
        permuted = (low + shifts[number % _SHIFTS]) * multipliers[number]
        for slot, numbers in ((number, permuted), (half + number, ~permuted)):
            places[slot] = numbers.argmin()
            minima[slot] = numbers[places[slot]]
    return minima[: scheme.permutations], places[: scheme.permutations]


def _cut(extremes: U32) -> Octets:
    """The top 8 bits of the murmur3 finaliser (Appleby 2011) of each extreme, in place."""
    extremes ^= extremes >> np.uint32(16)
    extremes *= np.uint32(0x85EBCA6B)
    extremes ^= extremes >> np.uint32(13)
    extremes *= np.uint32(0xC2B2AE35)
    # The last step of the finaliser, x ^= x >> 16, does not change the top bits.
    extremes >>= np.uint32(24)
    return extremes.astype(np.uint8)


_CHANCE = 1 / 256
"""Probability that two unrelated slots of 8 bits agree."""

Slots: TypeAlias = bytes | Octets | U64
"""A signature: for each slot a number below 256."""


def estimate(a: Slots, b: Slots) -> Estimate:
    """Estimate the resemblance of two texts from their signatures.

    Agreement by chance (1/256 per slot) is subtracted, as in Li & Koenig 2010. The interval is that of `exact_share`
    for the number of slots: 62 to 76 % for an estimate of 69 % from 200 slots.
    Raises `SettingsError` if the signatures are empty or of unequal length.
    """
    left, right = _slots(a), _slots(b)
    if len(left) != len(right) or not len(left):
        raise SettingsError(f"signatures of {len(left)} and {counted(len(right), 'slot')} cannot be compared")
    return estimate_of(int(np.count_nonzero(left == right)), len(left))


def _slots(signature: Slots) -> Octets | U64:
    return np.frombuffer(signature, np.uint8) if isinstance(signature, bytes) else signature


@lru_cache(maxsize=4096)
def estimate_of(agreeing: int, slots: int) -> Estimate:
    """Like `estimate`, from the number of slots that agree."""
    found = exact_share(agreeing, slots)
    return Estimate(_corrected(found.value), _corrected(found.low), _corrected(found.high))


def _corrected(share: float) -> float:
    return max(0.0, (share - _CHANCE) / (1 - _CHANCE))
