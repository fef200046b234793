"""MinHash signatures cut to 8 bits a slot (Broder 1997; b-bit minwise hashing: Li & Koenig 2010)."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

from es_neardupe.keys import native
from es_neardupe.keys.mixing import stream
from es_neardupe.keys.scheme import Scheme
from es_neardupe.keys.shingling import Shingles, shingles
from es_neardupe.keys.text import chunks, normalize

__all__ = ["Signatures", "sign", "signatures"]

Signatures = NDArray[np.uint8]
U32 = NDArray[np.uint32]

_SHIFTS = 8


def signatures(texts: Sequence[str], scheme: Scheme) -> Signatures:
    """The signatures of texts: uint8[texts, permutations]; a text without tokens has a row of zeros,
    which means nothing and must not be compared."""
    made = [sign(shingles(normalize(chunk), scheme.shingle), scheme) for chunk in chunks(texts)]
    return np.concatenate([np.empty((0, scheme.permutations), np.uint8), *made])


def sign(found: Shingles, scheme: Scheme) -> Signatures:
    """The signatures of a chunk: uint8[texts, permutations], zeros where there are no shingles."""
    signed = np.zeros((len(found.tokens), scheme.permutations), np.uint8)
    if (occupied := found.occupied()).size:
        extremes = _extremes(found.values.astype(np.uint32), found.bounds[occupied], scheme)
        signed[occupied] = _cut(extremes).T
    return signed


@lru_cache(maxsize=8)
def _constants(seed: int, multipliers: int) -> tuple[U32, U32]:
    """The upper halves of the stream: 8 shifts, then the multipliers, made odd."""
    drawn = (stream(seed, _SHIFTS + multipliers) >> np.uint64(32)).astype(np.uint32)
    return drawn[:_SHIFTS], drawn[_SHIFTS:] | np.uint32(1)


def _extremes(values: U32, starts: NDArray[np.int64], scheme: Scheme) -> U32:
    """The least ``(value + shift) * multiplier`` of each text, and then the complements of the greatest:
    uint32[permutations, texts].

    Several permutations share a shift, so that it is added once. The half of the slots that holds the
    greatest saves half of the multiplications; estimates vary no more for it, but a little less (Ji, Li,
    Yan, Tian & Zhang, Min-Max Hash for Jaccard Similarity, ICDM 2013). The two slots of a permutation lie
    half a signature apart, never in one band.
    """
    half = (scheme.permutations + 1) // 2
    extremes = np.empty((2 * half, len(starts)), np.uint32)
    permute = _permute if native.kernel is None else _permute_natively
    permute(values, starts, *_constants(scheme.seed, half), extremes)
    np.invert(extremes[half:], out=extremes[half:])
    return extremes[: scheme.permutations]


def _permute(values: U32, starts: NDArray[np.int64], shifts: U32, multipliers: U32, extremes: U32) -> None:
    """Fill ``extremes`` with the least of each permutation, then the greatest."""
    half = len(multipliers)
    permuted = np.empty_like(values)
    for lane, shift in enumerate(shifts):
        shifted = values + shift
        for number in range(lane, half, _SHIFTS):
            np.multiply(shifted, multipliers[number], out=permuted)
            np.minimum.reduceat(permuted, starts, out=extremes[number])
            np.maximum.reduceat(permuted, starts, out=extremes[half + number])


def _permute_natively(values: U32, starts: NDArray[np.int64], shifts: U32, multipliers: U32, extremes: U32) -> None:
    """The same in C, text by text, so that its values stay in the nearest cache."""
    assert native.kernel is not None
    native.kernel.extremes(values, np.append(starts, len(values)), shifts, multipliers, extremes)


def _cut(extremes: U32) -> NDArray[np.uint8]:
    """The top 8 bits of the murmur3 finaliser (Appleby 2011) of each extreme, in place."""
    extremes ^= extremes >> np.uint32(16)
    extremes *= np.uint32(0x85EBCA6B)
    extremes ^= extremes >> np.uint32(13)
    extremes *= np.uint32(0xC2B2AE35)
    # The last step of the finaliser, x ^= x >> 16, leaves the top bits as they are.
    extremes >>= np.uint32(24)
    return extremes.astype(np.uint8)
