"""Parts of the reports of commands that write: the documents, pairs, groups and writes of one run, and the report of
`enrich`, which is a part of a round of `watch`.

Every number has the same meaning in all reports. Numbers are those of the run, unless they are described as those of
the index. Each part, or the report that contains it, states which numbers add up.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from es_neardupe.candidates.detection import UnsuitedTexts
from es_neardupe.candidates.large_buckets import Bucket
from es_neardupe.candidates.unprepared import UnpreparedTexts
from es_neardupe.groups.clusters import RelatedCounts
from es_neardupe.index.storage.interface import GroupIdsWritten
from es_neardupe.records import one_line
from es_neardupe.server.bulk import BulkCounts
from es_neardupe.server.dry_run import ShownRequest
from es_neardupe.server.failures import Failures
from es_neardupe.verification.facts import GroupFacts

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
class LoadScope:
    """Lines of the files: ``read = bad + duplicates + existing + matching + dropped`` + the sum of the writes."""

    read: int
    bad: int
    """Lines that are not a document."""
    duplicates: int
    """Lines whose id occurs earlier in the files; the first line is used."""
    existing: int
    """Lines with an id that exists in the index; these documents are skipped, unless ``replace``."""
    matching: int
    """Lines whose document matches another one and is not written: with ``on_match`` ``skip``."""
    dropped: int
    """Lines whose document an ingest pipeline of the index dropped."""
    skipped_links: int
    """Symbolic links that leave a folder, which were not followed and are not part of ``read``."""
    skipped_files: int
    """Files in a folder of records that are no records, which are not part of ``read``."""
    empty_lines: int
    """Lines that hold nothing, which are not part of ``read``."""


@dataclass(frozen=True, kw_only=True)
class GroupScope:
    """Documents of the index, and those that ``group`` processed: ``affected = sum(states) + corrupt``.

    ``affected = untouched + corrupt`` + the sum of the writes, ``documents = grouped + alone + untouched + corrupt``.
    """

    documents: int
    """Documents of the index with a fingerprint of its scheme."""
    unprocessed: int
    """All other documents of the index, which are in no group."""
    whole: bool
    """Whether all documents were processed, or only those whose group can have changed."""
    reason: str
    """Why all of them were, or how many new and changed documents the run started from."""
    affected: int
    """Documents that were processed."""
    states: Mapping[str, int]
    """Processed documents with a readable fingerprint, by state."""
    stale: int
    """Processed documents that were changed since they were fingerprinted, and are alone until ``enrich`` has read
    them, or were deleted: they are in no group."""
    untouched: int
    """Of the stale ones, those to which nothing was written: deleted, or grouped with one that was."""
    corrupt: int
    """Processed documents whose stored fingerprint cannot be read; skipped."""
    written_since_enrich: int
    """Documents of the index that were written since the last ``enrich``, so that their texts can have changed; 0 if
    that is unknown."""


@dataclass(frozen=True, kw_only=True)
class PairCounts:
    """Pairs of distinct texts that ``group`` processed: ``matches <= candidates``.

    ``skipped`` is at most the sum over ``large_buckets``, since these overlap.
    """

    copies: int
    """Exact copies of another document, treated as one text with it."""
    candidates: int
    """Candidate pairs, all of them verified."""
    compared: int
    """Candidate pairs and pairs within groups whose texts were compared; the others were known."""
    matches: int
    """Candidates whose similarity lies between ``min`` and ``max``, and whose facts agree if these decide."""
    other_facts: int
    """With ``facts``: candidates that are similar enough, but differ in these facts."""
    nearly: int
    """Candidates whose similarity is less than ``min``, by at most 0.2. Pairs that are no candidates do not count, even
    if they are as similar: the lower the similarity, the more of them."""
    nearly_texts: int
    """Distinct texts in these pairs. If there are many more pairs than texts, these share a template or boilerplate."""
    skipped: int
    """Pairs that share a bucket larger than ``max_bucket`` and are no candidates. Each pair counts once."""
    compared_to_link: int
    """With linkage complete: pairs that are no candidates, but were compared because a group depended on them."""
    open: int
    """With linkage complete: pairs that are no candidates, and of which a cluster of texts linked by matches has too
    many to compare them. Its groups may be split."""
    large_buckets: tuple[Bucket, ...]


@dataclass(frozen=True, kw_only=True)
class DecisionCounts:
    """Decisions of reviewers about two texts that ``group`` processed."""

    same: int
    different: int
    disputed: int
    """Pairs of texts on which reviewers disagree; the run decides about them as about any other pair."""
    unsatisfied: int
    """Decisions *same* whose texts are not in one group, in the whole index: other decisions keep them apart, or the
    rules ``within`` or ``window`` do."""
    held: int
    """Documents that do not match their principal, but that a decision *same* holds in the group. They are part of
    ``grouped``."""


@dataclass(frozen=True, kw_only=True)
class GroupsLookedAt:
    """Groups that a run processed: all of the index, or those that can have changed."""

    count: int
    mean_similarity: float | None
    """Mean similarity of members to their principals; None without groups."""
    pairs_below: int
    """Pairs of members that are less similar than ``min``."""
    pairs_not_compared: int
    """Pairs of members of very large groups that were not compared."""
    only_boilerplate: int
    """Groups of which fewer than half of the other texts match the principal without the boilerplate that was found."""
    facts: GroupFacts | None
    """Groups in which facts differ; None if facts decide."""


@dataclass(frozen=True, kw_only=True)
class GroupCounts:
    """Groups of two or more documents in the whole index: ``2 * count <= grouped``, ``largest <= grouped``."""

    count: int
    grouped: int
    """Documents in these groups."""
    alone: int
    """Documents without a near-duplicate."""
    largest: int
    """Documents of the largest group."""
    min_similarity: float | None
    """Minimum similarity of a member to its principal, over all groups; None without groups."""
    related: RelatedCounts
    """Matches that are not in one group: ``related.alone <= alone``."""
    looked_at: GroupsLookedAt


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
