"""Sidecar storage: keys and groups are entries of a separate index for each index, whose documents stay unchanged.

With ``--write-group``, group ids, and nothing else, are also written into the documents. Each entry records whether its
document has its group id (``mirrored``), so that a killed run can be resumed. A document that has changed since its
fingerprint was made is skipped until ``enrich`` has processed it: writing a group id gives the document a new version,
which would hide the change.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from typing import Any

import numpy as np

from es_neardupe.errors import Forbidden, NotFound, SettingsError
from es_neardupe.index import queries
from es_neardupe.index.handle import IndexHandle, UnpreparedIndex
from es_neardupe.index.migration_state import Phase, replaced_prefix
from es_neardupe.index.permissions import check_writable
from es_neardupe.index.settings import Settings
from es_neardupe.index.storage.change_feed import ChangeFeed, Consumer
from es_neardupe.index.storage.collapse import CollapsedPage, CollapsedSearch, collapse_request
from es_neardupe.index.storage.field_writes import Change, FieldWriter, document_writer
from es_neardupe.index.storage.interface import EnrichRequest, EnrichResult, GroupIdsWritten, OnWorkers, Send
from es_neardupe.index.storage.same_indices import SameIndicesClient
from es_neardupe.index.storage.sidecar.collapse import collapse_here, collapsed_by_server
from es_neardupe.index.storage.sidecar.documents import SameSidecarsClient, SidecarClient
from es_neardupe.index.storage.sidecar.enrich import enrich_sidecar
from es_neardupe.index.storage.sidecar.entries import count_entries, entry_takeovers, fetch_entries, replaced_entries
from es_neardupe.index.storage.sidecar.indices import REFERENCE, SidecarNames, Sidecars, sidecars_of
from es_neardupe.index.stored_fields import count_of, group_of, stored_fields, text_bytes
from es_neardupe.index.target import Definitions, SidecarLayout
from es_neardupe.keys.arrays import Ints
from es_neardupe.progress import Progress, tracked
from es_neardupe.records import Action, Hit, Outcome, Reference
from es_neardupe.server.bulk import write
from es_neardupe.server.client import JSON, Client
from es_neardupe.server.documents import Documents
from es_neardupe.server.failures import Failure, Failures

_BEFORE_GROUP_ID = "it was changed or deleted before its group id was written"


class SidecarStorage:
    """See `es_neardupe.index.storage.interface.Storage`."""

    def __init__(self, index: IndexHandle, layout: SidecarLayout) -> None:
        self._index = index
        self._names = SidecarNames(index.target)
        self.groups_in_documents = layout.write_group

    @cached_property
    def client(self) -> Client:
        """A client that combines documents and entries."""
        return SidecarClient(self._index)

    @property
    def sidecars(self) -> tuple[str, ...]:
        """One for each index, except those that a rollover created and that are not yet prepared."""
        return self._names.existing

    @property
    def written(self) -> tuple[str, ...]:
        """The sidecar indices."""
        return self._names.existing

    def documents_of(self, written: str) -> str:
        """The index that a sidecar index belongs to."""
        return self._names.indices[written]

    @property
    def path(self) -> str:
        """The sidecar indices, separated by commas."""
        return self._names.path

    def field_writer(self) -> FieldWriter:
        """A writer of entries."""
        return FieldWriter(self.client, self._index.settings, None)

    def group_feed(self, *, stores: bool) -> None:
        """None: entries that ``group`` has not processed have no similarity."""
        self._index.documents.refresh()

    def field_feed(self, *, stores: bool) -> ChangeFeed:
        """The changes of the index itself: an entry has no fields of its document."""
        return ChangeFeed(self._index, Consumer.GROUPS, stores=stores)

    def check_writable(self) -> None:
        """Check the sidecar indices, and the documents' indices if group ids are written there."""
        written = [self.path, *[self._index.path] * self.groups_in_documents]
        check_writable(self._index, written=",".join(written))

    def prepare_rolled_over(self) -> None:
        """Create their sidecar indices."""
        index = self._index
        if index.target.new:
            mappings = {
                concrete: Definitions(index.server, concrete).mappings()[concrete] for concrete in index.target.new
            }
            self._sidecars(mappings, index.settings, write_group=self.groups_in_documents).prepare(index.settings)

    def write_fingerprints(
        self, request: EnrichRequest, send: Send, progress: Progress, on_workers: OnWorkers | None = None
    ) -> EnrichResult:
        """Write entries of the sidecar indices. Raises as `SameSettingsClient.check`, also while they are read."""
        try:
            return enrich_sidecar(self._index, request, send, progress, on_workers)
        except NotFound:
            SameSidecarsClient(self._index).check()
            raise

    def write_group_ids(self, *, batch: int, workers: int, dry_run: bool) -> GroupIdsWritten | None:
        """Write them if ``--write-group`` was chosen at ``init``."""
        if not self.groups_in_documents:
            return None
        plain, names = self._index.server, self._names
        documents = SameIndicesClient(self._index)
        lacking = {"bool": {"must_not": [{"term": {f"{REFERENCE}.mirrored": True}}]}}
        if not dry_run:
            self._index.documents.refresh()
        number, left, writer = 0, Failures(), document_writer(self._index, documents)
        read = [self._index.fields.group, self._index.fields.tokens, REFERENCE]
        for page in plain.pages(names.path, {"query": lacking, "_source": read}):
            entries = {(names.indices[entry.index], entry.id): entry for entry in page}
            prefix = self._index.settings.prefix
            changes = (_group_id_change(entry, concrete, prefix) for (concrete, _), entry in entries.items())
            actions = writer.writes(changes)
            if dry_run:
                number += sum(1 for _ in actions)
                continue
            outcomes = list(write(documents, actions, batch=batch, workers=workers, versions=True))
            done = [one for one in outcomes if one.done]
            left.extend(map(_unwritten, (one for one in outcomes if not one.done)))
            marks = (_mirrored_update(entries[one.action.address], one) for one in done)
            for one in write(SameSidecarsClient(self._index), marks, batch=batch, workers=workers):
                if not one.done:
                    left.add(_unwritten(one, names.indices[one.action.index]))
            # The version of a document that has this group id already does not change.
            number += sum(one.seq_no != one.action.seq_no for one in done)
        if not dry_run:
            self._index.documents.refresh()
        remaining = len(left)
        left.extend(writer.failed.values())
        return GroupIdsWritten(number, remaining, len(writer.failed), writer.failures, left)

    def document_versions(self, references: Sequence[Reference], read: Ints) -> Ints:
        """Fetch them: fingerprints are read with the versions of their entries."""
        found = self._index.plain_documents.fetch(references, False, batch=1000)
        versions = [(-1, -1) if hit is None else (hit.seq_no or 0, hit.primary_term or 0) for hit in found]
        return np.array(versions, np.int64).reshape(-1, 2)

    def collapse_request(self, search: CollapsedSearch) -> JSON:
        """A search with the server's ``collapse``, on documents that have no `neardupe` field but the group id."""
        if not self.groups_in_documents:
            raise SettingsError(
                f"The groups of {self._index.name} are not in its documents, so no search of it can collapse them: "
                f"`init --sidecar --write-group` writes group ids into documents."
            )
        return collapse_request(self._index, search, grouping=False)

    def collapse(self, search: CollapsedSearch) -> CollapsedPage:
        """Collapse on the server if documents have group ids, else in this process."""
        if self.groups_in_documents:
            return collapsed_by_server(self._index, search, self.collapse_request(search))
        return collapse_here(self._index, search)

    def mark_migration(self, phase: Phase, coming: Settings, notes: Mapping[str, Any]) -> None:
        """Write into the mappings of the sidecar indices of the coming prefix. While their phase is ``SWITCHING``, the
        settings of the old ones are not read."""
        mappings = self._index.definitions.mappings()
        after = replace(coming, prefix=replaced_prefix(coming.prefix))
        former = self._sidecars(mappings, after)
        if phase is not Phase.PREPARING:  # a rollover may have created indices without a sidecar index
            without = {name: mapping for name, mapping in mappings.items() if name not in former.known}
            self._sidecars(without, after, write_group=former.write_group).prepare(after)
        if phase is Phase.CLEANING:
            former.replace_settings(after)
        self._sidecars(mappings, coming).store_settings(coming, notes)

    def group_pairs(self, former: IndexHandle, progress: Progress) -> Iterator[tuple[str | None, str | None]]:
        """Read the entries of both prefixes."""
        group, name = self._index.fields.group, former.fields.group
        query = {"exists": {"field": group}}
        pages = self._index.documents.pages({"query": query, "_source": [group]}, page_size=1000)
        total = -(-self._index.documents.count(query) // 1000)
        for page in tracked(pages, progress, "comparing groups", total, step=1):
            entries = fetch_entries(former, [hit.reference for hit in page], [name])
            for hit, entry in zip(page, entries, strict=True):
                before = {} if entry is None else stored_fields(entry.source, former.settings.prefix)
                yield group_of(before), group_of(stored_fields(hit.source, self._index.settings.prefix))

    def takeovers(self, after: IndexHandle, writer: FieldWriter, *, batch: int, progress: Progress) -> Iterator[Action]:
        """Writes of whole entries."""
        stored, query = Documents(self._index.server, self.path), queries.processed(self._index.fields)
        pages = stored.pages({"query": query, "_source": True}, page_size=max(batch, 100))
        entries = (entry for page in pages for entry in page)
        total = stored.count(query)
        return entry_takeovers(self._index, after, tracked(entries, progress, "switching", total))

    def refresh(self) -> None:
        """Refresh the sidecar indices."""
        Documents(self._index.server, self.path).refresh()

    def remove_settings(self) -> None:
        """Remove the settings from ``_meta`` of the sidecar indices, which keep their marks. Does nothing if this user
        may only delete them."""
        client, prefix = self._index.server, self._index.settings.prefix
        for index, mapping in sidecars_of(client, self._index.target.indices, prefix).items():
            with suppress(Forbidden, NotFound):
                Definitions(client, self._names.sidecars[index]).remove_settings(mapping, prefix)

    def replaced(self) -> Mapping[str, int]:
        """Count the entries of indices that were deleted and created again under the same name."""
        return replaced_entries(self._index)

    def of_deleted(self, documents: int) -> int:
        """The entries that are more than the documents."""
        return max(sum(count_entries(self._index).values()) - documents, 0)

    def _sidecars(self, mappings: Mapping[str, JSON], settings: Settings, *, write_group: bool = False) -> Sidecars:
        unprepared = UnpreparedIndex(self._index.name, self._index.server, mappings, settings)
        return Sidecars(unprepared, write_group=write_group)


def _unwritten(outcome: Outcome, index: str | None = None) -> Failure:
    """A document into which no group id was written, or whose entry, in an index that belongs to ``index``, could not
    be marked."""
    if not (outcome.conflict or outcome.gone):
        return Failure.refused(outcome, index)
    action = outcome.action
    return Failure.conflict((index or action.index, action.id, action.routing), _BEFORE_GROUP_ID)


def _group_id_change(entry: Hit, concrete: str, prefix: str) -> Change:
    """The change of a document of index ``concrete``, rejected if it is not of the version that its entry names."""
    reference = entry.source[REFERENCE]
    stored = stored_fields(entry.source, prefix)
    hit = Hit(concrete, entry.id, entry.routing, reference["seq_no"], reference["primary_term"], source={})
    return Change(hit, {"group": stored.get("group")}, document_bytes=text_bytes(count_of(stored, "tokens")))


def _mirrored_update(entry: Hit, written: Outcome) -> Action:
    """The update of an entry after its group id was ``written`` into the document, which has a new version now."""
    reference = {"mirrored": True, "seq_no": written.seq_no, "primary_term": written.primary_term}
    version = entry.seq_no, entry.primary_term
    return Action("update", entry.index, entry.id, {"doc": {REFERENCE: reference}}, entry.routing, *version)
