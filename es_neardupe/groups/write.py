"""Updates that store groups in the documents, only if something changes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from es_neardupe.candidates.pair_arrays import blocks
from es_neardupe.errors import CorruptFingerprint
from es_neardupe.index.storage.field_writes import Change, FieldWriter
from es_neardupe.index.stored_fields import decode, decode_grouping, encode_grouping, stored_fields, text_bytes
from es_neardupe.keys.text import hash_text
from es_neardupe.records import FingerprintColumns, Grouping, Groupings, Hit, Outcome
from es_neardupe.server.bulk import BulkCounts, chunked, write
from es_neardupe.server.search import fetch

_ROUNDS = 5
_PRECISION = 1e-6
_CHANGED = "its text was changed during the run"
_ROWS = 1 << 16
"""Rows compared at a time."""


def changes(corpus: FingerprintColumns, groupings: Groupings) -> Groupings:
    """The new groupings of rows that differ from the stored ones; similarities differ by more than the error of 32-bit
    floats, from which some servers rebuild ``_source``."""
    group_of = np.full(len(corpus), -1, np.int32)
    for some in blocks(len(corpus), _ROWS):
        rows = np.flatnonzero(groupings.group_of[some] >= 0) + some.start
        same = corpus.leading[rows] == groupings.leading(rows)
        same &= np.abs(corpus.similarity[rows] - groupings.similarity[rows]) < _PRECISION
        same &= corpus.group_ids[rows] == groupings.ids[groupings.group_of[rows]]
        changed = rows[~same]
        group_of[changed] = groupings.group_of[changed]
    return Groupings(group_of, groupings.similarity, groupings.principals, groupings.ids)


def _same(stored: Grouping | None, new: Grouping) -> bool:
    """Whether both are equal, as in `changes`."""
    return (
        stored is not None
        and (stored.group, stored.principal) == (new.group, new.principal)
        and abs(stored.similarity - new.similarity) < _PRECISION
    )


def write_groups(
    writer: FieldWriter,
    corpus: FingerprintColumns,
    groupings: Groupings,
    *,
    batch: int,
    workers: int,
    note: Callable[[Outcome], None] = lambda outcome: None,
) -> BulkCounts:
    """Store groupings. Counts written, deleted, refused and changed documents (``conflicts``), and of the latter the
    ``unsettled`` ones: given up because another client changed them each time. ``failed`` ones are those of the writer.
    ``note`` is called with each write.

    A document that another client has changed since it was read still gets its grouping if its fingerprint is the one
    that was grouped; otherwise it is left for the next run.

    All new principals are stored before any other document: an id stays with the group of its principal. If a run is
    killed after a former principal was overwritten and before the new one is stored, nothing shows whose id it is.
    """
    written = BulkCounts()
    rows = groupings.rows
    leading = groupings.leading(rows)
    for part in (rows[leading], rows[~leading]):
        _write_part(writer, corpus, groupings.only(part), written, batch=batch, workers=workers, note=note)
    written.add_failed(writer.failed.values(), writer.failures)
    return written


def _write_part(
    writer: FieldWriter,
    corpus: FingerprintColumns,
    groupings: Groupings,
    written: BulkCounts,
    *,
    batch: int,
    workers: int,
    note: Callable[[Outcome], None],
) -> None:
    """Store groupings in any order."""
    documents: Iterable[tuple[int, Change]] = _documents(corpus, groupings)
    again: list[tuple[int, Change]] = []
    for _ in range(_ROUNDS):
        changes = (one._replace(fields=encode_grouping(groupings[row])) for row, one in documents)
        conflicts = set()
        for outcome in write(writer.client, writer.writes(changes), batch=batch, workers=workers, versions=True):
            if outcome.conflict:
                writer.note_conflict(outcome.action)
                conflicts.add(outcome.action.address)
            else:
                written.add(outcome)
                note(outcome)
        if not conflicts:
            return
        rows = np.array([row for row in groupings if corpus.address(row) in conflicts], np.intp)
        documents = again = list(_retryable(writer, corpus, groupings.only(rows), written))
    written.add_conflicts(change.hit.reference for _, change in again)
    written.counts["unsettled"] += len(again)


def _retryable(
    writer: FieldWriter, corpus: FingerprintColumns, groupings: Groupings, written: BulkCounts
) -> Iterator[tuple[int, Change]]:
    """The rows with a conflict that may be written again, each with its current document. Counts the others, among them
    those that have the grouping already: the server wrote it, but its answer was lost."""
    prefix, counts = writer.settings.prefix, written.counts
    for chunk in chunked(groupings, 100):
        references = [corpus.references[row] for row in chunk]
        found = fetch(writer.client, references, [prefix], batch=100)
        for row, reference, hit in zip(chunk, references, found, strict=True):
            if hit is None:
                counts["deleted"] += 1
            elif _content(stored_fields(hit.source, prefix)) != hash_text(corpus.content[row]):
                written.add_conflicts([reference], _CHANGED)
            elif _same(decode_grouping(stored_fields(hit.source, prefix)), groupings[row]):
                counts["written"] += 1
                counts["whole"] += writer.wrote_whole(hit.address)
            else:
                current = replace(hit, shard=_shard(corpus, row))
                yield row, Change(current, {}, document_bytes=text_bytes(int(corpus.tokens[row])))


def _content(stored: Mapping[str, Any]) -> str | None:
    """The stored content hash of a document; None without a readable fingerprint."""
    try:
        return decode(stored).content
    except CorruptFingerprint:
        return None


def _shard(corpus: FingerprintColumns, row: int) -> int | None:
    """The number of the shard of a document; None if it is unknown."""
    shard = int(corpus.shards[row])
    return None if shard < 0 else shard


def _documents(corpus: FingerprintColumns, groupings: Groupings) -> Iterator[tuple[int, Change]]:
    """The rows with their documents, without fields."""
    for some in blocks(len(corpus), _ROWS):
        rows = np.flatnonzero(groupings.group_of[some] >= 0) + some.start
        columns = (rows, corpus.versions[rows], corpus.checked[rows], corpus.shards[rows], corpus.tokens[rows])
        for row, version, checked, number, tokens in zip(*(one.tolist() for one in columns), strict=True):
            index, id, routing = corpus.references[row]
            seq_no, primary_term = version
            shard = None if number < 0 else number
            hit = Hit(index, id, routing, seq_no, primary_term, {}, version=checked or None, shard=shard)
            yield row, Change(hit, {}, checked=checked > 0, document_bytes=text_bytes(tokens))
