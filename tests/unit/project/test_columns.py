"""Columns of many values: equal to plain lists, and small."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_neardupe import columns
from es_neardupe.columns import Growing, GrowingReferences, References, RowLists, StringColumn

TOOLS = Path(__file__).parents[2] / "tools"

STRINGS = st.text(st.sampled_from("ab\0é漢\ud800\U0001f600"), min_size=1, max_size=20)
REFERENCES = st.lists(st.tuples(st.sampled_from("yxz"), STRINGS, st.none() | STRINGS), max_size=12)


@pytest.fixture(autouse=True)
def _small_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(columns, "_BLOCK", 3)


@given(st.lists(st.none() | STRINGS, max_size=12))
def test_strings_are_those_of_a_list(strings: list[str | None]) -> None:
    column = StringColumn.of(strings)
    assert list(column) == [column[row] for row in range(len(column))] == column[:] == strings
    rows = np.array([row for row in range(len(strings)) if row % 3][::-1], np.intp)
    assert list(column.take(rows)) == [strings[row] for row in rows]


@given(st.lists(STRINGS, max_size=30))
def test_strings_are_sorted_by_code_points(strings: list[str]) -> None:
    """With common beginnings, NUL characters at the end, and characters beyond 16 bits; equal ones as given."""
    every = [*strings, *strings[:2]]
    rows = np.arange(len(every), dtype=np.int32)
    assert StringColumn.of(every).sorted(rows).tolist() == sorted(range(len(every)), key=every.__getitem__)
    assert rows.tolist() == list(range(len(every)))


@given(REFERENCES, st.integers(1, 4))
def test_references_are_those_of_a_list(references: list[tuple[str, str, str | None]], page: int) -> None:
    growing = GrowingReferences()
    for start in range(0, len(references), page):
        growing.extend(references[start : start + page])
    column = growing.taken()
    assert list(column) == [column[row] for row in range(len(column))] == references
    assert column == References.of(references)
    order = sorted(range(len(references)), key=lambda row: (references[row][1], references[row][0]))
    assert column.sorted(np.arange(len(references))).tolist() == order
    assert list(column.take(np.array(order, np.intp))) == [references[row] for row in order]


@given(st.lists(st.lists(st.integers(), max_size=5), max_size=6), st.integers(0, 20))
def test_an_array_grows(parts: Sequence[list[int]], expected: int) -> None:
    growing: Growing[np.bytes_] = Growing("S3", expected=expected)
    for part in parts:
        growing.extend([str(one % 100).encode() for one in part])
    assert growing.taken().tolist() == [str(one % 100).encode() for part in parts for one in part]


@given(st.lists(st.lists(st.integers(0, 30), min_size=1, max_size=4), max_size=6), st.sets(st.integers(0, 30)))
def test_lists_of_rows(lists: list[list[int]], chosen: set[int]) -> None:
    rows = RowLists.of(lists)
    selected = np.isin(np.arange(31), list(chosen))
    assert [one.tolist() for one in rows] == [rows[k].tolist() for k in range(len(rows))] == lists
    assert rows.first.tolist() == [one[0] for one in lists]
    assert rows.sizes.tolist() == list(map(len, lists))
    assert rows.counted(selected).tolist() == [sum(row in chosen for row in one) for one in lists]
    assert rows.touching(selected).tolist() == [not chosen.isdisjoint(one) for one in lists]
    assert [one.tolist() for one in rows.only(selected)] == [[row for row in one if row in chosen] for one in lists]
    every_other = np.arange(len(lists)) % 2 == 0
    assert rows.in_lists(every_other).tolist() == [row for one in lists[::2] for row in one]


# Memory


def _peak(documents: int, *more: str) -> int:
    """Peak memory of grouping so many synthetic documents in a process of its own."""
    done = subprocess.run(
        [sys.executable, TOOLS / "synthetic_pages.py", str(documents), *more],
        capture_output=True,
        text=True,
        check=False,
        # As for arrays of millions of documents: the memory of each array is returned when it is freed.
        env=os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536", "NUMPY_MADVISE_HUGEPAGE": "0"},
    )
    assert done.returncode == 0, done.stderr
    found = json.loads(done.stdout)
    assert found["writes"] == documents
    assert documents / 15 < found["groups"] < documents / 13
    return int(found["peak"])


@pytest.mark.parametrize(("few", "many"), [(20_000, 60_000), pytest.param(200_000, 1_000_000, marks=pytest.mark.long)])
def test_a_document_takes_at_most_300_bytes(few: int, many: int) -> None:
    """With 16 keys and an id of 20 characters, from reading to the groups to write: 14 % of them are in groups."""
    pytest.importorskip("resource")
    most = 300 if sys.version_info >= (3, 11) else 350  # the newest numpy and scipy for Python 3.10 take 325
    assert (_peak(many) - _peak(few)) / (many - few) <= most
