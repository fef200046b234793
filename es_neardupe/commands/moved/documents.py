"""Documents by their addresses: current ones in the index, deleted ones in evidence and the registry of groups."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

from es_neardupe.errors import Forbidden, SettingsError
from es_neardupe.groups.registry import Registry
from es_neardupe.groups.rules import DATES, column_of, sortable_types
from es_neardupe.index import queries
from es_neardupe.index.document_text import values_of
from es_neardupe.index.hidden_indices import HiddenIndex, HiddenStore
from es_neardupe.index.index import Index
from es_neardupe.index.permissions import partly_visible
from es_neardupe.index.shown_fields import URLS
from es_neardupe.index.stored_fields import content_of, decode_grouping, stored_fields
from es_neardupe.index.target import Definitions
from es_neardupe.keys.fingerprint import fingerprints
from es_neardupe.options import DEFAULT_MAX_CHARS, MAX_VERSIONS
from es_neardupe.records import Address, Hit
from es_neardupe.server.bulk import chunked
from es_neardupe.server.client import JSON
from es_neardupe.wording import option

_ADDRESS_NAMES = {*URLS, "address"}
"""Names of fields that are taken for the address if no field is given."""

_DATE_FORMAT = "strict_date_time"
"""Format of dates in answers: UTC, with at least milliseconds."""

_TERMS = 1000
"""Addresses per aggregation."""

_STORED = ("content", "group", "principal", "similarity")
"""Stored fields that are read of the copies of a deleted document."""


# Fields


@dataclass(frozen=True)
class AddressFields:
    """Fields with the address and the date of a document."""

    address: str
    """Keyword field, or keyword subfield of a text field."""
    date: str
    max_length: int | None
    """Longer addresses are not indexed (``ignore_above``); None: no limit."""


def address_fields(index: Index, url_field: str | None, date_field: str | None) -> AddressFields:
    """Check the given fields, and find those that are not given.

    Raises `SettingsError` for a field of another type, and if no field or more than one qualifies.
    """
    types = sortable_types(index)
    keywords = sorted(name for name, type in types.items() if type == "keyword")
    address = _guessed_address(index, keywords) if url_field is None else _given_address(index, keywords, url_field)
    date = _only_date(index, types) if date_field is None else column_of(date_field, types, index.target, DATES).field
    return AddressFields(address, date, _max_length(index, address))


def _given_address(index: Index, keywords: Sequence[str], field: str) -> str:
    """The field itself if it is a keyword field, else its only keyword subfield."""
    if field in keywords:
        return field
    subfields = [name for name in keywords if name.rpartition(".")[0] == field]
    if len(subfields) != 1:
        raise SettingsError(
            f"Index {index.name} has no keyword field {field!r}, and no text field of this name with one keyword "
            f"subfield. Addresses are matched by their whole value. {_listed(keywords)}"
        )
    return subfields[0]


def _guessed_address(index: Index, keywords: Sequence[str]) -> str:
    """The only keyword field that is named like an address. A text field and its subfield count as one."""
    # Dynamic mapping names the keyword subfield of a text field "keyword".
    parents = {name.removesuffix(".keyword"): name for name in keywords}
    candidates = [name for parent, name in parents.items() if parent.rpartition(".")[2].lower() in _ADDRESS_NAMES]
    if len(candidates) != 1:
        number = f"{len(candidates)} keyword fields have" if candidates else "no keyword field has"
        raise SettingsError(
            f"Cannot guess the URL field of index {index.name}: {number} a name such as url or link. Set "
            f"{option('url_field')}. {_listed(keywords)}"
        )
    return candidates[0]


def _listed(keywords: Sequence[str]) -> str:
    return f"Keyword fields: {', '.join(keywords) or 'none'}."


def _only_date(index: Index, types: Mapping[str, str]) -> str:
    dates = sorted(name for name, type in types.items() if type in DATES)
    if not dates:
        raise SettingsError(
            f"Index {index.name} has no date field that shows which documents are later. "
            f"Use `es-neardupe similar` to list near-duplicates of any date."
        )
    if len(dates) > 1:
        known = ", ".join(dates)
        raise SettingsError(
            f"Index {index.name} has several date fields. Set {option('date_field')} to one of {known}."
        )
    return dates[0]


def _max_length(index: Index, field: str) -> int | None:
    """The minimum ``ignore_above`` of the field in all indices; None if none of them sets it."""
    limits = (
        _mapped(one, field).get("ignore_above") for one in Definitions(index.client, index.path).mappings().values()
    )
    return min((int(limit) for limit in limits if limit is not None), default=None)


def _mapped(mapping: Mapping[str, Any], field: str) -> Mapping[str, Any]:
    """The mapping of a field or subfield; empty if it does not exist."""
    for part in field.split("."):
        mapping = mapping.get("properties", {}).get(part) or mapping.get("fields", {}).get(part) or {}
    return mapping


# Current documents


@dataclass(frozen=True)
class LastDocument:
    """The latest document with an address."""

    address: Address
    source: Mapping[str, Any]
    addresses: tuple[str, ...]
    """All values of its address field."""
    date: str | None
    versions: int
    """Number of documents with this address."""
    basis: str
    """``address`` or ``id``: what it was found by."""


class AddressSearch:
    """Searches for documents, and reads their addresses and dates."""

    def __init__(self, index: Index, fields: AddressFields, shown: Sequence[str]) -> None:
        """``shown``: fields that are read of the document at an address, besides its text."""
        self._index = index
        self._fields = fields
        self._shown = shown
        self.docvalue_fields: JSON = {
            "docvalue_fields": [{"field": fields.address}, {"field": fields.date, "format": _DATE_FORMAT}]
        }
        """Part of a search body: requests address and date, which `read` takes from the answer."""

    def read(self, values: Mapping[str, Any]) -> tuple[tuple[str, ...], str | None]:
        """All addresses and the latest date among the ``docvalue_fields`` of a hit."""
        return tuple(values.get(self._fields.address, ())), max(values.get(self._fields.date, ()), default=None)

    def versions(self, address: str) -> list[LastDocument]:
        """The documents with this address, at most `MAX_VERSIONS`; if none has it, the document with this id."""
        by_address = {"term": {self._fields.address: address}}
        return self._latest(by_address, "address") or self._latest({"ids": {"values": [address]}}, "id")[:1]

    def _latest(self, query: JSON, basis: str) -> list[LastDocument]:
        """The matching documents, the latest date first; of those with the same date, the one written last."""
        order = [{self._fields.date: {"order": "desc", "unmapped_type": "date"}}, {"_seq_no": "desc"}]
        source = [*self._index.settings.fields, self._index.fields.group, *self._shown]
        body = {"size": MAX_VERSIONS, "query": query, "sort": order, "track_total_hits": True, "_source": source}
        hits = self._index.documents.search({**body, **self.docvalue_fields})["hits"]
        versions, found = hits["total"]["value"], []
        for hit in hits["hits"]:
            addresses, date = self.read(hit.get("fields", {}))
            address = Address(hit["_index"], hit["_id"])
            found.append(LastDocument(address, hit["_source"], addresses, date, versions, basis))
        return found

    def contents_of_many(self, addresses: Sequence[str], number: int) -> set[str]:
        """The content hashes that documents with this ``number`` of the addresses have, or more."""
        having: dict[str, set[str]] = {}
        if len(addresses) < number:
            return set()
        for chunk in chunked(sorted(set(addresses)), _TERMS):
            query = {"terms": {self._fields.address: chunk}}
            body = {"query": query, "_source": [self._index.fields.content], **self.docvalue_fields}
            for page in self._index.documents.pages(body):
                for hit in page:
                    stored = stored_fields(hit.source, self._index.settings.prefix)
                    having.setdefault(content_of(stored), set()).update(self.read(hit.source)[0])
        return {content for content, found in having.items() if content and len(found) >= number}

    def candidates(
        self, document: LastDocument, keys: Sequence[str], *, group: str | None, excluded: Sequence[str], maximum: int
    ) -> tuple[list[JSON], int]:
        """Up to ``maximum`` hits that share a key or the group with the document, and the number of all of them.

        Documents with an ``excluded`` address or without an address are left out.
        """
        field = self._fields.address
        scope = {"bool": {"filter": [{"exists": {"field": field}}], "must_not": [{"terms": {field: excluded}}]}}
        size = min(maximum + 1, self._index.target.max_result_window)
        agree = self._index.settings.scheme.agree
        body = queries.candidates(self._index.fields, keys, size=size, agree=agree, scope=scope, group=group)
        body = {**body, "_source": False, **self.docvalue_fields}
        answer = self._index.documents.search(body)["hits"]
        hits = [hit for hit in answer["hits"] if (hit["_index"], hit["_id"]) != document.address]
        total = answer["total"]["value"] - (len(answer["hits"]) - len(hits))
        return hits[:maximum], total

    def latest_dates(self, addresses: Iterable[str]) -> dict[str, str]:
        """Address -> date of its latest document, "" if it has no date. Addresses without documents are missing."""
        latest: dict[str, str] = {}
        for chunk in chunked(sorted(set(addresses)), _TERMS):
            by_address = {
                "terms": {"field": self._fields.address, "include": chunk, "size": len(chunk)},
                "aggs": {"at": {"max": {"field": self._fields.date, "format": _DATE_FORMAT}}},
            }
            query = {"terms": {self._fields.address: chunk}}
            body = {"size": 0, "query": query, "aggs": {"each": by_address}}
            for bucket in self._index.documents.search(body)["aggregations"]["each"]["buckets"]:
                latest[bucket["key"]] = bucket["at"].get("value_as_string") or ""
        return latest


# Deleted documents


@dataclass(frozen=True)
class KnownCopy:
    """A document whose similarity to a deleted one was computed before the deletion."""

    hit: Hit
    similarity: float
    measure: str
    at: str
    """When the similarity was computed."""


@dataclass(frozen=True)
class DeletedDocument:
    """What evidence or the registry has on a deleted document, or on the former text of an overwritten one."""

    index: str
    id: str
    basis: str
    """``evidence`` or ``grouping``."""
    copies: tuple[KnownCopy, ...]
    changed: int
    """Documents left out because their text has changed since it was compared."""


class DeletedDocuments:
    """Finds information on deleted documents by their ids."""

    def __init__(self, index: Index, docvalue_fields: JSON) -> None:
        """``docvalue_fields``: `AddressSearch.docvalue_fields`, read of each copy."""
        self._index = index
        self._docvalue_fields = docvalue_fields
        self._registry = Registry(index)
        self.forbidden = bool(partly_visible(index))
        """Whether this user may not read the hidden indices, or not all documents of the index: a document hidden from
        the user would look like a deleted one."""

    def of(self, id: str) -> DeletedDocument | None:
        """The evidence on a document, which has more than its last group; else that group. None if neither exists."""
        return self._if_allowed(lambda: self._by_evidence(id) or self._by_grouping(id))

    def before(self, id: str, content: str) -> DeletedDocument | None:
        """The evidence on the former text of a document. ``content``: the hash of its current text."""
        return self._if_allowed(lambda: self._by_evidence(id, content))

    def _if_allowed(self, look_up: Callable[[], DeletedDocument | None]) -> DeletedDocument | None:
        """The result of a lookup; None from the first time on that the server forbids one."""
        if self.forbidden:
            return None
        try:
            return look_up()
        except Forbidden:
            self.forbidden = True
            return None

    def _by_evidence(self, id: str, current: str | None = None) -> DeletedDocument | None:
        """Other documents that now have the last known text of the document, or one that was compared with it.

        None if that text is the ``current`` one.
        """
        pairs = HiddenStore(self._index, HiddenIndex.PAIRS)
        if not pairs.exists():
            return None
        body = {"size": 1, "query": self._entries({"a.id": id, "b.id": id}), "sort": [{"at": "desc"}]}
        entries = pairs.search(body)["hits"]["hits"]
        side = _side_of(entries[0]["_source"], id) if entries else None
        if side is None or side.content == current:
            return None
        similar = {side.content: (1.0, side.at)} | self._compared_with(pairs, side.content)
        copies, changed = [], 0
        for chunk in chunked(similar, queries.MAX_TERMS):
            for hit, content in self._read({"terms": {self._index.fields.content: chunk}}):
                if hit.id == id:
                    continue
                if content in similar:
                    similarity, at = similar[content]
                    copies.append(KnownCopy(hit, similarity, "resemblance", at))
                else:
                    changed += 1
        return DeletedDocument(side.concrete, id, "evidence", tuple(copies), changed)

    def _compared_with(self, pairs: HiddenStore, content: str) -> dict[str, tuple[float, str]]:
        """Content hash of each text that was compared with a text -> resemblance, and when it was computed; from the
        hidden index ``pairs``."""
        similar: dict[str, tuple[float, str]] = {}
        body = {
            "query": self._entries({"content_a": content, "content_b": content}),
            "_source": ["content_a", "content_b", "resemblance", "at"],
        }
        for page in pairs.pages(body):
            for entry in (hit.source for hit in page):
                other = entry.get("content_b") if entry.get("content_a") == content else entry.get("content_a")
                similarity, at = entry.get("resemblance"), entry.get("at")
                if isinstance(other, str) and isinstance(similarity, int | float) and isinstance(at, str):
                    similar[other] = float(similarity), at
        return similar

    def _entries(self, terms: dict[str, str]) -> JSON:
        """Query for evidence of the current scheme in which any of the fields has its value."""
        any_of = [{"term": {field: value}} for field, value in terms.items()]
        return queries.all_of({"term": {"scheme": self._index.scheme_id}}, {"bool": {"should": any_of}})

    def _by_grouping(self, id: str) -> DeletedDocument | None:
        """Members of the group that had the document as principal, with the similarities that are stored in them."""
        entry = self._registry.led_by(id)
        if entry is None:
            return None
        measure = entry.settings.measure if entry.settings else ""
        copies, changed = [], 0
        for hit, content in self._read(queries.grouped_members(self._index.fields, entry.group)):
            stored = stored_fields(hit.source, self._index.settings.prefix)
            grouping = decode_grouping(stored)
            if grouping is not None and content == stored.get("content"):
                copies.append(KnownCopy(hit, grouping.similarity, measure, entry.updated))
            else:
                changed += 1
        return DeletedDocument(*entry.principal, "grouping", tuple(copies), changed)

    def _read(self, query: JSON) -> Iterator[tuple[Hit, str]]:
        """Each matching document with the content hash of its current text."""
        settings = self._index.settings
        source = [*settings.fields, *(f"{settings.prefix}.{name}" for name in _STORED)]
        body: JSON = {**self._docvalue_fields, "query": query, "_source": source}
        for page in self._index.documents.pages(body, page_size=None):
            texts = [values_of(hit.source, settings.fields) for hit in page]
            for hit, one in zip(page, fingerprints(texts, settings.scheme, max_chars=DEFAULT_MAX_CHARS), strict=True):
                yield hit, one.content


class _EvidenceSide(NamedTuple):
    """One of the two documents of an evidence entry."""

    concrete: str
    """Its index."""
    content: str
    at: str


def _side_of(entry: Mapping[str, Any], id: str) -> _EvidenceSide | None:
    """The document of this id in an evidence entry; None for a malformed entry."""
    for side in "ab":
        address = entry.get(side)
        if isinstance(address, dict) and address.get("id") == id:
            values = [address.get("index"), entry.get(f"content_{side}"), entry.get("at")]
            return _EvidenceSide(*map(str, values)) if all(isinstance(one, str) for one in values) else None
    return None
