"""Candidate pairs: documents that share band keys, joined in memory by one sort of all keys.

Where several bands must agree, every choice of so many of them is a key of its own (`joint_keys`): only pairs that
share enough are ever made, and a bucket are the rows that share all keys of a choice.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial

import numpy as np

from es_neardupe.candidates.large_buckets import near_pairs, passages, read_signatures
from es_neardupe.candidates.pair_arrays import DistinctPairs, first_with_all, small_groups
from es_neardupe.candidates.who_may_meet import DEFAULT_RULES, GroupRules
from es_neardupe.index.index import Index
from es_neardupe.keys.arrays import U8, U64, Flags, Ints, Positions
from es_neardupe.keys.bands import chosen_bands, joint_keys
from es_neardupe.options import DEFAULT_MAX_BUCKET
from es_neardupe.records import FingerprintColumns, TextClasses

__all__ = [
    "SAMPLE",
    "Bucket",
    "CandidatePairs",
    "Signatures",
    "bucket_sizes",
    "candidate_pairs",
    "find_candidates",
    "with_passages",
]

_WITH_PASSAGES = 20
"""Large buckets whose texts are looked at for what they have in common: the largest ones."""

SAMPLE = 6
"""Members of a large bucket that are named, to tell by their texts what they have in common."""

Signatures = Callable[[Positions], U8]
"""Class numbers -> their signatures, uint8[classes, slots]."""


@dataclass(frozen=True, slots=True)
class Bucket:
    """A band key that more classes share than ``max_bucket``."""

    key: str
    """Where several bands must agree, as many keys, joined by ``+``."""
    size: int
    compared: int
    """Pairs that became candidates through this key."""
    skipped: int
    """Pairs of this bucket that did not; some may be candidates through another key."""
    documents: int = 0
    """Documents of these classes, exact copies included."""
    passage: str = ""
    """What the texts have in common, or its beginning; empty where nobody looked or there is no such passage."""
    _sample: tuple[int, ...] = field(default=(), compare=False)

    @property
    def sample(self) -> tuple[int, ...]:
        """Some of the classes, spread over all of them."""
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
        """Comparisons left out in large buckets, a pair counted once for each of them."""
        return sum(bucket.skipped for bucket in self.large)

    def only(self, kept: Flags) -> CandidatePairs:
        """Some of the pairs (bool of their number)."""
        return replace(self, left=self.left[kept], right=self.right[kept])


def candidate_pairs(
    index: Index, corpus: FingerprintColumns, classes: TextClasses, rules: GroupRules = DEFAULT_RULES
) -> CandidatePairs:
    """The pairs of classes that share as many keys as the scheme asks for and may meet by the rules; in buckets over
    ``max_bucket`` those that the stored signatures choose. No text is read."""
    documents = np.array([len(rows) for rows in classes.members], np.int64)
    signatures = partial(read_signatures, index, corpus, classes)
    agree = index.settings.scheme.agree
    found = find_candidates(corpus.keys[classes.first], rules.max_bucket, signatures, documents, agree)
    if rules.within is None and rules.window is None:
        return found
    first = classes.first
    a, b = first[found.left], first[found.right]
    may = corpus.scopes[a] == corpus.scopes[b]
    if rules.window is not None:
        may &= np.abs(corpus.days[a] - corpus.days[b]) <= rules.window.days
    return found.only(may)


def with_passages(
    index: Index, corpus: FingerprintColumns, classes: TextClasses, large: tuple[Bucket, ...]
) -> tuple[Bucket, ...]:
    """The large buckets; the largest of them with what their texts have in common."""
    some = large[:_WITH_PASSAGES]
    shared = passages(index, corpus, classes, [one.sample for one in some])
    return (*(replace(one, passage=text) for one, text in zip(some, shared, strict=True)), *large[_WITH_PASSAGES:])


def find_candidates(
    keys: U64,
    max_bucket: int = DEFAULT_MAX_BUCKET,
    signatures: Signatures | None = None,
    documents: Ints | None = None,
    agree: int = 1,
) -> CandidatePairs:
    """All pairs of rows of ``keys`` (shape (k, b), 0 = no key) that share ``agree`` keys or more.

    In a bucket of n > ``max_bucket`` rows at most ``max_bucket`` * n pairs are compared (6 n for a ``max_bucket`` below
    6): rows whose ``signatures`` are near (see `near_pairs`), and the first rows (the longest texts, by the numbering
    of classes) with all others; without signatures only the latter. The pairs depend on the bucket's rows in their
    order, and on nothing else in ``keys``. What was left out is counted. ``documents``: how many each row stands for, 1
    by default.
    """
    joint = joint_keys(keys, agree)
    sorted_rows, starts, sizes, names = _sorted_buckets(joint)
    codes = DistinctPairs()
    for block in small_groups(sorted_rows, starts, sizes, max_bucket):
        codes.add(block, len(keys))
    members = [sorted_rows[starts[one] : starts[one] + sizes[one]] for one in np.flatnonzero(sizes > max_bucket)]
    read = _Signatures(signatures, members)
    large = []
    for name, rows in zip(names[sizes > max_bucket], members, strict=True):
        pairs = _refined(rows, max_bucket, read)
        codes.add(pairs, len(keys))
        every = len(rows) * (len(rows) - 1) // 2
        count = len(rows) if documents is None else int(documents[rows].sum())
        bucket = _named(name, keys[rows[:1]], joint[rows[:1]], agree)
        large.append(Bucket(bucket, len(rows), len(pairs), every - len(pairs), count, _sample=_spread(rows)))
    left, right = np.divmod(codes.all(), max(len(keys), 1))
    large.sort(key=lambda bucket: (-bucket.size, bucket.key))
    return CandidatePairs(left.astype(np.intp), right.astype(np.intp), tuple(large))


def bucket_sizes(keys: U64, maximum: int = 10, agree: int = 1) -> list[tuple[str, int]]:
    """The keys (of ``agree`` bands each) that most rows share, with how many, largest first; only those that two or
    more share."""
    joint = joint_keys(keys, agree)
    flat, counts = np.unique(joint[joint != 0], return_counts=True)
    order = np.argsort(-counts, kind="stable")[:maximum]
    return [(_named(flat[k], keys, joint, agree), int(counts[k])) for k in order if counts[k] > 1]


def _sorted_buckets(
    keys: U64,
) -> tuple[Positions, Positions, Positions, U64]:
    """Rows sorted by key, and where each run of an equal key begins, how long it is, and the key.

    Within a run rows ascend. A row stands in a run once, since its keys differ in the band's position.
    """
    flat = keys.reshape(-1)
    rows = np.repeat(np.arange(len(keys)), keys.shape[1])
    there = flat != 0
    flat, rows = flat[there], rows[there]
    order = np.argsort(flat, kind="stable")
    flat, rows = flat[order], rows[order]
    starts = np.flatnonzero(np.concatenate([[True], flat[1:] != flat[:-1]])) if len(flat) else np.zeros(0, np.intp)
    sizes = np.diff(np.append(starts, len(flat)))
    return rows, starts, sizes, flat[starts]


class _Signatures:
    """The signatures of all members of large buckets, read at once: a row is often in several of them."""

    def __init__(self, read: Signatures | None, members: list[Positions]) -> None:
        self._rows = np.unique(np.concatenate(members)) if members and read else np.zeros(0, np.intp)
        self._found = read(self._rows) if read and len(self._rows) else None

    def of(self, rows: Positions) -> U8 | None:
        """Those of some rows; None if there are no signatures."""
        return None if self._found is None else self._found[np.searchsorted(self._rows, rows)]


def _refined(rows: Positions, maximum: int, signatures: _Signatures) -> Positions:
    """The pairs of a large bucket that are compared, each once; shape (pairs, 2). ``rows`` ascend.

    First come those that are near by their signatures. What that leaves of ``maximum`` comparisons a row, at least a
    quarter, goes to the first rows, which are compared with all.
    """
    size, codes = len(rows), DistinctPairs()
    own = signatures.of(rows)
    for block in near_pairs(own, maximum - maximum // 4) if own is not None else ():
        codes.add(block, size)
    left = maximum * size - len(codes.all())
    for block in first_with_all(size, max(1, left // size)):
        codes.add(block, size)
    pairs: Positions = rows[np.stack(np.divmod(codes.all(), size), axis=1)]
    return pairs


def _spread(rows: Positions) -> tuple[int, ...]:
    return tuple(rows[np.linspace(0, len(rows) - 1, min(SAMPLE, len(rows))).astype(np.intp)].tolist())


def _named(name: np.uint64, keys: U64, joint: U64, agree: int) -> str:
    """The band keys that a joint key is made of, by the first row that has it."""
    row, choice = np.argwhere(joint == name)[0]
    chosen = chosen_bands(keys.shape[1], agree)[choice]
    return "+".join(keys[row, band].tobytes().decode("latin-1") for band in chosen)
