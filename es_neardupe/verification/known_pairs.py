"""Similarities of pairs of contents that are known already, so that no two texts are compared twice."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["PairMemory", "packed"]

Bytes = NDArray[np.bytes_]
Floats = NDArray[np.float64]

_EMPTY = (np.empty(0, "S32"), np.empty(0))


class PairMemory:
    """Unordered pairs of content hashes, each with one number: 40 bytes a pair, three times that while it grows.

    A content hash is 32 hexadecimal digits of ASCII, as `Corpus.content` holds it; pairs with an empty one are not
    kept. The numbers must be of one measure that looks at nothing but the tokens (`Measure.copies_are_equal`).
    """

    def __init__(self) -> None:
        self._keys, self._values = _EMPTY
        self._waiting: list[tuple[Bytes, Floats]] = []

    def __len__(self) -> int:
        self._merge()
        return len(self._keys)

    def add(self, left: Bytes, right: Bytes, similarity: Floats) -> None:
        """Keep the numbers of pairs (n hashes, n hashes, n numbers). NaN is not kept; what is added last counts."""
        kept = ~np.isnan(similarity) & (left != b"") & (right != b"")
        if kept.any():
            self._waiting.append((_keys(left[kept], right[kept]), similarity[kept].astype(np.float64)))

    def lookup(self, left: Bytes, right: Bytes) -> Floats:
        """The numbers of pairs (n hashes, n hashes); float64[n], NaN where nothing is known."""
        self._merge()
        result = np.full(len(left), np.nan)
        if len(self._keys) and len(left):
            wanted = _keys(left, right)
            order = np.argsort(wanted)  # in order, the search stays where the last one ended
            wanted = wanted[order]
            places = np.minimum(np.searchsorted(self._keys, wanted), len(self._keys) - 1)
            found = (self._keys[places] == wanted) & (left[order] != b"") & (right[order] != b"")
            result[order[found]] = self._values[places[found]]
        return result

    def _merge(self) -> None:
        """Sort in what was added since. Put off until somebody asks, so that many small additions cost one sort."""
        if not self._waiting:
            return
        parts = [(self._keys, self._values), *self._waiting]
        self._waiting = []
        keys, values = (np.concatenate(side) for side in zip(*parts, strict=True))
        order = np.argsort(keys, kind="stable")
        keys = keys[order]
        last = np.append(keys[1:] != keys[:-1], True)
        self._keys, self._values = keys[last], values[order[last]]


def packed(hashes: Bytes) -> Bytes:
    """Hashes of 32 hexadecimal digits as the 16 bytes they stand for; S16[n], in the same order as the digits.

    (Such strings are compared in their whole width: bytes that are zero at the end do no harm.)
    """
    digits = np.ascontiguousarray(hashes.astype("S32")).view(np.uint8).reshape(-1, 32)
    values = (digits & 15) + 9 * (digits >> 6)
    return (values[:, ::2] << 4 | values[:, 1::2]).astype(np.uint8).view("S16").reshape(-1)


def _keys(left: Bytes, right: Bytes) -> Bytes:
    """The two hashes of each pair as 16 bytes each, the lesser first; S32[n]."""
    one, other = packed(left), packed(right)
    turned = one > other
    return np.stack([np.where(turned, other, one), np.where(turned, one, other)], axis=1).view("S32").reshape(-1)
