"""Updates that store groups in the documents, only if something changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from es_neardupe.errors import CorruptFingerprint
from es_neardupe.index.stored_fields import decode, encode_grouping, stored_fields, text_bytes
from es_neardupe.records import Action, FingerprintColumns, Grouping
from es_neardupe.server.bulk import BulkCounts, chunked, write
from es_neardupe.server.client import Client
from es_neardupe.server.search import fetch

__all__ = ["changes", "write_groups"]

_ROUNDS = 5


def changes(corpus: FingerprintColumns, groupings: Mapping[int, Grouping]) -> dict[int, Grouping]:
    """The new groupings of rows that differ from the stored ones."""
    return {row: grouping for row, grouping in groupings.items() if not _same(corpus.groupings[row], grouping)}


def _same(stored: Grouping | None, new: Grouping) -> bool:
    """Whether both are equal; similarities up to the error of 32-bit floats, from which some servers rebuild
    ``_source``."""
    return (
        stored is not None
        and (stored.group, stored.principal) == (new.group, new.principal)
        and abs(stored.similarity - new.similarity) < 1e-6
    )


def write_groups(
    client: Client,
    corpus: FingerprintColumns,
    groupings: Mapping[int, Grouping],
    prefix: str,
    *,
    batch: int,
    workers: int,
) -> BulkCounts:
    """Store groupings. Counts written, deleted, refused and ``changed`` documents, and of the latter the ``unsettled``
    ones: given up because another client changed them each time.

    A document that another client has changed since it was read still gets its grouping if its fingerprint is the one
    that was grouped; otherwise it is left for the next run.

    All new principals are stored before any other document: an id stays with the group of its principal. If a run is
    killed after a former principal was overwritten and before the new one is stored, nothing shows whose id it is.
    """
    written = BulkCounts()
    for principal in (True, False):
        part = {row: grouping for row, grouping in groupings.items() if grouping.principal is principal}
        _write_part(client, corpus, part, prefix, written, batch=batch, workers=workers)
    return written


def _write_part(
    client: Client,
    corpus: FingerprintColumns,
    groupings: Mapping[int, Grouping],
    prefix: str,
    written: BulkCounts,
    *,
    batch: int,
    workers: int,
) -> None:
    """Store groupings in any order."""
    versions = {row: (int(corpus.versions[row, 0]), int(corpus.versions[row, 1])) for row in groupings}
    rows = {corpus.references[row][:2]: row for row in groupings}
    for _ in range(_ROUNDS):
        if not versions:
            break
        updates = (_update(corpus, row, version, groupings[row], prefix) for row, version in versions.items())
        conflicts = []
        for outcome in write(client, updates, batch=batch, workers=workers):
            if outcome.conflict:
                conflicts.append(rows[outcome.action.address])
            else:
                written.add(outcome)
        versions = dict(_retryable(client, corpus, conflicts, prefix, written.counts))
    written.counts["changed"] += len(versions)
    written.counts["unsettled"] += len(versions)


def _retryable(
    client: Client, corpus: FingerprintColumns, rows: Iterable[int], prefix: str, counts: Counter[str]
) -> Iterator[tuple[int, tuple[int, int]]]:
    """The rows with a conflict that may be written again, each with its current version. Counts the others."""
    for chunk in chunked(rows, 100):
        references = [corpus.references[row] for row in chunk]
        for row, hit in zip(chunk, fetch(client, references, [prefix], batch=100), strict=True):
            if hit is None:
                counts["deleted"] += 1
            elif _content(stored_fields(hit.source, prefix)) != corpus.content[row]:
                counts["changed"] += 1
            else:
                yield row, (hit.seq_no or 0, hit.primary_term or 0)


def _content(stored: Mapping[str, Any]) -> bytes | None:
    """The stored content hash of a document; None without a readable fingerprint."""
    try:
        return decode(stored).content.encode()
    except CorruptFingerprint:
        return None


def _update(corpus: FingerprintColumns, row: int, version: tuple[int, int], grouping: Grouping, prefix: str) -> Action:
    index, id, routing = corpus.references[row]
    return Action(
        op="update",
        index=index,
        id=id,
        body={"doc": {prefix: encode_grouping(grouping)}},
        routing=routing,
        seq_no=version[0],
        primary_term=version[1],
        document_bytes=text_bytes(int(corpus.tokens[row])),
    )
