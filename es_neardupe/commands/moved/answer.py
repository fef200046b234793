"""Where a text was found: documents with their addresses and dates, as an answer."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

from es_neardupe.commands.moved.fields import AddressFields
from es_neardupe.commands.report_parts import one_line
from es_neardupe.index.index import Index
from es_neardupe.server.bulk import chunked
from es_neardupe.server.search import search

__all__ = ["DATE_FORMAT", "Moved", "NewPlace", "in_order", "with_replaced"]

DATE_FORMAT = "strict_date_time"
"""In which dates are asked for: UTC, with at least milliseconds."""

_TERMS = 1000


@dataclass(frozen=True)
class NewPlace:
    """A document with nearly the same text, at another address."""

    address: str
    date: str | None
    """Of the document, in UTC; None where it has none."""
    similarity: float
    replaced: str | None
    """The address bears a later document: the date of the latest. None: this one is there now."""
    index: str
    id: str
    basis: str
    """``texts``: both present texts were compared; ``evidence`` or ``grouping``: the similarity was found before."""
    measure: str
    known_at: str | None
    """When the similarity was found, if not now."""

    def older_than(self, date: str) -> bool:
        """Whether its date is before another one; not without a date."""
        return self.date is not None and _moment(self.date) < _moment(date)


@dataclass(frozen=True)
class Moved:
    """What is known of an address."""

    address: str
    reason: str | None
    """Why no place is there now; None if there is one."""
    index: str | None
    id: str | None
    date: str | None
    """Of the document that was there last, in UTC."""
    versions: int
    """Documents of this address; the latest of them is looked for."""
    basis: str | None
    """How the document is known: ``address``, ``id``, ``evidence`` or ``grouping``."""
    places: tuple[NewPlace, ...]
    """The most similar first; of equal ones, those that are there now, then the latest."""
    earlier: int
    """Places left out because their date is before that of the document."""
    less_similar: int
    """Other documents of its group left out because they are less than ``min`` similar to it."""
    changed: int
    """Documents left out because their text is no longer the one that was compared."""
    candidates: int
    not_compared: int
    """Candidates beyond ``max_candidates``, those that share the fewest keys."""
    unprocessed: int
    """Documents of the index without keys: they are not found by their text."""
    url_field: str
    date_field: str
    min: float
    detection: float | None
    """How likely a document exactly ``min`` similar shares a key; None where what is known decided."""

    @property
    def best(self) -> NewPlace | None:
        """The most similar place that is there now."""
        return next((one for one in self.places if one.replaced is None), None)

    def __repr__(self) -> str:
        return one_line(
            self,
            address=self.address,
            places=len(self.places),
            reason=self.reason,
        )


def with_replaced(index: Index, fields: AddressFields, places: Sequence[NewPlace]) -> list[NewPlace]:
    """The same places, each with the date of the latest document of its address, if that is another one."""
    latest: dict[str, str] = {}
    for chunk in chunked(sorted({one.address for one in places}), _TERMS):
        each = {"terms": {"field": fields.address, "include": chunk, "size": len(chunk)}}
        at = {"max": {"field": fields.date, "format": DATE_FORMAT}}
        query = {"terms": {fields.address: chunk}}
        body = {"size": 0, "query": query, "aggs": {"each": {**each, "aggs": {"at": at}}}}
        for bucket in search(index.client, index.path, body)["aggregations"]["each"]["buckets"]:
            latest[bucket["key"]] = bucket["at"].get("value_as_string") or ""
    return [replace(one, replaced=_later(one.date, latest.get(one.address, ""))) for one in places]


def _later(date: str | None, latest: str) -> str | None:
    return latest if date is not None and _moment(latest) > _moment(date) else None


def in_order(places: Iterable[NewPlace]) -> list[NewPlace]:
    """The most similar first; of equal ones, those that are there now, then the latest, then by address."""
    found = sorted(places, key=lambda one: (one.address, one.index, one.id))
    found.sort(key=lambda one: _moment(one.date or ""), reverse=True)
    found.sort(key=lambda one: (-one.similarity, one.replaced is not None))
    return found


def _moment(date: str) -> str:
    """A date in UTC as it can be compared, whatever the digits of its seconds."""
    return date.removesuffix("Z")
