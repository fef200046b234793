"""Parts of the reports of commands that write: the documents, pairs, groups and writes of one run.

Every number has one meaning in all reports. Numbers of the whole index say so; all others are of this run. Each part
states its sum, or the report that has it does.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from es_neardupe.candidates.join import Bucket
from es_neardupe.index.storage import GroupIdsWritten
from es_neardupe.records import one_line

__all__ = [
    "EnrichScope",
    "FingerprintWrites",
    "GroupCounts",
    "GroupScope",
    "GroupsLookedAt",
    "LoadScope",
    "PairCounts",
    "WriteCounts",
    "one_line",
]


@dataclass(frozen=True, kw_only=True)
class EnrichScope:
    """Documents that ``enrich`` had to do with: ``documents + excluded`` are all of the index at the beginning.

    ``read`` is the sum of the writes.
    """

    documents: int
    """In scope when the run began."""
    excluded: int
    """Outside of the scope that ``query`` and the chosen relations give: neither read nor written."""
    left_alone: int
    """Of the index, documents of other relations of a join field than those to be processed: children, by default."""
    current: int
    """Of those in scope, had a fingerprint of this scheme already."""
    read: int


@dataclass(frozen=True, kw_only=True)
class LoadScope:
    """Lines of the files: ``read = bad + duplicates + existing`` + the sum of the writes."""

    read: int
    bad: int
    """Lines that are no document."""
    duplicates: int
    """Lines whose id stood in the files before: the first one counts."""
    existing: int
    """Lines with an id that the index has already: these documents stay as they are, unless ``replace``."""


@dataclass(frozen=True, kw_only=True)
class GroupScope:
    """Documents of the index, and those that ``group`` looked at: ``affected = sum(states) + corrupt``.

    ``affected = stale + corrupt`` + the sum of the writes, and ``documents = grouped + alone + stale + corrupt``.
    """

    documents: int
    """Of the index, those with a fingerprint of its scheme."""
    unprocessed: int
    """Of the index, all others: they are in no group and not among ``documents``."""
    whole: bool
    """Whether all documents were looked at, or only those that a change can have moved."""
    reason: str
    """Why."""
    affected: int
    """Documents that were looked at."""
    states: Mapping[str, int]
    """The readable ones among them, by state."""
    stale: int
    """Of them, those whose text is not the one that was fingerprinted, or that were deleted: left as they are."""
    corrupt: int
    """Of them, those whose stored fingerprint cannot be read: left as they are."""


@dataclass(frozen=True, kw_only=True)
class PairCounts:
    """Pairs of distinct texts that ``group`` looked at: ``matches <= candidates``.

    ``skipped`` is the sum over ``large_buckets``.
    """

    copies: int
    """Documents that are exact copies of another one and were taken as that one."""
    candidates: int
    """Candidate pairs: all of them were verified."""
    compared: int
    """Of these and of pairs within groups, those whose texts were compared; the others were known."""
    matches: int
    """Candidates from ``min`` to ``max`` similar."""
    skipped: int
    """Comparisons left out in buckets over ``max_bucket``; a pair counts once for each of them."""
    large_buckets: tuple[Bucket, ...]


@dataclass(frozen=True, kw_only=True)
class GroupsLookedAt:
    """Groups that a run looked at: all of the index, or those that a change can have moved."""

    count: int
    mean_similarity: float | None
    """Of their members to their principals; None without any group."""
    pairs_below: int
    """Pairs of members that are below ``min`` among themselves."""
    pairs_not_compared: int
    """Pairs of members of very large groups that nobody compared."""


@dataclass(frozen=True, kw_only=True)
class GroupCounts:
    """Groups of two or more documents in the whole index: ``2 * count <= grouped``, ``largest <= grouped``."""

    count: int
    grouped: int
    """Documents in them."""
    alone: int
    """Documents in no group with another one."""
    largest: int
    """Documents of the largest group."""
    min_similarity: float | None
    """The true minimum of the similarities to the principals; None without any group."""
    looked_at: GroupsLookedAt


@dataclass(frozen=True, kw_only=True)
class WriteCounts:
    """Documents by what became of their update; each counts once: `total`."""

    written: int
    unchanged: int = 0
    """Needed no update."""
    conflicts: int = 0
    """Changed by somebody while the run went on: left for the next run."""
    deleted: int = 0
    """Deleted while the run went on."""
    refused: int = 0
    """Updates that the server refused; ``refusals`` says why."""
    refusals: tuple[str, ...] = ()
    """The most frequent reasons."""
    mirrored: GroupIdsWritten | None = None
    """Group ids written into the documents; None unless ``init --sidecar --write-group`` asked for that."""

    @property
    def total(self) -> int:
        """``written + unchanged + conflicts + deleted + refused``."""
        return self.written + self.unchanged + self.conflicts + self.deleted + self.refused

    @property
    def left(self) -> int:
        """``conflicts + refused``: the next run has to take them."""
        return self.conflicts + self.refused


@dataclass(frozen=True, kw_only=True)
class FingerprintWrites(WriteCounts):
    """The same of new fingerprints: ``written = sum(states)``, ``numeric <= signed + short``."""

    states: Mapping[str, int]
    """Documents written, by state."""
    numeric: int
    """Of the signed and short ones among them: documents all of whose tokens are numbers."""
