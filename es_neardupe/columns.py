"""Columns of millions of values as arrays: growing arrays, strings, addresses of documents, lists of rows.

A Python object is made only when a value is accessed.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise, repeat
from typing import TYPE_CHECKING, Any, Generic, TypeVar, overload

import numpy as np
from numpy.typing import NDArray

if TYPE_CHECKING:
    from typing_extensions import Self

T = TypeVar("T", bound=np.generic)

Positions = NDArray[np.signedinteger[Any]]

_BLOCK = 1 << 14
"""Rows whose strings are gathered at a time."""

_NONE = b"\xff"
"""Stands for None: no string has this byte in UTF-8."""


class Growing(Generic[T]):
    """An array that grows at its end, by an eighth at a time: the system can usually extend it without a copy."""

    def __init__(self, kind: type[T] | str, *width: int, expected: int = 0) -> None:
        """``width``: the shape of one element. ``expected``: number of elements; unused room takes no memory."""
        self._array: NDArray[T] = np.empty((expected, *width), kind)
        self._size = 0

    def __len__(self) -> int:
        return self._size

    def extend(self, values: NDArray[T] | Sequence[Any]) -> None:
        """Append values."""
        end = self._size + len(values)
        if end > len(self._array):
            self._resize(max(end, end + end // 8))
        self._array[self._size : end] = values
        self._size = end

    def taken(self) -> NDArray[T]:
        """The array, without unused room. Nothing can be appended to it afterwards."""
        self._resize(self._size)
        return self._array

    def _resize(self, size: int) -> None:
        self._array.resize((size, *self._array.shape[1:]), refcheck=False)


@dataclass(frozen=True)
class ValueSets:
    """A set of values for each of n rows. Equal sets have one number."""

    numbers: NDArray[np.int64]
    """The number of the set of each row; shape (n,)."""
    sets: Sequence[Sequence[object]] = ((),)
    """The values of each number."""

    def given(self, rows: Positions) -> NDArray[np.bool_]:
        """Whether some rows have any values."""
        if not self._sizes.any():
            return np.zeros(len(rows), np.bool_)
        given: NDArray[np.bool_] = self._sizes[self.numbers[rows]] > 0
        return given

    def disjoint(self, one: Positions | int, other: Positions | int) -> NDArray[np.bool_]:
        """Whether no value is in the sets of two rows. A row without values has none in common with any other."""
        first, second = np.broadcast_arrays(self.numbers[one], self.numbers[other])
        disjoint: NDArray[np.bool_] = (first != second) | (self._sizes[first] == 0)
        unclear = np.flatnonzero(disjoint & ((self._sizes[first] > 1) | (self._sizes[second] > 1)))
        both = zip(first[unclear].tolist(), second[unclear].tolist(), strict=True)
        disjoint[unclear] = [set(self.sets[a]).isdisjoint(self.sets[b]) for a, b in both]
        return disjoint

    @cached_property
    def _sizes(self) -> NDArray[np.int64]:
        return np.array([len(values) for values in self.sets], np.int64)


class StringColumn(Sequence["str | None"]):
    """Strings or None, as UTF-8 with offsets: 4 bytes and its length each, for 4 GB of them."""

    def __init__(self, octets: NDArray[np.uint8], bounds: NDArray[np.unsignedinteger[Any]]) -> None:
        """String k consists of ``octets[bounds[k] : bounds[k + 1]]``. Ids can contain lone surrogates."""
        self._octets, self._bounds = octets, bounds

    @classmethod
    def of(cls, strings: Iterable[str | None]) -> StringColumn:
        """A column of these strings."""
        growing = _GrowingStrings()
        growing.extend(strings)
        return growing.taken()

    def __len__(self) -> int:
        return len(self._bounds) - 1

    @overload
    def __getitem__(self, row: int) -> str | None: ...
    @overload
    def __getitem__(self, row: slice) -> list[str | None]: ...
    def __getitem__(self, row: int | slice) -> str | list[str | None] | None:
        if isinstance(row, slice):
            return [self[k] for k in range(*row.indices(len(self)))]
        if not -len(self) <= row < len(self):
            raise IndexError(row)
        row %= len(self)
        return _decoded(self._octets[self._bounds[row] : self._bounds[row + 1]].tobytes())

    def __iter__(self) -> Iterator[str | None]:
        for start in range(0, len(self), _BLOCK):
            bounds = self._bounds[start : start + _BLOCK + 1].tolist()
            octets = self._octets[bounds[0] : bounds[-1]].tobytes()
            for first, last in pairwise(bounds):
                yield _decoded(octets[first - bounds[0] : last - bounds[0]])

    def take(self, rows: Positions) -> StringColumn:
        """The strings of some rows, in their order."""
        bounds = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(self._lengths(rows), out=bounds[1:])
        octets = np.empty(int(bounds[-1]), np.uint8)
        for start in range(0, len(rows), _BLOCK):
            some = bounds[start : start + _BLOCK + 1]
            sources = self._bounds[rows[start : start + _BLOCK]].astype(np.int64) - some[:-1]
            octets[some[0] : some[-1]] = self._octets[np.repeat(sources, np.diff(some)) + np.arange(some[0], some[-1])]
        return StringColumn(octets, _narrow(bounds))

    def sorted(self, rows: Positions) -> Positions:
        """The rows in the order of their strings by code points, which is that of UTF-8; equal ones as given. None
        comes last."""
        # Radix sort by 8 bytes at a time. Strings that agree so far are one tie; only ties are sorted further.
        rows = rows.copy()
        follows = np.ones(len(rows), np.bool_)  # whether each row is in one tie with the one before
        follows[:1] = False
        tied = np.arange(len(rows), dtype=np.int32) if len(rows) > 1 else np.zeros(0, np.int32)
        depth = 0
        longest = int(np.diff(self._bounds).max(initial=0))
        while len(tied) and depth <= longest:
            octets = self._octets_at(rows[tied], depth)
            depth += 8
            same = follows[tied]
            if (octets[1:] == octets[:-1])[same[1:]].all():
                continue
            order = (
                np.argsort(octets, kind="stable")
                if same[1:].all()
                else np.lexsort((octets, np.cumsum(~same, dtype=np.int32)))
            )
            order = order.astype(np.int32)
            octets = octets[order]
            rows[tied] = rows[tied[order]]
            del order
            same[1:] &= octets[1:] == octets[:-1]
            follows[tied] = same
            kept = same.copy()
            kept[:-1] |= same[1:]
            tied = tied[kept]
        if len(tied):  # equal but for NUL characters at the end
            order = np.lexsort((self._lengths(rows[tied]), np.cumsum(~follows[tied])))
            rows[tied] = rows[tied[order]]
        return rows

    def _lengths(self, rows: Positions) -> NDArray[np.unsignedinteger[Any]]:
        lengths: NDArray[np.unsignedinteger[Any]] = self._bounds[1:][rows] - self._bounds[rows]
        return lengths

    def _octets_at(self, rows: Positions, depth: int) -> NDArray[np.uint64]:
        """The 8 bytes of each string from ``depth`` on as a number that sorts like them, padded with zeros."""
        found = np.empty(len(rows), np.uint64)
        for start in range(0, len(rows), _BLOCK):
            some = rows[start : start + _BLOCK]
            first, end = self._bounds[some].astype(np.int64) + depth, self._bounds[1:][some].astype(np.int64)
            place = first[:, None] + np.arange(8)
            inside = place < end[:, None]
            octets = np.zeros(place.shape, np.uint8)
            octets[inside] = self._octets[place[inside]]
            found[start : start + _BLOCK] = octets.view(">u8").reshape(-1)
        return found


class _GrowingStrings:
    """A growing column of strings."""

    def __init__(self, expected: int = 0) -> None:
        self._octets, self._lengths = Growing(np.uint8), Growing(np.uint32, expected=expected)

    def extend(self, strings: Iterable[str | None]) -> None:
        encoded = [_NONE if one is None else one.encode("utf-8", "surrogatepass") for one in strings]
        self._octets.extend(np.frombuffer(b"".join(encoded), np.uint8))
        self._lengths.extend([len(one) for one in encoded])

    def taken(self) -> StringColumn:
        lengths = self._lengths.taken()
        kind = np.uint32 if len(self._octets) < 1 << 32 else np.uint64
        bounds = np.zeros(len(lengths) + 1, kind)
        np.cumsum(lengths, out=bounds[1:], dtype=kind)
        return StringColumn(self._octets.taken(), bounds)


def _decoded(octets: bytes) -> str | None:
    return None if octets == _NONE else octets.decode("utf-8", "surrogatepass")


def _narrow(bounds: NDArray[np.int64]) -> NDArray[np.unsignedinteger[Any]]:
    return bounds.astype(np.uint32 if bounds[-1] < 1 << 32 else np.uint64)


class References(Sequence[tuple[str, str, "str | None"]]):
    """The concrete index, id and routing of n documents: 8 bytes each, and the characters of the id; if any document
    has a routing, 4 bytes more each, and the characters of the routing."""

    def __init__(
        self, names: Sequence[str], indices: NDArray[np.int32], ids: StringColumn, routings: StringColumn | None
    ) -> None:
        """``indices``: the number of the index of each document in ``names``. ``routings``: None if no document has
        one."""
        self._names, self._indices, self._ids, self._routings = tuple(names), indices, ids, routings

    @classmethod
    def of(cls, references: Iterable[tuple[str, str, str | None]]) -> References:
        """A column of these references."""
        growing = GrowingReferences()
        growing.extend(list(references))
        return growing.taken()

    def __len__(self) -> int:
        return len(self._indices)

    @overload
    def __getitem__(self, row: int) -> tuple[str, str, str | None]: ...
    @overload
    def __getitem__(self, row: slice) -> list[tuple[str, str, str | None]]: ...
    def __getitem__(self, row: int | slice) -> tuple[str, str, str | None] | list[tuple[str, str, str | None]]:
        if isinstance(row, slice):
            return [self[k] for k in range(*row.indices(len(self)))]
        routing = None if self._routings is None else self._routings[row]
        return self._names[self._indices[row]], self._ids[row] or "", routing

    def __iter__(self) -> Iterator[tuple[str, str, str | None]]:
        routings = repeat(None, len(self)) if self._routings is None else self._routings
        for number, id, routing in zip(self._indices, self._ids, routings, strict=True):
            yield self._names[number], id or "", routing

    def __eq__(self, other: object) -> bool:
        return isinstance(other, References) and len(self) == len(other) and all(map(tuple.__eq__, self, other))

    __hash__ = None  # type: ignore[assignment]

    @property
    def indices(self) -> NDArray[np.int32]:
        """Equal numbers for documents of one concrete index; shape (n,)."""
        return self._indices

    def take(self, rows: Positions) -> References:
        """The references of some rows, in their order."""
        routings = None if self._routings is None else self._routings.take(rows)
        return References(self._names, self._indices[rows], self._ids.take(rows), routings)

    def sorted(self, rows: Positions) -> Positions:
        """The rows in the order of their ids, then of their indices."""
        if len(self._names) > 1:
            place = np.empty(len(self._names), np.int32)
            place[sorted(range(len(place)), key=self._names.__getitem__)] = np.arange(len(place))
            rows = rows[np.argsort(place[self._indices[rows]], kind="stable")]
        return self._ids.sorted(rows)


class GrowingReferences:
    """A growing column of references."""

    def __init__(self, expected: int = 0) -> None:
        self._numbers: dict[str, int] = {}
        self._indices = Growing(np.int32, expected=expected)
        self._ids = _GrowingStrings(expected)
        self._routings: _GrowingStrings | None = None

    def __len__(self) -> int:
        return len(self._indices)

    def extend(self, references: Sequence[tuple[str, str, str | None]]) -> None:
        """Append references."""
        for name, _, _ in references:
            self._numbers.setdefault(name, len(self._numbers))
        if self._routings is None and any(routing is not None for _, _, routing in references):
            self._routings = _GrowingStrings()
            self._routings.extend(repeat(None, len(self)))
        self._indices.extend([self._numbers[name] for name, _, _ in references])
        self._ids.extend(id for _, id, _ in references)
        if self._routings is not None:
            self._routings.extend(routing for _, _, routing in references)

    def taken(self) -> References:
        """The column. Nothing can be appended to it afterwards."""
        routings = None if self._routings is None else self._routings.taken()
        return References(list(self._numbers), self._indices.taken(), self._ids.taken(), routings)


@dataclass(frozen=True, slots=True)
class RowLists:
    """k lists of rows."""

    rows: Positions
    """The rows of all lists, one list after the other."""
    bounds: Positions
    """List number ``j`` is ``rows[bounds[j] : bounds[j + 1]]``; shape (k + 1,)."""

    @classmethod
    def of(cls, lists: Sequence[Sequence[int]]) -> Self:
        """These lists."""
        bounds = np.cumsum([0, *map(len, lists)], dtype=np.int32)
        return cls(np.array([row for one in lists for row in one], np.int32), bounds)

    def __len__(self) -> int:
        return len(self.bounds) - 1

    def __getitem__(self, number: int) -> Positions:
        if number >= len(self):
            raise IndexError(number)
        return self.rows[self.bounds[number] : self.bounds[number + 1]]

    def __iter__(self) -> Iterator[Positions]:
        return (self.rows[start:end] for start, end in pairwise(self.bounds.tolist()))

    @property
    def first(self) -> Positions:
        """The first row of each list; shape (k,)."""
        return self.rows[self.bounds[:-1]]

    def first_of(self, numbers: Positions | Sequence[int]) -> Positions:
        """The first row of some of the lists."""
        return self.rows[self.bounds[np.asarray(numbers, np.intp)]]

    @property
    def sizes(self) -> Positions:
        """The number of rows of each list; shape (k,)."""
        return np.diff(self.bounds)

    @property
    def numbers(self) -> Positions:
        """The number of the list of each of ``rows``."""
        return self.repeated(np.arange(len(self), dtype=np.int32))

    def repeated(self, values: NDArray[T]) -> NDArray[T]:
        """For each of ``rows`` the value of its list; ``values``: one of each list."""
        found = np.empty(len(self.rows), values.dtype)
        for start in range(0, len(self), _BLOCK):
            bounds = self.bounds[start : start + _BLOCK + 1]
            found[bounds[0] : bounds[-1]] = np.repeat(values[start : start + _BLOCK], np.diff(bounds))
        return found

    def of_rows(self, size: int) -> Positions:
        """The number of the list of each row below ``size``, -1 for a row that is in none."""
        numbers, own = np.full(size, -1, np.int32), self.numbers
        for start in range(0, len(own), _BLOCK):
            numbers[self.rows[start : start + _BLOCK]] = own[start : start + _BLOCK]
        return numbers

    def in_lists(self, chosen: NDArray[np.bool_]) -> Positions:
        """The rows of the chosen lists (bool of their number), in their order."""
        return self.rows[self.repeated(chosen)]

    def only(self, rows: NDArray[np.bool_]) -> RowLists:
        """The lists with the selected rows alone. ``rows``: bool of all rows."""
        kept = rows[self.rows]
        return RowLists(self.rows[kept], np.concatenate(([0], np.cumsum(kept)))[self.bounds].astype(np.int32))

    def counted(self, rows: NDArray[np.bool_]) -> Positions:
        """The number of selected rows in each list (none of them empty). ``rows``: bool of all rows."""
        if not len(self):
            return np.zeros(0, np.int64)
        return np.add.reduceat(rows[self.rows], self.bounds[:-1], dtype=np.int32)

    def touching(self, rows: NDArray[np.bool_]) -> NDArray[np.bool_]:
        """Whether each list contains one of the selected rows. ``rows``: bool of all rows."""
        return self.counted(rows) > 0
