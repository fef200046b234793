"""The widths of the vectors with which the kernel of keys can work."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from es_neardupe.keys import hashing

WIDTHS = (0, 256, 512)
"""Bits of a vector; 0: plain C."""


@contextmanager
def lanes(bits: int) -> Iterator[None]:
    """Let the kernel work with vectors of at most so many bits, and with the widest again afterwards."""
    assert hashing.kernel is not None
    hashing.kernel.use_lanes(bits)
    try:
        yield
    finally:
        hashing.kernel.use_lanes(max(WIDTHS))
