"""Input files: documents from JSON lines, CSV and folders of texts, plain or compressed (.gz, .xz), or standard input.

A line that cannot be read is reported as a `Problem` with its place.
"""

from __future__ import annotations

import csv
import gzip
import json
import lzma
import math
import sys
import zlib
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import IO, Any, cast

from es_neardupe.errors import InputError

__all__ = ["FileRecord", "Problem", "check_paths", "read_lines", "read_records", "read_text_file"]

STDIN = "-"
_COMPRESSED = (".gz", ".xz")
_READ_ERRORS = (OSError, EOFError, lzma.LZMAError, zlib.error)
"""Exceptions of reading a file that is truncated, damaged or deleted."""

_MAX_ID = 512
"""Bytes."""
_MAX_LINE = 200_000_000
"""Maximum size of a line, and of a text file, in bytes: twice what servers accept in a request."""
_TOO_LONG = f"longer than {_MAX_LINE:,} bytes"
_PART = 2**20
_MAX_DEPTH = 100
"""Levels of arrays and objects: servers reject deeper objects, and Python cannot parse much deeper arrays."""


@dataclass(frozen=True, slots=True)
class FileRecord:
    """A document of a file. ``place`` is ``FILE:LINE``, or the path of a text file."""

    place: str
    id: str | None
    source: Mapping[str, Any]
    routing: str | None = None


@dataclass(frozen=True, slots=True)
class Problem:
    """A line or file that is not a document, and why."""

    place: str
    why: str
    breaks_off: bool = False
    """Whether the rest of the file cannot be read."""


def check_paths(paths: Iterable[str]) -> None:
    """Raises `InputError` for a file that does not exist or is of an unknown kind. Reads nothing."""
    for name in paths:
        if name == STDIN:
            continue
        if not Path(name).exists():
            raise InputError(f"There is no file or folder {name!r}.")
        if Path(name).is_file():
            _kind(Path(name))


def read_records(
    paths: Iterable[str], *, text_field: str, id_field: str | None = None
) -> Iterator[FileRecord | Problem]:
    """The documents of files and folders, in order; only the current line is in memory.

    The text of a file in a folder becomes the field ``text_field``, and its path relative to the folder becomes the id.
    ``id_field`` names the field with the id of a line; the default is ``id``, then ``_id``, if the line has one.
    """
    for name in paths:
        if name == STDIN:
            yield from _json_lines(sys.stdin.buffer, "stdin", id_field)
        elif Path(name).is_dir():
            yield from _folder(Path(name), text_field)
        else:
            yield from _until_broken(_file(name, id_field), name)


def read_text_file(name: str) -> str:
    """The text of a file, which may be compressed, or of standard input for ``-``. Raises `InputError`."""
    try:
        if name == STDIN:
            return _whole(sys.stdin.buffer, name)
        with _opened(Path(name)) as stream:
            return _whole(stream, name)
    except _READ_ERRORS as error:
        raise InputError(f"{name} cannot be read: {_reason(error)}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is not UTF-8 ({error.reason} at byte {error.start}).") from error


def _whole(stream: IO[bytes], name: str) -> str:
    content = stream.read(_MAX_LINE + 1)
    if len(content) > _MAX_LINE:
        raise InputError(f"{name} is longer than {_MAX_LINE:,} bytes.")
    return content.decode("utf-8")


def _lines(stream: IO[bytes]) -> Iterator[bytes | None]:
    """The lines of a stream; None for a line that is too long."""
    while line := stream.readline(_MAX_LINE + 1):
        if len(line) <= _MAX_LINE or line.endswith(b"\n"):
            yield line
        else:
            while (rest := stream.readline(_PART)) and not rest.endswith(b"\n"):
                pass
            yield None


def read_lines(name: str) -> Iterator[str]:
    """The non-empty lines of a file, which may be compressed, or of standard input for ``-``, stripped.

    Raises `InputError`, which names the line.
    """
    number = 0
    try:
        with nullcontext(sys.stdin.buffer) if name == STDIN else _opened(Path(name)) as stream:
            for number, line in enumerate(_lines(stream), 1):
                if line is None:
                    raise InputError(f"{name}:{number} is longer than {_MAX_LINE:,} bytes.")
                if text := line.decode("utf-8-sig" if number == 1 else "utf-8").strip():
                    yield text
    except _READ_ERRORS as error:
        raise InputError(f"{name} cannot be read: {_reason(error)}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{name}:{number} is not UTF-8 ({error.reason}).") from error


def _kind(file: Path) -> str:
    suffixes = [suffix.lower() for suffix in file.suffixes if suffix.lower() not in _COMPRESSED]
    kind = suffixes[-1] if suffixes else ""
    if kind == ".csv":
        return "csv"
    if kind in (".jsonl", ".ndjson", ".json"):
        return "json"
    raise InputError(f"{file} is neither JSON lines (.jsonl, .ndjson, .json) nor CSV (.csv), nor a folder of texts.")


def _opened(file: Path) -> IO[bytes]:
    """The decompressed file."""
    if file.suffix.lower() == ".gz":
        return cast("IO[bytes]", gzip.open(file))
    if file.suffix.lower() == ".xz":
        return lzma.open(file)
    return file.open("rb")


def _file(name: str, id_field: str | None) -> Iterator[FileRecord | Problem]:
    read = {"csv": _csv, "json": _json_lines}[_kind(Path(name))]
    with _opened(Path(name)) as stream:
        yield from read(stream, name, id_field)


def _until_broken(records: Iterator[FileRecord | Problem], name: str) -> Iterator[FileRecord | Problem]:
    """The records; if the file cannot be read to its end, the last one is a `Problem`."""
    try:
        yield from records
    except _READ_ERRORS as error:
        yield Problem(name, f"the rest cannot be read: {_reason(error)}", breaks_off=True)


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _json_lines(stream: IO[bytes], name: str, id_field: str | None) -> Iterator[FileRecord | Problem]:
    for number, line in enumerate(_lines(stream), 1):
        place = f"{name}:{number}"
        if line is None:
            yield Problem(place, _TOO_LONG)
            continue
        if not line.strip():
            continue
        try:
            source = _parsed(line, "utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            yield Problem(place, f"not UTF-8 ({error.reason} at byte {error.start} of the line)")
        except json.JSONDecodeError as error:
            yield Problem(place, f"invalid JSON ({error.msg.removesuffix(' at')} at column {error.colno})")
        except (ValueError, RecursionError) as error:
            yield Problem(place, f"JSON that no server accepts ({error})")
        else:
            yield _record(place, source, id_field)


def _parsed(line: bytes, encoding: str) -> Any:
    """The JSON value of a line. Raises `ValueError` or `RecursionError` for one that servers reject."""
    text = line.rstrip(b"\r\n").decode(encoding)
    value = json.loads(text, parse_constant=_no_constant, parse_float=_finite)
    if line.count(b"[") + line.count(b"{") > _MAX_DEPTH and _is_deep(value):
        raise ValueError(f"nested deeper than {_MAX_DEPTH} levels")
    return value


def _no_constant(name: str) -> None:
    raise ValueError(f"{name} is not a JSON number")


def _finite(text: str) -> float:
    number = float(text)
    if math.isinf(number):
        raise ValueError(f"the number {text} is too large")
    return number


def _is_deep(value: object) -> bool:
    level = [value]
    for _ in range(_MAX_DEPTH):
        inner = (one.values() if isinstance(one, dict) else one for one in level if isinstance(one, dict | list))
        level = [child for children in inner for child in children]
    return any(isinstance(one, dict | list) for one in level)


def _record(place: str, source: object, id_field: str | None) -> FileRecord | Problem:
    if not isinstance(source, dict):
        return Problem(place, f"a JSON {type(source).__name__}, not an object")
    names = [id_field] if id_field else ["id", "_id"]
    name = next((name for name in names if source.get(name) is not None), None)
    if name is None and id_field:
        return Problem(place, f"no field {id_field!r} to take the id from")
    id = source.get(name) if name else None
    if id is not None and (isinstance(id, bool) or not isinstance(id, str | int) or id == ""):
        return Problem(place, f"the id in {name!r} is neither text nor a whole number")
    if id is not None and (why := _invalid_id(str(id))):
        return Problem(place, f"the id in {name!r} is {why}")
    # The server rejects metadata fields in a document.
    return FileRecord(
        place, None if id is None else str(id), {key: value for key, value in source.items() if key != "_id"}
    )


def _invalid_id(id: str) -> str:
    """Why servers reject or change an id; empty if it is valid."""
    try:
        return f"longer than {_MAX_ID} bytes" if len(id.encode("utf-8")) > _MAX_ID else ""
    except UnicodeEncodeError:
        return "not valid Unicode"


def _csv(stream: IO[bytes], name: str, id_field: str | None) -> Iterator[FileRecord | Problem]:
    csv.field_size_limit(_MAX_LINE)
    lines = _DecodedLines(stream)
    reader = csv.DictReader(lines, strict=True)
    if problem := _bad_header(reader, f"{name}:1"):
        yield problem
        return
    while True:
        try:
            row = next(reader)
        except StopIteration:
            return
        except (UnicodeDecodeError, csv.Error) as error:
            yield Problem(f"{name}:{lines.number}", f"not a CSV row in UTF-8 ({error})")
            continue
        place = f"{name}:{reader.line_num}"
        if None in row or None in row.values():
            yield Problem(place, f"{'more' if None in row else 'fewer'} columns than the header has")
        else:
            yield _record(place, dict(row), id_field)


def _bad_header(reader: csv.DictReader[str], place: str) -> Problem | None:
    """Why the header is invalid. Then no row is read: the next row must not be taken for the header."""
    try:
        columns = Counter(reader.fieldnames or ())
    except (UnicodeDecodeError, csv.Error) as error:
        return Problem(place, f"not a CSV header in UTF-8 ({error})")
    twice = [column for column, times in columns.items() if times > 1]
    return Problem(place, f"the header names a column twice: {', '.join(twice)}") if twice else None


class _DecodedLines:
    """Lines of a stream as text. Unlike a generator, it continues after a line that is not UTF-8."""

    def __init__(self, stream: IO[bytes]) -> None:
        self._lines = _lines(stream)
        self.number = 0

    def __iter__(self) -> _DecodedLines:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.number += 1
        if line is None:
            raise csv.Error(_TOO_LONG)
        return line.decode("utf-8-sig" if self.number == 1 else "utf-8")


def _folder(folder: Path, text_field: str) -> Iterator[FileRecord | Problem]:
    for file in sorted(path for path in folder.rglob("*") if path.is_file()):
        name = file.relative_to(folder).as_posix()
        if why := _invalid_id(name):
            yield Problem(str(file), f"the id is {why}")
            continue
        try:
            yield FileRecord(str(file), name, {text_field: read_text_file(str(file))})
        except InputError as error:
            yield Problem(str(file), str(error))
