"""Stored documents of large buckets, read once for many new documents that share keys with them."""

from __future__ import annotations

import time
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from itertools import chain
from operator import itemgetter
from typing import NamedTuple

import numpy as np

from es_neardupe.incoming.nearest import TextArrays
from es_neardupe.incoming.texts_by_key import NO_TEXTS, Candidate, CountedTexts, MayMatch, Nearest, preference
from es_neardupe.index.stored_fields import signature_of, stored_fields
from es_neardupe.keys.arrays import I32, U64, Ints, Octets
from es_neardupe.keys.bands import band_hashes, band_keys
from es_neardupe.keys.scheme import Scheme
from es_neardupe.records import Hit, Reference

MAXIMUM = 50_000
"""Maximum number of documents that are kept, with about 1 kB each."""

SECONDS = 5.0
"""How long they are kept without a look at the index: what other clients write meanwhile is not among them."""

LONGEST = 60.0
"""Seconds after which they are read again even if their number and sequence numbers are the same: those of documents
in several shards can be so by chance."""


class SequenceNumbers(NamedTuple):
    """The sequence numbers of a set of documents, to detect changes. A write gets a greater sequence number than all
    earlier ones of its shard, so a change in one shard changes the sum or the number of documents."""

    documents: int
    """How many there are."""
    total: int
    """Their sum."""
    last: int
    """The greatest; -1 without documents."""


_KEY_BITS = np.uint64(42)
"""Bits of a key without its position."""

_TEXT_BITS = np.uint64(22)
"""Bits of the number of a text, below those of the key."""

_TEXT_MASK = np.uint64((1 << 22) - 1)

_NO_KEY = np.uint64(2**64 - 1)


_Row = tuple[bool, str, str, Reference, object, bytes, Hit]
"""A document that was read: whether it is no principal, index, id, reference, content hash, signature."""


class StoredBuckets:
    """All stored documents that have one of some keys. Their keys follow from their signatures, and are not read."""

    def __init__(self, scheme: Scheme, prefix: str, candidate: Callable[[Hit], Candidate], *, fold: bool) -> None:
        """``candidate`` makes a candidate of a document. ``fold``: whether documents with the same content hash are one
        text."""
        self._scheme, self._prefix, self._candidate, self._fold = scheme, prefix, candidate, fold
        self.seq_nos: SequenceNumbers | None = SequenceNumbers(0, 0, -1)
        """Those of the documents; None if they are not known, or not all documents are here."""
        self.keys: set[str] = set()
        """Keys whose documents are all here."""
        self.unsigned: list[Candidate] = []
        """Those of the documents whose keys do not follow from a signature, which nothing else here knows."""
        self.frequent: list[str] = []
        """Keys that many of the documents have, and that no other document has."""
        self._hits: list[Hit] = []
        self._signatures: Octets = np.zeros((0, self._scheme.permutations), np.uint8)
        self._row_of: dict[Reference, int] = {}
        """The place of each document in these."""
        self._number_of: dict[object, int] = {}
        """The number of each text."""
        self._text_of: list[int] = []
        """The number of the text of each document."""
        self._copies: dict[int, list[Candidate]] = {}
        """The documents with the texts that were asked for, principals first."""
        self._leaders: dict[object, Hit] = {}
        self._begun = time.monotonic()
        self._arrange()
        self.renew()

    @property
    def expired(self) -> bool:
        """Whether the documents may have changed."""
        return time.monotonic() > self._until

    @property
    def renewable(self) -> bool:
        """Whether a look at the index can show that the documents are the same."""
        return bool(self._hits) and self.seq_nos is not None and time.monotonic() < self._begun + LONGEST

    def renew(self) -> None:
        """Keep the documents from now on, since they are those of the index."""
        self._until = time.monotonic() + SECONDS

    def expire(self) -> None:
        """Keep the documents for this piece only, since there is no room for others."""
        self._until, self.seq_nos = 0.0, None

    def __len__(self) -> int:
        return len(self._hits)

    def __contains__(self, reference: Reference) -> bool:
        return reference in self._row_of

    def add(self, pages: Iterable[Sequence[Hit]], keys: Iterable[str]) -> list[Reference]:
        """Add all documents that have one of some keys. Returns those that remain to be added to `unsigned`."""
        self.keys.update(keys)
        scheme, prefix, known = self._scheme, self._prefix, self._row_of
        id, size = scheme.id, scheme.permutations
        rows, unsigned, seq_nos = list[_Row](), list[Reference](), list[int | None]()
        for hit in chain.from_iterable(pages):
            stored = stored_fields(hit.source, prefix)
            signature, reference = signature_of(stored), hit.reference
            if reference not in known:
                seq_nos.append(hit.seq_no)
            if len(signature) != size or stored.get("scheme") != id:
                unsigned.append(reference)
            elif reference not in known:
                member = stored.get("principal") is not True
                rows.append((member, hit.index, hit.id, reference, stored.get("content"), signature, hit))
        self._count(seq_nos)
        rows.sort(key=itemgetter(0, 1, 2))  # as by `preference`
        references, contents = [row[3] for row in rows], [row[4] for row in rows]
        signatures = _slots([row[5] for row in rows], size)
        self._text_of += map(self._text, references, contents, _bytes_of_rows(self._hashes(signatures)))
        known.update(zip(references, range(len(known), len(known) + len(rows)), strict=True))
        self._hits += [row[6] for row in rows]
        self._signatures = np.concatenate([self._signatures, signatures])
        self._arrange()
        return unsigned

    def _count(self, seq_nos: Sequence[int | None]) -> None:
        """Add the sequence numbers of documents; some servers do not return them."""
        known = [one for one in seq_nos if one is not None]
        if self.seq_nos is not None and len(known) == len(seq_nos):
            documents, total, last = self.seq_nos
            self.seq_nos = SequenceNumbers(documents + len(known), total + sum(known), max([last, *known]))
        else:
            self.seq_nos = None

    def _text(self, reference: Reference, content: object, hashes: bytes) -> int:
        """The number of a text: documents with the same content hash have the same keys, unless one is damaged."""
        text = (content, hashes) if self._fold and content and isinstance(content, str) else reference
        return self._number_of.setdefault(text, len(self._number_of))

    def _hashes(self, signatures: Octets) -> U64:
        return band_hashes(signatures, self._scheme.bands, self._scheme.rows)

    def _arrange(self) -> None:
        """Find the documents with each text, and number the keys and find the texts with each."""
        self._copies, self._leaders = {}, {}
        text_of = np.array(self._text_of, np.int64)
        self._sizes = np.bincount(text_of, minlength=len(self._number_of))
        """The number of documents of each text."""
        self._rows = np.argsort(text_of, kind="stable")
        """The documents, by their texts."""
        self._ends = np.cumsum(self._sizes)
        """Where those of each text end."""
        slots = self._signatures[self._rows[self._ends - self._sizes]]
        hashes = self._hashes(slots)
        ordered = np.sort(hashes.T << _TEXT_BITS | np.arange(len(slots), dtype=np.uint64), axis=1)
        keys = _with_positions((ordered >> _TEXT_BITS).T).T.ravel()
        of_text = (ordered.ravel() & _TEXT_MASK).astype(np.int32)
        starts = np.flatnonzero(np.diff(keys, prepend=_NO_KEY))
        counts = np.diff(starts, append=len(keys))
        by_count = np.argsort(-counts, kind="stable")
        bounds = np.concatenate([[0], np.cumsum(counts[by_count])])
        with_key = of_text[np.repeat(starts[by_count] - bounds[:-1], counts[by_count]) + np.arange(len(keys))]
        self._arrays = TextArrays(slots, bounds, with_key).with_flags()
        self._keys = keys[starts]
        """The keys of all texts with their positions, in ascending order."""
        self._number = np.empty(len(starts), np.int32)
        """The number of each of these keys in the arrays."""
        self._number[by_count] = np.arange(len(starts), dtype=np.int32)
        self.frequent = sorted(self.keys.intersection(self._named(by_count[: len(self._arrays.frequent)])))

    def _named(self, places: Ints) -> list[str]:
        """The keys at these places."""
        having = self._arrays.signatures[self._arrays.with_key[self._arrays.bounds[self._number[places]]]]
        bands = (self._keys[places] >> _KEY_BITS).tolist()
        all_keys = band_keys(having, self._scheme.bands, self._scheme.rows)
        return [keys[band] for keys, band in zip(all_keys, bands, strict=True)]

    def leader(self, group: str) -> Candidate | None:
        """The principal of a group."""
        if not self._leaders:
            stored = ((stored_fields(hit.source, self._prefix), hit) for hit in self._hits)
            self._leaders = {fields.get("group"): hit for fields, hit in stored if fields.get("principal") is True}
        return self._candidate(self._leaders[group]) if group in self._leaders else None

    def sizes(self, replaced: Collection[Reference]) -> Ints:
        """The number of documents of each text, without those that the run has replaced or deleted."""
        sizes: Ints = self._sizes.copy()
        for one in self._row_of.keys() & set(replaced):
            sizes[self._text_of[self._row_of[one]]] -= 1
        return sizes

    def numbers(self, documents: Sequence[Candidate]) -> dict[Candidate, I32]:
        """Of each of some new documents, the numbers of the keys that texts here have too."""
        if not len(self._keys):
            return dict.fromkeys(documents, self._number)
        slots = _slots([one.signature for one in documents], self._scheme.permutations)
        keys = _with_positions(self._hashes(slots))
        places = np.minimum(np.searchsorted(self._keys, keys), len(self._keys) - 1)
        known = self._keys[places] == keys
        numbers = (self._number[some[here]] for some, here in zip(places, known, strict=True))
        return dict(zip(documents, numbers, strict=True))

    def _copies_of(self, text: int) -> list[Candidate]:
        """The documents with a text, principals first."""
        if text not in self._copies:
            rows = self._rows[self._ends[text] - self._sizes[text] : self._ends[text]].tolist()
            found = [self._candidate(self._hits[row]) for row in rows]
            self._copies[text] = sorted(found, key=preference) if len(found) > 1 else found
        return self._copies[text]

    def nearest(
        self,
        document: tuple[I32, bytes],
        minimum: int,
        sizes: Ints,
        maximum: int,
        may_match: MayMatch | None = None,
    ) -> Nearest:
        """The texts that share at least ``minimum`` keys with a new document, at most ``maximum``; see `CountedTexts`.

        ``document``: its keys, see `numbers`, and its signature. ``sizes``: see `sizes`.
        """
        if not len(document[0]):
            return NO_TEXTS
        counted = CountedTexts(self._arrays, sizes, self._copies_of)
        return counted.nearest(document, minimum, maximum, may_match)


def _slots(signatures: Sequence[bytes], size: int) -> Octets:
    """Signatures of this size as rows."""
    return np.frombuffer(b"".join(signatures), np.uint8).reshape(len(signatures), size)


def _bytes_of_rows(hashes: U64) -> Iterator[bytes]:
    size, octets = hashes.itemsize * hashes.shape[1], hashes.tobytes()
    return (octets[start : start + size] for start in range(0, len(octets), size))


def _with_positions(hashes: U64) -> U64:
    """Keys that differ if their positions differ: uint64[texts, bands]."""
    keys: U64 = np.arange(hashes.shape[1], dtype=np.uint64) << _KEY_BITS | hashes
    return keys
