"""Rows of Parquet and Arrow files as documents of JSON values. Needs pyarrow.

A small file can have large values: a list of a few bytes can hold millions of nulls. A row is measured before it is
converted, and only one row is converted at a time. A page of Parquet and a record batch of Arrow are decoded as a
whole, unless they expand too much (`es_neardupe.readers.expansion`).
"""

from __future__ import annotations

import json
import math
from collections import Counter
from collections.abc import Callable, Iterator
from datetime import datetime, timedelta
from typing import IO, Any, NamedTuple

from es_neardupe.errors import SettingsError
from es_neardupe.folders import install_extra
from es_neardupe.readers.expansion import RowSizes, check_arrow, check_parquet
from es_neardupe.readers.json_lines import invalid_json, parsed_line
from es_neardupe.readers.streams import MAX_EXPANDED
from es_neardupe.server.numbers import literal_number

TABLES = (".parquet", ".arrow", ".arrows", ".feather")

_MAX_DEPTH = 100
"""Levels of lists and structs, as in JSON lines."""
_MAX_VALUES = 2_000_000
"""Values of a row, as in JSON lines."""
_BUFFER = 2**20
"""Bytes of each column of Parquet that are read ahead."""
_PER_SECOND = {"s": 1, "ms": 10**3, "us": 10**6, "ns": 10**9}


class TableRow(NamedTuple):
    """A row as a document, and its size in bytes, roughly."""

    source: dict[str, Any]
    size: int


def check_pyarrow(name: str) -> None:
    """Raises `SettingsError` if pyarrow is missing. ``name``: the file that needs it."""
    try:
        import pyarrow  # noqa: F401
    except ImportError:
        raise SettingsError(f"{name} needs pyarrow: {install_extra('tables')}") from None


def table_rows(stream: IO[bytes], suffix: str) -> Iterator[TableRow | str]:
    """The rows of a file of a kind in `TABLES`, in order; of a row that is no document, the reason.

    Raises `OSError` for a file that is damaged, truncated, or has columns that JSON cannot hold.
    """
    import pyarrow as pa

    try:
        sizes = RowSizes(stream)
        schema, batches = _parquet(stream) if suffix == ".parquet" else _arrow(stream)
        columns = _columns(schema)
        for batch in batches:
            for row in range(batch.num_rows):
                sizes.rows += 1
                yield _row(columns, batch, row, _Room(sizes))
    except _UnsupportedColumn as error:
        raise OSError(str(error)) from error
    except MemoryError as error:  # a length of a damaged file
        raise OSError("it needs more memory than there is") from error
    except (pa.ArrowException, OSError, UnicodeDecodeError) as error:  # not UTF-8: a name of a column
        raise OSError(" ".join(str(error).split())) from error


def _parquet(stream: IO[bytes]) -> tuple[Any, Iterator[Any]]:
    from pyarrow import parquet

    metadata = parquet.read_metadata(stream)
    columns = [metadata.schema.column(n) for n in range(metadata.num_columns)]
    rows = check_parquet(stream, metadata.num_rows, columns)
    lists = [one.path for one in columns if one.max_repetition_level and one.physical_type == "BYTE_ARRAY"]
    file = parquet.ParquetFile(stream, metadata=metadata, read_dictionary=lists, buffer_size=_BUFFER, pre_buffer=False)
    return file.schema_arrow, file.iter_batches(batch_size=rows, use_threads=False)


def _arrow(stream: IO[bytes]) -> tuple[Any, Iterator[Any]]:
    """Of an IPC file or stream. `validate`: offsets that point outside of a batch would be followed."""
    from pyarrow import ipc

    def checked(batches: Iterator[Any]) -> Iterator[Any]:
        for batch in batches:
            batch.validate(full=True)
            yield batch

    magic = stream.read(6)
    if magic[:4] == b"FEA1":
        raise OSError("it is Feather version 1: write it as version 2, which is Arrow IPC")
    check_arrow(stream)
    if magic != b"ARROW1":
        reader = ipc.open_stream(stream)
        return reader.schema, checked(iter(reader))
    file = ipc.open_file(stream)
    return file.schema, checked(file.get_batch(n) for n in range(file.num_record_batches))


class _UnsupportedColumn(Exception):
    """A column that JSON cannot hold; the message names it."""


class _Room:
    """What is left of the limits of a row and of its file. Values are counted before they are converted."""

    def __init__(self, sizes: RowSizes) -> None:
        self.bytes = MAX_EXPANDED
        self.values = _MAX_VALUES
        self._sizes = sizes

    @property
    def used(self) -> int:
        """Bytes of the values that were taken."""
        return MAX_EXPANDED - self.bytes

    def take(self, size: int, values: int = 0) -> None:
        """Raises `ValueError` if the row exceeds a limit, and `OSError` if all rows so far do."""
        self._sizes.add(size)
        self.bytes -= size
        self.values -= values
        if self.bytes < 0:
            raise ValueError(f"longer than {MAX_EXPANDED:,} bytes")
        if self.values < 0:
            raise ValueError(f"more than {_MAX_VALUES:,} values")


_Reader = Callable[[Any, _Room], Any]
"""Converts a value that is not null, and takes its size of what is left."""


def _columns(schema: Any) -> list[tuple[str, _Reader]]:
    _check_names(schema.names, "the file")
    return [(field.name, _reader(field.type, field.name)) for field in schema]


def _check_names(names: list[str], where: str) -> None:
    twice = [name for name, times in Counter(names).items() if times > 1]
    if twice:
        raise _UnsupportedColumn(f"{where} has a column twice: {', '.join(twice)}")


def _row(columns: list[tuple[str, _Reader]], batch: Any, row: int, room: _Room) -> TableRow | str:
    try:
        room.take(0, len(columns))
        source = {name: _value(read, batch.column(n)[row], room) for n, (name, read) in enumerate(columns)}
        return TableRow(source, room.used)
    except UnicodeDecodeError as error:
        return f"not UTF-8 ({error.reason} at byte {error.start} of a text)"
    except OverflowError:
        return "a date that is out of range"
    except ValueError as error:
        return str(error)


def _value(read: _Reader, scalar: Any, room: _Room) -> Any:
    return read(scalar, room) if scalar.is_valid else None


def _reader(type: Any, column: str, depth: int = 1) -> _Reader:
    """Converts values of a type. Raises `_UnsupportedColumn`."""
    import pyarrow as pa
    from pyarrow import types

    if depth > _MAX_DEPTH:
        raise _UnsupportedColumn(f"the column {column!r} is nested deeper than {_MAX_DEPTH} levels")
    reader = _simple(type)
    if isinstance(type, pa.BaseExtensionType):
        known = {"arrow.json": _json, "arrow.bool8": _plain, "arrow.uuid": _uuid}
        reader = known.get(type.extension_name) or _stored(_reader(type.storage_type, column, depth))
    if types.is_dictionary(type):
        reader = _dictionary(_reader(type.value_type, column, depth))
    if types.is_run_end_encoded(type):
        reader = _stored(_reader(type.value_type, column, depth))
    if any(matches(type) for matches in _lists()):
        reader = _list(_reader(type.value_type, column, depth + 1))
    if types.is_struct(type):
        fields = [type.field(n) for n in range(type.num_fields)]
        _check_names([field.name for field in fields], f"the column {column!r}")
        reader = _struct([(field.name, _reader(field.type, f"{column}.{field.name}", depth + 1)) for field in fields])
    if types.is_map(type) and _simple(_plain_type(type.key_type)) is _text:
        keys = _reader(type.key_type, column, depth + 1)
        reader = _map(keys, _reader(type.item_type, column, depth + 1))
    if reader is None:
        raise _UnsupportedColumn(
            f"the column {column!r} has the type {type}, which cannot be read as JSON: convert it, or write the file "
            f"without it"
        )
    return reader


def _plain_type(type: Any) -> Any:
    """The type of the values of a dictionary, or the type itself."""
    from pyarrow import types

    return type.value_type if types.is_dictionary(type) else type


def _lists() -> tuple[Callable[[Any], bool], ...]:
    from pyarrow import types

    views = (types.is_list_view, types.is_large_list_view)
    return types.is_list, types.is_large_list, types.is_fixed_size_list, *views


def _simple(type: Any) -> _Reader | None:
    """The reader of a type without parts; None if JSON has no such values."""
    from pyarrow import types

    readers: tuple[tuple[Callable[[Any], bool], Callable[[], _Reader]], ...] = (
        (types.is_null, lambda: _plain),
        (types.is_boolean, lambda: _plain),
        (types.is_integer, lambda: _plain),
        (types.is_floating, lambda: _float),
        (types.is_decimal, lambda: _decimal),
        (types.is_string, lambda: _text),
        (types.is_large_string, lambda: _text),
        (types.is_string_view, lambda: _text),
        (types.is_date, lambda: _date),
        (types.is_time, lambda: _time(type.unit)),
        (types.is_timestamp, lambda: _moment(type.unit, "" if type.tz is None else "Z")),
    )
    return next((reader() for matches, reader in readers if matches(type)), None)


def _dictionary(read: _Reader) -> _Reader:
    """A value is read where it is used: many rows can refer to one that is large."""
    return lambda scalar, room: _value(read, scalar.dictionary[scalar.index.as_py()], room)


def _stored(read: _Reader) -> _Reader:
    """Of a value that wraps another one."""
    return lambda scalar, room: _value(read, scalar.value, room)


def _json(scalar: Any, room: _Room) -> Any:
    text = scalar.value.as_buffer().to_pybytes()
    room.take(len(text), sum(map(text.count, (b",", b"[", b"{"))))
    try:
        return parsed_line(text, "utf-8")
    except json.JSONDecodeError as error:
        raise ValueError(invalid_json(error)) from error


def _uuid(scalar: Any, room: _Room) -> str:
    room.take(36)
    return str(scalar.as_py())


def _plain(scalar: Any, room: _Room) -> Any:
    room.take(8)
    return scalar.as_py()


def _float(scalar: Any, room: _Room) -> float:
    room.take(8)
    value: float = scalar.as_py()
    if not math.isfinite(value):
        raise ValueError(f"JSON that no server accepts ({value} is not a JSON number)")
    return float(value)  # of a half float: numpy's own


def _decimal(scalar: Any, room: _Room) -> float:
    room.take(32)
    literal = format(scalar.as_py(), "f")
    return literal_number(literal) if "." in literal else int(literal)


def _text(scalar: Any, room: _Room) -> Any:
    room.take(scalar.as_buffer().size)
    return scalar.as_py()


def _date(scalar: Any, room: _Room) -> Any:
    room.take(10)
    return scalar.as_py().isoformat()


def _moment(unit: str, zone: str) -> _Reader:
    per_second = _PER_SECOND[unit]

    def read(scalar: Any, room: _Room) -> str:
        room.take(32)
        seconds, rest = divmod(scalar.value, per_second)
        return _iso(datetime(1970, 1, 1) + timedelta(seconds=seconds), rest, per_second) + zone

    return read


def _time(unit: str) -> _Reader:
    per_second = _PER_SECOND[unit]

    def read(scalar: Any, room: _Room) -> str:
        room.take(32)
        seconds, rest = divmod(scalar.value, per_second)
        if not 0 <= seconds < 86_400:
            raise ValueError(f"{scalar.value} is not a time of a day")
        return _iso(datetime(1970, 1, 1) + timedelta(seconds=seconds), rest, per_second).partition("T")[2]

    return read


def _iso(moment: datetime, rest: int, per_second: int) -> str:
    """The moment with its fraction of a second in the digits of the unit, unless it is 0."""
    fraction = f".{rest:0{len(str(per_second)) - 1}d}" if rest else ""
    return moment.isoformat() + fraction


def _list(read: _Reader) -> _Reader:
    def read_list(scalar: Any, room: _Room) -> list[Any]:
        room.take(0, len(scalar))
        return [_value(read, one, room) for one in scalar]

    return read_list


def _struct(fields: list[tuple[str, _Reader]]) -> _Reader:
    def read_struct(scalar: Any, room: _Room) -> dict[str, Any]:
        room.take(0, len(fields))
        return {name: _value(read, scalar[n], room) for n, (name, read) in enumerate(fields)}

    return read_struct


def _map(read_key: _Reader, read: _Reader) -> _Reader:
    def read_map(scalar: Any, room: _Room) -> dict[str, Any]:
        room.take(0, 2 * len(scalar.values))
        found: dict[str, Any] = {}
        for entry in scalar.values:
            key = _value(read_key, entry[0], room)
            if key in found:
                raise ValueError(f"a map has the key {key!r} twice")
            found[key] = _value(read, entry[1], room)
        return found

    return read_map
