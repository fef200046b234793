"""Star groups: examples by hand, the definition in plain Python, and what they promise."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterator
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from star_model import star_model

from es_neardupe.groups import stars
from es_neardupe.groups.stars import Graph, Matches, star
from es_neardupe.options import MeasureName

Similar = dict[tuple[int, int], float]


@pytest.fixture(params=["C", "Python"], autouse=True, scope="module")
def loops(request: pytest.FixtureRequest) -> Iterator[None]:
    """The exchange in both languages."""
    with pytest.MonkeyPatch.context() as patched:
        if request.param == "C":
            request.getfixturevalue("built_kernel")
        else:
            patched.setattr(stars, "kernel", None)
        yield


def found(matches: Similar, documents: list[int], measure: str = MeasureName.RESEMBLANCE) -> list[int]:
    left, right = (np.array([pair[side] for pair in matches], np.int32) for side in (0, 1))
    similarity = np.array(list(matches.values()), np.float64)
    principal: list[int] = star(Matches(left, right, similarity), np.array(documents, np.int32), measure).tolist()
    return principal


@st.composite
def graphs(draw: st.DrawFn, most: int = 12) -> tuple[Similar, list[int]]:
    size = draw(st.integers(1, most))
    every = list(combinations(range(size), 2))
    dice = random.Random(draw(st.integers(0, 2**32)))
    share = draw(st.sampled_from((0.15, 0.3, 0.5, 0.8)))
    levels = draw(st.sampled_from((3, 1000)))
    matches = {pair: 1 - dice.randrange(levels) / 5000 for pair in every if dice.random() < share}
    return matches, [dice.choice((1, 1, 1, 2, 3)) for _ in range(size)]


def kept_apart(matches: Similar, apart: list[tuple[int, int]], size: int) -> list[int]:
    left, right = (np.array([pair[side] for pair in matches], np.int32) for side in (0, 1))
    similarity = np.array(list(matches.values()), np.float64)
    pairs = tuple(np.array([pair[side] for pair in apart], np.int32) for side in (0, 1))
    principal: list[int] = star(
        Matches(left, right, similarity), np.ones(size, np.int32), MeasureName.RESEMBLANCE, (pairs[0], pairs[1])
    ).tolist()
    return principal


@pytest.mark.parametrize(
    ("matches", "apart", "principal"),
    [
        pytest.param({(0, 2): 0.9, (1, 2): 0.85}, [(0, 1)], [0, 1, 0], id="the nearer one stays"),
        pytest.param({(0, 2): 0.9, (1, 2): 0.9}, [(1, 0)], [0, 1, 0], id="of two equal ones the first"),
        pytest.param(
            {(0, 4): 0.9, (1, 4): 0.9, (2, 4): 0.85, (3, 4): 0.85, (0, 1): 0.9, (2, 3): 0.9},
            [(0, 2), (0, 3), (1, 2), (1, 3)],
            [0, 0, 2, 2, 0],
            id="those that leave make a group",
        ),
        pytest.param({(0, 1): 0.9}, [(2, 3)], [0, 0, 2, 3], id="no group has such a pair"),
    ],
)
def test_other_facts_by_hand(matches: Similar, apart: list[tuple[int, int]], principal: list[int]) -> None:
    assert kept_apart(matches, apart, len(principal)) == principal


@given(graphs(), st.randoms(use_true_random=False))
def test_no_group_has_a_pair_that_is_apart(graph: tuple[Similar, list[int]], dice: random.Random) -> None:
    """Each member matches its principal, and a text that leaves a group joins another one if it may."""
    matches, documents = graph
    size = len(documents)
    apart = [one for one in combinations(range(size), 2) if one not in matches and dice.random() < 0.5]
    principal = kept_apart(matches, apart, size)
    assert not any(principal[one] == principal[other] for one, other in apart)
    for text, first in enumerate(principal):
        assert text == first or (min(text, first), max(text, first)) in matches
    assert kept_apart(matches, [], size) == found(matches, [1] * size)
    exchanged = [(other, one) for one, other in reversed(apart)]
    assert kept_apart(matches, exchanged, size) == principal


@pytest.mark.parametrize(
    ("matches", "principal"),
    [
        pytest.param({(0, 1): 0.81, (1, 2): 0.97}, [1, 1, 1], id="the middle one"),
        pytest.param({(0, 1): 0.85, (1, 2): 0.9, (2, 3): 0.82}, [0, 0, 2, 2], id="two pairs"),
        pytest.param({(0, 1): 0.9, (0, 2): 0.9, (0, 3): 0.95, (3, 4): 0.81}, [0, 0, 0, 3, 3], id="nobody is alone"),
    ],
)
def test_examples_by_hand(matches: Similar, principal: list[int]) -> None:
    assert found(matches, [1] * len(principal)) == principal


def test_copies_of_a_text_are_not_alone() -> None:
    """Text 3 leaves the large group for a document that is alone, but not for two copies of a text."""
    near = {(0, other): 0.95 for other in (1, 2, 3, 5, 6)}
    matches = near | {(1, 2): 0.8, (1, 3): 0.8, (2, 3): 0.8, (3, 4): 0.8}
    assert found(matches, [1] * 7) == [0, 0, 0, 3, 3, 0, 0]
    assert found(matches, [1, 1, 1, 1, 2, 1, 1]) == [0, 0, 0, 0, 4, 0, 0]


def test_by_containment_the_longest_texts_stay_principals() -> None:
    """A short passage (2) is in two long texts that have nothing in common."""
    matches = {(0, 2): 0.9, (1, 2): 0.95}
    assert found(matches, [1, 1, 1], MeasureName.CONTAINMENT) == [0, 1, 1]
    assert found(matches, [1, 1, 1]) == [2, 2, 2]


@given(graphs())
def test_the_groups_are_those_of_the_definition(graph: tuple[Similar, list[int]]) -> None:
    matches, documents = graph
    assert found(matches, documents) == star_model(matches, documents)
    assert found(matches, documents, MeasureName.CONTAINMENT) == star_model(matches, documents, containment=True)


@given(graphs(most=40), st.randoms(use_true_random=False))
def test_what_they_promise(graph: tuple[Similar, list[int]], shuffle: random.Random) -> None:
    """Every member matches the principal, and no text that matches all members comes before it. The order of the pairs
    is without meaning, and other texts in between change nothing."""
    matches, documents = graph
    principal = found(matches, documents)
    near = {text: {other for pair in matches if text in pair for other in pair} for text in range(len(documents))}
    for text, first in enumerate(principal):
        assert principal[first] == first
        assert text == first or text in near[first]
        members = [other for other, one in enumerate(principal) if one == first]
        assert not any(set(members) <= near[other] for other in members if other < first)
    pairs = list(matches.items())
    shuffle.shuffle(pairs)
    assert found(dict(pairs), documents) == principal
    place = sorted(shuffle.sample(range(len(documents) + 5), len(documents)))
    wide = found({(place[a], place[b]): value for (a, b), value in pairs}, _spread(documents, place))
    assert [wide[at] for at in place] == [place[one] for one in principal]
    assert all(wide[at] == at for at in range(len(wide)) if at not in place)


def _spread(documents: list[int], place: list[int]) -> list[int]:
    at = dict(zip(place, documents, strict=True))
    return [at.get(number, 1) for number in range(len(documents) + 5)]


@given(graphs(), graphs())
def test_clusters_do_not_influence_each_other(one: tuple[Similar, list[int]], other: tuple[Similar, list[int]]) -> None:
    (matches, documents), (more, others) = one, other
    size = len(documents)
    both = matches | {(a + size, b + size): value for (a, b), value in more.items()}
    wanted = [*found(matches, documents), *(text + size for text in found(more, others))]
    assert found(both, documents + others) == wanted


def test_many_clusters_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    dice = random.Random(5)
    matches: Similar = {}
    for first in range(0, 2000, 10):
        for pair in combinations(range(first, first + 10), 2):
            if dice.random() < 0.3:
                matches[pair] = dice.randrange(800, 1000) / 1000
    whole = found(matches, [1] * 2000)
    monkeypatch.setattr(stars, "_PORTION", 50)
    assert found(matches, [1] * 2000) == whole
    monkeypatch.setattr("es_neardupe.candidates.pair_arrays.BLOCK", 7)
    assert found(matches, [1] * 2000) == whole
    assert max(Counter(whole).values()) > 2


def test_dense_clusters_are_not_exchanged(monkeypatch: pytest.MonkeyPatch) -> None:
    matches = {(0, 1): 0.9, (0, 2): 0.9, (0, 3): 0.95, (3, 4): 0.81}
    monkeypatch.setattr(stars, "WORK", 9 + 1 + 1 + 4 + 1)
    assert found(matches, [1] * 5) == [0, 0, 0, 3, 3]
    monkeypatch.setattr(stars, "WORK", 9 + 1 + 1 + 4)
    assert found(matches, [1] * 5) == [0, 0, 0, 0, 4]


@pytest.mark.parametrize(
    ("starts", "bounds", "near", "centre"),
    [
        pytest.param([0, 2], [0, 1, 3], [1, 0], [0, 0], id="beyond the matches"),
        pytest.param([0, 2], [0, 1, 1], [1, 0], [0, 0], id="not all matches"),
        pytest.param([0, 2], [0, 3, 2], [1, 0], [0, 0], id="backwards"),
        pytest.param([0, 3], [0, 1, 2], [1, 0], [0, 0], id="beyond the texts"),
        pytest.param([1, 2], [0, 1, 2], [1, 0], [0, 0], id="not all texts"),
        pytest.param([0, 1, 2], [0, 1, 2], [1, 0], [0, 1], id="a match in another cluster"),
        pytest.param([0, 2], [0, 1, 2], [1, 7], [0, 0], id="no such text"),
        pytest.param([0, 2], [0, 1, 2], [1, -1], [0, 0], id="a negative text"),
        pytest.param([0, 2], [0, 1, 2], [0, 0], [0, 0], id="a text that matches itself"),
        pytest.param([0, 2], [0, 2, 3], [1, 1, 0], [0, 0], id="a match twice"),
        pytest.param([0, 2], [0, 1, 2], [1, 0], [0, 5], id="no such centre"),
        pytest.param([0, 2], [0, 1, 2], [1, 0], [1, 0], id="a centre of another one"),
        pytest.param([0, 2], [0, 0, 0], [], [0, 0], id="a centre that is no match"),
        pytest.param([], [0], [], [], id="no clusters"),
    ],
)
def test_arrays_that_do_not_fit(starts: list[int], bounds: list[int], near: list[int], centre: list[int]) -> None:
    if stars.kernel is None:
        pytest.skip("only the module in C can be given such arrays")
    texts = np.array(near, np.int32)
    graph = Graph(np.array(bounds, np.int64), texts, np.ones_like(texts))
    with pytest.raises(ValueError, match="do not fit"):
        stars.exchange(np.array(starts, np.int64), graph, np.ones(len(centre), np.int32), np.array(centre, np.int32))
