"""Stored documents of large buckets, read once for many new documents that share keys with them."""

from __future__ import annotations

import time
from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import count
from typing import NamedTuple

import numpy as np

from es_neardupe.incoming.recent_documents import Candidate, equal_slots, preference, slots_of
from es_neardupe.keys.arrays import I16, Ints, Octets, Positions
from es_neardupe.records import Reference

MAXIMUM = 50_000
"""Maximum number of documents that are kept, with about 1 kB each."""

SECONDS = 5.0
"""How long they are kept: what other clients write meanwhile is not among them."""

NEAREST = 1000
"""Maximum number of texts that share most keys with a new one, whose signatures are compared."""

_DENSE = 8
"""A key that one in so many texts has, is stored as a flag of each text."""


class Nearest(NamedTuple):
    """Texts of stored documents that share keys with a new one: those with the most similar signatures."""

    texts: Sequence[Sequence[Candidate]]
    """The documents with each text, principals first."""
    sizes: Sequence[int]
    """How many of them are candidates."""
    equal_slots: I16
    """How many slots of its signature each text has in common with the new document."""
    number: int
    """The number of all texts that share keys."""
    others: int
    """The number of documents with other texts."""


NO_TEXTS = Nearest((), (), np.zeros(0, np.int16), 0, 0)


class StoredBuckets:
    """All stored documents that have one of some keys."""

    def __init__(self, slots: int, *, fold: bool) -> None:
        """``slots``: size of a signature. ``fold``: whether documents with the same content hash are one text."""
        self._slots, self._fold = slots, fold
        self._until = time.monotonic() + SECONDS
        self.keys: set[str] = set()
        """Keys whose documents are all here."""
        self.leaders: dict[str, Candidate] = {}
        """Group -> its principal."""
        self._text_of: dict[Reference, int] = {}
        self._texts: dict[object, list[Candidate]] = {}
        self._copies: list[list[Candidate]] = []
        self._sizes: Ints = np.zeros(0, np.int64)
        self._signatures: Octets = np.zeros((0, slots), np.uint8)
        self._dense: dict[str, Octets] = {}
        self._number: dict[str, int] = {}
        """Key -> its number."""
        self._with_key: Positions = np.zeros(0, np.intp)
        """The texts with each key, in the order of their numbers."""
        self._bounds = [0]
        """Where those of a key begin, and those of the last one end."""

    @property
    def expired(self) -> bool:
        """Whether the documents should be read again."""
        return time.monotonic() > self._until

    def expire(self) -> None:
        """Keep the documents for this piece only, since there is no room for others."""
        self._until = 0

    @property
    def frequent(self) -> list[str]:
        """Keys that many of the documents have, and that no other document has."""
        return sorted(self.keys & self._dense.keys())

    def __len__(self) -> int:
        return len(self._text_of)

    def __contains__(self, reference: Reference) -> bool:
        return reference in self._text_of

    def add(self, documents: Iterable[Candidate], keys: Iterable[str]) -> None:
        """Add all documents that have one of some keys."""
        self.keys.update(keys)
        for one in sorted(documents, key=preference):
            if one.reference not in self._text_of:
                text = (one.content, *one.bands) if self._fold and one.content else one.reference
                copies = self._texts.setdefault(text, [])
                if not copies:
                    self._copies.append(copies)
                copies.append(one)
                self._text_of[one.reference] = -1
                if one.principal and one.group is not None:
                    self.leaders[one.group] = one
        self._arrange()

    def _arrange(self) -> None:
        for place, copies in enumerate(self._copies):
            for one in copies:
                self._text_of[one.reference] = place
            if len(copies) > 1:
                copies.sort(key=preference)
        first = [copies[0] for copies in self._copies]
        self._sizes = np.fromiter(map(len, self._copies), np.int64, len(self._copies))
        self._signatures = slots_of([one.signature for one in first], self._slots)
        number: dict[str, int] = defaultdict(count().__next__)
        numbers = np.array([number[key] for one in first for key in one.bands], np.int32)
        of_text = np.repeat(np.arange(len(first)), [len(one.bands) for one in first])
        sizes = np.bincount(numbers, minlength=len(number))
        self._with_key = of_text[np.argsort(numbers, kind="stable")]
        self._bounds = [0, *sizes.cumsum().tolist()]
        self._number = dict(number)
        self._dense = {}
        for key, size in zip(number, sizes.tolist(), strict=True):
            if size * _DENSE >= len(first):
                self._dense[key] = np.zeros(len(first), np.uint8)
                self._dense[key][self._texts_with(key)] = 1

    def _texts_with(self, key: str) -> Positions:
        """The texts with a key that one of them has."""
        number = self._number[key]
        return self._with_key[self._bounds[number] : self._bounds[number + 1]]

    def sizes(self, replaced: Collection[Reference]) -> Ints:
        """The number of documents of each text, without those that the run has replaced or deleted."""
        sizes: Ints = self._sizes.copy()
        for one in self._text_of.keys() & set(replaced):
            sizes[self._text_of[one]] -= 1
        return sizes

    def nearest(
        self,
        document: Candidate,
        minimum: int,
        sizes: Ints,
        maximum: int,
        may_match: Callable[[Sequence[Candidate]], Sequence[Candidate]] | None = None,
    ) -> Nearest:
        """The texts of the documents that share at least ``minimum`` keys with a new one, at most ``maximum``: of the
        1,000 with most common keys those with the most similar signatures, most similar first.

        ``sizes``: see `sizes`. ``may_match`` chooses those of some documents that count, instead of ``sizes`` of them.
        """
        if self._number.keys().isdisjoint(document.bands):
            return NO_TEXTS
        shared = np.zeros(len(self._copies), np.uint8)
        for key in document.bands:
            if key in self._dense:
                shared += self._dense[key]
            elif key in self._number:
                shared[self._texts_with(key)] += 1
        if may_match is not None:
            sizes = sizes.copy()
            for place in np.flatnonzero(shared >= minimum).tolist():
                sizes[place] = len(may_match(self._copies[place]))
        shared[sizes <= 0] = 0
        texts = np.bincount(shared, minlength=minimum + 1)[::-1].cumsum()[::-1]  # with so many common keys, or more
        if not texts[minimum]:
            return NO_TEXTS
        least = max(minimum, int(np.searchsorted(-texts, -NEAREST, side="right")) - 1)
        places = np.flatnonzero(shared > least)
        places = np.concatenate([places, np.flatnonzero(shared == least)[: NEAREST - len(places)]])
        equal = equal_slots(document.signature, self._signatures.take(places, axis=0))
        best = np.argsort(-equal, kind="stable")[:maximum]  # of 16 bits: a third of the time of 64
        chosen = sizes[places[best]]
        others = int(sizes[shared >= minimum].sum() - chosen.sum())
        found = [self._copies[place] for place in places[best].tolist()]
        return Nearest(found, chosen.tolist(), equal[best], int(texts[minimum]), others)
