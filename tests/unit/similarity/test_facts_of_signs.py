"""Facts of texts that have the same words, and differ in signs only."""

from __future__ import annotations

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from es_neardupe.keys.text import contents
from es_neardupe.similarity.facts.differing import differing_facts, in_words
from es_neardupe.similarity.facts.symbols import signs_of
from es_neardupe.similarity.facts.tokens import fact_tokens

BEFORE = "This is to let all the members of the board know that the value is now"
AFTER = "and that nothing else of the agreement with them will be any other than it was in the years before."


@pytest.mark.parametrize(
    ("a", "b", "kind"),
    [
        ("$5", "€5", "amount"),
        ("5 $", "£5", "amount"),
        ("-5", "5", "number"),
        ("-5", "$5", "amount"),
        ("−5 °C", "5 °C", "unit"),
        ("5 %", "5 ‰", "number"),
        ("<= 5", ">= 5", "number"),
        ("≤5 kg", ">=5 kg", "number"),
        ("▲ 5 %", "▼ 5 %", "number"),
        ("★★★★☆", "★★☆☆☆", "number"),
        ("C", "C++", "code"),
        ("C#", "C++", "code"),
        ("A+", "A-", "code"),
        ("AA", "AA+", "code"),
        ("✓", "✗", "negation"),
        ("5 mW", "5 MW", "unit"),
        ("100 MB/s", "100 Mb/s", "unit"),
        ("10 MB", "10 Mb", ""),
        ("5 MW", "5 mw", ""),
        ("-$5", "$5", "amount"),
        ("$(5) million", "$5 million", "amount"),
        ("\t($5)\t", "\t$5\t", "amount"),
        ("\t(1,250)\t", "\t1,250\t", "number"),
        ("($5)", "$5", ""),
        (".5 mg", "5 mg", "unit"),
        ("$5", "5 $", ""),
        ("Levin (D- MI)", "Levin (D, MI)", ""),
        ("−5", "-5", ""),
        (">=5", "≥ 5", ""),
        ("★★★★☆", "★★★★", ""),
        ("AA−", "AA-", ""),
        ("✔", "✅", ""),
        ("5!", "(5)", ""),
        ("A, B", "A - B", ""),
    ],
)
def test_signs(a: str, b: str, kind: str) -> None:
    """They differ in one fact, in either order; the texts are exact copies of each other, with other signs."""
    one, other = (f"{BEFORE} {value} {AFTER}" for value in (a, b))
    first, second = contents([one, other])
    assert first == second
    for x, y in ((one, other), (other, one)):
        found = differing_facts(fact_tokens(x), fact_tokens(y))
        assert [fact.kinds[0].value for fact in found] == [kind][: bool(kind)], in_words(found)
    assert not kind or signs_of(one) != signs_of(other)


def test_values_of_signs() -> None:
    """``‰`` is a tenth of a percent, and stars are their number."""
    for a, b in (("5 ‰", "0.5 %"), ("★★★★☆", "4")):
        assert not differing_facts(*(fact_tokens(f"{BEFORE} {value} {AFTER}") for value in (a, b)))


WORDS = ["C", "A", "rain", "5", "12", "of"]
SIGNS = [" ", " ", "+ ", "++ ", "# ", "- ", " - ", " -", " $", " € ", " %", "‰ ", " ≥ ", " <= ", "★★☆", " ✓ ", "✗", "▲"]


NO_FACTS = [" ", " - ", "# ", "++ "]
"""Signs that change no fact, except after some words."""


@given(st.lists(st.sampled_from(WORDS), min_size=4, max_size=12), st.data())
def test_equal_signs_are_equal_facts(words: list[str], data: st.DataObject) -> None:
    """Exact copies with equal signs have no facts that differ, if no sign separates a number from its unit."""
    signs = data.draw(st.lists(st.sampled_from(SIGNS), min_size=len(words), max_size=len(words)))
    place = data.draw(st.integers(0, len(words) - 1))
    a, b = (
        "".join(map("".join, zip([*signs[:place], sign, *signs[place + 1 :]], words, strict=True)))
        for sign in data.draw(st.lists(st.sampled_from(NO_FACTS), min_size=2, max_size=2, unique=True))
    )
    assume(contents([a]) == contents([b]) and signs_of(a) == signs_of(b))
    assert not differing_facts(fact_tokens(a), fact_tokens(b))
