"""Numbers as they are written, and their values."""

from __future__ import annotations

import re
from decimal import Decimal

from es_neardupe.similarity.facts.vocabulary import CURRENCY_SIGNS

LOSS = r"(?:\d{1,3}(?:[.,]\d+)+|\d{5,})"
"""A number that in brackets, in a cell of a table, is a negative one, and rather no note, year or count."""
IN_BRACKETS = rf"(?:[{CURRENCY_SIGNS}]\d[\d.,]*|\d[\d.,]*\s?[{CURRENCY_SIGNS}]|{LOSS})\)"
"""After an opening bracket: an amount or a number that may be a negative one."""
_MYRIAD = re.compile(r"(\d+(?:,\d{3})*(?:\.\d+)?)\s?([百千백천]?)([万萬億亿兆만억조]?)")
_POWERS = {
    **dict.fromkeys("百백", 2),
    **dict.fromkeys("千천", 3),
    **dict.fromkeys("万萬만", 4),
    **dict.fromkeys("億亿억", 8),
    **dict.fromkeys("兆조", 12),
}
_PLAIN_DIGITS = {
    **{0xFF10 + n: str(n) for n in range(10)},
    **{0x0660 + n: str(n) for n in range(10)},
    **{0x06F0 + n: str(n) for n in range(10)},
    **{0x0966 + n: str(n) for n in range(10)},
    **dict(zip(map(ord, "，．％￥：／－　"), ",.%¥:/- ", strict=True)),
}
"""Digits of other scripts, and signs of East Asian width, as the usual ones."""
_OTHER_DIGITS = re.compile(f"[{''.join(map(chr, _PLAIN_DIGITS))}]")
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


def with_plain_digits(text: str) -> str:
    """A text of the same length with the usual digits."""
    return text.translate(_PLAIN_DIGITS) if _OTHER_DIGITS.search(text) else text


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


def scaled(value: str, power: int) -> str:
    """A number times a power of ten."""
    whole, _, fraction = value.partition(".")
    fraction = fraction.ljust(power, "0")
    rest = fraction[power:].rstrip("0")
    return (whole + fraction[:power] + (f".{rest}" if rest else "")).lstrip("0") or "0"


def whole_year(text: str) -> str:
    """The year of two digits, or of four."""
    return text if len(text) == 4 else str((1900 if int(text) > 69 else 2000) + int(text))
