"""The stages of a request that read documents of pairs again: their fields, and the text blocks that they share."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from itertools import islice
from typing import Any

from es_neardupe import documents
from es_neardupe.clients import Client
from es_neardupe.comparison import MAX_CHARS
from es_neardupe.fetch import fetch
from es_neardupe.overlaps import overlaps
from es_neardupe.pipeline.duplicate_results import ContentResult, OverlappingPair, OverlapsResult, PairList
from es_neardupe.progress import Progress, tracked
from es_neardupe.records import Hit
from es_neardupe.requests import ContentPlan, OverlapsPlan

__all__ = ["contents", "overlapping"]

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
    told = tracked(hits, progress, "reading contents", len(wanted))
    found = tuple({"index": hit.index, "id": hit.id, "fields": cutter.fields(hit)} for hit in told if hit is not None)
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
        found = {name: documents.values_at(hit.source, name) for name in self._longest}
        return {
            name: self._shortened(values[0] if len(values) == 1 else values, self._longest[name])
            for name, values in found.items()
            if values
        }

    def _shortened(self, value: Any, most: int | None, levels: int = _DEEPEST) -> Any:
        if isinstance(value, list | dict) and not levels:
            self.cut += 1
            return None
        if isinstance(value, list):
            return [self._shortened(one, most, levels - 1) for one in value]
        if isinstance(value, dict):
            return {name: self._shortened(one, most, levels - 1) for name, one in value.items()}
        if most is not None and isinstance(value, str) and len(value) > most:
            self.cut += 1
            return value[:most]
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
            number: None if hit is None else documents.text_of(hit.source, plan.fields)
            for number, hit in zip(numbers, hits, strict=True)
        }
        for k in chunk:
            yield k, (texts[int(pairs.left[k])], texts[int(pairs.right[k])])
