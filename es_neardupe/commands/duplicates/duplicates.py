"""Answer a request for duplicates, over any documents of any index: nothing has to be prepared, nothing is written."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import islice
from typing import Any

from es_neardupe.commands.duplicates.find_pairs import find_pairs
from es_neardupe.commands.duplicates.request_parse import parse_request
from es_neardupe.commands.duplicates.request_plan import ContentPlan, DuplicatesPlan, OverlapsPlan, RequestPlan
from es_neardupe.commands.duplicates.results import (
    ContentResult,
    DuplicatesReport,
    OverlappingPair,
    OverlapsResult,
    PairList,
    PairsResult,
    overlaps,
)
from es_neardupe.errors import IndexUnusable, SettingsError
from es_neardupe.index import mapping as schema
from es_neardupe.index.document_text import text_of, values_at
from es_neardupe.index.index import Index
from es_neardupe.index.target import mappings_of
from es_neardupe.progress import Progress, silent, tracked
from es_neardupe.records import Hit
from es_neardupe.server.client import Client
from es_neardupe.server.search import fetch, refresh_if_allowed
from es_neardupe.similarity.comparison import MAX_CHARS

__all__ = ["check_fields", "contents", "duplicates", "overlapping"]


_NAMED = 40


def check_fields(index: str, mappings: Mapping[str, Mapping[str, Any]], plan: RequestPlan, prefix: str) -> None:
    """Raises `SettingsError` for a field whose values are in the documents of no index, `IndexUnusable` for an index
    that keeps no ``_source``, or leaves a field out of it."""
    for name, mapping in mappings.items():
        source = mapping.get("_source", {})
        if source.get("enabled") is False or source.get("mode") == "disabled":
            raise IndexUnusable(f"Index {name} has _source disabled: its texts cannot be read back.")
    known = schema.value_fields(mappings.values(), prefix)
    whole = _every_name(mappings.values())
    for stage in plan.stages:
        content = isinstance(stage, ContentPlan)
        for field in stage.fields:
            if field not in (whole if content else known):
                raise SettingsError(f"{_problem(index, field, mappings)} Fields there: {_listed(known)}.")
            if without := [name for name, mapping in mappings.items() if _left_out(field, mapping)]:
                raise IndexUnusable(
                    f"Index {', '.join(without)} leaves {field} out of _source (includes/excludes): its values cannot "
                    f"be read back. Name another field."
                )


def _left_out(field: str, mapping: Mapping[str, Any]) -> bool:
    """Whether ``_source`` is kept without this field."""
    source, parts = mapping.get("_source", {}), field.split(".")
    names = [".".join(parts[:end]) for end in range(1, len(parts) + 1)]

    def named(patterns: Sequence[str]) -> bool:
        return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)

    includes = source.get("includes", [])
    return named(source.get("excludes", [])) or (bool(includes) and not named(includes))


def _every_name(mappings: Iterable[Mapping[str, Any]]) -> set[str]:
    """Every field that ``_source`` may hold, objects too."""
    names: set[str] = set()
    for mapping in mappings:
        for field, kind in schema.field_types(mapping.get("properties", {})):
            if kind not in ("multi-field", "alias"):
                parts = field.split(".")
                names.update(".".join(parts[:end]) for end in range(1, len(parts) + 1))
    return names


def _problem(index: str, field: str, mappings: Mapping[str, Mapping[str, Any]]) -> str:
    kinds = {
        kind
        for mapping in mappings.values()
        for name, kind in schema.field_types(mapping.get("properties", {}))
        if name == field
    }
    if "multi-field" in kinds:
        whole = field.rpartition(".")[0]
        return f"{field} is a multi-field, which documents do not hold: name {whole} itself."
    if kinds:
        return f"Field {field!r} of index {index} is {'/'.join(sorted(kinds))}, which holds no text."
    return f"Index {index} has no field {field!r} with values."


def _listed(names: Sequence[str]) -> str:
    if not names:
        return "none"
    more = f" and {len(names) - _NAMED:,} more" if len(names) > _NAMED else ""
    return ", ".join(names[:_NAMED]) + more


_FETCH = 100
"""Documents read at a time."""
_DEEPEST = 100
"""Levels of lists and objects in a value; what lies deeper is left out, and counted as cut."""
_PAIRS = 25
"""Pairs whose texts are read at a time."""


def contents(client: Client, pairs: PairList, plan: ContentPlan, progress: Progress) -> ContentResult:
    """Read the wanted fields of every document in the pairs, in the order of their best pairs."""
    started = time.monotonic()
    numbers = list(dict.fromkeys(_ends(pairs)))
    wanted = numbers[: plan.limit]
    cutter = _Cutter(plan.fields)
    hits = fetch(client, (pairs.references[number] for number in wanted), list(plan.fields), batch=_FETCH)
    read = tracked(hits, progress, "reading contents", len(wanted))
    found = tuple({"index": hit.index, "id": hit.id, "fields": cutter.fields(hit)} for hit in read if hit is not None)
    return ContentResult(
        documents=found,
        cut=cutter.cut,
        missing=len(wanted) - len(found),
        not_read=len(numbers) - len(wanted),
        seconds=time.monotonic() - started,
    )


def _ends(pairs: PairList) -> Iterator[int]:
    """The numbers of the documents of each pair."""
    for one, other in zip(pairs.left.tolist(), pairs.right.tolist(), strict=True):
        yield from (one, other)


class _Cutter:
    """Takes the fields out of documents, values at their greatest length."""

    def __init__(self, longest: Mapping[str, int | None]) -> None:
        self._longest = longest
        self.cut = 0
        """Values that were longer, or nested more deeply."""

    def fields(self, hit: Hit) -> dict[str, Any]:
        """The fields that the document has: a value, or a list of several."""
        found = {name: values_at(hit.source, name) for name in self._longest}
        return {
            name: self._shortened(values[0] if len(values) == 1 else values, self._longest[name])
            for name, values in found.items()
            if values
        }

    def _shortened(self, value: Any, maximum: int | None, levels: int = _DEEPEST) -> Any:
        if isinstance(value, list | dict) and not levels:
            self.cut += 1
            return None
        if isinstance(value, list):
            return [self._shortened(one, maximum, levels - 1) for one in value]
        if isinstance(value, dict):
            return {name: self._shortened(one, maximum, levels - 1) for name, one in value.items()}
        if maximum is not None and isinstance(value, str) and len(value) > maximum:
            self.cut += 1
            return value[:maximum]
        return value


def overlapping(client: Client, pairs: PairList, plan: OverlapsPlan, progress: Progress) -> OverlapsResult:
    """Find the text blocks that the documents of each pair share, the most similar pairs first."""
    started = time.monotonic()
    wanted = len(pairs) if plan.limit is None else min(plan.limit, len(pairs))
    found: list[OverlappingPair] = []
    missing = too_long = 0
    for place, texts in tracked(_texts(client, pairs, plan, wanted), progress, "comparing texts", wanted, step=10):
        one, other = texts
        if one is None or other is None:
            missing += 1
        elif max(len(one), len(other)) > MAX_CHARS:
            too_long += 1
        else:
            pair = pairs[place]
            found.append(OverlappingPair(pair.a, pair.b, pair.similarity, overlaps(one, other, plan.min_words)))
    return OverlapsResult(tuple(found), missing, too_long, len(pairs) - wanted, time.monotonic() - started)


def _texts(
    client: Client, pairs: PairList, plan: OverlapsPlan, wanted: int
) -> Iterator[tuple[int, tuple[str | None, str | None]]]:
    """The place of each pair and its two texts, None for a document that is gone."""
    places = iter(range(wanted))
    while chunk := list(islice(places, _PAIRS)):
        numbers = sorted({number for k in chunk for number in (int(pairs.left[k]), int(pairs.right[k]))})
        hits = fetch(client, (pairs.references[number] for number in numbers), plan.fields)
        texts = {
            number: None if hit is None else text_of(hit.source, plan.fields)
            for number, hit in zip(numbers, hits, strict=True)
        }
        for k in chunk:
            yield k, (texts[int(pairs.left[k])], texts[int(pairs.right[k])])


def duplicates(
    index: Index,
    request: RequestPlan | Mapping[str, Any] | str,
    *,
    progress: Progress = silent,
) -> DuplicatesReport:
    """Find the pairs of documents that a request describes, and read of them what it asks for.

    ``index`` may be an alias, a pattern or a comma list; ``request`` is JSON as text, as objects, or a plan that was
    read already. The same documents give the same pairs, in whatever order they come. Raises `SettingsError` for a
    request that is not understood or that names a field which no index has, `NotFound` for an unknown index,
    `NotInitialised` for a request by stored keys where there are none, `RequestError` in the server's words for a
    query that it rejects.
    """
    started = time.monotonic()
    plan = request if isinstance(request, RequestPlan) else parse_request(request)
    mappings = mappings_of(index.client, index.name)
    check_fields(index.name, mappings, plan, index.prefix)
    refresh_if_allowed(index.client, index.name)
    stages: dict[str, PairsResult | ContentResult | OverlapsResult] = {}
    pairs: dict[str, PairList] = {}
    for stage in plan.stages:
        if isinstance(stage, DuplicatesPlan):
            found = find_pairs(index, stage, progress=progress)
            stages[stage.name], pairs[stage.name] = found, found.pairs
        elif isinstance(stage, ContentPlan):
            stages[stage.name] = contents(index.client, pairs[stage.pairs], stage, progress)
        else:
            stages[stage.name] = overlapping(index.client, pairs[stage.pairs], stage, progress)
    return DuplicatesReport(index.name, tuple(sorted(mappings)), stages, time.monotonic() - started)
