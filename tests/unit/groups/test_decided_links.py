"""Linkage under decisions of reviewers: an independent model, and what every linkage guarantees."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Mapping
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_neardupe.groups.build import LINK
from es_neardupe.groups.decided_links import DecidedClasses, LinkedByDecisions, Matches, link_decided
from es_neardupe.groups.decisions import PairDecisions, Verdict
from es_neardupe.keys.arrays import Flags, Positions
from es_neardupe.keys.text import contents, packed_hashes
from es_neardupe.options import Linkage

Pair = tuple[int, int]
Graph = tuple[int, list[Pair], list[Pair], list[Pair]]


@st.composite
def graphs(draw: st.DrawFn) -> Graph:
    """A number of classes, their matches, and pairs decided to be the same and to be different."""
    size = draw(st.integers(2, 8))
    every = list(combinations(range(size), 2))
    kinds = draw(st.lists(st.sampled_from(".ms-MD"), min_size=len(every), max_size=len(every)))
    of = {kind: [pair for pair, one in zip(every, kinds, strict=True) if one == kind] for kind in ".ms-MD"}
    return size, sorted(of["m"] + of["M"] + of["D"]), sorted(of["s"] + of["M"]), sorted(of["-"] + of["D"])


def sides(pairs: list[Pair]) -> tuple[Any, Any]:
    return np.array([a for a, _ in pairs], np.intp), np.array([b for _, b in pairs], np.intp)


def decided(size: int, same: list[Pair], different: list[Pair]) -> DecidedClasses:
    apart: Mapping[int, set[int]] = defaultdict(set)
    label = np.full(size, -1, np.int32)
    for one, other in different:
        label[one], label[other] = one, other
        apart[one].add(other)
        apart[other].add(one)
    numbers = np.arange(len(same))
    kept = {one: frozenset(others) for one, others in apart.items()}
    return DecidedClasses(*sides(same), numbers, numbers, len(different), label, kept)


def none(left: Positions, right: Positions) -> Flags:
    return np.zeros(len(left), np.bool_)


def linked(linkage: Linkage, graph: Graph, values: list[float] | None = None) -> LinkedByDecisions:
    size, pairs, same, different = graph
    plain = LINK[linkage](size, *sides(pairs))
    matches = Matches(*sides(pairs), np.array(values or [0.9] * len(pairs)))
    return link_decided(linkage, plain, matches, decided(size, same, different), order=np.arange(size), compare=none)


def stars(graph: Graph) -> list[int]:
    """Another implementation of star linkage with decisions: sets of sets, in the order of principals."""
    size, pairs, same, different = graph
    units = [{row} for row in range(size)]
    for one, other in same:
        first, second = next(u for u in units if one in u), next(u for u in units if other in u)
        if first is not second and not any(split(first, second, pair) for pair in different):
            units.remove(second)
            first |= second
    waiting = sorted(units, key=min)
    principal = list(range(size))
    while waiting:
        group = set(waiting.pop(0))
        leader = min(group)
        for row in range(leader + 1, size):
            unit = next((one for one in waiting if row in one), set())
            if unit and (leader, row) in pairs and not any(split(group, unit, pair) for pair in different):
                group |= unit
                waiting.remove(unit)
        for row in group:
            principal[row] = leader
    return principal


def split(one: set[int], other: set[int], pair: Pair) -> bool:
    return (pair[0] in one and pair[1] in other) or (pair[1] in one and pair[0] in other)


@given(graphs())
def test_stars_are_those_of_the_model(graph: Graph) -> None:
    """Although only clusters with a contradiction are linked again."""
    assert linked(Linkage.STAR, graph).principal.tolist() == stars(graph)


@pytest.mark.parametrize("linkage", list(Linkage))
@given(graph=graphs(), shuffle=st.randoms(use_true_random=False))
def test_what_every_linkage_guarantees(linkage: Linkage, graph: Graph, shuffle: random.Random) -> None:
    size, pairs, same, different = graph
    values = [0.8 + 0.01 * k for k in range(len(pairs))]
    shuffle.shuffle(values)
    found = linked(linkage, graph, values)
    principal = found.principal.tolist()
    assert all(principal[principal[row]] == principal[row] <= row for row in range(size))
    assert all(principal[one] != principal[other] for one, other in different)
    apart = [(one, other) for one, other in same if principal[one] != principal[other]]
    places = decided(size, same, different).unsatisfied(found.principal).tolist()
    assert [same[place] for place in places] == apart
    assert [same[k] for k in found.joined.tolist()] == [pair for pair in same if pair not in apart]
    if not different:
        assert not apart
    if not same and not different:
        assert principal == LINK[linkage](size, *sides(pairs)).tolist()
    order = list(range(len(pairs)))
    shuffle.shuffle(order)
    again = (size, [pairs[k] for k in order], same, different)
    assert linked(linkage, again, [values[k] for k in order]).principal.tolist() == principal
    for one, other in combinations(range(size), 2):
        if linkage is Linkage.COMPLETE and principal[one] == principal[other] and not same:
            assert (one, other) in pairs


def test_a_unit_joins_a_star_whole() -> None:
    """Texts 1 and 2 are the same, and 2 matches nothing: it is in the group of 0, held by the decision. Text 3 must be
    apart from 2, so it founds its own group, although it matches 0."""
    found = linked(Linkage.STAR, (4, [(0, 1), (0, 3)], [(1, 2)], [(2, 3)]))
    assert found.principal.tolist() == [0, 0, 0, 3]


def test_decisions_that_contradict_each_other() -> None:
    """0 and 1 are the same, 1 and 2 as well, but 0 and 2 different: *different* holds, one *same* does not."""
    found = linked(Linkage.STAR, (3, [(0, 1), (0, 2), (1, 2)], [(0, 1), (1, 2)], [(0, 2)]))
    assert found.principal.tolist() == [0, 0, 2]


def test_a_chain_breaks_at_its_weakest_link() -> None:
    found = linked(Linkage.CHAIN, (4, [(0, 1), (1, 2), (2, 3)], [], [(0, 3)]), [0.9, 0.8, 0.95])
    assert found.principal.tolist() == [0, 0, 2, 2]


@given(
    st.dictionaries(
        st.tuples(st.integers(0, 9), st.integers(0, 9)).filter(lambda pair: pair[0] < pair[1]),
        st.sampled_from([Verdict.SAME, Verdict.DIFFERENT]),
    ),
    st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9))),
)
def test_verdicts_about_pairs(decided: dict[tuple[int, int], Verdict], asked: list[tuple[int, int]]) -> None:
    """In either order of the two texts; hashes that end with zeros are no others."""
    hashes = sorted([*contents([str(n) for n in range(8)]), "00" * 16, "01" + "00" * 15])
    found = PairDecisions.of({(hashes[a], hashes[b]): {"ann": verdict} for (a, b), verdict in decided.items()})
    packed = packed_hashes(hashes)
    left, right = (packed[[pair[side] for pair in asked]] for side in (0, 1))
    numbers = {None: 0, Verdict.SAME: 1, Verdict.DIFFERENT: 2}
    expected = [numbers[decided.get((min(pair), max(pair)))] for pair in asked]
    assert found.verdicts(left, right).tolist() == expected


def test_reviewers_who_disagree_decide_nothing() -> None:
    a, b, c = sorted(contents(["one", "two", "three"]))
    both = {"ann": Verdict.SAME, "bob": Verdict.DIFFERENT}
    agreed = {"ann": Verdict.DIFFERENT, "bob": Verdict.DIFFERENT}
    found = PairDecisions.of({(a, b): both, (a, c): agreed})
    assert (len(found), found.disputed, found.same.tolist()) == (1, 1, [False])
    assert found.low.tolist() == [bytes.fromhex(a).rstrip(b"\0")]
    assert found.high.tolist() == [bytes.fromhex(c).rstrip(b"\0")]
