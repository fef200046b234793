"""Arrays that may outgrow memory: held in memory up to a limit, beyond it spilled to a temporary file.

A file is written once, from start to end, and read in pieces. On systems that support it, the file has no name, so it
is removed even if the program is killed. Writing raises `SettingsError` if there is no space or no permission.
"""

from __future__ import annotations

import math
import os
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from typing import Any, BinaryIO, Generic, TypeVar, cast, overload

import numpy as np
from numpy.typing import NDArray

from es_neardupe.errors import SettingsError
from es_neardupe.keys.arrays import U32, U64, Ints, Numbers

T = TypeVar("T", bound=np.generic)

HELD = 1_000_000
"""Maximum number of values held in memory: 12 MB of entries, 8 MB of rows."""

_PARTS = 256
"""Number of ranges of hashes, by the upper 8 bits."""


Scratch = Callable[[], BinaryIO]
"""Opens a new temporary file, in the folder of the system (``TMPDIR``)."""


@contextmanager
def scratch() -> Iterator[Scratch]:
    """Temporary files, removed when the context ends."""
    with ExitStack() as files:
        yield lambda: cast(BinaryIO, files.enter_context(tempfile.TemporaryFile(prefix="es-neardupe-")))


class _File:
    """A temporary file, created when it is first written."""

    def __init__(self, scratch: Scratch) -> None:
        self._scratch = scratch
        self._opened: BinaryIO | None = None

    def append(self, arrays: Sequence[NDArray[np.generic]]) -> None:
        """Write arrays at the end of the file."""
        try:
            if self._opened is None:
                self._opened = self._scratch()
            self._opened.seek(0, os.SEEK_END)
            for one in arrays:
                self._opened.write(np.ascontiguousarray(one).data)
            self._opened.flush()
        except OSError as error:
            raise SettingsError(
                f"Cannot write a temporary file ({error.strerror or error}): set TMPDIR to a folder "
                f"with more free space."
            ) from error

    def read(self, kind: type[T], start: int, end: int) -> NDArray[T]:
        """The elements from ``start`` to ``end`` (exclusive) of a file with elements of one type."""
        if self._opened is None:
            return np.empty(0, kind)
        self._opened.seek(0)
        return np.fromfile(self._opened, kind, end - start, offset=start * np.dtype(kind).itemsize)


class SpilledEntries:
    """Pairs of a hash and the number of a document that has it, read back in the order of hashes.

    Each write is sorted by the upper bits of the hash only, so every range of hashes is one piece of each write.
    """

    def __init__(self, scratch: Scratch) -> None:
        self._hashes, self._rows = _File(scratch), _File(scratch)
        self._held: list[tuple[U64, U32]] = []
        self._size = 0
        self._runs: list[Ints] = []
        """Start of each range in each write, in entries of the whole file; int64[_PARTS + 1]."""
        self.total = 0
        """Entries so far."""

    def add(self, hashes: U64, rows: U32) -> None:
        """Add entries (uint64[n], uint32[n])."""
        self._held.append((hashes, rows))
        self._size += len(hashes)
        self.total += len(hashes)
        if self._size > HELD:
            self._write()

    def _taken(self) -> tuple[U64, U32]:
        """Take all entries out of memory, as two arrays."""
        hashes = np.concatenate([np.empty(0, np.uint64), *(hashes for hashes, _ in self._held)])
        rows = np.concatenate([np.empty(0, np.uint32), *(rows for _, rows in self._held)])
        self._held, self._size = [], 0
        return hashes, rows

    def _write(self) -> None:
        hashes, rows = self._taken()
        part = (hashes >> np.uint64(56)).astype(np.uint8)
        order = np.argsort(part, kind="stable")
        before = int(self._runs[-1][-1]) if self._runs else 0
        self._hashes.append([hashes[order]])
        self._rows.append([rows[order]])
        self._runs.append(before + np.concatenate(([0], np.cumsum(np.bincount(part, minlength=_PARTS)))))

    def pieces(self) -> Iterator[tuple[U64, U32]]:
        """All entries, in pieces of about `HELD` if the sizes of ranges allow it; equal hashes are in one piece."""
        if not self._runs:
            yield self._taken()
            return
        if self._size:
            self._write()
        runs = np.array(self._runs)
        sizes = np.diff(runs, axis=1).sum(axis=0)
        cuts = np.flatnonzero(np.diff((np.cumsum(sizes) - sizes) // HELD)) + 1
        for first, last in zip([0, *cuts.tolist()], [*cuts.tolist(), _PARTS], strict=True):
            spans = runs[:, [first, last]].tolist()
            hashes = [self._hashes.read(np.uint64, start, end) for start, end in spans]
            yield np.concatenate(hashes), np.concatenate([self._rows.read(np.uint32, *span) for span in spans])


class SpilledColumn(Generic[T]):
    """A column of n values, or of n rows of some values, in a temporary file: indexed like an array, by one row or by
    ascending rows. What lies between the first and the last of them is read."""

    def __init__(self, scratch: Scratch, kind: type[T], *width: int) -> None:
        """``width``: the shape of one element, as of `es_neardupe.columns.Growing`."""
        self._file, self._kind, self._width = _File(scratch), kind, width
        self._held: list[NDArray[T]] = []
        self._size = 0
        self._written = 0

    def __len__(self) -> int:
        return self._written + self._size

    def extend(self, values: NDArray[T] | Sequence[Any]) -> None:
        """Append values."""
        self._held.append(np.asarray(values, self._kind))
        self._size += len(values)
        if self._size > HELD:
            self._write()

    def taken(self) -> SpilledColumn[T]:
        """All values in the file."""
        if self._size:
            self._write()
        return self

    def _write(self) -> None:
        self._file.append(self._held)
        self._written += self._size
        self._held, self._size = [], 0

    def __getitem__(self, rows: int | slice | Numbers) -> Any:
        if isinstance(rows, slice):
            first, end, _ = rows.indices(len(self))
            return self._read(first, max(first, end))
        if isinstance(rows, np.ndarray):
            return self._read(int(rows[0]), int(rows[-1]) + 1)[rows - rows[0]] if len(rows) else self._read(0, 0)
        return self._read(rows, rows + 1)[0]

    def _read(self, first: int, end: int) -> NDArray[T]:
        values = math.prod(self._width)
        return self._file.read(self._kind, first * values, end * values).reshape(-1, *self._width)


class SpilledKeys:
    """Columns of n keys each in a temporary file, indexed like an array of shape (n, bands): ``[:, band]`` and
    ``[row]``."""

    def __init__(self, scratch: Scratch, bands: int) -> None:
        self._file = _File(scratch)
        self._bands = bands
        self._held: list[U64] = []
        self._size = 0
        self._ends = [0]
        """Rows in the file after each write. A write has one column after the other."""

    @property
    def shape(self) -> tuple[int, int]:
        """Rows and columns."""
        return self._ends[-1] + self._size, self._bands

    def __len__(self) -> int:
        return self.shape[0]

    def extend(self, keys: U64) -> None:
        """Append rows of keys, shape (rows, bands)."""
        self._held.append(keys)
        self._size += len(keys)
        if self._size * self._bands > HELD:
            self._write()

    def taken(self) -> SpilledKeys:
        """All keys in the file."""
        if self._size:
            self._write()
        return self

    def _write(self) -> None:
        self._file.append([np.concatenate(self._held).T])
        self._ends.append(self._ends[-1] + self._size)
        self._held, self._size = [], 0

    @overload
    def __getitem__(self, place: tuple[slice, int]) -> U64: ...
    @overload
    def __getitem__(self, place: int) -> U64: ...
    def __getitem__(self, place: tuple[slice, int] | int) -> U64:
        if isinstance(place, tuple):
            return self._column(place[1])
        return np.concatenate([self._column(band, slice(place, place + 1)) for band in range(self._bands)])

    def _column(self, band: int, rows: slice = slice(None)) -> U64:
        """Some of the keys of a band."""
        first, last, _ = rows.indices(len(self))
        keys = np.empty(last - first, np.uint64)
        for start, end in pairwise(self._ends):
            some = slice(max(start, first), min(end, last))
            if some.start < some.stop:
                place = start * self._bands + band * (end - start) - start
                keys[some.start - first : some.stop - first] = self._file.read(
                    np.uint64, place + some.start, place + some.stop
                )
        return keys


class SpilledRows:
    """Arrays of uint64 of any lengths, numbered in the order of adding, read back by ranges of numbers."""

    def __init__(self, scratch: Scratch) -> None:
        self._file = _File(scratch)
        self._held: list[U64] = []
        self._size = 0
        self._written = 0
        self._lengths: list[int] = []
        self._counted: Ints = np.zeros(0, np.int64)
        self._edges: Ints = np.zeros(0, np.int64)

    def add(self, arrays: Sequence[U64]) -> None:
        """Add arrays (uint64[n], n may be 0)."""
        self._held += arrays
        lengths = [len(one) for one in arrays]
        self._lengths += lengths
        self._size += sum(lengths)
        if self._size > HELD:
            self._write()

    @property
    def lengths(self) -> Ints:
        """The length of each array; int64."""
        if len(self._counted) < len(self._lengths):
            self._counted = np.array(self._lengths, np.int64)
        return self._counted

    def _write(self) -> None:
        self._file.append(self._held)
        self._written += self._size
        self._held, self._size = [], 0

    def read(self, first: int, last: int) -> list[U64]:
        """The arrays with the numbers ``first`` to ``last - 1``."""
        if not self._written:
            return self._held[first:last]
        if self._size:
            self._write()
        if len(self._edges) <= len(self._lengths):
            self._edges = np.concatenate(([0], np.cumsum(self.lengths)))
        edges = self._edges[first : last + 1]
        values = self._file.read(np.uint64, int(edges[0]), int(edges[-1]))
        return [values[start:end] for start, end in pairwise((edges - edges[0]).tolist())]
