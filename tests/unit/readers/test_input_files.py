"""Input files: records, and problems of everything that is not a document. No server."""

from __future__ import annotations

import csv
import gzip
import io
import json
import lzma
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from unit_tools import JSON

from es_neardupe.errors import InputError
from es_neardupe.readers.files import FileRecord, Problem, check_paths, read_records, read_text_file
from es_neardupe.server.client import to_json

same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])


def read(file: Path | str, **options: Any) -> list[FileRecord | Problem]:
    return list(read_records([str(file)], **{"text_field": "text"} | options))


def write(folder: Path, name: str, data: bytes) -> Path:
    file = folder / name
    packing: dict[str, Callable[[bytes], bytes]] = {".gz": gzip.compress, ".xz": lzma.compress}
    packed = packing.get(file.suffix)
    file.write_bytes(packed(data) if packed else data)
    return file


def problems(found: list[FileRecord | Problem], file: Path) -> list[tuple[str, str]]:
    """Line and reason of each problem."""
    return [(one.place.removeprefix(f"{file}").lstrip(":"), one.why) for one in found if isinstance(one, Problem)]


def records(found: list[FileRecord | Problem]) -> list[tuple[str | None, Any]]:
    return [(one.id, one.source) for one in found if isinstance(one, FileRecord)]


# -- JSON lines --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["a.jsonl", "a.ndjson", "a.json", "a.JSONL", "a.jsonl.gz", "a.jsonl.xz", "a.b.json.gz"]
)
def test_json_lines(tmp_path: Path, name: str) -> None:
    file = write(
        tmp_path, name, '{"id": 1, "text": "é"}\n\n  \r\n{"_id": "b", "text": ["x"]}\r\n{"text": null}'.encode()
    )
    assert read(file) == [
        FileRecord(f"{file}:1", "1", {"id": 1, "text": "é"}),
        FileRecord(f"{file}:4", "b", {"text": ["x"]}),
        FileRecord(f"{file}:5", None, {"text": None}),
    ]


def test_byte_order_mark(tmp_path: Path) -> None:
    file = write(tmp_path, "a.jsonl", b'\xef\xbb\xbf{"id": 1}\n{"id": 2}')
    assert records(read(file)) == [("1", {"id": 1}), ("2", {"id": 2})]


@pytest.mark.parametrize(
    ("line", "why"),
    [
        (b"nonsense", "invalid JSON (Expecting value at column 1)"),
        (b'{"id": 1', "invalid JSON (Expecting ',' delimiter at column 9)"),
        (b'{"id": 1} {"id": 2}', "invalid JSON (Extra data at column 11)"),
        (b'"text"', "a JSON value, not an object"),
        (b"[1, 2]", "a JSON array: write each of its objects on a line of its own"),
        (b"null", "a JSON value, not an object"),
        (b"5", "a JSON value, not an object"),
        (b'{"id": 1, "text": "\xff"}', "not UTF-8 (invalid start byte at byte 19 of the line)"),
        (b'{"id": 1, "text": "\xc3"}', "not UTF-8 (invalid continuation byte at byte 19 of the line)"),
        (b'{"id": 1, "x": NaN}', "JSON that no server accepts (NaN is not a JSON number)"),
        (b'{"id": 1, "x": [-Infinity]}', "JSON that no server accepts (-Infinity is not a JSON number)"),
        (b'{"id": 1.5}', "the id in 'id' is neither text nor a whole number"),
        (b'{"id": true}', "the id in 'id' is neither text nor a whole number"),
        (b'{"id": ""}', "the id in 'id' is empty"),
        (b'{"id": ["a"]}', "the id in 'id' is neither text nor a whole number"),
        (b'{"_id": {}}', "the id in '_id' is neither text nor a whole number"),
        (b'{"id": "%b"}' % (b"a" * 513), "the id in 'id' is longer than 512 bytes"),
        (b'{"id": "%b"}' % ("é".encode() * 257), "the id in 'id' is longer than 512 bytes"),
        (b'{"id": "\\ud800"}', "the id in 'id' is not valid Unicode"),
    ],
)
def test_bad_lines(tmp_path: Path, line: bytes, why: str) -> None:
    """They are reported with their number, and the lines around them are read."""
    file = write(tmp_path, "a.jsonl", b'{"id": "before"}\n%b\n{"id": "after"}\n' % line)
    found = read(file)
    assert [id for id, _ in records(found)] == ["before", "after"]
    ((place, said),) = problems(found, file)
    assert place == "2"
    assert said.replace("property name", "property") == why


@pytest.mark.parametrize("depth", [101, 500, 3000, 100_000])
@pytest.mark.parametrize("brackets", [b"[]", b'{"a":}'])
def test_deep_nesting(tmp_path: Path, depth: int, brackets: bytes) -> None:
    begin, end = brackets[:-1], brackets[-1:]
    deep = begin * depth + b"1" + end * depth
    file = write(tmp_path, "a.jsonl", b'{"id": 1, "text": %b}\n{"id": "after"}' % deep)
    found = read(file)
    ((place, why),) = problems(found, file)
    assert place == "1"
    assert "nested" in why or "recursion" in why
    assert len(records(found)) == 1


def test_some_nesting_is_fine(tmp_path: Path) -> None:
    value: Any = 1
    for _ in range(99):
        value = [value]
    shallow = {"id": 1, "flat": [[[{"a": [{}]}]]] * 500, "deep": value}
    file = write(tmp_path, "a.jsonl", json.dumps(shallow).encode())
    assert records(read(file)) == [("1", shallow)]


@pytest.mark.parametrize(
    ("source", "id_field", "id"),
    [
        ({"id": 0}, None, "0"),
        ({"id": -5}, None, "-5"),
        ({"id": "a b/ü"}, None, "a b/ü"),
        ({"id": None, "_id": "b"}, None, "b"),
        ({"id": "a", "_id": "b"}, None, "a"),
        ({"url": "u", "id": "a"}, "url", "u"),
        ({"a": 1}, None, None),
        ({"id": "é" * 256}, None, "é" * 256),
    ],
)
def test_ids(tmp_path: Path, source: dict[str, Any], id_field: str | None, id: str | None) -> None:
    file = write(tmp_path, "a.jsonl", json.dumps(source).encode())
    kept = {name: value for name, value in source.items() if name != "_id"}
    assert records(read(file, id_field=id_field)) == [(id, kept)]


@pytest.mark.parametrize("source", [{"id": 1}, {"url": None}])
def test_missing_id_field(tmp_path: Path, source: dict[str, Any]) -> None:
    file = write(tmp_path, "a.jsonl", json.dumps(source).encode())
    assert problems(read(file, id_field="url"), file) == [("1", "no field 'url' to take the id from")]


def test_stdin(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b'{"id": 1}\nx\n')))
    assert read("-") == [
        FileRecord("stdin:1", "1", {"id": 1}),
        Problem("stdin:2", "invalid JSON (Expecting value at column 1)"),
    ]


LINES = st.one_of(
    st.binary(max_size=30).map(lambda line: line.replace(b"\n", b"")),
    JSON.map(lambda value: json.dumps(value).encode()),
    st.dictionaries(st.sampled_from(["id", "_id", "text"]), JSON).map(lambda value: json.dumps(value).encode()),
    st.sampled_from([b"", b"  ", b"\x0b", b'{"id": 1e999}', b'{"\\ud800": "\\udfff"}', b"[" * 300]),
)


@given(st.lists(LINES, max_size=8), st.sampled_from([None, "id", "text"]))
@same_folder
def test_any_lines(tmp_path: Path, lines: list[bytes], id_field: str | None) -> None:
    """Every line is a record, a problem or blank; every record can be sent to a server."""
    file = write(tmp_path, "fuzz.jsonl", b"\n".join(lines))
    found = read(file, id_field=id_field)
    assert [int(one.place.rpartition(":")[2]) for one in found] == [
        number for number, line in enumerate(lines, 1) if line.strip()
    ]
    check_records(found)


def check_records(found: list[FileRecord | Problem]) -> None:
    for one in found:
        if isinstance(one, FileRecord):
            assert one.id is None or (one.id and len(one.id.encode("utf-8", "surrogatepass")) <= 512)
            assert isinstance(one.source, dict)
            assert "_id" not in one.source
            assert json.loads(to_json(one.source)) == one.source
        else:
            assert one.why
            assert "\n" not in one.place


@given(st.binary(max_size=200), st.sampled_from(["f.jsonl", "f.jsonl.gz", "f.jsonl.xz", "f.csv", "f.csv.gz"]))
@same_folder
def test_any_bytes(tmp_path: Path, data: bytes, name: str) -> None:
    """Nothing is raised, whatever a file holds, even one that is compressed only by its name."""
    file = tmp_path / name
    file.write_bytes(data)
    check_records(read(file))


# -- compressed files ------------------------------------------------------------------------------------------------

GOOD = b"".join(b'{"id": %d, "text": "some text with number %d"}\n' % (k, k * 7919 % 1000) for k in range(2000))


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl.xz"])
def test_truncated(tmp_path: Path, name: str) -> None:
    """Everything before the end is read, and the truncation is reported."""
    file = write(tmp_path, name, GOOD)
    whole = file.read_bytes()
    assert len(read(file)) == 2000
    file.write_bytes(whole[: len(whole) // 2])
    found = read(file)
    assert isinstance(found[-1], Problem)
    assert found[-1].place == str(file)
    assert found[-1].why.startswith("the rest cannot be read: ")
    assert [id for id, _ in records(found)] == [str(k) for k in range(len(records(found)))]
    assert len(problems(found, file)) <= 2  # the end, and the line that it cuts


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl.xz"])
def test_a_compressed_file_without_a_byte(tmp_path: Path, name: str) -> None:
    assert read(write(tmp_path, name, b"")) == []
    (tmp_path / name).write_bytes(b"")
    (found,) = read(tmp_path / name)
    assert isinstance(found, Problem)
    assert found.why == "the rest cannot be read: the file ends before the end of its compressed data"


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl.xz", "a.csv.gz"])
@pytest.mark.parametrize("place", range(12, 3000, 250))
def test_damaged(tmp_path: Path, name: str, place: int) -> None:
    file = write(tmp_path, name, GOOD)
    data = bytearray(file.read_bytes())
    data[min(place, len(data) - 1)] ^= 0xFF
    file.write_bytes(bytes(data))
    found = read(file)
    check_records(found)
    assert problems(found, file)
    if file.suffix == ".gz":
        with pytest.raises(InputError, match="cannot be read"):
            read_text_file(str(file))


@pytest.mark.parametrize("name", ["a.jsonl.gz", "a.jsonl.xz", "a.csv.gz"])
def test_only_named_as_compressed(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    file.write_bytes(GOOD)
    ((place, why),) = problems(read(file), file)
    assert (place, why[:23]) == ("", "the rest cannot be read")


def test_file_that_vanished(tmp_path: Path) -> None:
    found = read(tmp_path / "gone.jsonl")
    assert found == [Problem(str(tmp_path / "gone.jsonl"), "the rest cannot be read: No such file or directory", True)]


# -- CSV ---------------------------------------------------------------------------------------------------------------


def test_csv(tmp_path: Path) -> None:
    text = 'id,text,note\r\n1,"a, ""b""\nc",x\r\n2,é,\r\n\r\n3,\'q\', y \r\n'
    file = write(tmp_path, "a.csv", text.encode("utf-8-sig"))
    assert read(file) == [
        FileRecord(f"{file}:3", "1", {"id": "1", "text": 'a, "b"\nc', "note": "x"}),
        FileRecord(f"{file}:4", "2", {"id": "2", "text": "é", "note": ""}),
        FileRecord(f"{file}:6", "3", {"id": "3", "text": "'q'", "note": " y "}),
    ]


def test_tsv(tmp_path: Path) -> None:
    file = write(tmp_path, "a.tsv", b'id\ttext\n1\ta, b\n2\t"c\td"\n3\n')
    found = read(file)
    assert records(found) == [("1", {"id": "1", "text": "a, b"}), ("2", {"id": "2", "text": "c\td"})]
    assert problems(found, file) == [("4", "fewer columns than the header has")]
    (bad,) = problems(read(file := write(tmp_path, "b.tsv", b"id\ttext\n1\t\xff\n")), file)
    assert bad[1].startswith("not a TSV row in UTF-8 (")


@pytest.mark.parametrize(
    ("row", "why"),
    [
        (b"1", "fewer columns than the header has"),
        (b"1,a,b", "more columns than the header has"),
        (b"1,\xff", "not a CSV row in UTF-8 ("),
        (b'1,"a"b', "not a CSV row in UTF-8 ("),
        (b",a", "the id in 'id' is empty"),
        (b"%b,a" % (b"x" * 513), "the id in 'id' is longer than 512 bytes"),
    ],
)
def test_bad_rows(tmp_path: Path, row: bytes, why: str) -> None:
    file = write(tmp_path, "a.csv", b"id,text\nbefore,x\n%b\nafter,y\n" % row)
    found = read(file)
    assert [id for id, _ in records(found)] == ["before", "after"]
    ((place, said),) = problems(found, file)
    assert place == "3"
    assert said.startswith(why)


def test_unclosed_quote(tmp_path: Path) -> None:
    file = write(tmp_path, "a.csv", b'id,text\n1,a\n2,"b\n3,c\n')
    found = read(file)
    assert records(found) == [("1", {"id": "1", "text": "a"})]
    ((place, why),) = problems(found, file)
    assert (place, "unexpected end of data" in why) == ("4", True)


@pytest.mark.parametrize(
    ("header", "why"),
    [
        (b"id,t\xe9xt", "not a CSV header in UTF-8"),
        (b'id,"t"x', "not a CSV header in UTF-8"),
        (b"id,text,text", "the header names a column twice: text"),
        (b"\xff\xfei\x00d\x00", "not a CSV header in UTF-8"),
    ],
)
def test_bad_header(tmp_path: Path, header: bytes, why: str) -> None:
    """Without its header no row can be read: the first row must not be taken for one."""
    file = write(tmp_path, "a.csv", header + b"\n1,a\n2,b\n")
    ((place, said),) = problems(found := read(file), file)
    assert (place, len(found)) == ("1", 1)
    assert said.startswith(why)


def test_huge_field(tmp_path: Path) -> None:
    text = "word " * 100_000
    file = write(tmp_path, "a.csv", f'id,text\n1,"{text}"\n2,b\n'.encode())
    assert records(read(file)) == [("1", {"id": "1", "text": text}), ("2", {"id": "2", "text": "b"})]


@pytest.mark.parametrize("data", [b"", b"id,text\n", b"\xef\xbb\xbf"])
def test_empty_csv(tmp_path: Path, data: bytes) -> None:
    assert read(write(tmp_path, "a.csv", data)) == []


CELLS = st.text(st.characters(blacklist_categories=["Cs"], blacklist_characters="\x00"), max_size=8)


@given(st.lists(st.tuples(CELLS, CELLS), max_size=6))
@same_folder
def test_csv_round_trip(tmp_path: Path, rows: list[tuple[str, str]]) -> None:
    """Whatever Python's own writer writes is read, cell by cell."""
    written = io.StringIO(newline="")
    writer = csv.writer(written, quoting=csv.QUOTE_ALL)
    writer.writerows([("one", "text"), *rows])
    file = write(tmp_path, "round.csv", written.getvalue().encode())
    assert records(read(file)) == [(None, {"one": one, "text": text}) for one, text in rows]


# -- folders and single texts ----------------------------------------------------------------------------------------


def test_folder(tmp_path: Path) -> None:
    (tmp_path / "sub").mkdir()
    write(tmp_path, "b.txt", "é\n".encode())
    write(tmp_path, "sub/a.md", b"")
    write(tmp_path, "c.txt.gz", b"packed")
    write(tmp_path, "bad.bin", b"ok \xff")
    (tmp_path / "torn.gz").write_bytes(gzip.compress(b"x" * 1000)[:-9])
    found = read(tmp_path, text_field="body")
    assert records(found) == [
        ("b.txt", {"body": "é\n"}),
        ("c.txt.gz", {"body": "packed"}),
        ("sub/a.md", {"body": ""}),
    ]
    report = [one for one in found if isinstance(one, Problem)]
    assert [one.place for one in report] == [str(tmp_path / "bad.bin"), str(tmp_path / "torn.gz")]
    assert report[0].why == f"{tmp_path / 'bad.bin'} is not UTF-8 (invalid start byte at byte 3)."


def test_folder_with_long_and_odd_names(tmp_path: Path) -> None:
    deep = tmp_path / ("d" * 200) / ("e" * 200) / ("f" * 200)
    deep.mkdir(parents=True)
    (deep / "a.txt").write_text("x")
    (tmp_path / "ü b.txt").write_text("y")
    found = read(tmp_path)
    assert records(found) == [("ü b.txt", {"text": "y"})]
    ((_, why),) = problems(found, deep / "a.txt")
    assert why == "the id is longer than 512 bytes"


@pytest.mark.parametrize("pack", [lambda data: data, gzip.compress, lzma.compress])
def test_read_text_file(tmp_path: Path, pack: Callable[[bytes], bytes]) -> None:
    suffix = {"compress": ".gz" if pack is gzip.compress else ".xz"}.get(pack.__name__, "")
    file = tmp_path / f"a.txt{suffix}"
    file.write_bytes(pack("é\r\n".encode()))
    assert read_text_file(str(file)) == "é\r\n"
    file.write_bytes(pack(b"\xff"))
    with pytest.raises(InputError, match=r"is not UTF-8 \(invalid start byte at byte 0\)"):
        read_text_file(str(file))


@pytest.mark.parametrize("name", ["", "folder", "gone.txt", "gone.gz"])
def test_unreadable_text_file(tmp_path: Path, name: str) -> None:
    (tmp_path / "folder").mkdir()
    with pytest.raises(InputError, match="cannot be read"):
        read_text_file(str(tmp_path / name))


def test_check_paths(tmp_path: Path) -> None:
    write(tmp_path, "a.jsonl.xz", b"")
    write(tmp_path, "a.CSV.gz", b"")
    write(tmp_path, "a.txt", b"")
    write(tmp_path, "a.gz", b"")
    check_paths(["-", str(tmp_path), str(tmp_path / "a.jsonl.xz"), str(tmp_path / "a.CSV.gz")])
    with pytest.raises(InputError, match=r"There is no file or folder '.*b\.jsonl'"):
        check_paths([str(tmp_path / "b.jsonl")])
    for name in ("a.txt", "a.gz"):
        with pytest.raises(InputError, match=r"neither JSON lines \(.jsonl, .ndjson, .json\), CSV \(.csv\)"):
            check_paths(["-", str(tmp_path / name)])
