"""Whether two facts may be the same, though they are written in another way."""

from __future__ import annotations

import re
from collections.abc import Sequence

from es_neardupe.options import FactKind
from es_neardupe.similarity.facts.currencies import CURRENCIES_OF
from es_neardupe.similarity.facts.dates import POINTED_TIME
from es_neardupe.similarity.facts.fact_keys import (
    DATE,
    IN_BRACKETS,
    NUMBER,
    ORDINAL,
    POINTS,
    SHARE,
    TIME,
    date_key,
    number_key,
    quantity_key,
    value_of,
)
from es_neardupe.similarity.facts.tokens import SlotToken

_ROUND_HOURS = re.compile(r"(?:[01]\d|2[0-3])[0-5]\d ?(?:hours|hrs|h)", re.IGNORECASE)


def without_compatible(a: Sequence[SlotToken], b: Sequence[SlotToken]) -> tuple[list[SlotToken], list[SlotToken]]:
    """The facts that are left if each fact of a cancels the first one of b that may be the same."""
    left_a, left_b = [], list(b)
    for one in a:
        same = next((k for k, other in enumerate(left_b) if are_compatible(one, other)), None)
        if same is None:
            left_a.append(one)
        else:
            del left_b[same]
    return left_a, left_b


def are_compatible(one: SlotToken, other: SlotToken) -> bool:
    """Whether two facts may be the same: equal values, dates with unknown parts, an amount without its currency."""
    if one.key == other.key:
        return True
    if IN_BRACKETS in one.key or IN_BRACKETS in other.key:
        return any(are_compatible(x, y) for x in _readings(one) for y in _readings(other))
    x, y = _as_date(one, other), _as_date(other, one)
    if _is_date(x) and _is_date(y):
        return _are_compatible_dates(x.removeprefix(DATE).split("-"), y.removeprefix(DATE).split("-"))
    is_time = one.key.startswith(TIME) or other.key.startswith(TIME)
    are_shares = {one.key[:2], other.key[:2]} == {SHARE, POINTS}  # 3 percent, 3 percentage points
    if is_time or are_shares or value_of(one.key) != value_of(other.key):
        return _may_be(one, other) or _may_be(other, one)
    kinds = {one.kind, other.kind}
    if FactKind.NUMBER not in kinds:
        return kinds == {FactKind.AMOUNT} and (_may_be_of(one.key, other.key) or _may_be_of(other.key, one.key))
    is_ordinal = one.key.startswith(ORDINAL) or other.key.startswith(ORDINAL)
    return not is_ordinal and kinds != {FactKind.UNIT, FactKind.NUMBER}


def _may_be_of(amount: str, other: str) -> bool:
    """Whether the name of the currency of an amount may be that of the other one: cents, and ``kr``."""
    name, currency = amount.split(":")[1], other.split(":")[1]
    if name not in CURRENCIES_OF:
        return False
    of = CURRENCIES_OF[name]
    return of is None or currency in of


def _readings(token: SlotToken) -> list[SlotToken]:
    """A fact, or both readings of ``($50)``: an amount in brackets, and a negative one."""
    if IN_BRACKETS not in token.key:
        return [token]
    return [token._replace(key=token.key.replace(IN_BRACKETS, sign)) for sign in (":", ":-")]


def _may_be(one: SlotToken, other: SlotToken) -> bool:
    """Whether a fact is another notation of one of another form: a share, a time of day, or a decade."""
    if one.key.startswith(TIME):
        return _are_equal_times(one.key, other.key) or _may_be_hour(one.key, other.key, other.written)
    if _is_date(one.key) and other.kind is FactKind.NUMBER:
        return _may_be_day(one.key, other.written)
    if one.key.startswith(f"{DATE}*") and one.key[-1] == "s":
        return other.key.startswith(DATE) and other.key[-3:] == one.key[-3:]
    return _is_share(one.key, other.key)


def _may_be_hour(time: str, other: str, written: str) -> bool:
    """Whether a number, or hours, with this key may be a time of day, or this a duration: ``19``, ``1:30``."""
    hour, minute, *seconds = time.removeprefix(TIME).split(":")
    if POINTED_TIME.fullmatch(written):
        return written.lstrip("0") == f"{hour}.{minute}".lstrip("0")
    if _ROUND_HOURS.fullmatch(written):
        return written[:4] == f"{hour:0>2}{minute}"
    duration = 3600 * int(hour) + 60 * int(minute) + sum(map(int, seconds))
    others = {quantity_key("time", duration)}
    if not seconds:
        others |= {quantity_key("time", duration // 60), number_key(hour) if minute == "00" else ""}
    return other in others


def _may_be_day(date: str, written: str) -> bool:
    """Whether a number is the day, or the day and the month, of a date with this key: ``1`` or ``01.08`` and 1
    August."""
    day, _, month = written.partition(".")
    if not month:
        return day.isdigit() and date.endswith(f"-{int(day)}")
    return len(month) == 2 and day.isdigit() and month.isdigit() and date.endswith(f"-{int(month)}-{int(day)}")


def _are_equal_times(time: str, other: str) -> bool:
    """Whether two keys of times of day agree; the seconds of one may be unknown."""
    return time.startswith(f"{other}:") or other.startswith(f"{time}:")


def _is_share(key: str, other: str) -> bool:
    """Whether a fraction is a share in percent: a quarter and 25 %, two thirds and 67 %."""
    share = value_of(other)
    if not key.startswith(f"{NUMBER}0.") or not other.startswith(SHARE) or not share.isdigit():
        return False
    return round(100 * float(value_of(key))) == int(share)


def _as_date(one: SlotToken, other: SlotToken) -> str:
    """The key of a fact; of a year next to a date, as a date of which only the year is known."""
    is_year = one.kind is FactKind.DATE and one.key.startswith(NUMBER) and other.key.startswith(DATE)
    return date_key(value_of(one.key)) if is_year else one.key


def _is_date(key: str) -> bool:
    return key.startswith(DATE) and "-" in key


def _are_compatible_dates(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two dates agree in what is known of both. Of two parts instead of three, the second is ``?day/month`` in
    any order."""
    if len(one) == len(other):
        return all(x == y or "*" in (x, y) for x, y in zip(one, other, strict=True))
    long, short = (one, other) if len(one) == 3 else (other, one)
    same_year = short[0] == long[0] or "*" in (short[0], long[0])
    return same_year and set(long[1:]) == set(short[1].removeprefix("?").split("/"))
