"""Facts of invoices and tables of the same form: other numbers keep them apart, and their copies are none of them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from datetime import timedelta
from random import Random
from textwrap import fill

import pytest
from forms import MONTHS, Invoice, copies, invoice, table
from hypothesis import given
from hypothesis import strategies as st

from es_neardupe.similarity.facts.differing import facts_agree
from es_neardupe.similarity.facts.kinds import parse_facts
from es_neardupe.similarity.facts.tokens import fact_tokens

KINDS = parse_facts("numbers,amounts,dates")


def agree(a: str, b: str) -> bool:
    return facts_agree(fact_tokens(a), fact_tokens(b), KINDS)


def other_number(one: Invoice, chance: Random) -> Invoice:
    return replace(one, number=one.number + chance.randint(1, 9))


def other_day(one: Invoice, chance: Random) -> Invoice:
    return replace(one, day=one.day + timedelta(days=chance.choice([1, 7, 30, 365])))


def other_price(one: Invoice, chance: Random) -> Invoice:
    (article, pieces, cents), *rest = one.lines
    return replace(one, lines=((article, pieces, cents + chance.choice([1, 10, 1000])), *rest))


@pytest.mark.parametrize("change", [other_number, other_day, other_price])
@given(st.sampled_from(sorted(MONTHS)), st.randoms(use_true_random=False))
def test_invoices(change: Callable[[Invoice, Random], Invoice], language: str, chance: Random) -> None:
    """One other value is enough, also in another notation and layout."""
    one = invoice(language, chance)
    other = change(one, chance)
    for shown in (other.text(), other.text(1), other.text().upper(), fill(other.text(1), 50)):
        assert not agree(one.text(), shown)
    for copy in (*copies(one.text()), one.text(1), *copies(one.text(1))):
        assert agree(one.text(), copy)


@given(st.randoms(use_true_random=False))
def test_tables(chance: Random) -> None:
    one = table(chance)
    assert all(agree(one, copy) for copy in copies(one))
    *before, row, last = one.split("\n")
    *cells, pressure, end = row.split("|")
    other = "|".join([*cells, f" {float(pressure) + 0.1:.1f} ", end])
    assert not agree(one, "\n".join([*before, other, last]))
    rows = "\n".join([*before[:3], *chance.sample(before[3:], len(before) - 3), row, last])
    assert agree(one, rows)  # in another order
