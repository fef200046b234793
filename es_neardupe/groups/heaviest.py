"""The heaviest difference of each group: between the current texts of its principal and of its least similar member."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from es_neardupe.groups.registry import GroupRecord
from es_neardupe.index import queries
from es_neardupe.index.document_text import values_of
from es_neardupe.index.index import Index
from es_neardupe.index.stored_fields import count_of, stored_fields
from es_neardupe.records import Address
from es_neardupe.server.responses import hit_of
from es_neardupe.server.search import find
from es_neardupe.similarity.collation import collate
from es_neardupe.similarity.weighed_places import FACTS, LAYOUT, PASSAGE, WORDS, heaviest_first, weighed_places

COPIES, UNKNOWN = "copies", "unknown"
"""Exact copies; texts that are too long, deleted or changed."""

KINDS = (*FACTS, PASSAGE, WORDS, LAYOUT, COPIES)
"""Kinds by which groups can be filtered."""

_WORDS = 20_000
"""Words of a text that is read."""
_SHOWN = 2
"""Differences of a group that are kept."""
_KEPT = 20_000
"""Groups whose differences are kept."""
_AT_ONCE = 200
"""Groups that are read at once."""


@dataclass(frozen=True)
class HeaviestDifference:
    """What differs most between two texts of a group."""

    kind: str
    """That of a place, `LAYOUT`, `COPIES` or `UNKNOWN`."""
    readings: tuple[tuple[str, str, str], ...] = ()
    """The heaviest differences: kind, and what the principal and the other text read."""


class HeaviestDifferences:
    """The heaviest differences of the groups of one index, which are kept as long as the two texts are the same.
    Threads may share it."""

    def __init__(self) -> None:
        self._kept: dict[tuple[Address, Address, str, str], HeaviestDifference] = {}

    def of(self, index: Index, groups: Sequence[GroupRecord]) -> dict[str, HeaviestDifference]:
        """Those of some groups of an opened index, with three requests for each 200 that are not known."""
        found = {one.group: HeaviestDifference(COPIES) for one in groups if one.texts < 2}
        different = [one for one in groups if one.texts > 1]
        for first in range(0, len(different), _AT_ONCE):
            found |= self._read(index, different[first : first + _AT_ONCE])
        return found

    def _read(self, index: Index, groups: Sequence[GroupRecord]) -> dict[str, HeaviestDifference]:
        others = _least_similar(index, [one.group for one in groups])
        principals = _stored(index, [one.principal for one in groups])
        pairs: dict[str, tuple[Address, Address, str, str]] = {}
        for one in groups:
            principal, other = principals.get(one.principal), others.get(one.group)
            if principal is not None and other is not None and max(principal.words, other.words) <= _WORDS:
                pairs[one.group] = (principal.address, other.address, principal.content, other.content)
        unknown = [pair for pair in pairs.values() if pair not in self._kept]
        texts = _texts(index, [address for pair in unknown for address in pair[:2]])
        if len(self._kept) + len(unknown) > _KEPT:
            self._kept = {}
        for pair in unknown:
            self._kept[pair] = _compared(index, *(texts.get(address) for address in pair[:2]))
        kept = {group: self._kept.get(pair) for group, pair in pairs.items()}
        return {one.group: kept.get(one.group) or HeaviestDifference(UNKNOWN) for one in groups}


@dataclass(frozen=True)
class _Known:
    address: Address
    content: str
    words: int

    @classmethod
    def of(cls, raw: Mapping[str, Any], prefix: str) -> _Known:
        hit = hit_of(raw)
        stored = stored_fields(hit.source, prefix)
        return cls(hit.address, str(stored.get("content") or ""), count_of(stored, "tokens"))


def _least_similar(index: Index, groups: Sequence[str]) -> dict[str, _Known]:
    """The least similar member of each group."""
    fields = index.fields
    source = [fields.content, fields.tokens]
    least = {"size": 1, "sort": [{fields.similarity: "asc"}, {"_seq_no": "asc"}], "_source": source}
    by_group = {"terms": {"field": fields.group, "size": len(groups)}, "aggs": {"least": {"top_hits": least}}}
    similar = {"range": {fields.similarity: {"gte": 0, "lte": 1}}}
    query = queries.all_of({"terms": {fields.group: list(groups)}}, similar)
    answer = index.documents.search({"size": 0, "query": query, "aggs": {"groups": by_group}})
    buckets = answer["aggregations"]["groups"]["buckets"]
    return {one["key"]: _Known.of(one["least"]["hits"]["hits"][0], index.settings.prefix) for one in buckets}


def _stored(index: Index, addresses: Sequence[Address]) -> dict[Address, _Known]:
    fields = index.fields
    body = {
        "size": 2 * len(addresses),
        "query": {"ids": {"values": sorted({one.id for one in addresses})}},
        "_source": [fields.content, fields.tokens],
    }
    found = (_Known.of(hit, index.settings.prefix) for hit in index.documents.search(body)["hits"]["hits"])
    return {one.address: one for one in found}


def _texts(index: Index, addresses: Sequence[Address]) -> dict[Address, Mapping[str, Any]]:
    ids = defaultdict[str, set[str]](set)
    for one in addresses:
        ids[one.index].add(one.id)
    names = list(index.settings.fields)
    hits = (hit for concrete, some in ids.items() for hit in find(index.client, concrete, sorted(some), names))
    return {Address(hit["_index"], hit["_id"]): hit.get("_source", {}) for hit in hits}


def _compared(index: Index, principal: Mapping[str, Any] | None, other: Mapping[str, Any] | None) -> HeaviestDifference:
    if principal is None or other is None:
        return HeaviestDifference(UNKNOWN)
    scheme = index.settings.scheme
    texts = [scheme.preparation.placed(values_of(one, index.settings.fields)) for one in (principal, other)]
    heaviest = heaviest_first(weighed_places(collate(texts, passage=scheme.unit.passage(scheme.shingle))))
    if not heaviest:
        return HeaviestDifference(LAYOUT)
    readings = tuple((one.kind, one.readings[0].text, one.readings[1].text) for one in heaviest[:_SHOWN])
    return HeaviestDifference(heaviest[0].kind, readings)
