"""Keys of facts: the same for the same fact, however it is written.

| key | fact |
|---|---|
| ``n:5``, ``o:5`` | a number or year, an ordinal |
| ``%:5``, ``pp:5`` | a share in percent, percentage points |
| ``a:USD:5``, ``a:USD:(5`` | an amount; one in brackets, which may be negative |
| ``u:length:5`` | a quantity in the smallest unit of its dimension; of a pack, ``u:mass:85x24`` |
| ``d:2026-3-1``, ``d:*-3-*`` | a date; what is unknown is ``*``. Of ``d:2026-?2/3``, the order is unknown |
| ``d:t19:30``, ``d:w1`` | a time of day, a weekday |
| ``d:q3``, ``d:h1``, ``d:2025/26``, ``d:1990s`` | parts of a year, a season, a decade |
| ``c:cx5`` | a code |
| ``p:5551234``, ``@:example.org`` | a phone number, an address |
| ``★:4``, ``▲``, ``≥`` | signs |
"""

from __future__ import annotations

NUMBER = "n:"
ORDINAL = "o:"
SHARE = "%:"
POINTS = "pp"
DATE = "d:"
TIME = "d:t"
WEEKDAY = "d:w"
PHONE = "p:"
ADDRESS = "@:"
QUANTITY = "u:"
LENGTH = "u:length:"
"""How these keys begin."""
IN_BRACKETS = ":("
"""What the keys of values in brackets have."""


def number_key(value: str | int) -> str:
    """The key of a number in plain digits, or of a year."""
    return f"{NUMBER}{value}"


def ordinal_key(value: str | int) -> str:
    """The key of an ordinal."""
    return f"{ORDINAL}{value}"


def share_key(value: str, *, points: bool = False) -> str:
    """The key of a share in percent, or of percentage ``points``."""
    return f"{POINTS}:{value}" if points else f"{SHARE}{value}"


def amount_key(currency: str, value: str) -> str:
    """The key of an amount of money."""
    return f"a:{currency}:{value}"


def quantity_key(dimension: str, value: float) -> str:
    """The key of a quantity in the smallest unit of its dimension, in six digits."""
    return f"{QUANTITY}{dimension}:{value:.6g}"


def code_key(written: str) -> str:
    """The key of a code. ``written``: without what may be left out."""
    return f"c:{written}"


def date_key(year: str = "", month: int = 0, day: int = 0) -> str:
    """The key of a date; a part that is not known is ``*``."""
    return f"{DATE}{year or '*'}-{month or '*'}-{day or '*'}"


def date_in_any_order(year: str, one: int, other: int) -> str:
    """The key of a date of which it is unknown which number is the month. ``year``: ``*`` if it is not known."""
    return f"{DATE}{year}-?{min(one, other)}/{max(one, other)}"


def time_key(hour: int, minutes: str) -> str:
    """The key of a time of day. ``minutes``: in two digits each, with seconds if they are known: ``30``, ``30:15``."""
    return f"{TIME}{hour % 24}:{minutes}"


def period_key(period: str) -> str:
    """The key of a part of a year or a season: ``q3``, ``h1``, ``2025/26``."""
    return f"{DATE}{period}"


def decade_key(year: str) -> str:
    """The key of a decade; of two digits, the century is not known."""
    return f"{DATE}{year if len(year) == 4 else f'*{year}'}s"


def value_of(key: str) -> str:
    """What follows the name of the fact, which is all but the last part."""
    return key.rpartition(":")[2]


def with_value(key: str, value: str) -> str:
    """The key of another value of the same."""
    return f"{key.rpartition(':')[0]}:{value}"
