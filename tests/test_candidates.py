"""Candidate pairs, against sets of keys compared one by one."""

from __future__ import annotations

from collections import Counter, defaultdict
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_neardupe.stages import candidates
from es_neardupe.stages.candidates import Candidates, bucket_sizes, find_candidates

Keys = Any


@st.composite
def matrices(draw: st.DrawFn) -> Keys:
    """Few distinct keys, so that rows meet; as in real keys, no key stands in two bands."""
    rows, bands = draw(st.integers(0, 9)), draw(st.integers(1, 4))
    cells = draw(st.lists(st.lists(st.integers(0, 3), min_size=bands, max_size=bands), min_size=rows, max_size=rows))
    keys = np.array(cells, np.uint64).reshape(rows, bands)
    return np.where(keys == 0, np.uint64(0), keys * np.uint64(100) + np.arange(bands, dtype=np.uint64))


def key(number: int) -> str:
    return int(number).to_bytes(8, "little").decode("latin-1")


def buckets(keys: Keys) -> dict[int, list[int]]:
    """Rows that bear each key, ascending."""
    found: dict[int, list[int]] = defaultdict(list)
    for row, own in enumerate(keys.tolist()):
        for one in sorted({number for number in own if number}):
            found[one].append(row)
    return found


def oracle(keys: Keys, max_bucket: int) -> tuple[list[tuple[int, int]], dict[str, tuple[int, int, int]]]:
    pairs: set[tuple[int, int]] = set()
    large = {}
    for number, rows in buckets(keys).items():
        every = set(combinations(rows, 2))
        kept = {pair for pair in every if len(rows) <= max_bucket or pair[0] in rows[:max_bucket]}
        pairs |= kept
        if len(rows) > max_bucket:
            large[key(number)] = (len(rows), len(kept), len(every) - len(kept))
    return sorted(pairs), large


def listed(found: Candidates) -> list[tuple[int, int]]:
    return list(zip(found.left.tolist(), found.right.tolist(), strict=True))


@given(matrices(), st.integers(1, 10), st.sampled_from([1, 2, 5, 4_000_000]))
def test_against_brute_force(keys: Keys, max_bucket: int, block: int) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(candidates, "_BLOCK", block)
        found = find_candidates(keys, max_bucket)
    pairs, large = oracle(keys, max_bucket)
    assert listed(found) == pairs
    assert len(found) == len(pairs)
    assert {one.key: (one.size, one.compared, one.skipped) for one in found.large} == large
    assert [one.size for one in found.large] == sorted((size for size, *_ in large.values()), reverse=True)
    assert found.skipped == sum(skipped for *_, skipped in large.values())
    for one in found.large:
        assert one.compared + one.skipped == one.size * (one.size - 1) // 2


@given(matrices())
def test_default_is_complete_for_small_buckets(keys: Keys) -> None:
    """No pair without a shared key, and none with one missing."""
    sets = [set(row) - {0} for row in keys.tolist()]
    wanted = [pair for pair in combinations(range(len(sets)), 2) if sets[pair[0]] & sets[pair[1]]]
    found = find_candidates(keys)
    assert listed(found) == wanted
    assert found.large == ()


@given(matrices(), st.integers(1, 3), st.randoms(use_true_random=False))
def test_rows_with_equal_keys_are_equal(keys: Keys, max_bucket: int, shuffle: Any) -> None:
    """Another order of rows gives the same pairs of rows, as far as buckets are small; counts are always the same."""
    order = list(range(len(keys)))
    shuffle.shuffle(order)
    moved = find_candidates(keys[order], max_bucket)
    straight = find_candidates(keys, max_bucket)
    assert [(one.size, one.compared, one.skipped) for one in moved.large] == [
        (one.size, one.compared, one.skipped) for one in straight.large
    ]
    back = {tuple(sorted((order[a], order[b]))) for a, b in listed(find_candidates(keys[order], 100))}
    assert back == set(listed(find_candidates(keys, 100)))


@given(matrices(), st.integers(0, 12))
def test_bucket_sizes(keys: Keys, most: int) -> None:
    counts = Counter({key(number): len(rows) for number, rows in buckets(keys).items() if len(rows) > 1})
    found = bucket_sizes(keys, most)
    assert [size for _, size in found] == sorted(counts.values(), reverse=True)[:most]
    assert all(counts[name] == size for name, size in found)
    assert len(dict(found)) == len(found)


def test_a_foreign_row_with_one_key_in_two_bands() -> None:
    """Such keys cannot be ours; a row is never a candidate of itself all the same."""
    found = find_candidates(np.array([[7, 7], [7, 7], [7, 9]], np.uint64))
    assert listed(found) == [(0, 1), (0, 2), (1, 2)]


def test_boilerplate_costs_linear_work(monkeypatch: pytest.MonkeyPatch) -> None:
    """20,000 rows with one common key: each is compared with the 200 first ones, and the rest is counted."""
    rows, most = 20_000, 200
    keys = np.arange(1, 2 * rows + 1, dtype=np.uint64).reshape(rows, 2) << np.uint64(8)
    keys[:, 0] = 5
    made = []
    add = candidates._Distinct.add
    monkeypatch.setattr(
        candidates._Distinct, "add", lambda self, pairs, size: (made.append(len(pairs)), add(self, pairs, size))[1]
    )
    found = find_candidates(keys, most)
    compared = most * (most - 1) // 2 + most * (rows - most)
    assert sum(made) == len(found) == compared
    (bucket,) = found.large
    assert (bucket.key, bucket.size, bucket.compared) == (key(5), rows, compared)
    assert bucket.skipped == found.skipped == rows * (rows - 1) // 2 - compared
    assert set(found.left.tolist()) == set(range(most))
    assert (found.left < found.right).all()
    assert bucket_sizes(keys) == [(key(5), rows)]


def test_repeated_pairs_are_thrown_out_on_the_way(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that share all keys make each pair once for each band; what is held stays near the distinct ones."""
    rows, bands = 60, 30
    keys = np.tile(np.arange(1, bands + 1, dtype=np.uint64), (rows, 1))
    monkeypatch.setattr(candidates, "_BLOCK", 500)
    held = []
    add = candidates._Distinct.add

    def noting(self: Any, pairs: Any, size: int) -> None:
        add(self, pairs, size)
        held.append(self._size)

    monkeypatch.setattr(candidates._Distinct, "add", noting)
    found = find_candidates(keys)
    distinct = rows * (rows - 1) // 2
    assert len(found) == distinct
    assert max(held) <= 2 * distinct + 4 * 500 < bands * distinct
    assert len(held) > 10


def test_no_rows() -> None:
    found = find_candidates(np.zeros((0, 16), np.uint64))
    assert (len(found), found.large, found.skipped) == (0, (), 0)
    assert len(find_candidates(np.zeros((5, 16), np.uint64))) == 0
    assert bucket_sizes(np.zeros((5, 16), np.uint64)) == []
