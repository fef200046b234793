"""Prepared texts whose characters are mapped to places of the original."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple

import numpy as np

from es_neardupe.keys.arrays import Ints
from es_neardupe.keys.text import Range, spans


class PlacedPiece(NamedTuple):
    """A part of a prepared text, and the characters of the original that it stands for."""

    text: str
    start: int
    end: int
    """If ``text`` is as long as the range, each character stands for one; otherwise each stands for all of them."""


@dataclass(frozen=True)
class PlacedText:
    """An original text and what is left of it, with the place of each character that is left.

    Some texts are encoded, or finding places in them would take too long: for these, the prepared text is the original,
    too.
    """

    original: str
    prepared: str
    _starts: Ints | None = field(default=None, repr=False, compare=False)
    """int64[prepared]: the first character of the original that a character stands for; None: the texts are equal."""
    _ends: Ints | None = field(default=None, repr=False, compare=False)
    """int64[prepared]: the one after the last. An empty range is a character whose place is not known."""
    as_prepared: bool = False
    """Whether the prepared text is the original because this one is encoded, or finding places would take too long."""

    @classmethod
    def of_pieces(cls, original: str, pieces: Iterable[PlacedPiece]) -> PlacedText:
        """A text that consists of pieces of the original."""
        parts = list(pieces)
        sizes, starts, ends = (
            np.array([(len(text), start, end) for text, start, end in parts], np.int64).reshape(-1, 3).T
        )
        one_by_one = np.repeat(sizes == ends - starts, sizes)
        within = np.arange(sizes.sum()) - np.repeat(np.cumsum(sizes) - sizes, sizes)
        first = np.repeat(starts, sizes) + np.where(one_by_one, within, 0)
        last = np.where(one_by_one, first + 1, np.repeat(ends, sizes))
        return cls(original, "".join(part.text for part in parts), first, last)

    @classmethod
    def joined(cls, parts: Sequence[PlacedText]) -> PlacedText:
        """Several texts, one per line."""
        if len(parts) == 1:
            return parts[0]
        starts, ends, offset = [np.empty(0, np.int64)], [np.empty(0, np.int64)], 0
        for number, part in enumerate(parts):
            for found, own in zip((starts, ends), part._places, strict=True):
                if number:
                    found.append(np.array([offset]))
                found.append(own + offset + (number > 0))
            offset += len(part.original) + (number > 0)
        original, prepared = "\n".join(one.original for one in parts), "\n".join(one.prepared for one in parts)
        as_prepared = any(one.as_prepared for one in parts)
        return cls(original, prepared, np.concatenate(starts), np.concatenate(ends), as_prepared)

    def then(self, later: PlacedText) -> PlacedText:
        """The text after a second preparation, of what the first one left."""
        if self._starts is None or self._ends is None or not len(self.prepared):
            return later if self._starts is None else self
        first, last = later._places
        known = last > first
        starts = self._starts[np.minimum(first, len(self._starts) - 1)]
        ends = np.where(known, self._ends[np.maximum(last, 1) - 1], starts)
        return PlacedText(self.original, later.prepared, starts, ends)

    def original_range(self, first: int, end: int) -> Range:
        """A range of characters of the prepared text as one of the original. An empty range is a position."""
        if self._starts is None or self._ends is None:
            return first, end
        if first == end:
            at = int(self._ends[first - 1]) if first else 0
            return at, at
        start = int(self._starts[first])
        return start, max(start, int(self._ends[end - 1]))

    @property
    def _places(self) -> tuple[Ints, Ints]:
        if self._starts is None or self._ends is None:
            numbers = np.arange(len(self.original))
            return numbers, numbers + 1
        return self._starts, self._ends

    @cached_property
    def spans(self) -> Ints:
        """Places of the tokens of the prepared text in the original: int64[n, 2], first character and the one after the
        last."""
        found = spans(self.prepared)
        if self._starts is None or self._ends is None or not len(found):
            return found
        starts, ends = self._starts[found[:, 0]], self._ends[found[:, 1] - 1]
        return np.stack((starts, np.maximum(starts, ends)), axis=1)
