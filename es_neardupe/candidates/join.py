"""Candidate pairs: documents that share band keys, joined in memory by one sort of all keys.

If several bands must agree, every choice of that many bands is a key of its own (`joint_keys`). So only pairs that
share enough keys are made, and a bucket consists of the rows that share all keys of a choice.

Members of a large bucket are not all compared with each other: `near_pairs` chooses pairs by the members' signatures,
in O(n log n) for n members. Each of many *orders* sorts the members by slots of the signature in a sequence of its own,
as the trees of an LSH forest do (Bawa, Condie & Ganesan, LSH Forest: Self-Tuning Indexes for Similarity Search, 2005).
Similar signatures agree in the first slots of some of these sequences, and so are close together there. In each order a
member is compared with

- its next neighbours, which finds its few similar texts wherever they are in the bucket;
- the representatives of its *clumps*. A clump consists of the members that agree in the first few slots; its
  representative is the member that comes first in the order of principals. So the later principal of a cluster is
  compared with nearly all of it, and the cluster does not fall apart, however large it is.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any

import numpy as np

from es_neardupe.candidates.pair_arrays import DistinctPairs, first_with_all, small_groups
from es_neardupe.candidates.who_may_meet import DEFAULT_RULES, GroupRules
from es_neardupe.display_text import beginning
from es_neardupe.errors import CorruptFingerprint
from es_neardupe.index.document_text import text_of
from es_neardupe.index.index import Index
from es_neardupe.index.stored_fields import decode_signature, stored_fields
from es_neardupe.keys.arrays import U64, Flags, Ints, Octets, Positions
from es_neardupe.keys.bands import chosen_bands, joint_keys
from es_neardupe.keys.hashing import stream
from es_neardupe.options import DEFAULT_MAX_BUCKET
from es_neardupe.records import FingerprintColumns, TextClasses
from es_neardupe.server.search import fetch
from es_neardupe.similarity.common_passages import common_passage

__all__ = [
    "Bucket",
    "CandidatePairs",
    "ReadSignatures",
    "bucket_sizes",
    "candidate_pairs",
    "find_candidates",
    "near_pairs",
    "read_signatures",
    "with_passages",
]

_WITH_PASSAGES = 20
"""Number of large buckets for which a common passage is determined: the largest ones."""

_SAMPLE = 6
"""Members of a large bucket in which a common passage is searched."""

ReadSignatures = Callable[[Positions], Octets]
"""Numbers of classes -> their signatures, uint8[classes, slots]."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """A band key that is shared by more classes than ``max_bucket``."""

    key: str
    """If several bands must agree, their keys, joined by ``+``."""
    size: int
    """Number of classes."""
    compared: int
    """Pairs that are candidates because of this key."""
    skipped: int
    """The other pairs of this bucket; some may be candidates because of another key."""
    documents: int = 0
    """Documents of these classes, including exact copies."""
    passage: str = ""
    """Beginning of the passage that the texts have in common; empty if there is none or it was not determined."""
    _sample: tuple[int, ...] = field(default=(), compare=False)

    @property
    def sample(self) -> tuple[int, ...]:
        """Numbers of some of the classes, evenly spread."""
        return self._sample


@dataclass(frozen=True, slots=True)
class CandidatePairs:
    """Pairs of class numbers, ``left < right``, each once, in ascending order."""

    left: Positions
    right: Positions
    large: tuple[Bucket, ...]

    def __len__(self) -> int:
        return len(self.left)

    @property
    def skipped(self) -> int:
        """Comparisons skipped in large buckets; a pair counts once for each of its buckets."""
        return sum(bucket.skipped for bucket in self.large)

    def only(self, kept: Flags) -> CandidatePairs:
        """The pairs selected by ``kept``, bool[pairs]."""
        return replace(self, left=self.left[kept], right=self.right[kept])


def candidate_pairs(
    index: Index, corpus: FingerprintColumns, classes: TextClasses, rules: GroupRules = DEFAULT_RULES
) -> CandidatePairs:
    """The pairs of classes that share enough keys for the scheme and are allowed by the rules. In buckets larger than
    ``max_bucket``, pairs are chosen by the stored signatures. No text is read."""
    documents = np.array([len(rows) for rows in classes.members], np.int64)
    signatures = partial(read_signatures, index, corpus, classes)
    agree = index.settings.scheme.agree
    found = find_candidates(corpus.keys[classes.first], rules.max_bucket, signatures, documents, agree)
    if rules.within is None and rules.window is None:
        return found
    first = classes.first
    a, b = first[found.left], first[found.right]
    allowed = corpus.scopes[a] == corpus.scopes[b]
    if rules.window is not None:
        allowed &= np.abs(corpus.days[a] - corpus.days[b]) <= rules.window.days
    return found.only(allowed)


def with_passages(
    index: Index, corpus: FingerprintColumns, classes: TextClasses, large: tuple[Bucket, ...]
) -> tuple[Bucket, ...]:
    """The large buckets, the largest of them with the passage that the current texts of their sample share."""
    largest = (replace(one, passage=_passage(index, corpus, classes, one.sample)) for one in large[:_WITH_PASSAGES])
    return (*largest, *large[_WITH_PASSAGES:])


def find_candidates(
    keys: U64,
    max_bucket: int = DEFAULT_MAX_BUCKET,
    signatures: ReadSignatures | None = None,
    documents: Ints | None = None,
    agree: int = 1,
) -> CandidatePairs:
    """All pairs of rows of ``keys`` (shape (k, b), 0 = no key) that share at least ``agree`` keys.

    In a bucket of n > ``max_bucket`` rows, at most ``max_bucket`` * n pairs are compared (6 n for a ``max_bucket``
    below 6): rows with similar ``signatures`` (see `near_pairs`), and the first rows (the longest texts, by the
    numbering of classes) with all others; without signatures only the latter. The pairs depend only on the rows of the
    bucket and their order. Skipped pairs are counted. ``documents``: number of documents of each row, 1 by default.
    """
    joint = joint_keys(keys, agree)
    sorted_rows, starts, sizes, names = _sorted_buckets(joint)
    codes = DistinctPairs()
    for block in small_groups(sorted_rows, starts, sizes, max_bucket):
        codes.add(block, len(keys))
    members = [sorted_rows[starts[one] : starts[one] + sizes[one]] for one in np.flatnonzero(sizes > max_bucket)]
    read = _BucketSignatures(signatures, members)
    large = []
    for name, rows in zip(names[sizes > max_bucket], members, strict=True):
        pairs = _chosen_pairs(rows, max_bucket, read)
        codes.add(pairs, len(keys))
        every = len(rows) * (len(rows) - 1) // 2
        count = len(rows) if documents is None else int(documents[rows].sum())
        bucket = _named(name, keys[rows[:1]], joint[rows[:1]], agree)
        large.append(Bucket(bucket, len(rows), len(pairs), every - len(pairs), count, _sample=_spread(rows)))
    left, right = np.divmod(codes.all(), max(len(keys), 1))
    large.sort(key=lambda bucket: (-bucket.size, bucket.key))
    return CandidatePairs(left.astype(np.intp), right.astype(np.intp), tuple(large))


def bucket_sizes(keys: U64, maximum: int = 10, agree: int = 1) -> list[tuple[str, int]]:
    """The keys (of ``agree`` bands each) that most rows share, and the numbers of these rows, largest first. Keys of a
    single row are left out."""
    joint = joint_keys(keys, agree)
    flat, counts = np.unique(joint[joint != 0], return_counts=True)
    order = np.argsort(-counts, kind="stable")[:maximum]
    return [(_named(flat[k], keys, joint, agree), int(counts[k])) for k in order if counts[k] > 1]


def _sorted_buckets(
    keys: U64,
) -> tuple[Positions, Positions, Positions, U64]:
    """Rows sorted by key; and for each run of equal keys its start, its length and the key.

    Rows ascend within a run. A row occurs once in a run, since the keys of a row differ in the position of the band.
    """
    flat = keys.reshape(-1)
    rows = np.repeat(np.arange(len(keys)), keys.shape[1])
    has_key = flat != 0
    flat, rows = flat[has_key], rows[has_key]
    order = np.argsort(flat, kind="stable")
    flat, rows = flat[order], rows[order]
    starts = np.flatnonzero(np.concatenate([[True], flat[1:] != flat[:-1]])) if len(flat) else np.zeros(0, np.intp)
    sizes = np.diff(np.append(starts, len(flat)))
    return rows, starts, sizes, flat[starts]


class _BucketSignatures:
    """The signatures of all members of large buckets, read once: a row is often in several buckets."""

    def __init__(self, read: ReadSignatures | None, members: list[Positions]) -> None:
        self._rows = np.unique(np.concatenate(members)) if members and read else np.zeros(0, np.intp)
        self._signatures = read(self._rows) if read and len(self._rows) else None

    def of(self, rows: Positions) -> Octets | None:
        """The signatures of these rows; None if there are no signatures."""
        return None if self._signatures is None else self._signatures[np.searchsorted(self._rows, rows)]


def _chosen_pairs(rows: Positions, maximum: int, signatures: _BucketSignatures) -> Positions:
    """The pairs of a large bucket that are compared, each once; shape (pairs, 2). ``rows`` ascend.

    Pairs with similar signatures come first. The rest of ``maximum`` comparisons per row, at least a quarter, is used
    to compare the first rows with all others.
    """
    size, codes = len(rows), DistinctPairs()
    of_rows = signatures.of(rows)
    for block in near_pairs(of_rows, maximum - maximum // 4) if of_rows is not None else ():
        codes.add(block, size)
    rest = maximum * size - len(codes.all())
    for block in first_with_all(size, max(1, rest // size)):
        codes.add(block, size)
    pairs: Positions = rows[np.stack(np.divmod(codes.all(), size), axis=1)]
    return pairs


def _spread(rows: Positions) -> tuple[int, ...]:
    return tuple(rows[np.linspace(0, len(rows) - 1, min(_SAMPLE, len(rows))).astype(np.intp)].tolist())


def _named(name: np.uint64, keys: U64, joint: U64, agree: int) -> str:
    """The band keys that a joint key consists of, taken from the first row that has it."""
    row, choice = np.argwhere(joint == name)[0]
    chosen = chosen_bands(keys.shape[1], agree)[choice]
    return "+".join(keys[row, band].tobytes().decode("latin-1") for band in chosen)


_NEIGHBOURS = 3
_CLUMPS = (3, 6)
"""Slots in which the members of a clump agree: few slots gather texts that are just similar enough, more slots separate
clusters that have boilerplate in common."""

_PER_ORDER = _NEIGHBOURS + len(_CLUMPS)
_COLUMNS = 16
"""Slots that determine an order; members that agree in all of them keep the order of principals."""

_SEED = 1


def near_pairs(signatures: Octets, maximum: int) -> Iterator[Positions]:
    """Pairs of members with similar signatures, in blocks of shape (pairs, 2), first < second. Pairs may be repeated.

    ``signatures`` have the shape (n, slots), with the members in the order of principals. There are at most
    ``maximum`` * n pairs (5 n for a ``maximum`` below 5). They depend only on the signatures and their order.
    """
    for sequence in _sequences(max(1, maximum // _PER_ORDER), signatures.shape[1]):
        leading, rest = np.ascontiguousarray(signatures[:, sequence]).view(">u8").astype(np.uint64).T
        order = np.lexsort((rest, leading))
        for distance in range(1, _NEIGHBOURS + 1):
            yield np.sort(np.stack((order[:-distance], order[distance:]), axis=1), axis=1)
        for slots in _CLUMPS:
            first = _representatives(order, leading[order] >> np.uint64(64 - 8 * slots))
            yield np.stack((first, order), axis=1)[first < order]


def _representatives(order: Positions, clumps: U64) -> Positions:
    """The representative of each member's clump; clumps are runs of equal numbers."""
    starts = np.flatnonzero(np.concatenate(([True], clumps[1:] != clumps[:-1])))
    return np.repeat(np.minimum.reduceat(order, starts), np.diff(starts, append=len(order)))


@lru_cache(maxsize=8)
def _sequences(number: int, slots: int) -> tuple[Positions, ...]:
    """``number`` sequences of slots, the same for all buckets: buckets with the same members choose the same pairs."""
    drawn = stream(_SEED, number * slots).reshape(number, slots)
    return tuple(np.resize(np.argsort(one), _COLUMNS) for one in drawn)


_SEARCHED = 100_000
"""Characters of a text in which a common passage is searched."""


def read_signatures(index: Index, corpus: FingerprintColumns, classes: TextClasses, numbers: Positions) -> Octets:
    """The stored signatures of classes, uint8[classes, slots].

    A signature that cannot be read (any more) is all zeros: such a text is compared with fewer or other texts.
    """
    slots = index.settings.scheme.permutations
    signatures = np.zeros((len(numbers), slots), np.uint8)
    references = (corpus.references[classes.members[number][0]] for number in numbers.tolist())
    for place, hit in enumerate(fetch(index.client, references, [index.fields.signature], batch=500)):
        signature = b"" if hit is None else _signature(stored_fields(hit.source, index.settings.prefix))
        if len(signature) == slots:
            signatures[place] = np.frombuffer(signature, np.uint8)
    return signatures


def _signature(stored: Mapping[str, Any]) -> bytes:
    try:
        return decode_signature(stored)
    except CorruptFingerprint:
        return b""


def _passage(index: Index, corpus: FingerprintColumns, classes: TextClasses, sample: Sequence[int]) -> str:
    """The beginning of the passage that the current texts of these classes share; "" if there is none."""
    references = [corpus.references[classes.members[number][0]] for number in sample]
    sources = ({} if hit is None else hit.source for hit in fetch(index.client, references, index.settings.fields))
    return beginning(common_passage([text_of(one, index.settings.fields)[:_SEARCHED] for one in sources]))
