"""Sidecar storage: keys and groups in indices of our own, which leave the user's as they are."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from es_neardupe.errors import SettingsError
from es_neardupe.index import queries
from es_neardupe.index.collapse import CollapsedPage, CollapsedSearch, collapse_request
from es_neardupe.index.migration_state import Phase, replaced_prefix
from es_neardupe.index.permissions import check_writable
from es_neardupe.index.settings import Settings
from es_neardupe.index.sidecar.client import SidecarClient
from es_neardupe.index.sidecar.enrich import enrich_sidecar
from es_neardupe.index.sidecar.entries import entries, of_others, successors
from es_neardupe.index.sidecar.indices import Sidecars
from es_neardupe.index.sidecar.queries import SidecarNames
from es_neardupe.index.sidecar.search import collapsed_by_server, folded
from es_neardupe.index.sidecar.write_group_ids import write_group_ids
from es_neardupe.index.storage import Enriched, GroupIdsWritten, Send, ToEnrich
from es_neardupe.index.stored_fields import group_of, stored_fields
from es_neardupe.index.target import SidecarLayout, mappings_of
from es_neardupe.progress import Progress, tracked
from es_neardupe.records import Action, Reference
from es_neardupe.server.client import Client
from es_neardupe.server.search import count, fetch, refresh

if TYPE_CHECKING:
    from es_neardupe.index.index import Index

__all__ = ["SidecarStorage"]

JSON = dict[str, Any]


class SidecarStorage:
    """See `es_neardupe.index.storage.Storage`."""

    def __init__(self, index: Index, layout: SidecarLayout) -> None:
        self._index = index
        self._names = SidecarNames(index.target)
        self.groups_in_documents = layout.write_group

    @cached_property
    def client(self) -> Client:
        """A client that joins both indices."""
        return SidecarClient(self._index)

    @property
    def sidecars(self) -> tuple[str, ...]:
        """One for each of the user's indices, but for those that a rollover made and nobody has prepared yet."""
        return self._names.there

    @property
    def written(self) -> tuple[str, ...]:
        """The sidecar indices."""
        return self._names.there

    @property
    def path(self) -> str:
        """Their names."""
        return self._names.path

    def check_writable(self) -> None:
        """The sidecar indices, and the user's if group ids are written there."""
        written = [self.path, *[self._index.path] * self.groups_in_documents]
        check_writable(self._index.plain, self._index.name, written=",".join(written))

    def prepare_rolled_over(self) -> None:
        """Make sidecar indices for them."""
        index = self._index
        if index.target.new:
            mappings = {concrete: mappings_of(index.plain, concrete)[concrete] for concrete in index.target.new}
            self._sidecars(mappings, index.settings, write_group=self.groups_in_documents).prepare(index.settings)

    def write_fingerprints(self, wanted: ToEnrich, send: Send, progress: Progress) -> Enriched:
        """By whole entries of the sidecar index."""
        return enrich_sidecar(self._index, wanted, send, progress)

    def write_group_ids(self, *, batch: int, workers: int, dry_run: bool) -> GroupIdsWritten | None:
        """Where that was chosen at ``init``, else None."""
        if not self.groups_in_documents:
            return None
        return write_group_ids(self._index, batch=batch, workers=workers, dry_run=dry_run)

    def document_versions(self, references: Sequence[Reference], read: NDArray[np.int64]) -> NDArray[np.int64]:
        """Fingerprints are read with the version of their entry, so the documents are asked for theirs."""
        found = fetch(self._index.plain, references, False, batch=1000)
        versions = [(-1, -1) if hit is None else (hit.seq_no or 0, hit.primary_term or 0) for hit in found]
        return np.array(versions, np.int64).reshape(-1, 2)

    def collapse_request(self, search: CollapsedSearch) -> JSON:
        """The server's ``collapse``, of documents that have group ids and no other field of ours."""
        if not self.groups_in_documents:
            raise SettingsError(
                f"The groups of {self._index.name} are not in its documents, so no search of it can collapse them: "
                f"`init --sidecar --write-group` writes group ids into documents."
            )
        return collapse_request(self._index, search, grouping=False)

    def collapse(self, search: CollapsedSearch) -> CollapsedPage:
        """By the server if it can, else here."""
        if self.groups_in_documents:
            return collapsed_by_server(self._index, search, self.collapse_request(search))
        return folded(self._index, search)

    def mark_migration(self, phase: Phase, coming: Settings, notes: Mapping[str, Any]) -> None:
        """In the sidecar indices of the coming prefix. While they say ``SWITCHING``, nobody asks the others for their
        settings."""
        mappings = mappings_of(self._index.plain, self._index.name)
        after = replace(coming, prefix=replaced_prefix(coming.prefix))
        former = self._sidecars(mappings, after)
        if phase is not Phase.PREPARING:  # a rollover may have made some that have none yet
            without = {name: mapping for name, mapping in mappings.items() if name not in former.known}
            self._sidecars(without, after, write_group=former.write_group).prepare(after)
        if phase is Phase.CLEANING:
            former.note(after)
        self._sidecars(mappings, coming).make(coming, notes)

    def group_pairs(self, former: Index, progress: Progress) -> Iterator[tuple[str | None, str | None]]:
        """Each prefix has sidecar indices of its own."""
        group, name = self._index.fields.group, former.fields.group
        query = {"exists": {"field": group}}
        pages = self.client.pages(self._index.path, {"query": query, "_source": [group]}, page_size=1000)
        total = -(-count(self.client, self._index.path, query) // 1000)
        for page in tracked(pages, progress, "comparing groups", total, step=1):
            known = entries(former, [hit.reference for hit in page], [name])
            for hit, entry in zip(page, known, strict=True):
                before = {} if entry is None else stored_fields(entry.source, former.settings.prefix)
                yield group_of(before), group_of(stored_fields(hit.source, self._index.settings.prefix))

    def takeovers(self, after: Index, *, batch: int, progress: Progress) -> Iterator[Action]:
        """Whole entries."""
        plain, query = self._index.plain, queries.processed(self._index.fields)
        pages = plain.pages(self.path, {"query": query, "_source": True}, page_size=max(batch, 100))
        total = count(plain, self.path, query)
        return successors(
            self._index, after, tracked((hit for page in pages for hit in page), progress, "switching", total)
        )

    def refresh(self) -> None:
        """The sidecar indices."""
        refresh(self._index.plain, self.path)

    def remove_settings(self) -> None:
        """Nothing: settings go with the sidecar indices."""

    def replaced(self) -> Mapping[str, int]:
        """An index that was made anew under the same name finds the entries of the one before."""
        return of_others(self._index)

    def _sidecars(self, mappings: Mapping[str, JSON], settings: Settings, *, write_group: bool = False) -> Sidecars:
        return Sidecars(self._index.plain, self._index.name, mappings, settings, write_group=write_group)
