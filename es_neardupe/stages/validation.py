"""Stage: candidate pairs -> their similarity, by the present texts of the grouped documents, each read once."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from es_neardupe import documents
from es_neardupe.clients import Client
from es_neardupe.comparers import Comparer
from es_neardupe.fetch import fetch
from es_neardupe.graphs import components
from es_neardupe.progress import Progress, silent
from es_neardupe.records import Scope
from es_neardupe.spill import Rows, Scratch

__all__ = ["Validated", "validate"]

Numbers = NDArray[np.intp]
Floats = NDArray[np.float64]

_FETCH_DOCUMENTS = 500
_FETCH_CHARS = 4_000_000
_FIELD_CHARS = 200
"""Characters that a document is taken to have at least: other fields may be validated than were hashed."""

_BLOCK = 1_000_000
"""Numbers compared at a time: 8 MB of them, from each side."""


@dataclass(frozen=True)
class Validated:
    """The similarities of some pairs."""

    similarity: Floats
    """Of each; NaN where a document was deleted or changed since it was hashed."""
    sizes: NDArray[np.int64]
    """Numbers compared of each document; 0 of one that was not read. Shape (n,)."""
    read: int
    """Documents whose texts were read."""
    away: int
    """Of these, deleted or changed."""


def validate(
    client: Client,
    scope: Scope,
    left: Numbers,
    right: Numbers,
    *,
    comparer: Comparer,
    files: Scratch,
    progress: Progress = silent,
) -> Validated:
    """Compare pairs of documents by their present values. What is compared of each lies in a file if it is much.

    Clusters of connected pairs lie together; two blocks of documents are compared at a time, so that memory is bounded
    however the pairs are connected.
    """
    order = _in_clusters(len(scope.references), left, right)
    rows = Rows(files)
    there = _read(client, scope, order, comparer, rows=rows, progress=progress)
    places = np.zeros(len(scope.references), np.int32)
    places[order] = np.arange(len(order), dtype=np.int32)
    similarity = np.full(len(left), np.nan)
    both = np.flatnonzero(there[places[left]] & there[places[right]])
    done = len(left) - len(both)
    progress("validating pairs", done, len(left))
    for some, arrays, one, other in _blocks(rows, places[left[both]], places[right[both]]):
        told = _after(done, len(left), progress)
        similarity[both[some]] = comparer.scores(arrays, one, other, told)
        done += len(some)
        progress("validating pairs", done, len(left))
    sizes = np.zeros(len(scope.references), np.int64)
    sizes[order] = rows.lengths
    return Validated(similarity, sizes, len(order), int((~there).sum()))


def _after(before: int, pairs: int, progress: Progress) -> Progress:
    """Progress in a part of the pairs, told as that in all."""

    def told(stage: str, done: int, total: int | None) -> None:
        progress("validating pairs", before + done, pairs)

    return told


def _in_clusters(size: int, left: Numbers, right: Numbers) -> Numbers:
    """The documents that are in any pair, those that are connected one after the other."""
    there = np.zeros(size, np.bool_)
    there[left] = there[right] = True
    grouped = np.flatnonzero(there)
    return grouped[np.argsort(components(size, left, right)[grouped], kind="stable")] if len(grouped) else grouped


def _read(
    client: Client, scope: Scope, order: Numbers, comparer: Comparer, *, rows: Rows, progress: Progress
) -> NDArray[np.bool_]:
    """Lay aside what is compared of the documents; which of them are as they were, bool of their number."""
    there = np.zeros(len(order), np.bool_)
    done = 0
    progress("reading candidates", 0, len(order))
    for chunk in _fetches(order, scope.sizes):
        references = [scope.references[number] for number in chunk.tolist()]
        hits = list(fetch(client, references, comparer.fields))
        versions = [(-1, -1) if hit is None else (hit.seq_no or 0, hit.primary_term or 0) for hit in hits]
        unchanged = (np.array(versions, np.int64).reshape(-1, 2) == scope.versions[chunk]).all(axis=1)
        values = [
            documents.values_by_field(hit.source, comparer.fields) if hit is not None and same else {}
            for hit, same in zip(hits, unchanged.tolist(), strict=True)
        ]
        rows.add(comparer.arrays(values))
        there[done : done + len(chunk)] = unchanged
        done += len(chunk)
        progress("reading candidates", done, len(order))
    return there


def _fetches(order: Numbers, sizes: NDArray[np.int64]) -> Iterator[Numbers]:
    """Documents to ask for in one request: bounded in number and in text."""
    start = chars = 0
    for place, size in enumerate(np.maximum(sizes[order], _FIELD_CHARS).tolist()):
        if place > start and (place - start == _FETCH_DOCUMENTS or chars + size > _FETCH_CHARS):
            yield order[start:place]
            start, chars = place, 0
        chars += size
    if len(order):
        yield order[start:]


def _blocks(
    rows: Rows, left: NDArray[np.int32], right: NDArray[np.int32]
) -> Iterator[tuple[Numbers, list[NDArray[np.uint64]], Numbers, Numbers]]:
    """The pairs of places in portions: which pairs, the arrays they need, and the two sides among these."""
    block = (np.cumsum(rows.lengths + 1) // _BLOCK).astype(np.int32)
    edges = np.searchsorted(block, np.arange(int(block[-1]) + 2 if len(block) else 1))
    for some in _by_blocks(block[left], block[right]):
        places = np.unique(np.concatenate((left[some], right[some])))
        arrays = []
        for one in np.unique(block[places]).tolist():
            first, last = int(edges[one]), int(edges[one + 1])
            held = rows.read(first, last)
            arrays += [held[place - first] for place in places[(places >= first) & (places < last)].tolist()]
        yield some, arrays, np.searchsorted(places, left[some]), np.searchsorted(places, right[some])


def _by_blocks(left: NDArray[np.int32], right: NDArray[np.int32]) -> list[Numbers]:
    """The pairs that have the same two blocks, whichever side is in which."""
    if not len(left):
        return []
    code = np.minimum(left, right).astype(np.int64) << 32 | np.maximum(left, right)
    order = np.argsort(code, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(code[order])) + 1)
