"""Random matrices of keys, and the rows that share them."""

from __future__ import annotations

from collections import defaultdict
from typing import Any

import numpy as np
from hypothesis import strategies as st

from es_neardupe.candidates.join import CandidatePairs

Keys = Any


@st.composite
def matrices(draw: st.DrawFn, maximum: int = 9) -> Keys:
    """Few distinct keys, so that rows share some; as with real keys, none occurs in two bands."""
    rows, bands = draw(st.integers(0, maximum)), draw(st.integers(1, 4))
    cells = draw(st.lists(st.lists(st.integers(0, 3), min_size=bands, max_size=bands), min_size=rows, max_size=rows))
    keys = np.array(cells, np.uint64).reshape(rows, bands)
    return np.where(keys == 0, np.uint64(0), keys * np.uint64(100) + np.arange(bands, dtype=np.uint64))


def key(number: int) -> str:
    return int(number).to_bytes(8, "little").decode("latin-1")


def buckets(keys: Keys) -> dict[int, list[int]]:
    """Rows that have each key, ascending."""
    found: dict[int, list[int]] = defaultdict(list)
    for row, own in enumerate(keys.tolist()):
        for one in sorted({number for number in own if number}):
            found[one].append(row)
    return found


def listed(found: CandidatePairs) -> list[tuple[int, int]]:
    return list(zip(found.left.tolist(), found.right.tolist(), strict=True))
