"""Raw tokens of a text: words, numbers, signs and notations as they are written, which facts are read from."""

from __future__ import annotations

import re
import unicodedata

from es_neardupe.similarity.facts.calendar_words import HALVES_OF_DAY
from es_neardupe.similarity.facts.currencies import CODES_BEFORE_AMOUNTS, CURRENCIES, CURRENCY_SIGNS, HAN_OR_KANA
from es_neardupe.similarity.facts.numerals import CHINESE
from es_neardupe.similarity.facts.symbols import SYMBOL

_HAN = r"\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"
_UNCASED = (
    r"\u0590-\u109f\u1100-\u139f\u1780-\u1bff\u3040-\u30ff\u3100-\u33ff\uac00-\ud7ff\ufb1d-\ufdff\ufe70-\ufefc\uff66-\uff9d"
    + _HAN
)
"""Letters of scripts without capitals. They are no part of codes, and may stand next to a number without a blank."""
_MARKS = "".join(chr(code) for code in range(0x590, 0x1C00) if unicodedata.category(chr(code))[0] == "M")
"""Vowels and other marks of scripts without capitals, which are no letters."""
_START, _END = rf"(?<![^\W{_UNCASED}])", rf"(?![^\W{_UNCASED}])"
_CURRENCY = "|".join(sorted((word for word in CURRENCIES if word not in CURRENCY_SIGNS), key=len, reverse=True))
"""Codes and names."""
_CODES = sorted(code.upper() for code in CODES_BEFORE_AMOUNTS if len(code) == 3)
_MONTH, _DAY = r"(?:0?[1-9]|1[0-2])", r"(?:0?[1-9]|[12]\d|3[01])"
_MONTH_NAME = r"(?i:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)[a-z]*"
SCREW = re.compile(rf"(?:M|ST|Tr) ?\d+(?:[.,]\d+)?(?:\s?[x×X]\s?\d+(?:[.,]\d+)?)+(?:\s?mm)?{_END}")
_CHINESE_DAY = "[一二三四五六七八九十]{1,3}"
_EAST_ASIAN_MINUTE = r"(?:\s?(?:\d{1,2}\s?[分분]|半|반))"
_BEGINS_WITH_A_DIGIT = (
    rf"(?P<iso>{_START}(?:\d{{4}}-\d\d-\d\d|(?:19|20)\d\d(?P<sign_in_iso>[./]){_MONTH}(?P=sign_in_iso){_DAY}"
    r"|(?:19|20)\d\d(?:0[1-9]|1[0-2])(?:0[1-9]|[12]\d|3[01]))"
    rf"(?:[T ]\d\d:\d\d(?::\d\d)?Z?)?{_END})"
    rf"|(?P<east_asian_date>(?<!\d)(?:\d{{4}}\s?[年년]\s?{_MONTH}\s?[月월](?:\s?{_DAY}\s?[日号號일])?"
    rf"|{_MONTH}\s?[月월]\s?{_DAY}\s?[日号號일]))"
    rf"|(?P<east_asian_time>(?<!\d)\d{{1,2}}\s?(?:(?:[時时](?![間间])|시(?!간)){_EAST_ASIAN_MINUTE}?|[點点]{_EAST_ASIAN_MINUTE}))"
    rf"|(?P<date>{_START}\d{{1,2}}(?P<separator>[./-])\d{{1,2}}(?P=separator)(?:\d{{4}}|\d\d){_END}"
    rf"|\b\d\d \d\d (?:19|20)\d\d\b)"
    rf"|(?P<short_date>(?<![\w./])(?:0[1-9]/(?:0[1-9]|[12]\d|3[01]|20\d\d)|1[0-2]/20\d\d|(?:[12]\d|3[01])/0[1-9])(?![\w/]))"
    rf"|(?P<named_date>{_START}{_DAY}-{_MONTH_NAME}-(?:\d{{4}}|\d\d){_END})"
    rf"|(?P<time>{_START}\d{{1,2}}(?::\d\d(?::\d\d)?|(?: ?h ?| (?:Uhr|uur) )[0-5]\d(?! ?min))"
    rf"(?:{_END}|(?=[ap]\.?m|[AP]\.?M)))"
    r"|(?P<fraction>(?<![\d/.,])(?:(?:\d{1,6}[ -]?)?[½¼¾⅓⅔⅛⅜⅝⅞]"
    r"|(?:\d{1,6}[ -])?(?:1/[2-9]|2/[35]|3/[458]|[57]/8)(?![\d/])))"
    rf"|(?P<clause>{_START}\d+(?: ?\(\d+\))? ?\((?:[a-z]|[ivx]+)\))"
    rf"|(?P<pack>{_START}(?:\d+(?:[.,]\d+)?(?:\s?[x×X]\s?|\*|\s(?:by|mal)\s))+(?=\d))"
    r"|(?P<spaced>\b\d{1,3}(?: \d{3})+(?:,\d\d)?"
    rf"(?=\s?[{CURRENCY_SIGNS}]|\s(?:(?i:{_CURRENCY})|km|kg)\b)"
    rf"|(?:(?<=[{CURRENCY_SIGNS}])|(?<=[{CURRENCY_SIGNS}] )|(?<=kr |Rp )|(?<={' |'.join(_CODES)} ))"
    r"\d{1,3}(?: \d{3})+(?:,\d\d)?\b"
    r"|(?<![\d.,/-])(?<!\d )[1-9]\d{0,2}(?: \d{3}){2,4}(?:[.,]\d\d?)?(?![.,/-]?\d| \d)\b)"
    r"|(?P<myriads>(?:\d+(?:,\d{3})*(?:\.\d+)?\s?[百千백천]?[万萬億亿兆만억조]\s?)+(?:\d+[百千백천]?(?![\d년年月월日일]))?"
    r"|\d+[百千백천])"
)
_OF_CHINESE_NUMERALS = (
    rf"(?P<chinese_date>[〇零一二三四五六七八九]{{4}}年(?:{_CHINESE_DAY}月(?:{_CHINESE_DAY}[日号號])?)?"
    rf"|{_CHINESE_DAY}月{_CHINESE_DAY}[日号號])"
    rf"|(?P<chinese>百分之[{CHINESE}]+(?:点[{CHINESE}]+)?|(?=[〇零一二两三四五六七八九]*[十百千万萬亿億])(?![万萬亿億])[{CHINESE}]{{2,}}"
    r"|[二三四五六七八九十两](?=[日天年元个個名人位次回件台本枚歳岁周週]))"
)
_RAW = re.compile(
    r"(?P<plain>(?:[A-Z]?[a-z]+|[A-Z]+)(?=[ ,;\n]))"  # most words, found without the other alternatives
    r"|(?P<address>\bhttps?://[^\s<>\"]+|\bwww\.[^\s<>\"]+|(?<![\w.+-])[\w.+-]+@[\w-]+(?:\.[\w-]+)+)"
    r"|(?P<phone>\+\d[\d ()/.-]{5,}\d|\(\d{3}\)\s?\d{3}[-. ]\d{4}\b|\b\d{3}[-.]\d{3}[-.]\d{4}\b|\b\d{3}[-/]\d{4}\b)"
    rf"|(?=[\d½¼¾⅓⅔⅛⅜⅝⅞])(?:{_BEGINS_WITH_A_DIGIT})"
    rf"|(?P<version>(?=[\dv]){_START}(?!\d{{1,3}}(?:\.\d{{3}})+\b)(?:v\d+\.|\d+\.\d+\.)\d+(?:\.\d+)*[a-z]?{_END})"
    rf"|(?P<screw>(?=[MST]){_START}{SCREW.pattern})"
    rf"|(?=[{CHINESE}]){_OF_CHINESE_NUMERALS}"
    rf"|(?P<half_of_day>(?=[{''.join(one[0] for one in HALVES_OF_DAY)}])(?:{'|'.join(HALVES_OF_DAY)})"
    rf"\s?(?:\d{{1,2}}|{_CHINESE_DAY})\s?[時时點点시]{_EAST_ASIAN_MINUTE}?)"
    rf"|(?P<symbol>{SYMBOL})"
    rf"|(?P<code>{_START}(?!(?=[A-Zk][A-Za-z]{{1,2}}\d)(?:{'|'.join(_CODES)}|Rs|Rp|RM|kr)\d)"
    rf"(?:[A-Z]{{2}}\d\d(?: [A-Z\d]{{4}}){{3,7}}(?: [A-Z\d]{{1,3}})?{_END}"  # an IBAN
    rf"|[^\W\d_{_UNCASED}]+(?:-?\d+)(?:-?[^\W_{_UNCASED}]+)*))"
    r"|(?P<number>(?:(?<![^\s(\[])[-−])?\d+(?:[.,'’\u00a0\u2009\u202f]\d+)*)"
    rf"|(?P<sign>[{CURRENCY_SIGNS}¢%‰°§©]"
    rf"|(?:(?<=[\d十百千万萬億亿兆백천만억조])|(?<=[十百千万萬亿億][一二三四五六七八九]))"
    rf"(?:{'|'.join(HAN_OR_KANA)}|[円元원])|(?<=[백천만억조] )원)"
    rf"|(?P<word>(?:km/h|m/s)\b|[Nn]°|[A-Z]{{2,}}(?=[A-Z][a-z])|[^\W\d_{_UNCASED}]+"
    rf"|[{_HAN}]|(?:(?![{_HAN}])(?=[{_UNCASED}])[^\W\d_][{_MARKS}\u200c\u200d]*)+)"
)
WORDS = ("plain", "word")
NUMBERS = ("number", "spaced", "fraction", "myriads", "chinese")
BLANKS = " \u00a0\u2009\u202f\n"
_ONE_BLANK = ("", " ")
_SEPARATORS = ("", ".", ",", "-")
_MAX_BLANKS = 20
"""Characters between the parts of a fact, which an indented line may separate."""
YEAR = re.compile(r"(?:19|20)\d\d")


class RawTokens:
    """The raw tokens of a text from one on, found when they are looked at, and what stands next to them."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.raw: list[re.Match[str]] = []
        self._before = -1
        self._near: dict[int, str] = {}

    def first_from(self, at: int) -> re.Match[str] | None:
        """The first raw token from a place on that is in no other one."""
        return _RAW.search(self.text, at)

    def begin(self, first: re.Match[str], before: int) -> None:
        """Make a token number 0. ``before``: the end of the one before it; -1 if there is none."""
        self.raw, self._before, self._near = [first], before, {}

    def has(self, k: int) -> bool:
        """Whether there is a token with this number."""
        while len(self.raw) <= k and (following := self.first_from(self.raw[-1].end())):
            self.raw.append(following)
        return k < len(self.raw)

    def part(self, i: int) -> tuple[str, int, int]:
        """A raw token and its place."""
        match = self.raw[i]
        return match[0], match.start(), match.end()

    def between(self, k: int) -> str:
        """What is between a raw token and the one before it."""
        return self.text[self.raw[k - 1].end() if k else self._before : self.raw[k].start()]

    def first_after(self, i: int, end: int) -> int:
        """The first raw token from ``i`` on that begins at a character ``end`` or later."""
        while self.has(i) and self.raw[i].start() < end:
            i += 1
        return i

    def near(self, i: int) -> str:
        """A raw token in lower case, if only blanks, one line break and one of ``.,-`` separate it from the one before
        it; else the empty string."""
        near = self._near.get(i)
        if near is None:
            near = self._near[i] = self._found_near(i)
        return near

    def _found_near(self, i: int) -> str:
        if not self.has(i) or (i == 0 and self._before < 0):
            return ""
        between = self.between(i)
        if between not in _ONE_BLANK:
            sign = between.strip(BLANKS)
            if len(between) > _MAX_BLANKS or between.count("\n") > 1 or sign not in _SEPARATORS:
                return ""
        return self.raw[i][0].lower()

    def is_adjacent(self, i: int) -> bool:
        return self.has(i) and self.raw[i].start() == self.raw[i - 1].end()

    def is_year(self, i: int) -> bool:
        return bool(self.near(i) and YEAR.fullmatch(self.raw[i][0]))

    def next_word(self, k: int) -> str:
        """As `near`, but without a comma before it."""
        near = self.near(k)
        return near if near and "," not in self.between(k) else ""

    def only_blanks_before(self, k: int, others: str = "") -> bool:
        return not self.between(k).strip(f" \u00a0\n-{others}")
