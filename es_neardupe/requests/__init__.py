"""Requests for duplicates: a JSON file becomes a plan of plain records."""

from es_neardupe.requests.plan import (
    RATIO,
    ContentPlan,
    DuplicatesPlan,
    OverlapsPlan,
    RequestPlan,
    SchemeKeys,
    StagePlan,
    Validation,
)

__all__ = [
    "RATIO",
    "ContentPlan",
    "DuplicatesPlan",
    "OverlapsPlan",
    "RequestPlan",
    "SchemeKeys",
    "StagePlan",
    "Validation",
]
