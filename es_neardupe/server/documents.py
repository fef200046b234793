"""The documents of an index, searched, read and written through one connection."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from es_neardupe.errors import DocumentTooLarge
from es_neardupe.records import Action, Hit, Outcome, Reference
from es_neardupe.server import bulk, search
from es_neardupe.server.client import JSON, Client


@dataclass(frozen=True)
class Documents:
    """The documents of an index on a server, or of several: of an alias, a pattern or a comma-separated list.

    `fetch` and `write` get the index of each document.
    """

    client: Client
    name: str

    def search(self, body: Mapping[str, Any], *, shard: int | None = None) -> JSON:
        """See `es_neardupe.server.search.search`."""
        return search.search(self.client, self.name, body, shard=shard)

    def first_hits(self, body: Mapping[str, Any], maximum: int) -> list[JSON]:
        """See `es_neardupe.server.search.first_hits`."""
        return search.first_hits(self.client, self.name, body, maximum)

    def count(self, query: Mapping[str, Any] | None = None, *, shard: int | None = None) -> int:
        """See `es_neardupe.server.search.count`."""
        return search.count(self.client, self.name, query, shard=shard)

    def counts(self, *, shard: int | None = None, **queries: Mapping[str, Any]) -> dict[str, int]:
        """See `es_neardupe.server.search.counts`."""
        return search.counts(self.client, self.name, shard=shard, **queries)

    def buckets(
        self, query: Mapping[str, Any], fields: Mapping[str, str], optional: Collection[str] = ()
    ) -> Iterator[JSON]:
        """See `es_neardupe.server.search.buckets`."""
        return search.buckets(self.client, self.name, query, fields, optional)

    def pages(
        self,
        body: Mapping[str, Any],
        *,
        page_size: int | None = 1000,
        slice: tuple[int, int] | None = None,
        skip: Callable[[Hit, DocumentTooLarge], None] | None = None,
        shard: int | None = None,
    ) -> Iterator[list[Hit]]:
        """See `es_neardupe.server.client.Client.pages`."""
        return self.client.pages(self.name, body, page_size=page_size, slice=slice, skip=skip, shard=shard)

    def fetch(
        self,
        references: Iterable[Reference],
        source: Sequence[str] | bool,
        *,
        stored: Sequence[str] = (),
        batch: int | None = None,
    ) -> Iterator[Hit | None]:
        """See `es_neardupe.server.search.fetch`."""
        return search.fetch(self.client, references, source, stored=stored, batch=batch)

    def write(
        self, actions: Iterable[Action], *, batch: int = 500, workers: int = 2, versions: bool = False
    ) -> Iterator[Outcome]:
        """See `es_neardupe.server.bulk.write`."""
        return bulk.write(self.client, actions, batch=batch, workers=workers, versions=versions)

    def refresh(self) -> None:
        """See `es_neardupe.server.search.refresh`."""
        search.refresh(self.client, self.name)

    def refresh_if_allowed(self) -> None:
        """See `es_neardupe.server.search.refresh_if_allowed`."""
        search.refresh_if_allowed(self.client, self.name)
