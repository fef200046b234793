"""Numbers with units, and shares."""

from __future__ import annotations

import re

from es_neardupe.options import FactKind
from es_neardupe.similarity.facts import vocabulary as words
from es_neardupe.similarity.facts.fact_keys import LENGTH, QUANTITY, quantity_key, share_key
from es_neardupe.similarity.facts.raw_tokens import YEAR
from es_neardupe.similarity.facts.reader import Reader

_LAST_WORD = re.compile(r"[^\W\d]+$")
_NO_UNIT = ("", 1.0)
_LENGTH_ALONE = re.compile(rf"{LENGTH}[\d.e+-]+")
_BETWEEN_SIDES = re.compile(rf"\s?(?:×|{'|'.join(words.BETWEEN_SIDES)})\s?(?:[WDHLBT]:?\s?)?", re.IGNORECASE)
_MAX_BASIS_POINTS = 500
"""More ``bps`` are bits per second."""


def unit_named(written: str) -> tuple[str, float] | None:
    """The dimension and the factor of a unit; None for another word, and for ``M``, ``H`` and ``S``."""
    unit = written.lower()
    if len(unit) == 1 and (unit not in words.UNITS_OF_ONE_LETTER or written in "MHS"):
        return None
    return words.UNITS_AS_WRITTEN.get(written) or words.UNITS.get(unit)


class MeasureReader(Reader):
    """Reads what a number is of. Each method returns the number of the next raw token, or 0."""

    def _measured(self, k: int, value: str, start: int) -> int:
        """A number whose unit, or sign of percent, is at ``k``; 0 if there is none."""
        unit = self.near(k)
        is_after_a_magnitude = self.raw[k - 1][0].lower() in words.MAGNITUDES  # 5 Mio. km
        if not unit or not self.only_blanks_before(k, "." if is_after_a_magnitude else ""):
            return 0
        if after := self._share(k, value, start) or self._rate(k, value, start) or self._of_two_words(k, value, start):
            return after
        if unit == "fl" and self.near(k + 1) in ("oz", "ounce", "ounces"):  # as ounces: the others may be fluid, too
            unit, k = self.near(k + 1), k + 1
        length = self.near(k + 1) if unit in words.SQUARES else unit if self.near(k + 1) in words.SQUARES_AFTER else ""
        if words.UNITS.get(length, ("",))[0] == "length":
            meters = words.UNITS[length][1] / 1000
            self._add(FactKind.UNIT, quantity_key("area", float(value) * meters**2), start, self.raw[k + 1].end())
            return k + 2
        known = unit_named(self.raw[k][0])
        is_year = unit in words.YEARS_AFTER_NUMBERS and YEAR.fullmatch(value)
        if known and not is_year:
            dimension, factor = known
            measured, start = self._with_larger(dimension, float(value) * factor, start)
            key, start = self._with_other_side(quantity_key(dimension, measured), start)
            self._add(FactKind.UNIT, key, start, self.raw[k].end())
            return k + 1
        return 0

    def _of_two_words(self, k: int, value: str, start: int) -> int:
        """A number of degrees of a scale, or of ``business days``; 0 if it is of something else."""
        unit, name = self.near(k), ""
        if unit in words.DEGREES and self.has(k + 1) and (scale := words.SCALES.get(self.raw[k + 1][0].lower())):
            name = f"°{scale}"
        elif unit in words.WORKING and self.near(k + 1) in ("day", "days"):
            name = "workday"
        if not name:
            return 0
        self._add(FactKind.UNIT, f"{QUANTITY}{name}:{value}", start, self.raw[k + 1].end())
        return k + 2

    def _with_larger(self, dimension: str, value: float, start: int) -> tuple[float, int]:
        """A value with that of the larger unit before it, and where this begins: ``1 hour and 30 minutes``."""
        tokens = self.tokens
        has_and = bool(tokens.keys) and tokens.keys[-1] in words.AND
        last = len(tokens) - 1 - has_and
        if last < 0 or tokens.kinds.get(last) is not FactKind.UNIT:
            return value, start
        between = self.text[tokens.ends[last] : start].strip(" ,").lower()
        larger, factor = self._unit_at_the_end(last)
        name, _, before = tokens.keys[last].rpartition(":")
        is_part = larger == dimension and name == f"{QUANTITY}{dimension}" and 0 < value < factor and "x" not in before
        if not is_part or between not in ("", *words.AND):
            return value, start
        first = tokens.starts[last]
        for _ in range(1 + has_and):
            tokens.remove_last()
        return value + float(before), first

    def _unit_at_the_end(self, token: int) -> tuple[str, float]:
        """The dimension and the factor of the unit that a token ends with; an empty dimension and 1 without one."""
        unit = _LAST_WORD.search(self.text, self.tokens.starts[token], self.tokens.ends[token])
        return words.UNITS.get(unit[0].lower(), _NO_UNIT) if unit else _NO_UNIT

    def _with_other_side(self, key: str, start: int) -> tuple[str, int]:
        """A length with that before it, and where this begins: ``160 cm x 230 cm``, as ``160 x 230 cm``."""
        tokens = self.tokens
        lengths = (k for k in range(len(tokens) - 1, max(len(tokens) - 4, -1), -1) if tokens.keys[k].startswith(LENGTH))
        last = next(lengths, -1)
        if last < 0 or not key.startswith(LENGTH) or not _BETWEEN_SIDES.fullmatch(self.text, tokens.ends[last], start):
            return key, start
        size, _, others = tokens.keys[last].removeprefix(LENGTH).partition("x")
        first = tokens.starts[last]
        while len(tokens) > last:
            tokens.remove_last()
        return f"{key}x{f'{others}x' if others else ''}{size}", first

    def _share(self, k: int, value: str, start: int) -> int:
        """A number of percent, in thousand, of basis or percentage points; 0 if it is none."""
        unit, k, power, is_points = self.near(k), k + 1, 0, False
        if unit in words.PER_MILLE:
            power = 1
        elif unit == "bps" and float(value) <= _MAX_BASIS_POINTS:
            power = 2
        elif unit == "basis" and self.near(k) in ("point", "points"):
            power, k = 2, k + 1
        elif unit in words.PERCENTAGE_POINTS or (unit == "percentage" and self.near(k) in ("point", "points")):
            k += unit == "percentage"
            is_points = True
        elif unit in words.PER_CENT and self.near(k) == words.PER_CENT[unit]:
            k += 1
        elif unit not in words.PERCENT:
            return 0
        share = f"{float(value) / 10**power:.12g}" if power else value
        self._add(FactKind.NUMBER, share_key(share, points=is_points), start, self.raw[k - 1].end())
        return k

    def _rate(self, k: int, value: str, start: int) -> int:
        """A number of bits or bytes in a second, as that of bits and a second: ``100 Mbps``; 0 if it is none."""
        text, _, end = self.part(k)
        is_one_word = text.lower().endswith("ps")
        data = text[:-2] if is_one_word else text
        unit = data.lower()
        if unit not in words.BITS_PER_SECOND or not (is_one_word or self.text[end : end + 2] == "/s"):
            return 0
        dimension, factor = words.UNITS[unit if data[-1] == "B" else words.BITS_PER_SECOND[unit]]
        divided = end - is_one_word
        self._add(FactKind.UNIT, quantity_key(dimension, float(value) * factor), start, divided)
        if is_one_word:
            self._add(FactKind.UNIT, quantity_key("time", 1), divided, end)
        return k + 1

    def _per(self, k: int) -> int:
        """A fact and what follows it, with a unit at ``k`` of which it is one: ``/h``, ``per kg``."""
        if not self.has(k) or not self._follows_a_fact():
            return k
        at = k + 1 if self.next_word(k) in words.PER else k if self.between(k).strip(" ") == "/" else 0
        if not at or not self.has(at) or (at > k and not self.next_word(at)):
            return k
        text, _, end = self.part(at)
        unit = text.lower()
        if unit in words.QUARTERS and at > k:
            dimension, factor = "time", 3 * words.MONTH
        elif unit in words.UNITS and unit not in words.NOT_AFTER_PER:
            dimension, factor = words.UNITS[unit]
        else:
            return k
        key, start = quantity_key(dimension, factor), self.raw[k].start()
        if dimension == "time" and _LENGTH_ALONE.fullmatch(self.tokens.keys[-1]):  # 130 kilometres per hour
            kilometres = float(self.tokens.keys[-1].removeprefix(LENGTH)) / 1_000_000
            key, start = quantity_key("speed", kilometres * 3600 / factor), self.tokens.starts[-1]
            self.tokens.remove_last()
        self._add(FactKind.UNIT, key, start, end)
        return self._per(at + 1)
