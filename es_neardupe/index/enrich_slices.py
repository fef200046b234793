"""Fingerprints of an index, written by tasks on the workers of an engine: a slice of the documents each.

Slices are disjoint, so no two tasks write the same document. A task that runs again, because its worker was lost, finds
the documents that were already written as current.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

from es_neardupe.engines.chosen import until_cancelled
from es_neardupe.engines.engine import Engine
from es_neardupe.index.index import Index
from es_neardupe.index.index_on_workers import IndexOnWorkers
from es_neardupe.index.storage.interface import EnrichRequest, EnrichResult, Send
from es_neardupe.options import MAX_SLICES
from es_neardupe.server.bulk import pretend, write

_PER_WORKER = 4
"""Slices for each task that runs at a time: less is done again after the loss of a worker, and all end together."""


@dataclass(frozen=True)
class _Enriching:
    """What the tasks have in common."""

    index: IndexOnWorkers
    request: EnrichRequest
    slices: int
    batch: int
    workers: int


def enrich_slices(
    index: Index, engine: Engine, batch: int, workers: int, request: EnrichRequest
) -> Iterator[EnrichResult]:
    """The results of all slices. ``batch`` and ``workers`` are those of the writes of each task."""
    slices = min(_PER_WORKER * engine.workers, MAX_SLICES)
    shared = _Enriching(IndexOnWorkers.of(index, engine.workers), request, slices, batch, workers)
    return (result for _, result in engine.run(_enrich_slice, shared, range(1, slices + 1)))


def _enrich_slice(shared: _Enriching, number: int) -> EnrichResult:
    """Task: write the fingerprints of a slice."""
    index, request = shared.index.opened(), replace(shared.request, slice=(number, shared.slices), slices=1, task=True)
    send: Send = partial(write, index.client, batch=shared.batch, workers=shared.workers, versions=True)
    return index.storage.write_fingerprints(request, pretend if request.dry_run else send, until_cancelled())
