"""Hashes of features, and groups of documents that share one: the candidate pairs of a request."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np

from es_neardupe.candidates.pair_arrays import DistinctPairs, small_groups
from es_neardupe.candidates.spill_to_disk import SpilledEntries
from es_neardupe.columns import Growing, GrowingReferences, References
from es_neardupe.index.document_text import values_by_field
from es_neardupe.keys.arrays import I32, U64, Ints, Positions
from es_neardupe.keys.bands import joint_keys
from es_neardupe.keys.hashing import mix64
from es_neardupe.progress import Progress, silent
from es_neardupe.records import DocumentsInScope, FingerprintColumns, Hit
from es_neardupe.similarity.features import FeatureTree, distinct, fields_of, hashes

LISTED = 100
"""Maximum number of skipped groups in a report, the largest ones."""

_SHOWN = 5
"""Maximum number of documents in each."""


@dataclass(frozen=True, slots=True)
class LargeGroup:
    """A hash that too many documents share."""

    size: int
    hash: int
    documents: tuple[int, ...]
    """The lowest numbers among them."""


@dataclass(frozen=True)
class HashGroups:
    """Groups of documents that share a hash, two or more each, and their candidate pairs."""

    left: I32
    """The lower number of each candidate pair. Pairs are distinct and in ascending order."""
    right: I32
    groups: int
    """Number of groups, including skipped ones."""
    skipped: int
    comparisons: int
    """Pairs in all groups that were not skipped. A pair in several of them counts for each."""
    skipped_comparisons: int
    """The same of those that were skipped."""
    largest: tuple[LargeGroup, ...]
    """The largest skipped groups, by size and then hash."""


def group_hashes(
    entries: SpilledEntries, numbers: Positions, max_group: int, progress: Progress = silent
) -> HashGroups:
    """Find the documents that share a hash. ``numbers``: the number of each row of the entries; shape (n,).

    The result does not depend on the order of the entries. Memory holds a part of the entries, and all pairs.
    """
    pairs = DistinctPairs(len(numbers))
    groups = skipped = comparisons = skipped_comparisons = done = 0
    largest: list[LargeGroup] = []
    progress("grouping hashes", 0, entries.total)
    for unsorted, rows in entries.pieces():
        done += len(unsorted)
        order = np.argsort(unsorted)
        hashes, members = unsorted[order], numbers[rows[order]]
        starts, sizes = _runs(hashes)
        small = sizes <= max_group
        groups += len(sizes)
        skipped += int((~small).sum())
        pairs_of = sizes * (sizes - 1) // 2
        comparisons += int(pairs_of[small].sum())
        skipped_comparisons += int(pairs_of[~small].sum())
        for block in small_groups(members, starts, sizes, max_group):
            pairs.add(np.sort(block, axis=1))
        largest = _largest(largest, hashes, members, starts[~small], sizes[~small])
        progress("grouping hashes", done, entries.total)
    left, right = pairs.taken()
    return HashGroups(left, right, groups, skipped, comparisons, skipped_comparisons, tuple(largest))


def _runs(hashes: U64) -> tuple[Positions, Positions]:
    """Start and length of each run of two or more equal hashes."""
    first = np.ones(len(hashes), np.bool_)
    np.not_equal(hashes[1:], hashes[:-1], out=first[1:])
    starts = np.flatnonzero(first)
    sizes = np.diff(np.append(starts, len(hashes)))
    return starts[sizes > 1], sizes[sizes > 1]


def _largest(
    known: list[LargeGroup], hashes: U64, members: Positions, starts: Positions, sizes: Positions
) -> list[LargeGroup]:
    """The largest of the known groups and of those that begin at ``starts``."""
    some = np.lexsort((hashes[starts], -sizes))[:LISTED]
    found = [
        LargeGroup(size, int(hashes[start]), tuple(np.sort(members[start : start + size])[:_SHOWN].tolist()))
        for start, size in zip(starts[some].tolist(), sizes[some].tolist(), strict=True)
    ]
    return sorted(known + found, key=lambda one: (-one.size, one.hash))[:LISTED]


def read_scope(
    pages: Iterable[Sequence[Hit]],
    tree: FeatureTree,
    entries: SpilledEntries,
    progress: Progress = silent,
    total: int = 0,
) -> DocumentsInScope:
    """Write the hashes of the distinct features of each document to ``entries``. Texts are not kept."""
    fields = fields_of(tree)
    references, versions, sizes = GrowingReferences(), Growing(np.int64, 2), Growing(np.int64)
    empty = 0
    progress("hashing features", 0, total)
    for page in pages:
        values = [values_by_field(hit.source, fields) for hit in page]
        first = len(references)
        references.extend([hit.reference for hit in page])
        versions.extend(np.array([(hit.seq_no or 0, hit.primary_term or 0) for hit in page], np.int64).reshape(-1, 2))
        sizes.extend([sum(len(value) for field in one.values() for value in field) for one in values])
        found = distinct(hashes(tree, values))
        counts = np.diff(found.bounds)
        entries.add(found.values, np.repeat(np.arange(first, first + len(page), dtype=np.uint32), counts))
        empty += int((counts == 0).sum())
        progress("hashing features", len(references), total)
    return _scope(references.taken(), versions.taken(), sizes.taken(), empty)


def enriched_scope(corpus: FingerprintColumns, agree: int, entries: SpilledEntries) -> DocumentsInScope:
    """Write the stored band keys of each document to ``entries``, combined if candidates share ``agree`` of them."""
    keys = joint_keys(corpus.keys[:], agree)
    rows = np.repeat(np.arange(len(corpus), dtype=np.uint32), keys.shape[1]).reshape(keys.shape)
    present = keys != 0
    entries.add(mix64(keys[present]), rows[present])  # mixed, because the characters of keys are in few ranges
    return _scope(corpus.references, corpus.versions[:], corpus.tokens, int((~present.any(axis=1)).sum()))


def _scope(references: References, versions: Ints, sizes: Ints, empty: int) -> DocumentsInScope:
    order = references.sorted(np.arange(len(references)))
    numbers = np.empty(len(order), np.intp)
    numbers[order] = np.arange(len(order))
    return DocumentsInScope(references.take(order), versions[order], sizes[order], numbers, empty)
