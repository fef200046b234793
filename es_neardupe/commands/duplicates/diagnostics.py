"""Diagnostics of a stage of type ``documentPairs:duplicates``: how its pairs were found, in three steps."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True, slots=True)
class HashingDiagnostics:
    """Numbers of the first step: the documents in scope, and the hashes of their features."""

    features: str
    """In words."""
    documents: int
    without_fingerprint: int | None
    """Documents without stored keys; None if the keys are not those of the scheme."""
    without_features: int
    hashes: int
    seconds: float = 0

    def labelled(self) -> dict[str, Any]:
        """Label -> value."""
        missing = (
            {} if self.without_fingerprint is None else {"Documents without fingerprint": self.without_fingerprint}
        )
        return {
            "Features": self.features,
            "Documents": self.documents,
            **missing,
            "Documents without features": self.without_features,
            "Hash count": self.hashes,
            "Seconds": self.seconds,
        }


@dataclass(frozen=True, slots=True)
class GroupingDiagnostics:
    """Numbers of the second step: documents that share a hash, and their pairs."""

    max_group: int
    """Documents that may share a hash."""
    groups: int
    skipped: int
    comparisons: int
    """Pairs in all groups that were not skipped. A pair in several of them counts for each."""
    skipped_comparisons: int
    candidates: int
    out_of_scope: int
    """Candidates that no validation passed or failed."""
    seconds: float

    def labelled(self) -> dict[str, Any]:
        """Label -> value."""
        return {
            "Maximum size of hash collision groups": self.max_group,
            "Hash collision groups": self.groups,
            "Skipped large hash collision groups": self.skipped,
            "Pairwise hash comparisons": self.comparisons,
            "Skipped pairwise hash comparisons": self.skipped_comparisons,
            "Candidate pairs": self.candidates,
            "Out of scope pairs": self.out_of_scope,
            "Seconds": self.seconds,
        }


@dataclass(frozen=True, slots=True)
class ValidationDiagnostics:
    """Numbers of a validation: the pairs in the range of its similarity."""

    function: str
    """The name of the similarity, with its options."""
    min: float
    max: float
    passing: int
    failing: int
    read: int
    """Documents read."""
    changed_or_deleted: int
    """Documents that are in no pair, because they are not as they were hashed."""
    sampled: int | None
    """Documents sampled for the weights of shingles; None without weights."""
    seconds: float

    def labelled(self) -> dict[str, Any]:
        """Label -> value. An infinite maximum is None."""
        sampled = {} if self.sampled is None else {"Documents sampled for weights": self.sampled}
        return {
            "Pairwise similarity function": self.function,
            "Similarity thresholds": [self.min, None if math.isinf(self.max) else self.max],
            "Pairs passing": self.passing,
            "Pairs failing": self.failing,
            "Documents read": self.read,
            "Documents deleted or changed": self.changed_or_deleted,
            **sampled,
            "Seconds": self.seconds,
        }


@dataclass(frozen=True, slots=True)
class PairsDiagnostics:
    """Numbers of all steps. Candidate pairs = pairs passing the last validation + pairs failing any + out of scope
    pairs."""

    hashing: HashingDiagnostics
    grouping: GroupingDiagnostics
    validations: tuple[ValidationDiagnostics, ...]

    def labelled(self) -> Mapping[str, Mapping[str, Any]]:
        """Step -> label -> number or text, as JSON, tables and pages show them."""
        return {
            "Computing feature hashes": self.hashing.labelled(),
            "Aggregating results": self.grouping.labelled(),
            **{f"Validating pairs using {one.function}": one.labelled() for one in self.validations},
        }
