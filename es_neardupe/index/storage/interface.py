"""Storage of keys and groups: one interface for its two kinds, inline and sidecar.

Inline storage keeps them in fields of the documents; sidecar storage in a separate index for each index. Commands use
`Storage` and need not know which kind an index has.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Protocol

from es_neardupe.index.handle import IndexHandle
from es_neardupe.index.migration_state import Phase
from es_neardupe.index.settings import Settings
from es_neardupe.index.storage.change_feed import ChangeFeed, FeedNotes
from es_neardupe.index.storage.collapse import CollapsedPage, CollapsedSearch
from es_neardupe.index.storage.field_writes import FieldWriter
from es_neardupe.keys.arrays import Ints
from es_neardupe.progress import Progress
from es_neardupe.records import Action, Outcome, Reference
from es_neardupe.server.bulk import BulkCounts
from es_neardupe.server.client import JSON, Client
from es_neardupe.server.failures import Failures

Send = Callable[[Iterable[Action]], Iterable[Outcome]]


@dataclass(frozen=True)
class EnrichRequest:
    """Selects the documents to fingerprint; see `es_neardupe.commands.enrich`."""

    query: Mapping[str, Any] | None
    check: bool
    since: tuple[str, str] | None
    all: bool
    max_chars: int
    dry_run: bool
    slice: tuple[int, int] | None
    """Number, from 1, and number of slices; None: all documents."""
    slices: int | None = None
    """Number of slices to read at a time; None: the default."""
    new_only: bool = False
    """Whether documents with a fingerprint are skipped where it is unknown which of them have changed."""
    task: bool = False
    """Whether this is a task of a run in another process, which stores the progress of the change feed."""

    @property
    def whole(self) -> bool:
        """Whether all documents of the index are in scope."""
        return self.query is None and self.slice is None

    @property
    def reads_all(self) -> bool:
        """Whether all documents in scope are read, whatever is known of their changes."""
        return self.check or self.all

    @property
    def rereads(self) -> bool:
        """Whether all documents of indices whose changes are unknown are read."""
        return not self.new_only and self.since is None

    def unknown(self, reasons: Mapping[str, str]) -> tuple[Mapping[str, str], Mapping[str, str]]:
        """``reread`` and ``unnoticed`` of `EnrichResult`, of indices whose changes are unknown for these reasons."""
        return (reasons, {}) if self.rereads else ({}, reasons)

    @property
    def part(self) -> tuple[int, int] | None:
        """The slice for ``Client.pages``, which counts from 0."""
        return None if self.slice is None else (self.slice[0] - 1, self.slice[1])

    def share(self, documents: int) -> int | None:
        """How many of so many documents the run reads; None if that is not known."""
        return documents if self.slice is None else None


@dataclass
class EnrichResult:
    """Counts of a run that wrote fingerprints."""

    before: Mapping[str, int]
    """Documents before the run: of the ``scope``, of ``everything``, and of skipped relations (``skipped``)."""
    current: int
    """Documents in scope that had a fingerprint of the scheme before the run."""
    tally: BulkCounts
    """Also ``changed``: documents read that had a fingerprint, and were written since they were last processed."""
    states: Mapping[str, int]
    lengths: Mapping[int, int] = field(default_factory=dict)
    """Number of words -> written documents with so many."""
    reread: Mapping[str, str] = field(default_factory=dict)
    """Concrete index -> why all of its documents were read: it was unknown which of them had changed."""
    unnoticed: Mapping[str, str] = field(default_factory=dict)
    """Concrete index -> why texts that were changed before this run were not noticed."""
    notes: FeedNotes | None = None
    """Of a task: what the change feed has noted."""


OnWorkers = Callable[[EnrichRequest], Iterable[EnrichResult]]
"""Processes a request on the workers of an engine: the results of all slices of the documents, as they end."""


def tracked_results(results: Iterable[EnrichResult], progress: Progress, total: int | None) -> Iterator[EnrichResult]:
    """The results, with progress of the documents that were read."""
    read = 0
    progress("fingerprinting", 0, total)
    for one in results:
        yield one
        read += one.tally.counts["read"]
        progress("fingerprinting", read if total is None else min(read, total), total)


@dataclass(frozen=True)
class GroupIdsWritten:
    """Counts of missing group ids that were written into documents."""

    written: int = 0
    left: int = 0
    """Documents that changed or were deleted since they were enriched, or whose update was rejected: the next run of
    ``enrich`` processes them."""
    failed: int = 0
    """Documents that were not written, because that could change another field; ``failures`` has the reasons."""
    failures: tuple[str, ...] = ()
    left_documents: Failures = field(default_factory=Failures, compare=False)
    """The documents of ``left`` and ``failed``."""


class Storage(Protocol):
    """Where an opened index keeps keys and groups."""

    @property
    def client(self) -> Client:
        """The connection that reads and writes documents as if they had the `neardupe` fields: pages, searches, counts
        and bulk requests are the same for both kinds."""

    @property
    def sidecars(self) -> tuple[str, ...]:
        """The existing sidecar indices; none with inline storage."""

    @property
    def written(self) -> tuple[str, ...]:
        """The indices that keys and groups are written to."""

    def documents_of(self, written: str) -> str:
        """The concrete index of the documents whose keys are in one of these indices."""

    @property
    def path(self) -> str:
        """These indices, as a part of a request path."""

    @property
    def groups_in_documents(self) -> bool:
        """Whether documents contain their group ids: then searches can collapse on them, and ``clean`` removes
        them."""

    def field_writer(self) -> FieldWriter:
        """Makes the writes of fingerprints and groups, which `client` sends."""

    def group_feed(self, *, stores: bool) -> ChangeFeed | None:
        """The documents whose fingerprints ``group`` has not processed; None if each of them has no similarity.
        Refreshes the index. ``stores``: see `ChangeFeed`."""

    def field_feed(self, *, stores: bool) -> ChangeFeed | None:
        """The documents that were written since ``group`` has used fields of them, if their fingerprints do not show
        that; None if those of `group_feed` are all. Refreshes the index."""

    def check_writable(self) -> None:
        """Raises `Blocked` if an index that keys or group ids are written to is read-only."""

    def prepare_rolled_over(self) -> None:
        """Prepare the indices that a rollover created with the fields and settings of the others.

        Raises what `prepare_new` raises.
        """

    def write_fingerprints(
        self, request: EnrichRequest, send: Send, progress: Progress, on_workers: OnWorkers | None = None
    ) -> EnrichResult:
        """Fingerprint the current texts of documents; ``send`` writes. ``on_workers``: does it there instead."""

    def write_group_ids(self, *, batch: int, workers: int, dry_run: bool) -> GroupIdsWritten | None:
        """Write missing group ids into documents; None if the storage writes none there."""

    def document_versions(self, references: Sequence[Reference], read: Ints) -> Ints:
        """Sequence number and primary term of documents; shape (n, 2), -1 for deleted ones.

        ``read``: the versions that were read together with the fingerprints, in the same shape.
        """

    def collapse_request(self, search: CollapsedSearch) -> JSON:
        """The body of a search that collapses by group. Raises `SettingsError` if documents have no group ids."""

    def collapse(self, search: CollapsedSearch) -> CollapsedPage:
        """Hits of a query, collapsed by group. Raises `SettingsError` if the page is beyond the result window."""

    def mark_migration(self, phase: Phase, coming: Settings, notes: Mapping[str, Any]) -> None:
        """Store the phase of a migration: the ``coming`` settings under their own prefix, with ``notes``.

        In phase ``CLEANING``, also store them under the old prefix, where they replace the old settings. From
        ``SWITCHING`` on, indices that a rollover created get them there too.
        """

    def group_pairs(self, former: IndexHandle, progress: Progress) -> Iterator[tuple[str | None, str | None]]:
        """For each document, its group id by the ``former`` keys and by these keys."""

    def takeovers(self, after: IndexHandle, writer: FieldWriter, *, batch: int, progress: Progress) -> Iterator[Action]:
        """Writes that replace the keys and groups of ``after`` by these, made by its ``writer``; the server rejects a
        write if its document has changed since. Documents that have the same under both need none."""

    def refresh(self) -> None:
        """Make all writes visible to searches."""

    def remove_settings(self) -> None:
        """Remove the settings from the mappings of the indices."""

    def replaced(self) -> Mapping[str, int]:
        """Concrete index -> number of fingerprints that belong to a deleted index of the same name."""

    def of_deleted(self, documents: int) -> int:
        """Number of fingerprints of deleted documents, if the index has so many ``documents``. New documents without a
        fingerprint make it smaller."""
