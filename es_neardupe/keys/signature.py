"""MinHash signatures cut to 8 bits a slot (Broder 1997; b-bit minwise hashing: Li & Koenig 2010)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from es_neardupe.keys.mixing import stream
from es_neardupe.keys.scheme import Scheme
from es_neardupe.keys.shingling import Shingles, shingles
from es_neardupe.keys.text import chunks, normalize

__all__ = ["Signatures", "sign", "signatures"]

Signatures = NDArray[np.uint8]
U32 = NDArray[np.uint32]

_SHIFTS = 8
_BLOCK = 1 << 15  # features permuted at a time: 128 KiB, so that they stay in the cache


def signatures(texts: Sequence[str], scheme: Scheme) -> Signatures:
    """The signatures of texts: uint8[texts, permutations]; a text without tokens has a row of zeros,
    which means nothing and must not be compared."""
    made = [sign(shingles(normalize(chunk), scheme.shingle), scheme) for chunk in chunks(texts)]
    return np.concatenate([np.empty((0, scheme.permutations), np.uint8), *made])


def sign(found: Shingles, scheme: Scheme) -> Signatures:
    """The signatures of a chunk: uint8[texts, permutations], zeros where there are no shingles."""
    signed = np.zeros((len(found.tokens), scheme.permutations), np.uint8)
    if (occupied := found.occupied()).size:
        minima = _minima(found.values.astype(np.uint32), found.bounds[occupied], scheme)
        signed[occupied] = _cut(minima).T
    return signed


@lru_cache(maxsize=8)
def _constants(seed: int, permutations: int) -> tuple[list[np.uint32], list[np.uint32]]:
    """The upper halves of the stream: 8 shifts, then the multipliers, made odd."""
    drawn = (stream(seed, _SHIFTS + permutations) >> np.uint64(32)).astype(np.uint32)
    return list(drawn[:_SHIFTS]), list(drawn[_SHIFTS:] | np.uint32(1))


def _minima(values: U32, starts: NDArray[np.int64], scheme: Scheme) -> U32:
    """The least ``(value + shift) * multiplier`` of each text and slot: uint32[permutations, texts].

    Sixteen slots share a shift: adding it beforehand saves a third of the work.
    """
    shifts, multipliers = _constants(scheme.seed, scheme.permutations)
    minima = np.empty((scheme.permutations, len(starts)), np.uint32)
    permuted = np.empty_like(values)
    for lane, shift in enumerate(shifts):
        shifted = values + shift
        for slot in range(lane, scheme.permutations, _SHIFTS):
            np.multiply(shifted, multipliers[slot], out=permuted)
            np.minimum.reduceat(permuted, starts, out=minima[slot])
    return minima


def _cut(minima: U32) -> NDArray[np.uint8]:
    """The top 8 bits of the murmur3 finaliser (Appleby 2011) of each minimum, in place."""
    minima ^= minima >> np.uint32(16)
    minima *= np.uint32(0x85EBCA6B)
    minima ^= minima >> np.uint32(13)
    minima *= np.uint32(0xC2B2AE35)
    # The last step of the finaliser, x ^= x >> 16, leaves the top bits as they are.
    minima >>= np.uint32(24)
    return minima.astype(np.uint8)
