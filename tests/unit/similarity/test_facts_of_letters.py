"""Differing facts of letters in four languages, in other notations, another order and layout: exactly those changed."""

from __future__ import annotations

import pytest
from fact_letters import letters
from hypothesis import given
from hypothesis import strategies as st

from es_neardupe.options import FactKind
from es_neardupe.similarity.facts.differing import differing_facts
from es_neardupe.similarity.facts.kinds import OF_THE_COPY
from es_neardupe.similarity.facts.tokens import fact_tokens


def kinds_of(a: str, b: str) -> list[FactKind]:
    """The kinds of the facts that differ, sorted, without those of stamps."""
    kinds = (kind for one in differing_facts(fact_tokens(a), fact_tokens(b)) for kind in one.kinds)
    return sorted((kind for kind in kinds if kind not in OF_THE_COPY), key=list(FactKind).index)


@given(st.integers(0, 2_999))
def test_the_changed_facts_and_no_others(seed: int) -> None:
    one = letters(seed)
    assert kinds_of(one.a, one.b) == one.changed
    assert kinds_of(one.b, one.a) == one.changed


@pytest.mark.long
def test_three_thousand_letters() -> None:
    wrong = [seed for seed in range(3_000) if kinds_of((one := letters(seed)).a, one.b) != one.changed]
    assert wrong == []
