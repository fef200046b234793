"""Steps of ``moved``: the search for the new address of a document, and the report."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from datetime import datetime, timezone

from es_neardupe.candidates.detection import Detection
from es_neardupe.commands.moved.documents import (
    AddressFields,
    AddressSearch,
    DeletedDocument,
    DeletedDocuments,
    LastDocument,
)
from es_neardupe.commands.moved.report import MovedReport, NewPlace, moment
from es_neardupe.errors import SettingsError
from es_neardupe.index.document_text import prepared_text, values_of
from es_neardupe.index.index import Index
from es_neardupe.index.shown_fields import ShownFields, read_shown_fields
from es_neardupe.index.stored_fields import group_of, stored_fields
from es_neardupe.keys.fingerprint import fingerprints
from es_neardupe.keys.text import contents
from es_neardupe.options import DEFAULT_MAX_CHARS
from es_neardupe.records import Address, Hit, Reference
from es_neardupe.similarity.measure import Measure
from es_neardupe.verification.current_texts import compared_with, current_hits

BATCH = 64
"""Addresses that are looked up ahead of the result being returned."""

WORKERS = 4

_MANY = 5
"""Addresses of a list that have the same text if it is a notice."""

_SAMPLE = 5
"""Addresses with the text of a document that are examined to see whether it is a notice."""

_MAX_TERM_BYTES = 32_766
"""Maximum length of an indexed value; servers reject a query for a longer one."""

_TOO_LONG = "address longer than the index keeps"


class Finder:
    """Finds the places of one address after the other."""

    def __init__(
        self,
        index: Index,
        fields: AddressFields,
        shown: ShownFields,
        asked: Sequence[str],
        *,
        minimum: float,
        earlier: bool,
        maximum: int,
    ) -> None:
        """``asked``: all addresses of the list."""
        self._index = index
        self._asked = set(asked)
        self._fields = fields
        self._shown = shown
        self._minimum = minimum
        self._earlier = earlier
        self._maximum = maximum
        self._measure = Measure(shingle=index.settings.shingle, unit=index.settings.unit)
        self._documents = AddressSearch(index, fields, shown.names)
        self._notices = self._documents.contents_of_many(asked, _MANY)
        """Contents that many addresses of the list have."""
        self._unprocessed = index.documents.count(index.target.stale())
        self._deleted = DeletedDocuments(index, self._documents.docvalue_fields)

    def find(self, address: str) -> MovedReport:
        """The result for one address. Raises `SettingsError` for an empty one."""
        if not address:
            raise SettingsError("The address is empty. Give an address, or the id of a document.")
        if len(address.encode("utf-8", "surrogatepass")) > _MAX_TERM_BYTES:
            return self._result(address, _TOO_LONG)
        documents = self._documents.versions(address)
        if documents:
            found = self._by_versions(address, documents)
            return found if found.best else self._by_former_text(found, documents[0]) or found
        deleted = self._deleted.of(address)
        if deleted is not None:
            return self._by_copies(address, deleted)
        return self._result(address, self._why_unknown(address))

    def _why_unknown(self, address: str) -> str:
        limit = self._fields.max_length
        if limit is not None and len(address) > limit:
            return _TOO_LONG
        return "unknown address, and evidence may not be read" if self._deleted.forbidden else "unknown address"

    def _by_versions(self, address: str, documents: Sequence[LastDocument]) -> MovedReport:
        """The places of the latest document that has one, and is no notice; without any, the result of the latest."""
        found: list[MovedReport] = []
        for number, document in enumerate(documents):
            found.append(self._by_text(address, document))
            if found[-1].best and not self._is_notice(document, documents[number + 1 :], found[-1].places):
                notices = sum(bool(one.best or one.gone) for one in found[:-1])
                return replace(found[-1], version=number + 1, notices=notices)
        first, notices = found[0], sum(bool(one.best or one.gone) for one in found)
        if first.best:
            first = replace(first, places=(), reason="only copies of a notice")
        return replace(first, notices=notices)

    def _is_notice(self, document: LastDocument, before: Sequence[LastDocument], places: Sequence[NewPlace]) -> bool:
        """Whether the text of a document has replaced different texts, here and at two other addresses or more.
        ``before``: earlier documents of the same address."""
        if not self._has_replaced(document, before):
            return False
        replaced = 0
        for address in list(dict.fromkeys(one.address for one in places))[:_SAMPLE]:
            versions = self._documents.versions(address)
            of_text = {one.id for one in places if one.address == address}
            number = next((k for k, one in enumerate(versions) if one.address.id in of_text), len(versions))
            replaced += self._has_replaced(document, versions[number + 1 :])
        return replaced > 1

    def _has_replaced(self, document: LastDocument, before: Sequence[LastDocument]) -> bool:
        """Whether the text of a document is another one than those of earlier documents, of which there are some."""
        hits = [Hit(*one.address, None, None, None, one.source) for one in before]
        compared = compared_with(self._index, self._measure, document.source, [hits])
        return bool(hits) and all(similarity < self._minimum for _, similarity in compared)

    def _by_text(self, address: str, document: LastDocument) -> MovedReport:
        """Compare the document with the members of its group, and with all documents that share a key with it."""
        settings = self._index.settings
        result = self._result(address, None, document.address, document.basis)
        shown = self._shown.of(document.source)
        result = replace(result, date=document.date, versions=document.versions, fields=shown)
        (made,) = fingerprints(
            [values_of(document.source, settings.fields)], settings.scheme, max_chars=DEFAULT_MAX_CHARS
        )
        if not made.bands:
            return replace(result, reason=f"its text is {made.state.value}")
        group = group_of(stored_fields(document.source, settings.prefix))
        excluded = sorted({address, *document.addresses})
        hits, total = self._documents.candidates(
            document, made.bands, group=group, excluded=excluded, maximum=self._maximum
        )
        fields_of = {(hit["_index"], hit["_id"]): hit["fields"] for hit in hits}
        references: list[Reference] = [(hit["_index"], hit["_id"], hit.get("_routing")) for hit in hits]
        places, less_similar = [], 0
        names = [*self._measure.fields(settings.fields), self._index.fields.group, *self._shown.names]
        portions = current_hits(self._index.client, references, names)
        for hit, similarity in compared_with(self._index, self._measure, document.source, portions):
            if similarity >= self._minimum:
                (first, *_), date = self._documents.read(fields_of[hit.address])
                at = (*hit.address, "texts", "resemblance", None)
                places.append(NewPlace(first, date, similarity, None, *at, self._shown.of(hit.source)))
            else:
                less_similar += group is not None and stored_fields(hit.source, settings.prefix).get("group") == group
        result = replace(
            result,
            less_similar=less_similar,
            candidates=total,
            not_compared=total - len(hits),
            detection=Detection.in_index(self._index, self._measure, self._minimum),
        )
        (content,) = contents([prepared_text(document.source, settings)])
        return self._with_places(result, places, notice=content in self._notices)

    def _by_former_text(self, found: MovedReport, document: LastDocument) -> MovedReport | None:
        """The places of the text that an overwritten document had before; None if evidence has none."""
        (content,) = contents([prepared_text(document.source, self._index.settings)])
        former = self._deleted.before(document.address.id, content)
        if former is None:
            return None
        result = self._by_copies(found.address, former)
        return replace(result, versions=found.versions) if result.places else None

    def _by_copies(self, address: str, document: DeletedDocument) -> MovedReport:
        """The places of a deleted document, by the known similarities of its copies."""
        similar = []
        for copy in document.copies:
            addresses, date = self._documents.read(copy.hit.source)
            others = [one for one in addresses if one != address]
            if others and copy.similarity >= self._minimum:
                similar.append((copy, others[0], date))
        shown = read_shown_fields(self._index, self._shown, [copy.hit.reference for copy, _, _ in similar])
        places = []
        for copy, other, date in similar:
            at = (*copy.hit.address, document.basis, copy.measure, _as_date(copy.at))
            places.append(NewPlace(other, date, copy.similarity, None, *at, shown.get(copy.hit.address, {})))
        result = self._result(address, None, Address(document.index, document.id), document.basis)
        result = replace(result, changed=document.changed, candidates=len(document.copies))
        return self._with_places(result, places)

    def _with_places(self, result: MovedReport, places: Sequence[NewPlace], *, notice: bool = False) -> MovedReport:
        """The result with its places in order, without those that are too old, and for a ``notice`` without addresses
        of the list."""
        there = [one for one in places if not (notice and one.address in self._asked)]
        kept = [one for one in there if self._earlier or result.date is None or not one.older_than(result.date)]
        latest = self._documents.latest_dates(one.address for one in kept)
        kept = [replace(one, replaced=_if_later(one.date, latest.get(one.address, ""))) for one in kept]
        gone, earlier = len(places) - len(there), len(there) - len(kept)
        result = replace(result, places=tuple(in_order(kept)), gone=gone, earlier=earlier)
        return result if result.best else replace(result, reason=_why_not(result))

    def _result(
        self, address: str, reason: str | None, at: Address | None = None, basis: str | None = None
    ) -> MovedReport:
        """A result without places."""
        index, id = at or (None, None)
        return MovedReport(
            address=address,
            reason=reason,
            index=index,
            id=id,
            date=None,
            versions=0,
            version=1,
            notices=0,
            basis=basis,
            places=(),
            gone=0,
            earlier=0,
            less_similar=0,
            changed=0,
            candidates=0,
            not_compared=0,
            unprocessed=self._unprocessed,
            url_field=self._fields.address,
            date_field=self._fields.date,
            min=self._minimum,
            detection=None,
            fields={},
            _shown=self._shown.names,
        )


def _why_not(result: MovedReport) -> str:
    if result.places:
        return "no longer there"
    if result.earlier:
        return "only earlier copies"
    return "only copies of a notice" if result.gone else "no copy found"


def in_order(places: Iterable[NewPlace]) -> list[NewPlace]:
    """By falling similarity; equal ones: those that are there now first, then the latest, then by address."""
    found = sorted(places, key=lambda one: (one.address, one.index, one.id))
    found.sort(key=lambda one: moment(one.date or ""), reverse=True)
    found.sort(key=lambda one: (-one.similarity, one.replaced is not None))
    return found


def _if_later(date: str | None, latest: str) -> str | None:
    """The ``latest`` date if it is after ``date``."""
    return latest if date is not None and moment(latest) > moment(date) else None


def _as_date(at: str) -> str:
    """A time in the form of the dates of documents; unchanged if it is none: any client can write evidence."""
    try:
        found = datetime.fromisoformat(at.replace("Z", "+00:00")).astimezone(timezone.utc)
    except ValueError:
        return at
    return found.isoformat(timespec="milliseconds").replace("+00:00", "Z")
