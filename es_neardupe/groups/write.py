"""Updates that store groups in the documents, only where something changes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from typing import Any

from es_neardupe.errors import CorruptFingerprint
from es_neardupe.index.stored_fields import decode, encode_grouping, stored_fields
from es_neardupe.records import Action, FingerprintColumns, Grouping
from es_neardupe.server.bulk import BulkCounts, chunked, write
from es_neardupe.server.client import Client
from es_neardupe.server.search import fetch

__all__ = ["changes", "write_groups"]

_ROUNDS = 5


def changes(corpus: FingerprintColumns, groupings: Mapping[int, Grouping]) -> dict[int, Grouping]:
    """The rows whose stored grouping is another than the wanted one."""
    return {row: wanted for row, wanted in groupings.items() if not _same(corpus.groupings[row], wanted)}


def _same(stored: Grouping | None, wanted: Grouping) -> bool:
    """Equality; similarities may differ as far as a server that rebuilds ``_source`` from 32-bit floats does."""
    return (
        stored is not None
        and (stored.group, stored.principal) == (wanted.group, wanted.principal)
        and abs(stored.similarity - wanted.similarity) < 1e-6
    )


def write_groups(
    client: Client, corpus: FingerprintColumns, wanted: Mapping[int, Grouping], prefix: str, *, batch: int, workers: int
) -> BulkCounts:
    """Store groupings; counts written, deleted, refused and ``changed`` documents, and of the latter those that are
    ``unsettled``: still to be written, but somebody was faster each time.

    A document that somebody changed since it was read gets its grouping all the same if its fingerprint is still
    the one that was grouped; otherwise it is left for the next run.

    New principals are all stored before any other document: an id stays where its principal is, and if a former one
    stepped down before its successor is known, a run killed just then would leave nothing to tell where it belongs.
    """
    tally = BulkCounts()
    for principal in (True, False):
        part = {row: grouping for row, grouping in wanted.items() if grouping.principal is principal}
        _write_part(client, corpus, part, prefix, tally, batch=batch, workers=workers)
    return tally


def _write_part(
    client: Client,
    corpus: FingerprintColumns,
    wanted: Mapping[int, Grouping],
    prefix: str,
    tally: BulkCounts,
    *,
    batch: int,
    workers: int,
) -> None:
    """Store groupings in any order."""
    versions = {row: (int(corpus.versions[row, 0]), int(corpus.versions[row, 1])) for row in wanted}
    rows = {corpus.references[row][:2]: row for row in wanted}
    for _ in range(_ROUNDS):
        if not versions:
            break
        updates = (_update(corpus, row, version, wanted[row], prefix) for row, version in versions.items())
        conflicts = []
        for outcome in write(client, updates, batch=batch, workers=workers):
            if outcome.conflict:
                conflicts.append(rows[outcome.action.address])
            else:
                tally.add(outcome)
        versions = dict(_again(client, corpus, conflicts, prefix, tally.counts))
    tally.counts["changed"] += len(versions)
    tally.counts["unsettled"] += len(versions)


def _again(
    client: Client, corpus: FingerprintColumns, rows: Iterable[int], prefix: str, counts: Counter[str]
) -> Iterator[tuple[int, tuple[int, int]]]:
    """The rows of conflicts that may be written again, with the version they have now."""
    for chunk in chunked(rows, 100):
        references = [corpus.references[row] for row in chunk]
        for row, hit in zip(chunk, fetch(client, references, [prefix]), strict=True):
            if hit is None:
                counts["deleted"] += 1
            elif _content(stored_fields(hit.source, prefix)) != corpus.content[row]:
                counts["changed"] += 1
            else:
                yield row, (hit.seq_no or 0, hit.primary_term or 0)


def _content(stored: Mapping[str, Any]) -> bytes | None:
    """The content hash that a document bears now; None if it has no readable fingerprint any more."""
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
    )
