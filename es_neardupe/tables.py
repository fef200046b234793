"""Tables: results as rows with typed columns, for Parquet, Arrow, CSV and JSON lines, pandas and polars.

A column has the name that its value has in the JSON form of the result; parts of a path are joined by ``_``.
"""

from __future__ import annotations

import csv
import importlib.util
import io
import math
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from es_neardupe.errors import SettingsError
from es_neardupe.folders import check_file, install_extra, replacing

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow


Cell = str | int | float | bool | None

_ROWS = 1 << 16
"""Maximum number of rows converted at a time: a row group of Parquet, a batch of Arrow."""

_CHARACTERS = 1 << 22
"""Characters of rows that are converted at a time."""

_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "\uff1d", "\uff0b", "\uff0d", "\uff20")
"""First characters of cells that a spreadsheet takes for formulas, also in their full-width forms."""


class _Once:
    """The rows of an iterator."""

    def __init__(self, rows: Iterator[Sequence[Cell]]) -> None:
        self._rows: Iterator[Sequence[Cell]] | None = rows

    def __iter__(self) -> Iterator[Sequence[Cell]]:
        """Raises `SettingsError` the second time."""
        rows, self._rows = self._rows, None
        if rows is None:
            raise SettingsError("The rows of this table have been read, which is possible once: make the table again.")
        return rows


@dataclass(frozen=True)
class Table:
    """Rows with typed columns.

    Rows are made while they are read, which is possible once: reading them again raises `SettingsError`. Each method
    reads them all, but those that return an iterator or write a file hold only some of them in memory.
    """

    columns: Mapping[str, type]
    """Name -> str, int, float or bool. Any cell may be None."""
    rows: Iterable[Sequence[Cell]]

    def __post_init__(self) -> None:
        if isinstance(self.rows, Iterator):
            object.__setattr__(self, "rows", _Once(self.rows))

    def batches(self) -> pyarrow.RecordBatchReader:
        """A reader of Arrow batches, which are made while it is read. Raises `SettingsError` without pyarrow."""
        arrow = _imported("pyarrow")
        types = {str: arrow.string(), int: arrow.int64(), float: arrow.float64(), bool: arrow.bool_()}
        schema = arrow.schema([(name, types[kind]) for name, kind in self.columns.items()])

        def made() -> Iterator[pyarrow.RecordBatch]:
            for rows in self._portions():
                cells = zip(schema.types, zip(*rows, strict=True), strict=True)
                yield arrow.record_batch([arrow.array(column, kind) for kind, column in cells], schema=schema)

        return arrow.RecordBatchReader.from_batches(schema, made())

    def to_arrow(self) -> pyarrow.Table:
        """All rows as a table of Arrow. Raises `SettingsError` without pyarrow."""
        return self.batches().read_all()

    def to_pandas(self) -> pandas.DataFrame:
        """All rows as a frame of pandas. Raises `SettingsError` without pandas and pyarrow."""
        _imported("pandas")
        return self.to_arrow().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """All rows as a frame of polars. Raises `SettingsError` without polars and pyarrow."""
        frame: polars.DataFrame = _imported("polars").from_arrow(self.to_arrow())
        return frame

    def write(self, file: Path | str) -> None:
        """Write all rows to a file, in the format of its ending: .parquet, .arrow, .csv or .jsonl.

        The file is replaced when it is complete. Raises `SettingsError` for another ending or without pyarrow, and
        `InputError` if the file cannot be written.
        """
        file = Path(file)
        name = check_table_file(file)
        with replacing(file) as stream:
            for part in self.encoded(name):
                stream.buffer.write(part)

    def encoded(self, name: str) -> Iterator[bytes]:
        """The parts of a file in the format of this name: parquet, arrow (the file format of Arrow IPC), csv or jsonl.

        Raises as `check_format` does.
        """
        check_format(name)
        return _FORMATS[name](self)

    def csv_lines(self) -> Iterator[str]:
        """The rows as CSV without their end of line, after a line with the names of the columns. In cells that a
        spreadsheet would take for formulas, an apostrophe comes first."""
        line = io.StringIO()
        writer = csv.writer(line)
        texts = [place for place, kind in enumerate(self.columns.values()) if kind is str]
        flags = [place for place, kind in enumerate(self.columns.values()) if kind is bool]
        writer.writerow(self.columns)
        yield line.getvalue().removesuffix("\r\n")
        for row in self._cells():
            for place in texts:
                if row[place] is not None:
                    text = row[place].replace("\0", "\ufffd")  # many readers of CSV reject it, and so does Python 3.10
                    row[place] = f"'{text}" if text.startswith(_FORMULA) else text
            for place in flags:
                row[place] = {True: "true", False: "false", None: None}[row[place]]
            line.seek(0)
            line.truncate()
            writer.writerow(row)
            yield line.getvalue().removesuffix("\r\n")

    def _cells(self) -> Iterator[list[Any]]:
        """The rows without what files cannot hold: lone surrogates become U+FFFD, numbers that are not finite None."""
        return ([_valid(cell) for cell in row] for row in self.rows)

    def _portions(self) -> Iterator[list[list[Any]]]:
        """The rows, some at a time."""
        some: list[list[Any]] = []
        characters = 0
        for row in self._cells():
            some.append(row)
            characters += sum(len(cell) for cell in row if isinstance(cell, str))
            if len(some) == _ROWS or characters > _CHARACTERS:
                yield some
                some, characters = [], 0
        if some:
            yield some


class Tabular(ABC):
    """A result that is also a table."""

    __slots__ = ()

    @abstractmethod
    def table(self) -> Table:
        """The result as a table, whose rows are made while they are read."""

    def to_arrow(self) -> pyarrow.Table:
        """The result as a table of Arrow; needs the extra ``tables``, else raises `SettingsError`."""
        return self.table().to_arrow()

    def to_pandas(self) -> pandas.DataFrame:
        """The result as a frame of pandas; needs the extra ``tables``, else raises `SettingsError`."""
        return self.table().to_pandas()

    def to_polars(self) -> polars.DataFrame:
        """The result as a frame of polars; needs the extra ``tables``, else raises `SettingsError`."""
        return self.table().to_polars()


def check_table_file(file: Path) -> str:
    """The format of a file to write, by its ending. Call this before long work.

    Raises `SettingsError` for an unknown ending or without pyarrow, and `InputError` if the file cannot be created or
    replaced.
    """
    check_file(file)
    name = file.suffix.lower().removeprefix(".")
    if name not in _FORMATS:
        raise SettingsError(f"{file} has an unknown ending. Name it .parquet, .arrow, .csv or .jsonl.")
    check_format(name)
    return name


def check_format(name: str) -> None:
    """Raises `SettingsError` if a format needs pyarrow, and it is not installed."""
    if name in _BY_ARROW:
        _imported("pyarrow")


def has_format(name: str) -> bool:
    """Whether a format can be written with what is installed."""
    return name not in _BY_ARROW or importlib.util.find_spec("pyarrow") is not None


def _imported(name: str) -> Any:
    """A module of the extra. Raises `SettingsError` if it is not installed."""
    try:
        return importlib.import_module(name)
    except ImportError:
        raise SettingsError(f"Tables need {name}: {install_extra('tables')}") from None


def _valid(cell: Cell) -> Cell:
    if isinstance(cell, float) and not math.isfinite(cell):
        return None
    if isinstance(cell, str) and not cell.isascii():
        return cell.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
    return cell


def _parquet(table: Table) -> Iterator[bytes]:
    from pyarrow.parquet import ParquetWriter

    return _by_arrow(table, ParquetWriter)


def _arrow(table: Table) -> Iterator[bytes]:
    from pyarrow.ipc import new_file

    return _by_arrow(table, new_file)


def _by_arrow(table: Table, writer: Callable[[Any, Any], Any]) -> Iterator[bytes]:
    """The parts of a file that ``writer`` makes of a stream and a schema."""
    from pyarrow import PythonFile

    batches, written = table.batches(), _Written()
    with writer(PythonFile(written, mode="w"), batches.schema) as file:
        for batch in batches:
            file.write_batch(batch)
            yield written.taken()
    yield written.taken()


def _csv(table: Table) -> Iterator[bytes]:
    yield "\ufeff".encode()  # a byte order mark, so that Excel reads UTF-8
    for line in table.csv_lines():
        yield f"{line}\r\n".encode()


def _json_lines(table: Table) -> Iterator[bytes]:
    import orjson

    for row in table._cells():
        yield orjson.dumps(dict(zip(table.columns, row, strict=True)), option=orjson.OPT_APPEND_NEWLINE)


_BY_ARROW = {"parquet": _parquet, "arrow": _arrow}
_FORMATS: dict[str, Callable[[Table], Iterator[bytes]]] = {**_BY_ARROW, "csv": _csv, "jsonl": _json_lines}


class _Written(io.RawIOBase):
    """A file whose content is taken while it is written."""

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._size = 0

    def writable(self) -> bool:
        return True

    def write(self, part: Any) -> int:
        self._parts.append(bytes(part))
        self._size += len(part)
        return len(part)

    def tell(self) -> int:
        return self._size

    def taken(self) -> bytes:
        """What was written since the last call."""
        parts, self._parts = self._parts, []
        return b"".join(parts)
