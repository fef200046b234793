"""Typed models of answers over HTTP and MCP: derived from the records of commands, in their documented JSON form."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from types import UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, ConfigDict, Field, create_model

from es_neardupe.commands.contained import Contained
from es_neardupe.commands.decide import DecisionReport
from es_neardupe.commands.similar import Similar, SimilarHit
from es_neardupe.commands.stats import Stats
from es_neardupe.groups.collate import GroupCollation
from es_neardupe.groups.decisions import Decision, Verdict
from es_neardupe.groups.read import Group
from es_neardupe.groups.registry import GroupRecord
from es_neardupe.similarity.comparison import Comparison

__all__ = [
    "CollationAnswer",
    "ComparisonAnswer",
    "ContainedAnswer",
    "DecisionAnswer",
    "DecisionQuery",
    "DecisionReportAnswer",
    "DecisionsAnswer",
    "GroupAnswer",
    "GroupsAnswer",
    "Problem",
    "SimilarAnswer",
    "StatsAnswer",
    "TextQuery",
]

_STRICT = ConfigDict(extra="forbid")


class Problem(BaseModel):
    """An error as problem JSON (RFC 9457)."""

    type: str
    """Name of the error."""
    title: str
    status: int
    detail: str
    """The cause, and how to fix it."""


class TextQuery(BaseModel):
    """A text to search for."""

    model_config = _STRICT

    text: str = Field(min_length=1, max_length=1_000_000)
    min: float | None = Field(None, ge=0, le=1)
    top: int = Field(10, ge=1, le=1000)


class DecisionQuery(BaseModel):
    """A decision to store."""

    model_config = _STRICT

    verdict: Verdict
    id: str = Field(min_length=1)
    others: list[str] = Field([], max_length=1000)
    author: str = Field(min_length=1, max_length=200)
    note: str | None = Field(None, max_length=4000)
    dry_run: bool = False


@cache
def _model(record: Any) -> Any:
    """The model of a record: a dataclass without the fields whose names begin with _, or a named tuple."""
    hints = get_type_hints(record)
    names = [one.name for one in fields(record)] if is_dataclass(record) else list(record._fields)
    parts: dict[str, Any] = {name: (_typed(hints[name]), ...) for name in names if not name.startswith("_")}
    return create_model(record.__name__, __config__=_STRICT, **parts)


def _typed(hint: Any) -> Any:
    """A type with the models of the records in it."""
    origin, parts = get_origin(hint), get_args(hint)
    if isinstance(hint, type) and (is_dataclass(hint) or hasattr(hint, "_fields")):
        return _model(hint)
    if origin in (Union, UnionType):
        return Union[tuple(_typed(one) for one in parts)]  # noqa: UP007 - of types known at run time
    if origin in (tuple, list, Sequence):
        if origin is tuple and parts[-1] is not Ellipsis:
            return tuple[tuple(_typed(one) for one in parts)]  # type: ignore[misc]
        return list[_typed(parts[0])]  # type: ignore[misc]
    if origin in (dict, Mapping) or (isinstance(origin, type) and issubclass(origin, Mapping)):
        return dict[_typed(parts[0]), _typed(parts[1])]  # type: ignore[misc]
    return hint


def _derived(name: str, record: type, omitted: Sequence[str] = (), **more: Any) -> Any:
    """The model of a record with other fields."""
    found = _model(record).model_fields
    parts = {part: (info.annotation, ...) for part, info in found.items() if part not in omitted}
    return create_model(name, __config__=_STRICT, **{**parts, **more})


def _list_of(model: Any) -> Any:
    return list[model]


CollationAnswer = _model(GroupCollation)
ComparisonAnswer = _model(Comparison)
ContainedAnswer = _model(Contained)
StatsAnswer = _model(Stats)
GroupAnswer = _derived("Group", Group, ["known"], diameter=(int | None, None), weakest=(float | None, None))
_SIMILAR_HIT = _derived(
    "SimilarHit",
    SimilarHit,
    ["similarity", "measure"],
    resemblance=(float | None, None),
    measure=(str | None, None),
    similarity=(float | None, None),
)
SimilarAnswer = _derived("Similar", Similar, hits=(_list_of(_SIMILAR_HIT), ...))
_LISTED = _derived("ListedGroup", GroupRecord, ["settings", "history", "ended"], fields=(dict[str, str], ...))
GroupsAnswer = create_model(
    "Groups",
    __config__=_STRICT,
    total=(int, ...),
    all_found=(bool, ...),
    groups=(_list_of(_LISTED), ...),
    after=(str | None, ...),
)
DecisionAnswer = _derived("Decision", Decision, id=(str, ...))
DecisionReportAnswer = _model(DecisionReport)
DecisionsAnswer = create_model(
    "Decisions",
    __config__=_STRICT,
    total=(int, ...),
    decisions=(_list_of(DecisionAnswer), ...),
    after=(str | None, ...),
)
