"""Greedy string tiling (Wise 1993): the longest common run that is left becomes a tile, again and again.

Of equally long runs the one with the smaller sum of its two places comes first, then the one earlier in the first
text. The result is that of the quadratic definition; only the way there is shorter.

Runs are found from pairs of equal windows. Where a text repeats itself there are too many pairs to be written down:
then the longest runs are taken first, as many lengths at a time as are few enough, and what they leave is looked at
again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from es_neardupe.keys import window_hashes
from es_neardupe.tiling.rounds import tiles_in_rounds
from es_neardupe.tiling.runs import Equal, choose, runs_of

__all__ = ["tiles"]

U64 = NDArray[np.uint64]
Ints = NDArray[np.int64]


def tiles(a: U64, b: U64, least: int) -> Ints:
    """The tiles of ``least`` words and more, in any order: int64[n, 3] with their places in a and b and their size."""
    equal = Equal.of(window_hashes(a, least), window_hashes(b, least))
    if not equal.pairs:
        return np.empty((0, 3), np.int64)
    limit = 4 * (len(a) + len(b)) + 1000
    if equal.pairs > limit:
        return tiles_in_rounds(a, b, least, limit)
    return choose(runs_of(*equal.places(), least), len(a), len(b), least)
