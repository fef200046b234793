"""Facts in one notation and another: currencies, times of day, measures."""

from __future__ import annotations

import pytest

from es_neardupe.similarity.facts.differing import differing_facts
from es_neardupe.similarity.facts.tokens import fact_tokens

BEFORE = "This is to let all the members of the board know that"
AFTER = "and that nothing else of the agreement with them will be any other than it was in the years before."


def kinds_of(a: str, b: str) -> str:
    """The kinds of the facts that differ between two texts, the same in both orders."""
    one, other = fact_tokens(a), fact_tokens(b)
    found = [one.kinds for one in differing_facts(one, other)]
    assert found == [one.kinds for one in differing_facts(other, one)]
    return " ".join("+".join(kind.value for kind in kinds) for kinds in found)


def kinds_in_a_letter(a: str, b: str) -> str:
    """The same of two letters that are equal except for these words."""
    return kinds_of(f"{BEFORE} {a} {AFTER}", f"{BEFORE} {b} {AFTER}")


@pytest.mark.parametrize(
    ("a", "b", "kinds"),
    [
        ("the fee is SAR 1,200 now", "the fee is 1200 riyals now", ""),
        ("the fee is HUF 12 000 now", "the fee is 12 000 forint now", ""),
        ("the fee is HUF 12 000 now", "the fee is EUR 12 000 now", "amount"),
        ("the fee is EUR50.50 now", "the fee is €50,50 now", ""),
        ("the fee is EUR50 now", "the fee is USD50 now", "amount"),
        ("the fee is RM90 now", "the fee is MYR 90 now", ""),
        ("the fee is NZ$80 now", "the fee is NZD 80 now", ""),
        ("the fee is TRY 750 now", "the fee is 750 ₺ now", ""),
        ("they try 750 of them now", "they try 751 of them now", "number"),
        ("it needs PHP 8 of them", "it needs PHP 9 of them", "number"),
    ],
)
def test_currencies(a: str, b: str, kinds: str) -> None:
    assert kinds_in_a_letter(a, b) == kinds
