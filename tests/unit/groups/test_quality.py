"""Cohesion of groups, compared with counting by hand."""

from __future__ import annotations

from itertools import combinations, permutations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_neardupe.candidates import pair_arrays
from es_neardupe.groups.linkage import bridges, inner_pairs, judge


@st.composite
def grouped(draw: st.DrawFn) -> tuple[list[list[int]], dict[tuple[int, int], float], list[int]]:
    """Classes in groups, similarities of some of their pairs, documents of each class."""
    size = draw(st.integers(1, 9))
    group_of = draw(st.lists(st.integers(0, 2), min_size=size, max_size=size))
    groups = [[row for row in range(size) if group_of[row] == one] for one in sorted(set(group_of))]
    every = list(combinations(range(size), 2))
    known = draw(st.lists(st.sampled_from(every), unique=True)) if every else []
    values = st.sampled_from([0.1, 0.5, 0.79, 0.8, 0.9, 1.0])
    return (
        groups,
        {pair: draw(values) for pair in known},
        draw(st.lists(st.integers(0, 3), min_size=size, max_size=size)),
    )


def arrays(pairs: Any) -> tuple[Any, Any]:
    return np.array([a for a, _ in pairs], np.intp), np.array([b for _, b in pairs], np.intp)


def as_arrays(groups: list[list[int]]) -> list[Any]:
    return [np.array(one, np.intp) for one in groups]


@given(grouped())
def test_pairs_are_counted_in_documents(made: Any) -> None:
    groups, known, documents = made
    found = judge(
        as_arrays(groups),
        (*arrays(known), np.array(list(known.values()), float)),
        documents=np.array(documents, np.intp),
        minimum=0.8,
    )
    for one, report in zip(groups, found, strict=True):
        pairs = list(combinations(one, 2))
        low = [pair for pair in pairs if pair in known and known[pair] < 0.8]
        open = [pair for pair in pairs if pair not in known]
        assert report.below == sum(documents[a] * documents[b] for a, b in low)
        assert report.not_compared == sum(documents[a] * documents[b] for a, b in open)


@given(grouped(), st.integers(0, 12))
def test_the_pairs_that_are_left(made: Any, maximum: int) -> None:
    groups, known, _ = made
    left, right = inner_pairs(as_arrays(groups), *arrays(known), 9, maximum)
    asked = list(zip(left.tolist(), right.tolist(), strict=True))
    missing = {id(one): [pair for pair in combinations(one, 2) if pair not in known] for one in groups}
    assert len(asked) <= maximum
    assert set(asked) <= {pair for pairs in missing.values() for pair in pairs}
    whole = sum(map(len, missing.values()))
    if whole <= maximum:
        assert sorted(asked) == sorted(pair for pairs in missing.values() for pair in pairs)


@given(st.lists(st.sampled_from([(a, b) for a, b in combinations(range(6), 2)]), unique=True), st.randoms())
def test_bridges_by_trying(pairs: list[tuple[int, int]], dice: Any) -> None:
    """The diameter by all shortest paths, the weakest bridge by removing edges until the group falls apart."""
    links = {pair: dice.choice([0.8, 0.85, 0.9, 1.0]) for pair in [*pairs, *((k, k + 1) for k in range(5))]}
    others = {pair: dice.choice([0.2, 0.9]) for pair in combinations(range(6), 2) if pair not in links}
    every = sorted({**links, **others}.items())
    matches = np.array([pair in links for pair, _ in every])
    values = np.array([value for _, value in every])
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(pair_arrays, "BLOCK", 4)
        (found,) = bridges([np.arange(6)], *arrays([pair for pair, _ in every]), values, matches, size=6)
    assert found.diameter == max(len(path(links, a, b)) - 1 for a, b in combinations(range(6), 2))
    weakest = max(
        level
        for level in links.values()
        if all(path({pair: s for pair, s in links.items() if s >= level}, 0, row) for row in range(6))
    )
    assert found.weakest == pytest.approx(weakest)


def path(links: Any, start: int, end: int) -> list[int]:
    """A shortest path, by breadth."""
    paths, seen = [[start]], {start}
    while paths:
        if done := [one for one in paths if one[-1] == end]:
            return done[0]
        paths = [[*one, row] for one in paths for row in range(6) if tuple(sorted((one[-1], row))) in links]
        paths = [one for one in paths if one[-1] not in seen and not seen.add(one[-1])]  # type: ignore[func-returns-value]  # None is meant
    return []


def test_pairs_without_groups() -> None:
    """Candidates of which none matches."""
    left, right = arrays([(0, 1), (1, 2)])
    assert [side.tolist() for side in inner_pairs([], left, right, 3)] == [[], []]
    assert list(judge([], (left, right, np.zeros(2)), documents=np.ones(3, np.intp), minimum=0.8)) == []


def test_groups_of_one_text_hang_together() -> None:
    (found,) = bridges([np.array([3])], *arrays([]), np.zeros(0), np.zeros(0, np.bool_), size=5)
    assert (found.diameter, found.weakest) == (0, 1.0)


def test_permutations_of_groups_change_nothing() -> None:
    groups = [[0, 3], [1, 2, 4], [5]]
    pairs = {(0, 3): 0.9, (1, 2): 0.7, (1, 4): 0.85}
    for order in permutations(groups):
        values = np.array(list(pairs.values()))
        found = judge(as_arrays(list(order)), (*arrays(pairs), values), documents=np.ones(6, np.intp), minimum=0.8)
        by_group = {tuple(one): (two.below, two.not_compared) for one, two in zip(order, found, strict=True)}
        assert by_group == {(0, 3): (0, 0), (1, 2, 4): (1, 1), (5,): (0, 0)}
