"""Tokens of a text: words, and facts with a normalised value, so that ``$1,000`` and ``1000 dollars`` are equal."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping

from es_neardupe.options import FactKind
from es_neardupe.similarity import batch
from es_neardupe.similarity.facts import calendar_words as calendar
from es_neardupe.similarity.facts import currencies
from es_neardupe.similarity.facts import product_words as products
from es_neardupe.similarity.facts import vocabulary as words
from es_neardupe.similarity.facts.amounts import AmountReader
from es_neardupe.similarity.facts.dates import PERIOD, PERIOD_OF_YEAR, DateReader
from es_neardupe.similarity.facts.fact_keys import (
    ADDRESS,
    LENGTH,
    ORDINAL,
    PHONE,
    TIME,
    WEEKDAY,
    code_key,
    date_key,
    decade_key,
    number_key,
    ordinal_key,
    quantity_key,
    share_key,
    time_key,
    value_of,
    with_value,
)
from es_neardupe.similarity.facts.measures import MeasureReader, unit_named
from es_neardupe.similarity.facts.numerals import (
    chinese,
    decimal,
    fraction,
    is_loss,
    myriads,
    scaled,
    with_plain_digits,
)
from es_neardupe.similarity.facts.raw_tokens import BLANKS, NUMBERS, SCREW, WORDS, YEAR
from es_neardupe.similarity.facts.reader import Tokens
from es_neardupe.similarity.facts.spelled_numbers import (
    ordinal_after,
    part_of_one,
    spelled,
    spelled_decimals,
    spelled_part,
)
from es_neardupe.similarity.facts.symbols import read_symbol
from es_neardupe.similarity.facts.word_lists import words_of

_NUMBERS_BY_PLACE = frozenset().union(words.ROMAN_NUMBERS, words.FRACTIONS_OF_ONE, ("minus", "once"))
_IN_ANY_CASE = frozenset().union(
    calendar.MONTHS.keys() - (calendar.OFTEN_OTHER_WORDS - calendar.MONTHS_IN_FRENCH),
    words.SPELLED_NUMBERS,
    words.ORDINALS,
    currencies.CODES_BEFORE_AMOUNTS - currencies.ONLY_IN_CAPITALS,
    words.HALVES,
    words.SPOKEN_MAGNITUDES,
    words.UNITS_AFTER_A,
    words.NUMBER_SIGNS,
    words.BEFORE_LETTERS,
    words.FREQUENCIES,
    words_of("every extra x"),
    calendar.HOURS,
    calendar.BEFORE_HOURS,
    calendar.DECADES,
    calendar.WEEKDAYS_IN_LOWER_CASE,
    _NUMBERS_BY_PLACE,
)
_IF_CAPITALISED = (
    frozenset().union(calendar.WEEKDAYS, calendar.OFTEN_OTHER_WORDS, currencies.ONLY_IN_CAPITALS) - _IN_ANY_CASE
)
_SPECIAL = _IN_ANY_CASE | _IF_CAPITALISED
"""Words that may be, or begin, a fact."""
_CONTRACTED = {
    "cannot": ("can", 3),
    **{f"{verb}nt": (words.CONTRACTED.get(verb, verb), len(verb)) for verb in words.AUXILIARIES},
}
"""Words that are a verb and not: the verb, and its letters. An apostrophe may be missing."""
_CONTRACTIONS = frozenset([*_CONTRACTED, *(f"{verb}n" for verb in words.AUXILIARIES)])
"""These, and the beginnings of contractions: ``doesn`` is that of ``doesn't``."""
_READ_IN_ANY_CASE = _IN_ANY_CASE | _CONTRACTIONS
_READ = _SPECIAL | _CONTRACTIONS
AFTER_NUMBERS = frozenset().union(
    calendar.MONTHS,
    words.MAGNITUDES,
    words.DOZENS,
    currencies.CURRENCIES,
    currencies.CENTS,
    words.UNITS,
    map(str.lower, words.UNITS_AS_WRITTEN),
    words.BITS_PER_SECOND,
    (f"{unit}ps" for unit in words.BITS_PER_SECOND),
    words.SQUARES,
    words.DEGREES,
    words.PERCENT,
    words.PER_CENT,
    words.PERCENTAGE_POINTS,
    words.PER,
    calendar.CLOCKS,
    words.AFTER_ORDINALS,
    words.PERIODS,
    words.WORKING,
    words_of("x by mal o am pm a p of de del da di d and fl bps basis percentage"),
)
"""Words that may belong to a number before them."""
FOR_KERNEL = (_READ_IN_ANY_CASE, _IF_CAPITALISED, AFTER_NUMBERS, (FactKind.NUMBER, FactKind.DATE))
"""What the loop in C needs to find ordinary words and numbers."""
_CHINESE_SHARE = "百分之"
"""Before a number: percent."""
_APOSTROPHES = ("'", "’", "‘", "´", "`", " ")
"""In ``doesn't``; a blank: lost punctuation."""
_PART_SIGNS = ("§", "№")
"""Before the number of a part, which no token is."""
_SHORT_PHONE = len("555-1234")
_LEADING_POINT = re.compile(r"(?:^|[\s(\[$€£])\.")
_MINUS_BEFORE = re.compile(r"(?:^|[\s(\[])[-−]")
_LETTER_OF_PART = re.compile(r"\s\(?([a-z]|[ivx]+)\)")
_SCORE = re.compile(r"\d\d?")
_BEFORE_SCORE = re.compile(r"(?:^|[\s(\[,])")
_AFTER_SCORE = re.compile(r"(?:[.,;:!?)\]]|\s[a-zA-Z(]|\s*$|\n)")
_COUNT = re.compile(r"\d+(?:[.,]\d+)?")
_READ_AS_A_WHOLE = {"fraction": fraction, "myriads": myriads, "chinese": chinese}
"""How raw tokens are read that are numbers with more than digits."""


def scan(text: str) -> Tokens:
    """The tokens of a text in NFC."""
    return _Scanner(text).tokens


class _Scanner(DateReader, AmountReader, MeasureReader):
    """Reads a text from the left: ordinary words and numbers at once, others by readers. Each begins at a raw token,
    appends tokens, and returns the number of the next raw one."""

    def __init__(self, text: str) -> None:
        super().__init__(with_plain_digits(text))
        self._read(
            {
                "plain": self._word,
                "word": self._word,
                "number": self._number,
                "spaced": self._number,
                "fraction": self._number,
                "myriads": self._number,
                "east_asian_date": self._east_asian_date,
                "chinese_date": self._east_asian_date,
                "chinese": self._chinese,
                "east_asian_time": self._east_asian_time,
                "half_of_day": self._east_asian_time,
                "short_date": self._short_date,
                "named_date": self._named_date,
                "pack": self._pack,
                "sign": self._sign,
                "symbol": self._symbol,
                "iso": self._iso_date,
                "date": self._date_of_numbers,
                "time": self._time,
                "version": self._version,
                "screw": lambda i: self._screw(i, self.raw[i]),
                "code": self._code,
                "clause": self._code,
                "phone": self._phone,
                "address": self._address,
            }
        )

    def _read(self, readers: Mapping[str, Callable[[int], int]]) -> None:
        tokens, codes = self.tokens, self.text.encode("utf-32-le", "surrogatepass") if batch.kernel else b""
        columns = tokens.keys, tokens.starts, tokens.ends, tokens.kinds, tokens.values
        at, before = 0, -1  # the end of the last raw token
        while True:
            if batch.kernel:
                number = len(tokens)
                at = batch.kernel.words(codes, at, *FOR_KERNEL, *columns)
                before = tokens.ends[-1] if len(tokens) > number else before
            match = self.first_from(at)
            if match is None:
                return
            group = match.lastgroup or ""
            if group in WORDS and (low := match[0].lower()) not in _READ:
                tokens.keys.append(low)
                tokens.starts.append(match.start())
                tokens.ends.append(match.end())
                at = match.end()
            else:
                self.begin(match, before)
                at = self.raw[readers[group](0) - 1].end()
            before = at

    def _word(self, i: int) -> int:
        text, start, end = self.part(i)
        low = text.lower()
        if low not in _SPECIAL:
            if low in _CONTRACTIONS and (after := self._contraction(i)):
                return after
            self._add(None, low, start, end)
            return i + 1
        is_capitalised = text[0].isupper()
        is_other = low in calendar.OFTEN_OTHER_WORDS and not self._is_month_in_french(low)
        if low in calendar.MONTHS and (is_capitalised or not is_other):
            after = self._month_first(i)
            if after:
                return after
        if low in calendar.MONTHS and self._is_month_alone(i):
            self._add(FactKind.DATE, date_key("", calendar.MONTHS[low]), start, end)
        elif (
            low in calendar.WEEKDAYS
            and (is_capitalised or low in calendar.WEEKDAYS_IN_LOWER_CASE)
            and self._is_weekday(i)
        ):
            self._add(FactKind.DATE, f"{WEEKDAY}{calendar.WEEKDAYS[low]}", start, end)
        elif after := (
            self._time_of_a_word(i)
            or self._number_of_a_word(i)
            or self._with_letter(i)
            or self._frequency(i)
            or self._size(i)
        ):
            return self._per(after)
        elif low in words.ORDINALS:
            return self._ordinal(str(words.ORDINALS[low]), start, i + 1)
        elif low in words.NUMBER_SIGNS and self._is_number_sign(i):
            self._add(None, "№", start, end)
        elif low in calendar.DECADES:
            self._add(FactKind.DATE, decade_key(f"{calendar.DECADES[low]}0"), start, end)
        elif low in calendar.HOURS and not is_capitalised:  # Midnight is a colour, too
            self._add(FactKind.DATE, f"{TIME}{calendar.HOURS[low]}", start, end)
        else:
            self._add(None, low, start, end)
        return i + 1

    def _frequency(self, i: int) -> int:
        """``daily``, ``every day``, ``every other week``, as ``per day``; 0 if it is something else."""
        text, start, end = self.part(i)
        seconds, k = words.FREQUENCIES.get(text), i + 1
        if text.lower() == "every":
            is_second = self.near(k) in ("other", "second")
            k += 1 + is_second
            dimension, factor = words.UNITS.get(self.near(k - 1), ("", 0.0))
            if self.near(k - 1) in words.QUARTERS:
                dimension, factor = "time", 3 * words.MONTH
            seconds = factor * (1 + is_second) if dimension == "time" else None
            end = self.raw[k - 1].end() if seconds else end
        if not seconds:
            return 0
        self._add(FactKind.UNIT, quantity_key("time", seconds), start, end)
        return k

    def _size(self, i: int) -> int:
        """``X-Large``, ``extra small``: a size of clothes as ``XL``; 0 if it is something else."""
        size = products.BEFORE_SIZES.get(self.near(i + 1), "") if self.raw[i][0].lower() in ("x", "extra") else ""
        if not size:
            return 0
        self._add(None, size, self.raw[i].start(), self.raw[i + 1].end())
        return i + 2

    def _with_letter(self, i: int) -> int:
        """``paragraph (b)``, ``question b)``: a word and the letter of a part; 0 if it is something else."""
        text, start, end = self.part(i)
        letter = _LETTER_OF_PART.match(self.text, end) if text.lower() in words.BEFORE_LETTERS else None
        if not letter:
            return 0
        self._add(None, text.lower(), start, end)
        self._add(FactKind.CODE, code_key(f"({letter[1]})"), *letter.span(1))
        return self.first_after(i, letter.end(1))

    def _is_number_sign(self, i: int) -> bool:
        """Whether ``No`` is the sign of the number that follows, and does not deny it."""
        text, _, end = self.part(i)
        if not self.has(i + 1) or self.raw[i + 1].lastgroup not in (*NUMBERS, "code"):
            return False
        between = self.text[end : self.raw[i + 1].start()]
        return between in (". ", ".") or (between in BLANKS and text not in ("no", "NO"))

    def _number_of_a_word(self, i: int) -> int:
        """``USD 5``, ``five``, ``half an hour``, ``a million``; 0 if none of these begins, or ends, with the word."""
        low, start = self.raw[i][0].lower(), self.raw[i].start()
        if low in _NUMBERS_BY_PLACE:
            return self._number_by_place(i)
        if low in currencies.CODES_BEFORE_AMOUNTS:
            return self._amount_after_its_code(i)
        if low in words.SPELLED_NUMBERS:
            return self._value(i)
        if low in words.HALVES:
            return self._half(i)
        if low in words.AFTER_A and self._follows_a(i):
            start = self.tokens.starts[-1]
            self.tokens.remove_last()
            return self._value(i, value="1", start=start)
        return 0

    def _amount_after_its_code(self, i: int) -> int:
        """``USD 5``, ``USD (1,250)``; 0 if no amount follows the code."""
        currency, start = currencies.currency_named(self.raw[i][0]), self.raw[i].start()
        if not currency or not self.has(i + 1) or self.raw[i + 1].lastgroup not in NUMBERS:
            return 0
        if self.near(i + 1):
            return self._value(i + 1, currency=currency, start=start)
        in_brackets = self.between(i + 1) == " (" and is_loss(self.raw[i + 1][0])
        return self._loss(i + 1, currency, start) if in_brackets else 0

    def _number_by_place(self, i: int) -> int:
        """``II``, ``once a day``, ``minus 5``, ``a quarter of``; 0 if the word is none of these in its place."""
        text, start, end = self.part(i)
        low = text.lower()
        if low == "minus":
            is_number = self.near(i + 1) in words.SPELLED_NUMBERS or (
                self.near(i + 1) and self.raw[i + 1].lastgroup in NUMBERS
            )
            is_sign = is_number and not self._follows_a_fact()
            return self._negative(i + 1, start=start) if is_sign else 0
        if low in words.ROMAN_NUMBERS:
            value = str(words.ROMAN_NUMBERS[low]) if text.isupper() else ""
        elif low == "once":
            value = "1" if self.next_word(i + 1) in words.AFTER_ONCE else ""
        else:
            part = part_of_one(self, i) if self._follows_a(i) else 0
            value = f"{1 / part:.6g}" if part else ""
            if part:
                start = self.tokens.starts[-1]
                self.tokens.remove_last()
                of = i + 2 + (self.near(i + 2) in ("a", "an"))
                if self.near(of) in words.UNITS_AFTER_A:  # a quarter of an hour
                    return self._value(of, value=value, start=start)
        if value:
            self._add(FactKind.NUMBER, number_key(value), start, end)
        return i + 1 if value else 0

    def _negative(self, i: int, *, start: int, currency: str = "") -> int:
        """``minus 5 °C``, ``-$5``: a number at ``i`` as the negative one."""
        after = self._value(i, currency=currency, start=start)
        tokens = self.tokens
        if tokens.kinds[len(tokens) - 1] is not FactKind.DATE:
            tokens.change_last(with_value(tokens.keys[-1], f"-{value_of(tokens.keys[-1])}"))
        return after

    def _contraction(self, i: int) -> int:
        """``doesn't`` as two words, ``does`` and ``not``; 0 if it is something else."""
        text, start, end = self.part(i)
        low = text.lower()
        if low in _CONTRACTED:
            verb, letters = _CONTRACTED[low]
            middle = start + letters
            last = end
        elif self.has(i + 1) and self.raw[i + 1][0] in ("t", "T"):
            if self.text[end : self.raw[i + 1].start()] not in _APOSTROPHES:
                return 0
            verb = words.CONTRACTED.get(low[:-1], low[:-1])
            middle, last = end - 1, self.raw[i + 1].end()
        else:
            return 0
        self._add(None, verb, start, middle)
        self._add(None, "not", middle, last)
        return i + 1 + (last > end)

    def _number(self, i: int) -> int:
        after = self._value(i)
        self._bracketed()
        return self._per(after)

    def _chinese(self, i: int) -> int:
        text, start, end = self.part(i)
        if not text.startswith(_CHINESE_SHARE):
            return self._number(i)
        self._add(FactKind.NUMBER, share_key(chinese(text.removeprefix(_CHINESE_SHARE))), start, end)
        return i + 1

    def _sign(self, i: int) -> int:
        sign, start, end = self.part(i)
        if sign not in currencies.CURRENCIES or not self.has(i + 1) or self.raw[i + 1].lastgroup not in NUMBERS:
            return i + 1
        currency, tokens = currencies.CURRENCIES[sign], self.tokens
        between = self.text[end : self.raw[i + 1].start()].strip()
        if between == "(" and self.text.startswith(")", self.raw[i + 1].end()):
            return self._loss(i + 1, currency, start)
        if between not in ("", "."):
            return i + 1
        if _MINUS_BEFORE.fullmatch(self.text, max(start - 2, 0), start) and not self._follows_a_fact(FactKind.AMOUNT):
            return self._per(self._negative(i + 1, currency=currency, start=start - 1))
        if (
            sign == "$"
            and tokens.keys
            and tokens.ends[-1] == start
            and tokens.keys[-1] in currencies.LETTERS_BEFORE_DOLLARS
        ):
            currency, start = currencies.LETTERS_BEFORE_DOLLARS[tokens.keys[-1]], tokens.starts[-1]
            tokens.remove_last()
        after = self._value(i + 1, currency=currency, start=start)
        self._bracketed()
        return self._per(after)

    def _loss(self, i: int, currency: str, start: int) -> int:
        """``$(45) million``: a negative amount."""
        k, tokens = self._negative(i, currency=currency, start=start), self.tokens
        if self.has(k) and self.between(k) == ") " and (power := words.MAGNITUDES.get(self.raw[k][0].lower())):
            loss = value_of(tokens.keys[-1]).removeprefix("-")
            tokens.change_last(with_value(tokens.keys[-1], f"-{scaled(loss, power)}"))
            tokens.ends[-1] = self.raw[k].end()
            k += 1
        return k

    def _symbol(self, i: int) -> int:
        text, start, end = self.part(i)
        self._add(*read_symbol(text), start, end)
        return i + 1

    def _pack(self, i: int) -> int:
        """``24 x 85 g``."""
        text, start, _ = self.part(i)
        if self.text[max(start - 2, 0) : start] == "M " and (screw := SCREW.match(self.text, start - 2)):  # M 6 x 30
            self.tokens.remove_last()
            return self._screw(i, screw)
        if not self.has(i + 1) or self.raw[i + 1].lastgroup not in NUMBERS:
            return i + 1
        after = self._value(i + 1)
        counts = [decimal(one) for one in _COUNT.findall(text)]
        last, tokens = len(self.tokens) - 1, self.tokens
        if tokens.keys[last].startswith(LENGTH):  # the sides of a rug
            _, factor = self._unit_at_the_end(last)
            counts = [f"{float(one) * factor:.6g}" for one in counts]
        count = "x".join(counts)
        tokens.starts[last] = start
        tokens.change_last(f"{tokens.keys[last]}x{count}")
        if tokens.kinds[last] is not FactKind.UNIT:
            tokens.kinds[last] = FactKind.NUMBER
        return after

    def _version(self, i: int) -> int:
        text, start, end = self.part(i)
        self._add(FactKind.CODE, code_key(text.lower().lstrip("v")), start, end)
        return i + 1

    def _screw(self, i: int, match: re.Match[str]) -> int:
        """``M4x20``, ``M4 x 20 mm``."""
        key = re.sub(r"\s|mm", "", match[0].lower()).replace("×", "x").replace(",", ".")
        self._add(FactKind.CODE, code_key(key), *match.span())
        return self.first_after(i, match.end())

    def _code(self, i: int) -> int:
        text, start, end = self.part(i)
        low = text.lower()
        if (match := PERIOD.fullmatch(text)) and (after := self._period(i, match)):
            return after
        key = low[1:] if low[0] == "v" and low[1:].isdigit() else low.replace("-", "").replace(" ", "")
        self._add(FactKind.CODE, code_key(key), start, end)
        return i + 1

    def _phone(self, i: int) -> int:
        text, start, end = self.part(i)
        if len(text) == _SHORT_PHONE and self.tokens.keys and self.tokens.keys[-1] in words.BEFORE_CODES:
            self._add(FactKind.CODE, code_key(text.replace("-", "").replace("/", "")), start, end)
            return i + 1
        self._add(FactKind.CONTACT, PHONE + "".join(filter(str.isdigit, text.replace("(0)", ""))), start, end)
        return i + 1

    def _address(self, i: int) -> int:
        text, start, end = self.part(i)
        key = re.sub(r"^https?://(?:www\.)?|^www\.|[/.,;:)]+$", "", text.lower())
        self._add(FactKind.CONTACT, ADDRESS + key, start, end)
        return i + 1

    def _value(self, i: int, *, value: str = "", currency: str = "", start: int = -1) -> int:
        """A number with its magnitude, currency, unit or month. With a ``value``, what it is of is at ``i``."""
        text, first, _ = self.part(i)
        start = first if start < 0 else start
        k = i if value else i + 1
        if not value and self.raw[i].lastgroup in WORDS:
            whole, k = spelled(self, i)
            if after := self._spelled_in_place(whole, k, start):
                return after
            value, k = spelled_part(self, whole, k)
            value, k = spelled_decimals(self, value, k)
        elif not value and self.raw[i].lastgroup in _READ_AS_A_WHOLE:
            value = _READ_AS_A_WHOLE[self.raw[i].lastgroup or ""](text)
        elif not value:
            before = self.tokens.keys[-1] if self.tokens.keys else ""
            is_numbered = before in words.NUMBERED or self.text[max(first - 2, 0) : first].rstrip()[-1:] in _PART_SIGNS
            value = decimal(text, keeps_zeros=is_numbered)
            if text.isdigit() and _LEADING_POINT.fullmatch(self.text, max(first - 2, 0), first):
                value, start = decimal(f"0.{text}"), min(start, first - 1)
            if not currency and (
                joined := (text[-1] == "0" and self._decade(i))
                or self._with_point(i)
                or self._score(i, start)
                or self._with_letters(i, value, start)
                or self._with_clock(i, k, start)
                or self._with_month(i, k, start)
            ):
                return joined
        value, k = self._multiplied(value, k, currency)
        if after := self._amount(value, k, currency, start) or self._measured(k, value, start):
            return after
        is_year = k == i + 1 and YEAR.fullmatch(text)
        if is_year and (after := self._years(i)):
            return after
        self._add(FactKind.DATE if is_year else FactKind.NUMBER, number_key(value), start, self.raw[k - 1].end())
        return k

    def _score(self, i: int, start: int) -> int:
        """``4-2``, ``2:4``: the score of a game or a vote, or a ratio; 0 if it is a range, in which the first number is
        the smaller one, or part of something longer."""
        if not self.has(i + 1) or self.between(i + 1) not in ("-", "–", ":"):
            return 0
        one, other = self.raw[i][0], self.raw[i + 1][0]
        if not (_SCORE.fullmatch(one) and _SCORE.fullmatch(other)):
            return 0
        if self.between(i + 1) != ":" and int(one) <= int(other):
            return 0
        end = self.raw[i + 1].end()
        if (
            self.near(i + 2) not in words.UNITS
            and _BEFORE_SCORE.fullmatch(self.text, max(start - 1, 0), start)
            and _AFTER_SCORE.match(self.text, end)
        ):
            self._add(FactKind.NUMBER, number_key(f"{one}-{other}"), start, end)
            return i + 2
        return 0

    def _spelled_in_place(self, value: int, k: int, start: int) -> int:
        """``twenty-first``, ``seven o'clock``: a spelled-out number with what is at ``k``; 0 if it is neither."""
        if ordinal := ordinal_after(self, value, k):
            self._add(FactKind.NUMBER, ordinal_key(value + ordinal), start, self.raw[k].end())
            return k + 1
        if not value % 10 and value < 100 and self.tokens.keys and self.tokens.keys[-1] in calendar.YEARS_OF_DECADES:
            self._add(FactKind.DATE, decade_key(str(value)), start, self.raw[k - 1].end())
            return k
        if after := self._with_part_of_day(value, "00", k, start):
            return after
        if value <= 24 and self._is_clock(k):
            self._add(FactKind.DATE, time_key(value, "00"), start, self.raw[k - 1].end())
            return k
        return 0

    def _multiplied(self, value: str, k: int, currency: str) -> tuple[str, int]:
        """A number and what follows it, with ``and a half``, a dozen or a magnitude at ``k``."""
        magnitude = self.near(k)
        if magnitude == "and" and self.near(k + 1) == "a" and self.near(k + 2) == "half" and value.isdigit():
            value, k = f"{value}.5", k + 3
            magnitude = self.near(k)
        if magnitude in words.DOZENS:
            return f"{12 * float(value):.12g}", k + 1
        if magnitude in words.THOUSANDS and self.near(k + 1) in words.MILLIONS:  # 5 mil millones
            return scaled(value, 9), k + 2
        if magnitude in words.MAGNITUDES and (
            magnitude not in words.ONLY_OF_AMOUNTS
            or currency
            or self.near(k + 1) in currencies.CURRENCIES
            or (magnitude == "k" and self.is_adjacent(k))
        ):
            return scaled(value, words.MAGNITUDES[magnitude]), k + 1
        return value, k

    def _half(self, i: int) -> int:
        """``half an hour``, ``half a million``, ``half of``; 0 if it is something else."""
        k = i + 1 + (self.near(i + 1) in ("a", "an"))
        of, start = self.near(k), self.raw[i].start()
        is_known = of in words.DOZENS or of in words.SPOKEN_MAGNITUDES or of in words.PERCENT
        if is_known or (of in words.UNITS and len(of) > 2):
            return self._value(k, value="0.5", start=start)
        if self.next_word(i + 1) != "of" or self._follows_an_ordinal():
            return 0
        self._add(FactKind.NUMBER, number_key("0.5"), start, self.raw[i].end())
        return i + 1

    def _follows_an_ordinal(self) -> bool:
        """Whether an ordinal, or a word instead of one, is before: ``the second half of``."""
        before = self.tokens.keys[-1] if self.tokens.keys else ""
        instead = ("the", "this", "that", "other", "latter", "former", "last", "next")
        return before.startswith(ORDINAL) or before in instead

    def _follows_a(self, i: int) -> bool:
        """Whether a word such as ``a`` or ``per`` is directly before a raw token."""
        return bool(self.tokens.keys and self.tokens.keys[-1] in words.BEFORE_ONE and self.next_word(i))

    def _with_letters(self, i: int, value: str, start: int) -> int:
        """A number with letters that follow it immediately: an ordinal, the day of a date, or a code. 0 if none do."""
        text, k = self.raw[i][0], i + 1
        if (
            not self.is_adjacent(k)
            or self.raw[k].lastgroup not in (*WORDS, "code")
            or self.raw[i].lastgroup != "number"
            or (self.raw[k][0].upper() == self.raw[k][0].lower() and self.raw[k][0] not in words.ORDINAL_ENDINGS)
        ):
            return 0  # also before a word of a script without capitals
        letters = self.raw[k][0].lower()
        if match := PERIOD_OF_YEAR.match(self.text, start):
            return self._period_of_year(i, match)
        is_hour = letters in ("am", "pm") and len(text) <= 2
        is_dimension = letters == "d"  # 2D
        is_generation = value in ("2", "3", "4", "5", "6") and self.raw[k][0] == "G"  # 5G is no mass
        if letters in words.ORDINAL_ENDINGS:
            month = k + 1 + (self.near(k + 1) == "day")
            month += self.near(month) == "of"
            if self.near(month) in calendar.MONTHS and self.raw[month][0][0].isupper() and float(value) <= 31:
                return self._day_first(month, str(int(float(value))), start)
            return self._ordinal(value, start, k + 1)
        is_unit = unit_named(self.raw[k][0]) is not None or letters in words.PERCENT or letters in currencies.CURRENCIES
        is_unit = is_unit or self._is_penny(k)
        is_magnitude = letters in words.MAGNITUDES and letters != "b"
        if (is_unit and not is_generation and not is_dimension) or is_magnitude or is_hour:
            return 0
        while self.is_adjacent(k) and self.raw[k].lastgroup in (*WORDS, "number", "code"):
            k += 1
        end = self.raw[k - 1].end()
        written = self.text[start:end].lower().replace("-", "")
        if written in products.WRITTEN_SIZES:
            self._add(None, products.WRITTEN_SIZES[written], start, end)
        else:
            self._add(FactKind.CODE, code_key(written), start, end)
        return k
