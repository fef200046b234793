"""Types of what the methods of `NearDupe` return, take and pass to callbacks, and of all parts of it.

The name of a result ends in ``Report``: `NearDupe.group` returns a `GroupReport`. `Lag` and `ScreenReport` are made by
the caller, and filled by `NearDupe.watch` and `NearDupe.screened`.
"""

from __future__ import annotations

from es_neardupe.candidates.detection import (
    BandsByLengths,
    Changes,
    Detection,
    DetectionCase,
    UnsuitedTexts,
)
from es_neardupe.candidates.large_buckets import Bucket
from es_neardupe.candidates.unprepared import UnpreparedTexts
from es_neardupe.candidates.unrelated import UnrelatedCandidates
from es_neardupe.candidates.who_may_meet import (
    GroupRules,
    Policy,
    ReadField,
    Window,
)
from es_neardupe.commands.audit.report import (
    AuditReport,
    BandsAdvice,
    LostPairs,
    MissedPair,
    Recall,
    RecallPart,
    RefutedPair,
    ReviewedPairs,
)
from es_neardupe.commands.audit.why_missed import LossReason
from es_neardupe.commands.bands.report import BandsReport
from es_neardupe.commands.clean.report import CleanReport
from es_neardupe.commands.contained.report import ContainedHit, ContainedReport, SampledDetection
from es_neardupe.commands.decide import (
    Contradiction,
    DecisionReport,
)
from es_neardupe.commands.distribution.report import (
    CrossValidation,
    Distribution,
    DistributionReport,
    FactsExample,
    FactsReport,
    FactsValue,
    LabelCounts,
    LabelledTrial,
    LabelLevel,
    LabelsReport,
    PresetAdvice,
    PresetChoice,
    PresetTrial,
    Recommendation,
    SimilarityExample,
    ThresholdLevel,
)
from es_neardupe.commands.distribution.sample import EstimatedPairs
from es_neardupe.commands.doctor.checks import Check
from es_neardupe.commands.documents.report import DocumentsReport, SharedChunks, SharingDocuments
from es_neardupe.commands.duplicates.diagnostics import (
    GroupingDiagnostics,
    HashingDiagnostics,
    PairsDiagnostics,
    ValidationDiagnostics,
)
from es_neardupe.commands.duplicates.results import (
    ContentStageReport,
    DocumentPair,
    DuplicatesReport,
    GroupsOfPairs,
    OverlappingPair,
    OverlapsStageReport,
    PairList,
    PairOverlaps,
    PairsStageReport,
    SkippedGroup,
)
from es_neardupe.commands.fold.report import FoldReport
from es_neardupe.commands.group import GroupOptions
from es_neardupe.commands.group.report import (
    DecisionCounts,
    GroupCounts,
    GroupReport,
    GroupScope,
    GroupsLookedAt,
    PairCounts,
)
from es_neardupe.commands.groups.keep import KeepAdvice, Redundant, SuggestKeepReport
from es_neardupe.commands.groups.report import GroupsReport
from es_neardupe.commands.init.prepared_sample import (
    PreparedExample,
    PreparedSample,
)
from es_neardupe.commands.init.report import InitReport, Sampling
from es_neardupe.commands.load.report import LoadReport, LoadScope
from es_neardupe.commands.migrate import MigrateOptions
from es_neardupe.commands.migrate.report import MigrateReport, MigrateWrites
from es_neardupe.commands.moved.report import MovedReport, NewPlace
from es_neardupe.commands.pairs import PairsOptions
from es_neardupe.commands.pairs.report import Pair, PairsReport
from es_neardupe.commands.pipeline.report import PipelineReport
from es_neardupe.commands.search.report import Copy, SearchHit, SearchReport
from es_neardupe.commands.shingles.report import Band, SampledKey, Shingle, ShinglesReport, Slot, StoredKeys, Token
from es_neardupe.commands.similar.report import SimilarHit, SimilarReport
from es_neardupe.commands.stats.report import BucketSize, GroupSizes, LargestBuckets, StatsReport, StatsScope
from es_neardupe.commands.version import VersionReport
from es_neardupe.commands.watch.rounds import Lag, Round, RoundPairs, RoundScope, RoundWrites, WatchReport
from es_neardupe.commands.what_if.report import Threshold, WhatIfReport
from es_neardupe.groups.clusters import RelatedCounts
from es_neardupe.groups.compare_groupings import (
    GroupChange,
    GroupChangeExample,
    GroupChanges,
)
from es_neardupe.groups.decisions import (
    Decision,
    Verdict,
)
from es_neardupe.groups.read import (
    Group,
    Member,
)
from es_neardupe.groups.registry import (
    GroupEvent,
    GroupRecord,
)
from es_neardupe.groups.rules import RunRules
from es_neardupe.incoming.matches import (
    Match,
    MatchedAction,
    OtherMatch,
    ScreenCounts,
    ScreenReport,
)
from es_neardupe.index.on_server.ingest_pipeline import IndexPipelines
from es_neardupe.index.storage.interface import GroupIdsWritten
from es_neardupe.keys.intervals import Estimate
from es_neardupe.keys.unit import Unit
from es_neardupe.match_options import MatchOptions
from es_neardupe.options import (
    FactKind,
    Linkage,
    Matching,
    MeasureName,
    OnMatch,
    Versions,
)
from es_neardupe.progress import Progress
from es_neardupe.readers.files import Problem
from es_neardupe.records import (
    DocumentsInScope,
    State,
)
from es_neardupe.report_parts import EnrichReport, EnrichScope, FingerprintWrites, WriteCounts
from es_neardupe.run_options import ReadOptions, RunOptions, WriteOptions
from es_neardupe.server.dry_run import ShownRequest
from es_neardupe.server.failures import (
    Failure,
    Failures,
)
from es_neardupe.similarity.comparison import (
    Block,
    CompareReport,
    Difference,
    Direction,
    Matched,
    Side,
)
from es_neardupe.similarity.differences import TextChange
from es_neardupe.similarity.explained_scores import Score
from es_neardupe.similarity.facts.differing import Fact
from es_neardupe.similarity.histogram import Histogram
from es_neardupe.tables import Table
from es_neardupe.verification.boilerplate import (
    Boilerplate,
    SharedPassage,
)
from es_neardupe.verification.common_shingles import (
    CommonShinglesEffect,
    CommonShinglesList,
    CommonShinglesUsed,
)
from es_neardupe.verification.evidence_entries import EvidenceReport
from es_neardupe.verification.facts import GroupFacts
from es_neardupe.verification.match_rules import MatchRules, WeightsUsed

__all__ = [
    "AuditReport",
    "Band",
    "BandsAdvice",
    "BandsByLengths",
    "BandsReport",
    "Block",
    "Boilerplate",
    "Bucket",
    "BucketSize",
    "Changes",
    "Check",
    "CleanReport",
    "CommonShinglesEffect",
    "CommonShinglesList",
    "CommonShinglesUsed",
    "CompareReport",
    "ContainedHit",
    "ContainedReport",
    "ContentStageReport",
    "Contradiction",
    "Copy",
    "CrossValidation",
    "Decision",
    "DecisionCounts",
    "DecisionReport",
    "Detection",
    "DetectionCase",
    "Difference",
    "Direction",
    "Distribution",
    "DistributionReport",
    "DocumentPair",
    "DocumentsInScope",
    "DocumentsReport",
    "DuplicatesReport",
    "EnrichReport",
    "EnrichScope",
    "Estimate",
    "EstimatedPairs",
    "EvidenceReport",
    "Fact",
    "FactKind",
    "FactsExample",
    "FactsReport",
    "FactsValue",
    "Failure",
    "Failures",
    "FingerprintWrites",
    "FoldReport",
    "Group",
    "GroupChange",
    "GroupChangeExample",
    "GroupChanges",
    "GroupCounts",
    "GroupEvent",
    "GroupFacts",
    "GroupIdsWritten",
    "GroupOptions",
    "GroupRecord",
    "GroupReport",
    "GroupRules",
    "GroupScope",
    "GroupSizes",
    "GroupingDiagnostics",
    "GroupsLookedAt",
    "GroupsOfPairs",
    "GroupsReport",
    "HashingDiagnostics",
    "Histogram",
    "IndexPipelines",
    "InitReport",
    "KeepAdvice",
    "LabelCounts",
    "LabelLevel",
    "LabelledTrial",
    "LabelsReport",
    "Lag",
    "LargestBuckets",
    "Linkage",
    "LoadReport",
    "LoadScope",
    "LossReason",
    "LostPairs",
    "Match",
    "MatchOptions",
    "MatchRules",
    "Matched",
    "MatchedAction",
    "Matching",
    "MeasureName",
    "Member",
    "MigrateOptions",
    "MigrateReport",
    "MigrateWrites",
    "MissedPair",
    "MovedReport",
    "NewPlace",
    "OnMatch",
    "OtherMatch",
    "OverlappingPair",
    "OverlapsStageReport",
    "Pair",
    "PairCounts",
    "PairList",
    "PairOverlaps",
    "PairsDiagnostics",
    "PairsOptions",
    "PairsReport",
    "PairsStageReport",
    "PipelineReport",
    "Policy",
    "PreparedExample",
    "PreparedSample",
    "PresetAdvice",
    "PresetChoice",
    "PresetTrial",
    "Problem",
    "Progress",
    "ReadField",
    "ReadOptions",
    "Recall",
    "RecallPart",
    "Recommendation",
    "Redundant",
    "RefutedPair",
    "RelatedCounts",
    "ReviewedPairs",
    "Round",
    "RoundPairs",
    "RoundScope",
    "RoundWrites",
    "RunOptions",
    "RunRules",
    "SampledDetection",
    "SampledKey",
    "Sampling",
    "Score",
    "ScreenCounts",
    "ScreenReport",
    "SearchHit",
    "SearchReport",
    "SharedChunks",
    "SharedPassage",
    "SharingDocuments",
    "Shingle",
    "ShinglesReport",
    "ShownRequest",
    "Side",
    "SimilarHit",
    "SimilarReport",
    "SimilarityExample",
    "SkippedGroup",
    "Slot",
    "State",
    "StatsReport",
    "StatsScope",
    "StoredKeys",
    "SuggestKeepReport",
    "Table",
    "TextChange",
    "Threshold",
    "ThresholdLevel",
    "Token",
    "Unit",
    "UnpreparedTexts",
    "UnrelatedCandidates",
    "UnsuitedTexts",
    "ValidationDiagnostics",
    "Verdict",
    "VersionReport",
    "Versions",
    "WatchReport",
    "WeightsUsed",
    "WhatIfReport",
    "Window",
    "WriteCounts",
    "WriteOptions",
]
