"""Shapes: characters of which those that a scanner confuses are one."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from functools import lru_cache

import numpy as np

_ALIKE = ("ao0ø", "ce", "fijlt1ł", "nu", "bh68", "s5", "gq9", "vy", "z2", "dđ")
"""The first of each stands for all. Part of scheme v1, which never changes."""
_POINTS = 0x180
"""Basic Latin, Latin-1 and Latin Extended-A. A letter with accents has the shape of the letter."""


def shaped(content: bytes) -> bytes:
    """A normalised text with the shape of each character in its place."""
    if content.isascii():
        return content.translate(_OCTETS)
    points = np.frombuffer(content.decode().encode("utf-32-le"), np.dtype("<u4"))
    replaced = np.where(points < _POINTS, _TABLE.take(points, mode="clip"), points)
    return replaced.astype("<u4").tobytes().decode("utf-32-le").encode()


@lru_cache(maxsize=2)
def code_points(shapes: bool) -> bytes:
    """What stands for each of the first code points: its shape, or itself (uint16[384])."""
    return (_TABLE if shapes else np.arange(_POINTS)).astype(np.uint16).tobytes()


def _letters() -> Iterator[tuple[int, int]]:
    """Code points of word characters that do not stand for themselves, with those that do."""
    shape_of = {one: alike[0] for alike in _ALIKE for one in alike}
    for point in range(_POINTS):
        letter = chr(point)
        if letter.isascii() or letter.islower():
            base = unicodedata.normalize("NFD", letter)[0]
            shape = shape_of.get(letter) or (shape_of.get(base, base) if base.isascii() else letter)
            if shape != letter:
                yield point, ord(shape)


_SHAPES = dict(_letters())
_TABLE = np.array([_SHAPES.get(point, point) for point in range(_POINTS)], np.uint32)
_OCTETS = bytes(_SHAPES.get(octet, octet) for octet in range(256))

SHAPES = "".join(chr(_SHAPES.get(point, ord(" "))) for point in range(_POINTS))
"""The shapes of the first code points; a blank for one that stands for itself."""
