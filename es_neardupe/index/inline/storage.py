"""Inline storage: keys and groups as fields of the user's documents."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from es_neardupe.index import queries
from es_neardupe.index.collapse import CollapsedPage, CollapsedSearch, collapse_request, collapsed_by_server
from es_neardupe.index.inline.enrich import enrich_inline
from es_neardupe.index.mapping import fields_mapping
from es_neardupe.index.migration_state import Phase, replaced_prefix
from es_neardupe.index.permissions import check_writable
from es_neardupe.index.settings import Settings
from es_neardupe.index.storage import Enriched, Send, ToEnrich
from es_neardupe.index.stored_fields import group_of, stored_fields
from es_neardupe.index.target import mappings_of, prepare_new, put_settings, remove_settings, stored_settings
from es_neardupe.progress import Progress, tracked
from es_neardupe.records import Action, Hit, Reference
from es_neardupe.server.client import Client
from es_neardupe.server.search import count, refresh

if TYPE_CHECKING:
    from es_neardupe.index.index import Index

__all__ = ["InlineStorage", "takeovers"]

JSON = dict[str, Any]


class InlineStorage:
    """See `es_neardupe.index.storage.Storage`."""

    sidecars: tuple[str, ...] = ()
    groups_in_documents = True

    def __init__(self, index: Index) -> None:
        self._index = index

    @property
    def client(self) -> Client:
        """The connection itself."""
        return self._index.plain

    @property
    def written(self) -> tuple[str, ...]:
        """The user's indices."""
        return self._index.target.indices

    @property
    def path(self) -> str:
        """As the index was opened."""
        return self._index.path

    def check_writable(self) -> None:
        """The user's indices."""
        check_writable(self.client, self._index.name)

    def prepare_rolled_over(self) -> None:
        """Add our fields and settings to their mappings."""
        prepare_new(self._index)

    def write_fingerprints(self, wanted: ToEnrich, send: Send, progress: Progress) -> Enriched:
        """By partial updates of the documents."""
        return enrich_inline(self._index, wanted, send, progress)

    def write_group_ids(self, *, batch: int, workers: int, dry_run: bool) -> None:
        """Nothing: the documents have them."""

    def document_versions(self, references: Sequence[Reference], read: NDArray[np.int64]) -> NDArray[np.int64]:
        """Fingerprints are read with the version of their document."""
        return read

    def collapse_request(self, search: CollapsedSearch) -> JSON:
        """The server's ``collapse``."""
        return collapse_request(self._index, search)

    def collapse(self, search: CollapsedSearch) -> CollapsedPage:
        """As the server collapses."""
        return collapsed_by_server(self._index, self.client, search, self.collapse_request(search))

    def mark_migration(self, phase: Phase, coming: Settings, notes: Mapping[str, Any]) -> None:
        """In the mapping of every index."""
        after = replace(coming, prefix=replaced_prefix(coming.prefix))
        missing = self._index.settings if phase is Phase.PREPARING else after
        for name, mapping in mappings_of(self.client, self._index.name).items():
            stored = stored_settings(mapping, after.prefix) if phase is not Phase.CLEANING else after
            put_settings(self.client, name, mapping, stored or missing, coming, notes={coming.prefix: notes})

    def group_pairs(self, former: Index, progress: Progress) -> Iterator[tuple[str | None, str | None]]:
        """Both are in the same documents."""
        fields, path = [former.fields.group, self._index.fields.group], self._index.path
        query = {"bool": {"filter": [{"exists": {"field": name}} for name in fields]}}
        total = count(self.client, path, query)
        pages = self.client.pages(path, {"query": query, "_source": fields}, page_size=2000)
        for hit in tracked((hit for page in pages for hit in page), progress, "comparing groups", total):
            before, now = (stored_fields(hit.source, one.settings.prefix) for one in (former, self._index))
            yield group_of(before), group_of(now)

    def takeovers(self, after: Index, *, batch: int, progress: Progress) -> Iterator[Action]:
        """Partial updates of documents that have both."""
        path, query = self._index.path, queries.processed(self._index.fields)
        prefixes = [self._index.settings.prefix, after.settings.prefix]
        pages = self.client.pages(path, {"query": query, "_source": prefixes}, page_size=max(batch, 100))
        hits = tracked((hit for page in pages for hit in page), progress, "switching", count(self.client, path, query))
        return takeovers(hits, *prefixes)

    def refresh(self) -> None:
        """The user's indices."""
        refresh(self.client, self.path)

    def remove_settings(self) -> None:
        """From ``_meta``; no server can remove our fields."""
        for name, mapping in mappings_of(self.client, self._index.name).items():
            remove_settings(self.client, name, mapping, self._index.settings.prefix)

    def replaced(self) -> Mapping[str, int]:
        """None: keys go with their documents."""
        return {}


def takeovers(hits: Iterable[Hit], source: str, target: str) -> Iterator[Action]:
    """Partial updates, refused by the server if the document changed since; none where both say the same.

    Documents without keys under ``source`` are left alone.
    """
    for hit in hits:
        wanted, there = (_stored_parts(hit, prefix) for prefix in (source, target))
        if wanted["scheme"] is not None and wanted != there:
            yield Action(
                op="update",
                index=hit.index,
                id=hit.id,
                body={"doc": {target: wanted}},
                routing=hit.routing,
                seq_no=hit.seq_no,
                primary_term=hit.primary_term,
            )


def _stored_parts(hit: Hit, prefix: str) -> dict[str, Any]:
    """Each of our fields, null where there is none: a partial update leaves what it does not name."""
    stored = stored_fields(hit.source, prefix)
    return {name: stored.get(name) for name in fields_mapping()["properties"]}
