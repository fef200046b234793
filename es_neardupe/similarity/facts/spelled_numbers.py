"""Spelled-out numbers, such as ``twelve thousand five hundred``, in English, German, French and Spanish."""

from __future__ import annotations

from es_neardupe.similarity.facts import vocabulary as words
from es_neardupe.similarity.facts.raw_tokens import RawTokens

_BEFORE_RANGES = ("between ", "Between ")
"""Before two numbers: between one hundred and two thousand."""


def spelled(tokens: RawTokens, i: int) -> tuple[int, int]:
    """The value of a spelled-out number such as ``twelve thousand five hundred``, and what follows it. Its last
    magnitude is left."""
    value, k = _below_thousand(tokens, i)
    if tokens.near(k) in words.SPOKEN_MAGNITUDES:
        power = 10 ** words.MAGNITUDES[tokens.near(k)]
        rest, end = _rest(tokens, k + 1, power)
        if rest:
            return value * power + rest, end
    return value, k


def _rest(tokens: RawTokens, k: int, limit: int) -> tuple[int, int]:
    """The rest of a spelled-out number after a magnitude, and what follows it; 0 if another number begins there."""
    if tokens.near(k) == "and":  # two thousand and five, but between two thousand and three thousand
        k, limit = k + 1, 100
    if tokens.near(k) not in words.SPELLED_NUMBERS or tokens.near(k) in words.DOZENS:
        return 0, k
    value, end = _below_thousand(tokens, k)
    if tokens.near(end) in words.SPOKEN_MAGNITUDES:
        power = 10 ** words.MAGNITUDES[tokens.near(end)]
        if power >= limit:
            return 0, k
        rest, after = _rest(tokens, end + 1, power)
        value, end = value * power + rest, after if rest else end + 1
    return (value, end) if value < limit else (0, k)


def _below_thousand(tokens: RawTokens, i: int) -> tuple[int, int]:
    value, k = _below_hundred(tokens, i)
    is_french = tokens.raw[k - 1][0].lower() in words.BEFORE_CENT and tokens.near(k) in ("cent", "cents")
    if value < 100 and (tokens.near(k) in words.HUNDREDS or is_french):
        value, k = 100 * value, k + 1
    if value < 100:
        return value, k
    after = k + (tokens.next_word(k) == "and")
    is_range = after > k and tokens.text.endswith(_BEFORE_RANGES, 0, tokens.raw[i].start())
    if tokens.next_word(after) in words.SPELLED_NUMBERS and tokens.near(after) not in words.DOZENS:
        rest, end = _below_hundred(tokens, after)
        others = words.HUNDREDS | words.SPOKEN_MAGNITUDES if is_range else words.HUNDREDS
        if rest < 100 and tokens.near(end) not in others:
            return value + rest, end
    return value, k


def _below_hundred(tokens: RawTokens, i: int) -> tuple[int, int]:
    first = tokens.raw[i][0].lower()
    value, k = words.SPELLED_NUMBERS[first], i + 1
    if first in words.DOZENS:
        return value, k
    is_french = first in ("soixante", "quatre") or (first == "dix" and tokens.next_word(k) in ("sept", "huit", "neuf"))
    if first == "quatre" and tokens.next_word(k) in ("vingt", "vingts"):
        value, k = 80, k + 1
    if 20 <= value < 100:
        after = k + (tokens.next_word(k) in ("et", "y"))
        ones = words.SPELLED_NUMBERS.get(tokens.next_word(after), 100)
        if ones < 10 or (is_french and ones < 17):
            value, k = value + ones, after + 1
    if is_french and value % 20 == 10 and tokens.next_word(k) in ("sept", "huit", "neuf"):
        value, k = value + words.SPELLED_NUMBERS[tokens.near(k)], k + 1
    return value, k


def ordinal_after(tokens: RawTokens, value: int, k: int) -> int:
    """The ordinal at the end of ``twenty-first``; 0 if there is none."""
    is_tens = value % 100 >= 20 and value % 10 == 0
    ordinal = words.ORDINALS.get(tokens.next_word(k), 10) if is_tens else 10
    is_unit = tokens.next_word(k) in words.UNITS and tokens.text[tokens.raw[k - 1].end()] != "-"  # twenty second breaks
    return ordinal if ordinal < 10 and not is_unit else 0


def spelled_part(tokens: RawTokens, value: int, k: int) -> tuple[str, int]:
    """``two thirds``, ``three quarters of``: a number with the parts that are counted, and what follows."""
    part = words.FRACTIONS.get(tokens.next_word(k), 0)
    is_clear = part != 4 or tokens.next_word(k + 1) == "of"  # quarters are also parts of a year
    if value == 1 and (of_one := part_of_one(tokens, k)):
        part, is_clear = of_one, True
    return (f"{value / part:.6g}", k + 1) if part > value and is_clear else (str(value), k)


def part_of_one(tokens: RawTokens, k: int) -> int:
    """``quarter of``: into how many parts one is divided; 0 if nothing is."""
    return words.FRACTIONS_OF_ONE.get(tokens.next_word(k), 0) if tokens.next_word(k + 1) == "of" else 0


def spelled_decimals(tokens: RawTokens, value: str, k: int) -> tuple[str, int]:
    """``three point five``: a number with the digits after ``point``, and what follows."""
    if tokens.near(k) not in words.POINTS:
        return value, k
    digits, end = "", k + 1
    while words.SPELLED_NUMBERS.get(tokens.near(end), 10) < 10:
        digits += str(words.SPELLED_NUMBERS[tokens.near(end)])
        end += 1
    return (f"{value}.{digits}", end) if digits else (value, k)
