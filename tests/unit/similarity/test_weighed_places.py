"""What differs, the heaviest first."""

from __future__ import annotations

import pytest
from unit_tools import words

from es_neardupe.similarity import weighed_places as places
from es_neardupe.similarity.collation import collate
from es_neardupe.similarity.weighed_places import LAYOUT, PASSAGE, WORDS, WeighedPlace, heaviest_first, weighed_places

BEFORE, AFTER = words(0, 30), words(100, 30)
PROSE = (
    "Dear citizens, we are glad to announce that the federal government has granted money for the repair of the bridge",
    "and that in the coming spring the work will begin with a great feast for everybody in the whole valley",
)
"""Words that are no codes."""


def weighed(*texts: str) -> list[WeighedPlace]:
    return weighed_places(collate(texts))


def heaviest(*texts: str) -> list[tuple[str, list[str]]]:
    """Kind and readings, the heaviest first."""
    return [(one.kind, [each.text for each in one.readings]) for one in heaviest_first(weighed(*texts))]


def test_facts_that_contradict_each_other_are_before_passages_and_words() -> None:
    inserted = f"{words(200, 40)} {AFTER}"
    a = f"red {BEFORE} we grant $45,000 to the town {AFTER} {words(300, 30)}"
    b = f"blue {BEFORE} we grant $9,500 to the town {inserted} {words(300, 30)}"
    found = heaviest(a, b)
    assert [kind for kind, _ in found] == ["amount", PASSAGE, WORDS]
    assert found[0][1] == ["$45,000", "$9,500"]
    assert found[1][1][0] == ""


def test_the_same_values_at_two_places_are_one() -> None:
    text = f"{BEFORE} on {{0}} in town {AFTER} until {{0}} of the year {words(300, 30)}"
    (one,) = heaviest_first(weighed(text.format("Monday"), text.format("Tuesday"), text.format("Monday")))
    assert (one.kind, one.place.number, one.also) == ("date", 1, (2,))
    assert [each.rows for each in one.readings] == [(0,), (1,)]


def test_notation_and_punctuation_are_layout() -> None:
    places = weighed(f"{BEFORE} a sum of $13.15 million now {AFTER}", f"{BEFORE} a sum of 13 15 million now {AFTER}")
    assert {one.kind for one in places} <= {LAYOUT}
    assert heaviest_first(places) == []


def test_a_moved_passage_with_another_layout_is_no_layout() -> None:
    moved = "the engineers said that all of the levees of this district are damaged in many places today"
    places = weighed(f"{moved} {BEFORE} {AFTER}", f"{BEFORE} {AFTER} {moved.replace('engineers', 'engi- neers')}")
    assert {one.kind for one in places} == {"passage"}
    assert len(heaviest_first(places)) == 2


def test_another_layout_of_a_headline_is_layout() -> None:
    (one,) = weighed(f"SENATOR ANNOUNCES NEW BENEFIT\n{BEFORE}", f"SENATOR ANNOUNCES NEW BEN-EFIT\n{BEFORE}")
    assert one.kind == LAYOUT


@pytest.mark.parametrize(
    ("kind", "a", "b"),
    [
        ("contact", "write to pay@bank.com now", "write to pay@evil.org now"),
        ("contact", "call 202/224-5521 now", "call 202/224-9987 now"),
        ("contact", "see http://bank.com/a?id=1 there", "see http://bank.com/a?id=2 there"),
        ("stamp", "\n\nPrinted on 3 March 2024 10:00\n\n", "\n\nPrinted on 9 June 2025 11:00\n\n"),
        ("counter", "\n\nPage 3\n\n", "\n\nPage 4\n\n"),
        ("counter", "\n1.8.1. The", "\n1.8.2. The"),
    ],
)
def test_what_belongs_to_a_copy_is_behind_words(kind: str, a: str, b: str) -> None:
    before, after = PROSE
    assert [kind for kind, _ in heaviest(f"{before} {a} {after}", f"{before} {b} {after}")] == [kind]
    found = heaviest(f"{before} {a} {after} of $5,000", f"{before} {b} {after} quite soon of $6,000")
    assert [kind for kind, _ in found] == ["amount", WORDS, kind]
    joined = a.replace("write to", "writeto").replace("The", "T he")
    (one,) = heaviest_first(weighed(*(f"{before} {text} {after}" for text in (a, joined, b))))
    assert (one.kind, one.is_fact) == (kind, False)


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("$1.5", "$15"),
        ("1.5 mg", "15 mg"),
        ("12 12", "1212"),
        ("on 1/12/2020", "on 11/2/2020"),
        ("version 1.11", "version 11.1"),
    ],
)
def test_the_same_digits_in_other_numbers_are_facts(a: str, b: str) -> None:
    before, after = PROSE
    (one,) = weighed_places(collate([f"{before} {a} {after}", f"{before} {b} {after}"]))
    assert one.is_fact


@pytest.mark.parametrize(
    ("a", "b"), [("x-ray", "xray"), ("bat-\ntery", "battery"), ("A-12", "A12"), ("September 11th", "September 11 th")]
)
def test_the_same_letters_and_digits_are_layout(a: str, b: str) -> None:
    before, after = PROSE
    assert [one.kind for one in weighed(f"{before} {a} {after}", f"{before} {b} {after}")] == [LAYOUT]


@pytest.mark.parametrize("number", ["٤٥٬٠٠٠", "۴۵۰۰۰", "４５，０００"])
def test_the_digits_of_another_script_are_layout(number: str) -> None:
    assert heaviest(f"{BEFORE} a sum of 45,000 now {AFTER}", f"{BEFORE} a sum of {number} now {AFTER}") == []
    ((kind, _),) = heaviest(f"{BEFORE} a sum of 46,000 now {AFTER}", f"{BEFORE} a sum of {number} now {AFTER}")
    assert kind in ("amount", "number")


def test_figures_among_other_words_are_before_words_and_behind_facts() -> None:
    found = heaviest(
        f"{BEFORE} more than $1,800,000 last year for housing {AFTER} on 3 May 2006 {words(300, 20)}",
        f"{BEFORE} only $360,000 to the harbour of Hancock {AFTER} on 4 May 2006 {words(300, 20)}",
    )
    assert [kind for kind, _ in found][:2] == ["date", "amount"]


def test_a_figure_that_stands_elsewhere_in_the_other_text_contradicts_nothing() -> None:
    found = heaviest(
        f"{BEFORE} more than $1,800,000 last year for housing {AFTER} {words(300, 20)}",
        f"{BEFORE} only $360,000 to the harbour of Hancock {AFTER} {words(300, 20)} of $1,800,000 in all",
    )
    assert [kind for kind, _ in found] == [WORDS, WORDS]


def test_readings_are_in_the_order_of_their_number_of_texts() -> None:
    town = f"{BEFORE} in the town of {{}} {AFTER}".format
    (one,) = heaviest_first(weighed(*map(town, ("Akron", "Salem", "Boston", "Boston!", "Boston"))))
    assert [each.text for each in one.readings] == ["Akron", "Boston", "Salem"]


def test_one_text_is_not_searched_for_facts(monkeypatch: pytest.MonkeyPatch) -> None:
    """It may be one of a million words, to which the others are too long to be compared."""
    monkeypatch.setattr(places, "facts_of", pytest.fail)
    assert weighed(BEFORE, BEFORE) == []
