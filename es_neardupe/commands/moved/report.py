"""The report of `moved`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field

from es_neardupe.candidates.detection import Detection
from es_neardupe.records import one_line
from es_neardupe.tables import Cell, Table, Tabular


@dataclass(frozen=True)
class NewPlace:
    """A document with nearly the same text, at another address."""

    address: str
    date: str | None
    """Of the document, in UTC; None if it has none."""
    similarity: float
    replaced: str | None
    """Date of the latest document with this address, if that is a later one; None: this document is there now."""
    index: str
    id: str
    basis: str
    """``texts``: current texts were compared; ``evidence`` or ``grouping``: the similarity is an earlier result."""
    measure: str
    known_at: str | None
    """When the similarity was computed; None: now."""
    fields: Mapping[str, str] = field(default_factory=dict)
    """The fields to show of the document."""

    def older_than(self, date: str) -> bool:
        """Whether its date is before ``date``; False without a date."""
        return self.date is not None and moment(self.date) < moment(date)


@dataclass(frozen=True)
class MovedReport(Tabular):
    """Result for one address."""

    address: str
    reason: str | None
    """Why there is no place now; None if there is one."""
    index: str | None
    id: str | None
    date: str | None
    """Of the last document at the address, in UTC."""
    versions: int
    """Documents with this address."""
    version: int
    """Which of them ``index``, ``id`` and ``date`` are about, 1 for the latest: of the ten latest ones, the first that
    has a place and is no notice, else the latest."""
    notices: int
    """Later documents with this address whose text is a notice, such as that a page was removed: it has replaced
    different texts at several addresses, or many addresses of the list have it."""
    basis: str | None
    """How the document is known: ``address``, ``id``, ``evidence`` or ``grouping``."""
    places: tuple[NewPlace, ...]
    """By falling similarity; equal ones: those that are there now first, then the latest."""
    gone: int
    """Places left out because they are addresses of the list with the same notice."""
    earlier: int
    """Places left out because their date is before that of the document."""
    less_similar: int
    """Other documents of its group left out because their similarity to it is below ``min``."""
    changed: int
    """Documents left out because their text has changed since it was compared."""
    candidates: int
    not_compared: int
    """Candidates beyond ``max_candidates``: those that share the fewest keys."""
    unprocessed: int
    """Documents of the index that are not enriched, which cannot be found by their text."""
    url_field: str
    date_field: str
    min: float
    detection: Detection | None
    """How surely documents that are similar enough are found; None if no texts were compared."""
    fields: Mapping[str, str]
    """The fields to show of the last document at the address; none of one that is known only from evidence or the last
    grouping."""
    _shown: tuple[str, ...] = ()
    """Names of the fields to show."""

    @property
    def best(self) -> NewPlace | None:
        """The most similar place that is there now."""
        return next((one for one in self.places if one.replaced is None), None)

    def table(self) -> Table:
        """One row: see `moved_table`."""
        return moved_table([self], self._shown)

    def __repr__(self) -> str:
        return one_line(self, address=self.address, places=len(self.places), reason=self.reason)


_COLUMNS: dict[str, type] = {
    "address": str,
    "reason": str,
    "best_address": str,
    "best_similarity": float,
    "date": str,
    "best_date": str,
    "basis": str,
    "best_basis": str,
    "best_known_at": str,
    "best_measure": str,
    "versions": int,
    "index": str,
    "id": str,
    "best_index": str,
    "best_id": str,
}


def moved_table(answers: Iterable[MovedReport], fields: Sequence[str] = ()) -> Table:
    """A row for each address, also of an iterator such as that of `moved_all`: the document that was there, and as
    ``best_...`` the most similar place that is there now (`MovedReport.best`), with the ``fields`` shown of both."""
    shown = tuple(dict.fromkeys(fields))
    columns = [f"{before}fields_{name}" for before in ("", "best_") for name in shown]
    return Table(_COLUMNS | dict.fromkeys(columns, str), (_row(one, shown) for one in answers))


def _row(found: MovedReport, shown: Sequence[str]) -> list[Cell]:
    best = found.best
    places = [
        (found if name in MovedReport.__dataclass_fields__ else best, name.removeprefix("best_")) for name in _COLUMNS
    ]
    values = [None if one is None else getattr(one, name) for one, name in places]
    return values + [None if one is None else one.fields.get(name) for one in (found, best) for name in shown]


def moment(date: str) -> str:
    """A date in UTC as a string that sorts by time, regardless of the number of fractional digits."""
    return date.removesuffix("Z")
