"""An opened index as tasks get it: where it is, its settings, and how a worker connects, without credentials."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from functools import lru_cache, partial
from typing import Any
from uuid import uuid4

from es_neardupe.engines.chosen import until_cancelled
from es_neardupe.engines.engine import Engine
from es_neardupe.errors import ConnectError, EngineError, SettingsError
from es_neardupe.index.index import Index
from es_neardupe.index.storage.interface import EnrichRequest, EnrichResult, Send
from es_neardupe.index.target import IndexTarget
from es_neardupe.options import MAX_SLICES
from es_neardupe.server.bulk import pretend
from es_neardupe.server.client import Client
from es_neardupe.server.connect import connect
from es_neardupe.server.login.resolve import resolve_settings
from es_neardupe.server.login.settings import ConnectionSettings
from es_neardupe.wording import option

_OPENED = 4
"""Indices that a worker keeps open, for the runs that use it."""


@dataclass(frozen=True)
class IndexOnWorkers:
    """An opened index, to be pickled. Equal copies have the same number."""

    number: str
    url: str = field(compare=False)
    options: Mapping[str, Any] | None = field(compare=False, repr=False)
    """See `es_neardupe.server.client.Client.options`."""
    target: IndexTarget = field(compare=False, repr=False)
    max_rate: float | None = field(compare=False)
    max_load: int | None = field(compare=False)

    @classmethod
    def of(cls, index: Index, workers: int) -> IndexOnWorkers:
        """A copy of an opened index for tasks. ``workers``: they share the limits of the connection."""
        client = index.server
        if client.server.is_collection:
            raise SettingsError(
                f"Amazon OpenSearch Serverless reads no slices, so one process reads all: omit {option('engine')}."
            )
        max_rate, max_load = client.pace.share(workers)
        return cls(uuid4().hex, client.url, client.options, index.target, max_rate, max_load)

    def opened(self) -> Index:
        """The index, connected with the credentials that this process finds by itself. They come from the same sources
        as those of the command: files, the environment, profiles. Connects once in each process."""
        return _opened(self)


@lru_cache(maxsize=_OPENED)
def _opened(copy: IndexOnWorkers) -> Index:
    client = _connected(copy)
    client.pace.limit(max_rate=copy.max_rate, max_load=copy.max_load)
    return Index(copy.target.name, client, target=copy.target)


def _connected(copy: IndexOnWorkers) -> Client:
    try:
        if copy.options is None:  # a local server that was found running, which gets no credentials
            client = connect(ConnectionSettings(url=copy.url))
        else:
            client = connect(resolve_settings(**copy.options))
    except (ConnectError, SettingsError) as error:
        raise type(error)(f"On a worker: {error}") from error
    if client.url != copy.url:
        raise EngineError(
            f"A worker connects to {client.url}, and this command to {copy.url}: name the server by {option('url')}."
        )
    return client


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
    send: Send = partial(index.documents.write, batch=shared.batch, workers=shared.workers, versions=True)
    return index.storage.write_fingerprints(request, pretend if request.dry_run else send, until_cancelled())
