"""Types of numpy arrays by their elements."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

I16 = NDArray[np.int16]
I32 = NDArray[np.int32]
U16 = NDArray[np.uint16]
U32 = NDArray[np.uint32]
U64 = NDArray[np.uint64]
Octets = NDArray[np.uint8]
Ints = NDArray[np.int64]
Positions = NDArray[np.intp]
"""Positions in another array, and numbers of documents, texts or classes."""
Numbers = NDArray[np.signedinteger[Any]]
"""As `Positions`, of any width: those of millions of pairs are `I32`. Convert them before you multiply."""
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]
Bytes = NDArray[np.bytes_]
