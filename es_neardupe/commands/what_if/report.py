"""The report of `what-if`."""

from __future__ import annotations

from dataclasses import dataclass, field

from es_neardupe.candidates.detection import Detection
from es_neardupe.records import one_line


@dataclass(frozen=True)
class Threshold:
    """The groups that `group` would make with another ``min``, compared with the stored ones."""

    min: float
    groups: int
    """Of two documents or more."""
    grouped: int
    """Documents in these groups."""
    largest: int
    joined: int
    """Documents that are in no group now, and would be in one."""
    left: int
    """Documents that are in a group now, and would be in none."""
    moved: int
    """Documents that would be in a group with another id than now."""
    detection: Detection


@dataclass(frozen=True)
class WhatIfReport:
    """Simulated groups. All other rules are those of the last run: measure, ``max``, scope, window and principal."""

    index: str
    scheme: str
    measure: str
    min: float
    """Minimum of the last run."""
    max: float
    linkage: str
    documents: int
    """Enriched documents."""
    corrupt: int
    """Of these, documents with unreadable keys: in no group before and after."""
    groups: int
    """Stored groups of two or more documents, without the ``corrupt`` ones."""
    grouped: int
    largest: int
    candidates: int
    """Candidate pairs of distinct texts."""
    unprocessed: int
    """Documents without a fingerprint of the index's scheme, which are in no group."""
    thresholds: tuple[Threshold, ...]
    seconds: float = field(compare=False)

    def __repr__(self) -> str:
        return one_line(
            self,
            index=self.index,
            groups=self.groups,
            grouped=self.grouped,
            thresholds=[one.min for one in self.thresholds],
        )
