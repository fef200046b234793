"""The frozen code-point table of scheme v1.

``unicode_v1.json`` was generated once from Unicode 14 (by `build`), so keys do not depend on the Unicode version of the
running Python. The table has the class of each code point (separator, part of a word, word by itself) and its
lower-case form.

Lower-casing maps one code point to one code point, independently of its neighbours. So offsets into the normalised
text are offsets into the original, and a matched passage can be shown in place. (In Unicode, only U+0130 has a
lower-case form of two code points; here it is ``i``.)
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files
from typing import Any

import numpy as np

from es_neardupe.keys.arrays import U32, Positions

__all__ = ["LOWER", "RESIZED", "SINGLE", "UPPER", "WORD", "build", "table"]

LOWER = 0x1FFFFF
"""Bits of a table entry that hold the lower-case code point."""
WORD = 1 << 24
"""Flag: letter, digit, mark or ``_``."""
SINGLE = 1 << 25
"""Flag: a word character of a script written without spaces, a token by itself (``WORD`` is set too)."""
RESIZED = 1 << 26
"""Flag: the lower-case form has another length in UTF-8."""
UPPER = 1 << 27
"""Flag: the lower-case form is another code point."""

_CODE_POINTS = 0x110000

_SPACELESS = (
    (0x0E00, 0x0EFF),  # Thai, Lao
    (0x1000, 0x109F),  # Myanmar
    (0x1780, 0x17FF),  # Khmer
    (0x3000, 0x302D),  # ideographic iteration, closing and tone marks, Hangzhou numerals
    (0x3030, 0x30FF),  # kana repeat marks, Hiragana, Katakana with the prolonged sound mark
    (0x31F0, 0x31FF),  # Katakana phonetic extensions
    (0x3400, 0x4DBF),  # Han extension A
    (0x4E00, 0x9FFF),  # Han
    (0xA9E0, 0xA9FF),  # Myanmar extended B
    (0xAA60, 0xAA7F),  # Myanmar extended A
    (0xF900, 0xFAFF),  # Han compatibility
    (0xFF66, 0xFF9F),  # half-width Katakana
    (0x16FE3, 0x16FE3),  # old Chinese iteration mark
    (0x16FF0, 0x16FF1),  # Vietnamese reading marks of Han
    (0x1AFF0, 0x1B16F),  # kana extended B, supplement, extended A, small kana
    (0x20000, 0x3FFFD),  # Han extensions B and later, and all future characters of planes 2 and 3
)


@lru_cache(maxsize=1)
def table() -> U32:
    """One entry per code point: lower-case code point and flags (uint32[0x110000], read-only)."""
    data = json.loads(files(__package__).joinpath("unicode_v1.json").read_text("ascii"))
    points = np.arange(_CODE_POINTS, dtype=np.uint32)
    lower = points.copy()
    for first, last, step, delta in data["lower"]:
        lower[first : last + 1 : step] += np.uint32(delta % 2**32)
    entries: U32 = lower.copy()
    for flag, name in ((WORD, "word"), (SINGLE, "single")):
        for first, last in data[name]:
            entries[first : last + 1] |= np.uint32(flag)
    entries[lower != points] |= np.uint32(UPPER)
    entries[_utf8_length(lower) != _utf8_length(points)] |= np.uint32(RESIZED)
    entries.flags.writeable = False
    return entries


def _utf8_length(code_points: U32) -> Positions:
    return np.searchsorted(np.array([0x80, 0x800, 0x10000], np.uint32), code_points, side="right")


def build() -> dict[str, Any]:
    """The content of ``unicode_v1.json``, generated from the Unicode data of the running Python.

    The file was generated with Python 3.11 (Unicode 14.0.0) and never changes: another table would be another scheme.
    This function documents the table and is used to check it.
    """
    import unicodedata

    characters = [chr(point) for point in range(_CODE_POINTS)]
    single = [any(a <= point <= b for a, b in _SPACELESS) for point in range(_CODE_POINTS)]
    word = [c == "_" or unicodedata.category(c)[0] in "LNM" for c in characters]
    word = [w or 0x20000 <= point <= 0x3FFFD for point, w in enumerate(word)]
    deltas = [(ord(c.lower()[0]) - ord(c)) if w else 0 for c, w in zip(characters, word, strict=True)]
    return {
        "unicode": unicodedata.unidata_version,
        "word": _runs([point for point, w in enumerate(word) if w]),
        "single": _runs([p for p, (w, s) in enumerate(zip(word, single, strict=True)) if w and s]),
        "lower": _progressions([(point, delta) for point, delta in enumerate(deltas) if delta]),
    }


def _runs(points: list[int]) -> list[list[int]]:
    runs: list[list[int]] = []
    for point in points:
        if runs and runs[-1][1] == point - 1:
            runs[-1][1] = point
        else:
            runs.append([point, point])
    return runs


def _progressions(pairs: list[tuple[int, int]]) -> list[list[int]]:
    """``[first, last, step, delta]``: consecutive (step 1) or every other code points (step 2) with equal delta."""
    progressions: list[list[int]] = []
    for point, delta in pairs:
        last = progressions[-1] if progressions else [-9, -9, 1, 0]
        step = point - last[1]
        if delta == last[3] and step <= 2 and (last[0] == last[1] or step == last[2]):
            last[1:3] = [point, step]
        else:
            progressions.append([point, point, 1, delta])
    return progressions
