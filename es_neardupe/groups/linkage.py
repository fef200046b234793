"""Linkage of verified pairs to groups, assignment of group ids, cohesion of groups. Pure functions of arrays."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from es_neardupe.candidates.pair_arrays import blocks, components, first_with_all, sorted_runs
from es_neardupe.columns import RowLists
from es_neardupe.groups.stars import Matches, Pairs, star
from es_neardupe.keys.arrays import I32, U64, Bytes, Flags, Floats, Numbers, Positions
from es_neardupe.options import Linkage

_ROWS = 1 << 16
"""Rows whose ids are compared at a time."""


def principals_by(
    linkage: Linkage,
    matches: Matches,
    documents: Numbers,
    measure: str,
    *,
    apart: Pairs | None = None,
    rank: Numbers | None = None,
) -> Numbers:
    """The principal of each class, itself if it is alone; shape (k,).

    ``left < right``. The result depends only on the set of matches. ``documents``: the number of each class; shape
    (k,). ``measure``: the name of that of the matches. ``apart``: pairs that do not match because of other facts.
    ``rank``: the place of each class in the order of principals; shape (k,). None: classes are numbered in this order.
    """
    if rank is not None:
        order = np.argsort(rank).astype(np.int32)
        left, right = np.sort(rank[np.stack((matches.left, matches.right))], axis=0)
        ranked = Matches(left, right, matches.similarity)
        ranked_apart = None if apart is None else (rank[apart[0]], rank[apart[1]])
        principal: Numbers = order[principals_by(linkage, ranked, documents[order], measure, apart=ranked_apart)[rank]]
        return principal
    if linkage is Linkage.STAR:
        return star(matches, documents, measure, apart)
    link = chain if linkage is Linkage.CHAIN else complete
    return link(len(documents), matches.left, matches.right)


def set_similarities(to_principal: Floats, principal: Numbers, pairs: Matches) -> None:
    """Set the similarity of each class to its principal, where it is that of one of the pairs; shape (k,)."""
    for one, other in ((pairs.left, pairs.right), (pairs.right, pairs.left)):
        direct = principal[other] == one
        to_principal[other[direct]] = pairs.similarity[direct]


MoreMatches = Callable[[int, Positions], Flags]
"""Compares a class with later classes that are not among its known matches; bool of their number."""


def complete(size: int, left: Numbers, right: Numbers, more: MoreMatches | None = None) -> Numbers:
    """Each free class of ``size`` becomes a principal, and takes its free partners that match all members before them.

    ``left < right`` are the matching pairs. Classes are numbered in the order of principals. ``more`` finds matches in
    addition to the given ones. It is called at most once for each pair, and only if both classes match all members of a
    group before.
    """
    principal = np.full(size, -1, np.intp)
    later, bounds = _partners(size, left, right)
    marked = np.zeros(size, np.bool_)
    for number in range(size):
        if principal[number] < 0:
            waiting = later[bounds[number] : bounds[number + 1]] if more is None else np.arange(number + 1, size)
            waiting = waiting[principal[waiting] < 0]
            member = number
            while True:
                principal[member] = number
                known = later[bounds[member] : bounds[member + 1]]
                marked[known] = True
                matches = marked[waiting]
                marked[known] = False
                if more is not None:
                    others = ~matches
                    matches[others] = more(member, waiting[others])
                waiting = waiting[matches]
                if not len(waiting):
                    break
                member, waiting = int(waiting[0]), waiting[1:]
    return principal


def _partners(size: int, left: Numbers, right: Numbers) -> tuple[Numbers, Positions]:
    """The later partners of each class, ascending: those of ``k`` are ``later[bounds[k]:bounds[k + 1]]``."""
    left, right = _ascending(left, right)
    return right, np.searchsorted(left, np.arange(size + 1, dtype=left.dtype))


def _ascending(left: Numbers, right: Numbers) -> tuple[Numbers, Numbers]:
    """The pairs in ascending order."""
    ordered = (left[1:] > left[:-1]) | ((left[1:] == left[:-1]) & (right[1:] > right[:-1]))
    if ordered.all():
        return left, right
    order = np.lexsort((right, left))
    return left[order], right[order]


def chain(size: int, left: Numbers, right: Numbers) -> Numbers:
    """The first class of each connected component, as the principal of its classes."""
    _, first, component = np.unique(components(size, left, right), return_index=True, return_inverse=True)
    return first[component.reshape(-1)].astype(np.intp)


def assign_ids(
    members: RowLists,
    stored_ids: Bytes,
    was_principal: Flags,
    new_id: Callable[[int, int], str],
    *,
    reserved: Bytes | Sequence[bytes] = (),
    created: Callable[[str], str] = lambda stored: "",
) -> Bytes:
    """An id for each group: an id that its members have already, if possible; S16 of the number of groups.

    ``members`` are the rows of each group, the principal first; ``stored_ids`` (S16) the id that each row has now,
    empty for none. If several groups could keep an id, the group with its former principal (``was_principal``, bool of
    each row) keeps it, else the one with most rows that have the id. If a group could keep several ids, it takes the
    one that most of its rows have, then the oldest (``created``: when the id became that of a group, as text that
    sorts; "" if it never did), then that of its principal. All other groups get ``new_id(row, attempt)`` of their
    principal, with the first attempt that gives an unused id, which is not ``reserved`` either.

    Writing any part of the result and calling the function again gives the same result, whatever was stored before, as
    long as the new principals are written first: this can only raise the rank of the assigned ids, and lower others.
    """
    ids, several, contested = _only_claims(members, stored_ids)
    claims = partial(_claims, members, stored_ids, was_principal, created)
    for group in np.flatnonzero(several & ~contested).tolist():
        ids[group] = min(claims(group))[-1]
    for group, stored in _kept(list(itertools.chain.from_iterable(map(claims, np.flatnonzero(contested).tolist())))):
        ids[group] = stored
    waiting = np.flatnonzero(ids == b"").astype(np.int32)
    taken = np.sort(np.concatenate((np.array(reserved, "S16"), ids[ids != b""]))) if len(waiting) else ids
    attempt = 0
    while len(waiting):
        new = np.empty(len(waiting), "S16")
        for some in blocks(len(waiting), _ROWS):
            new[some] = [new_id(row, attempt).encode() for row in members.first_of(waiting[some]).tolist()]
        free = _distinct(new)
        for some in blocks(len(new), _ROWS):
            free[some] &= ~_contains(taken, new[some])
        ids[waiting[free]] = new[free]
        taken = np.sort(np.concatenate((taken, new[free]))) if not free.all() else taken
        waiting = waiting[~free]
        attempt += 1
    return ids


def _distinct(ids: Bytes) -> Flags:
    """Which ids are the first of equal ones."""
    first = np.ones(len(ids), np.bool_)
    for places, starts, sizes, _ in sorted_runs(_beginnings(ids)):
        for start, size in zip(starts.tolist(), sizes.tolist(), strict=True):
            alike = places[start : start + size]
            first[alike] = False
            first[alike[np.unique(ids[alike], return_index=True)[1]]] = True
    return first


def _beginnings(ids: Bytes) -> U64:
    """The first 8 bytes of each id (S16) as a number."""
    return np.ascontiguousarray(ids).view(np.uint64)[::2]


def _only_claims(members: RowLists, stored_ids: Bytes) -> tuple[Bytes, Flags, Flags]:
    """The id of each group whose rows have one id that no other group has, empty for the others; which groups have
    several ids; and which have one that another group may have."""
    group, several, contested = members.numbers, *np.zeros((2, len(members)), np.bool_)
    # Ids that begin alike count as the same one: then it is just not certain who keeps it.
    for places, starts, sizes, _ in sorted_runs(_beginnings(stored_ids)[members.rows]):
        shared = group[places[starts]] != group[places[starts + sizes - 1]]
        of = sizes[shared]
        first = np.repeat(starts[shared] - (np.cumsum(of) - of), of)
        contested[group[places[first + np.arange(len(first))]]] = True
    ids = np.zeros(len(members), "S16")
    for some in blocks(len(group), _ROWS):
        stored = stored_ids[members.rows[some]]
        ids[group[some][stored != b""]] = stored[stored != b""]
    for some in blocks(len(group), _ROWS):
        stored = stored_ids[members.rows[some]]
        several[group[some][(stored != b"") & (stored != ids[group[some]])]] = True
    ids[several | contested] = b""
    return ids, several, contested


_Claim = tuple[bool, int, str, bool, int, bytes]
"""The rank of an id for a group (lower ones first), the number of the group, and the id."""


def _claims(
    members: RowLists, stored_ids: Bytes, was_principal: Flags, created: Callable[[str], str], group: int
) -> Iterator[_Claim]:
    """The ids that a group could keep."""
    rows = members[group]
    ids = stored_ids[rows].tolist()
    led = set(stored_ids[rows[was_principal[rows]]].tolist())
    for stored, number in Counter(id for id in ids if id).items():
        yield stored not in led, -number, created(stored.decode()) or "~", stored != ids[0], group, stored


def _kept(claims: Sequence[_Claim]) -> Iterator[tuple[int, bytes]]:
    """The groups that keep an id, with it: each id goes to one group, each group takes one."""
    kept: set[int] = set()
    taken: set[bytes] = set()
    for *_, group, stored in sorted(claims):
        if group not in kept and stored not in taken:
            kept.add(group)
            taken.add(stored)
            yield group, stored


MAX_PAIRS = 1_000_000
"""Pairs of members that one run compares in addition to the candidates; the largest groups are skipped first."""

MAX_CLASSES = 1_500
"""Maximum number of texts of a chained group whose diameter is computed (all shortest paths)."""


Groups = Sequence[Positions] | RowLists
"""The classes of each group."""


@dataclass(frozen=True, slots=True)
class GroupCohesion:
    """Similarity within a group, as numbers of pairs of documents."""

    below: int
    """Pairs less similar than the threshold."""
    not_compared: int


@dataclass(frozen=True, slots=True)
class ChainBridges:
    """Cohesion of a chained group."""

    diameter: int | None
    """Maximum number of steps from one member to another; None if the group is too large."""
    weakest: float
    """Threshold above which the group would fall apart: the minimum edge of the maximum spanning tree."""


def inner_pairs(
    groups: Groups, left: Numbers, right: Numbers, size: int, maximum: int = MAX_PAIRS
) -> tuple[Positions, Positions]:
    """The pairs of classes within groups that are not candidates (the pairs ``left < right`` are), up to ``maximum``.

    Groups are included whole, smaller ones first; if there are too many pairs, the largest groups are left out.
    """
    if not groups:
        return np.zeros(0, np.intp), np.zeros(0, np.intp)
    ordered = sorted(groups, key=len)
    group_of = _group_numbers(ordered, size)
    known = np.zeros(len(ordered), np.int64)
    for _, within in _within(group_of, left, right):
        known += np.bincount(within[within >= 0], minlength=len(ordered))
    missing = np.array([len(members) * (len(members) - 1) // 2 for members in ordered], np.int64) - known
    chosen = (missing > 0) & (np.cumsum(missing) <= maximum)
    codes: list[Positions] = [np.zeros(0, np.intp)]
    for some, within in _within(group_of, left, right):
        inside = np.flatnonzero((within >= 0) & chosen[within])
        codes.append(left[some][inside].astype(np.intp) * size + right[some][inside])
    candidates = np.concatenate(codes)
    del codes
    candidates.sort()
    found: list[Positions] = [np.zeros(0, np.intp)]
    for number in np.flatnonzero(chosen).tolist():
        found += (block[~_contains(candidates, block)] for block in _codes(ordered[number], size))
    every = np.concatenate(found)
    return every // size, every % size


def _group_numbers(groups: Groups, size: int) -> I32:
    """The number of the group of each class, -1 for none."""
    group_of = np.full(size, -1, np.int32)
    for number, members in enumerate(groups):
        group_of[members] = number
    return group_of


def _within(group_of: I32, left: Numbers, right: Numbers) -> Iterator[tuple[slice, Numbers]]:
    """Blocks of the pairs, with the number of the group that both classes are in; -1 if there is none."""
    for some in blocks(len(left)):
        of = group_of[left[some]]
        yield some, np.where(of == group_of[right[some]], of, -1)


def judge(
    groups: Groups,
    *compared: tuple[Numbers, Numbers, Floats],
    documents: Numbers,
    minimum: float,
) -> Iterator[GroupCohesion]:
    """Count the pairs of documents of each group that are below ``minimum``, and those that were not compared.

    ``compared``: all compared pairs, in one or more parts, as ``left < right`` and their similarity. ``documents`` is
    the number of documents of each class. Pairs of copies of one text are never below the minimum.
    """
    group_of = _group_numbers(groups, len(documents))
    number_compared, below = np.zeros(len(groups)), np.zeros(len(groups))
    for left, right, similarity in compared:
        for some, within in _within(group_of, left, right):
            value, weight = similarity[some], documents[left[some]].astype(np.int64) * documents[right[some]]
            known = (within >= 0) & ~np.isnan(value)
            number_compared += np.bincount(within[known], weight[known], len(groups))
            low = known & (value < minimum)
            below += np.bincount(within[low], weight[low], len(groups))
    for number, members in enumerate(groups):
        sizes = documents[members].astype(np.int64)
        pairs = (int(sizes.sum()) ** 2 - int((sizes**2).sum())) // 2
        yield GroupCohesion(int(below[number]), pairs - int(number_compared[number]))


def cohesions_of(
    groups: Groups,
    known: Matches,
    compare: Callable[[Positions, Positions], Floats],
    *,
    documents: Numbers,
    minimum: float,
) -> Iterator[GroupCohesion]:
    """The cohesion of each group by its ``known`` pairs (``left < right``), which match or not, and by its other ones,
    which ``compare`` compares, up to `MAX_PAIRS`. ``documents`` and ``minimum``: see `judge`."""
    more = inner_pairs(groups, known.left, known.right, len(documents))
    return judge(groups, known, (*more, compare(*more)), documents=documents, minimum=minimum)


def bridges(
    groups: Groups, left: Numbers, right: Numbers, similarity: Floats, matches: Flags, *, size: int
) -> list[ChainBridges]:
    """Diameter and weakest bridge of each group by its matches, selected from the pairs ``left < right`` of ``size``
    classes by ``matches`` (bool of the pairs). In a group of more than `MAX_CLASSES`, matches are processed in blocks.
    """
    from scipy.sparse import csr_array  # slow to load, and only chains have bridges
    from scipy.sparse.csgraph import minimum_spanning_tree

    group_of = _group_numbers(groups, size)
    weakest = np.ones(len(groups))
    forest = csr_array((size, size))
    small = np.array([*(len(members) <= MAX_CLASSES for members in groups), False])  # the last one for -1
    parts = [np.zeros(0, np.intp)]
    for some, within in _within(group_of, left, right):
        pairs = np.flatnonzero(matches[some] & (within >= 0)) + some.start
        # Distances must not be 0; the minimum of 2 - s is the maximum of s.
        # Versions of scipy before 1.16 need places of 32 bits for a spanning tree.
        places = (left[pairs].astype(np.int32, copy=False), right[pairs].astype(np.int32, copy=False))
        links = csr_array((2 - similarity[pairs], places), shape=(size, size))
        forest = csr_array(minimum_spanning_tree(forest + links))
        parts.append(pairs[small[group_of[left[pairs]]]])
    edges = forest.tocoo()
    np.minimum.at(weakest, group_of[edges.row], 2 - edges.data)
    pairs = np.concatenate(parts)
    of = group_of[left[pairs]]
    pairs = pairs[np.argsort(of, kind="stable")]
    of.sort()
    found = []
    for number, members in enumerate(groups):
        inside = pairs[slice(*np.searchsorted(of, (number, number + 1)))]
        a, b = (np.searchsorted(members, side[inside]) for side in (left, right))
        found.append(ChainBridges(_diameter(len(members), a, b) if small[number] else None, float(weakest[number])))
    return found


def _diameter(size: int, left: Positions, right: Positions) -> int:
    from scipy.sparse import csr_array
    from scipy.sparse.csgraph import shortest_path

    links = csr_array((np.ones(len(left)), (left, right)), shape=(size, size))
    return int(shortest_path(links, directed=False, unweighted=True).max())


def _codes(members: Positions, size: int) -> Iterator[Positions]:
    """All pairs of ascending members as ``first * size + second``, in blocks."""
    for pairs in first_with_all(len(members), len(members)):
        yield members[pairs[:, 0]] * size + members[pairs[:, 1]]


def _contains(ordered: NDArray[Any], values: NDArray[Any]) -> Flags:
    if not len(ordered):
        return np.zeros(len(values), np.bool_)
    places = np.minimum(np.searchsorted(ordered, values), len(ordered) - 1)
    contained: Flags = ordered[places] == values
    return contained
