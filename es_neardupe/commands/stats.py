"""``stats``: what an index contains: documents by state, schemes, groups, buckets, bytes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from es_neardupe import options
from es_neardupe.candidates.fingerprints import read_fingerprints
from es_neardupe.candidates.join import bucket_sizes
from es_neardupe.commands.report_parts import one_line
from es_neardupe.errors import RequestError
from es_neardupe.groups.read import read_groups
from es_neardupe.index import queries
from es_neardupe.index.index import Index, opened
from es_neardupe.index.mapping import fields_mapping
from es_neardupe.progress import Progress, silent
from es_neardupe.records import Product, State
from es_neardupe.server.client import path
from es_neardupe.server.search import count, refresh_if_allowed, search

__all__ = ["BucketSize", "GroupSizes", "Stats", "StatsScope", "stats"]


@dataclass(frozen=True)
class BucketSize:
    """Number of documents with a band key."""

    key: str
    documents: int


@dataclass(frozen=True)
class StatsScope:
    """Each document is counted once: ``documents = sum(states) + unknown + other_schemes + unprocessed``.

    Documents of the states ``signed`` and ``short`` have keys and are compared. ``numeric`` of them have only numbers
    as tokens; counted separately, ``documents = (signed + short - numeric) + numeric + empty + too_large + failed +
    unknown + other_schemes + unprocessed``.
    """

    documents: int
    """In scope."""
    left_alone: int
    """In addition, documents of relations of a join field that are not processed."""
    states: Mapping[str, int]
    """Documents with a fingerprint of the index's scheme, by state."""
    numeric: int
    """Signed and short documents whose tokens are all numbers."""
    unknown: int
    """Documents of the index's scheme with an unknown state or none, written by another client."""
    other_schemes: int
    """Documents with a fingerprint of another scheme: ``enrich`` renews them."""
    schemes: Mapping[str, int]
    """Documents by the scheme of their fingerprint."""
    unprocessed: int
    """Documents without a fingerprint."""
    ungrouped: int
    """Documents with a fingerprint that wait for ``group``."""


@dataclass(frozen=True)
class GroupSizes:
    """Groups of two or more documents: ``count = sum(sizes.values())``, ``grouped`` = the sum of size times number."""

    count: int
    grouped: int
    """Documents in them."""
    largest: int
    sizes: Mapping[int, int]
    """Group size -> number of groups of that size."""

    @classmethod
    def of(cls, sizes: Iterable[int]) -> GroupSizes:
        """Count groups by their sizes."""
        numbers = dict(sorted(Counter(sizes).items(), reverse=True))
        grouped = sum(size * number for size, number in numbers.items())
        return cls(sum(numbers.values()), grouped, max(numbers, default=0), numbers)


@dataclass(frozen=True)
class Stats:
    """Result of `stats`."""

    index: str
    indices: tuple[str, ...]
    sidecars: tuple[str, ...]
    """The sidecar indices; empty if keys are stored in the documents."""
    scheme: str
    agree: int
    """Bands that a candidate pair shares."""
    fields: tuple[str, ...]
    threshold: float
    scope: StatsScope
    groups: GroupSizes
    buckets: tuple[BucketSize, ...] | None
    """The band keys (joined by ``+`` if several must agree) that most documents share; None with ``quick``."""
    bytes_per_document: Mapping[str, float] | None
    """Mean bytes on disk of each ``neardupe`` field; None if the server does not report them, or with ``quick``."""

    def __repr__(self) -> str:
        return one_line(
            self,
            index=self.index,
            documents=self.scope.documents,
            groups=self.groups.count,
            grouped=self.groups.grouped,
            unprocessed=self.scope.unprocessed,
        )


def stats(
    index: Index,
    *,
    quick: options.Quick = False,
    progress: Progress = silent,
) -> Stats:
    """Count the documents and groups of an index.

    ``quick`` omits buckets, for which all keys are read, and bytes, for which the server reads all files of the index.
    """
    index = opened(index)
    refresh_if_allowed(index.client, index.path)
    result = search(index.client, index.path, queries.states(index.fields, index.scheme_id, index.target.within()))
    documents = int(result["hits"]["total"]["value"])
    counted = result["aggregations"]
    parts = {name: int(bucket["doc_count"]) for name, bucket in counted["parts"]["buckets"].items()}
    numeric = {name: int(bucket["numeric"]["doc_count"]) for name, bucket in counted["parts"]["buckets"].items()}
    return Stats(
        index=index.name,
        indices=index.target.indices,
        sidecars=index.storage.sidecars,
        scheme=index.scheme_id,
        agree=index.settings.scheme.agree,
        fields=index.settings.fields,
        threshold=index.settings.threshold,
        scope=StatsScope(
            documents=documents,
            left_alone=count(index.client, index.path) - documents if index.target.skipped_relations else 0,
            states={state.value: parts[state.value] for state in State},
            numeric=numeric[State.SIGNED.value] + numeric[State.SHORT.value],
            unknown=parts["unknown"],
            other_schemes=parts["other_schemes"],
            schemes={bucket["key"]: int(bucket["doc_count"]) for bucket in counted["schemes"]["buckets"]},
            unprocessed=parts["unprocessed"],
            ungrouped=int(counted["ungrouped"]["doc_count"]),
        ),
        groups=GroupSizes.of(one.size for one in read_groups(index)),
        buckets=None if quick else _buckets(index, progress),
        bytes_per_document=None if quick else _bytes(index, documents),
    )


def _buckets(index: Index, progress: Progress) -> tuple[BucketSize, ...]:
    corpus, agree = read_fingerprints(index, progress), index.settings.scheme.agree
    return tuple(BucketSize(key, size) for key, size in bucket_sizes(corpus.keys[:], agree=agree))


def _bytes(index: Index, documents: int) -> dict[str, float] | None:
    """Mean bytes of each field. Only Elasticsearch has an API for this."""
    if index.client.server.product is not Product.ELASTICSEARCH or not documents:
        return None
    try:
        answer: dict[str, Any] = index.plain.request(
            "POST", path(index.storage.path, "_disk_usage"), params={"run_expensive_tasks": "true"}
        )
    except RequestError:  # not permitted, or not supported
        return None
    names = [f"{index.settings.prefix}.{name}" for name in fields_mapping()["properties"]]
    totals: Counter[str] = Counter()
    for concrete in index.storage.written:
        for name, usage in answer.get(concrete, {}).get("fields", {}).items():
            if name in names:
                totals[name] += usage["total_in_bytes"]
    return {name: totals[name] / documents for name in names}
