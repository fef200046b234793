"""Linkage of pairs to groups, and group ids that stay, wherever a run is killed."""

from __future__ import annotations

import random
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from group_world import World, worlds
from hypothesis import given
from hypothesis import strategies as st

from es_neardupe.candidates.pair_arrays import components
from es_neardupe.columns import RowLists
from es_neardupe.groups.linkage import assign_ids, chain, complete
from es_neardupe.groups.write import changes
from es_neardupe.index.stored_fields import own_group
from es_neardupe.records import Grouping

Pairs = list[tuple[int, int]]


@st.composite
def graphs(draw: st.DrawFn) -> tuple[int, Pairs]:
    size = draw(st.integers(0, 10))
    every = list(combinations(range(size), 2))
    return size, draw(st.lists(st.sampled_from(every), unique=True)) if every else []


def sides(pairs: Pairs) -> tuple[Any, Any]:
    return np.array([a for a, _ in pairs], np.intp), np.array([b for _, b in pairs], np.intp)


@given(graphs())
def test_complete_takes_who_fits_all_before(graph: tuple[int, Pairs]) -> None:
    """All members of a group match each other; a class outside did not match all members when it was processed."""
    size, pairs = graph
    principal = complete(size, *sides(pairs)).tolist()
    linked = set(pairs)
    groups = {one: [row for row in range(size) if principal[row] == one] for one in set(principal)}
    for one, rows in groups.items():
        assert rows[0] == one
        assert all(pair in linked for pair in combinations(rows, 2))
    for row in range(size):
        for one, rows in groups.items():
            if one < principal[row]:
                assert any((earlier, row) not in linked for earlier in rows if earlier < row)


@given(graphs(), st.randoms(use_true_random=False))
def test_linkages_depend_on_the_set_of_pairs(graph: tuple[int, Pairs], shuffle: random.Random) -> None:
    size, pairs = graph
    shuffled = [*pairs, *pairs[:2]]
    shuffle.shuffle(shuffled)
    for link in (chain, complete):
        assert link(size, *sides(shuffled)).tolist() == link(size, *sides(pairs)).tolist()


@given(graphs(), st.integers(1, 5), st.randoms(use_true_random=False))
def test_others_in_between_change_nothing(graph: tuple[int, Pairs], more: int, shuffle: random.Random) -> None:
    """Classes without a match may be anywhere in the order; only the order of the others matters."""
    size, pairs = graph
    place = sorted(shuffle.sample(range(size + more), size))
    moved = [(place[a], place[b]) for a, b in pairs]
    for link in (chain, complete):
        straight, wide = link(size, *sides(pairs)).tolist(), link(size + more, *sides(moved)).tolist()
        assert [wide[at] for at in place] == [place[one] for one in straight]
        assert all(wide[at] == at for at in range(size + more) if at not in place)


def union_find(size: int, pairs: Pairs) -> list[int]:
    parent = list(range(size))

    def root(one: int) -> int:
        while parent[one] != one:
            one = parent[one]
        return one

    for a, b in pairs:
        low, high = sorted((root(a), root(b)))
        parent[high] = low
    return [root(one) for one in range(size)]


@given(graphs())
def test_chain_is_union_find(graph: tuple[int, Pairs]) -> None:
    size, pairs = graph
    wanted = union_find(size, pairs)
    assert chain(size, *sides(pairs)).tolist() == wanted
    numbers = components(size, *sides(pairs)).tolist()
    assert all((numbers[a] == numbers[b]) == (wanted[a] == wanted[b]) for a, b in combinations(range(size), 2))


# -- ids ---------------------------------------------------------------------------------------------------------------


def ids_of(members: list[list[int]], stored: Sequence[str | None], principals: Iterable[int] = ()) -> list[str]:
    """Ids of groups given as lists of rows; new ones are named n<first row>."""
    made = assign_ids(
        RowLists.of(members),
        np.array([(id or "").encode() for id in stored], "S16"),
        np.isin(np.arange(len(stored)), list(principals)),
        lambda row, attempt: f"n{row}.{attempt}",
    )
    assert len(made) == len(members)
    return [id.decode() for id in made.tolist()]


@pytest.mark.parametrize(
    ("members", "stored", "principals", "wanted"),
    [
        ([[0], [1, 2]], [None] * 3, (), ["n0.0", "n1.0"]),
        ([[0, 1], [2]], ["A", "A", "B"], (0, 2), ["A", "B"]),  # nothing changed
        ([[0, 1, 2]], ["A", "A", None], (0,), ["A"]),  # one more
        ([[2, 0, 1]], ["A", "A", None], (0,), ["A"]),  # one more, longer than all
        ([[0, 1, 2]], ["A", "B", "B"], (0, 1), ["B"]),  # merged: the larger one's id
        ([[0, 1, 2, 3]], ["A", "A", "B", "B"], (0, 2), ["A"]),  # equal: that of the principal
        ([[2, 0, 1, 3]], ["A", "A", "B", "B"], (0, 2), ["B"]),
        ([[1], [0, 2, 3]], ["A"] * 4, (1,), ["A", "n0.0"]),  # split: the part with the principal
        ([[1], [0, 2, 3]], ["A"] * 4, (), ["n1.0", "A"]),  # the principal was deleted: the larger part
        ([[0, 1], [2, 3]], ["A"] * 4, (), ["A", "n2.0"]),  # equal parts: the first
        ([[0], [1, 2]], ["n1.0", None, None], (), ["n1.0", "n1.1"]),  # others have the founder's id
        ([[0, 1], [2, 3]], ["A", "B", "B", "B"], (0, 2), ["A", "B"]),  # joins without taking the id along
    ],
)
def test_which_id(members: list[list[int]], stored: Sequence[str | None], principals: Any, wanted: list[str]) -> None:
    assert ids_of(members, stored, principals) == wanted


def test_reserved_ids_found_no_group() -> None:
    stored, led = np.zeros(1, "S16"), np.zeros(1, np.bool_)
    made = assign_ids(RowLists.of([[0]]), stored, led, lambda _, attempt: f"n{attempt}", reserved=[b"n0", b"n1"])
    assert made.tolist() == [b"n2"]


@st.composite
def partitions(draw: st.DrawFn) -> tuple[list[list[int]], list[str | None], set[int]]:
    size = draw(st.integers(1, 9))
    label = draw(st.lists(st.integers(0, 4), min_size=size, max_size=size))
    groups: dict[int, list[int]] = defaultdict(list)
    for row in draw(st.permutations(range(size))):
        groups[label[row]].append(row)
    pool = st.sampled_from([None, "A", "B", "C", "n0.0", "n1.0"])
    stored = draw(st.lists(pool, min_size=size, max_size=size))
    return list(groups.values()), stored, draw(st.sets(st.integers(0, size - 1)))


@given(partitions())
def test_ids_are_unique_and_earned(case: tuple[list[list[int]], list[str | None], set[int]]) -> None:
    members, stored, principals = case
    made = ids_of(members, stored, principals)
    assert len(set(made)) == len(made)
    assert made == ids_of(members, stored, principals)
    bearers = {id: {g for g, rows in enumerate(members) if id in [stored[row] for row in rows]} for id in stored if id}
    for group, id in enumerate(made):
        if not id.startswith("n"):
            assert group in bearers[id]
        else:  # founded, or kept: none of its ids is unused
            left_over = {stored[row] for row in members[group]} - {None} - set(made)
            assert not left_over or id in {stored[row] for row in members[group]}
    for id, groups in bearers.items():
        if id not in made:  # no group keeps it: all groups with it kept another id
            assert all(made[group] in {stored[row] for row in members[group]} for group in groups)
    for id in bearers:
        holders = {g for g, rows in enumerate(members) for row in rows if row in principals and stored[row] == id}
        if id in made and len(holders) == 1:
            (holder,) = holders
            keeper = made.index(id)
            # the part with the former principal has the id, or kept another that it held as well
            assert keeper == holder or any(made[holder] == stored[row] for row in members[holder] if row in principals)


# -- a run may be killed anywhere ------------------------------------------------------------------------------------


@pytest.mark.parametrize("cases", [300, pytest.param(1500, marks=pytest.mark.long)])
def test_killed_anywhere_the_next_run_ends_in_the_same_state(cases: int) -> None:
    """Principals are written first (see `write_groups`); apart from that any part of the writes may have happened."""
    interrupted = 0
    for world, dice in worlds(cases):
        wanted = world.wanted()
        world.register(wanted)
        for _ in range(3):  # killed several times over
            todo = changes(world.corpus(), wanted)
            first = [row for row, grouping in todo.items() if grouping.principal]
            rest = [row for row in todo if row not in first]
            done = dice.sample(first, dice.randint(0, len(first)))
            if len(done) == len(first):
                done += dice.sample(rest, dice.randint(0, len(rest)))
            interrupted += 0 < len(done) < len(todo)
            for row in done:
                world.stored[row] = wanted[row]
            assert world.wanted() == wanted
    assert interrupted > cases / 2


def test_why_principals_are_written_first() -> None:
    """The only order that loses an id: the former principal is overwritten before the new one is written.

    Group A falls in two: its principal 0 with the new, longer 1, and the larger rest. Once 0 is no principal any
    more, nothing tells where A belongs, and the rule of most bearers gives it to the rest.
    """
    members, stored = [[1, 0], [2, 3, 4]], ["A"] * 5
    assert ids_of(members, stored, {0}) == ["A", "n2.0"]
    assert ids_of(members, stored, {0, 1}) == ["A", "n2.0"]
    assert ids_of(members, stored, {1}) == ["A", "n2.0"]
    assert ids_of(members, stored, set()) == ["n1.0", "A"]


def test_a_second_run_writes_nothing() -> None:
    for world, _ in worlds(300):
        wanted = world.wanted()
        world.register(wanted)
        assert changes(world.corpus(), wanted.only(np.zeros(0, np.intp))) == {}
        for row, grouping in wanted.items():
            world.stored[row] = grouping
        assert world.wanted() == wanted
        assert changes(world.corpus(), world.wanted()) == {}


def test_every_present_document_is_in_one_group() -> None:
    for world, _ in worlds(300):
        wanted = world.wanted()
        world.register(wanted)
        assert set(wanted) == set(range(len(world.stored))) - world.gone
        grouped = Counter(one.group for one in wanted.values())
        for row in world.changed - world.gone:
            assert (grouped[wanted[row].group], wanted[row].principal, wanted[row].similarity) == (1, True, 1)
        wanted = wanted.only(np.array(sorted(set(wanted) - world.changed), np.intp))
        by_group = defaultdict(list)
        for row, grouping in wanted.items():
            by_group[grouping.group].append(row)
        class_of = {row: number for number, rows in enumerate(world.classes) for row in rows}
        for rows in by_group.values():
            assert len({world.principal[class_of[row]] for row in rows}) == 1
            (first,) = [row for row in rows if wanted[row].principal]
            assert class_of[first] == min(class_of[row] for row in rows)
            assert wanted[first].similarity == 1
            for row in rows:
                if row != first:
                    assert wanted[row].similarity == world.similarity[class_of[row]]
        for group in Counter(world.principal):
            rows = [row for row in wanted if world.principal[class_of[row]] == group]
            assert len({wanted[row].group for row in rows}) <= 1


def test_rows_without_keys_are_groups_of_their_own() -> None:
    world = World(random.Random(1))
    world.stored, world.classes, world.principal, world.similarity = [None] * 3, [[0, 2]], [0], [1.0]
    world.changed = world.gone = set()
    wanted = world.wanted()
    own = [own_group("i", f"d{row}") for row in range(3)]
    assert wanted == {
        0: Grouping(own[0], True, 1.0),
        2: Grouping(own[0], False, 1.0),
        1: Grouping(own[1], True, 1.0),
    }


def test_members_of_a_vanished_principal_are_left_for_the_next_run() -> None:
    world = World(random.Random(1))
    world.stored, world.classes, world.principal = [None] * 3, [[0], [1], [2]], [0, 0, 2]
    world.similarity, world.changed, world.gone = [1.0, float("nan"), 1.0], set(), {0}
    assert set(world.wanted()) == {2}


def test_tiny_differences_of_similarity_are_none() -> None:
    """A server that rebuilds documents from columns returns similarities as 32-bit floats."""
    world = World(random.Random(1))
    world.stored, world.classes, world.principal = [None] * 2, [[0], [1]], [0, 0]
    world.similarity, world.changed, world.gone = [1.0, 0.8571428571428571], set(), set()
    wanted = world.wanted()
    world.stored = [Grouping(one.group, one.principal, float(np.float32(one.similarity))) for one in wanted.values()]
    assert changes(world.corpus(), wanted) == {}
    world.stored[1] = Grouping(wanted[1].group, False, 0.857)
    assert changes(world.corpus(), wanted) == {1: wanted[1]}
