"""Whether the facts of two texts agree, as a measure of pairs."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_neardupe.options import FactKind
from es_neardupe.similarity.facts import agreement as module
from es_neardupe.similarity.facts.agreement import FactsAgree
from es_neardupe.similarity.facts.kinds import parse_facts

TEXTS = [
    "The council pays 500 euros for the roof of the school.",
    "The council pays 700 euros for the roof of the school.",
    "The council does not pay 500 euros for the roof of the school.",
    "THE COUNCIL PAYS 500 EUROS FOR THE ROOF OF THE SCHOOL",
]


@given(st.text(st.characters(), max_size=30))
def test_a_prepared_text_is_the_text(text: str) -> None:
    (prepared,) = FactsAgree().prepare([text])
    assert module._text(prepared) == text
    assert len(prepared) > 0


@pytest.mark.parametrize(
    ("chosen", "agree"),
    [
        ("amounts", [0, 1, 1, 0, 1]),
        ("figures", [0, 1, 1, 0, 1]),
        ("negations", [1, 0, 1, 1, 0]),
        ("dates,units", [1, 1, 1, 1, 1]),
    ],
)
def test_only_the_chosen_kinds_decide(chosen: str, agree: list[int]) -> None:
    """The pairs 01, 02, 03, 13 and 23, in both orders."""
    kinds: frozenset[FactKind] = parse_facts(chosen)
    measure = FactsAgree(kinds=kinds)
    prepared = measure.prepare(TEXTS)
    left, right = np.array([0, 0, 0, 1, 2]), np.array([1, 2, 3, 3, 3])
    found = measure.scores(prepared, left, right).tolist()
    assert found == measure.scores(prepared, right, left).tolist()
    assert found == agree
