"""Parts of the reports of several commands that write, and the report of `enrich`, which is a part of a round of
`watch`.

Every number has the same meaning in all reports. Numbers are those of the run, unless they are described as those of
the index. Each part, or the report that contains it, states which numbers add up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from es_neardupe.candidates.detection import UnsuitedTexts
from es_neardupe.candidates.unprepared import UnpreparedTexts
from es_neardupe.index.storage.interface import GroupIdsWritten
from es_neardupe.records import one_line
from es_neardupe.server.bulk import BulkCounts
from es_neardupe.server.dry_run import ShownRequest
from es_neardupe.server.failures import Failures

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True, kw_only=True)
class EnrichScope:
    """Documents that ``enrich`` processed: ``documents + excluded`` were in the index when the run began.

    ``read`` is the sum of the writes, and ``changed <= read``.
    """

    documents: int
    """Documents in scope when the run began."""
    excluded: int
    """Documents outside of the scope of ``query`` and the chosen relations, neither read nor written."""
    skipped: int
    """Documents of the index with skipped relations of a join field, by default children."""
    current: int | None
    """Documents in scope that already had a fingerprint of this scheme; None with a slice."""
    slice: str | None
    """The part of these documents that this run processed, such as ``3/16``; None: all."""
    read: int
    changed: int
    """Documents read that had a fingerprint, and were written since they were last processed, by any client."""
    reread: Mapping[str, str]
    """Index -> why all of its documents were read: it was unknown which of them had changed. Empty with ``check`` and
    ``all``."""
    unnoticed: Mapping[str, str]
    """Index -> why texts that were changed before this run were not noticed, with ``new_only`` or ``since``."""


@dataclass(frozen=True, kw_only=True)
class WriteCounts:
    """Documents by the outcome of their update. Each document counts once; `total` is their sum."""

    written: int
    whole: int = 0
    """Of the written documents, those written back as a whole, because a partial update changes one of their numbers,
    or because the server has no scripts."""
    unchanged: int = 0
    """Documents that needed no update."""
    conflicts: int = 0
    """Documents that another client changed during the run; left for the next run."""
    deleted: int = 0
    """Documents deleted during the run."""
    refused: int = 0
    """Updates that the server rejected; ``refusals`` has the reasons."""
    failed: int = 0
    """Documents that were not written, because that could change another field, or because of another reason in
    ``failures``."""
    refusals: tuple[str, ...] = ()
    """The most frequent reasons."""
    failures: tuple[str, ...] = ()
    """Reasons why documents failed."""
    left_documents: Failures = field(default_factory=Failures, compare=False)
    """The documents of ``left``, each with the reason; of conflicts of ``enrich`` with ``in_cluster``, the server gives
    only the number. All are iterated; JSON has the first hundred."""
    mirrored: GroupIdsWritten | None = None
    """Group ids also written to the documents; None without ``init --sidecar --write-group``."""

    @classmethod
    def of(cls, tally: BulkCounts, **more: Any) -> Self:
        """The counts of a run. ``more``: further fields, or other values."""
        counts = tally.counts
        given = {
            "written": counts["written"],
            "whole": counts["whole"],
            "unchanged": counts["unchanged"],
            "conflicts": counts["conflicts"],
            "deleted": counts["deleted"],
            "refused": counts["refused"],
            "failed": counts["failed"],
            "refusals": tally.refusals,
            "failures": tally.failures,
            "left_documents": tally.left,
        }
        return cls(**{**given, **more})

    @property
    def total(self) -> int:
        """``written + unchanged + conflicts + deleted + refused + failed``."""
        return self.written + self.unchanged + self.conflicts + self.deleted + self.refused + self.failed

    @property
    def left(self) -> int:
        """``conflicts + refused + failed``: documents left for the next run."""
        return self.conflicts + self.refused + self.failed


@dataclass(frozen=True, kw_only=True)
class FingerprintWrites(WriteCounts):
    """Writes of new fingerprints: ``written = sum(states)``, ``numeric <= signed + short``."""

    states: Mapping[str, int]
    """Documents written, by state."""
    numeric: int
    """Signed and short documents whose tokens are all numbers."""


@dataclass(frozen=True)
class EnrichReport:
    """Result of `enrich`: ``scope.read`` is the sum of the writes."""

    index: str
    scheme: str
    prepared: tuple[str, ...]
    """Indices from a rollover that got the fields and settings of the others in this run."""
    scope: EnrichScope
    writes: FingerprintWrites
    removed: int
    """Entries of deleted documents, removed from the sidecar index."""
    unprepared: UnpreparedTexts | None
    """Random documents with texts of a kind that should be prepared; None if there is none."""
    unsuited: UnsuitedTexts | None
    """Documents of the index that are too short or too long for the keys, in a dry run of those that it would write;
    None if the keys suit all lengths."""
    dry_run: bool
    seconds: float = field(compare=False)
    requests: tuple[ShownRequest, ...] = ()
    """The first write requests of a dry run, up to ``show_requests``."""
    tuned: Mapping[str, Mapping[str, str | None]] | None = None
    """With ``tune``: index -> the settings that were lowered, with their restored values."""

    def __repr__(self) -> str:
        return one_line(
            self,
            index=self.index,
            documents=self.scope.documents,
            read=self.scope.read,
            written=self.writes.written,
            left=self.writes.left,
            dry_run=self.dry_run,
        )
