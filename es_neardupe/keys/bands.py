"""Band keys of signatures (locality-sensitive hashing: Leskovec, Rajaraman, Ullman, chapter 3), and sampled keys."""

from __future__ import annotations

from base64 import urlsafe_b64encode
from collections.abc import Sequence
from itertools import combinations, pairwise
from math import comb

import numpy as np
from numpy.typing import NDArray

from es_neardupe.errors import SettingsError
from es_neardupe.keys.arrays import U64, Flags
from es_neardupe.keys.hashing import MULTIPLIER, mix64
from es_neardupe.keys.minhash import Signatures
from es_neardupe.keys.shingles import Shingles
from es_neardupe.wording import counted

KEY_LENGTH = 8
"""Characters of a band key."""

_B64_POSITIONS = 64
_LATIN = 0xC0
_LOWER = np.uint64(16)
"""Lower bits of a feature that are not part of its sampled key."""


def band_keys(signatures: Signatures, bands: int, rows: int) -> list[tuple[str, ...]]:
    """The band keys of signatures (uint8[texts, slots]): for each text ``bands`` strings of 8 characters.

    Keys depend only on the stored slots, so other bands never need the texts again. The row of zeros of a text
    without tokens gives keys too; the caller drops them. Raises `SettingsError` if there are too few slots.
    """
    slots = signatures.shape[1]
    if min(bands, rows) < 1 or bands * rows > slots:
        raise SettingsError(
            f"{counted(bands, 'band')} of {counted(rows, 'row')} cannot be cut from {counted(slots, 'slot')}"
        )
    packed = band_hashes(signatures, bands, rows)
    packed |= np.minimum(np.arange(bands, dtype=np.uint64), np.uint64(63)) << np.uint64(42)
    return [tuple(keys) for keys in _base64(packed).tolist()]


def band_hashes(signatures: Signatures, bands: int, rows: int) -> U64:
    """The 42 bits of each key of `band_keys`, without its position: uint64[texts, bands]."""
    return _hashes(signatures[:, : bands * rows].reshape(len(signatures), bands, rows))


def chosen_bands(bands: int, agree: int) -> list[tuple[int, ...]]:
    """All choices of ``agree`` bands, in the order of the columns of `joint_keys`."""
    return list(combinations(range(bands), agree))


def joint_keys(keys: U64, agree: int) -> U64:
    """One number for each choice of ``agree`` bands: two rows that share such a number share that many keys.

    ``keys`` are packed band keys, uint64[n, bands], 0 for none; the result is uint64[n, choices], 0 if one of the keys
    is missing.
    """
    if agree == 1:
        return keys
    joint = np.empty((len(keys), comb(keys.shape[1], agree)), np.uint64)
    for choice, chosen in enumerate(chosen_bands(keys.shape[1], agree)):
        joint[:, choice] = joint_key([keys[:, band] for band in chosen])
    return joint


def joint_key(columns: Sequence[U64]) -> U64:
    """One column of `joint_keys`: the number of each row for one choice of bands, whose keys are given; uint64[n]."""
    if len(columns) == 1:
        return columns[0]
    sums, complete = np.zeros(len(columns[0]), np.uint64), np.ones(len(columns[0]), np.bool_)
    for keys in columns:
        sums = mix64(sums * MULTIPLIER + keys)
        complete &= keys != 0
    sums[~complete] = 0
    return sums


def share_keys(one: U64, other: U64, agree: int = 1) -> Flags:
    """Whether each row of two arrays of packed band keys (uint64[n, bands], 0 for none) has at least ``agree`` keys in
    common: bool[n]."""
    enough: Flags = np.count_nonzero((one == other) & (one != 0), axis=1) >= agree
    return enough


def _hashes(cells: Signatures) -> U64:
    """The upper 42 bits of mix64(Horner sum of ``slot + 1``) of each band: uint64[texts, bands]."""
    sums = np.zeros(cells.shape[:2], np.uint64)
    for row in range(cells.shape[2]):
        sums *= MULTIPLIER
        sums += cells[:, :, row]
        sums += np.uint64(1)
    sums = mix64(sums)
    sums >>= np.uint64(22)
    return sums


def _base64(packed: U64) -> NDArray[np.str_]:
    """The lower 48 bits of each number as 8 characters. From band 64 on, the first is one of U+00C0 to U+00FF."""
    numbers = packed.astype(np.dtype(">u8"))
    octets = numbers.view(np.uint8).reshape(*packed.shape, 8)[:, :, 2:]
    encoded = bytearray(urlsafe_b64encode(octets.tobytes()))
    bands = packed.shape[1]
    if bands > _B64_POSITIONS:
        cells = np.frombuffer(encoded, np.uint8).reshape(-1, bands, KEY_LENGTH)
        cells[:, _B64_POSITIONS:, 0] = np.arange(_LATIN, _LATIN + bands - _B64_POSITIONS, dtype=np.uint8)
    code_points = np.frombuffer(encoded, np.uint8).astype(np.uint32)
    return code_points.view(f"U{KEY_LENGTH}").reshape(packed.shape)


def sample_keys(found: Shingles, mod: int) -> list[tuple[str, ...]]:
    """The sampled keys of each text: one for each feature divisible by ``mod`` (1 or more), in the order of features.

    Features are outputs of `mix64`, so all remainders are equally frequent. A key consists of the upper 48 bits, since
    ``mod`` is at most 2^16.
    """
    chosen = found.values % np.uint64(mod) == 0
    keys = _encoded(found.values[chosen])
    ends = np.concatenate(([0], np.cumsum(chosen)))[found.bounds]
    return [tuple(keys[start:end]) for start, end in pairwise(ends.tolist())]


def keys_of_features(features: U64, mod: int) -> list[str]:
    """The sampled keys of distinct features."""
    return _encoded(features[features % np.uint64(mod) == 0])


def _encoded(features: U64) -> list[str]:
    keys: list[str] = _base64((features >> _LOWER).reshape(-1, 1)).reshape(-1).tolist()
    return keys
