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

    def passage(self, shingle: int) -> int:
        """The minimum number of words in a common passage, if shingles have so many of these: passages are counted in
        words, and a shingle of some characters is about one word."""
        return shingle if self is Unit.WORD else 1


_SHINGLE = re.compile(r"([0-9]{1,7})(c?)", re.ASCII)


def shingle_of(size: int | str) -> tuple[int, Unit]:
    """Size and unit of a shingle: ``5`` or ``"5"`` are words, ``"5c"`` characters. Raises `SettingsError`."""
    match = _SHINGLE.fullmatch(str(size))
    if match is None or isinstance(size, bool):
        raise SettingsError(f"A shingle is a number of words, such as 5, or of characters, such as 5c, not {size!r}.")
    return int(match[1]), Unit.CHARACTER if match[2] else Unit.WORD


def shingle_text(size: int, unit: Unit) -> str:
    """The size with its unit: ``5 words``, ``1 word``, ``5 characters``."""
    return counted(size, unit.value)
