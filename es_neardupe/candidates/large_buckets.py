"""Members of a large bucket that are compared: chosen by their signatures, in O(n log n) for n members.

Each of many *orders* sorts the members by slots of the signature in a sequence of its own, as the trees of an LSH
forest do (Bawa, Condie & Ganesan, LSH Forest: Self-Tuning Indexes for Similarity Search, 2005). Similar signatures
agree in the first slots of some of these sequences, and so stand close together there. In each order a member is
compared with

- its next neighbours, which finds the few texts that are like it, wherever they are in the bucket;
- the representatives of its *clumps*. A clump are the members that agree in the first few slots, and its representative
  the one of them that comes first in the order of principals. So the later principal of a cluster meets nearly
  all of it, and the cluster does not fall apart, however large it is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from es_neardupe.display_text import beginning
from es_neardupe.errors import CorruptFingerprint
from es_neardupe.index.document_text import text_of
from es_neardupe.index.index import Index
from es_neardupe.index.stored_fields import decode_signature, stored_fields
from es_neardupe.keys.hashing import stream
from es_neardupe.records import FingerprintColumns, TextClasses
from es_neardupe.server.fetch import fetch
from es_neardupe.similarity.common_passages import common_passage

__all__ = ["near_pairs", "passages", "read_signatures"]


Ints = NDArray[np.intp]

_NEIGHBOURS = 3
_CLUMPS = (3, 6)
"""Slots in which the members of a clump agree: the few gather texts that are just similar enough, the many tell
clusters apart that have boilerplate in common."""

_PER_ORDER = _NEIGHBOURS + len(_CLUMPS)
_COLUMNS = 16
"""Slots that decide an order; members that agree in all of them stand in the order of principals."""

_SEED = 1


def near_pairs(signatures: NDArray[np.uint8], maximum: int) -> Iterator[Ints]:
    """Pairs of members: blocks of shape (pairs, 2), first < second; a pair may come several times.

    ``signatures`` have the shape (n, slots), with the members in the order of principals. There are at most
    ``maximum`` * n pairs (5 n for a ``maximum`` below 5). They depend only on the signatures in that order.
    """
    for sequence in _sequences(max(1, maximum // _PER_ORDER), signatures.shape[1]):
        leading, rest = np.ascontiguousarray(signatures[:, sequence]).view(">u8").astype(np.uint64).T
        order = np.lexsort((rest, leading))
        for distance in range(1, _NEIGHBOURS + 1):
            yield np.sort(np.stack((order[:-distance], order[distance:]), axis=1), axis=1)
        for slots in _CLUMPS:
            first = _representatives(order, leading[order] >> np.uint64(64 - 8 * slots))
            yield np.stack((first, order), axis=1)[first < order]


def _representatives(order: Ints, clumps: NDArray[np.uint64]) -> Ints:
    """For each member its clump's first one; clumps are runs of an equal number."""
    starts = np.flatnonzero(np.concatenate(([True], clumps[1:] != clumps[:-1])))
    return np.repeat(np.minimum.reduceat(order, starts), np.diff(starts, append=len(order)))


@lru_cache(maxsize=8)
def _sequences(number: int, slots: int) -> tuple[Ints, ...]:
    """So many sequences of slots: the same ones in all buckets, so that buckets with the same members choose alike."""
    drawn = stream(_SEED, number * slots).reshape(number, slots)
    return tuple(np.resize(np.argsort(one), _COLUMNS) for one in drawn)


_LOOKED_AT = 100_000
"""Characters of a text in which common passages are sought."""


def read_signatures(
    index: Index, corpus: FingerprintColumns, classes: TextClasses, numbers: NDArray[np.intp]
) -> NDArray[np.uint8]:
    """The stored signatures of classes, uint8[classes, slots]: 128 bytes each, by default as many as their keys have.

    Where a signature cannot be read (any more), it is all zeros: such a text is compared with fewer or other ones.
    """
    slots = index.settings.scheme.permutations
    found = np.zeros((len(numbers), slots), np.uint8)
    references = (corpus.references[classes.members[number][0]] for number in numbers.tolist())
    for place, hit in enumerate(fetch(index.client, references, [index.fields.signature])):
        signature = b"" if hit is None else _signature(stored_fields(hit.source, index.settings.prefix))
        if len(signature) == slots:
            found[place] = np.frombuffer(signature, np.uint8)
    return found


def _signature(stored: Mapping[str, Any]) -> bytes:
    try:
        return decode_signature(stored)
    except CorruptFingerprint:
        return b""


def passages(
    index: Index, corpus: FingerprintColumns, classes: TextClasses, samples: Sequence[Sequence[int]]
) -> list[str]:
    """The beginning of the passage that the present texts of each sample of classes share; "" where there is none.

    Of a long text its first 100,000 characters are looked at.
    """
    found = []
    for sample in samples:
        references = [corpus.references[classes.members[number][0]] for number in sample]
        sources = ({} if hit is None else hit.source for hit in fetch(index.client, references, index.settings.fields))
        texts = [text_of(one, index.settings.fields)[:_LOOKED_AT] for one in sources]
        found.append(beginning(common_passage(texts)))
    return found
