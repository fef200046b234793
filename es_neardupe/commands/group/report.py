"""The report of `group`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from es_neardupe.candidates.detection import Detection, UnsuitedTexts
from es_neardupe.candidates.large_buckets import Bucket
from es_neardupe.candidates.unprepared import UnpreparedTexts
from es_neardupe.groups.clusters import RelatedCounts
from es_neardupe.groups.rules import RunRules
from es_neardupe.records import one_line
from es_neardupe.report_parts import WriteCounts
from es_neardupe.server.dry_run import ShownRequest
from es_neardupe.verification.boilerplate import Boilerplate
from es_neardupe.verification.common_shingles import CommonShinglesUsed
from es_neardupe.verification.evidence_entries import EvidenceReport
from es_neardupe.verification.facts import GroupFacts


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


@dataclass(frozen=True)
class GroupReport:
    """Result of a run: ``affected = untouched + corrupt`` + the sum of the writes.

    In the whole index, ``documents = grouped + alone + untouched + corrupt``.
    """

    index: str
    scheme: str
    rules: RunRules
    """All rules in force, given or from the last run; ``str`` gives them in one line."""
    detection: Detection
    common: CommonShinglesUsed | None
    """With ``ignore_common``: the ignored shingles."""
    boilerplate: Boilerplate
    """The clusters that only boilerplate holds together, of the documents that the run processed."""
    unprepared: UnpreparedTexts | None
    """Random documents with texts of a kind that should be prepared; None if there is none."""
    unsuited: UnsuitedTexts | None
    """Documents that are too short or too long for the keys; None if these suit all lengths."""
    scope: GroupScope
    pairs: PairCounts
    decisions: DecisionCounts
    """All 0 with ``ignore_reviews``."""
    groups: GroupCounts
    writes: WriteCounts
    evidence: EvidenceReport | None
    """The stored evidence; None without ``evidence``, and in a dry run."""
    dry_run: bool
    seconds: float = field(compare=False)
    requests: tuple[ShownRequest, ...] = ()
    """With ``show_requests``: the first write requests of a dry run."""
    tuned: Mapping[str, Mapping[str, str | None]] | None = None
    """With ``tune``: index -> the settings that were changed during the run, with their restored values."""

    def __repr__(self) -> str:
        return one_line(
            self,
            index=self.index,
            groups=self.groups.count,
            grouped=self.groups.grouped,
            matches=self.pairs.matches,
            written=self.writes.written,
            dry_run=self.dry_run,
        )
