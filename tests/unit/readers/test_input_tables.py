"""Parquet, Arrow and .zst files, folders of records, and URLs: as records of JSON values, or one clear problem."""

from __future__ import annotations

import datetime as dt
import decimal
import json
import subprocess
import sys
import tracemalloc
from base64 import b64decode
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any

import fsspec
import polars as pl
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from peak_memory import measuring
from pyarrow import ipc, parquet

from es_neardupe.errors import InputError, SettingsError
from es_neardupe.folders import pip_install
from es_neardupe.log_events import loggable_arguments
from es_neardupe.readers import expansion as input_expansion
from es_neardupe.readers.files import FileRecord, Problem, check_paths, read_records, read_text_file
from es_neardupe.readers.streams import MAX_EXPANDED
from es_neardupe.server.numbers import document_json

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

same_folder = settings(suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow])
MB = 1_000_000


def write_table(table: pa.Table, file: Path, **options: Any) -> Path:
    if file.suffix == ".parquet":
        parquet.write_table(table, file, **options)
        return file
    new = ipc.new_stream if file.suffix == ".arrows" else ipc.new_file
    with new(file, table.schema) as writer:
        writer.write_table(table, **options)
    return file


def read(*names: Path | str, **options: Any) -> list[FileRecord | Problem]:
    return list(read_records(map(str, names), text_field="text", **options))


def sources(found: list[FileRecord | Problem]) -> list[Any]:
    return [one.source for one in found if isinstance(one, FileRecord)]


def problems(found: list[FileRecord | Problem]) -> list[tuple[str, str]]:
    return [(one.place, one.why) for one in found if isinstance(one, Problem)]


each_kind = pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.arrows", "a.feather", "A.PARQUET"])


@each_kind
def test_rows_are_documents(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    table = pa.table({"id": [1, 2, None], "text": ["é", None, "x"], "_id": ["a", "b", "c"]})
    if file.suffix == ".PARQUET":
        parquet.write_table(table, file)
    else:
        write_table(table, file)
    found = read(file)
    assert [(one.place, one.id, one.source) for one in found if isinstance(one, FileRecord)] == [
        (f"{file}:1", "1", {"id": 1, "text": "é"}),
        (f"{file}:2", "2", {"id": 2, "text": None}),
        (f"{file}:3", "c", {"id": None, "text": "x"}),
    ]
    assert [one.id for one in read(file, id_field="text") if isinstance(one, FileRecord)] == ["é", "x"]
    assert problems(read(file, id_field="text")) == [(f"{file}:2", "no field 'text' to take the id from")]


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_values(tmp_path: Path, name: str) -> None:
    """Each type, and the JSON of its values as it is sent."""
    moment = dt.datetime(2026, 11, 24, 8, 47, 5, 250_000)
    zone = pa.timestamp("us", "America/New_York")
    wide = decimal.Decimal("12345678901234567890123456.7800")
    columns = {
        "yes": (pa.array([True]), "true"),
        "large": (pa.array([2**64 - 1], pa.uint64()), "18446744073709551615"),
        "small": (pa.array([-5], pa.int8()), "-5"),
        "float": (pa.array([0.1]), "0.1"),
        "half": (pa.array([0.5], pa.float32()), "0.5"),
        "decimal": (pa.array([wide]), "12345678901234567890123456.7800"),
        "whole": (pa.array([decimal.Decimal(12)], pa.decimal128(10, 0)), "12"),
        "day": (pa.array([dt.date(1066, 10, 14)]), '"1066-10-14"'),
        "moment": (pa.array([moment]), '"2026-11-24T08:47:05.250000"'),
        "second": (pa.array([moment.replace(microsecond=0)], pa.timestamp("ms")), '"2026-11-24T08:47:05"'),
        "fine": (pa.array([1_000_000_001], pa.timestamp("ns")), '"1970-01-01T00:00:01.000000001"'),
        "early": (pa.array([-1], pa.timestamp("ms")), '"1969-12-31T23:59:59.999"'),
        "zoned": (pa.array([moment.replace(tzinfo=dt.timezone.utc)], zone), '"2026-11-24T08:47:05.250000Z"'),
        "time": (pa.array([dt.time(8, 47)]), '"08:47:00"'),
        "list": (pa.array([["a", None]]), '["a",null]'),
        "fixed": (pa.array([[1, 2]], pa.list_(pa.int16(), 2)), "[1,2]"),
        "deep": (pa.array([[{"a": [{"b": 1}], "c": None}]]), '[{"a":[{"b":1}],"c":null}]'),
        "map": (pa.array([[("k", [1])]], pa.map_(pa.string(), pa.list_(pa.int64()))), '{"k":[1]}'),
        "word": (pa.array(["red"]).dictionary_encode(), '"red"'),
        "long": (pa.array(["x"], pa.large_string()), '"x"'),
        "json": (pa.array(['{"a": [1.0, null]}'], pa.json_()), '{"a":[1.0,null]}'),
        "id": (pa.array([b"0123456789abcdef"], pa.uuid()), '"30313233-3435-3637-3839-616263646566"'),
        "none": (pa.nulls(1), "null"),
    }
    file = write_table(pa.table({name: array for name, (array, _) in columns.items()}), tmp_path / name)
    (source,) = sources(read(file))
    assert {name: document_json({name: value}).decode() for name, value in source.items()} == {
        name: f'{{"{name}":{wanted}}}' for name, (_, wanted) in columns.items()
    }


class Marked(pa.ExtensionType):  # type: ignore[misc]  # pyarrow has no types
    """A type that the reader does not know."""

    def __init__(self) -> None:
        super().__init__(pa.list_(pa.string()), "test.marked")

    def __arrow_ext_serialize__(self) -> bytes:
        return b""


def test_values_that_only_arrow_has(tmp_path: Path) -> None:
    """Views, runs, and types that others add, also inside lists."""
    words = ["x", None, "y" * 40]
    runs = pa.RunEndEncodedArray.from_arrays([2, 3], pa.array(["a", None]))
    columns: dict[str, tuple[Any, list[Any]]] = {
        "view": (pa.array(words, pa.string_view()), words),
        "views": (pa.array([[word] for word in words], pa.list_(pa.string_view())), [[word] for word in words]),
        "lists": (pa.array([[1], None, []], pa.list_view(pa.int64())), [[1], None, []]),
        "large": (pa.array([["a"], None, []], pa.large_list_view(pa.string())), [["a"], None, []]),
        "runs": (runs, ["a", "a", None]),
        "inside": (pa.ListArray.from_arrays([0, 1, 2, 3], runs), [["a"], ["a"], [None]]),
        "bool": (pa.ExtensionArray.from_storage(pa.bool8(), pa.array([1, 0, None], pa.int8())), [True, False, None]),
        "marked": (pa.ExtensionArray.from_storage(Marked(), pa.array([["a"], None, []])), [["a"], None, []]),
        "json": (pa.array(["[]", None, '"a"'], pa.json_()), [[], None, "a"]),
    }
    file = write_table(pa.table({name: array for name, (array, _) in columns.items()}), tmp_path / "a.arrow")
    assert sources(read(file)) == [{name: values[n] for name, (_, values) in columns.items()} for n in range(3)]


def test_files_of_polars_as_it_writes_them(tmp_path: Path) -> None:
    frame = pl.DataFrame({"id": ["a", "b"], "text": ["one two", None], "parts": [["x"], []]})
    frame.write_ipc(tmp_path / "a.arrow")
    frame.write_parquet(tmp_path / "b.parquet")
    for name in ("a.arrow", "b.parquet"):
        assert sources(read(tmp_path / name)) == frame.to_dicts()


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("{", "invalid JSON (Expecting property name enclosed in double quotes at column 2)"),
        ("NaN", "NaN is not a JSON number"),
        ("[" * 200, "nested deeper than 100 levels"),
    ],
)
def test_invalid_values_of_a_column_of_json(tmp_path: Path, text: str, why: str) -> None:
    table = pa.table({"id": ["a", "b"], "extra": pa.array([text, "1"], pa.json_())})
    found = read(file := write_table(table, tmp_path / "a.arrow"))
    assert problems(found) == [(f"{file}:1", why)]
    assert [one["extra"] for one in sources(found)] == [1]


@pytest.mark.parametrize(
    ("array", "why"),
    [
        (pa.array([b"x"]), "has the type binary"),
        (pa.array([b"x"], pa.binary(1)), "has the type fixed_size_binary[1]"),
        (pa.array([[{"a": b"x"}]]), "the column 'bad.a' has the type binary"),
        (pa.array([dt.timedelta(1)]), "has the type duration[us]"),
        (pa.array([[(1, "x")]], pa.map_(pa.int64(), pa.string())), "has the type map<int64, string>"),
    ],
)
@pytest.mark.parametrize("name", ["a.parquet", "a.arrow"])
def test_columns_that_json_does_not_have(tmp_path: Path, name: str, array: pa.Array, why: str) -> None:
    table = pa.table({"id": ["a"], "bad": array})
    file = write_table(table, tmp_path / name)
    ((place, said),) = problems(found := read(file))
    assert (place, len(found)) == (str(file), 1)
    assert said.startswith("the rest cannot be read: the column 'bad")
    assert why in said or name == "a.parquet"  # Parquet has no durations, for example
    assert said.endswith("which cannot be read as JSON: convert it, or write the file without it")


def test_the_first_version_of_feather(tmp_path: Path) -> None:
    (file := tmp_path / "a.feather").write_bytes(b"FEA1" + bytes(600) + b"FEA1")
    ((_, why),) = problems(read(file))
    assert "Feather version 1: write it as version 2" in why


def test_columns_of_the_same_name_and_deep_ones(tmp_path: Path) -> None:
    file = tmp_path / "a.arrow"
    write_table(pa.Table.from_arrays([pa.array([1]), pa.array([2])], ["a", "a"]), file)
    assert problems(read(file)) == [(str(file), "the rest cannot be read: the file has a column twice: a")]
    type = pa.int8()
    for _ in range(60):  # pyarrow writes up to 64 levels
        type = pa.list_(type)
    write_table(pa.table({"a": pa.nulls(1, type)}), file)
    assert sources(read(file)) == [{"a": None}]


@pytest.mark.parametrize(
    ("array", "why"),
    [
        (pa.array([1.0, float("nan"), 2.0]), "JSON that no server accepts (nan is not a JSON number)"),
        (pa.array([[1.0], [float("-inf")], []]), "JSON that no server accepts (-inf is not a JSON number)"),
        (pa.array([0, 2**62, 0], pa.timestamp("s")), "a date that is out of range"),
        (
            pa.array([[], [("k", 1), ("k", 2)], []], pa.map_(pa.string(), pa.int64())),
            "a map has the key 'k' twice",
        ),
        (pa.array(["a", "x" * (MAX_EXPANDED + 1), "b"]), "longer than 100,000,000 bytes"),
        (
            pa.ListArray.from_arrays(pa.array([0, 0, 3 * MB, 3 * MB], pa.int32()), pa.nulls(3 * MB)),
            "more than 2,000,000 values",
        ),
    ],
)
def test_bad_rows(tmp_path: Path, array: pa.Array, why: str) -> None:
    """They are reported with their number, and the rows around them are read."""
    file = write_table(pa.table({"id": ["before", "bad", "after"], "x": array}), tmp_path / "a.arrow")
    found = read(file)
    assert [one.id for one in found if isinstance(one, FileRecord)] == ["before", "after"]
    ((place, said),) = problems(found)
    assert place == f"{file}:2"
    assert said == why


def test_a_text_that_is_not_utf8(tmp_path: Path) -> None:
    bad = pa.Array.from_buffers(pa.string(), 3, pa.array([b"a", b"\xff", b"c"]).buffers())
    file = write_table(pa.table({"text": bad}), tmp_path / "a.parquet")
    assert [(place[-1], why) for place, why in problems(read(file))] == [
        ("2", "not UTF-8 (invalid start byte at byte 0 of a text)")
    ]
    file = write_table(pa.table({"text": bad}), tmp_path / "a.arrow")
    ((_, why),) = problems(read(file))
    assert "Invalid UTF8 sequence" in why
    assert "\n" not in why


@each_kind
def test_truncated_empty_and_other_files(tmp_path: Path, name: str) -> None:
    """One problem with one line."""
    file = tmp_path / name.lower()
    write_table(pa.table({"id": range(20_000), "text": [f"text {n}" for n in range(20_000)]}), file)
    whole = file.read_bytes()
    for data in (whole[: len(whole) // 2], b"", whole[:5], b"PAR1", b"nonsense " * 100, json.dumps({"id": 1}).encode()):
        file.write_bytes(data)
        found = read(file)
        ((place, why),) = problems(found)
        assert (place, found[-1]) == (str(file), Problem(str(file), why, breaks_off=True))
        assert why.startswith("the rest cannot be read: ")
        assert len(why) > 30
        assert "\n" not in why


@given(st.data())
@same_folder
@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.arrows"])
def test_damaged(tmp_path: Path, name: str, data: st.DataObject) -> None:
    """Any changed bytes: records that can be sent, or problems."""
    good = tmp_path / f"good-{name}"
    if not good.exists():
        texts = [f"text {n}" * 3 for n in range(50)]
        write_table(pa.table({"id": range(50), "text": texts, "list": [[n] for n in range(50)]}), good)
    content = bytearray(good.read_bytes())
    for place in data.draw(st.lists(st.integers(0, len(content) - 1), min_size=1, max_size=4)):
        content[place] = data.draw(st.integers(0, 255))
    file = tmp_path / name
    file.write_bytes(bytes(content))
    for one in read(file):
        assert document_json(one.source) if isinstance(one, FileRecord) else one.why


_DAMAGE = """
import sys
from pathlib import Path
from es_neardupe.readers.files import read_records
file = Path(sys.argv[1])
content = file.read_bytes()
for place in range(len(content) - int.from_bytes(content[-8:-4], "little") - 8, len(content)):
    for change in (1, -1, 16):
        damaged = bytearray(content)
        damaged[place] = (damaged[place] + change) % 256
        file.write_bytes(damaged)
        list(read_records([str(file)], text_field="text"))
print("read")
"""


def test_each_damaged_byte_of_a_description(tmp_path: Path) -> None:
    """In another process: pyarrow ends the process if the columns of a row group are not those of the file."""
    table = pa.table({"id": ["a"], "list": [["x"]]})
    file = write_table(table, tmp_path / "a.parquet", store_schema=False, write_statistics=False)
    done = subprocess.run([sys.executable, "-c", _DAMAGE, str(file)], check=True, capture_output=True, text=True)
    assert done.stdout == "read\n"


_MEASURE = """
import sys
from es_neardupe.readers.files import FileRecord, read_records
list(read_records([sys.argv[1]], text_field="text"))
before = peak()
count = sum(isinstance(one, FileRecord) for one in read_records([sys.argv[2]], text_field="text"))
print(count, peak() - before)
"""


def grown(tmp_path: Path, file: Path) -> tuple[int, int]:
    """Records of a file, and how many bytes the memory of another process grows while it reads them."""
    pytest.importorskip("resource")
    small = write_table(pa.table({"id": ["a"], "text": ["b"]}), tmp_path / f"small{file.suffix}")
    command = [sys.executable, "-c", measuring(_MEASURE), str(small), str(file)]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    count, size = done.stdout.split()
    return int(count), int(size)


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.arrows"])
def test_large_files_in_bounded_memory(tmp_path: Path, name: str) -> None:
    """200 MB of text, in one row group or in batches."""
    text = "0123456789" * 1000
    file = tmp_path / name
    table = pa.table({"id": range(20_000), "text": [f"{n} {text}" for n in range(20_000)]})
    options = {"row_group_size": 20_000, "use_dictionary": False} if name == "a.parquet" else {"max_chunksize": 500}
    write_table(table, file, **options)
    del table
    count, size = grown(tmp_path, file)
    assert count == 20_000
    assert size < 100 * MB


def test_one_large_value_of_many_rows(tmp_path: Path) -> None:
    """A dictionary with a value of 20 MB, which 50 rows refer to: only one of them is in memory."""
    values = pa.DictionaryArray.from_arrays(pa.array([0] * 50, pa.int32()), pa.array(["x" * (20 * MB)]))
    file = write_table(pa.table({"text": values}), tmp_path / "a.arrow")
    count, size = grown(tmp_path, file)
    assert count == 50
    assert size < 200 * MB


ROWS = 2_000_000_000


def of_nulls(rows: int) -> pa.RecordBatch:
    return pa.record_batch({"text": pa.nulls(rows)})


def of_runs(rows: int) -> pa.RecordBatch:
    return pa.record_batch({"text": pa.RunEndEncodedArray.from_arrays(pa.array([rows], pa.int32()), pa.array(["x"]))})


def of_zeros(rows: int) -> pa.RecordBatch:
    return pa.record_batch({"text": pa.array(["0" * rows])})


def of_views(rows: int) -> pa.RecordBatch:
    return pa.record_batch({"text": pa.array(["0" * rows], pa.string_view())})


def of_words(rows: int) -> pa.RecordBatch:
    return pa.record_batch({"text": pa.DictionaryArray.from_arrays(pa.array([0], pa.int8()), pa.array(["0" * rows]))})


@pytest.fixture
def large(monkeypatch: pytest.MonkeyPatch) -> None:
    """Parts of more than 10 MB may be too large, so that small ones are enough to test it."""
    monkeypatch.setattr(input_expansion, "_LARGE", 10 * MB)


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("name", ["a.arrow", "a.arrows"])
@pytest.mark.parametrize(
    ("make", "size", "compression", "why"),
    [
        (of_nulls, ROWS, None, "2,000,000,000 rows: "),
        (of_runs, ROWS, None, "2,000,000,000 rows: "),
        (of_zeros, 30 * MB, "lz4", "record batch: "),
        (of_zeros, 30 * MB, "zstd", "record batch: "),
        (of_views, 30 * MB, "zstd", "record batch: "),
        (of_words, 30 * MB, "zstd", "record batch: "),
    ],
)
def test_arrow_that_expands(
    tmp_path: Path, name: str, make: Callable[[int], pa.RecordBatch], size: int, compression: str | None, why: str
) -> None:
    """Small files: nothing is decoded."""
    new = ipc.new_stream if name.endswith("s") else ipc.new_file
    batch, file = make(size), tmp_path / name
    with new(file, batch.schema, options=ipc.IpcWriteOptions(compression=compression)) as writer:
        writer.write_batch(batch)
    del batch
    assert file.stat().st_size < 3 * MB
    before = pa.total_allocated_bytes()
    ((_, said),) = problems(read(file))
    assert said.startswith(f"the rest cannot be read: {why}")
    assert "more than 100 times as many. If this is intended, write the file with smaller row groups" in said
    assert pa.total_allocated_bytes() - before < MB


@pytest.mark.usefixtures("large")
def test_rows_of_all_batches_count_together(tmp_path: Path) -> None:
    batch, file = of_nulls(500_000), tmp_path / "a.arrow"
    with ipc.new_file(file, batch.schema) as writer:
        for _ in range(3):
            writer.write_batch(batch)
    ((_, said),) = problems(read(file))
    assert said.startswith("the rest cannot be read: 1,000,000 rows: ")


def list_of(values: pa.Array) -> pa.Array:
    return pa.ListArray.from_arrays(pa.array([0, len(values)], pa.int32()), values)


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize(
    ("make", "options", "why"),
    [
        (lambda: pa.nulls(5 * MB, pa.string()), {}, "5,000,000 rows: "),
        (lambda: list_of(pa.nulls(5 * MB, pa.int8())), {}, "column 'x.list.element': "),
        (lambda: pa.array(["0" * (30 * MB)]), {"use_dictionary": False}, "column 'x': "),
        (lambda: pa.array(["0" * (30 * MB)]), {}, "column 'x': "),
        (
            lambda: list_of(pa.array(["0" * MB] * 30)),
            {"use_dictionary": False, "column_encoding": "DELTA_BYTE_ARRAY"},
            "column 'x.list.element': ",
        ),
    ],
)
def test_parquet_that_expands(tmp_path: Path, make: Callable[[], pa.Array], options: dict[str, Any], why: str) -> None:
    """Rows, values of lists, texts, and texts of which each begins like the one before it."""
    file = write_table(pa.table({"x": make()}), tmp_path / "a.parquet", compression="zstd", **options)
    assert file.stat().st_size < 3 * MB
    before = pa.total_allocated_bytes()
    ((_, said),) = problems(read(file))
    assert said.startswith(f"the rest cannot be read: {why}")
    assert pa.total_allocated_bytes() - before < MB


@pytest.mark.usefixtures("large")
@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.arrows"])
def test_many_rows_with_one_large_value(tmp_path: Path, name: str) -> None:
    """A value of 1 MB, stored once, that 10,000 rows have: not all of them are read."""
    values = pa.DictionaryArray.from_arrays(pa.array([0] * 10_000, pa.int32()), pa.array(["x" * MB]))
    table, file = pa.table({"text": values}), tmp_path / name
    if name == "a.parquet":
        write_table(table, file, compression="zstd")
    else:
        new = ipc.new_stream if name == "a.arrows" else ipc.new_file
        with new(file, table.schema, options=ipc.IpcWriteOptions(compression="zstd")) as writer:
            writer.write_table(table)
    assert file.stat().st_size < 20_000
    found = list(read(file))
    assert len(found) == 11
    assert problems(found)[0][1] == (
        "the rest cannot be read: its first rows (11) expand to 11,000,000 bytes, more than 1,000 times the size of "
        "the file. If this is intended, write the file as JSON lines"
    )


@pytest.mark.usefixtures("large")
def test_the_value_beyond_the_limit_of_all_rows_is_not_converted(tmp_path: Path) -> None:
    values = pa.DictionaryArray.from_arrays(pa.array([0] * 3, pa.int32()), pa.array(["x" * (6 * MB)]))
    file = write_table(pa.table({"text": values}), tmp_path / "a.parquet", compression="zstd")
    tracemalloc.start()
    try:
        (kept, _) = read(file)
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert isinstance(kept, FileRecord)
    assert peak < 10 * MB


@pytest.mark.parametrize(
    "options",
    [
        {"store_schema": True},
        {"store_schema": False},
        {"use_dictionary": False, "column_encoding": "DELTA_BYTE_ARRAY"},
    ],
)
def test_one_large_value_of_many_rows_of_parquet(tmp_path: Path, options: dict[str, Any]) -> None:
    """A value of 20 MB, stored once, that 9 rows have: only one of them is decoded at a time."""
    values: pa.Array = pa.DictionaryArray.from_arrays(pa.array([0] * 9, pa.int32()), pa.array(["x" * (20 * MB)]))
    if "column_encoding" in options:
        values = values.cast(pa.string())
    file = write_table(pa.table({"text": values}), tmp_path / "a.parquet", compression="zstd", **options)
    assert file.stat().st_size < MB
    count, size = grown(tmp_path, file)
    assert count == 9
    assert size < 250 * MB


def test_a_large_value_in_a_list_of_parquet(tmp_path: Path) -> None:
    """A list of 100 values of 20 MB, stored once: a bad row in bounded memory; the one after it is read."""
    words = pa.array(["x" * (20 * MB), "small"]).dictionary_encode()
    lists = pa.ListArray.from_arrays(pa.array([0, 100, 101], pa.int32()), words.take(pa.array([0] * 100 + [1])))
    table = pa.table({"id": ["bad", "good"], "text": lists})
    file = write_table(table, tmp_path / "a.parquet", compression="zstd", store_schema=False)
    assert (problems(read(file)), sources(read(file))) == (
        [(f"{file}:1", "longer than 100,000,000 bytes")],
        [{"id": "good", "text": ["small"]}],
    )
    count, size = grown(tmp_path, file)
    assert count == 1
    assert size < 300 * MB


def test_maps_and_lists_with_dictionaries(tmp_path: Path) -> None:
    """As most files have them: the values repeat."""
    kind = pa.map_(pa.string(), pa.string())
    maps = pa.array([[("a", "x"), ("b", "x")], None, [("a", "y")]], kind)
    table = pa.table({"id": ["1", "2", "3"], "map": maps, "list": [["x"], [], ["x", None]]})
    file = write_table(table, tmp_path / "a.parquet")
    assert sources(read(file)) == [
        {"id": "1", "map": {"a": "x", "b": "x"}, "list": ["x"]},
        {"id": "2", "map": None, "list": []},
        {"id": "3", "map": {"a": "y"}, "list": ["x", None]},
    ]


# -- .zst --------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["a.jsonl.zst", "a.csv.zst", "a.JSONL.ZST"])
def test_zst(tmp_path: Path, name: str) -> None:
    file = tmp_path / name
    lines = b"id,text\na,x\n" if "csv" in name else b'{"id": "a", "text": "x"}\n'
    file.write_bytes(zstd.compress(lines[:9]) + zstd.compress(lines[9:]))  # two frames
    assert sources(read(file)) == [{"id": "a", "text": "x"}]
    text = tmp_path / "a.txt.zst"
    text.write_bytes(zstd.compress("é".encode()))
    assert read_text_file(str(text)) == "é"


def test_damaged_and_truncated_zst(tmp_path: Path) -> None:
    file = tmp_path / "a.jsonl.zst"
    lines = b"".join(b'{"id": %d, "text": "some text with number %d"}\n' % (k, k * 7919 % 1000) for k in range(9000))
    whole = zstd.compress(lines)
    for data, why in (
        (whole[: len(whole) // 2], "the file ends before the end of its compressed data"),
        (b"", "the file ends before the end of its compressed data"),
        (lines, "Unknown frame descriptor"),
        (whole + b"rest", "Unknown frame descriptor"),
    ):
        file.write_bytes(data)
        said = problems(read(file))
        assert len(said) <= 2  # the end, and the line that it cuts
        assert said[-1][0] == str(file)
        assert said[-1][1].startswith("the rest cannot be read: ")
        assert why in said[-1][1]


def test_a_zst_file_that_needs_too_much_memory(tmp_path: Path) -> None:
    """The frame declares a window of 1 GB."""
    maker = zstd.ZstdCompressor(options={int(zstd.CompressionParameter.window_log): 30})
    file = tmp_path / "a.jsonl.zst"
    file.write_bytes(maker.compress(b'{"id": 1}\n') + maker.flush())
    ((_, why),) = problems(read(file))
    assert "requires too much memory" in why


@pytest.mark.parametrize(("name", "package"), [("a.jsonl.zst", "backports.zstd"), ("a.parquet", "pyarrow")])
def test_missing_packages(tmp_path: Path, name: str, package: str, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / name
    file.write_bytes(b"")
    monkeypatch.setitem(sys.modules, package, None)
    for parent in ("backports", "compression"):
        monkeypatch.setitem(sys.modules, parent, None)
    with pytest.raises(SettingsError, match=r"need.? .*pip install 'es-neardupe\[tables\]'"):
        check_paths([str(file)])


# -- folders of records ------------------------------------------------------------------------------------------------


def fill(folder: Path) -> None:
    for name in ("sub/b.jsonl", "c.csv.zst", "a.parquet", ".hidden.jsonl", ".git/x.jsonl", "_delta_log/0.json"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        if name.endswith("csv.zst"):
            (folder / name).write_bytes(zstd.compress(b"id,text\nc,x\n"))
        elif name.endswith("parquet"):
            write_table(pa.table({"id": ["a"], "text": ["x"]}), folder / name)
        else:
            (folder / name).write_text('{"id": "b", "text": "x"}\n')
    for name in ("_SUCCESS", "sub/README.md", "d.parquet.gz"):
        (folder / name).write_text("")


def test_a_folder_of_records(tmp_path: Path) -> None:
    """Sorted by path, with subfolders, without hidden files; others are skipped and counted."""
    fill(tmp_path)
    found = read(tmp_path)
    assert [one.id for one in found if isinstance(one, FileRecord)] == ["a", "c", "b"]
    skipped = [(one.place, one.skipped) for one in found if isinstance(one, Problem)]
    names = ("_SUCCESS", "_delta_log/0.json", "d.parquet.gz", "sub/README.md")
    assert skipped == [(str(tmp_path / name), "file") for name in names]


def test_a_folder_of_texts_has_no_hidden_files(tmp_path: Path) -> None:
    (tmp_path / "a.txt").write_text("x")
    (tmp_path / ".DS_Store").write_bytes(b"\xff")
    assert [one.place for one in read(tmp_path)] == [str(tmp_path / "a.txt")]


# -- URLs --------------------------------------------------------------------------------------------------------------


def test_a_folder_at_a_url(tmp_path: Path) -> None:
    """The same as on this machine, in the file system of fsspec that is in memory."""
    fill(tmp_path)
    memory = fsspec.filesystem("memory")
    memory.put(str(tmp_path) + "/", "/bucket/news/", recursive=True)
    try:
        found = read("memory://bucket/news")
        assert [one.id for one in found if isinstance(one, FileRecord)] == ["a", "c", "b"]
        assert found[0].place == "memory://bucket/news/_SUCCESS"
        assert [one.place for one in read("memory://bucket/news/a.parquet")] == ["memory://bucket/news/a.parquet:1"]
        with memory.open("/texts/sub/a.txt", "w") as file:
            file.write("é")
        assert read("memory://texts/") == [FileRecord("memory://texts/sub/a.txt", "sub/a.txt", {"text": "é"})]
    finally:
        memory.rm("/", recursive=True)
    with pytest.raises(InputError, match=r"There is no file or folder 'memory://bucket/gone.jsonl'"):
        check_paths(["memory://bucket/gone.jsonl"])


def test_file_urls_need_no_package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "fsspec", None)
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    (tmp_path / "a b.jsonl").write_text('{"id": 1}\n')
    assert [one.place for one in read((tmp_path / "a b.jsonl").as_uri())] == [f"{tmp_path / 'a b.jsonl'}:1"]
    for kind, package in (("s3", "fsspec[s3]"), ("GS", "fsspec[gcs]"), ("memory", "fsspec")):
        with pytest.raises(SettingsError) as refused:
            check_paths([f"{kind}://KEY:SECRET@bucket/a.jsonl?token=SECRET"])
        assert str(refused.value) == f"{kind}://bucket/a.jsonl needs fsspec: {pip_install(package)}"


def test_a_server_that_cannot_be_reached() -> None:
    ((place, why),) = problems(read("http://u:SECRET@127.0.0.1:1/a.jsonl"))
    assert (place, why.startswith("the rest cannot be read: no connection: ")) == ("http://127.0.0.1:1/a.jsonl", True)


def test_a_missing_package_for_a_kind_of_url(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "s3fs", None)
    with pytest.raises(SettingsError) as refused:
        check_paths(["s3://KEY:SECRET@bucket/a.jsonl"])
    text = str(refused.value)
    assert text.startswith("s3://bucket/a.jsonl needs another package (")
    assert text.endswith(pip_install("fsspec[s3]"))


@pytest.mark.parametrize(
    ("url", "why"),
    [
        ("nonsense://u:SECRET@host/a.jsonl", "cannot be read: fsspec does not know this kind of URL"),
        ("zip://a.jsonl::https://u:SECRET@host/a.zip", "URLs of several parts"),
        ("simplecache::https://host/a.jsonl?token=SECRET", "URLs of several parts"),
        ("http://u:SECRET@host/folder/?sig=SECRET", "is neither JSON lines"),
        ("file://u:SECRET@host/a.jsonl", ""),
    ],
)
def test_urls_that_cannot_be_read(url: str, why: str) -> None:
    with pytest.raises(InputError) as raised:
        check_paths([url])
    assert why in str(raised.value)
    assert "SECRET" not in str(raised.value)


@pytest.fixture
def http() -> Iterator[Callable[[str, bytes], str]]:
    """A server that has one file, for a user with a password and a token. Returns its URL with both."""
    content: dict[str, bytes] = {}

    class Handler(BaseHTTPRequestHandler):
        def do_HEAD(self) -> None:
            self.do_GET()

        def do_GET(self) -> None:
            path, _, query = self.path.partition("?")
            login = b64decode(self.headers.get("authorization", "").removeprefix("Basic ")).decode()
            data = content.get(path)
            if (login, query) != ("ann:SECRET", "token=SECRET"):
                self.send_error(403)
            elif data is None:
                self.send_error(404)
            else:
                begin, _, end = self.headers.get("range", "bytes=0-").removeprefix("bytes=").partition("-")
                part = data[int(begin) : int(end) + 1 if end else len(data)]
                self.send_response(206 if "range" in self.headers else 200)
                self.send_header("content-length", str(len(part)))
                self.send_header("accept-ranges", "bytes")
                if "range" in self.headers:
                    last = int(begin) + len(part) - 1
                    self.send_header("content-range", f"bytes {begin}-{last}/{len(data)}")
                self.end_headers()
                if self.command == "GET":
                    self.wfile.write(part)

        def log_message(self, *_: object) -> None:
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = Thread(target=server.serve_forever)
    thread.start()

    def put(path: str, data: bytes) -> str:
        content[path] = data
        return f"http://ann:SECRET@127.0.0.1:{server.server_port}{path}?token=SECRET"

    yield put
    server.shutdown()
    thread.join()
    server.server_close()


@pytest.mark.parametrize("name", ["a.jsonl", "a.parquet", "a.jsonl.zst"])
def test_files_of_a_server(http: Callable[[str, bytes], str], tmp_path: Path, name: str) -> None:
    """With credentials in the URL, which are in no place and no message."""
    lines = b'{"id": "a", "text": "x"}\n{"text": "no id"}\n[]\n'
    if name == "a.parquet":
        data = write_table(pa.table({"id": ["a", None], "text": ["x", "no id"]}), tmp_path / name).read_bytes()
    else:
        data = zstd.compress(lines) if name.endswith("zst") else lines
    url = http(f"/{name}", data)
    check_paths([url])
    found = read(url)
    shown = url.replace("ann:SECRET@", "").partition("?")[0]
    assert [(one.place, one.place_is_id) for one in found if isinstance(one, FileRecord)] == [
        (f"{shown}:1", False),
        (f"{shown}:2", False),
    ]
    for wrong, why in (
        (url.replace(name, f"gone-{name}"), "status 404"),
        (url.replace("ann:", "bob:"), "status 403"),
    ):
        ((place, said),) = problems(read(wrong))
        assert (place, said) == (
            wrong.replace("ann:", "").partition("?")[0].replace("bob:", "").replace("SECRET@", ""),
            f"the rest cannot be read: {why}",
        )


def test_credentials_of_urls_are_not_logged() -> None:
    files = ["s3://KEY:SECRET@bucket/a.jsonl", "https://h/a?sig=SECRET#SECRET", "https://u:SE?CRET@h/a", "b@c?d.jsonl"]
    assert loggable_arguments({"files": files}) == {
        "files": ["s3://bucket/a.jsonl", "https://h/a", "https://h/a", "b@c?d.jsonl"]
    }


def test_texts_are_not_logged() -> None:
    assert loggable_arguments({"text": "private", "note": "private"}) == dict.fromkeys(
        ["text", "note"], "(7 characters)"
    )
