"""The frozen code-point table of scheme v1: NFKC_Casefold, restricted to Unicode 13.0.

`normalize` in `es_neardupe.keys.text` replaces each code point by its NFKC_Casefold mapping (UAX 44) and then composes
the text (NFC, UAX 15). Both are stable for assigned characters, but tables grow with each version of Unicode. So the
repertoire is frozen: ``unicode_v1.json`` knows the characters of Unicode 13.0, the version of the oldest supported
runtimes (Python 3.10, JDK 17), and all other code points are separators. Keys never depend on the Unicode version of
the Python that runs. `build` made the file.

The mapping differs from NFKC_Casefold in these points:

- Code points without a word character in their mapping are separators, and so are emoji: ``™`` is no ``tm``.
- Spacing forms of marks, such as ``´``, are separators; their mapping is a space and a mark.
- Marks that writers leave out at will are removed, as default ignorable code points are: Arabic vowel and Quranic
  marks and tatweel (Lucene's ArabicNormalizer does so), Hebrew points and accents, Syriac vowel marks (The Unicode
  Standard, chapter 9), and enclosing marks. All other marks stay: they distinguish words.
- ``I``, ``i``, ``İ`` and ``ı`` are one letter, or Turkish words in capitals would be other words: ``ı`` is mapped to
  ``i``, and a dot above (U+0307) after an ``i`` is removed.
"""

from __future__ import annotations

import json
from functools import lru_cache
from importlib.resources import files
from typing import Any, NamedTuple

import numpy as np

from es_neardupe.keys.arrays import U32, U64, Octets

TARGET = 0x1FFFFF
"""Bits of a table entry that hold a code point, or with `EXPANDS` a place in the pool."""
WORD = 1 << 24
"""Flag: a letter, digit, mark or ``_``. All others are separators; their target is a blank."""
SINGLE = 1 << 25
"""Flag: a word character of a script written without spaces, a token by itself (``WORD`` is set too)."""
EXPANDS = 1 << 26
"""Flag: the mapping has no or several code points. No other flag is set: those of each code point apply."""
MARK = 1 << 27
"""Flag: a combining mark, part of a word only after a word character."""
DIGIT = 1 << 28
"""Flag: a decimal digit."""
FIRST = 1 << 29
"""Flag: the first code point of a canonical composition, or the result of one."""
SECOND = 1 << 30
"""Flag: the second code point of a canonical composition (``NFC_Quick_Check`` is not Yes)."""

DOTTED = 1 << 31
"""Flag: ``i``, alone or with a mark of another class than a dot above, after which that dot is removed. Such a mark by
itself has the flag too: canonically, a dot can be reordered across it, so one after it is removed if there is an ``i``
before it."""
DOT_ABOVE = 0x307
_ABOVE = 230
"""The combining class of a dot above."""

_CODE_POINTS = 0x110000
_BLANK = 0x20

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
    (0xF900, 0xFAFF),  # Han compatibility ideographs that map to themselves
    (0x16FE3, 0x16FE3),  # old Chinese iteration mark
    (0x16FF0, 0x16FF1),  # Vietnamese reading marks of Han
    (0x1AFF0, 0x1B16F),  # kana supplement, extended A, small kana
    (0x20000, 0x3FFFD),  # Han extensions B and later
)

_DEFAULT_IGNORABLE = (
    *((0x00AD, 0x00AD), (0x034F, 0x034F), (0x061C, 0x061C), (0x115F, 0x1160), (0x17B4, 0x17B5), (0x180B, 0x180E)),
    *((0x200B, 0x200F), (0x202A, 0x202E), (0x2060, 0x2064), (0x2066, 0x206F), (0x3164, 0x3164), (0xFE00, 0xFE0F)),
    *((0xFEFF, 0xFEFF), (0xFFA0, 0xFFA0), (0x1BCA0, 0x1BCA3), (0x1D173, 0x1D17A), (0xE0001, 0xE0001)),
    *((0xE0020, 0xE007F), (0xE0100, 0xE01EF)),
)
"""Assigned code points with the property Default_Ignorable_Code_Point (DerivedCoreProperties of Unicode 13.0)."""

_OPTIONAL_MARKS = (
    *((0x0591, 0x05BD), (0x05BF, 0x05BF), (0x05C1, 0x05C2), (0x05C4, 0x05C5), (0x05C7, 0x05C7)),  # Hebrew
    *((0x0610, 0x061A), (0x0640, 0x0640), (0x064B, 0x0652), (0x0656, 0x065F), (0x0670, 0x0670)),  # Arabic
    *((0x06D6, 0x06DC), (0x06DF, 0x06E4), (0x06E7, 0x06E8), (0x06EA, 0x06ED), (0x08D3, 0x08E1), (0x08E3, 0x08FF)),
    *((0x0711, 0x0711), (0x0730, 0x074A)),  # Syriac
)

_EMOJI_LETTERS = (
    *((0x2122, 0x2122), (0x2139, 0x2139), (0x24C2, 0x24C2), (0x3297, 0x3297), (0x3299, 0x3299), (0x1F201, 0x1F202)),
    *((0x1F21A, 0x1F21A), (0x1F22F, 0x1F22F), (0x1F232, 0x1F23A), (0x1F250, 0x1F251)),
)
"""Code points with the property Emoji whose NFKC_Casefold mapping has letters."""


class CharacterTable(NamedTuple):
    """The code-point table as arrays, all read-only."""

    entries: U32
    """uint32[0x110000]: target and flags of each code point; the flags of a mapped one are those of its target."""
    pool: U32
    """uint32: mappings of `EXPANDS` code points, each as its length and its code points."""
    combining: Octets
    """uint8[0x110000]: canonical combining classes."""
    pairs: U64
    """uint64, sorted: canonical compositions of two code points, ``first << 43 | second << 22 | result``. They only
    save time: to compose a part of a text does not change its NFC."""


@lru_cache(maxsize=1)
def table() -> CharacterTable:
    """The frozen table."""
    data = json.loads(files(__package__).joinpath("unicode_v1.json").read_text("ascii"))
    entries = np.full(_CODE_POINTS, _BLANK, np.uint32)
    points = np.arange(_CODE_POINTS, dtype=np.uint32)
    for first, last in data["word"]:
        entries[first : last + 1] = points[first : last + 1] | np.uint32(WORD)
    names = ((SINGLE, "single"), (MARK, "mark"), (DIGIT, "digit"), (FIRST, "first"), (SECOND, "second"))
    for flag, name in (*names, (DOTTED, "dotted")):
        for first, last in data[name]:
            entries[first : last + 1] |= np.uint32(flag)
    combining = np.zeros(_CODE_POINTS, np.uint8)
    for first, last, number in data["combining"]:
        combining[first : last + 1] = number
    entries[(combining != 0) & (combining != _ABOVE)] |= np.uint32(DOTTED)
    for first, last, step, delta in data["mapped"]:
        sources = points[first : last + 1 : step]
        entries[sources] = entries[sources + np.uint32(delta % 2**32)]
    pool: list[int] = []
    for source, target in data["expanded"]:
        entries[source] = EXPANDS | len(pool)
        pool += [len(target), *map(ord, target)]
    for first, last in data["removed"]:
        entries[first : last + 1] = EXPANDS | len(pool)
    pool.append(0)
    found = CharacterTable(entries, np.array(pool, np.uint32), combining, _pairs(data["first"]))
    for one in found:
        one.flags.writeable = False
    return found


def _pairs(runs: list[list[int]]) -> U64:
    """The canonical compositions whose results are in these runs of code points, without Hangul."""
    import unicodedata

    found = []
    for result in (point for first, last in runs for point in range(first, last + 1) if not 0xAC00 <= point < 0xD7A4):
        parts = unicodedata.decomposition(chr(result)).split()
        if len(parts) == 2 and not parts[0].startswith("<"):
            found.append(int(parts[0], 16) << 43 | int(parts[1], 16) << 22 | result)
    return np.array(sorted(found), np.uint64)


def build(assigned: list[list[int]] | None = None) -> dict[str, Any]:
    """The content of ``unicode_v1.json``, made from the running Python's Unicode data.

    ``assigned``: first and last code point of each run of characters in Unicode 13.0, as the file lists them; None
    takes those that the running Python knows. The file was written with Python 3.10 (Unicode 13.0.0) and is never
    written again: any other table is another scheme. A test builds it again with each Python that it finds.
    """
    import unicodedata

    known = [unicodedata.category(chr(point)) not in ("Cn", "Cs", "Co", "Cc") for point in range(_CODE_POINTS)]
    if assigned is None:
        assigned = _runs([point for point, one in enumerate(known) if one])
    repertoire = [point for first, last in assigned for point in range(first, last + 1)]
    ignorable = _members(_DEFAULT_IGNORABLE)
    removed, emoji = ignorable | _members(_OPTIONAL_MARKS), _members(_EMOJI_LETTERS)
    removed |= {point for point in repertoire if unicodedata.category(chr(point)) == "Me"}

    def mapping(point: int) -> str | None:
        """The code points that replace one; None for a separator."""
        if point in removed:
            return ""
        text, before = chr(point), ""
        while text != before:
            before, text = text, unicodedata.normalize("NFKC", text).casefold()
            text = "".join(one for one in text if ord(one) not in ignorable)
        text = "".join(one for one in text if ord(one) not in removed)
        text = unicodedata.normalize("NFC", text.replace("i\u0307", "i").replace("\u0131", "i"))
        if point in emoji or text[:1] in ("", " ") or not any(map(is_word, text)):
            return None
        return text

    def is_dotted(character: str) -> bool:
        parts = unicodedata.normalize("NFD", character)
        return parts[0] == "i" and not any(unicodedata.combining(mark) in (0, _ABOVE) for mark in parts[1:])

    def is_word(character: str) -> bool:
        return character == "_" or unicodedata.category(character)[0] in "LNM"

    targets = {point: target for point in repertoire if (target := mapping(point)) is not None}
    same = [point for point, target in targets.items() if target == chr(point)]
    pairs = [unicodedata.decomposition(chr(point)) for point in repertoire]
    composed = {
        point: [int(one, 16) for one in pair.split()]
        for point, pair in zip(repertoire, pairs, strict=True)
        if pair and "<" not in pair and " " in pair and unicodedata.normalize("NFC", chr(point)) == chr(point)
    }
    firsts = {first for first, _ in composed.values()} | {*composed, *range(0x1100, 0x1113), *range(0xAC00, 0xD7A4)}
    seconds = {second for _, second in composed.values()} | {*range(0x1161, 0x1176), *range(0x11A8, 0x11C3)}
    single = _members(_SPACELESS)
    classes = [(point, unicodedata.combining(chr(point))) for point in same if unicodedata.combining(chr(point))]
    return {
        "unicode": "13.0.0",
        "assigned": assigned,
        "word": _runs(same),
        "single": _runs([point for point in same if point in single]),
        "mark": _runs([point for point in same if unicodedata.category(chr(point))[0] == "M"]),
        "digit": _runs([point for point in same if unicodedata.category(chr(point)) == "Nd"]),
        "first": _runs([point for point in same if point in firsts]),
        "second": _runs([point for point in same if point in seconds]),
        "dotted": _runs([point for point in same if is_dotted(chr(point))]),
        "combining": [[first, last, delta] for first, last, step, delta in _progressions(classes, 1)],
        "mapped": _progressions(
            [(p, ord(target) - p) for p, target in targets.items() if len(target) == 1 and target != chr(p)], 2
        ),
        "expanded": [[point, target] for point, target in targets.items() if len(target) > 1],
        "removed": _runs([point for point, target in targets.items() if not target]),
    }


def _members(runs: tuple[tuple[int, int], ...]) -> set[int]:
    return {point for first, last in runs for point in range(first, last + 1)}


def _runs(points: list[int]) -> list[list[int]]:
    """``[first, last]`` of points that follow each other."""
    runs: list[list[int]] = []
    for point in points:
        if runs and runs[-1][1] == point - 1:
            runs[-1][1] = point
        else:
            runs.append([point, point])
    return runs


def _progressions(pairs: list[tuple[int, int]], widest: int) -> list[list[int]]:
    """``[first, last, step, value]``: points at the same distance, at most ``widest``, with equal values."""
    found: list[list[int]] = []
    for point, value in pairs:
        last = found[-1] if found else [-9, -9, 1, 0]
        step = point - last[1]
        if value == last[3] and step <= widest and (last[0] == last[1] or step == last[2]):
            last[1:3] = [point, step]
        else:
            found.append([point, point, 1, value])
    return found
