"""Memory of pairs, compared with a dictionary, and its size."""

from __future__ import annotations

import tracemalloc

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from es_neardupe.keys.text import packed_hashes
from es_neardupe.verification.verify import PairMemory

HASHES = [f"{value:032x}" for value in (1, 2, 255, 256, 1 << 64, (1 << 64) + 1, 0xAB << 120, (1 << 128) - 1)]
hashes = st.sampled_from(HASHES)
similarities = st.sampled_from([0.0, 0.25, 1.0, float("nan")])
batches = st.lists(st.lists(st.tuples(hashes, hashes, similarities), max_size=12), max_size=5)


def column(values: list[str]) -> np.ndarray:
    return packed_hashes(values)


def ask(memory: PairMemory, pairs: list[tuple[str, str]]) -> list[float | None]:
    found = memory.lookup(column([a for a, _ in pairs]), column([b for _, b in pairs])).tolist()
    return [None if value != value else value for value in found]


@given(batches, st.booleans())
def test_against_a_dictionary(added: list[list[tuple[str, str, float]]], between: bool) -> None:
    """With any order and portions of additions: the last similarity of each unordered pair."""
    memory = PairMemory()
    expected: dict[frozenset[str], float] = {}
    for batch in added:
        left, right, values = (list(side) for side in zip(*batch, strict=True)) if batch else ([], [], [])
        memory.add(column(left), column(right), np.array(values, np.float64))
        expected |= {frozenset((a, b)): value for a, b, value in batch if value == value}
        if between:
            assert len(memory) == len(expected)
    pairs = [(a, b) for a in HASHES for b in HASHES]
    assert ask(memory, pairs) == [expected.get(frozenset(pair)) for pair in pairs]
    assert len(memory) == len(expected)


def test_nothing_is_known_at_first() -> None:
    assert ask(PairMemory(), [(HASHES[1], HASHES[2])]) == [None]
    assert ask(PairMemory(), []) == []
    assert len(PairMemory()) == 0


def test_equal_contents_are_known_only_if_added() -> None:
    memory = PairMemory()
    memory.add(column([HASHES[1]]), column([HASHES[2]]), np.array([0.5]))
    assert ask(memory, [(HASHES[1], HASHES[1]), (HASHES[2], HASHES[1])]) == [None, 0.5]


def test_texts_without_tokens_are_not_kept() -> None:
    memory = PairMemory()
    memory.add(column(["", HASHES[0]]), column([HASHES[0], ""]), np.array([0.5, 0.5]))
    assert len(memory) == 0
    memory.add(column(HASHES[:1]), column(HASHES[:1]), np.array([1.0]))
    assert ask(memory, [("", HASHES[0]), ("", ""), (HASHES[0], HASHES[0])]) == [None, None, 1.0]


def test_columns_of_any_layout() -> None:
    """Slices and narrower strings, as numpy creates them."""
    every = column(HASHES)
    memory = PairMemory()
    memory.add(every[::2], every[1::2], np.arange(4.0))
    assert memory.lookup(every[1::2], every[::2]).tolist() == [0.0, 1.0, 2.0, 3.0]
    memory.add(np.array([], "S1"), np.array([], "S1"), np.array([]))
    assert len(memory) == 4


def test_a_pair_takes_at_most_50_bytes() -> None:
    size = 200_000
    numbers = np.random.default_rng(5).integers(0, 1 << 62, (2, size))
    left, right = (packed_hashes([f"{value:032x}" for value in side.tolist()]) for side in numbers)
    values = np.linspace(0, 1, size)
    tracemalloc.start()
    memory = PairMemory()
    for start in range(0, size, 20_000):
        part = slice(start, start + 20_000)
        memory.add(left[part], right[part], values[part])
    assert len(memory) == size
    held, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert held <= 50 * size
    assert (memory.lookup(right, left) == values).all()
