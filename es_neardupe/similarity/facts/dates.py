"""Dates, periods and times of day."""

from __future__ import annotations

import re

from es_neardupe.options import FactKind
from es_neardupe.similarity.facts import calendar_words as calendar
from es_neardupe.similarity.facts import vocabulary as words
from es_neardupe.similarity.facts.fact_keys import (
    WEEKDAY,
    code_key,
    date_in_any_order,
    date_key,
    decade_key,
    number_key,
    ordinal_key,
    period_key,
    time_key,
)
from es_neardupe.similarity.facts.numerals import chinese, whole_year
from es_neardupe.similarity.facts.raw_tokens import WORDS
from es_neardupe.similarity.facts.reader import Reader

PERIOD = re.compile(r"(?P<part>[QTHS])(?P<number>[1-4])|FY(?P<year>(?:20)?\d\d)")
PERIOD_OF_YEAR = re.compile(
    r"(?:(?P<number>[1-4])(?P<part>Q|T(?=\d\d|['’ ] ?\d\d)|(?:(?<=[12])H(?=\d|['’ ] ?\d\d)))(?P<year>(?:20)?\d\d)?"
    r"|(?P<year_first>20\d\d)Q(?P<last>[1-4]))(?!\w)"
)
_PART_OF_DAY = re.compile(
    rf"(?:\s?(?:o['’]clock|Uhr|heures?|h|horas?))?\s(?P<part>{'|'.join(calendar.PARTS_OF_DAY)})\b"
    rf"|\s?(?:ч\.?|час(?:а|ов)?)\s(?P<after_hours>{'|'.join(calendar.PARTS_OF_DAY_AFTER_HOURS)})\b",
    re.IGNORECASE,
)
_BEFORE_PAST = frozenset(part.split()[0] for part in calendar.PARTS_OF_HOURS)
_HOUR = re.compile(r"(?P<hour>[01]?\d|2[0-4])(?:[.](?P<minute>[0-5]\d))?")
_PARTS_OF_YEARS = {"Q": "q", "T": "q", "H": "h", "S": "h"}
POINTED_TIME = re.compile(r"[012]?\d\.[0-5]\d")
_DECADE = re.compile(r"(?:1[5-9]|20)?\d0")
_END_OF_DECADE = re.compile(r"(?:['’]?(?P<s>s)|er(?P<years>[ -]?Jahre)?)(?!\w)")


class DateReader(Reader):
    """Reads dates. Each method begins at a raw token, appends tokens, and returns the number of the next raw one."""

    def _month_first(self, i: int) -> int:
        """``March 1st, 2026``, ``March 1``, ``March 2026``; 0 if it is none of these."""
        start, month = self.raw[i].start(), calendar.MONTHS[self.raw[i][0].lower()]
        k = i + 1
        if self._is_short_year(k):
            self._add(FactKind.DATE, date_key(whole_year(self.raw[k][0]), month), start, self.raw[k].end())
            return k + 1
        if not self.near(k) or self.raw[k].lastgroup not in ("number", "code"):
            return 0
        number = self.raw[k][0]
        if number.isdecimal() and len(number) <= 2 and int(number) <= 31:
            k += 1
            if self.is_adjacent(k) and self.raw[k][0].lower() in words.ORDINAL_ENDINGS:
                k += 1
            year = self.raw[k][0] if self.is_year(k) else ""
            k += bool(year)
            self._add(FactKind.DATE, date_key(year, month, int(number)), start, self.raw[k - 1].end())
            return k
        if number.isdecimal() and len(number) == 4:
            self._add(FactKind.DATE, date_key(number, month), start, self.raw[k].end())
            return k + 1
        return 0

    def _day_first(self, i: int, day: str, start: int) -> int:
        """A date whose month is at ``i``, after a day."""
        month, k = calendar.MONTHS[self.raw[i][0].lower()], i + 1
        if self.near(k) in ("de", "del") and self.near(k + 1).isdigit():
            k += 1
        if self.is_year(k):
            self._add(FactKind.DATE, date_key(self.raw[k][0], month, int(day)), start, self.raw[k].end())
            return k + 1
        self._add(FactKind.DATE, date_key("", month, int(day)), start, self.raw[i].end())
        return i + 1

    def _with_clock(self, i: int, k: int, start: int) -> int:
        """``10 a.m.``, ``19 Uhr``, ``3 de la tarde``; 0 if it is something else."""
        text = self.raw[i][0]
        if not (text.isdigit() and len(text) <= 2 and int(text) <= 24):
            return 0
        if after := self._with_part_of_day(int(text), "00", k, start):
            return after
        if not self._is_clock(k) and not (int(text) <= 12 and self._is_half_of_day(k)):
            return 0
        self._add(FactKind.DATE, time_key(self._hour(int(text), k), "00"), start, self.raw[i].end())
        return k

    def _with_month(self, i: int, k: int, start: int) -> int:
        """``1 March 2026``, ``1 de marzo de 2026``; 0 if no month follows."""
        text = self.raw[i][0]
        if not (text.isdigit() and len(text) <= 2 and 0 < int(text) <= 31):
            return 0
        if self.near(k) in words.PERIODS or (self.near(k) in words.AFTER_ORDINALS and "." in self.between(k)):
            return self._ordinal(text, start, k)
        k += self.near(k) in ("of", "de")
        month = self.near(k)
        if month not in calendar.MONTHS or self.raw[k].lastgroup not in WORDS:
            return 0
        is_other = len(month) <= 3 or month in calendar.NOT_BEFORE_A_YEAR
        is_month = self.raw[k][0][0].isupper() or not is_other or self._is_month_in_french(month)
        end = self.raw[k].end() + 1
        if is_month or re.match(r"(?:del?\s)?(?:19|20)\d\d\b", self.text[end : end + 8]):
            return self._day_first(k, text, start)
        return 0

    def _is_month_in_french(self, word: str) -> bool:
        """Whether a word in lower case is a month after the word before it: ``en mai``, ``le 5 mars``."""
        before = self.tokens.keys[-1] if self.tokens.keys else ""
        return word in calendar.MONTHS_IN_FRENCH and before in calendar.BEFORE_MONTHS_IN_FRENCH

    def _iso_date(self, i: int) -> int:
        text, start, end = self.part(i)
        date, _, time = text.replace("T", " ").partition(" ")
        year, month, day = (date[:4], date[4:6], date[6:]) if date.isdigit() else re.split(r"[./-]", date)
        self._add(FactKind.DATE, date_key(year, int(month), int(day)), start, start + len(date))
        if time:
            self._add(FactKind.DATE, time_key(int(time[:2]), time[3:].rstrip("Z")), start + len(date) + 1, end)
        return i + 1

    def _east_asian_date(self, i: int) -> int:
        """``2026年3月12日``, ``2026年3月``, ``3월 12일``, ``二〇二六年三月``."""
        text, start, end = self.part(i)
        numbers = [
            int(one) if one.strip().isdecimal() else int(chinese(one))
            for one in re.split("[年년月월日일号號]", text)
            if one.strip()
        ]
        has_year = numbers[0] > 12
        key = date_key(str(numbers[0]), *numbers[1:]) if has_year else date_key("", *numbers)
        self._add(FactKind.DATE, key, start, end)
        return i + 1

    def _named_date(self, i: int) -> int:
        """``12-MAR-26``."""
        text, start, end = self.part(i)
        day, month, year = text.split("-")
        if number := calendar.MONTHS.get(month.lower()):
            self._add(FactKind.DATE, date_key(whole_year(year), number, int(day)), start, end)
        else:
            self._add(FactKind.CODE, code_key(text.lower().replace("-", "")), start, end)
        return i + 1

    def _date_of_numbers(self, i: int) -> int:
        """``01.03.2026``, ``3/4/26``. Without a full stop the month may come first: if both can be, they are a pair."""
        text, start, end = self.part(i)
        one, other, year = re.split(r"[./ -]", text)
        first, second, year = int(one), int(other), whole_year(year)
        kind = FactKind.DATE
        if max(first, second) > 31 or min(first, second) > 12:
            kind, key = FactKind.CODE, code_key(f"{one}.{other}.{year}")
        elif text[len(one)] == "." or first > 12:
            key = date_key(year, second, first)
        elif second > 12:
            key = date_key(year, first, second)
        else:
            key = date_in_any_order(year, first, second)
        self._add(kind, key, start, end)
        return i + 1

    def _short_date(self, i: int) -> int:
        """``01/07`` without a year, in any order; ``03/2027``."""
        text, start, end = self.part(i)
        one, other = text.split("/")
        low, high = sorted((int(one), int(other)))
        if len(other) == 4:
            key = date_key(other, int(one))
        else:
            key = date_key("", low, high) if high > 12 else date_in_any_order("*", low, high)
        self._add(FactKind.DATE, key, start, end)
        return i + 1

    def _years(self, i: int) -> int:
        """``2025/26`` or ``2025-2026``; 0 if it is something else."""
        year, start, end = self.part(i)
        following = str(int(year) + 1)
        if not self.has(i + 1) or self.text[end : end + 1] not in ("/", "-", "–"):
            return 0
        second, _, last = self.part(i + 1)
        if second.lstrip("-") not in (following, following[2:]) or last != end + 1 + len(second.lstrip("-")):
            return 0
        self._add(FactKind.DATE, period_key(f"{year}/{following}"), start, last)
        return i + 2

    def _decade(self, i: int) -> int:
        """``1990s``, ``the '90s``, ``90er Jahre``, ``années 90``; 0 if it is something else."""
        text, start, end = self.part(i)
        if not _DECADE.fullmatch(text):
            return 0
        before = self.tokens.keys[-1] if self.tokens.keys else ""
        letters = _END_OF_DECADE.match(self.text, end)
        if letters and (
            len(text) == 4
            or letters["years"]
            or (letters["s"] and (before in calendar.BEFORE_DECADES or self.text[start - 1 : start] in ("'", "’")))
        ):
            end += 2 if not letters["s"] else len(letters[0])
        elif before not in calendar.YEARS_OF_DECADES:
            return 0
        self._add(FactKind.DATE, decade_key(text), start, end)
        return self.first_after(i + 1, end)

    def _is_short_year(self, k: int) -> bool:
        """Whether a year such as ``'25`` is at ``k``."""
        return (
            self.has(k)
            and self.raw[k].lastgroup == "number"
            and len(self.raw[k][0]) == 2
            and self.text[self.raw[k - 1].end() : self.raw[k].start()].lstrip(" ") in ("'", "’")
        )

    def _short_year(self, k: int) -> int:
        """The year ``'25``, if it is at ``k``."""
        if not self._is_short_year(k):
            return k
        year, start, end = self.part(k)
        self._add(FactKind.DATE, number_key(whole_year(year)), start, end)
        return k + 1

    def _is_weekday(self, i: int) -> bool:
        """Whether the name of a weekday is one: ``Sat`` only next to another one, a day or a time, or after ``on``."""
        if self.raw[i][0].lower() not in calendar.NOT_A_WEEKDAY_ALONE:
            return True
        keys, following = self.tokens.keys, self.near(i + 1)
        if keys and self.near(i) and (keys[-1].startswith(WEEKDAY) or keys[-1] in calendar.BEFORE_WEEKDAYS):
            return True
        return following[:1].isdigit() or following in calendar.WEEKDAYS or following in calendar.MONTHS

    def _is_month_alone(self, i: int) -> bool:
        """Whether the name of a month is one without a day or a year: ``March`` only after ``in`` and the like."""
        text, low = self.raw[i][0], self.raw[i][0].lower()
        before = self.tokens.keys[-1] if self.tokens.keys and self.near(i) else ""
        if low in calendar.MONTHS_IN_LOWER_CASE:
            return True
        if not text[0].isupper():
            return low in calendar.MONTHS_IN_FRENCH and before in calendar.BEFORE_MONTHS_IN_FRENCH
        if low not in calendar.NOT_A_MONTH_ALONE:
            return True
        return before in calendar.BEFORE_MONTHS or self.near(i + 1) in calendar.AFTER_MONTHS

    def _ordinal(self, value: str, start: int, k: int) -> int:
        """An ordinal, or the quarter of a year if that is at ``k``."""
        part = "q" if self.next_word(k) in words.QUARTERS else "h" if self._is_half_year(k) else ""
        if part and value in ("1", "2", "3", "4")[: 2 if part == "h" else 4]:
            self._add(FactKind.DATE, period_key(part + value), start, self.raw[k].end())
            return k + 1
        self._add(FactKind.NUMBER, ordinal_key(value), start, self.raw[k - 1].end())
        return k

    def _is_half_year(self, k: int) -> bool:
        """Whether half a year is at ``k``: that of a match, say, is none."""
        if self.next_word(k) != "half":
            return self.next_word(k) in words.HALF_YEARS
        of = k + 1 + (self.next_word(k + 1) == "of")
        of += self.next_word(of) == "the"
        return self.is_year(of) or self.near(of) in ("fiscal", "year", "fy")

    def _period(self, i: int, match: re.Match[str]) -> int:
        """``Q3``, ``H1 2025``, ``FY25``, as the quarter, the half and the year; 0 if it is something else. In French or
        Spanish: T3, S1."""
        _, start, end = self.part(i)
        if match["year"]:
            self._add(None, "fy", start, start + 2)
            self._add(FactKind.DATE, number_key(whole_year(match["year"])), start + 2, end)
            return i + 1
        has_year = self.is_year(i + 1) or self._is_short_year(i + 1) or self.near(i + 1)[:2] == "fy"
        part, number = _PARTS_OF_YEARS[match["part"]], match["number"]
        if match["part"] != "Q" and not (has_year and (part == "q" or number in "12")):
            return 0
        self._add(FactKind.DATE, period_key(part + number), start, end)
        return self._short_year(i + 1)

    def _period_of_year(self, i: int, match: re.Match[str]) -> int:
        """``3Q25``, ``2Q``, ``1T 2026``, ``1H25``, ``2025Q3``."""
        start, end = match.span()
        k = self.first_after(i + 1, end)
        if year := match["year_first"]:
            self._add(FactKind.DATE, number_key(year), start, start + 4)
            self._add(FactKind.DATE, period_key(f"q{match['last']}"), start + 4, end)
            return k
        self._add(FactKind.DATE, period_key(_PARTS_OF_YEARS[match["part"]] + match["number"]), start, start + 2)
        if year := match["year"]:
            self._add(FactKind.DATE, number_key(whole_year(year)), start + 2, end)
            return k
        return self._short_year(k)

    def _time(self, i: int) -> int:
        """``19:30``, ``2:09:41``, ``19h30``, ``19 Uhr 30``."""
        text, start, end = self.part(i)
        hour, *others = re.findall(r"\d+", text)
        if after := self._with_part_of_day(int(hour), ":".join(others), i + 1, start):
            return after
        self._add(FactKind.DATE, time_key(self._hour(int(hour), i + 1), ":".join(others)), start, end)
        return i + 1

    def _east_asian_time(self, i: int) -> int:
        """``午後3時半``, ``下午三点``, ``오후 3시 30분``, ``15時``."""
        text, start, end = self.part(i)
        half = next((one for one in calendar.HALVES_OF_DAY if text.startswith(one)), "")
        hour, *minutes = re.findall(r"\d+|[一二三四五六七八九十]+", text.removeprefix(half))
        value = int(hour) if hour.isdecimal() else int(chinese(hour))
        if half and value <= 12:
            value = value % 12 + calendar.HALVES_OF_DAY[half]
        minute = int(minutes[0]) if minutes else 30 * (text[-1] in "半반")
        self._add(FactKind.DATE, time_key(value, f"{minute:02}"), start, end)
        return i + 1

    def _with_part_of_day(self, hour: int, minute: str, k: int, start: int) -> int:
        """``3 o'clock in the afternoon``, ``3:30 de la tarde``: an hour with what is at ``k``; 0 if it is something
        else."""
        match = _PART_OF_DAY.match(self.text, self.raw[k - 1].end()) if 0 < hour <= 12 else None
        if not match:
            return 0
        if part := match["part"]:
            added = calendar.PARTS_OF_DAY[part.lower()]
        else:
            added = calendar.PARTS_OF_DAY_AFTER_HOURS[match["after_hours"].lower()]
        self._add(FactKind.DATE, time_key(hour % 12 + added, minute), start, match.end())
        return self.first_after(k, match.end())

    def _time_of_a_word(self, i: int) -> int:
        """``kl. 15``, ``half past three``, ``quarter to 4 p.m.``; 0 if no such time begins with the word."""
        low = self.raw[i][0].lower()
        if low in calendar.BEFORE_HOURS:
            return self._hour_after_its_word(i)
        if low not in _BEFORE_PAST:
            return 0
        minutes = calendar.PARTS_OF_HOURS.get(f"{low} {self.next_word(i + 1)}", 0)
        written = self.next_word(i + 2) if minutes else ""
        hour = int(written) if written.isdecimal() else words.SPELLED_NUMBERS.get(written, 0)
        if not 0 < hour <= 12:
            return 0
        hour, minute = divmod(60 * self._hour(hour, i + 3) + minutes, 60)
        self._add(FactKind.DATE, time_key(hour or 12, str(minute)), self.raw[i].start(), self.raw[i + 2].end())
        return i + 3

    def _hour_after_its_word(self, i: int) -> int:
        """``kl. 15``, ``ore 15.30``: a word, and the time of day after it; 0 if no such time follows."""
        time = _HOUR.fullmatch(self.raw[i + 1][0]) if self.near(i + 1) else None
        if not time or self.near(i + 2) in words.UNITS or self.near(i + 2) in words.PERCENT:
            return 0
        text, start, end = self.part(i)
        self._add(None, text.lower(), start, end)
        self._add(FactKind.DATE, time_key(int(time["hour"]), time["minute"] or "00"), *self.raw[i + 1].span())
        return i + 2

    def _hour(self, hour: int, k: int) -> int:
        """The hour of a day, if ``am`` or ``p.m.`` may be at ``k``."""
        half = self.near(k)
        if half in ("p", "pm") and hour < 12:
            return hour + 12
        return 0 if half in ("a", "am") and hour == 12 else hour

    def _with_point(self, i: int) -> int:
        """``2.30 pm``, ``14.30 Uhr``; 0 if it is something else."""
        text, start, end = self.part(i)
        if not (POINTED_TIME.fullmatch(text) and (self._is_clock(i + 1) or self._is_half_of_day(i + 1))):
            return 0
        hour, minute = text.split(".")
        self._add(FactKind.DATE, time_key(self._hour(int(hour), i + 1), minute), start, end)
        return i + 1

    def _is_clock(self, k: int) -> bool:
        """Whether ``o'clock`` or ``Uhr`` is at ``k``."""
        near = self.near(k)
        return near in calendar.CLOCKS or (near == "o" and self.has(k + 1) and self.raw[k + 1][0].lower() == "clock")

    def _is_half_of_day(self, k: int) -> bool:
        """Whether ``am``, ``pm``, ``a.m.`` or ``p.m.`` is at ``k``; in German, ``am`` is before nouns and numbers."""
        half = self.near(k)
        if half != "am" or self.raw[k][0] == "AM":
            return half in ("am", "pm") or (half in ("a", "p") and self.near(k + 1) == "m")
        following = self.text[self.raw[k].end() : self.raw[k].end() + 2].strip()
        return not (following.isdigit() or following.isupper())
