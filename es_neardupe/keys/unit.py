"""Units of shingles: what they consist of, and their names on the command line."""

from __future__ import annotations

import re
from enum import Enum

from es_neardupe.errors import SettingsError
from es_neardupe.wording import counted


class Unit(str, Enum):
    """What shingles consist of."""

    WORD = "word"
    CHARACTER = "character"
    SHAPE = "shape"
    """Characters of which those that a scanner confuses are one."""

    @property
    def letter(self) -> str:
        """What follows the number of a shingle on the command line."""
        return _LETTERS[self]

    def passage(self, shingle: int) -> int:
        """The minimum number of words in a common passage, if shingles have so many of these: passages are counted in
        words, and a shingle of some characters is about one word."""
        return shingle if self is Unit.WORD else 1


_LETTERS = {Unit.WORD: "", Unit.CHARACTER: "c", Unit.SHAPE: "s"}
_UNITS = {letter: unit for unit, letter in _LETTERS.items()}
_SHINGLE = re.compile(r"([0-9]{1,7})([cs]?)", re.ASCII)


def shingle_of(size: int | str) -> tuple[int, Unit]:
    """Size and unit of a shingle: ``5`` or ``"5"`` are words, ``"5c"`` characters, ``"7s"`` shapes. Raises
    `SettingsError`."""
    match = _SHINGLE.fullmatch(str(size))
    if match is None or isinstance(size, bool):
        raise SettingsError(f"A shingle is a number of words (5), characters (5c) or shapes (7s), not {size!r}.")
    return int(match[1]), _UNITS[match[2]]


def shingle_option(size: int, unit: Unit) -> str:
    """The size as `shingle_of` reads it: ``5``, ``5c``, ``7s``."""
    return f"{size}{next(letter for letter, one in _UNITS.items() if one is unit)}"


def shingle_text(size: int, unit: Unit) -> str:
    """The size with its unit: ``5 words``, ``1 word``, ``5 characters``, ``7 shapes``."""
    return counted(size, unit.value)
