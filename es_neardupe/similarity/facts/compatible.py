"""Facts that may be the same although they are written in another way: a date with and without its year."""

from __future__ import annotations

from collections.abc import Sequence

from es_neardupe.options import FactKind
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
    x, y = _as_date(one, other), _as_date(other, one)
    if x[:2] == y[:2] == "d:" and "-" in x and "-" in y:
        return _are_compatible_dates(x[2:].split("-"), y[2:].split("-"))
    if one.key.rpartition(":")[2] != other.key.rpartition(":")[2]:
        return False
    kinds = {one.kind, other.kind}
    is_ordinal = "o" in (one.key[0], other.key[0])
    return FactKind.NUMBER in kinds and not is_ordinal and kinds != {FactKind.UNIT, FactKind.NUMBER}


def _as_date(one: SlotToken, other: SlotToken) -> str:
    """The key of a fact; of a year next to a date, as a date of which only the year is known."""
    is_year = one.kind is FactKind.DATE and one.key[:2] == "n:" and other.key[:2] == "d:"
    return f"d:{one.key[2:]}-*-*" if is_year else one.key


def _are_compatible_dates(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether two dates agree in what is known of both. Of two parts instead of three, the second is ``?day/month`` in
    any order."""
    if len(one) == len(other) == 3:
        return all(x == y or "*" in (x, y) for x, y in zip(one, other, strict=True))
    long, short = (one, other) if len(one) == 3 else (other, one)
    if len(long) == 3 and len(short) == 2 and short[1][0] == "?":
        return short[0] == long[0] and set(long[1:]) == set(short[1][1:].split("/"))
    return False
