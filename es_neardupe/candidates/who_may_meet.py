"""Rules of grouping: linkage, principal, and which documents may be compared."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from es_neardupe.errors import SettingsError
from es_neardupe.keys.arrays import Flags, Numbers
from es_neardupe.options import DEFAULT_MAX_BUCKET, Linkage
from es_neardupe.records import FingerprintColumns
from es_neardupe.wording import option

_DAY = 86_400_000


@dataclass(frozen=True, slots=True)
class ReadField:
    """A field that is read as doc values; dates in milliseconds since 1970."""

    field: str
    date: bool = False

    def __str__(self) -> str:
        return self.field

    @property
    def request(self) -> dict[str, str]:
        """The entry of ``docvalue_fields``."""
        return {"field": self.field, "format": "epoch_millis"} if self.date else {"field": self.field}

    def values(self, source: Mapping[str, Any]) -> list[Any]:
        """The sorted values of a document that was read with `request`."""
        return sorted(float(value) if self.date else value for value in source.get(self.field) or ())


@dataclass(frozen=True, slots=True)
class Policy:
    """How the principal of a group is chosen: it is the first document in this order.

    Documents without a value come last. Ties, and ``longest``, are ordered by length (longest first), then by id.
    """

    name: str = "longest"
    """The option's value."""
    column: ReadField | None = None
    descending: bool = False

    def __str__(self) -> str:
        return self.name

    def deciding(self, source: Mapping[str, Any]) -> Any:
        """The value of the column that decides the rank of a document; None without one."""
        values = self.column.values(source) if self.column else []
        return None if not values else values[-1] if self.descending else values[0]

    def ranks(self, values: Iterable[Any]) -> NDArray[np.int64]:
        """The rank of each value, equal for equal values."""
        every = list(values)
        ordered = sorted({value for value in every if value is not None}, reverse=self.descending)
        rank_of = {value: rank for rank, value in enumerate(ordered)}
        return np.array([len(ordered) if value is None else rank_of[value] for value in every], np.int64)


LONGEST = Policy()


@dataclass(frozen=True, slots=True)
class Window:
    """Documents more than ``days`` apart, or without a date, do not match."""

    column: ReadField
    days: float

    def __str__(self) -> str:
        """The option's value; `parse_window` reads it back exactly."""
        return f"{self.column.field}:{self.days!r}".removesuffix(".0")

    def day(self, source: Mapping[str, Any]) -> float:
        """The first date of a document in days since 1970; NaN without a date."""
        dates = self.column.values(source)
        return dates[0] / _DAY if dates else float("nan")


@dataclass(frozen=True, slots=True)
class GroupRules:
    """All rules. Documents are compared only if they have the same values of all fields ``within``, no common value of
    the field ``across``, and lie within the window."""

    linkage: Linkage = Linkage.STAR
    principal: Policy = LONGEST
    within: tuple[ReadField, ...] = ()
    across: ReadField | None = None
    window: Window | None = None
    max_bucket: int = DEFAULT_MAX_BUCKET
    """If more distinct texts than this share a key, each is compared with about this many of them."""

    @property
    def columns(self) -> list[dict[str, str]]:
        """The ``docvalue_fields`` to read from each document."""
        one_each = (self.principal.column, self.across, self.window.column if self.window else None)
        columns = {column for column in (*self.within, *one_each) if column is not None}
        return [column.request for column in sorted(columns, key=lambda column: column.field)]

    def scope(self, source: Mapping[str, Any]) -> tuple[Any, ...]:
        """The values of each field that two documents must share to be compared; empty for documents without one."""
        return tuple(tuple(field.values(source)) for field in self.within)

    @property
    def restrict(self) -> bool:
        """Whether some documents may not be compared."""
        return bool(self.within or self.across or self.window)

    def allow(self, corpus: FingerprintColumns, one: Numbers, other: Numbers) -> Flags:
        """Whether documents may be compared, by the values that were read of them. ``one`` and ``other``: rows."""
        allowed: Flags = corpus.scopes[one] == corpus.scopes[other]
        if self.across is not None:
            allowed &= corpus.across.disjoint(one, other)
        if self.window is not None:
            allowed &= np.abs(corpus.days[one] - corpus.days[other]) <= self.window.days
        return allowed


DEFAULT_RULES = GroupRules()


def parse_policy(text: str) -> tuple[str | None, bool]:
    """(field, descending) of ``longest`` (no field), ``FIELD:asc`` or ``FIELD:desc``.

    ``oldest`` and ``newest`` are asc and desc of "", a date field that the caller chooses. Raises `SettingsError`.
    """
    if text == "longest":
        return None, False
    if text in ("oldest", "newest"):
        return "", text == "newest"
    field, _, direction = text.rpartition(":")
    if not field or direction not in ("asc", "desc"):
        raise SettingsError(
            f"{option('principal')} must be longest, oldest, newest, FIELD:asc or FIELD:desc, not {text!r}."
        )
    return field, direction == "desc"


def parse_window(text: str) -> tuple[str, float]:
    """(field, days) of ``FIELD:DAYS``. Raises `SettingsError`."""
    field, _, number = text.rpartition(":")
    try:
        days = float(number)
    except ValueError:
        days = -1.0
    if not field or not 0 <= days < float("inf"):
        raise SettingsError(f"{option('window')} must be FIELD:DAYS, as in published:30, not {text!r}.")
    return field, days
