"""Sampled keys: one in so many features, the same ones in every text.

A feature that is sampled in one text is sampled in each text that has it. So the share of a text's sampled keys which
another text has too estimates how much of it that text contains, whatever the lengths of the two (Broder, *On the
resemblance and containment of documents*, 1997: the sketch of the elements that are 0 modulo m).
"""

from __future__ import annotations

from base64 import urlsafe_b64encode
from itertools import pairwise

import numpy as np

from es_neardupe.keys.mixing import U64
from es_neardupe.keys.shingling import Shingles

__all__ = ["KEY_LENGTH", "sample_keys"]

KEY_LENGTH = 8
"""Characters of a sampled key."""

_LOWER = np.uint64(16)


def sample_keys(found: Shingles, mod: int) -> list[tuple[str, ...]]:
    """The keys of the features that are 0 modulo ``mod`` (1 or more) of each text, in the order of the features.

    A feature comes out of `mix64`, so that no remainder is more frequent than another; the key is made of its upper 48
    bits, which a modulus of at most 2^16 leaves free.
    """
    chosen = found.distinct & (found.values % np.uint64(mod) == 0)
    keys = _base64(found.values[chosen])
    ends = np.concatenate(([0], np.cumsum(chosen)))[found.bounds]
    return [tuple(keys[start:end]) for start, end in pairwise(ends.tolist())]


def _base64(values: U64) -> list[str]:
    """The upper 48 bits of each number as 8 characters of URL-safe base64, highest first."""
    octets = (values >> _LOWER).astype(">u8").view(np.uint8).reshape(-1, 8)[:, 2:]
    text = urlsafe_b64encode(octets.tobytes()).decode("ascii")
    return [text[at : at + KEY_LENGTH] for at in range(0, len(text), KEY_LENGTH)]
