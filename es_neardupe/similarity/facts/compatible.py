"""Whether two facts may be the same, though they are written in another way."""

from __future__ import annotations

from collections.abc import Sequence

from es_neardupe.options import FactKind
from es_neardupe.similarity.facts.currencies import CURRENCIES_OF
from es_neardupe.similarity.facts.dates import are_equal_times, may_be_day, may_be_hour
from es_neardupe.similarity.facts.tokens import SlotToken


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
    if ":(" in one.key or ":(" in other.key:
        return any(are_compatible(x, y) for x in _readings(one) for y in _readings(other))
    x, y = _as_date(one, other), _as_date(other, one)
    if x[:2] == y[:2] == "d:" and "-" in x and "-" in y:
        return _are_compatible_dates(x[2:].split("-"), y[2:].split("-"))
    is_time = "d:t" in (one.key[:3], other.key[:3])
    are_shares = {one.key[:2], other.key[:2]} == {"%:", "pp"}  # 3 percent, 3 percentage points
    if is_time or are_shares or one.key.rpartition(":")[2] != other.key.rpartition(":")[2]:
        return _may_be(one, other) or _may_be(other, one)
    kinds = {one.kind, other.kind}
    if FactKind.NUMBER not in kinds:
        return kinds == {FactKind.AMOUNT} and (_may_be_of(one.key, other.key) or _may_be_of(other.key, one.key))
    is_ordinal = "o" in (one.key[0], other.key[0])
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
    if ":(" not in token.key:
        return [token]
    return [token._replace(key=token.key.replace(":(", sign)) for sign in (":", ":-")]


def _may_be(one: SlotToken, other: SlotToken) -> bool:
    """Whether a fact is another notation of one of another form: a share, a time of day, or a decade."""
    if one.key[:3] == "d:t":
        return are_equal_times(one.key, other.key) or may_be_hour(one.key, other.key, other.written)
    if one.key[:2] == "d:" and "-" in one.key and other.kind is FactKind.NUMBER:
        return may_be_day(one.key, other.written)
    if one.key[:3] == "d:*" and one.key[-1] == "s":
        return other.key[:2] == "d:" and other.key[-3:] == one.key[-3:]
    return _is_share(one.key, other.key)


def _is_share(key: str, other: str) -> bool:
    """Whether a fraction is a share in percent: a quarter and 25 %, two thirds and 67 %."""
    if key[:4] != "n:0." or other[:2] != "%:" or not other[2:].isdigit():
        return False
    return round(100 * float(key[2:])) == int(other[2:])


def _as_date(one: SlotToken, other: SlotToken) -> str:
    """The key of a fact; of a year next to a date, as a date of which only the year is known."""
    is_year = one.kind is FactKind.DATE and one.key[:2] == "n:" and other.key[:2] == "d:"
    return f"d:{one.key[2:]}-*-*" if is_year else one.key


def _are_compatible_dates(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two dates agree in what is known of both. Of two parts instead of three, the second is ``?day/month`` in
    any order."""
    if len(one) == len(other):
        return all(x == y or "*" in (x, y) for x, y in zip(one, other, strict=True))
    long, short = (one, other) if len(one) == 3 else (other, one)
    same_year = short[0] == long[0] or "*" in (short[0], long[0])
    return same_year and set(long[1:]) == set(short[1].removeprefix("?").split("/"))
