"""Tables: the same rows in each format, read back by the library that it is meant for. No server."""

from __future__ import annotations

import csv
import io
import json
import math
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pandas
import polars
import pyarrow
import pyarrow.feather
import pyarrow.ipc
import pyarrow.parquet
import pytest
from hypothesis import given
from hypothesis import strategies as st
from peak_memory import measuring

from es_neardupe.errors import InputError, SettingsError
from es_neardupe.folders import install_extra
from es_neardupe.tables import Table, check_table_file

COLUMNS = {"id": str, "count": int, "similarity": float, "principal": bool}
TYPES = (pyarrow.string(), pyarrow.int64(), pyarrow.float64(), pyarrow.bool_())
SCHEMA = pyarrow.schema(zip(COLUMNS, TYPES, strict=True))
ROWS = [("a", 1, 0.5, True), ("ü\u2028\x85\x1c", -(2**62), 1 / 3, False), (None, None, None, None), ("", 0, 1.0, True)]
FORMATS = ("parquet", "arrow", "csv", "jsonl")
FORMULAS = "=+-@\t\r\n\uff1d\uff0b\uff0d\uff20"

every_format = pytest.mark.parametrize("ending", FORMATS)


def written(rows: Any, ending: str, folder: Path, columns: dict[str, type] = COLUMNS) -> Path:
    file = folder / f"table.{ending}"
    Table(columns, rows).write(file)
    assert list(folder.iterdir()) == [file]
    return file


def test_parquet(tmp_path: Path) -> None:
    table = pyarrow.parquet.read_table(written(ROWS, "parquet", tmp_path))
    assert table.schema == SCHEMA
    assert list(map(tuple, (one.values() for one in table.to_pylist()))) == ROWS


def test_arrow(tmp_path: Path) -> None:
    """The file format of Arrow IPC, not the format of streams."""
    file = written(ROWS, "arrow", tmp_path)
    with pyarrow.memory_map(str(file)) as source:
        table = pyarrow.ipc.open_file(source).read_all()
        assert table.schema == SCHEMA
        assert list(map(tuple, (one.values() for one in table.to_pylist()))) == ROWS
    assert polars.read_ipc(file).rows() == ROWS
    assert pyarrow.feather.read_table(file).num_rows == len(ROWS)


def test_csv(tmp_path: Path) -> None:
    """UTF-8 with a byte order mark, lines that end as RFC 4180 has them, and numbers as numbers."""
    file = written(ROWS, "csv", tmp_path)
    assert file.read_bytes().startswith(b"\xef\xbb\xbfid,count,similarity,principal\r\na,1,0.5,true\r\n")
    with file.open(encoding="utf-8-sig", newline="") as stream:
        names, *rows = csv.reader(stream)
    assert names == list(COLUMNS)
    assert rows == [["" if cell is None else _text(cell) for cell in row] for row in ROWS]
    frame = pandas.read_csv(file, keep_default_na=False, na_values={"count": "", "similarity": "", "principal": ""})
    assert frame["id"].tolist() == ["" if row[0] is None else row[0] for row in ROWS]
    assert frame["similarity"].tolist()[:2] == [0.5, 1 / 3]
    assert frame["principal"].tolist()[:2] == [True, False]
    assert polars.read_csv(file, truncate_ragged_lines=False)["similarity"].to_list() == [row[2] for row in ROWS]


def _text(cell: object) -> str:
    return str(cell).lower() if isinstance(cell, bool) else str(cell)


def test_json_lines(tmp_path: Path) -> None:
    file = written(ROWS, "jsonl", tmp_path)
    lines = file.read_bytes().removesuffix(b"\n").split(b"\n")
    assert [tuple(json.loads(line).items()) for line in lines] == [
        tuple(zip(COLUMNS, row, strict=True)) for row in ROWS
    ]
    assert polars.read_ndjson(file).rows() == ROWS


def test_frames() -> None:
    assert Table(COLUMNS, ROWS).to_arrow().schema == SCHEMA
    frame = Table(COLUMNS, ROWS[:2]).to_pandas()
    assert [tuple(row) for row in frame.itertuples(index=False)] == ROWS[:2]
    assert [frame.dtypes[name].kind for name in ("count", "similarity", "principal")] == ["i", "f", "b"]
    assert Table(COLUMNS, ROWS).to_polars().rows() == ROWS
    assert [batch.num_rows for batch in Table(COLUMNS, ROWS).batches()] == [len(ROWS)]


@every_format
def test_an_empty_table_has_its_columns(ending: str, tmp_path: Path) -> None:
    file = written([], ending, tmp_path)
    if ending == "parquet":
        assert pyarrow.parquet.read_schema(file) == SCHEMA
    elif ending == "arrow":
        assert pyarrow.ipc.open_file(file.read_bytes()).schema == SCHEMA
    elif ending == "csv":
        assert list(pandas.read_csv(file)) == list(COLUMNS)
    else:
        assert file.read_bytes() == b""
    assert Table(COLUMNS, []).to_arrow().schema == SCHEMA
    assert Table(COLUMNS, []).to_polars().schema == polars.DataFrame(SCHEMA.empty_table()).schema
    assert list(Table(COLUMNS, []).to_pandas()) == list(COLUMNS)


@given(st.lists(st.tuples(st.text(), st.text(st.characters()), st.floats())))
def test_any_text_survives_each_format(rows: list[tuple[Any, ...]]) -> None:
    """Except that lone surrogates, which UTF-8 does not have, are replaced, and that CSV marks formulas."""
    columns = {"a": str, "b": str, "number": float}
    expected = [
        (a, b.encode("utf-16", "surrogatepass").decode("utf-16", "replace"), x if math.isfinite(x) else None)
        for a, b, x in rows
    ]
    parts = {name: b"".join(Table(columns, rows).encoded(name)) for name in FORMATS}
    read = pyarrow.parquet.read_table(io.BytesIO(parts["parquet"]))
    assert read == pyarrow.ipc.open_file(parts["arrow"]).read_all() == Table(columns, rows).to_arrow()
    assert [tuple(one.values()) for one in read.to_pylist()] == expected
    assert [tuple(json.loads(line).values()) for line in parts["jsonl"].split(b"\n")[:-1]] == expected
    if rows:
        assert polars.read_ndjson(io.BytesIO(parts["jsonl"]), schema=polars.DataFrame(read).schema).rows() == expected
    _, *lines = csv.reader(io.StringIO(parts["csv"].decode("utf-8-sig"), newline=""))
    assert [(a, b, float(x) if x else None) for a, b, x in lines] == [
        (_marked(a), _marked(b), x) for a, b, x in expected
    ]


def _marked(text: str) -> str:
    text = text.replace("\0", "\ufffd")
    return f"'{text}" if text and text[0] in FORMULAS else text


@pytest.mark.parametrize("first", FORMULAS)
def test_a_spreadsheet_evaluates_no_cell(first: str) -> None:
    """Text that begins like a formula gets an apostrophe. A negative number is a number."""
    lines = b"".join(Table({"text": str, "number": float}, [(f"{first}1+1", -0.5)]).encoded("csv"))
    _, row = csv.reader(io.StringIO(lines.decode("utf-8-sig"), newline=""))
    assert row == [f"'{first}1+1", "-0.5"]


@pytest.mark.parametrize("name", ["table", "table.xlsx", "table.parquet.gz", ".csv"])
def test_an_unknown_ending_names_the_known_ones(tmp_path: Path, name: str) -> None:
    with pytest.raises(SettingsError, match=r"unknown ending\. Name it \.parquet, \.arrow, \.csv or \.jsonl"):
        check_table_file(tmp_path / name)


def test_endings_in_capitals(tmp_path: Path) -> None:
    assert check_table_file(tmp_path / "TABLE.CSV") == "csv"


@pytest.mark.parametrize("ending", ["csv", "jsonl", "parquet", "arrow"])
def test_rows_of_an_iterator_are_read_once(tmp_path: Path, ending: str) -> None:
    """A second file would have the names of the columns only."""
    table, file = Table(COLUMNS, iter(ROWS)), tmp_path / f"a.{ending}"
    table.write(file)
    written = file.read_bytes()
    with pytest.raises(SettingsError, match="have been read, which is possible once"):
        table.write(file)
    assert file.read_bytes() == written


def test_files_that_cannot_be_written(tmp_path: Path) -> None:
    with pytest.raises(InputError, match="its folder does not exist"):
        check_table_file(tmp_path / "none" / "table.csv")
    (tmp_path / "folder.csv").mkdir()
    with pytest.raises(InputError, match="is a folder"):
        check_table_file(tmp_path / "folder.csv")


@pytest.mark.parametrize("missing", ["pyarrow", "pandas", "polars"])
def test_what_is_missing_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, missing: str) -> None:
    table = Table(COLUMNS, ROWS)
    table.to_arrow()  # pyarrow remembers whether there is a pandas
    monkeypatch.setitem(sys.modules, missing, None)
    methods = {"pyarrow": table.to_arrow, "pandas": table.to_pandas, "polars": table.to_polars}
    with pytest.raises(SettingsError, match=re.escape(f"need {missing}: {install_extra('tables')}")):
        methods[missing]()
    for ending in FORMATS:
        if missing == "pyarrow" and ending in ("parquet", "arrow"):
            with pytest.raises(SettingsError, match="need pyarrow"):
                check_table_file(tmp_path / f"table.{ending}")
        else:
            Table(COLUMNS, ROWS).write(tmp_path / f"table.{ending}")


class Broken(Exception):
    """Raised by rows."""


def breaking() -> Iterator[tuple[Any, ...]]:
    yield from ROWS
    raise Broken


@every_format
def test_rows_that_fail_leave_the_file_unchanged(tmp_path: Path, ending: str) -> None:
    """The error is that of the rows, whichever library asks for them."""
    file = tmp_path / f"table.{ending}"
    file.write_text("before")
    with pytest.raises(Broken):
        Table(COLUMNS, breaking()).write(file)
    assert [one.read_text() for one in tmp_path.iterdir()] == ["before"]
    with pytest.raises(Broken):
        Table(COLUMNS, breaking()).to_polars()


@every_format
def test_a_full_disk(tmp_path: Path, ending: str) -> None:
    """A limit of the size of files stands for it: the error names the file, and nothing is left."""
    resource = pytest.importorskip("resource")
    rows = [(str(np.random.default_rng(number).integers(2**62)), number, 0.5, True) for number in range(5000)]
    file = tmp_path / f"table.{ending}"
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, before[1]))
    try:
        with pytest.raises(InputError, match=r"table\.\w+ cannot be written: File too large"):
            Table(COLUMNS, rows).write(file)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)
    assert list(tmp_path.iterdir()) == []


MEMORY = """
from es_neardupe.tables import Table
columns = {"number": int, "text": str}
Table(columns, ((number, "x") for number in range(10))).write(sys.argv[1])
before = peak()
Table(columns, ((number, f"{number} " + "word " * 200_000) for number in range(120))).write(sys.argv[1])
Table(columns, ((number, f"{number} some words") for number in range(100_000))).write(sys.argv[1])
print(peak() - before)
"""


@every_format
def test_memory_does_not_grow_with_the_rows(tmp_path: Path, ending: str) -> None:
    """120 MB of long texts, and 100,000 short rows."""
    run = [sys.executable, "-c", measuring(MEMORY), str(tmp_path / f"table.{ending}")]
    done = subprocess.run(run, capture_output=True, text=True, check=True)
    assert int(done.stdout) < 100_000_000
