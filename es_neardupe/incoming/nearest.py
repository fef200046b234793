"""The nearest texts to a new one, estimated from keys and signatures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import numpy as np

from es_neardupe.compiled import compiled
from es_neardupe.keys.arrays import I16, I32, Ints, Octets

kernel = compiled("incoming._nearest")
"""The same in C: `_nearest.c`."""

FREQUENT = 8
"""A key is frequent if at least one in so many texts has it."""

MOST = 1000
"""Number of texts that share most keys with a new one, whose signatures are compared; more if more are to be found."""


def slots_of(signatures: Sequence[bytes], size: int) -> Octets:
    """Signatures as rows; one of another size is zero."""
    alike = b"".join(one if len(one) == size else bytes(size) for one in signatures)
    return np.frombuffer(alike, np.uint8).reshape(len(signatures), size)


def equal_slots(signature: bytes, others: list[bytes]) -> I16:
    """How many slots a signature has in common with each of some others; one of another size is zero."""
    if kernel is not None:
        return np.frombuffer(kernel.equal_slots(signature, others), np.int16)
    return _equal_slots(signature, slots_of(others, len(signature)))


def _equal_slots(signature: bytes, others: Octets) -> I16:
    equal: I16 = (others == np.frombuffer(signature, np.uint8)).sum(axis=1, dtype=np.int16)
    return equal


class Chosen(NamedTuple):
    """Texts that share keys with a new one: those with the most similar signatures."""

    places: Ints
    equal_slots: I16
    """How many slots each has in common with the new text."""
    number: int
    """The number of all texts that share keys."""
    others: int
    """The number of documents with other texts."""


@dataclass(frozen=True)
class TextArrays:
    """Signatures of texts, and the texts with each of some keys, those with most texts first."""

    signatures: Octets
    bounds: Ints
    """Where the texts with a key begin, and those of the last one end."""
    with_key: I32
    """The places of the texts with each key, in the order of the keys; of one key, in their order."""

    frequent: Octets = field(default_factory=lambda: np.zeros((0, 0), np.uint8))
    """Of the first keys, whether each text has them: what is asked often is found faster."""

    def with_flags(self) -> TextArrays:
        """The same with flags of the frequent keys."""
        sizes = np.diff(self.bounds)
        flags = np.zeros((np.count_nonzero(sizes * FREQUENT >= len(self.signatures)), len(self.signatures)), np.uint8)
        flags[np.repeat(np.arange(len(flags)), sizes[: len(flags)]), self.with_key[: self.bounds[len(flags)]]] = 1
        return replace(self, frequent=flags)

    def common_keys(self, keys: I32) -> Ints:
        """How many of some keys each text has."""
        some = [self.with_key[self.bounds[key] : self.bounds[key + 1]] for key in keys.tolist()]
        return np.bincount(np.concatenate(some), minlength=len(self.signatures))

    def nearest(self, keys: I32, signature: bytes, sizes: Ints, minimum: int, maximum: int) -> Chosen:
        """The texts that have at least ``minimum`` of the keys, at most ``maximum``: of the 1,000 with most of them, or
        ``maximum`` if that is more, those with the most similar signatures, most similar first. ``sizes``: how many
        documents have each text."""
        maximum = min(maximum, len(sizes))
        if kernel is None:
            return self._nearest(keys, signature, sizes, minimum, maximum)
        arrays = (keys, self.bounds, self.with_key, self.frequent, sizes, self.signatures)
        places, equal, number, others = kernel.nearest(*arrays, signature, minimum, max(MOST, maximum), maximum)
        return Chosen(np.frombuffer(places, np.int64), np.frombuffer(equal, np.int16), number, others)

    def _nearest(self, keys: I32, signature: bytes, sizes: Ints, minimum: int, maximum: int) -> Chosen:
        shared = np.where(sizes > 0, self.common_keys(keys), 0)
        sharing = np.flatnonzero(shared >= minimum)
        places = np.sort(sharing[np.argsort(-shared[sharing], kind="stable")[: max(MOST, maximum)]])
        equal = _equal_slots(signature, self.signatures[places])
        best = np.argsort(-equal, kind="stable")[:maximum]
        others = int(sizes[sharing].sum() - sizes[places[best]].sum())
        return Chosen(places[best], equal[best], len(sharing), others)
