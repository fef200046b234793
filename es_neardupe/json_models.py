"""Typed models of answers over HTTP and MCP: derived from the records of commands, in their documented JSON form."""

from __future__ import annotations

import ast
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import fields, is_dataclass
from functools import cache
from itertools import pairwise
from textwrap import dedent
from types import UnionType
from typing import Annotated, Any, ForwardRef, Literal, TypeAlias, Union, get_args, get_origin, get_type_hints

from pydantic import BaseModel, BeforeValidator, ConfigDict, Discriminator, Field, Tag, WithJsonSchema, create_model

from es_neardupe.commands.contained import contained
from es_neardupe.commands.contained.report import ContainedReport
from es_neardupe.commands.decide import DecisionReport
from es_neardupe.commands.documents.report import DocumentsReport
from es_neardupe.commands.pairs.report import Pair
from es_neardupe.commands.similar import similar
from es_neardupe.commands.similar.report import SimilarHit, SimilarReport
from es_neardupe.commands.stats.report import StatsReport
from es_neardupe.groups.collate import GroupCollation
from es_neardupe.groups.decisions import MAX_TEXTS, Decision
from es_neardupe.groups.read import Group
from es_neardupe.groups.registry import GroupRecord
from es_neardupe.records import Address
from es_neardupe.signatures import defaults_of, meaning_of
from es_neardupe.similarity.comparison import CompareReport
from es_neardupe.similarity.facts.kinds import FACT_NAMES, NO_FACTS
from es_neardupe.views.document_pages import DocumentPart

_STRICT = ConfigDict(extra="forbid")
_QUERY = ConfigDict(extra="forbid", use_attribute_docstrings=True)


def _number(given: Any) -> Any:
    """The value, if JSON says that it is a number: 10.0 is a whole one, "10" and true are none."""
    if isinstance(given, str | bool):
        raise ValueError("Input should be a valid number")
    return given


_NUMBER = BeforeValidator(_number)


class ProblemAnswer(BaseModel):
    """An error as problem JSON (RFC 9457)."""

    model_config = _QUERY

    type: str
    """Name of the error, or ``about:blank`` if the status says all."""
    title: str
    """Words of the status."""
    status: int
    """HTTP status."""
    detail: str
    """The cause, and how to fix it."""


_FACT_NAMES = "|".join(FACT_NAMES)
FactNames: TypeAlias = list[
    Annotated[str, WithJsonSchema({"type": "string", "pattern": f"^({NO_FACTS}|({_FACT_NAMES})(,({_FACT_NAMES}))*)$"})]
]
"""Kinds of facts that decide, as those of ``--facts``, whose message names the known ones."""


CommonShare: TypeAlias = Annotated[float, Field(gt=0, lt=1)] | Literal["auto"]
"""A share of the documents, as that of ``--ignore-common``."""


class TextQuery(BaseModel):
    """A text to search for."""

    model_config = _QUERY

    text: str = Field(min_length=1, max_length=1_000_000)
    """The text."""
    top: Annotated[int, Field(**meaning_of(similar, "top", le=1000)), _NUMBER] = defaults_of(similar)["top"]


class SimilarQuery(TextQuery):
    """A text whose near-duplicates to search for."""

    min: Annotated[float | None, Field(**meaning_of(similar, "min")), _NUMBER] = None
    facts: Annotated[FactNames, Field(**meaning_of(similar, "facts"))] = []


class ContainedQuery(TextQuery):
    """A text whose passages to search for."""

    min: Annotated[float | None, Field(**meaning_of(contained, "min")), _NUMBER] = None
    ignore_common: Annotated[CommonShare | None, Field(**meaning_of(contained, "ignore_common"))] = None


class AddressQuery(BaseModel):
    """A document whose id is in several indices."""

    model_config = _QUERY

    index: str = Field(min_length=1)
    """Its concrete index."""
    id: str = Field(min_length=1)
    """Its id there."""

    @property
    def address(self) -> Address:
        """Its address."""
        return Address(self.index, self.id)


DocumentQuery: TypeAlias = Annotated[str, Field(min_length=1)] | AddressQuery
"""A document by its id, or by index and id."""


class _DecisionQuery(BaseModel):
    """What each decision has."""

    model_config = _QUERY

    author: str = Field(min_length=1, max_length=200)
    """Name of the reviewer."""
    note: str | None = Field(None, max_length=4000, json_schema_extra={"pattern": r"^[^\u0000]*$"})
    """Any text about it."""
    dry_run: bool = Field(False, strict=True)
    """Store nothing."""


class VerdictQuery(_DecisionQuery):
    """A decision about one document, or about it and each of some others."""

    model_config = ConfigDict(
        json_schema_extra={
            "if": {"properties": {"verdict": {"enum": ["same", "different"]}}},
            "then": {"required": ["others"], "properties": {"others": {"minItems": 1}}},
        }
    )

    verdict: Literal["same", "different", "keep", "note"]
    """*same* and *different*: about ``id`` and each of ``others``. *keep*: ``id`` is the one to keep. *note*: only
    the text ``note``."""
    id: DocumentQuery
    """The document."""
    others: list[DocumentQuery] = Field([], max_length=MAX_TEXTS - 1)
    """The other ones."""


class PartsQuery(_DecisionQuery):
    """A decision that divides documents into parts: those of each part are the same, and different from all others."""

    parts: list[Annotated[list[DocumentQuery], Field(min_length=1)]] = Field(min_length=1, max_length=MAX_TEXTS)
    """The documents of each part."""


def _form(given: Any) -> str:
    return (PartsQuery if isinstance(given, Mapping) and "parts" in given else VerdictQuery).__name__


DecisionQuery: TypeAlias = Annotated[
    Annotated[VerdictQuery, Tag(VerdictQuery.__name__)] | Annotated[PartsQuery, Tag(PartsQuery.__name__)],
    Discriminator(_form),
]
"""A decision to store."""


_described: list[type] = []
"""The records whose models are being made: a record can have others of its own type."""


@cache
def model_of(record: Any) -> Any:
    """The model of a record: a dataclass without the fields whose names begin with _, or a named tuple."""
    hints, meanings = get_type_hints(record), _meanings(record)
    _described.append(record)
    names = [one.name for one in fields(record)] if is_dataclass(record) else list(record._fields)
    parts: dict[str, Any] = {
        name: (_typed(hints[name]), Field(description=meanings.get(name))) for name in names if not name.startswith("_")
    }
    for name in getattr(record, "JSON_PROPERTIES", ()):
        value = vars(record)[name]
        parts[name] = (_typed(get_type_hints(value.fget)["return"]), Field(description=inspect.getdoc(value)))
    _described.pop()
    return create_model(record.__name__, __config__=_STRICT, __doc__=record.__doc__, **parts)


def _meanings(record: type) -> dict[str, str]:
    """Field -> the docstring below it, in a class and its base classes."""
    found: dict[str, str] = {}
    for one in reversed(record.__mro__[:-1]):
        try:
            (definition,) = ast.parse(dedent(inspect.getsource(one))).body
        except (OSError, TypeError):  # a class of Python itself, or a program without its sources
            continue
        body: list[ast.stmt] = getattr(definition, "body", [])
        for field, text in pairwise(body):
            if isinstance(field, ast.AnnAssign) and isinstance(text, ast.Expr) and isinstance(text.value, ast.Constant):
                found[ast.unparse(field.target)] = inspect.cleandoc(str(text.value.value))
    return found


def _typed(hint: Any) -> Any:
    """A type with the models of the records in it."""
    origin, parts = get_origin(hint), get_args(hint)
    if isinstance(hint, type) and (is_dataclass(hint) or hasattr(hint, "_fields")):
        return ForwardRef(hint.__name__) if hint in _described else model_of(hint)
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
    found = model_of(record).model_fields
    parts = {part: (info.annotation, info) for part, info in found.items() if part not in omitted}
    return create_model(name, __config__=_STRICT, __doc__=record.__doc__, **{**parts, **more})


def _list_of(model: Any) -> Any:
    return list[model]


CollationAnswer = model_of(GroupCollation)
ComparisonAnswer = model_of(CompareReport)
DocumentAnswer = model_of(DocumentPart)
ContainedAnswer = model_of(ContainedReport)
DocumentsAnswer = model_of(DocumentsReport)
StatsAnswer = model_of(StatsReport)
_OF_SOME = {"other_facts": (bool, False), "diameter": (int | None, None), "weakest": (float | None, None)}
GroupAnswer = _derived("Group", Group, ["known", "other_facts"], **_OF_SOME)
_BY_MEASURE: Any = {
    "resemblance": (
        float | None,
        Field(None, description="Jaccard similarity of the sets of shingles; absent if another measure decided."),
    ),
    "measure": (str | None, Field(None, description="The measure that decided, if it is another one.")),
    "similarity": (float | None, Field(None, description="The value of that measure.")),
}
_SIMILAR_HIT = _derived("SimilarHit", SimilarHit, ["similarity", "measure", "facts"], **_BY_MEASURE)
_RELATED_HIT = _derived("RelatedHit", SimilarHit, ["similarity", "measure"], **_BY_MEASURE)
PairAnswer = _derived("Pair", Pair, ["similarity", "measure", "facts"], **_BY_MEASURE)
SimilarAnswer = _derived(
    "SimilarReport", SimilarReport, hits=(_list_of(_SIMILAR_HIT), ...), related=(_list_of(_RELATED_HIT), ...)
)
_LISTED = _derived("ListedGroup", GroupRecord, ["settings", "history", "ended"], fields=(dict[str, str], ...))
GroupsAnswer = create_model(
    "Groups",
    __config__=_STRICT,
    total=(int, ...),
    all_found=(bool, ...),
    groups=(_list_of(_LISTED), ...),
    after=(str | None, ...),
)
DecisionAnswer = model_of(Decision)
DecisionReportAnswer = model_of(DecisionReport)
DecisionsAnswer = create_model(
    "Decisions",
    __config__=_STRICT,
    total=(int, ...),
    decisions=(_list_of(DecisionAnswer), ...),
    after=(str | None, ...),
)
