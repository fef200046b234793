"""Kinds of texts by which figures are told apart: how long they are, and in which script."""

from __future__ import annotations

import unicodedata
from collections import Counter
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

__all__ = ["LENGTHS", "lengths", "script"]

_EDGES = (20, 100, 500, 2000)

LENGTHS = ("under 20", "20 to 99", "100 to 499", "500 to 1,999", "2,000 and more")
"""Classes of texts by their number of tokens."""

_CHARS = 5000
"""So much of a text tells its script."""

_WIDTHS = ("FULLWIDTH", "HALFWIDTH")


def lengths(tokens: NDArray[np.int64]) -> NDArray[np.intp]:
    """The number of the class in `LENGTHS` of each count of tokens."""
    return np.searchsorted(_EDGES, tokens, side="right")


def script(text: str) -> str:
    """The script of most letters at the beginning of a text, such as ``Latin``, ``Han`` or ``Devanagari``.

    By the Unicode names of the letters; ``none`` for a text without any.
    """
    letters = Counter(char for char in text[:_CHARS] if char.isalpha())
    scripts: Counter[str] = Counter()
    for char, number in letters.items():
        scripts[_script(char)] += number
    return min(scripts, key=lambda name: (-scripts[name], name), default="none")


@lru_cache(maxsize=10_000)
def _script(char: str) -> str:
    first, *others = unicodedata.name(char, "UNNAMED").split(" ")
    word = others[0] if first in _WIDTHS else first
    return "Han" if word == "CJK" else word.title()
