"""Stage: the sampled keys of a text -> the documents that share some, those first that may contain most.

Rare keys say most and cost least, so the number of documents that have each key is asked first. Keys that very many
documents have are left out, and counted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from es_neardupe import documents, queries
from es_neardupe.asking import count, search
from es_neardupe.bulk import chunked
from es_neardupe.clients import Client
from es_neardupe.indices import Target
from es_neardupe.progress import Progress, silent, tracked
from es_neardupe.records import Reference

__all__ = ["Candidates", "sampled_candidates"]

_POSTINGS = 50
"""Pairs of a key and a document that are read for each candidate that is wanted."""
_FEW = 1000
"""If fewer candidates are wanted, they are the best of as many readings."""


@dataclass(frozen=True)
class Candidates:
    """What the keys have found."""

    references: list[Reference]
    """The wanted ones, by the estimated containment in one or the other direction."""
    total: int
    """Documents that share a used key."""
    left_out: int
    """Keys that were not used: more documents have them than were to be read."""


def sampled_candidates(
    client: Client,
    target: Target,
    keys: Sequence[str],
    *,
    scope: Mapping[str, Any],
    most: int,
    progress: Progress = silent,
) -> Candidates:
    """The ``most`` best of the documents of the scope that share any of the sampled keys (distinct ones)."""
    asked = tracked(keys, progress, "asking for keys", len(keys))
    frequencies = _frequencies(client, target, asked, scope)
    used = _used(frequencies, _POSTINGS * max(most, _FEW))
    if not used:
        return Candidates([], 0, 0)
    shared: Counter[Reference] = Counter()
    sizes: dict[Reference, int] = {}
    for batch in _batches(used, frequencies, target.max_result_window):
        body = queries.sampled_matches(target.fields, batch, size=target.max_result_window, scope=scope)
        for hit in search(client, target.path, body)["hits"]["hits"]:
            reference = (hit["_index"], hit["_id"], hit.get("_routing"))
            shared[reference] += round(hit["_score"])
            sizes[reference] = _features(hit, target)
    total = count(client, target.path, queries.all_of(queries.sampled(target.fields, used), scope))
    mod = target.settings.scheme.sample_mod

    def rank(reference: Reference) -> tuple[float, int, str, str]:
        expected = max(min(len(keys), sizes[reference] / mod), 1)  # keys of the smaller of both texts
        return -min(shared[reference] / expected, 1), -shared[reference], reference[0], reference[1]

    return Candidates(sorted(shared, key=rank)[:most], total, len(+frequencies) - len(used))


def _frequencies(client: Client, target: Target, keys: Iterable[str], scope: Mapping[str, Any]) -> Counter[str]:
    """The number of documents that have each key."""
    found: Counter[str] = Counter()
    for batch in chunked(keys, queries.MOST_CLAUSES):
        body = queries.sampled_frequencies(target.fields, batch, scope)
        buckets = search(client, target.path, body)["aggregations"]["keys"]["buckets"]
        found.update({key: bucket["doc_count"] for key, bucket in zip(batch, buckets, strict=True)})
    return found


def _used(frequencies: Counter[str], postings: int) -> list[str]:
    """The keys that any document has, rare ones first, as long as they have so many documents together; the rarest
    in any case."""
    used: list[str] = []
    for key in sorted(+frequencies, key=lambda key: (frequencies[key], key)):
        postings -= frequencies[key]
        if used and postings < 0:
            break
        used.append(key)
    return used


def _batches(keys: Sequence[str], frequencies: Counter[str], window: int) -> Iterator[list[str]]:
    """Keys of one search each: together they have no more documents than it returns, where that can be."""
    batch: list[str] = []
    documents = 0
    for key in keys:
        documents += frequencies[key]
        if batch and (documents > window or len(batch) == queries.MOST_CLAUSES):
            yield batch
            batch, documents = [], frequencies[key]
        batch.append(key)
    yield batch


def _features(hit: Mapping[str, Any], target: Target) -> int:
    """The stored number of features; whatever else stands there counts as none."""
    return documents.count_of(documents.stored_fields(hit["_source"], target.settings.prefix), "features")
