"""Numbers as they are written, and their values."""

from __future__ import annotations

import re
import unicodedata
from decimal import Decimal

from es_neardupe.similarity.facts.currencies import CURRENCY_SIGNS

_LOSS = r"(?:\d{1,3}(?:[.,]\d+)+|\d{5,})"
IN_BRACKETS = rf"(?:[{CURRENCY_SIGNS}]\d[\d.,]*|\d[\d.,]*\s?[{CURRENCY_SIGNS}]|{_LOSS})\)"
"""After an opening bracket: an amount or a number that may be a negative one."""
_MYRIAD = re.compile(r"(\d+(?:,\d{3})*(?:\.\d+)?)\s?([百千백천]?)([万萬億亿兆만억조]?)")
_POWERS = {
    **dict.fromkeys("百백", 2),
    **dict.fromkeys("千천", 3),
    **dict.fromkeys("万萬만", 4),
    **dict.fromkeys("億亿억", 8),
    **dict.fromkeys("兆조", 12),
}
_CHINESE_DIGITS = {**{digit: value for value, digit in enumerate("〇一二三四五六七八九")}, "零": 0, "两": 2}
_CHINESE_POWERS = {**{sign: 10**power for sign, power in _POWERS.items()}, "十": 10}
CHINESE = "〇零一二两三四五六七八九十百千万萬亿億"
"""What Chinese numerals are made of."""
_SIGNS = dict(zip("，．％￥：／－　٬٫٪", ",.%¥:/- ,.%", strict=True))
"""Signs of East Asian width, and Arabic ones of numbers, as the usual ones."""
_MINUS = re.compile(r"(?<![^\s(\[])–(?=[$€£]?\d)")
"""A dash that is written for a minus sign: ``–5``."""
_OF_OTHER_SCRIPTS = re.compile(rf"[^\D0-9]|[{''.join(_SIGNS)}–]")
_FRACTIONS = {
    "½": 1 / 2,
    "¼": 1 / 4,
    "¾": 3 / 4,
    "⅓": 1 / 3,
    "⅔": 2 / 3,
    "⅛": 1 / 8,
    "⅜": 3 / 8,
    "⅝": 5 / 8,
    "⅞": 7 / 8,
}


def is_loss(written: str) -> bool:
    """Whether a number that is in brackets, in a cell of a table, is a negative one, and not a note, a year or
    a count."""
    return re.fullmatch(_LOSS, written) is not None


def with_plain_digits(text: str) -> str:
    """A text of the same length with the usual digits instead of those of any other script."""
    return text if text.isascii() else _OF_OTHER_SCRIPTS.sub(_plain, text)


def _plain(sign: re.Match[str]) -> str:
    if sign[0] == "–":
        return "-" if _MINUS.match(sign.string, sign.start()) else "–"
    return _SIGNS.get(sign[0]) or str(unicodedata.decimal(sign[0]))


def decimal(text: str, *, keeps_zeros: bool = False) -> str:
    """A number without thousands separators and with a decimal point: ``1.234,50`` becomes 1234.5.

    With both separators, the last is the decimal one. A separator that occurs several times, or once before exactly
    three digits, separates thousands: what 1.234 means cannot be known. ``keeps_zeros``: final zeros count.
    """
    sign = "-" if text[0] in "-−" else ""
    text = text.lstrip("-−").replace("’", "'")
    if text.isdigit():
        has_meaning = text[0] == "0" and len(text) > 3  # a number of an account, say
        return sign + (text if has_meaning else text.lstrip("0") or "0")
    separators = [char for char in text if not char.isdigit()]
    whole, last, fraction = text.rpartition(separators[-1])
    is_single = len(set(separators)) == 1
    if (
        last not in ".,"
        or separators.count(last) > 1
        or (is_single and len(fraction) == 3 and whole != "0" and len(whole) <= 3)
    ):
        return sign + "".join(filter(str.isdigit, text))
    whole = "".join(filter(str.isdigit, whole)).lstrip("0") or "0"
    fraction = fraction if keeps_zeros else fraction.rstrip("0")
    return sign + (f"{whole}.{fraction}" if fraction else whole)


def fraction(text: str) -> str:
    """The value of ``1½``, ``2 1/2`` or ``3/4``."""
    if text[-1] in _FRACTIONS:
        whole, part = text[:-1].strip(" -"), _FRACTIONS[text[-1]]
    else:
        whole, part = text[:-3].strip(" -"), int(text[-3]) / int(text[-1])
    return f"{int(whole or 0) + part:.6g}"


def myriads(text: str) -> str:
    """The value of ``3億5千万``, ``1.5만`` or ``2千``: powers of 10,000, and of ten before these."""
    value = Decimal()
    for number, small, large in _MYRIAD.findall(text):
        value += Decimal(number.replace(",", "")) * 10 ** (_POWERS.get(small, 0) + _POWERS.get(large, 0))
    return f"{value.normalize():f}"


def chinese(text: str) -> str:
    """The value of ``三百二十``, ``一万五``, ``三亿五千万`` or ``二点五``."""
    whole, _, fraction = text.partition("点")
    total = section = digit = power = 0
    for sign in whole:
        if sign in _CHINESE_DIGITS:
            digit, power = 10 * digit + _CHINESE_DIGITS[sign], power if _CHINESE_DIGITS[sign] else 0
            continue
        power = _CHINESE_POWERS[sign]
        if power < 10**4:
            section += (digit or 1) * power
        elif power == 10**4:
            total, section = total + (section + digit) * power, 0
        else:
            total, section = (total + section + digit) * power, 0
        digit = 0
    last = digit * power // 10 if power > 10 and digit < 10 else digit  # 二百五 is 250
    value = str(total + section + last)
    return f"{value}.{''.join(str(_CHINESE_DIGITS[sign]) for sign in fraction)}" if fraction else value


def scaled(value: str, power: int) -> str:
    """A number times a power of ten."""
    whole, _, fraction = value.partition(".")
    fraction = fraction.ljust(power, "0")
    rest = fraction[power:].rstrip("0")
    return (whole + fraction[:power] + (f".{rest}" if rest else "")).lstrip("0") or "0"


def whole_year(text: str) -> str:
    """The year of two digits, or of four."""
    return text if len(text) == 4 else str((1900 if int(text) > 69 else 2000) + int(text))
