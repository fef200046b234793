"""Candidate pairs: documents that share band keys, joined by one sort of the keys of each band.

A key contains the position of its band, so no bucket has keys of two bands. If several bands must agree, every choice
of that many bands is a key of its own (`joint_key`). So only pairs that share enough keys are made, and a bucket
consists of the rows that share all keys of a choice.

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

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache, partial

import numpy as np

from es_neardupe.candidates.keys_on_workers import KeysOnWorkers
from es_neardupe.candidates.large_buckets import Bucket, LargeBuckets
from es_neardupe.candidates.pair_arrays import DistinctPairs, buckets, first_with_all
from es_neardupe.candidates.who_may_meet import DEFAULT_RULES, GroupRules
from es_neardupe.display_text import beginning
from es_neardupe.index.document_text import prepared_text
from es_neardupe.index.index import Index
from es_neardupe.index.stored_fields import signature_of, stored_fields
from es_neardupe.keys.arrays import I32, U64, Flags, Numbers, Octets, Positions
from es_neardupe.keys.bands import chosen_bands, joint_key, joint_keys
from es_neardupe.keys.hashing import stream
from es_neardupe.options import DEFAULT_MAX_BUCKET
from es_neardupe.records import BandKeys, FingerprintColumns, TextClasses
from es_neardupe.similarity.common_passages import common_passage

_WITH_PASSAGES = 20
"""Number of large buckets for which a common passage is determined: the largest ones."""

_SAMPLE = 6
"""Members of a large bucket in which a common passage is searched."""

CheckPairs = Callable[[int, int], None]
"""Called with the number of pairs whenever it may have grown, and the number of texts in the largest bucket whose pairs
are among them; 0 before those of large buckets."""

ReadSignatures = Callable[[Positions], Octets]
"""Numbers of classes -> their signatures, uint8[classes, slots]."""


@dataclass(frozen=True)
class CandidatePairs:
    """Pairs of class numbers, ``left < right``, each once, in ascending order: 8 bytes each."""

    left: I32
    right: I32
    in_buckets: LargeBuckets

    def __len__(self) -> int:
        return len(self.left)

    @property
    def large(self) -> tuple[Bucket, ...]:
        """The large buckets, largest first."""
        return self._counted[0]

    @property
    def skipped(self) -> int:
        """Pairs in large buckets that are no candidates. A pair counts once, however many buckets it is in."""
        return self._counted[1]

    @cached_property
    def _counted(self) -> tuple[tuple[Bucket, ...], int]:
        return self.in_buckets.counted(self.left, self.right)

    def only(self, kept: Flags, among: Flags | None = None) -> CandidatePairs:
        """The pairs selected by ``kept``, bool[pairs]. ``among``, bool[classes]: the run concerns only pairs with at
        least one of these classes, so no others count as skipped."""
        return CandidatePairs(self.left[kept], self.right[kept], replace(self.in_buckets, among=among))


def candidate_pairs(
    index: Index,
    corpus: FingerprintColumns,
    classes: TextClasses,
    rules: GroupRules = DEFAULT_RULES,
    check: CheckPairs = lambda pairs, bucket: None,
) -> CandidatePairs:
    """The pairs of classes that share enough keys for the scheme and are allowed by the rules. In buckets larger than
    ``max_bucket``, pairs are chosen by the stored signatures. No text is read. ``check``: see `CheckPairs`."""
    signatures = partial(read_signatures, index, corpus, classes)
    agree = index.settings.scheme.agree
    found = find_candidates(
        corpus.keys, rules.max_bucket, signatures, classes.sizes, agree, rows=classes.first, check=check
    )
    if not rules.restrict:
        return found
    first = classes.first
    return found.only(rules.allow(corpus, first[found.left], first[found.right]))


def with_passages(
    index: Index, corpus: FingerprintColumns, classes: TextClasses, large: tuple[Bucket, ...]
) -> tuple[Bucket, ...]:
    """The large buckets, the largest of them with the passage that the current texts of their sample share."""
    largest = (replace(one, passage=_passage(index, corpus, classes, one.sample)) for one in large[:_WITH_PASSAGES])
    return (*largest, *large[_WITH_PASSAGES:])


def find_candidates(
    keys: BandKeys,
    max_bucket: int = DEFAULT_MAX_BUCKET,
    signatures: ReadSignatures | None = None,
    documents: Numbers | None = None,
    agree: int = 1,
    *,
    rows: Numbers | None = None,
    check: CheckPairs = lambda pairs, bucket: None,
) -> CandidatePairs:
    """All pairs of the k rows of ``keys`` (shape (n, b), 0 = no key) that share at least ``agree`` keys. They are
    numbered as in ``rows``; by default these are all rows.

    In a bucket of n > ``max_bucket`` rows, at most ``max_bucket`` * n pairs are compared (6 n for a ``max_bucket``
    below 6): rows with similar ``signatures`` (see `near_pairs`), and the first rows (the longest texts, by the
    numbering of classes) with all others; without signatures only the latter. The pairs depend only on the rows of the
    bucket and their order. Skipped pairs are counted. ``check``: see `CheckPairs`.
    ``documents``: number of documents of each row, 1 by default.
    """
    size = len(keys) if rows is None else len(rows)
    largest = 0
    pairs = DistinctPairs(size, lambda number: check(number, largest))
    large: list[_LargeBucket] = []
    choices = chosen_bands(keys.shape[1], agree)
    if isinstance(keys, KeysOnWorkers):
        for found in keys.joined(rows, choices, max_bucket):
            pairs.add(np.stack(found.pairs, axis=1).astype(np.int64))
            large += [_LargeBucket(*one) for one in found.large]
    else:
        for choice, chosen in enumerate(choices):
            joint = joint_key([keys[:, band] if rows is None else keys[:, band][rows] for band in chosen])
            for small, others in buckets(joint, None, max_bucket):
                for block in small:
                    pairs.add(block)
                large += [_LargeBucket(key, choice, members) for key, members in others]
    large.sort(key=lambda bucket: bucket.key)
    largest = max((len(bucket.members) for bucket in large), default=0)
    read = _BucketSignatures(signatures, [bucket.members for bucket in large])
    for bucket in large:
        for block in _chosen_pairs(bucket.members, max_bucket, read):
            pairs.add(block)
    in_buckets = _large_buckets(large, keys, rows, documents=documents, size=size, agree=agree)
    return CandidatePairs(*pairs.taken(), in_buckets)


@dataclass(frozen=True)
class _LargeBucket:
    """A joint key that more than ``max_bucket`` rows share."""

    key: np.uint64
    choice: int
    """Number of the choice of bands."""
    members: I32
    """Ascending."""


def _large_buckets(
    large: Sequence[_LargeBucket],
    keys: BandKeys,
    rows: Numbers | None,
    *,
    documents: Numbers | None,
    size: int,
    agree: int,
) -> LargeBuckets:
    """The description of large buckets. Other arguments: see `find_candidates`."""
    inside = np.unique(np.concatenate([np.zeros(0, np.int32), *(bucket.members for bucket in large)]))
    choices = chosen_bands(keys.shape[1], agree)
    member = np.zeros((len(inside), len(choices)), np.int32)
    described = []
    for number, bucket in enumerate(large, 1):
        member[np.searchsorted(inside, bucket.members), bucket.choice] = number
        first = keys[bucket.members[0] if rows is None else rows[bucket.members[0]]]
        name = "+".join(first[band].tobytes().decode("latin-1") for band in choices[bucket.choice])
        count = len(bucket.members) if documents is None else int(documents[bucket.members].sum())
        described.append(Bucket(name, len(bucket.members), 0, 0, count, _sample=_spread(bucket.members)))
    return LargeBuckets(tuple(described), inside, member, size)


def bucket_sizes(keys: U64, maximum: int = 10, agree: int = 1) -> list[tuple[str, int]]:
    """The keys (of ``agree`` bands each) that most rows share, and the numbers of these rows, largest first. Keys of a
    single row are left out."""
    joint = joint_keys(keys, agree)
    flat, counts = np.unique(joint[joint != 0], return_counts=True)
    order = np.argsort(-counts, kind="stable")[:maximum]
    return [(_named(flat[k], keys, joint, agree), int(counts[k])) for k in order if counts[k] > 1]


class _BucketSignatures:
    """The signatures of all members of large buckets, read once: a row is often in several buckets."""

    def __init__(self, read: ReadSignatures | None, members: Sequence[Numbers]) -> None:
        self._rows = np.unique(np.concatenate(members)).astype(np.intp) if members and read else np.zeros(0, np.intp)
        self._signatures = read(self._rows) if read and len(self._rows) else None

    def of(self, rows: Numbers) -> Octets | None:
        """The signatures of these rows; None if there are no signatures."""
        return None if self._signatures is None else self._signatures[np.searchsorted(self._rows, rows)]


def _chosen_pairs(rows: Numbers, maximum: int, signatures: _BucketSignatures) -> Iterator[Numbers]:
    """The pairs of a large bucket that are compared, each once, in blocks of shape (pairs, 2). ``rows`` ascend.

    Pairs with similar signatures come first. The rest of ``maximum`` comparisons per row, at least a quarter, is used
    to compare the first rows with all others.
    """
    size, chosen = len(rows), DistinctPairs(len(rows))
    of_rows = signatures.of(rows)
    for block in near_pairs(of_rows, maximum - maximum // 4) if of_rows is not None else ():
        chosen.add(block)
    rest = maximum * size - len(chosen)
    for block in first_with_all(size, max(1, rest // size)):
        chosen.add(block)
    for block in chosen.blocks():
        yield rows[block]


def _spread(rows: Numbers) -> tuple[int, ...]:
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
    references = (corpus.references[row] for row in classes.first_of(numbers).tolist())
    for place, hit in enumerate(index.documents.fetch(references, [index.fields.signature], batch=500)):
        signature = b"" if hit is None else signature_of(stored_fields(hit.source, index.settings.prefix))
        if len(signature) == slots:
            signatures[place] = np.frombuffer(signature, np.uint8)
    return signatures


def _passage(index: Index, corpus: FingerprintColumns, classes: TextClasses, sample: Sequence[int]) -> str:
    """The beginning of the passage that the current texts of these classes share; "" if there is none."""
    references = [corpus.references[row] for row in classes.first_of(sample).tolist()]
    sources = ({} if hit is None else hit.source for hit in index.documents.fetch(references, index.settings.fields))
    return beginning(common_passage([prepared_text(one, index.settings)[:_SEARCHED] for one in sources]))
