"""Connected components of pairs."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray
from scipy.sparse import coo_array
from scipy.sparse.csgraph import connected_components

__all__ = ["components"]


def components(size: int, left: NDArray[np.intp], right: NDArray[np.intp]) -> NDArray[np.intp]:
    """The number of the component of each of ``size`` nodes; the pairs are its edges."""
    links = coo_array((np.ones(len(left), np.int8), (left, right)), shape=(size, size))
    return connected_components(links, directed=False)[1].astype(np.intp)
