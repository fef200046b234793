"""A word in one title of a product only: parts and flavours make another product, other words do not. Words in
another order."""

from __future__ import annotations

import pytest

from es_neardupe.options import FactKind
from es_neardupe.similarity.facts.differing import differing_facts
from es_neardupe.similarity.facts.tokens import fact_tokens


def assert_differ(a: str, b: str, kind: FactKind | None) -> None:
    """Both titles differ in one fact of this kind, in either order; None: they do not differ."""
    for one, other in ((a, b), (b, a)):
        found = differing_facts(fact_tokens(one), fact_tokens(other))
        assert [fact.kinds for fact in found] == ([] if kind is None else [(kind,)])


@pytest.mark.parametrize(
    ("a", "b", "differ"),
    [
        ("Cherry cola 330 ml", "Cola 330 ml", True),
        ("Lemon iced tea 1.5 l", "Iced tea 1.5 l", True),
        ("Activia yogurt strawberry 4 x 125 g", "Activia yogurt 4 x 125 g", True),
        ("Activia yogurt strawberry banana 4 x 125 g", "Activia yogurt strawberry 4 x 125 g", True),
        ("Dove body wash lavender 250 ml", "Dove body wash 250 ml", True),
        ("Sodastream syrup cola zero 500 ml", "Sodastream syrup cola 500 ml", True),
        ("Logitech MX Keys keyboard cover", "Logitech MX Keys keyboard", True),
        ("Makita battery charger 18 V 5 Ah", "Makita battery 18 V 5 Ah", True),
        ("Bosch cordless drill 18 V with charger", "Bosch cordless drill 18 V", False),  # it comes with the product
        ("Canon EOS R50 camera incl. charger", "Canon EOS R50 camera", False),
        ("HP 301XL ink cartridge black", "HP 301XL black", False),  # no word says that the other title is no cartridge
        ("Bounty coconut 6 x 57 g", "Bounty 6 x 57 g", False),
        ("Spigen Ultra Hybrid case iPhone 15", "Spigen Ultra Hybrid iPhone 15", False),
        ("Sony WH-1000XM4 wireless headphones black", "Sony WH-1000XM4 headphones, black", False),
        ("Ferrero Nutella 450 g", "Nutella 450 g", False),
        ("HDMI to VGA adapter, black", "VGA to HDMI adapter, black", True),
        ("HDMI to VGA adapter, black", "black adapter HDMI to VGA", False),
    ],
)
def test_a_word_of_one_title(a: str, b: str, differ: bool) -> None:
    found = differing_facts(fact_tokens(a), fact_tokens(b))
    assert [one.kinds for one in found] == [(FactKind.WORD,)] * differ
    assert len(differing_facts(fact_tokens(b), fact_tokens(a))) == len(found)


@pytest.mark.parametrize(
    ("a", "b", "differ"),
    [
        ("Iron Giant", "Iron Giant 2", True),
        ("Der kleine Kobold und die Burg", "Der kleine Kobold und die Burg, Band 3", True),
        ("Matrix Analysis", "Matrix Analysis, Part II", True),
        ("Introduction to Linear Algebra", "Introduction to Linear Algebra, 2nd edition", True),
        ("Introduction to Linear Algebra", "Introduction to Linear Algebra 2024", False),
        ("Ground coffee", "Ground coffee 500 g", False),
        ("Ground coffee", "Ground coffee pack of 3", False),
    ],
)
def test_the_number_of_a_part(a: str, b: str, differ: bool) -> None:
    assert_differ(a, b, FactKind.NUMBER if differ else None)


@pytest.mark.parametrize(
    ("a", "b", "differ"),
    [
        ("Ohara rain jacket XL (special offer)", "Ohara rain jacket S", True),
        ("Ohara rain jacket XL (special offer)", "rain jacket Ohara, S", True),
        ("Shirt L black cotton", "cotton shirt black M", True),
        ("Shirt L black", "black shirt size L", False),
        ("Ohara rain jacket XL (special offer)", "Ohara rain jacket", False),
    ],
)
def test_sizes_among_other_words(a: str, b: str, differ: bool) -> None:
    assert_differ(a, b, FactKind.UNIT if differ else None)


@pytest.mark.parametrize(
    ("a", "b", "kinds"),
    [
        ("T-shirt blue X-Large", "T-shirt blue Large", "unit"),
        ("T-shirt blue extra small", "T-shirt blue small", "unit"),
        ("T-shirt blue XXL", "T-shirt blue XL", "unit"),
        ("T-shirt blue 2XL", "T-shirt blue XXL", ""),
        ("T-shirt blue 3XL", "XXXL T-shirt blue", ""),
        ("T-shirt blue Small", "T-shirt blue S", ""),
        ("T-shirt blue medium", "T-shirt blue M", ""),
        ("T-shirt blue XL", "T-shirt blue Extra Large", ""),
        ("T-shirt blue X-Large", "T-shirt blue Extra Large", ""),
        ("dog food for small dogs", "dog food for large dogs", "word"),
        ("Sims 4 PC game", "Sims 4 Mac game", "word"),
        ("Wörterbuch, 27. Auflage", "Wörterbuch, 27. Aufl.", ""),
        ("Earphones 2. Generation", "Earphones 2nd Generation", ""),
    ],
)
def test_sizes_and_editions(a: str, b: str, kinds: str) -> None:
    found = differing_facts(fact_tokens(a), fact_tokens(b))
    assert " ".join(kind.value for one in found for kind in one.kinds) == kinds


BODY = (
    "Made of soft cotton in Portugal, easy to wash and iron; it keeps its form and does not lose its colour for years."
)


@pytest.mark.parametrize(
    ("a", "b", "kinds"),
    [
        ("Acme t-shirt S red", "T-Shirt Acme red L", {"unit"}),
        ("Acme t-shirt red", "Acme t-shirt blue", {"word"}),
        ("Cook in Leeds", "Cook in York", {"name"}),
        ("Schöne Wohnung in Köln", "Schöne Wohnung in Bonn", {"name"}),
        ("Senate Passes Budget", "House Approves Budget", {"word"}),
    ],
)
def test_titles_above_longer_texts(a: str, b: str, kinds: set[str]) -> None:
    """Sizes, colours and places, besides the titles themselves; other words may be those of another headline."""
    found = differing_facts(fact_tokens(f"{a}\n{BODY}"), fact_tokens(f"{b}\n{BODY}"))
    assert {kind.value for one in found for kind in one.kinds} == {"title"} | kinds
