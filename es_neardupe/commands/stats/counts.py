"""Counts of documents, groups and large buckets of an index, all made by the server."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from es_neardupe.errors import RequestError
from es_neardupe.groups.waiting import next_run, waiting_of_deleted
from es_neardupe.index import queries
from es_neardupe.index.index import Index
from es_neardupe.index.mapping import fields_mapping
from es_neardupe.index.slices import random_hits
from es_neardupe.index.stored_fields import KEY_LENGTH
from es_neardupe.records import Product, State, one_line
from es_neardupe.server.client import path

_SAMPLE = 10_000
"""Documents whose keys are read to find large buckets."""

_COUNTED = 1000
"""Maximum number of buckets of the sample whose documents are counted."""


@dataclass(frozen=True)
class BucketSize:
    """Number of documents with a band key."""

    key: str
    """If several bands must agree, their keys, joined by ``+``."""
    documents: int


@dataclass(frozen=True)
class LargestBuckets:
    """The band keys that most documents share, among the keys of a random sample.

    The documents of a key are counted exactly. A key that fewer than two documents of the sample have is not found: if
    the share p of all documents has it, this happens with probability ``(1 - p)^(n - 1) * (1 + (n - 1) * p)`` in a
    sample of n: 0.0005 for p = 0.001 and n = 10,000. A sample of all documents misses none.
    """

    sampled: int
    """Documents whose keys were read."""
    largest: tuple[BucketSize, ...]
    """Largest first."""


@dataclass(frozen=True)
class StatsScope:
    """Each document is counted once: ``documents = sum(states) + unknown + other_schemes + unprocessed``.

    Documents of the states ``signed`` and ``short`` have keys and are compared. ``numeric`` of them have only numbers
    as tokens; counted separately, ``documents = (signed + short - numeric) + numeric + empty + too_large + failed +
    unknown + other_schemes + unprocessed``.
    """

    documents: int
    """In scope."""
    skipped: int
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
    """Documents with a fingerprint that are new or changed since the last run of ``group``."""
    deleted: int
    """In a sidecar index, entries of deleted documents that wait for ``group`` too: ``enrich`` removes them."""


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
class StatsReport:
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
    buckets: LargestBuckets | None
    """None unless requested."""
    bytes_per_document: Mapping[str, float] | None
    """Mean bytes on disk of each ``neardupe`` field; None unless requested, or if the server does not report them."""

    def __repr__(self) -> str:
        return one_line(
            self,
            index=self.index,
            documents=self.scope.documents,
            groups=self.groups.count,
            grouped=self.groups.grouped,
            unprocessed=self.scope.unprocessed,
        )


def documents_in_scope(index: Index) -> StatsScope:
    """Count the documents of an opened index."""
    index.documents.refresh_if_allowed()
    result = index.documents.search(queries.states(index.fields, index.scheme_id, index.target.within()))
    documents = int(result["hits"]["total"]["value"])
    counted = result["aggregations"]
    parts = {name: int(bucket["doc_count"]) for name, bucket in counted["parts"]["buckets"].items()}
    numeric = {name: int(bucket["numeric"]["doc_count"]) for name, bucket in counted["parts"]["buckets"].items()}
    waiting = next_run(index).waiting
    deleted = waiting_of_deleted(index) if waiting else 0
    return StatsScope(
        documents=documents,
        skipped=index.documents.count() - documents if index.target.skipped_relations else 0,
        states={state.value: parts[state.value] for state in State},
        numeric=numeric[State.SIGNED.value] + numeric[State.SHORT.value],
        unknown=parts["unknown"],
        other_schemes=parts["other_schemes"],
        schemes={bucket["key"]: int(bucket["doc_count"]) for bucket in counted["schemes"]["buckets"]},
        unprocessed=parts["unprocessed"],
        ungrouped=waiting - deleted,
        deleted=deleted,
    )


def largest_buckets(index: Index, number: int) -> LargestBuckets:
    """Find the keys that are most frequent in a sample, and count their documents."""
    from es_neardupe.candidates.fingerprints import read_corpus, source_of  # which few calls need
    from es_neardupe.candidates.join import bucket_sizes

    fields, scheme = index.fields, index.settings.scheme
    size = min(_SAMPLE, index.target.max_result_window)
    among = queries.fingerprinted(fields, index.scheme_id)
    hits = random_hits(index.documents, among, size, source_of(fields))
    corpus = read_corpus([hits], index.settings.prefix, scheme.bands)
    frequent = [key for key, _ in bucket_sizes(corpus.keys[:], min(10 * number, _COUNTED), scheme.agree)]
    if not frequent:
        return LargestBuckets(len(hits), ())
    keys = [[key[k : k + KEY_LENGTH] for k in range(0, len(key), KEY_LENGTH + 1)] for key in frequent]
    answer = index.documents.search(queries.sharing_counts(fields, index.scheme_id, keys))
    counted = answer["aggregations"]["buckets"]["buckets"]
    found = [BucketSize(key, int(one["doc_count"])) for key, one in zip(frequent, counted, strict=True)]
    found.sort(key=lambda one: (-one.documents, one.key))
    return LargestBuckets(len(hits), tuple(found[:number]))


def bytes_per_document(index: Index, documents: int) -> dict[str, float] | None:
    """Mean bytes of each field. Only Elasticsearch has an API for this."""
    if index.client.server.product is not Product.ELASTICSEARCH or not documents:
        return None
    try:
        answer: dict[str, Any] = index.server.request(
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
