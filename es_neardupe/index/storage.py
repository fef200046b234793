"""Storage of keys and groups: the one interface of its two kinds, inline and sidecar.

Inline, they are fields of the user's documents; a sidecar index holds them where these are not to be written. `Storage`
is what commands ask; which kind an index has, they need not know.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np
from numpy.typing import NDArray

from es_neardupe.index.collapse import CollapsedPage, CollapsedSearch
from es_neardupe.index.migration_state import Phase, next_prefix, replaced_prefix
from es_neardupe.index.settings import Settings
from es_neardupe.index.sidecar.indices import sidecar_name, sidecars_of
from es_neardupe.index.target import mappings_of
from es_neardupe.progress import Progress
from es_neardupe.records import Action, Outcome, Reference
from es_neardupe.server.bulk import BulkCounts
from es_neardupe.server.client import Client

if TYPE_CHECKING:
    from es_neardupe.index.index import Index

__all__ = [
    "Enriched",
    "GroupIdsWritten",
    "Send",
    "Storage",
    "ToEnrich",
    "settings_mappings",
    "sidecar_mappings",
]

JSON = dict[str, Any]

Send = Callable[[Iterable[Action]], Iterable[Outcome]]


@dataclass(frozen=True)
class ToEnrich:
    """The documents that get fingerprints; see `es_neardupe.commands.enrich`."""

    query: Mapping[str, Any] | None
    check: bool
    since: tuple[str, str] | None
    all: bool
    max_chars: int


@dataclass
class Enriched:
    """Fingerprints that were written, and what was counted."""

    before: Mapping[str, int]
    """Documents of ``scope``, of ``everything``, and those ``left_alone``."""
    current: int
    """Of those in scope, had a fingerprint of the scheme already."""
    tally: BulkCounts
    states: Mapping[str, int]


@dataclass(frozen=True)
class GroupIdsWritten:
    """Group ids that the user's documents lacked."""

    written: int = 0
    left: int = 0
    """Changed or deleted since they were enriched, or refused: the next run of ``enrich`` takes them."""


class Storage(Protocol):
    """Where the keys and groups of an opened index are."""

    @property
    def client(self) -> Client:
        """The connection that reads and writes the user's documents as if our fields were in them: by its pages,
        searches, counts and bulk requests, which are the same for both kinds."""

    @property
    def sidecars(self) -> tuple[str, ...]:
        """The sidecar indices; none if keys are in the documents."""

    @property
    def written(self) -> tuple[str, ...]:
        """The indices that keys and groups are written to."""

    @property
    def path(self) -> str:
        """These as requests name them."""

    @property
    def groups_in_documents(self) -> bool:
        """Whether the user's documents have their group ids: searches can collapse on them, and ``clean`` removes
        them."""

    def check_writable(self) -> None:
        """Raises `Blocked` if an index that is to be written, for keys or for group ids, is read-only."""

    def prepare_rolled_over(self) -> None:
        """Give the indices that a rollover made the fields and settings of their siblings.

        Raises what `prepare_new` does.
        """

    def write_fingerprints(self, wanted: ToEnrich, send: Send, progress: Progress) -> Enriched:
        """Fingerprint documents by their current text; ``send`` writes."""

    def write_group_ids(self, *, batch: int, workers: int, dry_run: bool) -> GroupIdsWritten | None:
        """Write the group ids that the user's documents lack; None where they are to have none."""

    def document_versions(self, references: Sequence[Reference], read: NDArray[np.int64]) -> NDArray[np.int64]:
        """Sequence number and primary term of the user's documents, of which fingerprints were ``read`` with these
        versions; shape (n, 2), -1 for those that are gone."""

    def collapse_request(self, search: CollapsedSearch) -> JSON:
        """The body of a search of the user's index that collapses by group. Raises `SettingsError` if none can."""

    def collapse(self, search: CollapsedSearch) -> CollapsedPage:
        """Hits of a query, collapsed by group. Raises `SettingsError` for a page that is out of reach."""

    def mark_migration(self, phase: Phase, coming: Settings, notes: Mapping[str, Any]) -> None:
        """Write how far a migration is, with the settings to come under their own prefix and ``notes`` on them.

        From ``CLEANING`` on, the settings under the old prefix are the new ones; so they are in an index that a
        rollover made once the switch has begun.
        """

    def group_pairs(self, former: Index, progress: Progress) -> Iterator[tuple[str | None, str | None]]:
        """The group id of each document by the ``former`` keys, and by these."""

    def takeovers(self, after: Index, *, batch: int, progress: Progress) -> Iterator[Action]:
        """The writes by which these keys and groups take the place of those of ``after``, refused by the server if a
        document changed since; none where both are the same."""

    def refresh(self) -> None:
        """Make what was written visible to searches."""

    def remove_settings(self) -> None:
        """Remove our settings from the mapping of the user's indices."""

    def replaced(self) -> Mapping[str, int]:
        """Concrete index -> number of fingerprints of another index that had its name before."""


def sidecar_mappings(client: Client, mappings: Mapping[str, JSON], prefix: str) -> dict[str, JSON]:
    """Sidecar index -> its mapping, for those of some indices that this user may know of. Nothing is asked where keys
    are in the documents."""
    if any(prefix in mapping.get("_meta", {}) for mapping in mappings.values()):
        return {}
    return {sidecar_name(index, prefix): one for index, one in sidecars_of(client, mappings, prefix).items()}


def settings_mappings(client: Client, name: str, prefix: str) -> dict[str, JSON]:
    """Concrete index -> the mapping whose ``_meta`` has the settings of a prefix, and of a migration from or to
    it: its own, or with sidecar storage one with the ``_meta`` of all its sidecar indices."""
    mappings = mappings_of(client, name)
    plain = replaced_prefix(prefix)
    kept = dict.fromkeys((plain, prefix))
    if any(one in mapping.get("_meta", {}) for mapping in mappings.values() for one in (*kept, next_prefix(prefix))):
        return mappings
    metas: dict[str, JSON] = {index: {} for index in mappings}
    for sidecars in (
        sidecars_of(client, mappings, plain),
        *(sidecars_of(client, mappings, next_prefix(one)) for one in kept),
    ):
        for index, mapping in sidecars.items():
            metas[index] |= mapping.get("_meta", {})
    return {index: {"_meta": meta} for index, meta in metas.items()} if any(metas.values()) else mappings
