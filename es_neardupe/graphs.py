"""Connected components of pairs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

__all__ = ["components", "portions"]


def components(size: int, left: NDArray[np.intp], right: NDArray[np.intp]) -> NDArray[np.intp]:
    """The number of the component of each of ``size`` nodes; the pairs are its edges."""
    links = coo_array((np.ones(len(left), np.int8), (left, right)), shape=(size, size))
    return connected_components(links, directed=False)[1].astype(np.intp)


def portions(
    left: NDArray[np.intp], right: NDArray[np.intp], weights: NDArray[np.int64], limit: int
) -> list[NDArray[np.intp]]:
    """The numbers of the pairs in portions: each holds whole components, whose nodes weigh ``limit`` or little more,
    or a single heavier one."""
    if not len(left):
        return []
    component = components(len(weights), left, right)
    there = np.unique(component[left])
    totals = np.bincount(component, weights)[there]
    portion = (np.cumsum(totals) // limit)[np.searchsorted(there, component[left])]
    order = np.argsort(portion, kind="stable")
    return np.split(order, np.flatnonzero(np.diff(portion[order])) + 1)
