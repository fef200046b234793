"""The rules of grouping from the options of a command, checked against the fields that the index has."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from es_neardupe.candidates.who_may_meet import (
    DEFAULT_RULES,
    LONGEST,
    Column,
    GroupRules,
    Policy,
    Window,
    parse_policy,
    parse_window,
)
from es_neardupe.errors import SettingsError
from es_neardupe.index import mapping
from es_neardupe.index.index import Index
from es_neardupe.index.migration_state import next_prefix, replaced_prefix
from es_neardupe.index.target import IndexTarget
from es_neardupe.options import Linkage, MeasureName
from es_neardupe.server.client import path
from es_neardupe.verification.criterion import MatchOptions

__all__ = ["DATES", "check_linkage", "column_of", "field_types", "policy_of", "remembered_rules", "rules_of"]

DATES = {"date", "date_nanos"}
_SORTED = {"keyword", "constant_keyword", "boolean", "version", "ip", "byte", "short", "integer", "long"}
_SORTED |= {"unsigned_long", "half_float", "float", "double", "scaled_float"}


def rules_of(
    index: Index,
    before: GroupRules = DEFAULT_RULES,
    *,
    linkage: Linkage | str | None = None,
    principal: str | None = None,
    within: str | None = None,
    window: str | None = None,
    max_bucket: int | None = None,
) -> GroupRules:
    """These rules, and for those that are None the ones ``before``, checked against the fields that there are now.

    Raises `SettingsError` for what cannot be read, and for fields that are missing or cannot be compared.
    """
    try:
        linked = before.linkage if linkage is None else Linkage(linkage)
    except ValueError:
        known = ", ".join(one.value for one in Linkage)
        raise SettingsError(f"There is no linkage {str(linkage)!r}. Known: {known}.") from None
    principal = before.principal.name if principal is None else principal
    within = before.within.field if within is None and before.within else within
    window = str(before.window) if window is None and before.window else window
    maximum = before.max_bucket if max_bucket is None else max_bucket
    if maximum < 2:
        raise SettingsError(f"`max_bucket` must be 2 or more, not {maximum}.")
    kinds = field_types(index) if within or window or principal != "longest" else {}
    limit = None
    if window is not None:
        field, days = parse_window(window)
        limit = Window(column_of(field, kinds, index.target, only=DATES), days)
    return GroupRules(
        linkage=linked,
        principal=_policy(principal, kinds, index.target, limit),
        within=None if within is None else column_of(within, kinds, index.target),
        window=limit,
        max_bucket=maximum,
    )


@contextmanager
def remembered_rules(index: Index, match: MatchOptions, group: GroupRules) -> Iterator[None]:
    """Rules that are put together from options and those of the last run: what does not fit names the way out."""
    try:
        yield
    except SettingsError as error:
        if (match, group) == (MatchOptions(), DEFAULT_RULES):
            raise
        raise SettingsError(
            f"{error.args[0]} What is not given is as in the last run: `es-neardupe group {index.name} "
            f"--default-rules` starts from the defaults instead."
        ) from error


def check_linkage(linkage: Linkage, measure: MeasureName) -> None:
    """Raises `SettingsError` for chains of containment: one document that contains ten others would glue together
    what has nothing in common."""
    if linkage is Linkage.CHAIN and measure is MeasureName.CONTAINMENT:
        raise SettingsError(
            "Containment makes no chains: an anthology would glue together the texts that it contains. Take another "
            "`linkage`, or look for what contains a text with `es-neardupe contained`."
        )


def policy_of(index: Index, principal: str) -> Policy:
    """The policy alone. Raises `SettingsError`."""
    return rules_of(index, principal=principal).principal


def _policy(text: str, kinds: dict[str, str], target: IndexTarget, window: Window | None) -> Policy:
    field, descending = parse_policy(text)
    if field is None:
        return LONGEST
    if field:
        return Policy(text, column_of(field, kinds, target), descending)
    if window is not None:
        return Policy(text, window.column, descending)
    dates = sorted(name for name, kind in kinds.items() if kind in DATES)
    if len(dates) != 1:
        there = f"Date fields there: {', '.join(dates)}." if dates else "It has no date field at all."
        raise SettingsError(
            f"`principal` {text} goes by the one date field of an index. {there} Name one: FIELD:asc or FIELD:desc."
        )
    return Policy(text, Column(dates[0], date=True), descending)


def column_of(field: str, kinds: dict[str, str], target: IndexTarget, only: set[str] | None = None) -> Column:
    """The field, if all indices can sort by it."""
    allowed = only or DATES | _SORTED
    if kinds.get(field) not in allowed:
        known = ", ".join(sorted(name for name, kind in kinds.items() if kind in allowed)) or "none"
        what = "date field" if only else "field with values to compare (keyword, number, date, boolean)"
        raise SettingsError(f"Index {target.name} has no {what} {field!r}. There: {known}.")
    return Column(field, date=kinds[field] in DATES)


def field_types(index: Index) -> dict[str, str]:
    """The type of each of the user's fields that documents can be sorted by; fields of several types are left out,
    and those in nested objects, which documents cannot be sorted by as they stand."""
    answer = index.client.request("GET", path(index.path, "_field_caps"), params={"fields": "*"})["fields"]
    served = replaced_prefix(index.settings.prefix)
    own = (f"{served}.", f"{next_prefix(served)}.")  # while a migration prepares, there are both
    nested = [name for name, types in answer.items() if "nested" in types]
    return {
        name: kind
        for name, types in answer.items()
        for kind, told in types.items()
        if len(types) == 1
        and told.get("aggregatable")
        and not told.get("metadata_field")
        and not name.startswith((*own, "_"))
        and mapping.lies_in(name, nested) is None
    }
