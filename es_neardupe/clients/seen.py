"""Which documents a reading has given already, in eight bytes each: for the case that it has to begin again."""

from __future__ import annotations

import numpy as np
import xxhash
from numpy.typing import NDArray

from es_neardupe.records import Hit

__all__ = ["Seen"]


class Seen:
    """Remembers documents by a hash of index and id.

    Two of ten million have the same hash with a probability of three in a million; then one of them may be left out
    after a new beginning, and the next run takes it.
    """

    def __init__(self) -> None:
        self._pages: list[NDArray[np.uint64]] = []
        self._known = np.zeros(0, np.uint64)

    def begin_again(self) -> None:
        """From now on, what was seen is left out."""
        self._known = np.sort(np.concatenate([self._known, *self._pages]))
        self._pages = []

    def fresh(self, page: list[Hit]) -> list[Hit]:
        """The hits of a page that were not seen before the reading began again."""
        codes = np.array([_code(hit) for hit in page], np.uint64)
        self._pages.append(codes)
        if not len(self._known):
            return page
        places = np.minimum(np.searchsorted(self._known, codes), len(self._known) - 1)
        return [hit for hit, known in zip(page, self._known[places] == codes, strict=True) if not known]


def _code(hit: Hit) -> int:
    return xxhash.xxh3_64_intdigest(f"{hit.index}\0{hit.id}".encode("utf-8", "surrogatepass"))
