"""The heaviest difference of each group: between the current texts of its principal and of its least similar member."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import Future, TimeoutError
from contextlib import suppress
from dataclasses import dataclass
from threading import Lock, Thread
from typing import Any, NamedTuple

from es_neardupe.groups.registry import GroupRecord
from es_neardupe.index import queries
from es_neardupe.index.document_text import values_of
from es_neardupe.index.index import Index
from es_neardupe.index.stored_fields import count_of, stored_fields
from es_neardupe.records import Address
from es_neardupe.server.bulk import chunked
from es_neardupe.server.responses import hit_of
from es_neardupe.server.search import find
from es_neardupe.similarity.collation import collate
from es_neardupe.similarity.weighed_places import LAYOUT, PLACE_KINDS, heaviest_first, weighed_places

COPIES, UNKNOWN = "copies", "unknown"
"""Exact copies; texts that are too long, deleted or changed."""

KINDS = (*PLACE_KINDS, COPIES)
"""Kinds by which groups can be filtered."""

_WORDS = 20_000
"""Words of a text that is read."""
_SHOWN = 2
"""Differences of a group that are kept."""
_KEPT = 20_000
"""Groups whose differences are kept."""
_AT_ONCE = 200
"""Groups that are read at once."""
_IN_TURN = 20
"""Groups that a thread compares in the background before another one may."""


@dataclass(frozen=True)
class HeaviestDifference:
    """What differs most between two texts of a group."""

    kind: str
    """That of a place, `LAYOUT`, `COPIES` or `UNKNOWN`."""
    readings: tuple[tuple[str, str, str], ...] = ()
    """The heaviest differences: kind, and what the principal and the other text read."""


class _Pair(NamedTuple):
    """The principal and the least similar member of a group, with their content hashes."""

    principal: Address
    other: Address
    principal_content: str
    other_content: str


class HeaviestDifferences:
    """The heaviest differences of the groups of one index, which are kept as long as the two texts are the same.
    Threads may share it."""

    def __init__(self) -> None:
        self._kept: dict[_Pair, HeaviestDifference] = {}
        self._turn = Lock()
        """Of the threads that compare in the background, so that each pair is compared once."""

    def of(self, index: Index, groups: Sequence[GroupRecord]) -> dict[str, HeaviestDifference]:
        """Those of some groups of an opened index, with three requests for each 200 that are not known."""
        pairs = _pairs(index, groups)
        self._compare(index, pairs.values())
        return self._known(groups, pairs)

    def known_after(
        self, index: Index, groups: Sequence[GroupRecord], patience: float
    ) -> dict[str, HeaviestDifference]:
        """Those of the groups that are known after so many seconds. The others are compared in the background, the
        first ones first, for the next call."""
        pairs, done = _pairs(index, groups), Future[None]()
        Thread(target=self._compare_all, args=(index, [*pairs.values()], done), daemon=True).start()
        with suppress(TimeoutError):
            done.result(patience)
        return self._known(groups, pairs)

    def _compare_all(self, index: Index, pairs: Sequence[_Pair], done: Future[None]) -> None:
        try:
            for portion in chunked(pairs, _IN_TURN):
                with self._turn:
                    self._compare(index, portion)
        except BaseException as error:  # noqa: BLE001 - raised in the thread that waits
            done.set_exception(error)
        else:
            done.set_result(None)

    def _compare(self, index: Index, pairs: Collection[_Pair]) -> None:
        unknown = [pair for pair in pairs if pair not in self._kept]
        for portion in chunked(unknown, _AT_ONCE):
            texts = _texts(index, [address for pair in portion for address in pair[:2]])
            if len(self._kept) + len(portion) > _KEPT:
                self._kept = {}
            for pair in portion:
                self._kept[pair] = _compared(index, *(texts.get(address) for address in pair[:2]))

    def _known(self, groups: Sequence[GroupRecord], pairs: Mapping[str, _Pair]) -> dict[str, HeaviestDifference]:
        found = dict[str, HeaviestDifference]()
        for one in groups:
            if one.group not in pairs:
                found[one.group] = HeaviestDifference(COPIES if one.texts < 2 else UNKNOWN)
            elif (kept := self._kept.get(pairs[one.group])) is not None:
                found[one.group] = kept
        return found


def _pairs(index: Index, groups: Sequence[GroupRecord]) -> dict[str, _Pair]:
    """The two texts to compare of each group that has them."""
    pairs: dict[str, _Pair] = {}
    for some in chunked([one for one in groups if one.texts > 1], _AT_ONCE):
        others = _least_similar(index, [one.group for one in some])
        principals = _stored(index, [one.principal for one in some])
        for one in some:
            principal, other = principals.get(one.principal), others.get(one.group)
            if principal is not None and other is not None and max(principal.words, other.words) <= _WORDS:
                pairs[one.group] = _Pair(principal.address, other.address, principal.content, other.content)
    return pairs


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
