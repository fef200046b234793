"""Types of numpy arrays by their elements."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

__all__ = ["U32", "U64", "Bytes", "Flags", "Floats", "Ints", "Octets", "Positions"]

U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]
Octets = NDArray[np.uint8]
Ints = NDArray[np.int64]
Positions = NDArray[np.intp]
"""Positions in another array, and numbers of documents, texts or classes."""
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Bytes = NDArray[np.bytes_]
