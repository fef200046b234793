"""Containment of one text in another, in both directions, with the passages."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum

import numpy as np

from es_neardupe.display_text import beginning
from es_neardupe.keys.hashing import U64
from es_neardupe.keys.shingles import token_hashes, window_hashes
from es_neardupe.options import Matching
from es_neardupe.similarity.alignment import align
from es_neardupe.similarity.comparison import Block, Side, blocks_of

__all__ = ["Containment", "Containments", "Direction"]


_SHOWN = 100


class Direction(str, Enum):
    """Relation of a document to the probe."""

    CONTAINS = "contains the probe"
    CONTAINED = "is contained in the probe"
    BOTH = "both"


@dataclass(frozen=True, slots=True)
class Containment:
    """Of a probe and a document, exact."""

    direction: Direction
    of_probe: float
    """Share of the probe's words that are in common passages."""
    of_document: float
    """Share of the document's words, likewise."""
    common_words: int
    passages: tuple[Block, ...]
    """``a`` in the probe, ``b`` in the document, in characters."""
    excerpt: str
    """The longest passage, or its beginning."""


class Containments:
    """Compares texts with one probe.

    ``shingle`` is the minimum number of words in a common passage, ``minimum`` the share that the words in them must
    have of one of both texts.
    """

    def __init__(self, probe: Side, matching: Matching, shingle: int, minimum: float) -> None:
        self.probe = probe
        self.matching = matching
        self.shingle = shingle
        self.minimum = minimum
        (self._hashes,) = token_hashes([probe.text])
        self._windows = np.unique(window_hashes(self._hashes, shingle))

    def of(self, text: str) -> Containment | None:
        """Of the probe and this text; None where neither share reaches the minimum."""
        (hashes,) = token_hashes([text])
        if not len(hashes) or not len(self._hashes) or self._upper_bound(hashes) < self.minimum:
            return None
        found = align(self._hashes, hashes, self.matching, self.shingle)
        of_probe, of_document = (found.common / words for words in found.words)
        if max(of_probe, of_document) < self.minimum:
            return None
        passages = blocks_of(self.probe, Side.of("document", text), found)
        direction = _direction(of_probe >= self.minimum, of_document >= self.minimum)
        return Containment(direction, of_probe, of_document, found.common, passages, self._excerpt(passages))

    def _upper_bound(self, hashes: U64) -> float:
        """A number that neither share can exceed: a common passage consists of windows that both texts have. Costs
        much less than `align` where the probe is long."""
        windows = window_hashes(hashes, self.shingle)
        if self.matching is not Matching.LITERAL or not len(windows) or not len(self._windows):
            return 1.0  # repeats do not count in the length either, and a short text is compared as a whole
        places = np.minimum(np.searchsorted(self._windows, windows), len(self._windows) - 1)
        starts = np.flatnonzero(self._windows[places] == windows)
        words = int(np.minimum(np.diff(starts), self.shingle).sum()) + self.shingle * min(len(starts), 1)
        return words / min(len(hashes), len(self._hashes))

    def _excerpt(self, passages: Sequence[Block]) -> str:
        longest = max(passages, key=lambda one: one.words)
        return beginning(self.probe.text[slice(*longest.a)], _SHOWN)


def _direction(contains: bool, is_contained: bool) -> Direction:
    if contains and is_contained:
        return Direction.BOTH
    return Direction.CONTAINS if contains else Direction.CONTAINED
