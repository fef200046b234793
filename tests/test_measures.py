"""Resemblance over many pairs, against Python's sets."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit_tools import set_resemblance, shingle_set, words

from es_neardupe import measures
from es_neardupe.keys import features
from es_neardupe.measures import resemblance, resemblances

SETS = st.lists(st.frozensets(st.integers(0, 12) | st.integers(2**64 - 5, 2**64 - 1), max_size=12), max_size=8)
NONE = np.zeros(0, np.intp)


def arrays(sets: list[frozenset[int]]) -> list[np.ndarray[Any, Any]]:
    return [np.array(sorted(one), np.uint64) for one in sets]


@given(SETS, st.sampled_from([1, 3, 7, 4_000_000]), st.data())
def test_against_sets(sets: list[frozenset[int]], block: int, data: st.DataObject) -> None:
    every = list(product(range(len(sets)), repeat=2))
    pairs = data.draw(st.lists(st.sampled_from(every), max_size=40)) if every else []
    left, right = (np.array([pair[side] for pair in pairs], np.intp) for side in (0, 1))
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(measures, "_BLOCK", block)
        found = resemblances(arrays(sets), left, right)
    assert found.dtype == np.float64
    assert found.tolist() == [set_resemblance(sets[a], sets[b]) for a, b in pairs]


@given(SETS)
def test_one_pair(sets: list[frozenset[int]]) -> None:
    made = arrays(sets)
    for a, b in product(range(len(sets)), repeat=2):
        assert resemblance(made[a], made[b]) == set_resemblance(sets[a], sets[b]) == resemblance(made[b], made[a])


def test_nothing() -> None:
    assert resemblances([], NONE, NONE).tolist() == []
    assert resemblances(arrays([frozenset({1})]), NONE, NONE).tolist() == []


def test_dense_cluster_crossing_blocks(monkeypatch: pytest.MonkeyPatch) -> None:
    """All pairs of 120 texts of one cluster, in pieces far smaller than one text's partners."""
    rng = np.random.default_rng(5)
    core = set(range(1000, 1300))
    sets = [frozenset((core - set(rng.choice(300, 40) + 1000)) | set(rng.integers(0, 999, 30))) for _ in range(120)]
    sets = [frozenset(map(int, one)) for one in sets] + [frozenset()]
    pairs = list(combinations(range(len(sets)), 2))
    left, right = np.array(pairs, np.intp).T
    wanted = [set_resemblance(sets[a], sets[b]) for a, b in pairs]
    monkeypatch.setattr(measures, "_BLOCK", 1000)
    assert resemblances(arrays(sets), left, right).tolist() == wanted
    assert resemblances(arrays(sets), right, left).tolist() == wanted
    assert 0.5 < max(wanted) < 1


@pytest.mark.parametrize(
    ("a", "b", "wanted"),
    [
        ("", "", 1.0),
        ("", "word", 0.0),
        ("one two", "ONE, two!", 1.0),
        ("one two", "two one", 0.0),
        (words(0, 16), f"{words(0, 16)} {words(0, 16)}", 0.75),  # DESIGN 5: a 16-word text pasted twice
        (words(0, 5), words(0, 6), 0.5),  # a 5-word mail and a 6-word reply
        (words(0, 6), words(0, 6), 1.0),
    ],
)
def test_worked_examples(a: str, b: str, wanted: float) -> None:
    one, other = features([a, b], 5)
    assert resemblance(one, other) == wanted
    assert set_resemblance(shingle_set(a), shingle_set(b)) == wanted
