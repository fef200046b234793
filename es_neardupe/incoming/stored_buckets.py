"""Stored documents of large buckets, read once for many new documents that share keys with them."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import accumulate, chain, islice
from typing import NamedTuple

import numpy as np

from es_neardupe.incoming.nearest import TextArrays, slots_of
from es_neardupe.incoming.recent_documents import Candidate, preference
from es_neardupe.keys.arrays import I16, Ints
from es_neardupe.records import Reference

MAXIMUM = 50_000
"""Maximum number of documents that are kept, with about 1 kB each."""

SECONDS = 5.0
"""How long they are kept: what other clients write meanwhile is not among them."""


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
        self._number: dict[str, int] = {}
        """Key -> its number in the arrays."""
        self._arrays: TextArrays

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
        if not self._number:
            return []
        return sorted(self.keys.intersection(islice(self._number, len(self._arrays.frequent))))

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
        keys = [set(one.bands) for one in first]
        sizes = Counter(chain.from_iterable(keys)).most_common()
        self._number = {key: number for number, (key, _) in enumerate(sizes)}
        numbers = np.array([self._number[key] for some in keys for key in some], np.int32)
        of_text = np.repeat(np.arange(len(first), dtype=np.int32), list(map(len, keys)))
        self._arrays = TextArrays(
            slots_of([one.signature for one in first], self._slots),
            bounds=np.array([0, *accumulate(size for _, size in sizes)], np.int64),
            with_key=of_text[np.argsort(numbers, kind="stable")],
        )

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
        keys = np.array([self._number[key] for key in document.bands if key in self._number], np.int32)
        if not len(keys):
            return NO_TEXTS
        if may_match is not None:
            sizes = sizes.copy()
            for place in np.flatnonzero(self._arrays.common_keys(keys) >= minimum).tolist():
                sizes[place] = len(may_match(self._copies[place]))
        found = self._arrays.nearest(keys, document.signature, sizes, minimum, maximum)
        texts = [self._copies[place] for place in found.places.tolist()]
        return Nearest(texts, sizes[found.places].tolist(), found.equal_slots, found.number, found.others)
