"""Which parts of a request are about our fields and which about the user's, as pure functions over its JSON.

A query of ours is made of clauses of both kinds; the user's own scope stands in it as one clause. What is in it is
never interpreted: only whether it names a field of ours.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from enum import Enum
from typing import Any

from es_neardupe.errors import SettingsError

__all__ = ["Part", "asks_ours", "mentions", "part_of", "relaxed", "split_source", "with_clauses", "without_entry"]

JSON = dict[str, Any]
Source = bool | Sequence[str]

_CLAUSES = ("must", "filter", "should", "must_not")
_INNER = {"constant_score": "filter", "function_score": "query"}
_EVERYWHERE = {"match_all", "match_none", "ids"}
_LEAVES = {"term", "terms", "exists", "range", "prefix", "wildcard", "regexp", "match"}

MATCH_ALL: JSON = {"match_all": {}}
MATCH_NONE: JSON = {"match_none": {}}


class Part(Enum):
    """Whose fields a query is about."""

    NEITHER = "neither"
    OURS = "ours"
    THEIRS = "theirs"
    BOTH = "both"


def split_source(source: Any, prefix: str) -> tuple[Source, Source]:
    """The ``_source`` of a request for our documents and for the user's; False where nothing is asked of one."""
    if source is None or isinstance(source, bool):
        return ([prefix] if source is not False else False), source is not False
    names = [source] if isinstance(source, str) else list(source)
    ours = [name for name in names if _is_ours(name, prefix)]
    theirs = [name for name in names if not _is_ours(name, prefix)]
    return ours or False, theirs or False


def _is_ours(name: str, prefix: str) -> bool:
    return name == prefix or name.startswith(f"{prefix}.")


def mentions(value: Any, prefix: str) -> bool:
    """Whether a field of ours is named anywhere in some JSON."""
    if isinstance(value, Mapping):
        return any(_named(name, inner, prefix) or mentions(inner, prefix) for name, inner in value.items())
    return isinstance(value, list | tuple) and any(mentions(inner, prefix) for inner in value)


def _named(name: str, inner: Any, prefix: str) -> bool:
    """Fields stand as keys, or as the value of ``field`` or ``fields``."""
    values = [inner] if isinstance(inner, str) else inner if isinstance(inner, list) else []
    fields = [one for one in values if isinstance(one, str)] if name in ("field", "fields") else []
    return any(_is_ours(one, prefix) for one in [name, *fields])


def asks_ours(body: Mapping[str, Any], prefix: str) -> bool:
    """Whether a search is answered by our documents: where its query or what it counts is about our fields."""
    query = body.get("query", MATCH_ALL)
    return part_of(query, prefix) in (Part.OURS, Part.BOTH) or mentions(body.get("aggs", {}), prefix)


def part_of(query: Mapping[str, Any], prefix: str) -> Part:
    """Whose fields a query is about. Raises `SettingsError` for one that cannot be taken apart."""
    ((kind, inner),) = query.items()
    if kind in _EVERYWHERE or (kind in ("term", "terms") and set(inner) <= {"_index", "boost"}):
        return Part.NEITHER
    if kind == "bool" or kind in _INNER:
        found = {part_of(clause, prefix) for _, clause in _children(query)} - {Part.NEITHER}
        if len(found) > 1:
            return Part.BOTH
        return found.pop() if found else Part.NEITHER
    if not mentions(inner, prefix):
        return Part.THEIRS
    if kind not in _LEAVES:
        raise SettingsError(
            f"A query of kind {kind} over fields of {prefix!r} cannot be asked from the side, where these are in an "
            f"index of their own: combine bool, term, terms, range and exists."
        )
    return Part.OURS


def _children(query: Mapping[str, Any]) -> list[tuple[str, JSON]]:
    """The clauses of a compound query, each with its place."""
    ((kind, inner),) = query.items()
    if kind in _INNER:
        return [(_INNER[kind], inner.get(_INNER[kind], MATCH_ALL))]
    return [(name, clause) for name in _CLAUSES for clause in _listed(inner.get(name, []))]


def _listed(clauses: Any) -> list[JSON]:
    return [dict(clauses)] if isinstance(clauses, Mapping) else list(clauses)


def with_clauses(
    query: Mapping[str, Any], prefix: str, change: Callable[[Mapping[str, Any], bool], JSON], positive: bool = True
) -> JSON:
    """The query with each of its largest parts that are not of both kinds changed. ``change`` is told the part, and
    whether a document has to fulfil it (False: it must not)."""
    if part_of(query, prefix) is not Part.BOTH:
        return change(query, positive)
    ((kind, inner),) = query.items()
    if kind in _INNER:
        name = _INNER[kind]
        return {kind: {**inner, name: with_clauses(inner[name], prefix, change, positive)}}
    made = {
        name: [
            with_clauses(one, prefix, change, positive is (name != "must_not")) for one in _listed(inner.get(name, []))
        ]
        for name in _CLAUSES
        if name in inner
    }
    return {kind: {**inner, **made}}


def relaxed(query: Mapping[str, Any], prefix: str) -> JSON:
    """A query over our fields alone that matches at least the documents which ``query`` matches."""

    def change(part: Mapping[str, Any], positive: bool) -> JSON:
        if part_of(part, prefix) is not Part.THEIRS:
            return dict(part)
        return MATCH_ALL if positive else MATCH_NONE

    return with_clauses(query, prefix, change)


def without_entry(query: Mapping[str, Any], prefix: str) -> JSON | bool:
    """What a query asks of a document that has none of our fields: everything of it (True), nothing (False, it matches
    no such document), or a query over the user's fields."""
    ((kind, inner),) = query.items()
    part = part_of(query, prefix)
    if part is Part.THEIRS or (part is Part.NEITHER and kind != "bool"):
        return kind == "match_all" or (kind != "match_none" and dict(query))
    if kind in _INNER:
        return without_entry(inner[_INNER[kind]], prefix)
    if kind != "bool":
        return False
    asked = [(name, without_entry(clause, prefix)) for name, clause in _children(query)]
    musts = [found for name, found in asked if name in ("must", "filter")]
    nots = [found for name, found in asked if name == "must_not"]
    anything = _any_of([found for name, found in asked if name == "should"], _least(inner, bool(musts)))
    if False in [one for one in [*musts, anything] if isinstance(one, bool)] or any(one is True for one in nots):
        return False
    filters = [one for one in [*musts, anything] if not isinstance(one, bool)]
    refused = [one for one in nots if not isinstance(one, bool)]
    if not filters and not refused:
        return True
    return {"bool": {"filter": filters or [MATCH_ALL], "must_not": refused}}


def _least(inner: Mapping[str, Any], others: bool) -> int:
    """How many ``should`` clauses have to match, by the rule of servers where nothing is said."""
    if not _listed(inner.get("should", [])):
        return 0
    least = inner.get("minimum_should_match", 0 if others else 1)
    if not isinstance(least, int):
        raise SettingsError(f"minimum_should_match {least!r} cannot be asked from the side: give a number.")
    return least


def _any_of(found: Sequence[JSON | bool], least: int) -> JSON | bool:
    """At least so many of some clauses."""
    least -= sum(one is True for one in found)
    asked = [one for one in found if not isinstance(one, bool)]
    if least <= 0:
        return True
    return least <= len(asked) and {"bool": {"should": asked, "minimum_should_match": least}}
