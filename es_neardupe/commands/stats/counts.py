"""Counts of documents, groups and large buckets of an index, all made by the server."""

from __future__ import annotations

from collections import Counter
from typing import Any

from es_neardupe.commands.stats.report import BucketSize, LargestBuckets, StatsScope
from es_neardupe.errors import RequestError
from es_neardupe.groups.waiting import next_run, waiting_of_deleted
from es_neardupe.index import queries
from es_neardupe.index.index import Index
from es_neardupe.index.mapping import fields_mapping
from es_neardupe.index.slices import random_hits
from es_neardupe.index.stored_fields import KEY_LENGTH
from es_neardupe.records import Product, State
from es_neardupe.server.client import path

_SAMPLE = 10_000
"""Documents whose keys are read to find large buckets."""

_COUNTED = 1000
"""Maximum number of buckets of the sample whose documents are counted."""


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
