"""Stage: verified pairs -> groups, and the ids they keep. Pure: neither server nor texts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from es_neardupe.graphs import components

__all__ = ["assign_ids", "chain", "complete", "star"]

Ints = NDArray[np.intp]
G = TypeVar("G", bound=Hashable)


def star(size: int, left: Ints, right: Ints) -> Ints:
    """The principal of each of ``size`` classes, itself for one that is alone; int64 of that size.

    ``left < right`` are the pairs that reach the threshold. Classes are numbered in the order of principals: in
    that order each one still free becomes a principal and takes its free partners. The result depends on the set of
    pairs only.
    """
    principal = np.full(size, -1, np.intp)
    right, bounds = _partners(size, left, right)
    for number in range(size):
        if principal[number] < 0:
            principal[number] = number
            partners = right[bounds[number] : bounds[number + 1]]
            principal[partners[principal[partners] < 0]] = number
    return principal


def complete(size: int, left: Ints, right: Ints) -> Ints:
    """As `star`, but a partner is taken only if it matches every member taken before it."""
    principal = np.full(size, -1, np.intp)
    later, bounds = _partners(size, left, right)
    for number in range(size):
        if principal[number] < 0:
            principal[number] = number
            allowed: set[int] | None = None  # the partners of all members so far; None: of nobody but the principal
            for partner in later[bounds[number] : bounds[number + 1]].tolist():
                if principal[partner] < 0 and (allowed is None or partner in allowed):
                    principal[partner] = number
                    known = set(later[bounds[partner] : bounds[partner + 1]].tolist())
                    allowed = known if allowed is None else allowed & known
    return principal


def _partners(size: int, left: Ints, right: Ints) -> tuple[Ints, Ints]:
    """The later partners of each class, ascending: those of ``k`` are ``later[bounds[k]:bounds[k + 1]]``."""
    order = np.lexsort((right, left))
    return right[order], np.searchsorted(left[order], np.arange(size + 1))


def chain(size: int, left: Ints, right: Ints) -> Ints:
    """The first class of each connected component, as `star` returns principals."""
    _, first, component = np.unique(components(size, left, right), return_index=True, return_inverse=True)
    return first[component.reshape(-1)].astype(np.intp)


def assign_ids(
    members: Mapping[G, Sequence[int]],
    stored_ids: Sequence[str | None],
    was_principal: Callable[[int], bool],
    new_id: Callable[[G, int], str],
    *,
    reserved: Iterable[str] = (),
    created: Callable[[str], str] = lambda stored: "",
) -> dict[G, str]:
    """An id for each group, the one its members bear already where that is possible.

    ``members`` are the rows of each group, the principal first; ``stored_ids`` the id that each row bears.
    Of the groups that could keep an id, the one gets it that holds its former principal (``was_principal``), else the
    one with the most bearers; a group that could keep several takes the one with the most bearers (the larger group's),
    then the older one (``created``: when the id became a group's, as text that sorts; "" was never one), then that
    of its principal. Others get ``new_id(group, attempt)``, with the first attempt that gives an id nobody has.
    Writing any part of the result and asking again gives the same result, whatever was stored before, as long as
    the new principals are written first: what a group was given only gains rank by that, and all else loses some.
    """
    claims = []
    for place, (group, rows) in enumerate(members.items()):
        bearers = Counter(stored for row in rows if (stored := stored_ids[row]) is not None)
        kept = {stored_ids[row] for row in rows if was_principal(row)}
        for stored, votes in bearers.items():
            age = created(stored) or "~"
            claims.append((stored not in kept, -votes, age, stored != stored_ids[rows[0]], place, stored, group))
    claims.sort(key=lambda claim: claim[:6])
    ids: dict[G, str] = {}
    taken: set[str] = set()
    for *_, stored, group in claims:
        if group not in ids and stored not in taken:
            ids[group] = stored
            taken.add(stored)
    taken.update(reserved)
    for group in members:
        attempt = 0
        while group not in ids:
            candidate = new_id(group, attempt)
            if candidate not in taken:
                ids[group] = candidate
                taken.add(candidate)
            attempt += 1
    return {group: ids[group] for group in members}
