"""Rules of one run of ``group``: built from options and the last run, checked against the index, stored as JSON."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import orjson

from es_neardupe.candidates.who_may_meet import (
    DEFAULT_RULES,
    LONGEST,
    GroupRules,
    Policy,
    ReadField,
    Window,
    parse_policy,
    parse_window,
)
from es_neardupe.display_text import validation_message
from es_neardupe.errors import SettingsError
from es_neardupe.index import mapping
from es_neardupe.index.index import Index
from es_neardupe.index.migration_state import next_prefix, replaced_prefix
from es_neardupe.index.target import IndexTarget
from es_neardupe.lists import check_list
from es_neardupe.options import DECIDING, Linkage, MeasureName
from es_neardupe.server.client import path
from es_neardupe.stored_json import StoredJson
from es_neardupe.verification.match_rules import MatchRules, WeightsUsed
from es_neardupe.wording import command, option

if TYPE_CHECKING:
    from es_neardupe.verification.criterion import MatchCriterion

DATES = {"date", "date_nanos"}
_SORTED = {"keyword", "constant_keyword", "boolean", "version", "ip", "byte", "short", "integer", "long"}
_SORTED |= {"unsigned_long", "half_float", "float", "double", "scaled_float"}


@dataclass(frozen=True)
class RunRules:
    """The options of a run (``match``, ``group``) and the values that follow from them in one index."""

    version: Literal[1] = field(default=1, kw_only=True)
    match: MatchRules
    group: GroupRules
    scheme: str
    measure: str
    """Label of the measure, for example ``jaccard (literal)``."""
    weights: WeightsUsed | None
    """With measure weighted: the sample that the weights were computed from."""
    min: float
    """``match.min``, or the threshold of the index."""
    reviews: Literal["respected", "ignored"] = "respected"
    """What a run does with the decisions of reviewers."""

    @classmethod
    def of(
        cls,
        match: MatchRules,
        group: GroupRules,
        criterion: MatchCriterion,
        scheme: str,
        *,
        ignore_reviews: bool = False,
    ) -> RunRules:
        """The rules of a run in an index of this scheme."""
        reviews: Literal["respected", "ignored"] = "ignored" if ignore_reviews else "respected"
        return cls(match, group, scheme, criterion.measure.label, criterion.weights, criterion.min, reviews)

    @property
    def deciding(self) -> dict[str, object]:
        """Every value that decides the groups, by name. Two runs with equal values make the same groups."""
        return {
            "scheme": self.scheme,
            "measure": self.measure,
            "weights": self.weights.at if self.weights else None,
            "min": self.min,
            "max": self.match.max,
            "facts": " and ".join(self.match.facts) or None,
            "max_bucket": self.group.max_bucket,
            "linkage": self.group.linkage.value,
            "principal": self.group.principal,
            "within": " and ".join(map(str, self.group.within)) or None,
            "across": self.group.across,
            "window": self.group.window,
            "reviews": self.reviews,
        }

    def __str__(self) -> str:
        """All rules in force, in one line."""
        usual = {"scheme": self.scheme, "reviews": "respected"}
        named = {name: one for name, one in self.deciding.items() if one is not None and usual.get(name) != one}
        if self.match.min is None:
            named["min"] = f"{self.min} (the threshold of the index)"
        if self.match.ignore_common is not None:
            named["ignore_common"] = self.match.ignore_common
        return ", ".join(f"{name.replace('_', '-')} {value}" for name, value in named.items())


_RULES: StoredJson[RunRules] = StoredJson(RunRules)


def encode_rules(rules: RunRules) -> dict[str, Any]:
    """The rules as JSON; `decode_rules` reads them back."""
    encoded: dict[str, Any] = _RULES.written(rules)
    return encoded


def decode_rules(stored: object) -> RunRules:
    """Read the output of `encode_rules`. Raises `ValueError` for anything else."""
    try:
        return _decoded(orjson.dumps(stored))
    except TypeError as error:  # such as an integer of more than 64 bits
        raise ValueError(str(error)) from error


@lru_cache(maxsize=16)  # each group has its rules, usually the same ones
def _decoded(text: bytes) -> RunRules:
    from pydantic import ValidationError

    stored = orjson.loads(text)
    version = stored.get("version") if isinstance(stored, Mapping) else None
    if version != 1:
        raise ValueError(f"version {version!s:.20}, not 1")
    try:
        rules = _RULES.parsed(text)
        parse_policy(rules.group.principal.name)
    except ValidationError as error:
        first = error.errors()[0]
        raise ValueError(f"{'.'.join(map(str, first['loc']))}: {validation_message(first)}") from error
    except SettingsError as error:
        raise ValueError(error.args[0]) from error
    if encode_rules(rules) != stored or rules.match.measure not in DECIDING:
        raise ValueError("values that no run stores")
    return rules


def rules_of(
    index: Index,
    before: GroupRules = DEFAULT_RULES,
    *,
    linkage: Linkage | str | None = None,
    principal: str | None = None,
    within: Sequence[str] | None = None,
    across: str | None = None,
    window: str | None = None,
    max_bucket: int | None = None,
) -> GroupRules:
    """The given rules, completed from ``before``, and checked against the fields of the index.

    Raises `SettingsError` for invalid values, and for fields that do not exist or cannot be compared.
    """
    try:
        linked = before.linkage if linkage is None else Linkage(linkage)
    except ValueError:
        known = ", ".join(one.value for one in Linkage)
        raise SettingsError(f"Unknown linkage {str(linkage)!r}. Known: {known}.") from None
    principal = before.principal.name if principal is None else principal
    if within is not None:
        check_list("within", within)
    within = [str(one) for one in before.within] if within is None else within
    across = str(before.across) if across is None and before.across else across
    window = str(before.window) if window is None and before.window else window
    maximum = before.max_bucket if max_bucket is None else max_bucket
    if maximum < 2:
        raise SettingsError(f"{option('max_bucket')} must be 2 or more, not {maximum}.")
    types = sortable_types(index) if within or across or window or principal != "longest" else {}
    columns = sorted({column_of(one, types, index.target) for one in within}, key=str)
    apart = None if across is None else column_of(across, types, index.target)
    if apart in columns:
        raise SettingsError(
            f"{option('within')} and {option('across')} name the same field {across!r}, so no documents would match."
        )
    limit = None
    if window is not None:
        field, days = parse_window(window)
        limit = Window(column_of(field, types, index.target, only=DATES), days)
    return GroupRules(
        linkage=linked,
        principal=_policy(principal, types, index.target, limit),
        within=tuple(columns),
        across=apart,
        window=limit,
        max_bucket=maximum,
    )


@contextmanager
def remembered_rules(index: Index, match: MatchRules, group: GroupRules) -> Iterator[None]:
    """Context in which options are combined with the rules of the last run, ``match`` and ``group``.

    If these are not the defaults, a `SettingsError` also explains how to start from the defaults.
    """
    try:
        yield
    except SettingsError as error:
        if (match, group) == (MatchRules.of(index.settings), DEFAULT_RULES):
            raise
        raise SettingsError(
            f"{error.args[0]} Options that are not given are those of the last run: `{command('group', index.name)} "
            f"--default-rules` starts from the defaults instead."
        ) from error


def check_linkage(linkage: Linkage, measure: MeasureName) -> None:
    """Raises `SettingsError` for chains by containment: one document that contains ten unrelated ones would link them
    all."""
    if linkage is Linkage.CHAIN and measure is MeasureName.CONTAINMENT:
        raise SettingsError(
            "Linkage chain cannot be used with containment: an anthology would link all texts that it contains. Use "
            f"another {option('linkage')}, or find the documents that contain a text with `es-neardupe contained`."
        )


def policy_of(index: Index, principal: str) -> Policy:
    """The policy of that name alone. Raises `SettingsError` as `rules_of`."""
    return rules_of(index, principal=principal).principal


def _policy(text: str, types: Mapping[str, str], target: IndexTarget, window: Window | None) -> Policy:
    field, descending = parse_policy(text)
    if field is None:
        return LONGEST
    if field:
        return Policy(text, column_of(field, types, target), descending)
    if window is not None:
        return Policy(text, window.column, descending)
    dates = sorted(name for name, kind in types.items() if kind in DATES)
    if len(dates) != 1:
        known = f"{target.name} has {', '.join(dates)}." if dates else f"{target.name} has none."
        raise SettingsError(
            f"{option('principal')} {text} needs an index with exactly one date field. {known} Name a field: FIELD:asc "
            f"or FIELD:desc."
        )
    return Policy(text, ReadField(dates[0], date=True), descending)


def column_of(field: str, types: Mapping[str, str], target: IndexTarget, only: set[str] | None = None) -> ReadField:
    """The field as a column, if all indices can sort by it, or its only multi-field that they can sort by, such as
    ``doc_id.keyword`` for a ``doc_id`` that was mapped dynamically. Raises `SettingsError`."""
    allowed = only or DATES | _SORTED
    if types.get(field) not in allowed:
        mapped = (sub for one in target.mappings.values() for sub in mapping.multi_fields(one["properties"], field))
        subs = sorted(name for name in set(mapped) if types.get(name) in allowed)
        field = subs[0] if len(subs) == 1 else field
    if types.get(field) not in allowed:
        known = ", ".join(sorted(name for name, kind in types.items() if kind in allowed)) or "none"
        what = "date field" if only else "field with values to compare (keyword, number, date, boolean)"
        raise SettingsError(f"Index {target.name} has no {what} {field!r}. Available: {known}.")
    return ReadField(field, date=types[field] in DATES)


def sortable_types(index: Index) -> dict[str, str]:
    """The type of each sortable field of the documents, except the ``neardupe`` fields under any prefix.

    Fields with different types in several indices, and fields in nested objects, are left out.
    """
    answer = index.client.request("GET", path(index.path, "_field_caps"), params={"fields": "*"})["fields"]
    prefix = replaced_prefix(index.settings.prefix)
    own = {prefix, next_prefix(prefix)}.union(*map(mapping.own_fields, index.target.mappings.values()))
    below = tuple(f"{name}." for name in own)
    nested = [name for name, types in answer.items() if "nested" in types]
    return {
        name: kind
        for name, types in answer.items()
        for kind, capabilities in types.items()
        if len(types) == 1
        and capabilities.get("aggregatable")
        and not capabilities.get("metadata_field")
        and name not in own
        and not name.startswith((*below, "_"))
        and mapping.lies_in(name, nested) is None
    }
