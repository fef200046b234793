"""Requests for duplicates: a JSON file becomes a plan of plain records.

The shape is that of Lingo4G's ``documentPairs:duplicates`` requests: named components, named stages.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from es_neardupe.requests.explaining import explain, warnings
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
from es_neardupe.requests.reading import read_json
from es_neardupe.requests.ready import example, names

__all__ = [
    "RATIO",
    "ContentPlan",
    "DuplicatesPlan",
    "OverlapsPlan",
    "RequestPlan",
    "SchemeKeys",
    "StagePlan",
    "Validation",
    "example",
    "explain",
    "names",
    "parse_request",
    "schema",
    "warnings",
]

# pydantic is imported where it is needed: it would be a fifth of a second for every other command.


def parse_request(request: str | Mapping[str, Any]) -> RequestPlan:
    """Read a request: its JSON text, or the object that stands there.

    Raises `SettingsError` for whatever cannot be used: one message with the JSON path and what is allowed there.
    """
    from es_neardupe.requests.messages import checked
    from es_neardupe.requests.resolving import plan_of

    return plan_of(checked(read_json(request)))


def schema() -> dict[str, Any]:
    """The JSON schema of requests (draft 2020-12), for editors that check while one types."""
    from es_neardupe.requests.models import Request

    made = Request.model_json_schema()
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **made, "title": "Request for duplicates"}
