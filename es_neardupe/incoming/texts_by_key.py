"""Documents that come and go, by their texts and keys, for `screened`."""

from __future__ import annotations

from array import array
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from es_neardupe.incoming.nearest import TextArrays, slots_of
from es_neardupe.keys.arrays import I16, I32, Ints
from es_neardupe.records import Reference


@dataclass(slots=True, eq=False)
class Candidate:
    """A document with keys: one that is stored, or one that is about to be written."""

    reference: Reference
    bands: Sequence[str]
    content: str | None
    tokens: int
    group: str | None
    principal: bool | None
    """None if it waits for ``group``."""
    signature: bytes = b""
    """Empty if it cannot be read."""
    source: Mapping[str, Any] | None = None
    """None until it is read."""
    exists: bool = True
    """Whether it is, or will be, in the index, as far as is known."""
    rewritten: bool = False
    """Whether it replaces a document, so that searches may see an earlier text under its id."""
    within: tuple[frozenset[str], ...] = ()
    """Values that two documents that are compared have in common, of each field."""
    across: frozenset[str] = frozenset()
    """Values of which no two documents that are compared have one in common."""

    def may_match(self, other: Candidate) -> bool:
        """Whether the values allow that both match."""
        return self.within == other.within and self.across.isdisjoint(other.across)

    def unread(self) -> Candidate:
        """The same document, whose text is read again."""
        known = self.reference, self.bands, self.content, self.tokens, self.group, self.principal, self.signature
        return Candidate(*known, within=self.within, across=self.across)


def preference(document: Candidate) -> tuple[bool, str, str]:
    """The order of equally similar documents: principals first."""
    return not document.principal, *document.reference[:2]


MayMatch = Callable[[Sequence[Candidate]], Sequence[Candidate]]
"""Chooses those of some documents that may match a new one."""


class Nearest(NamedTuple):
    """Texts of documents that share keys with a new one: those with the most similar signatures."""

    texts: Sequence[Sequence[Candidate]]
    """The documents with each text, at most 100."""
    sizes: Sequence[int]
    """How many of them are candidates."""
    equal_slots: I16
    """How many slots of its signature each text has in common with the new document."""
    number: int
    """The number of all texts that share keys."""
    others: int
    """The number of documents with other texts."""


NO_TEXTS = Nearest((), (), np.zeros(0, np.int16), 0, 0)

COPIES = 100
"""Maximum number of documents with the same text that are looked at, until one is unchanged."""


@dataclass(frozen=True)
class CountedTexts:
    """Texts with their keys and signatures, and the documents that have them."""

    arrays: TextArrays
    sizes: Ints
    """How many documents of each text count."""
    copies_of: Callable[[int], Sequence[Candidate]]
    """Finds all documents with the text at a place."""

    def nearest(
        self, searched: tuple[I32, bytes], minimum: int, maximum: int, may_match: MayMatch | None = None
    ) -> Nearest:
        """The texts that share at least ``minimum`` keys with a new one, at most ``maximum``; see `TextArrays.nearest`.

        ``searched``: the numbers of its keys, and its signature. ``may_match`` chooses the documents of a text that
        count, instead of ``sizes`` of them.
        """
        (keys, signature), sizes, copies_of = searched, self.sizes, self.copies_of
        if may_match is not None:
            sizes = sizes.copy()
            for place in np.flatnonzero(self.arrays.common_keys(keys) >= minimum).tolist():
                sizes[place] = len(may_match(copies_of(place)))
        found = self.arrays.nearest(keys, signature, sizes, minimum, maximum)
        texts = [copies_of(place) for place in found.places.tolist()]
        if may_match is not None:
            texts = [may_match(copies) for copies in texts]
        first = [copies[:COPIES] for copies in texts]
        return Nearest(first, sizes[found.places].tolist(), found.equal_slots, found.number, found.others)


class TextsByKey:
    """Documents by their texts, and these by their keys. Most keys are those of one text, but those of near-copies are
    those of very many."""

    def __init__(self, slots: int, documents: Iterable[Candidate] = (), *, fold: bool) -> None:
        """``slots``: of a signature. ``fold``: whether documents with the same content hash are one text."""
        self._fold = fold
        self._texts: dict[object, int] = {}
        """The place of each text."""
        self._places: dict[str, int | array[int]] = {}
        """Key -> the place of the text with it, or those of several."""
        self._copies: list[list[Candidate]] = []
        """The documents of each place."""
        self._free: list[int] = []
        """Places without documents."""
        self._sizes = np.zeros(0, np.int64)
        """The number of documents of each place; there are more places than are needed."""
        self._signatures = np.zeros((0, slots), np.uint8)
        for one in documents:
            self.insert(one)

    def _text(self, document: Candidate) -> object:
        """What documents with the same text have in common: those with the same content hash have the same keys, unless
        one is damaged."""
        return (document.content, *document.bands) if self._fold and document.content else document

    def insert(self, document: Candidate) -> None:
        """Add a document."""
        text = self._text(document)
        place = self._texts.get(text)
        if place is None:
            place = self._texts[text] = self._new_place(document.signature)
            places = self._places
            shared = {key: places[key] for key in places.keys() & document.bands}
            places.update(dict.fromkeys(document.bands, place))
            for key, others in shared.items():
                several = others if isinstance(others, array) else array("i", [others])
                several.append(place)
                places[key] = several
        self._copies[place].append(document)
        self._sizes[place] += 1

    def _new_place(self, signature: bytes) -> int:
        if self._free:
            place = self._free.pop()
        else:
            place = len(self._copies)
            self._copies.append([])
            if place == len(self._sizes):
                more = max(256, place)
                self._sizes = np.pad(self._sizes, (0, more))
                self._signatures = np.pad(self._signatures, ((0, more), (0, 0)))
        self._signatures[place] = slots_of([signature], self._signatures.shape[1])
        return place

    def remove(self, document: Candidate) -> None:
        """Take a document out again."""
        text = self._text(document)
        place = self._texts[text]
        self._copies[place].remove(document)
        self._sizes[place] -= 1
        if self._copies[place]:
            return
        del self._texts[text]
        self._free.append(place)
        for key in set(document.bands):
            others = self._places[key]
            if isinstance(others, array) and len(others) > 1:
                others.remove(place)
            else:
                del self._places[key]

    def nearest(self, document: Candidate, minimum: int, maximum: int, may_match: MayMatch | None = None) -> Nearest:
        """The texts that share at least ``minimum`` keys with a new document; see `CountedTexts.nearest`."""
        found = [self._places[key] for key in document.bands if key in self._places]
        if not found:
            return NO_TEXTS
        lists = [one if isinstance(one, array) else array("i", [one]) for one in found]
        bounds = np.cumsum([0, *map(len, lists)], dtype=np.int64)
        texts = len(self._copies)
        arrays = TextArrays(self._signatures[:texts], bounds, np.frombuffer(b"".join(lists), np.int32))
        counted = CountedTexts(arrays, self._sizes[:texts], self._copies.__getitem__)
        keys = np.arange(len(lists), dtype=np.int32)
        return counted.nearest((keys, document.signature), minimum, maximum, may_match)
