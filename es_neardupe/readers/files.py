"""Input files: documents from JSON lines, CSV, TSV, Parquet, Arrow, folders of such files or of texts, or stdin.

A line or row that cannot be read is reported as a `Problem` with its place.
"""

from __future__ import annotations

import csv
import json
import os
import sys
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import IO, Any, Literal, NamedTuple

from es_neardupe.errors import InputError
from es_neardupe.readers.json_lines import invalid_json, parsed_line
from es_neardupe.readers.streams import (
    COMPRESSED,
    MAX_EXPANDED,
    READ_ERRORS,
    InputFile,
    Reading,
    check_decoder,
    expanded,
    limited_lines,
    local_file,
    whole,
)
from es_neardupe.readers.tables import TABLES, check_pyarrow, table_rows
from es_neardupe.readers.urls import RemoteFolder, is_url, local_path, remote

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
    """A document of a file. ``place`` is ``FILE:LINE`` or ``FILE:ROW``, or the path of a text file."""

    place: str
    id: str | None
    source: Mapping[str, Any]
    routing: str | None = None
    size: int = field(default=0, compare=False)
    """Size in memory, roughly: bytes of the line or row, or characters of the text file."""
    place_is_id: bool = field(default=True, compare=False)
    """Whether ``place`` can be the id of a document without one."""


@dataclass(frozen=True, slots=True)
class Problem:
    """A line or file that is not a document, and why."""

    place: str
    why: str
    breaks_off: bool = False
    """Whether the rest of the file cannot be read."""
    skipped: Literal["", "link", "file"] = ""
    """In a folder: a symbolic link that leaves it and was not followed, or a file that is none of its documents."""


def check_paths(paths: Iterable[str]) -> None:
    """Raises `InputError` for a file that does not exist, is of an unknown kind, or needs a package that is missing.
    Reads nothing."""
    for name in paths:
        if name != STDIN and isinstance(file := _opened(name), InputFile):
            _kind(file)


def read_records(
    paths: Iterable[str],
    *,
    text_field: str,
    id_field: str | None = None,
    follow_links: bool = False,
    reading: Reading | None = None,
) -> Iterator[FileRecord | Problem]:
    """The documents of files and folders, in order; only the current line or row is in memory.

    In a folder with files of a known kind, these are read; others are a `Problem`. Otherwise, the text of each file
    becomes the field ``text_field``, and its path relative to the folder becomes the id.
    ``id_field`` names the field with the id of a line; the default is ``id``, then ``_id``, if the line has one.
    A symbolic link that leaves its folder is read with ``follow_links``, and is otherwise a `Problem`.
    ``reading`` counts the empty lines, and reports what is read between two documents.
    """
    how = _How(text_field, id_field, Reading() if reading is None else reading)
    for name in paths:
        if name == STDIN:
            stdin = InputFile("stdin", "", lambda: sys.stdin.buffer, names_lines=False)
            yield from _json_lines(stdin.open(), stdin, how)
            continue
        opened = _opened(name, must_exist=False)
        if isinstance(opened, InputFile):
            yield from _until_broken(opened, how)
        elif isinstance(opened, RemoteFolder):
            yield from _folder(opened.name, opened.files, how)
        else:
            files = partial(_files, opened, follow_links=follow_links)
            yield from _folder(str(opened), files, how)


class _How(NamedTuple):
    """How files become records; see `read_records`."""

    text_field: str
    id_field: str | None
    reading: Reading


def _opened(name: str, *, must_exist: bool = True) -> Path | InputFile | RemoteFolder:
    """The folder or file of a name or URL. Raises `InputError` if it does not exist."""
    name = local_path(name)
    if is_url(name):
        return remote(name)
    if must_exist and not Path(name).exists():
        raise InputError(f"There is no file or folder {name!r}.")
    return Path(name) if Path(name).is_dir() else local_file(name)


def read_text_file(name: str) -> str:
    """The text of a file, which may be compressed, or of standard input for ``-``. Raises `InputError`."""
    return _text(sys.stdin.buffer if name == STDIN else local_file(name), name)


def _text(source: InputFile | IO[bytes], name: str) -> str:
    try:
        with expanded(source) if isinstance(source, InputFile) else nullcontext(source) as stream:
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
        with nullcontext(sys.stdin.buffer) if name == STDIN else expanded(local_file(name)) as stream:
            for number, line in enumerate(limited_lines(stream), 1):
                if line is None:
                    raise InputError(f"{name}:{number} is longer than {MAX_EXPANDED:,} bytes.")
                if text := line.decode("utf-8-sig" if number == 1 else "utf-8").strip():
                    yield text
    except READ_ERRORS as error:
        raise InputError(f"{name} cannot be read: {_reason(error)}.") from error
    except UnicodeDecodeError as error:
        raise InputError(f"{name}:{number} is not UTF-8 ({error.reason}).") from error


def _known_kind(path: str) -> str:
    """The kind of a file by its name: one of `_DELIMITERS`, ``.json`` or one of `TABLES`; empty if it has none.

    A table that was compressed as a whole is of no kind: its parts are read where they are.
    """
    suffixes = [suffix.lower() for suffix in Path(path).suffixes]
    kind = next((suffix for suffix in reversed(suffixes) if suffix not in COMPRESSED), "")
    if kind in (".jsonl", ".ndjson", ".json"):
        return ".json"
    return kind if kind in _DELIMITERS or (kind in TABLES and kind == suffixes[-1]) else ""


def _kind(file: InputFile) -> str:
    kind = _known_kind(file.path)
    if not kind:
        raise InputError(
            f"{file.name} is neither JSON lines (.jsonl, .ndjson, .json), CSV (.csv), TSV (.tsv), Parquet (.parquet) "
            f"or Arrow (.arrow, .arrows, .feather), nor a folder."
        )
    if kind in TABLES:
        check_pyarrow(file.name)
    check_decoder(file)
    return kind


def _file(file: InputFile, how: _How) -> Iterator[FileRecord | Problem]:
    kind = _kind(file)
    with expanded(file) as stream:
        if kind in _DELIMITERS:
            yield from _delimited(stream, file, how, kind)
        elif kind in TABLES:
            yield from _table(stream, file, how.id_field, kind)
        else:
            yield from _json_lines(stream, file, how)


def _until_broken(file: InputFile, how: _How) -> Iterator[FileRecord | Problem]:
    """The records of a file; if it cannot be read to its end, the last one is a `Problem`."""
    try:
        yield from _file(file, how)
    except READ_ERRORS as error:
        yield Problem(file.name, f"the rest cannot be read: {_reason(error)}", breaks_off=True)


def _reason(error: Exception) -> str:
    return getattr(error, "strerror", None) or str(error) or type(error).__name__


def _json_lines(stream: IO[bytes], file: InputFile, how: _How) -> Iterator[FileRecord | Problem]:
    for number, line in enumerate(limited_lines(stream, how.reading), 1):
        place = f"{file.name}:{number}"
        if line is None:
            yield Problem(place, _TOO_LONG)
            continue
        if line.isspace():
            how.reading.add_empty_line()
            continue
        try:
            source = parsed_line(line, "utf-8-sig" if number == 1 else "utf-8")
        except UnicodeDecodeError as error:
            yield Problem(place, f"not UTF-8 ({error.reason} at byte {error.start} of the line)")
        except json.JSONDecodeError as error:
            yield Problem(place, invalid_json(error))
        except ValueError as error:
            yield Problem(place, f"JSON that no server accepts ({error})")
        else:
            yield _record(file, number, source, how.id_field, len(line))


def _table(stream: IO[bytes], file: InputFile, id_field: str | None, kind: str) -> Iterator[FileRecord | Problem]:
    for number, row in enumerate(table_rows(stream, kind), 1):
        if isinstance(row, str):
            yield Problem(f"{file.name}:{number}", row)
        else:
            yield _record(file, number, row.source, id_field, row.size)


def _record(file: InputFile, number: int, source: object, id_field: str | None, size: int) -> FileRecord | Problem:
    place = f"{file.name}:{number}"
    if not isinstance(source, dict):
        wrong = (
            "array: write each of its objects on a line of its own"
            if isinstance(source, list)
            else "value, not an object"
        )
        return Problem(place, f"a JSON {wrong}")
    names = [id_field] if id_field else ["id", "_id"]
    name = next((name for name in names if source.get(name) is not None), None)
    if name is None and id_field:
        return Problem(place, f"no field {id_field!r} to take the id from")
    id = source.get(name) if name else None
    if id == "":
        return Problem(place, f"the id in {name!r} is empty")
    if id is not None and (isinstance(id, bool) or not isinstance(id, str | int)):
        return Problem(place, f"the id in {name!r} is neither text nor a whole number")
    if id is not None and (why := _invalid_id(str(id))):
        return Problem(place, f"the id in {name!r} is {why}")
    # The server rejects metadata fields in a document.
    return FileRecord(
        place,
        None if id is None else str(id),
        {key: value for key, value in source.items() if key != "_id"},
        size=size,
        place_is_id=file.names_lines,
    )


def _invalid_id(id: str) -> str:
    """Why servers reject or change an id; empty if it is valid."""
    try:
        return f"longer than {_MAX_ID} bytes" if len(id.encode("utf-8")) > _MAX_ID else ""
    except UnicodeEncodeError:
        return "not valid Unicode"


def _delimited(stream: IO[bytes], file: InputFile, how: _How, suffix: str) -> Iterator[FileRecord | Problem]:
    csv.field_size_limit(max(csv.field_size_limit(), MAX_EXPANDED))  # of the whole process: it is never lowered
    delimiter, kind, name = _DELIMITERS[suffix], suffix.removeprefix(".").upper(), file.name
    lines = _DecodedLines(stream, delimiter, how.reading)
    reader = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        header = next(reader, [])
    except (UnicodeDecodeError, csv.Error) as error:
        # No row is read: the next one must not be taken for the header.
        yield Problem(f"{name}:1", f"not a {kind} header in UTF-8 ({error})")
        return
    if twice := [column for column, times in Counter(header).items() if times > 1]:
        yield Problem(f"{name}:1", f"the header names a column twice: {', '.join(twice)}")
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
        elif not row:
            how.reading.add_empty_line()
        elif len(row) != len(header):
            yield Problem(place, f"{'more' if len(row) > len(header) else 'fewer'} columns than the header has")
        else:
            yield _record(file, reader.line_num, dict(zip(header, row, strict=True)), how.id_field, lines.size)


class _DecodedLines:
    """Lines of a stream as text. Unlike a generator, it continues after a line that is too long or not UTF-8."""

    def __init__(self, stream: IO[bytes], delimiter: str, reading: Reading) -> None:
        self._lines = limited_lines(stream, reading)
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


def _folder(name: str, files: Callable[[], Iterator[InputFile | Problem]], how: _How) -> Iterator[FileRecord | Problem]:
    """The records of a folder: of its files of a known kind, if it has some, and otherwise of its texts."""
    try:
        of_records = any(isinstance(file, InputFile) and _has_records(file) for file in files())
        for file in files():
            if isinstance(file, Problem):
                yield file
            elif not of_records:
                yield _text_record(file, how.text_field)
            elif _has_records(file):
                yield from _until_broken(file, how)
            else:
                yield Problem(file.name, "not a file of records, in a folder of such files", skipped="file")
    except OSError as error:  # a folder at a URL that cannot be listed
        yield Problem(name, f"the folder cannot be read: {error}", breaks_off=True)


def _has_records(file: InputFile) -> bool:
    """Whether a file in a folder has records, by its name. Spark and Delta Lake begin those of others with _."""
    return bool(_known_kind(file.path)) and not any(part.startswith("_") for part in file.path.split("/"))


def _text_record(file: InputFile, text_field: str) -> FileRecord | Problem:
    if why := _invalid_id(file.path):
        return Problem(file.name, f"the id is {why}")
    try:
        text = _text(file, file.name)
    except InputError as error:
        return Problem(file.name, str(error))
    return FileRecord(file.name, file.path, {text_field: text}, size=len(text))


def _files(root: Path, *, follow_links: bool) -> Iterator[InputFile | Problem]:
    """The files of a folder and its subfolders, sorted by path; without hidden ones, whose names begin with a dot.

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
            yield Problem(str(path), f"a link to {os.path.realpath(path)}, outside of the folder", skipped="link")
        elif path.is_dir():
            if (linked and inside) or (real := os.path.realpath(path)) in entered:
                continue
            entered.add(real)
            try:
                waiting += sorted((one for one in path.iterdir() if not one.name.startswith(".")), reverse=True)
            except OSError as error:
                yield Problem(str(path), f"the folder cannot be read: {_reason(error)}")
        elif path.exists() and not path.is_file():
            yield Problem(str(path), "neither a file nor a folder")
        else:
            yield local_file(path, path.relative_to(root).as_posix())
