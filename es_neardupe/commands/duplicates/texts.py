"""Stages of ``duplicates`` about texts: the fields of documents, their contents and overlaps."""

from __future__ import annotations

import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from fnmatch import fnmatchcase
from itertools import islice
from typing import Any

from es_neardupe.commands.duplicates.request_plan import (
    ContentPlan,
    DuplicatesPlan,
    OverlapsPlan,
    RequestPlan,
)
from es_neardupe.commands.duplicates.results import (
    ContentStageReport,
    OverlappingPair,
    OverlapsStageReport,
    PairList,
    overlaps,
)
from es_neardupe.errors import IndexUnusable, SettingsError
from es_neardupe.index import mapping as schema
from es_neardupe.index.document_text import text_of, values_at
from es_neardupe.progress import Progress, tracked
from es_neardupe.records import Hit
from es_neardupe.server.client import Client
from es_neardupe.server.search import fetch
from es_neardupe.similarity.comparison import MAX_CHARS
from es_neardupe.wording import option

_MAX_NAMES = 40
"""Field names in a message."""

_MAX_DEPTH = 100
"""Levels of lists and objects in a value. Deeper ones are left out and counted as truncated."""

_PAIRS = 25
"""Pairs whose texts are read at a time."""


def chosen_stage(plan: RequestPlan, stage: str | None, *, needed: bool) -> DuplicatesPlan:
    """The stage whose pairs are written. Raises `SettingsError` if it is ``needed`` and ambiguous."""
    finding = {one.name: one for one in plan.stages if isinstance(one, DuplicatesPlan)}
    if not finding:
        raise SettingsError("No stage of the request finds pairs.")
    if stage is not None and stage not in finding:
        raise SettingsError(f"No stage {stage!r} finds pairs. Stages that find pairs: {', '.join(finding)}.")
    if stage is None and needed and len(finding) > 1:
        raise SettingsError(f"Several stages find pairs: choose one with {option('stage')}: {', '.join(finding)}.")
    return finding[stage] if stage is not None else next(iter(finding.values()))


# Fields


def check_fields(index: str, mappings: Mapping[str, Mapping[str, Any]], plan: RequestPlan, prefix: str) -> None:
    """Check that the values of all fields of a request can be read. ``mappings``: concrete index -> its mapping.

    Raises `SettingsError` for a field that no index has values of, `IndexUnusable` for an index that has ``_source``
    disabled or excludes a field from it.
    """
    for name, mapping in mappings.items():
        source = mapping.get("_source", {})
        if source.get("enabled") is False or source.get("mode") == "disabled":
            raise IndexUnusable(f"Index {name} has _source disabled, so the values of its fields cannot be read.")
    with_values = schema.value_fields(mappings.values(), prefix)
    in_source = _source_fields(mappings.values())
    for stage in plan.stages:
        allowed = in_source if isinstance(stage, ContentPlan) else with_values
        for field in stage.fields:
            if field not in allowed:
                raise SettingsError(f"{_problem(index, field, mappings)} Available fields: {_listed(with_values)}.")
            if excluding := [name for name, mapping in mappings.items() if _is_excluded(field, mapping)]:
                raise IndexUnusable(
                    f"Index {', '.join(excluding)} excludes {field} from _source (includes/excludes), so its values "
                    f"cannot be read. Choose another field."
                )


def _is_excluded(field: str, mapping: Mapping[str, Any]) -> bool:
    """Whether ``_source`` is stored without this field."""
    source, names = mapping.get("_source", {}), _with_parents(field)

    def matches(patterns: Sequence[str]) -> bool:
        return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)

    includes = source.get("includes", [])
    return matches(source.get("excludes", [])) or (bool(includes) and not matches(includes))


def _source_fields(mappings: Iterable[Mapping[str, Any]]) -> set[str]:
    """All fields that ``_source`` may contain, including objects."""
    names: set[str] = set()
    for mapping in mappings:
        for field, kind in schema.field_types(mapping.get("properties", {})):
            if kind not in ("multi-field", "alias"):
                names.update(_with_parents(field))
    return names


def _with_parents(field: str) -> list[str]:
    """``a``, ``a.b`` and ``a.b.c`` for ``a.b.c``."""
    parts = field.split(".")
    return [".".join(parts[:end]) for end in range(1, len(parts) + 1)]


def _problem(index: str, field: str, mappings: Mapping[str, Mapping[str, Any]]) -> str:
    kinds = {
        kind
        for mapping in mappings.values()
        for name, kind in schema.field_types(mapping.get("properties", {}))
        if name == field
    }
    if "multi-field" in kinds:
        parent = field.rpartition(".")[0]
        return f"{field} is a multi-field, which is not part of a document: use {parent}."
    if kinds:
        return f"Field {field!r} of index {index} has the type {'/'.join(sorted(kinds))}, which holds no text."
    return f"Index {index} has no field {field!r} with values."


def _listed(names: Sequence[str]) -> str:
    if not names:
        return "none"
    more = f" and {len(names) - _MAX_NAMES:,} more" if len(names) > _MAX_NAMES else ""
    return ", ".join(names[:_MAX_NAMES]) + more


# Stages on the pairs of another stage


def contents(client: Client, pairs: PairList, plan: ContentPlan, progress: Progress) -> ContentStageReport:
    """Read the fields of every document in the pairs, in the order of their best pairs."""
    started = time.monotonic()
    numbers = list(dict.fromkeys(_ends(pairs)))
    chosen = numbers[: plan.limit]
    truncator = _Truncator(plan.fields)
    hits = fetch(client, (pairs.references[number] for number in chosen), list(plan.fields))
    hits = tracked(hits, progress, "reading contents", len(chosen))
    documents = tuple(
        {"index": hit.index, "id": hit.id, "fields": truncator.fields(hit)} for hit in hits if hit is not None
    )
    return ContentStageReport(
        documents=documents,
        cut=truncator.truncated,
        missing=len(chosen) - len(documents),
        not_read=len(numbers) - len(chosen),
        seconds=time.monotonic() - started,
    )


def _ends(pairs: PairList) -> Iterator[int]:
    """The numbers of both documents of each pair."""
    for left, right in zip(pairs.left.tolist(), pairs.right.tolist(), strict=True):
        yield from (left, right)


class _Truncator:
    """Extracts fields of documents, and truncates their values."""

    def __init__(self, maximum: Mapping[str, int | None]) -> None:
        """``maximum``: characters of a value for each field; None: no limit."""
        self._maximum = maximum
        self.truncated = 0
        """Number of values that were longer or nested more deeply."""

    def fields(self, hit: Hit) -> dict[str, Any]:
        """The fields that the document has: a single value, or a list of several."""
        found = {name: values_at(hit.source, name) for name in self._maximum}
        return {
            name: self._shortened(values[0] if len(values) == 1 else values, self._maximum[name])
            for name, values in found.items()
            if values
        }

    def _shortened(self, value: Any, maximum: int | None, levels: int = _MAX_DEPTH) -> Any:
        if isinstance(value, list | dict) and not levels:
            self.truncated += 1
            return None
        if isinstance(value, list):
            return [self._shortened(one, maximum, levels - 1) for one in value]
        if isinstance(value, dict):
            return {name: self._shortened(one, maximum, levels - 1) for name, one in value.items()}
        if maximum is not None and isinstance(value, str) and len(value) > maximum:
            self.truncated += 1
            return value[:maximum]
        return value


def overlapping(client: Client, pairs: PairList, plan: OverlapsPlan, progress: Progress) -> OverlapsStageReport:
    """Find the text blocks that the documents of each pair share, in the order of the pairs."""
    started = time.monotonic()
    total = len(pairs) if plan.limit is None else min(plan.limit, len(pairs))
    found: list[OverlappingPair] = []
    missing = too_long = 0
    for place, (a, b) in tracked(_texts(client, pairs, plan, total), progress, "comparing texts", total, step=10):
        if a is None or b is None:
            missing += 1
        elif max(len(a), len(b)) > MAX_CHARS:
            too_long += 1
        else:
            pair = pairs[place]
            found.append(OverlappingPair(pair.a, pair.b, pair.similarity, overlaps(a, b, plan.min_words)))
    return OverlapsStageReport(tuple(found), missing, too_long, len(pairs) - total, time.monotonic() - started)


def _texts(
    client: Client, pairs: PairList, plan: OverlapsPlan, total: int
) -> Iterator[tuple[int, tuple[str | None, str | None]]]:
    """The place of each of the first ``total`` pairs and its two texts, None for a deleted document."""
    places = iter(range(total))
    while chunk := list(islice(places, _PAIRS)):
        both = {place: (int(pairs.left[place]), int(pairs.right[place])) for place in chunk}
        numbers = sorted({number for ends in both.values() for number in ends})
        hits = fetch(client, (pairs.references[number] for number in numbers), plan.fields)
        texts = {
            number: None if hit is None else text_of(hit.source, plan.fields)
            for number, hit in zip(numbers, hits, strict=True)
        }
        for place, (left, right) in both.items():
            yield place, (texts[left], texts[right])
