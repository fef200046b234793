"""Pairs of texts that are scored together: what depends on one text only is computed once, inner loops are in C."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import NamedTuple

import numpy as np

from es_neardupe.compiled import compiled
from es_neardupe.keys.arrays import U64, Ints, Positions
from es_neardupe.progress import Progress

kernel = compiled("similarity._pairs")
"""The inner loops in C: `_pairs.c`."""

_PART = 1_000_000
"""Words, or features, of the pairs that are scored without interruption: some ten milliseconds."""


class Batch(NamedTuple):
    """Texts, and pairs of them by their places."""

    texts: list[U64]
    """Each text that is in a pair, once."""
    sizes: Ints
    """int64[texts]: words, or features, of each text."""
    left: Ints
    right: Ints

    @classmethod
    def of(cls, texts: Sequence[U64], left: Positions, right: Positions) -> Batch:
        """The pairs ``(texts[left[k]], texts[right[k]])``."""
        used, places = np.unique(np.concatenate((left, right)), return_inverse=True)
        chosen = [texts[one] for one in used.tolist()]
        places = places.reshape(-1).astype(np.int64)
        return cls(chosen, np.array([len(one) for one in chosen], np.int64), places[: len(left)], places[len(left) :])

    @property
    def bounds(self) -> Ints:
        """Where each text begins in `joined`: int64[texts + 1]."""
        return np.concatenate(([0], np.cumsum(self.sizes)))

    def joined(self) -> U64:
        """All texts, one after the other."""
        return np.concatenate([np.empty(0, np.uint64), *self.texts])

    def parts(self, progress: Progress) -> Iterator[slice]:
        """The pairs in parts of limited size, each reported as done when the next one is requested."""
        total = len(self.left)
        size = np.cumsum(self.sizes[self.left] + self.sizes[self.right] + 1)
        cuts = np.flatnonzero(np.diff(size // _PART)) + 1
        progress("", 0, total)
        for first, last in pairwise([0, *cuts.tolist(), total]):
            yield slice(first, last)
            progress("", last, total)
