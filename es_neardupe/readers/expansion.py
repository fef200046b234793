"""Expansion of Parquet and Arrow files: the memory for their parts, as the files state it, before they are decoded.

A file of some hundred bytes can hold billions of rows, or a batch of gigabytes. A part that is both large and far
larger than what is stored of it is not decoded.
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


# -- Parquet -----------------------------------------------------------------------------------------------------------


def check_parquet(stream: IO[bytes], metadata: Any, columns: Sequence[Any]) -> None:
    """Check the rows of a Parquet file, and the pages and lists of its columns. Raises `OSError`."""
    _check(f"{metadata.num_rows:,} rows", _ROW * metadata.num_rows, _size(stream))
    for chunk in _chunks(metadata):
        column = columns[chunk.number]
        name, stored = f"column {column.path!r}", min(chunk.data.total_compressed_size, _size(stream))
        _check(name, chunk.data.total_uncompressed_size, stored)
        if column.max_repetition_level:
            _check(name, _ROW * chunk.data.num_values, stored)
            if "DELTA_BYTE_ARRAY" in chunk.data.encodings:
                _check(name, chunk.data.num_values * chunk.data.total_uncompressed_size, min(stored, _LARGE // _RATIO))


def rows_at_once(stream: IO[bytes], metadata: Any, columns: Sequence[Any]) -> int:
    """Rows of a Parquet file that can be decoded at a time, in bounded memory.

    A value of a dictionary is decoded for each row that refers to it, and one that begins like the value before it
    completely, although neither is stored twice. The values of lists are read with their dictionary.
    """
    average = sum(metadata.row_group(n).total_byte_size for n in range(metadata.num_row_groups))
    row = average // max(1, metadata.num_rows)
    for n in range(metadata.num_row_groups):
        chunks = (one for one in _chunks(metadata, n) if one.data.physical_type == "BYTE_ARRAY")
        flat = (one.data for one in chunks if not columns[one.number].max_repetition_level)
        row = max(row, sum(_largest(stream, data) for data in flat))
    return int(min(max(1, _BATCH_SIZE // max(1, row)), _MAX_BATCH))


class _Chunk(NamedTuple):
    """A column of a row group."""

    number: int
    data: Any


def _chunks(metadata: Any, *groups: int) -> Iterator[_Chunk]:
    for n in groups or range(metadata.num_row_groups):
        group = metadata.row_group(n)
        for number in range(group.num_columns):
            yield _Chunk(number, group.column(number))


def _largest(stream: IO[bytes], data: Any) -> int:
    """Maximum size of a value that is decoded more often than it is stored; 0 if there is none."""
    if "DELTA_BYTE_ARRAY" in data.encodings:
        return int(data.total_uncompressed_size)
    if not data.has_dictionary_page:
        return 0
    stream.seek(data.dictionary_page_offset)
    header = iter(stream.read(32))
    # A struct of Thrift's compact protocol. Its first fields are 32-bit numbers: the kind of the page, and its size.
    if next(header, 0) == _I32 and _varint(header) is not None and next(header, 0) == _I32:
        size = _varint(header)
        return 0 if size is None else size >> 1
    return int(data.total_uncompressed_size)


_I32 = 0x15


def _varint(data: Iterator[int]) -> int | None:
    """An unsigned number of 7 bits in each byte, the lowest first; None if it does not end."""
    value = 0
    for place, byte in enumerate(data):
        value |= (byte & 0x7F) << 7 * place
        if byte < 0x80:
            return value
    return None


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
