"""Input files: documents from JSON lines, CSV, TSV and folders of texts, plain or compressed (.gz, .xz), or stdin.

A line that cannot be read is reported as a `Problem` with its place.
"""

from __future__ import annotations

import csv
import json
import os
import sys
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from es_neardupe.commands.input_json import parsed_line
from es_neardupe.commands.input_streams import COMPRESSED, MAX_EXPANDED, READ_ERRORS, expanded, limited_lines, whole
from es_neardupe.errors import InputError

__all__ = ["FileRecord", "Problem", "check_paths", "read_lines", "read_records", "read_text_file"]

STDIN = "-"
_MAX_ID = 512
"""Bytes."""
_TOO_LONG = f"longer than {MAX_EXPANDED:,} bytes"
_MAX_DELIMITERS = 2_000_000
"""Delimiters of a line of a CSV or TSV file: each may end a cell, which needs up to 60 bytes in memory."""
_DELIMITERS = {".csv": ",", ".tsv": "\t"}
_NAMES = {b",": "commas", b"\t": "tabs"}


@dataclass(frozen=True, slots=True)
class FileRecord:
    """A document of a file. ``place`` is ``FILE:LINE``, or the path of a text file."""

    place: str
    id: str | None
    source: Mapping[str, Any]
    routing: str | None = None
    size: int = field(default=0, compare=False)
    """Size in memory, roughly: bytes of the line or row, or characters of the text file."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A line or file that is not a document, and why."""

    place: str
    why: str
    breaks_off: bool = False
    """Whether the rest of the file cannot be read."""
    link: bool = False
    """Whether it is a symbolic link that leaves the folder and was not followed."""


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
    paths: Iterable[str], *, text_field: str, id_field: str | None = None, follow_links: bool = False
) -> Iterator[FileRecord | Problem]:
    """The documents of files and folders, in order; only the current line is in memory.

    The text of a file in a folder becomes the field ``text_field``, and its path relative to the folder becomes the id.
    ``id_field`` names the field with the id of a line; the default is ``id``, then ``_id``, if the line has one.
    A symbolic link that leaves its folder is read with ``follow_links``, and is otherwise a `Problem`.
    """
    for name in paths:
        if name == STDIN:
            yield from _json_lines(sys.stdin.buffer, "stdin", id_field)
        elif Path(name).is_dir():
            yield from _folder(Path(name), text_field, follow_links=follow_links)
        else:
            yield from _until_broken(_file(name, id_field), name)


def read_text_file(name: str) -> str:
    """The text of a file, which may be compressed, or of standard input for ``-``. Raises `InputError`."""
    try:
        with nullcontext(sys.stdin.buffer) if name == STDIN else expanded(Path(name)) as stream:
            content = whole(stream)
        if content is None:
            raise InputError(f"{name} is longer than {MAX_EXPANDED:,} bytes.")
        return content.decode("utf-8")
    except READ_ERRORS as error:
        raise InputError(f"{name} cannot be read: {_reason(error)}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{name} is not UTF-8 ({error.reason} at byte {error.start}).") from error


def read_lines(name: str) -> Iterator[str]:
    """The non-empty lines of a file, which may be compressed, or of standard input for ``-``, stripped.

    Raises `InputError`, which names the line.
    """
    number = 0
    try:
        with nullcontext(sys.stdin.buffer) if name == STDIN else expanded(Path(name)) as stream:
            for number, line in enumerate(limited_lines(stream), 1):
                if line is None:
                    raise InputError(f"{name}:{number} is longer than {MAX_EXPANDED:,} bytes.")
                if text := line.decode("utf-8-sig" if number == 1 else "utf-8").strip():
                    yield text
    except READ_ERRORS as error:
        raise InputError(f"{name} cannot be read: {_reason(error)}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{name}:{number} is not UTF-8 ({error.reason}).") from error


def _kind(file: Path) -> str:
    suffixes = [suffix.lower() for suffix in file.suffixes if suffix.lower() not in COMPRESSED]
    kind = suffixes[-1] if suffixes else ""
    if kind in _DELIMITERS:
        return kind
    if kind in (".jsonl", ".ndjson", ".json"):
        return ".json"
    raise InputError(
        f"{file} is neither JSON lines (.jsonl, .ndjson, .json) nor CSV (.csv) or TSV (.tsv), nor a folder of texts."
    )


def _file(name: str, id_field: str | None) -> Iterator[FileRecord | Problem]:
    kind = _kind(Path(name))
    with expanded(Path(name)) as stream:
        if kind in _DELIMITERS:
            yield from _table(stream, name, id_field, _DELIMITERS[kind])
        else:
            yield from _json_lines(stream, name, id_field)


def _until_broken(records: Iterator[FileRecord | Problem], name: str) -> Iterator[FileRecord | Problem]:
    """The records; if the file cannot be read to its end, the last one is a `Problem`."""
    try:
        yield from records
    except READ_ERRORS as error:
        yield Problem(name, f"the rest cannot be read: {_reason(error)}", breaks_off=True)


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _json_lines(stream: IO[bytes], name: str, id_field: str | None) -> Iterator[FileRecord | Problem]:
    for number, line in enumerate(limited_lines(stream), 1):
        place = f"{name}:{number}"
        if line is None:
            yield Problem(place, _TOO_LONG)
            continue
        if line.isspace():
            continue
        try:
            source = parsed_line(line, "utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            yield Problem(place, f"not UTF-8 ({error.reason} at byte {error.start} of the line)")
        except json.JSONDecodeError as error:
            yield Problem(place, f"invalid JSON ({error.msg.removesuffix(' at')} at column {error.colno})")
        except ValueError as error:
            yield Problem(place, f"JSON that no server accepts ({error})")
        else:
            yield _record(place, source, id_field, len(line))


def _record(place: str, source: object, id_field: str | None, size: int) -> FileRecord | Problem:
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
        place,
        None if id is None else str(id),
        {key: value for key, value in source.items() if key != "_id"},
        size=size,
    )


def _invalid_id(id: str) -> str:
    """Why servers reject or change an id; empty if it is valid."""
    try:
        return f"longer than {_MAX_ID} bytes" if len(id.encode("utf-8")) > _MAX_ID else ""
    except UnicodeEncodeError:
        return "not valid Unicode"


def _table(stream: IO[bytes], name: str, id_field: str | None, delimiter: str) -> Iterator[FileRecord | Problem]:
    csv.field_size_limit(MAX_EXPANDED)
    lines, kind = _DecodedLines(stream, delimiter), _kind(Path(name)).removeprefix(".").upper()
    reader = csv.DictReader(lines, delimiter=delimiter, strict=True)
    if problem := _bad_header(reader, f"{name}:1", kind):
        yield problem
        return
    while True:
        lines.size = 0
        try:
            row = next(reader)
        except StopIteration:
            return
        except (UnicodeDecodeError, csv.Error) as error:
            yield Problem(f"{name}:{lines.number}", f"not a {kind} row in UTF-8 ({error})")
            continue
        place = f"{name}:{reader.line_num}"
        if lines.size > MAX_EXPANDED:
            yield Problem(place, _TOO_LONG)
        elif None in row or None in row.values():
            yield Problem(place, f"{'more' if None in row else 'fewer'} columns than the header has")
        else:
            yield _record(place, dict(row), id_field, lines.size)


def _bad_header(reader: csv.DictReader[str], place: str, kind: str) -> Problem | None:
    """Why the header is invalid. Then no row is read: the next row must not be taken for the header."""
    try:
        columns = Counter(reader.fieldnames or ())
    except (UnicodeDecodeError, csv.Error) as error:
        return Problem(place, f"not a {kind} header in UTF-8 ({error})")
    twice = [column for column, times in columns.items() if times > 1]
    return Problem(place, f"the header names a column twice: {', '.join(twice)}") if twice else None


class _DecodedLines:
    """Lines of a stream as text. Unlike a generator, it continues after a line that is too long or not UTF-8."""

    def __init__(self, stream: IO[bytes], delimiter: str) -> None:
        self._lines = limited_lines(stream)
        self._delimiter = delimiter.encode()
        self.number = 0
        self.size = 0
        """Size in bytes of the lines since it was set to 0, at the beginning of a row."""

    def __iter__(self) -> _DecodedLines:
        return self

    def __next__(self) -> str:
        line = next(self._lines)
        self.number += 1
        if line is None:
            raise csv.Error(_TOO_LONG)
        self.size += len(line)
        if self.size > MAX_EXPANDED:  # the reader needs only the quotes, to find the end of the row
            line = b'"' * line.count(b'"') + b"\n"
        if line.count(self._delimiter) > _MAX_DELIMITERS:
            raise csv.Error(f"more than {_MAX_DELIMITERS:,} {_NAMES[self._delimiter]}")
        return line.decode("utf-8-sig" if self.number == 1 else "utf-8")


def _folder(folder: Path, text_field: str, *, follow_links: bool) -> Iterator[FileRecord | Problem]:
    for file in _files(folder, follow_links=follow_links):
        if isinstance(file, Problem):
            yield file
            continue
        name = file.relative_to(folder).as_posix()
        if why := _invalid_id(name):
            yield Problem(str(file), f"the id is {why}")
            continue
        try:
            text = read_text_file(str(file))
        except InputError as error:
            yield Problem(str(file), str(error))
        else:
            yield FileRecord(str(file), name, {text_field: text}, size=len(text))


def _files(root: Path, *, follow_links: bool) -> Iterator[Path | Problem]:
    """The files of a folder and its subfolders, sorted by path.

    A link to a subfolder of ``root`` is skipped, because its files are read at their own place. Another folder is read
    once, however many links lead to it.
    """
    home = os.path.realpath(root)
    entered: set[str] = set()
    waiting = [root]
    while waiting:
        path = waiting.pop()
        linked = path != root and path.is_symlink()
        inside = Path(os.path.realpath(path)).is_relative_to(home) if linked else True
        if not inside and not follow_links:
            yield Problem(str(path), f"a link to {os.path.realpath(path)}, outside of the folder", link=True)
        elif path.is_dir():
            if (linked and inside) or (real := os.path.realpath(path)) in entered:
                continue
            entered.add(real)
            try:
                waiting += sorted(path.iterdir(), reverse=True)
            except OSError as error:
                yield Problem(str(path), f"the folder cannot be read: {_reason(error)}")
        elif path.exists() and not path.is_file():
            yield Problem(str(path), "neither a file nor a folder")
        else:
            yield path
