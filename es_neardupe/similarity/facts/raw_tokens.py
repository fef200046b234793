"""Raw tokens of a text: words, numbers, signs and notations as they are written, which facts are read from."""

from __future__ import annotations

import re
from itertools import islice

_RAW = re.compile(
    r"(?P<run>(?<!\S)[a-z]+(?:[ \n][a-z]+)+(?=[ ,;\n]))"  # most words, several at once
    r"|(?P<plain>(?:[A-Z]?[a-z]+|[A-Z]+)(?=[ ,;\n]))"  # most others, found without the other alternatives
    r"|(?P<address>\bhttps?://[^\s<>\"]+|\bwww\.[^\s<>\"]+|[\w.+-]+@[\w-]+(?:\.[\w-]+)+)"
    r"|(?P<phone>\+\d[\d ()/.-]{5,}\d|\(\d{3}\)\s?\d{3}[-. ]\d{4}\b|\b\d{3}[-.]\d{3}[-.]\d{4}\b|\b\d{3}[-/]\d{4}\b)"
    r"|(?P<iso>\b\d{4}-\d\d-\d\d(?:[T ]\d\d:\d\d(?::\d\d)?Z?)?\b)"
    r"|(?P<date>\b\d{1,2}(?P<separator>[./-])\d{1,2}(?P=separator)(?:\d{4}|\d\d)\b|\b\d\d \d\d (?:19|20)\d\d\b)"
    r"|(?P<time>\b\d{1,2}(?::\d\d(?::\d\d)?|h\d\d)\b)"
    r"|(?P<version>\b(?!\d{1,3}(?:\.\d{3})+\b)v?\d+(?:\.\d+){2,}[a-z]?\b)"
    r"|(?P<fraction>(?:(?<![\d/.,])\d+[ -]?)?[½¼¾⅓⅔⅛⅜⅝⅞]"
    r"|(?<![\d/.,])(?:\d+[ -])?(?:1/[2-9]|2/[35]|3/[458]|[57]/8)(?![\d/]))"
    r"|(?P<pack>\b\d+\s?[x×]\s?(?=\d))"
    r"|(?P<code>\b[^\W\d_]+(?:-?\d+)(?:-?[^\W_]+)*)"
    r"|(?P<spaced>\b\d{1,3}(?: \d{3})+(?:,\d\d)?"
    r"(?=\s?[€$£¥₽₴]|\s(?:euros?|dollars?|EUR|USD|francs?|zł|PLN|Kč|CZK|kr|SEK|NOK|DKK|руб|грн|km|kg)\b)"
    r"|(?:(?<=[€$£¥₽₴])|(?<=[€$£¥₽₴] )|(?<=kr )|(?<=EUR |USD |CHF |PLN |CZK |SEK |NOK |DKK |RUB ))"
    r"\d{1,3}(?: \d{3})+(?:,\d\d)?\b)"
    r"|(?P<number>(?:(?<![^\s(\[])[-−])?\d+(?:[.,'’\u00a0\u202f]\d+)*)"
    r"|(?P<word>[A-Z]{2,}(?=[A-Z][a-z])|[^\W\d_]+)"
    r"|(?P<sign>[$€£¥₹₽₴₺₩₪%‰°§©])"
)
RUN, _WORD = re.compile(r"(?P<run>[a-z]+(?:[ \n][a-z]+)*)"), re.compile(r"(?P<plain>[a-z]+)")
"""A run, and a word of it."""
AHEAD = 10
"""Raw tokens of a fact, and those that are looked at to find its end."""
WORDS = ("plain", "word")
NUMBERS = ("number", "spaced", "fraction")
BLANKS = " \u00a0\u202f\n"
_ONE_BLANK = ("", " ")
_SEPARATORS = ("", ".", ",", "-")
_MAX_BLANKS = 20
"""Characters between the parts of a fact, which an indented line may separate."""
YEAR = re.compile(r"(?:19|20)\d\d")


class RawTokens:
    """The raw tokens of a text, and what stands next to them."""

    def __init__(self, text: str) -> None:
        self.text = text
        self.raw = list(_RAW.finditer(text))

    def split(self, i: int) -> None:
        """Make the first words of a run raw tokens, which a fact may consist of."""
        start, end = self.raw[i].span()
        found = list(islice(_WORD.finditer(self.text, start, end), AHEAD))
        rest = found[-1].end() + 1
        self.raw[i : i + 1] = [*found, *RUN.finditer(self.text, rest, end)]

    def part(self, i: int) -> tuple[str, int, int]:
        """A raw token and its place."""
        match = self.raw[i]
        return match[0], match.start(), match.end()

    def near(self, i: int) -> str:
        """A raw token in lower case, if only blanks, one line break and one of ``.,-`` separate it from the one before
        it; else the empty string."""
        if not 0 < i < len(self.raw):
            return ""
        between = self.text[self.raw[i - 1].end() : self.raw[i].start()]
        if between not in _ONE_BLANK:
            sign = between.strip(BLANKS)
            if len(between) > _MAX_BLANKS or between.count("\n") > 1 or sign not in _SEPARATORS:
                return ""
        return self.raw[i][0].lower()

    def is_adjacent(self, i: int) -> bool:
        return i < len(self.raw) and self.raw[i].start() == self.raw[i - 1].end()

    def is_year(self, i: int) -> bool:
        return bool(self.near(i) and YEAR.fullmatch(self.raw[i][0]))

    def next_word(self, k: int) -> str:
        """As `near`, but without a comma before it."""
        near = self.near(k)
        return near if near and "," not in self.text[self.raw[k - 1].end() : self.raw[k].start()] else ""

    def only_blanks_before(self, k: int, others: str = "") -> bool:
        return not self.text[self.raw[k - 1].end() : self.raw[k].start()].strip(f" \u00a0\n-{others}")
