"""Limits of input files: bombs that are small on disk are bad lines in bounded memory; links that leave a folder."""

from __future__ import annotations

import gzip
import json
import lzma
import os
import subprocess
import sys
import zlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from peak_memory import measuring

from es_neardupe.errors import InputError
from es_neardupe.readers import json_lines as input_json
from es_neardupe.readers import streams as input_streams
from es_neardupe.readers.files import FileRecord, Problem, read_records, read_text_file
from es_neardupe.readers.json_lines import parsed_line
from es_neardupe.readers.streams import MAX_EXPANDED, Reading

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

GOOD = b'\n{"id": "good", "text": "x"}\n'
MB = 1_000_000
PACKING: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".xz": lzma.compress, ".zst": zstd.compress}


def read(*paths: Path, **options: Any) -> list[FileRecord | Problem]:
    return list(read_records(map(str, paths), text_field="text", **options))


def ids(found: list[FileRecord | Problem]) -> list[str | None]:
    return [one.id for one in found if isinstance(one, FileRecord)]


def whys(found: list[FileRecord | Problem]) -> list[str]:
    return [one.why for one in found if isinstance(one, Problem)]


# -- memory ------------------------------------------------------------------------------------------------------------


_MEASURE = """
import sys
from es_neardupe.readers.files import FileRecord, read_records
list(read_records([sys.argv[1]], text_field="text"))
before = peak()
for one in read_records([sys.argv[2]], text_field="text"):
    print(one.id if isinstance(one, FileRecord) else one.why)
print(peak() - before)
"""


def measured(tmp_path: Path, path: Path) -> tuple[list[str], int]:
    """What is read in another process, and how many bytes its memory grows."""
    pytest.importorskip("resource")
    small = tmp_path / "small.jsonl"
    small.write_bytes(GOOD)
    command = [sys.executable, "-c", measuring(_MEASURE), str(small), str(path)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    *lines, grown = done.stdout.splitlines()
    return lines, int(grown)


def repeated(pack: Callable[[bytes], bytes], begin: bytes, unit: bytes, megabytes: int, end: bytes) -> bytes:
    """A compressed file of any size, in parts that are compressed by themselves: as small as one, and made at once."""
    part = pack(unit * (10 * MB // len(unit)))
    return pack(begin) + part * (megabytes // 10) + pack(end)


expanded = pytest.mark.parametrize("megabytes", [200, pytest.param(1000, marks=pytest.mark.long)])


@expanded
@pytest.mark.parametrize("suffix", [".gz", ".xz", ".zst"])
def test_a_line_that_expands_beyond_the_limit(tmp_path: Path, suffix: str, megabytes: int) -> None:
    pack = PACKING[suffix]
    file = tmp_path / f"bomb.jsonl{suffix}"
    file.write_bytes(repeated(pack, b'{"text": "', b"x", megabytes, b'"}' + GOOD))
    assert file.stat().st_size < 2 * MB
    lines, grown = measured(tmp_path, file)
    assert lines == ["longer than 100,000,000 bytes", "good"]
    assert grown < 1.5 * MAX_EXPANDED


@expanded
def test_a_text_that_expands_beyond_the_limit(tmp_path: Path, megabytes: int) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.txt.xz").write_bytes(repeated(lzma.compress, b"", b"x", megabytes, b""))
    (folder / "b.txt").write_bytes(b"x")
    lines, grown = measured(tmp_path, folder)
    assert lines == [f"{folder / 'a.txt.xz'} is longer than 100,000,000 bytes.", "b.txt"]
    assert grown < 1.5 * MAX_EXPANDED


@pytest.mark.parametrize(
    ("unit", "why"),
    [
        (b"[],", "more than 2,000,000 commas and brackets"),
        (b'{"a":0},', "more than 2,000,000 commas and brackets"),
        (b'"a","a",', "more than 2,000,000 commas and brackets"),
        (b"[", "nested deeper than 100 levels"),
        (b'{"a":', "nested deeper than 100 levels"),
    ],
)
def test_values_that_take_more_memory_than_their_text(tmp_path: Path, unit: bytes, why: str) -> None:
    """One line within the size limit, which would need gigabytes if it were parsed."""
    file = tmp_path / "bomb.jsonl.xz"
    file.write_bytes(repeated(lzma.compress, b'{"text": [', unit, 90, b"0]}" + GOOD))
    lines, grown = measured(tmp_path, file)
    assert lines == [f"JSON that no server accepts ({why})", "good"]
    assert grown < 2.8 * MAX_EXPANDED


@pytest.mark.parametrize(
    ("begin", "unit", "end", "why"),
    [
        (b'1,"', b"a" * 99_999 + b"\n", b'"', "longer than 100,000,000 bytes"),
        (b"1", b",", b"", "not a CSV row in UTF-8 (more than 2,000,000 commas)"),
    ],
    ids=["lines", "commas"],
)
def test_a_row_that_takes_more_memory_than_its_text(
    tmp_path: Path, begin: bytes, unit: bytes, end: bytes, why: str
) -> None:
    file = tmp_path / "bomb.csv.gz"
    size = 120 if len(unit) > 1 else 90
    file.write_bytes(repeated(gzip.compress, b"id,text\n" + begin, unit, size, end + b"\n2,b\n"))
    lines, grown = measured(tmp_path, file)
    assert lines == [why, "2"]
    assert grown < 8 * MAX_EXPANDED


def test_a_decoder_that_needs_too_much_memory(tmp_path: Path) -> None:
    """The file names the size of its dictionary: 4 GB."""
    file = tmp_path / "a.jsonl.xz"
    data = bytearray(lzma.compress(GOOD))
    size = 4 * (data[12] + 1)
    assert data[14:16] == b"\x21\x01"  # LZMA2, with one byte of properties
    data[16] = 40
    data[12 + size - 4 : 12 + size] = zlib.crc32(data[12 : 12 + size - 4]).to_bytes(4, "little")
    file.write_bytes(data)
    (problem,) = read(file)
    assert isinstance(problem, Problem)
    assert (problem.breaks_off, problem.why) == (True, "the rest cannot be read: Memory usage limit exceeded")
    with pytest.raises(InputError, match="Memory usage limit"):
        read_text_file(str(file))


_LOAD = """
import sys
from es_neardupe.readers.files import read_records
from es_neardupe.commands.load.records import load_records
from es_neardupe.index.target import IndexTarget
from unit_tools import SETTINGS, FakeClient, index_of

def load(name):
    client = FakeClient()
    client.pace.request_bytes = 40_000_000
    index = index_of(client, IndexTarget("i", ("i",), SETTINGS, 10_000))
    return load_records(index, read_records([name], text_field="text")), client

load(sys.argv[1])
before = peak()
report, client = load(sys.argv[2])
print(report.scope.read, report.writes.written, report.writes.refused, len(client.bulks), peak() - before)
"""


def test_a_text_that_no_server_accepts_is_only_read(tmp_path: Path) -> None:
    """It gets no keys and is not encoded, so it needs the memory of its line and of its value."""
    pytest.importorskip("resource")
    (small := tmp_path / "small.jsonl").write_bytes(GOOD)
    (large := tmp_path / "large.jsonl").write_bytes(b'{"id": "large", "text": "' + b"a word " * (8 * MB) + b'"}' + GOOD)
    command = [sys.executable, "-c", measuring(_LOAD), str(small), str(large)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    *counts, grown = map(int, done.stdout.split())
    assert counts == [2, 1, 1, 1]
    assert grown < 4 * 56 * MB


# -- .xz files ---------------------------------------------------------------------------------------------------------


def test_concatenated_xz_files(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl.xz"
    one, two = (lzma.compress(b'{"id": %d}\n' % n) for n in (1, 2))
    file.write_bytes(one + lzma.compress(b"") + bytes(300_000) + two + bytes(8))
    assert ids(read(file)) == ["1", "2"]
    for damaged in (one + two[:-9], one + b"\0\0\0\0garbage", one + two[:7]):
        file.write_bytes(damaged)
        assert read(file)[0] == FileRecord(f"{file}:1", "1", {"id": 1})
        assert "the rest cannot be read" in whys(read(file))[0]
    file.write_bytes(b"")
    assert "the rest cannot be read" in whys(read(file))[0]


@given(st.binary(max_size=3000), st.integers(1, 2000))
def test_xz_round_trip(tmp_path_factory: pytest.TempPathFactory, content: bytes, size: int) -> None:
    file = tmp_path_factory.getbasetemp() / "round.xz"
    file.write_bytes(lzma.compress(content[:size]) + lzma.compress(content[size:]))
    with input_streams.expanded(input_streams.local_file(file)) as stream:
        assert stream.read() == content


# -- depth and values, before parsing ----------------------------------------------------------------------------------


def depth(value: Any) -> int:
    inner = value.values() if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(map(depth, inner), default=0)


def marks(value: Any) -> int:
    """Commas and opening brackets of a value."""
    inner = list(value.values()) if isinstance(value, dict) else value if isinstance(value, list) else None
    return 0 if inner is None else 1 + max(0, len(inner) - 1) + sum(map(marks, inner))


TEXT = st.text(st.sampled_from('a"\\[]{},\né'), max_size=6)
JSON_VALUES = st.recursive(
    TEXT | st.integers() | st.none(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXT, inner, max_size=4),
    max_leaves=30,
)


@given(JSON_VALUES, st.booleans(), st.sampled_from([None, 1]))
def test_limits_are_exact(value: Any, ascii_only: bool, indent: int | None) -> None:
    """Brackets and commas in strings do not count, also at the borders of the pieces that are searched."""
    text = json.dumps(value, ensure_ascii=ascii_only, indent=indent)
    with pytest.MonkeyPatch.context() as patch:
        for name, limit in (("_MAX_DEPTH", 2), ("_MAX_MARKS", 9), ("_PIECE", 3)):
            patch.setattr(input_json, name, limit)
        if depth(value) <= 2 and marks(value) <= 9:
            assert parsed_line(text.encode(), "utf-8") == value
        else:
            with pytest.raises(ValueError, match=r"nested deeper than 2 levels|more than 9 commas"):
                parsed_line(text.encode(), "utf-8")


def test_a_text_with_many_commas_and_brackets(tmp_path: Path) -> None:
    text = '[{",\\' * 1_000_000
    file = tmp_path / "a.jsonl"
    file.write_text(json.dumps({"id": 1, "text": text}) + "\n")
    (record,) = read(file)
    assert isinstance(record, FileRecord)
    assert record.source["text"] == text


# -- symbolic links ----------------------------------------------------------------------------------------------------


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with links to its own parts, to other places, to itself, and to nothing."""
    outside = tmp_path / "outside"
    (outside / "sub").mkdir(parents=True)
    (outside / "secret.txt").write_text("secret")
    (outside / "sub" / "deep.txt").write_text("deep")
    (outside / "sub" / "back").symlink_to(tmp_path)
    folder = tmp_path / "folder"
    (folder / "own").mkdir(parents=True)
    (folder / "own" / "a.txt").write_text("a")
    (folder / "link.txt").symlink_to(Path("own") / "a.txt")
    (folder / "own" / "loop").symlink_to(folder)
    (folder / "again").symlink_to(folder / "own")
    (folder / "secret.txt").symlink_to(outside / "secret.txt")
    (folder / "z-outside").symlink_to(outside)
    (folder / "z-twice").symlink_to(outside)
    (folder / "chain.txt").symlink_to(folder / "secret.txt")
    return folder


def test_links_that_leave_the_folder_are_skipped(folder: Path) -> None:
    found = read(folder)
    assert ids(found) == ["link.txt", "own/a.txt"]
    skipped = [one for one in found if isinstance(one, Problem)]
    assert all(one.skipped == "link" and not one.breaks_off for one in skipped)
    names = [Path(one.place).relative_to(folder).as_posix() for one in skipped]
    assert names == ["chain.txt", "secret.txt", "z-outside", "z-twice"]
    assert skipped[1].why == f"a link to {os.path.realpath(folder / 'secret.txt')}, outside of the folder"


def test_links_are_followed_on_request(folder: Path) -> None:
    found = read(folder, follow_links=True)
    assert whys(found) == []
    assert ids(found) == [
        "chain.txt", "link.txt", "own/a.txt", "secret.txt", "z-outside/secret.txt", "z-outside/sub/deep.txt",
    ]  # fmt: skip


def test_a_named_link_is_followed(folder: Path, tmp_path: Path) -> None:
    (tmp_path / "named").symlink_to(folder)
    assert ids(read(tmp_path / "named")) == ["link.txt", "own/a.txt"]


def test_links_without_a_target(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    (folder / "a.txt").write_text("a")
    (folder / "gone").symlink_to(folder / "nothing")
    (folder / "itself").symlink_to(folder / "itself")
    (folder / "outside").symlink_to(tmp_path / "nothing")
    found = read(folder)
    assert ids(found) == ["a.txt"]
    assert [one.skipped for one in found if isinstance(one, Problem)] == ["", "", "link"]
    assert "No such file" in whys(found)[0]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_what_is_no_file_is_not_opened(tmp_path: Path) -> None:
    """A named pipe without a writer would wait for ever."""
    os.mkfifo(tmp_path / "pipe.txt")
    (tmp_path / "zero.txt").symlink_to("/dev/zero")
    assert whys(read(tmp_path, follow_links=True)) == ["neither a file nor a folder"] * 2


@pytest.mark.skipif(not hasattr(os, "geteuid") or os.geteuid() == 0, reason="root may read everything")
def test_a_folder_that_may_not_be_read(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o000)
    (tmp_path / "open.txt").write_text("x")
    found = read(tmp_path)
    assert (ids(found), whys(found)) == (["open.txt"], ["the folder cannot be read: Permission denied"])
    (tmp_path / "closed").chmod(0o700)


# -- what is read without a document -----------------------------------------------------------------------------------


@pytest.mark.parametrize(("suffix", "kind"), [(".gz", "jsonl"), (".xz", "csv"), (".zst", "jsonl")])
def test_empty_lines_are_counted_and_reported_while_they_are_read(tmp_path: Path, suffix: str, kind: str) -> None:
    """The file is small, and its lines take minutes in the full size: a bar must move before the first document."""
    pack = PACKING[suffix]
    begin, end = (b"id,text\n", b"good,x\n") if kind == "csv" else (b"", GOOD[1:])
    file = tmp_path / f"empty.{kind}{suffix}"
    file.write_bytes(pack(begin) + pack(b"\n" * 1_000_000) + pack(b" \n" * (kind == "jsonl")) + pack(end))
    reports: list[tuple[str, int, int | None]] = []
    reading = Reading(lambda *report: reports.append(report))
    for found in read_records([str(file)], text_field="text", reading=reading):
        assert isinstance(found, FileRecord)
        assert found.id == "good"
        assert [done for stage, done, _ in reports if stage == "empty lines"] == [*range(100_000, 1_000_001, 100_000)]
        assert ("reading (MB)", 1, None) in reports
    assert reading.empty_lines == 1_000_000 + (kind == "jsonl")


@pytest.mark.parametrize("begin", [b'{"text": "', b'id,text\n1,"'], ids=["a line", "a cell"])
def test_what_has_no_end_is_reported_while_it_is_read(tmp_path: Path, begin: bytes) -> None:
    file = tmp_path / ("endless.csv.gz" if begin.startswith(b"id") else "endless.jsonl.gz")
    file.write_bytes(repeated(gzip.compress, begin, b"x" * 9_999 + b"\n" * begin.startswith(b"id"), 120, b""))
    done: list[int] = []
    reading = Reading(lambda stage, number, total: done.append(number))
    (problem,) = read_records([str(file)], text_field="text", reading=reading)
    assert isinstance(problem, Problem)
    assert len(done) > 100
