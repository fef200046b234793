"""Runs within a memory limit: the same result, and an error before anything is read if it is too small."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from dataclasses import replace
from typing import NamedTuple

import numpy as np
import pytest
import typer
from hypothesis import given
from hypothesis import strategies as st
from peak_memory import measuring
from synthetic_pages import grouped

from es_neardupe.candidates import memory_limit, spill_to_disk
from es_neardupe.candidates.join import find_candidates
from es_neardupe.candidates.memory_limit import MemoryLimit
from es_neardupe.candidates.spill_to_disk import SpilledColumn, SpilledKeys, scratch
from es_neardupe.display_text import size_text
from es_neardupe.errors import SettingsError
from es_neardupe.options import parse_size


class Disk(NamedTuple):
    free: int


@given(st.lists(st.integers(0, 5), max_size=6), st.integers(1, 4), st.integers(1, 30), st.integers(2, 3))
def test_spilled_keys_make_the_same_pairs(parts: list[int], bands: int, held: int, max_bucket: int) -> None:
    dice = np.random.default_rng(sum(parts))
    keys = dice.integers(0, 3, (sum(parts), bands), np.uint64)
    keys[keys > 0] += np.broadcast_to(np.arange(bands, dtype=np.uint64) * 10, keys.shape)[keys > 0]
    with pytest.MonkeyPatch.context() as patch, scratch() as files:
        patch.setattr(spill_to_disk, "HELD", held)
        spilled = SpilledKeys(files, bands)
        for rows in np.split(keys, np.cumsum(parts)[:-1]) if parts else []:
            spilled.extend(rows)
        spilled.taken()
        assert (len(spilled), spilled.shape) == (len(keys), keys.shape)
        assert [spilled[:, band].tolist() for band in range(bands)] == keys.T.tolist()
        assert [spilled[row].tolist() for row in range(len(keys))] == keys.tolist()
        rows = np.flatnonzero(keys.any(axis=1))[::-1]
        for agree in range(1, min(bands, 2) + 1):
            made, wanted = (find_candidates(one, max_bucket, agree=agree, rows=rows) for one in (spilled, keys))
            assert (made.left.tolist(), made.right.tolist()) == (wanted.left.tolist(), wanted.right.tolist())
            assert (made.large, made.skipped) == (wanted.large, wanted.skipped)


@given(st.lists(st.integers(0, 5), max_size=6), st.sampled_from([(), (2,)]), st.integers(1, 9), st.data())
def test_a_spilled_column_is_like_an_array(
    parts: list[int], width: tuple[int, ...], held: int, data: st.DataObject
) -> None:
    size = sum(parts)
    column = np.arange(size * (2 if width else 1), dtype=np.int16).reshape(size, *width)
    with pytest.MonkeyPatch.context() as patch, scratch() as files:
        patch.setattr(spill_to_disk, "HELD", held)
        spilled = SpilledColumn(files, np.int16, *width)
        for rows in np.split(column, np.cumsum(parts)[:-1]) if parts else []:
            spilled.extend(rows)
        assert len(spilled.taken()) == size
        rows = np.array(sorted(data.draw(st.sets(st.integers(0, size - 1)))) if size else [], np.intp)
        assert spilled[rows].tolist() == column[rows].tolist()
        assert spilled[:].tolist() == column.tolist()
        assert spilled[1:3].tolist() == column[1:3].tolist()
        assert [np.array(spilled[row]).tolist() for row in range(size)] == column.tolist()


def test_a_limit_changes_no_group(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(memory_limit, "_PROCESS", 0)
    monkeypatch.setattr(spill_to_disk, "HELD", 1000)
    size = 3000
    spilled, held = grouped(size, memory=size * 300, again=True), grouped(size, again=True)
    assert isinstance(spilled.linked.verified.corpus.versions, SpilledColumn)
    assert dict(spilled.groupings) == dict(held.groupings)
    assert dict(spilled.writes) == dict(held.writes)
    assert 0 < len(held.writes) < size
    assert {replace(one, created="", updated="", history=()) for one in spilled.updates} == {
        replace(one, created="", updated="", history=()) for one in held.updates
    }
    assert len(list(held.updates)) == size // 14 + 1


def test_what_is_spilled() -> None:
    limit = MemoryLimit(505 * 10**6).holding(documents=1_000_000)
    assert not limit.spills(16)
    assert limit.spills(17)
    assert limit.holding(stored_pairs=100_000).spills(16)


@pytest.mark.parametrize("numbers", [{}, {"groups": 0}])
def test_a_limit_below_what_the_program_itself_needs(numbers: dict[str, int]) -> None:
    message = r"`memory` 100MB is too small for the program itself: give at least 200MB\.$"
    with pytest.raises(SettingsError, match=message):
        MemoryLimit(100_000_000).holding(**numbers)


def test_too_little_memory() -> None:
    with pytest.raises(
        SettingsError, match=r"`memory` 1GB is too small for 10,000,000 documents: give at least \S+\.$"
    ):
        MemoryLimit(10**9).holding(documents=10_000_000)
    limit = MemoryLimit(400 * 10**6).holding(documents=1_000_000)
    limit.holding(candidate_pairs=1_000_000)
    with pytest.raises(
        SettingsError, match=r"too small for 1,000,000 documents and 1,300,000 candidate pairs: .* `max_bucket`\.$"
    ):
        limit.holding(candidate_pairs=1_300_000)
    with pytest.raises(SettingsError, match=r"documents, 900,000 stored pairs and 900,000 groups: give"):
        limit.holding(stored_pairs=900_000, groups=900_000)


def test_pairs_are_counted_while_they_are_found() -> None:
    limit, keys = MemoryLimit(201 * 10**6), np.ones((2000, 1), np.uint64)

    def check(pairs: int, bucket: int) -> None:
        limit.holding(bucket, candidate_pairs=pairs)

    with pytest.raises(SettingsError, match=r"candidate pairs.* texts of the largest bucket, of 2,000 texts, with"):
        find_candidates(keys, 200, check=check)


def test_too_little_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shutil, "disk_usage", lambda folder: Disk(161 * 10**6))
    limit = MemoryLimit(450 * 10**6).holding(documents=1_000_000)
    with pytest.raises(SettingsError, match=r"need 162MB in .* which has 161MB: set TMPDIR"):
        limit.spills(16)
    assert tempfile.gettempdir()


_STEPS = """
from es_neardupe import columns
from es_neardupe.candidates import memory_limit, pair_arrays, spill_to_disk
from es_neardupe.groups import linkage, write
from synthetic_pages import grouped

for module, name in ((pair_arrays, "BLOCK"), (pair_arrays, "_PORTION"), (spill_to_disk, "HELD"), (columns, "_BLOCK"),
                     (linkage, "_ROWS"), (write, "_ROWS")):
    assert getattr(module, name) > 10_000
    setattr(module, name, 10_000)
memory_limit._PROCESS = 0
size = int(sys.argv[1])
result = grouped(size, memory=200 * size, again=True)
corpus, pairs = result.linked.verified.corpus, len(result.linked.verified.candidates)
assert isinstance(corpus.versions, spill_to_disk.SpilledColumn)
limit = memory_limit.MemoryLimit(10**12).holding(documents=size, candidate_pairs=pairs, groups=len(result.records))
print(limit._needed, peak())
"""


def _needed_and_peak(size: int) -> list[int]:
    """The memory that the limit assumes for a run over so many documents, and the peak of a process of its own."""
    done = subprocess.run(
        [sys.executable, "-c", measuring(_STEPS), str(size)],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"MALLOC_MMAP_THRESHOLD_": "65536", "NUMPY_MADVISE_HUGEPAGE": "0"},
    )
    assert done.returncode == 0, done.stderr
    return [int(one) for one in done.stdout.split()]


def test_a_run_takes_no_more_than_the_limit_assumes() -> None:
    """As the growth with the number of documents, 14 % of them in groups: what is constant is far below `_PROCESS`.

    The peaks of two equal runs differ by up to 1 MB, and their growth by twice as much: it must be much larger.
    """
    pytest.importorskip("resource")
    (few, small), (many, large) = _needed_and_peak(20_000), _needed_and_peak(160_000)
    assert large - small <= many - few + 2_000_000


@pytest.mark.parametrize(
    ("text", "size"), [("2GB", 2 * 10**9), ("500MB", 500 * 10**6), ("1.5GB", 1_500 * 10**6), ("0.5TB", 500 * 10**9)]
)
def test_sizes(text: str, size: int) -> None:
    assert parse_size(text) == parse_size(size) == size
    assert parse_size(size_text(size + 1)) > size
    assert size_text(1) == "1 B"


@pytest.mark.parametrize("text", ["", "2", "2G", "2gb", "-2GB", "0GB", "GB", "2 GB", "1e3GB", "٢GB"])
def test_no_sizes(text: str) -> None:
    with pytest.raises(typer.BadParameter, match="is not a size such as 500MB, 2GB"):
        parse_size(text)
