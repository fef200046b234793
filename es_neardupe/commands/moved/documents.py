"""Documents by their addresses: what was at one last, and which others may have the same text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from es_neardupe.commands.moved.answer import DATE_FORMAT
from es_neardupe.commands.moved.fields import AddressFields
from es_neardupe.index import queries
from es_neardupe.index.index import Index
from es_neardupe.index.queries import JSON
from es_neardupe.records import Address
from es_neardupe.server.search import search

__all__ = ["AddressSearch", "LastDocument"]


@dataclass(frozen=True)
class LastDocument:
    """What was at an address last."""

    address: Address
    source: Mapping[str, Any]
    addresses: tuple[str, ...]
    date: str | None
    versions: int
    basis: str


class AddressSearch:
    """Asks for documents with their addresses and dates."""

    def __init__(self, index: Index, fields: AddressFields) -> None:
        self._index = index
        self._fields = fields
        dates = {"field": fields.date, "format": DATE_FORMAT}
        self.asked: JSON = {"docvalue_fields": [{"field": fields.address}, dates]}
        """The part of a search body that asks for both."""

    def last(self, address: str) -> LastDocument | None:
        """The latest document with this address, or the one that has it as its id."""
        by_address = {"term": {self._fields.address: address}}
        return self._latest(by_address, "address") or self._latest({"ids": {"values": [address]}}, "id")

    def _latest(self, query: JSON, basis: str) -> LastDocument | None:
        """The latest of the documents that match; of the same date, the one that was written last."""
        order = [{self._fields.date: {"order": "desc", "unmapped_type": "date"}}, {"_seq_no": "desc"}]
        source = [*self._index.target.settings.fields, self._index.target.fields.group]
        body = {"size": 1, "query": query, "sort": order, "track_total_hits": True, "_source": source, **self.asked}
        hits = search(self._index.client, self._index.target.path, body)["hits"]
        if not hits["hits"]:
            return None
        hit = hits["hits"][0]
        named, date = self.read(hit.get("fields", {}))
        total = hits["total"]["value"]
        return LastDocument(Address(hit["_index"], hit["_id"]), hit["_source"], named, date, total, basis)

    def read(self, values: Mapping[str, Any]) -> tuple[tuple[str, ...], str | None]:
        """Addresses and (latest) date of a document, from what was asked of it."""
        return tuple(values.get(self._fields.address, ())), max(values.get(self._fields.date, ()), default=None)

    def others(
        self, keys: Sequence[str], group: str | None, away: Sequence[str], own: Address, *, maximum: int
    ) -> tuple[list[JSON], int]:
        """Documents of other addresses that share a key or the group, and how many there are."""
        fields = self._fields
        scope = {
            "bool": {"filter": [{"exists": {"field": fields.address}}], "must_not": [{"terms": {fields.address: away}}]}
        }
        size = min(maximum + 1, self._index.target.max_result_window)
        agree = self._index.target.settings.scheme.agree
        body = queries.candidates(self._index.target.fields, keys, size=size, agree=agree, scope=scope, group=group)
        answer = search(self._index.client, self._index.target.path, {**body, "_source": False, **self.asked})["hits"]
        others = [hit for hit in answer["hits"] if (hit["_index"], hit["_id"]) != own]
        total = answer["total"]["value"] - (len(answer["hits"]) - len(others))
        return others[:maximum], total
