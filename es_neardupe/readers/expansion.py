"""Expansion of Parquet and Arrow files: the memory for their parts, as the files state it, before they are decoded.

A file of some hundred bytes can hold billions of rows, or a batch of gigabytes. A part that is both large and far
larger than what is stored of it is not decoded. A text that is stored once can be the value of many rows, which no
description says, so the rows are also counted while they are read.
"""

from __future__ import annotations

import io
import struct
from collections.abc import Iterator, Sequence
from typing import IO, Any, NamedTuple

_LARGE = 200_000_000
"""Bytes of a part, decoded, which are never too much."""
_MAX_DESCRIPTION = 2**28
"""Maximum size in bytes of a description of Arrow: of a schema, of a batch, or of a file."""
_RATIO = 100
"""Maximum number of bytes of a larger part, decoded, for each byte of the file."""
_RATIO_OF_ROWS = 1000
"""The same for all rows together, which are decoded one after the other: what gzip can reach."""
_ROW = 16
"""Bytes of a row and of a value of a list, at least: those of an empty one."""
_BATCH_SIZE = 2**24
"""Bytes of the rows of Parquet that are decoded at a time, about."""
_MAX_BATCH = 1000


def _check(what: str, decoded: int, stored: int) -> None:
    """Raises `OSError` for a part that expands too much."""
    if decoded > max(_LARGE, _RATIO * stored):
        raise OSError(
            f"{what}: {stored:,} bytes expand to {decoded:,}, more than {_RATIO} times as many. If this is intended, "
            f"write the file with smaller row groups or batches, or as JSON lines"
        )


class RowSizes:
    """The sizes of the rows of a file so far."""

    def __init__(self, stream: IO[bytes]) -> None:
        place = stream.tell()
        self._limit = max(_LARGE, _RATIO_OF_ROWS * _size(stream))
        stream.seek(place)
        self.rows = self._bytes = 0

    def add(self, size: int) -> None:
        """Count a value of the last of the ``rows``. Raises `OSError` if the rows expand too much."""
        self._bytes += size
        if self._bytes > self._limit:
            raise OSError(
                f"its first rows ({self.rows:,}) expand to {self._bytes:,} bytes, more than {_RATIO_OF_ROWS:,} times "
                f"the size of the file. If this is intended, write the file as JSON lines"
            )


# -- Parquet -----------------------------------------------------------------------------------------------------------


def check_parquet(stream: IO[bytes], rows: int, columns: Sequence[Any]) -> int:
    """Check the rows of a Parquet file, and the pages and lists of its columns. Returns how many rows can be decoded
    at a time, in bounded memory. ``columns``: those of the schema. Raises `OSError`, also for a file that is damaged.

    A value of a dictionary is decoded for each row that refers to it, and one that begins like the value before it
    completely, although neither is stored twice. The values of lists are read with their dictionary.

    The description is parsed here: pyarrow ends the process if the metadata of a column are damaged.
    """
    size = _size(stream)
    _check(f"{rows:,} rows", _ROW * rows, size)
    largest = total = 0
    try:
        for group in _footer(stream, size)[_ROW_GROUPS]:
            chunks = [chunk[_METADATA] for chunk in group[_COLUMNS]]
            if len(chunks) != len(columns):
                raise OSError("it is damaged: a row group has other columns than the file")
            total += sum(chunk[_DECODED] for chunk in chunks)
            pairs = list(zip(chunks, columns, strict=True))
            for chunk, column in pairs:
                _check_chunk(chunk, column, size)
            texts = (one for one, column in pairs if one[_TYPE] == _BYTE_ARRAY and not column.max_repetition_level)
            largest = max(largest, sum(_largest(stream, chunk) for chunk in texts))
    except (IndexError, KeyError, TypeError, ValueError, RecursionError) as error:
        raise OSError("it is damaged: one of its columns has no valid description") from error
    stream.seek(0)
    return int(min(max(1, _BATCH_SIZE // max(1, largest, total // max(1, rows))), _MAX_BATCH))


_ROW_GROUPS, _COLUMNS, _METADATA = 4, 1, 3
"""Fields of a file, of a row group and of one of its columns, as `parquet.thrift` numbers them. Those of the metadata
of a column follow."""
_TYPE, _ENCODINGS, _VALUE_COUNT, _DECODED, _STORED, _PAGES, _DICTIONARY = 1, 2, 5, 6, 7, 9, 11
_BYTE_ARRAY = 6
_DICTIONARY_ENCODINGS, _DELTA_BYTE_ARRAY = {2, 8}, 7
_PAGE_TYPE, _PAGE_SIZE, _DICTIONARY_PAGE = 1, 2, 2
_MAX_PAGE_HEADER = 2**16


def _check_chunk(chunk: dict[int, Any], column: Any, size: int) -> None:
    """Check a column of a row group."""
    name, stored = f"column {column.path!r}", min(chunk[_STORED], size)
    _check(name, chunk[_DECODED], stored)
    if column.max_repetition_level:
        _check(name, _ROW * chunk[_VALUE_COUNT], stored)
        if _DELTA_BYTE_ARRAY in chunk[_ENCODINGS]:
            _check(name, chunk[_VALUE_COUNT] * chunk[_DECODED], min(stored, _LARGE // _RATIO))


def _largest(stream: IO[bytes], chunk: dict[int, Any]) -> int:
    """Maximum size of a value that is decoded more often than it is stored; 0 if there is none."""
    if _DELTA_BYTE_ARRAY in chunk[_ENCODINGS]:
        return int(chunk[_DECODED])
    if not _DICTIONARY_ENCODINGS.intersection(chunk[_ENCODINGS]):
        return 0
    place = chunk.get(_DICTIONARY) or chunk[_PAGES]  # some writers name only the first page
    if not 0 <= place < 2**62:
        raise ValueError
    stream.seek(place)
    header = _Thrift(stream.read(_MAX_PAGE_HEADER)).struct()
    return int(header[_PAGE_SIZE] if header[_PAGE_TYPE] == _DICTIONARY_PAGE else chunk[_DECODED])


def _footer(stream: IO[bytes], size: int) -> dict[int, Any]:
    stream.seek(size - 8)
    length = int.from_bytes(stream.read(4), "little")
    stream.seek(size - 8 - length)
    return _Thrift(stream.read(length)).struct()


class _Thrift:
    """Values of Thrift's compact protocol. All methods raise `IndexError` or `ValueError` if they are damaged."""

    def __init__(self, data: bytes) -> None:
        self._data = data
        self._place = 0

    def struct(self) -> dict[int, Any]:
        """The fields of a struct by their numbers."""
        fields: dict[int, Any] = {}
        number = 0
        while head := self._byte():
            number = number + (head >> 4) if head >> 4 else self._number()
            fields[number] = head & 15 == 1 if head & 15 in (1, 2) else self._value(head & 15)
        return fields

    def _value(self, kind: int) -> Any:
        if kind in (4, 5, 6):
            return self._number()
        if kind in (1, 2, 3):  # truth values in a list, and a byte
            return self._byte()
        if kind == 8:
            return self._bytes(self._varint())
        if kind in (9, 10):
            head = self._byte()
            count = head >> 4 if head >> 4 < 15 else self._varint()
            return [self._value(head & 15) for _ in range(count)]
        if kind == 12:
            return self.struct()
        if kind == 7:
            return self._bytes(8)
        raise ValueError(kind)

    def _byte(self) -> int:
        self._place += 1
        return self._data[self._place - 1]

    def _bytes(self, size: int) -> bytes:
        self._place += size
        return self._data[self._place - size : self._place]

    def _varint(self) -> int:
        """An unsigned number of 7 bits in each byte, the lowest first."""
        value = shift = 0
        while True:
            byte = self._byte()
            value |= (byte & 0x7F) << shift
            shift += 7
            if byte < 0x80:
                return value
            if shift > 63:
                raise ValueError(shift)

    def _number(self) -> int:
        value = self._varint()
        return value >> 1 ^ -(value & 1)


# -- Arrow -------------------------------------------------------------------------------------------------------------


def check_arrow(stream: IO[bytes]) -> None:
    """Check all batches of an Arrow file or stream. Raises `OSError`, also for one that is damaged."""
    rows, size = 0, _size(stream)
    try:
        for batch in _blocks(stream, size):
            _check("record batch", batch.decoded, batch.stored)
            rows += batch.rows
            _check(f"{rows:,} rows", _ROW * rows, size)
    except struct.error as error:
        raise OSError("it is damaged: one of its batches has no valid description") from error
    stream.seek(0)


class _Batch(NamedTuple):
    """What the description of a record batch or of the values of a dictionary states."""

    rows: int
    decoded: int
    stored: int
    end: int
    """Place after it."""


def _blocks(stream: IO[bytes], size: int) -> Iterator[_Batch]:
    """All batches: those that the footer of a file lists, or one after the other in a stream."""
    if _read(stream, 0, 6) != b"ARROW1":
        place = 0
        while place < size and (batch := _batch(stream, place)):
            yield batch
            place = batch.end
        return
    (length,) = struct.unpack("<i", _read(stream, size - 10, 4))
    footer = _Table.of(_read(stream, size - 10 - length, length))
    for field in (_DICTIONARIES, _BATCHES):
        for (start,) in footer.structs(field, "<q16x"):
            if batch := _batch(stream, start):
                yield batch


def _batch(stream: IO[bytes], place: int) -> _Batch | None:
    """The batch at a place; one without rows for another message, None at the end of a stream."""
    begin = _read(stream, place, 8)
    if len(begin) < 8:
        return None
    mark, length = struct.unpack("<Ii", begin)
    start = place + 8
    if mark != _CONTINUED:  # written before version 0.15 of Arrow
        length, start = mark, place + 4
    if length == 0:
        return None
    message = _Table.of(_read(stream, start, length))
    stored, kind = message.number(_BODY, "<q"), message.number(_KIND, "<B")
    if stored < 0:
        raise struct.error
    body = start + length
    if kind not in (_DICTIONARY_BATCH, _RECORD_BATCH):
        return _Batch(0, 0, stored, body + stored)
    header = message.table(_HEADER)
    if kind == _DICTIONARY_BATCH:
        header = header.table(_VALUES)
    decoded = stored
    if header.has(_COMPRESSION):  # each buffer begins with its decoded size, or -1
        buffers = [one for one in header.structs(_BUFFERS, "<qq") if one[1] >= 8]
        sizes = [struct.unpack("<q", _read(stream, body + at, 8))[0] for at, _ in buffers]
        decoded = sum(length if size < 0 else size for size, (_, length) in zip(sizes, buffers, strict=True))
    rows = header.number(_ROWS, "<q") if kind == _RECORD_BATCH else 0
    return _Batch(rows, decoded, stored, body + stored)


_CONTINUED = 0xFFFFFFFF
_KIND, _HEADER, _BODY = 1, 2, 3
"""Fields of a message, as Arrow's `Message.fbs` numbers them. Those of its headers and of a footer follow."""
_DICTIONARY_BATCH, _RECORD_BATCH = 2, 3
_VALUES = 1
_ROWS, _BUFFERS, _COMPRESSION = 0, 2, 3
_DICTIONARIES, _BATCHES = 2, 3


class _Table(NamedTuple):
    """A table of flatbuffers. All methods raise `struct.error` if it is damaged."""

    data: bytes
    place: int

    @classmethod
    def of(cls, data: bytes) -> _Table:
        """The table at the root."""
        return cls(data, *struct.unpack_from("<I", data))

    def has(self, field: int) -> bool:
        return bool(self._offset(field))

    def number(self, field: int, kind: str) -> int:
        """A number; 0 if it is not stored."""
        offset = self._offset(field)
        return int(struct.unpack_from(kind, self.data, self.place + offset)[0]) if offset else 0

    def table(self, field: int) -> _Table:
        """A table in this one."""
        return _Table(self.data, self._target(field))

    def structs(self, field: int, kind: str) -> list[tuple[int, ...]]:
        """The structs of a vector; none if it is not stored."""
        if not self.has(field):
            return []
        start = self._target(field)
        (number,) = struct.unpack_from("<I", self.data, start)
        content = self.data[start + 4 : start + 4 + number * struct.calcsize(kind)]
        return list(struct.iter_unpack(kind, content))

    def _target(self, field: int) -> int:
        place = self.place + self._offset(field)
        return place + int(struct.unpack_from("<I", self.data, place)[0])

    def _offset(self, field: int) -> int:
        """Place of a field in the table; 0 if it is not stored."""
        table = self.place - int(struct.unpack_from("<i", self.data, self.place)[0])
        (size,) = struct.unpack_from("<H", self.data, table)
        slot = 4 + 2 * field
        return int(struct.unpack_from("<H", self.data, table + slot)[0]) if slot < size else 0


def _read(stream: IO[bytes], place: int, size: int) -> bytes:
    """Some bytes at a place; fewer at the end."""
    if not (0 <= place < 2**62 and 0 <= size < _MAX_DESCRIPTION):
        raise struct.error
    stream.seek(place)
    return stream.read(size)


def _size(stream: IO[bytes]) -> int:
    return stream.seek(0, io.SEEK_END)
