"""Stage: groups and the similarities within them -> what each group can be trusted for."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import csr_array
from scipy.sparse.csgraph import minimum_spanning_tree, shortest_path

__all__ = ["Bridges", "Inside", "bridges", "inner_pairs", "judge"]

Ints = NDArray[np.intp]
Floats = NDArray[np.float64]

MOST_PAIRS = 1_000_000
"""Pairs of members that one run compares besides the candidates; larger groups are left to their candidates."""

MOST_CLASSES = 1_500
"""Texts of a chained group up to which its diameter is computed (all shortest paths)."""


@dataclass(frozen=True, slots=True)
class Inside:
    """How the members of a group stand among themselves, in pairs of documents."""

    below: int
    """Less similar than the threshold."""
    not_compared: int


@dataclass(frozen=True, slots=True)
class Bridges:
    """How a chained group hangs together."""

    diameter: int | None
    """The most steps from one member to another; None where the group is too large."""
    weakest: float
    """The similarity at which the group would fall apart: the least edge of the maximum spanning tree."""


def inner_pairs(
    groups: Sequence[Ints], left: Ints, right: Ints, size: int, most: int = MOST_PAIRS
) -> tuple[Ints, Ints]:
    """The pairs of classes within groups that are no candidates (``left < right`` are), up to ``most``.

    Smaller groups go first, each whole: those of the largest stay out where there are too many.
    """
    known = np.sort(left * size + right)
    found: list[Ints] = []
    total = 0
    for members in sorted(groups, key=len):
        codes = _codes(members, size, most - total + len(known))
        if codes is None:
            break
        unknown = codes[~_contains(known, codes)]
        if total + len(unknown) > most:
            break
        found.append(unknown)
        total += len(unknown)
    every = np.concatenate(found) if found else np.zeros(0, np.intp)
    return every // size, every % size


def judge(
    groups: Sequence[Ints], left: Ints, right: Ints, similarity: Floats, *, documents: Ints, least: float
) -> Iterator[Inside]:
    """Count the pairs of documents of each group that are below ``least``, and those that nobody compared.

    ``left < right`` with their similarity are all compared pairs; ``documents`` is the number of documents of each
    class. Copies of one text are equal, and below nothing.
    """
    size = len(documents)
    group_of = np.full(size, -1, np.intp)
    for number, members in enumerate(groups):
        group_of[members] = number
    within = (group_of[left] == group_of[right]) & (group_of[left] >= 0) & ~np.isnan(similarity)
    weight = documents[left] * documents[right]
    compared = np.bincount(group_of[left][within], weight[within], len(groups))
    low = within & (similarity < least)
    below = np.bincount(group_of[left][low], weight[low], len(groups))
    for number, members in enumerate(groups):
        sizes = documents[members]
        pairs = (int(sizes.sum()) ** 2 - int((sizes**2).sum())) // 2
        yield Inside(int(below[number]), pairs - int(compared[number]))


def bridges(groups: Sequence[Ints], left: Ints, right: Ints, similarity: Floats, size: int) -> Iterator[Bridges]:
    """Diameter and weakest bridge of each group by its matches (``left < right`` of ``size`` classes)."""
    group_of = np.full(size, -1, np.intp)
    for number, members in enumerate(groups):
        group_of[members] = number
    order = np.argsort(group_of[left], kind="stable")
    bounds = np.searchsorted(group_of[left][order], np.arange(len(groups) + 1))
    for number, members in enumerate(groups):
        inside = order[bounds[number] : bounds[number + 1]]
        a, b = (np.searchsorted(members, side[inside]) for side in (left, right))
        yield _bridges(len(members), a, b, similarity[inside])


def _bridges(size: int, left: Ints, right: Ints, similarity: Floats) -> Bridges:
    if size < 2:  # copies of one text
        return Bridges(0, 1.0)
    # Distances may not be 0, and the least of 2 - s is the greatest of s.
    links = csr_array((2 - similarity, (left, right)), shape=(size, size))
    weakest = 2 - float(minimum_spanning_tree(links).data.max())
    steps = shortest_path(links, directed=False, unweighted=True) if size <= MOST_CLASSES else None
    return Bridges(None if steps is None else int(steps.max()), weakest)


def _codes(members: Ints, size: int, most: int) -> Ints | None:
    """All pairs of ascending members as ``first * size + second``; None if they are more than ``most``."""
    if len(members) * (len(members) - 1) // 2 > most:
        return None
    first, second = np.triu_indices(len(members), 1)
    codes: Ints = members[first] * size + members[second]
    return codes


def _contains(ordered: Ints, wanted: Ints) -> NDArray[np.bool_]:
    if not len(ordered):
        return np.zeros(len(wanted), np.bool_)
    places = np.minimum(np.searchsorted(ordered, wanted), len(ordered) - 1)
    there: NDArray[np.bool_] = ordered[places] == wanted
    return there
