"""The function that validates pairs, as a request asks for it."""

from __future__ import annotations

import heapq
from collections.abc import Iterator, Sequence
from typing import Any

import xxhash

from es_neardupe import documents
from es_neardupe.allpairs import weights_of
from es_neardupe.bulk import chunked
from es_neardupe.clients import Client
from es_neardupe.comparers import Comparer, MeasureComparer, RatioComparer
from es_neardupe.fetch import fetch
from es_neardupe.measures import Weights
from es_neardupe.records import Reference, Scope
from es_neardupe.requests import Validation
from es_neardupe.scoring import Measure, MeasureName, Prepared

__all__ = ["comparer_of"]

SAMPLE = 2000
"""Documents that tell how common a feature is."""

_FETCH = 50


def comparer_of(client: Client, scope: Scope, wanted: Validation) -> tuple[Comparer, dict[str, Any]]:
    """The function, and what the diagnostics say of the sample behind it: nothing for most."""
    if wanted.features is not None:
        return RatioComparer(wanted.features), {}
    name = MeasureName(wanted.measure)
    weights = _weights(client, scope, wanted) if name is MeasureName.WEIGHTED else None
    measure = Measure(
        name,
        wanted.matching,
        shingle=wanted.shingle,
        ngram=wanted.ngram if name is MeasureName.BAG else 1,
        weights=weights,
    )
    sampled = {} if weights is None else {"Documents sampled for weights": weights.documents}
    return MeasureComparer(measure, wanted.fields), sampled


def _weights(client: Client, scope: Scope, wanted: Validation) -> Weights:
    """How many documents of a sample of the scope have each shingle. The sample depends on the addresses only."""
    sample = heapq.nsmallest(SAMPLE, scope.references, key=_place)
    return weights_of(list(_prepared(client, sample, wanted)))


def _place(reference: Reference) -> int:
    return xxhash.xxh3_64_intdigest("\0".join(reference[:2]).encode("utf-8", "surrogatepass"))


def _prepared(client: Client, sample: Sequence[Reference], wanted: Validation) -> Iterator[Prepared]:
    sets = Measure(shingle=wanted.shingle)
    for chunk in chunked(sample, _FETCH):
        hits = fetch(client, chunk, wanted.fields)
        yield from sets.prepare([documents.text_of(hit.source, wanted.fields) for hit in hits if hit is not None])
