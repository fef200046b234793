"""Linkage under decisions of reviewers: an independent model, and what every linkage guarantees."""

from __future__ import annotations

import random
from collections import defaultdict
from collections.abc import Iterator, Mapping
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from star_model import clusters, star_model

from es_neardupe.groups.decided_links import DecidedClasses, LinkedByDecisions, link_decided
from es_neardupe.groups.decisions import PairDecisions, Verdict
from es_neardupe.groups.linkage import principals_by
from es_neardupe.groups.stars import Matches
from es_neardupe.keys.arrays import Flags, Numbers, Positions
from es_neardupe.keys.text import contents, packed_hashes
from es_neardupe.options import Linkage, MeasureName

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


def plain(linkage: Linkage, graph: Graph, values: list[float]) -> Numbers:
    """The principals without decisions."""
    size, pairs, _, _ = graph
    matches = Matches(*sides(pairs), np.array(values))
    return principals_by(linkage, matches, np.ones(size, np.int32), MeasureName.RESEMBLANCE)


def linked(linkage: Linkage, graph: Graph, values: list[float] | None = None) -> LinkedByDecisions:
    size, pairs, same, different = graph
    values = values or [0.9] * len(pairs)
    matches = Matches(*sides(pairs), np.array(values))
    by_rules, measure = plain(linkage, graph, values), MeasureName.RESEMBLANCE
    decisions = decided(size, same, different)
    return link_decided(linkage, by_rules, matches, decisions, measure, order=np.arange(size), compare=none)


def varied(pairs: list[Pair], shuffle: random.Random) -> list[float]:
    values = [0.8 + 0.01 * k for k in range(len(pairs))]
    shuffle.shuffle(values)
    return values


def stars(graph: Graph, values: list[float]) -> list[int]:
    """Another implementation of star linkage with decisions, by sets."""
    size, pairs, same, different = graph
    similarity = dict(zip(pairs, values, strict=True))
    principal = star_model(similarity, [1] * size)
    near: list[dict[int, float]] = [{} for _ in range(size)]
    for (one, other), value in similarity.items():
        near[one][other] = near[other][one] = value
    connected: list[dict[int, float]] = [dict(some) for some in near]
    for one, other in same:
        connected[one][other] = connected[other][one] = 0
    for cluster in clusters(connected):
        inside = [pair for pair in same if pair[0] in cluster]
        if any(principal[one] != principal[other] for one, other in inside) or any(
            principal[one] == principal[other] for one, other in different if one in cluster
        ):
            for centre, group in units_joined(cluster, near, inside, different):
                reached = {centre, *(group & near[centre].keys())}
                first = min(text for text in reached if reached <= {text, *near[text]})
                for text in group:
                    principal[text] = first
    return principal


def units_joined(
    cluster: list[int], near: list[dict[int, float]], same: list[Pair], different: list[Pair]
) -> Iterator[tuple[int, set[int]]]:
    """The centre and the texts of each group of a cluster with a contradiction."""
    units = [{text} for text in cluster]
    for one, other in same:
        first, second = next(u for u in units if one in u), next(u for u in units if other in u)
        if first is not second and not any(split(first, second, pair) for pair in different):
            units.remove(second)
            first |= second
    while units:
        groups: dict[int, set[int]] = {}
        for text in sorted(set().union(*units), key=lambda one: (-len(near[one]), one)):
            unit = next(one for one in units if text in one)
            reached = [centre for centre in groups if any(centre in near[one] for one in unit)]
            able = [one for one in reached if not any(split(groups[one], unit, pair) for pair in different)]
            if not able and not unit & groups.keys():
                groups[text] = set(unit)
        units = [unit for unit in units if not unit & groups.keys()]
        every = [
            (-near[text][centre], centre, text)
            for centre in groups
            for unit in units
            for text in unit & near[centre].keys()
        ]
        for _, centre, text in sorted(every):
            unit = next((one for one in units if text in one), set())
            if unit and not any(split(groups[centre], unit, pair) for pair in different):
                groups[centre] |= unit
                units.remove(unit)
        yield from groups.items()


def split(one: set[int], other: set[int], pair: Pair) -> bool:
    return (pair[0] in one and pair[1] in other) or (pair[1] in one and pair[0] in other)


@given(graphs(), st.randoms(use_true_random=False))
def test_stars_are_those_of_the_model(graph: Graph, shuffle: random.Random) -> None:
    """Only clusters with a contradiction are linked again."""
    values = varied(graph[1], shuffle)
    assert linked(Linkage.STAR, graph, values).principal.tolist() == stars(graph, values)


@pytest.mark.parametrize("linkage", list(Linkage))
@given(graph=graphs(), shuffle=st.randoms(use_true_random=False))
def test_what_every_linkage_guarantees(linkage: Linkage, graph: Graph, shuffle: random.Random) -> None:
    size, pairs, same, different = graph
    values = varied(pairs, shuffle)
    found = linked(linkage, graph, values)
    principal = found.principal.tolist()
    assert all(principal[principal[row]] == principal[row] for row in range(size))
    held = {text for pair in same for text in pair}
    near = {*pairs, *((b, a) for a, b in pairs), *((row, row) for row in range(size))}
    assert linkage is not Linkage.STAR or all((row, principal[row]) in near for row in range(size) if row not in held)
    assert all(principal[one] != principal[other] for one, other in different)
    apart = [(one, other) for one, other in same if principal[one] != principal[other]]
    places = decided(size, same, different).unsatisfied(found.principal).tolist()
    assert [same[place] for place in places] == apart
    assert [same[k] for k in found.joined.tolist()] == [pair for pair in same if pair not in apart]
    if not different:
        assert not apart
    if not same and not different:
        assert principal == plain(linkage, graph, values).tolist()
    order = list(range(len(pairs)))
    shuffle.shuffle(order)
    again = (size, [pairs[k] for k in order], same, different)
    assert linked(linkage, again, [values[k] for k in order]).principal.tolist() == principal
    for one, other in combinations(range(size), 2):
        if linkage is Linkage.COMPLETE and principal[one] == principal[other] and not same:
            assert (one, other) in pairs


def test_a_unit_joins_a_star_whole() -> None:
    """Texts 1 and 2 are the same, and 2 matches nothing: it is in the group of 0, held by the decision. Text 3 must be
    apart from 2, so it is alone, although it matches 0."""
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
