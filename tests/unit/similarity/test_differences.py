"""Differing facts: what counts as a fact, what does not, and real near-copies."""

from __future__ import annotations

import importlib.util
from itertools import combinations
from pathlib import Path

import pytest
from conftest import Cli, read_jsonl
from hypothesis import given
from hypothesis import strategies as st
from unit_tools import words

from es_neardupe.options import FactKind
from es_neardupe.similarity.comparison import compare_texts
from es_neardupe.similarity.facts.differing import Fact

BEFORE = "This is to let the members of the board know that"
AFTER = "and that nothing else of the agreement with them will be any other than it was in the years before."


def facts_of(a: str, b: str) -> list[tuple[set[str], str, str]]:
    """Kinds and words of the facts that differ between two letters that are equal except for these words."""
    found = compare_texts(f"{BEFORE} {a} {AFTER}", f"{BEFORE} {b} {AFTER}")
    assert found.near_copies
    check_places(found.facts, found.a.text, found.b.text)
    return [({kind.value for kind in one.kinds}, one.words_a, one.words_b) for one in found.facts]


def check_places(facts: tuple[Fact, ...], a: str, b: str) -> None:
    for one in facts:
        assert (a[slice(*one.a)], b[slice(*one.b)]) == (one.words_a, one.words_b)


@pytest.mark.parametrize(
    ("a", "b", "kind", "words_a", "words_b"),
    [
        ("we pay $45,000 to them", "we pay $97,200 to them", "amount", "$45,000", "$97,200"),
        ("it costs € 3.50 a day", "it costs € 4.50 a day", "amount", "€ 3.50", "€ 4.50"),
        ("we pay 5 million dollars", "we pay 5 billion dollars", "amount", "5 million dollars", "5 billion dollars"),
        ("it grew by 12 percent there", "it grew by 15 percent there", "number", "12 percent", "15 percent"),
        ("he met us on April 17, 2006", "he met us on April 18, 2006", "date", "April 17, 2006", "April 18, 2006"),
        ("they don't agree to it", "they do agree to it", "negation", "n't", ""),
        ("they will agree to it", "they will not agree to it", "negation", "", "not"),
        ("the mayor of Mount Gilead is here", "the mayor of Akron is here", "name", "Mount Gilead", "Akron"),
    ],
)  # fmt: skip
def test_facts(a: str, b: str, kind: str, words_a: str, words_b: str) -> None:
    """A fact is shown as a whole."""
    assert facts_of(a, b) == [({kind}, words_a, words_b)]
    assert facts_of(b, a) == [({kind}, words_b, words_a)]


def test_several_at_once() -> None:
    a = "Newark, on May 3, 2006, got no grant of $500"
    b = "Akron, on May 4, 2006, got a grant of $600"
    assert facts_of(f"the city of {a}", f"the city of {b}") == [
        ({"name"}, "Newark", "Akron"),
        ({"date"}, "May 3, 2006", "May 4, 2006"),
        ({"negation"}, "no", "a"),
        ({"amount"}, "$500", "$600"),
    ]


def test_only_near_copies_have_the_same_form() -> None:
    common = words(0, 6)
    found = compare_texts(f"{common} in Newark {words(0, 40, 'p')}", f"{common} in Akron {words(0, 40, 'q')}")
    assert (found.near_copies, found.facts) == (False, ())


def test_an_insertion_is_no_fact_of_both() -> None:
    base = words(0, 100)
    assert compare_texts(base, base.replace("w50 ", "w50 in Rome 7 ")).facts == ()
    (fact,) = compare_texts(base.replace("w50 ", "in Rome 7 "), base.replace("w50 ", "in Oslo 8 ")).facts
    assert (fact.words_a, fact.words_b, fact.kinds) == ("Rome 7", "Oslo 8", (FactKind.NUMBER, FactKind.NAME))


@pytest.mark.parametrize(
    ("a", "b"),
    [
        # rewritten sentences, as in press releases
        ("he said that the town of Newark needs it most", "the council of the city asked Senator Akron for more"),
        ("the Senators met in Newark and talked all day there", "we saw how Akron built roads and new parks"),
        ("Federal funding is crucial for it", "Homeland Security funds are a critical resource for it"),
        ("they meet here", "they meet in Newark on 3 May here"),
        # other spellings
        ("the court of Jefferson County is here", "the court of JeffersonCounty is here"),
        ("it costs 45,000 of them", "it costs 45000 of them"),
    ],
)
def test_no_facts(a: str, b: str) -> None:
    known = "and in Newark, in Akron, with Jefferson County, of JeffersonCounty, and"
    assert facts_of(f"{known} {a}", f"{known} {b}") == []


@pytest.mark.parametrize(
    ("a", "b"),
    [
        ("it went to the mayor of Newark", "it went to the mayor of 12"),
        ("they paid $500 for it", "they paid Newark for it"),
        ("they came on Monday there", "they came with joy there"),
        ("the warranty is two years for it", "the warranty is unlimited for it"),
    ],
)
def test_a_word_instead_of_a_figure(a: str, b: str) -> None:
    known = "and in Newark, in Akron, with Jefferson County, of JeffersonCounty, and"
    assert [kinds for kinds, _, _ in facts_of(f"{known} {a}", f"{known} {b}")] == [{"word"}]


def test_unrelated_endings_are_no_facts() -> None:
    base = f"{BEFORE} {AFTER} See you"
    assert compare_texts(f"{base} call me 30 times", f"{base} on the way home").facts == ()
    assert compare_texts(f"12 03 2006 news {base}", f"Senators in Rome 17 {base}").facts == ()
    (version,) = compare_texts(f"{base} 2.0", f"{base} 3.0").facts
    assert (version.words_a, version.words_b) == ("2.0", "3.0")


def test_words_of_titles_are_no_names() -> None:
    """All words of a title are capitalised, so its verbs are not names."""
    title = "Port Of Seattle {} New Rail Project From State"
    a, b = (f"{title.format(verb)}\nThat {words(0, 60)} is in Seattle today" for verb in ("Wins", "Seeks"))
    assert [one.kinds for one in compare_texts(a, b).facts] == [(FactKind.TITLE,), (FactKind.WORD,)]
    a, b = (f"{title.format(town)}\nThat {words(0, 60)} is in {town} today" for town in ("Newark", "Akron"))
    assert [one.kinds for one in compare_texts(a, b).facts] == [(FactKind.TITLE,), (FactKind.NAME,), (FactKind.NAME,)]


@given(st.text(max_size=60), st.text(max_size=60))
def test_places_are_right_in_any_text(a: str, b: str) -> None:
    one, other = (f"{BEFORE} {text} {AFTER}" for text in (a, b))
    found = compare_texts(one, other, shingle=2)
    check_places(found.facts, one, other)
    assert all(fact.kinds for fact in found.facts)
    assert [fact.a for fact in found.facts] == sorted(fact.a for fact in found.facts)


# Real near-copies


def senate(*ids: str) -> list[str]:
    texts = {one["id"]: one["text"] for one in read_jsonl("senate_press/sample_12_senators.jsonl.xz")}
    return [texts[id] for id in ids]


def test_form_letters_of_a_senator() -> None:
    """Grants for fire departments: town, department and amount differ, the rest is the same letter."""
    letters = senate(
        "Bingaman/14Feb2007Bingaman416.txt", "Bingaman/28Feb2007Bingaman406.txt", "Bingaman/30Jan2008Bingaman65.txt"
    )
    facts = {
        ("$43,700", "Jemez Springs", "La Cueva"),
        ("$129,200", "Las Vegas", "Gallinas"),
        ("$46,360", "Sierra County", "Winston-Chloride"),
    }
    by_amount = {next(text for text in letters if one[0] in text): one for one in facts}
    assert len(by_amount) == 3
    for a, b in combinations(letters, 2):
        found = compare_texts(a, b, shingle=4)
        assert found.near_copies
        check_places(found.facts, a, b)
        for kind, one, other in zip(
            (FactKind.AMOUNT, FactKind.NAME, FactKind.NAME), by_amount[a], by_amount[b], strict=True
        ):
            assert any(kind in fact.kinds and one in fact.words_a and other in fact.words_b for fact in found.facts), (
                one,
                other,
                found.facts,
            )


@pytest.mark.parametrize(
    ("a", "b", "expected"),
    [
        # The same release by two senators, with other headings and endings
        ("Lincoln/22Dec2005Lincoln0.txt", "Pryor/22Dec2005Pryor399.txt", []),
        ("Levin/7Oct2005Levin444.txt", "Stabenow/7Oct2005Stabenow322.txt", []),
        # The title in other words
        ("Bingaman/25Apr2007Bingaman355.txt", "Domenici/25Apr2007Domenici490.txt", []),
        # Blanks are missing
        ("Lincoln/18Dec2007Lincoln16.txt", "Pryor/18Dec2007Pryor6.txt", []),
        # Rewritten
        ("Bingaman/11Oct2007Bingaman142.txt", "Bingaman/7Sep2007Bingaman205.txt", []),
        # Two grants
        (
            "Pryor/03Aug2007Pryor125.txt",
            "Pryor/03Aug2007Pryor126.txt",
            [
                ("Washington Volunteer", "LouannVolunteer"),
                ("Washington", "Louann"),
                ("9 500", "26 125"),
                ("Washington", "Louann"),
            ],
        ),
        ("Conrad/10Jul2005Conrad19.txt", "Conrad/20Jul2005Conrad10.txt", [("July 10 2005", "July 20 2005")]),
    ],
)
def test_press_releases(a: str, b: str, expected: list[tuple[str, str]]) -> None:
    one, other = senate(a, b)
    found = compare_texts(one, other)
    assert found.near_copies
    facts = [fact for fact in found.facts if not set(fact.kinds) <= {FactKind.WORD, FactKind.TITLE}]
    assert [(" ".join(fact.words_a.split()), " ".join(fact.words_b.split())) for fact in facts] == expected


def licence(name: str) -> str:
    place = importlib.util.find_spec("licensedcode")
    if place is None or not place.submodule_search_locations:
        pytest.skip("licensedcode-data is not installed")
    file = Path(next(iter(place.submodule_search_locations))) / "data" / "licenses" / f"{name}.LICENSE"
    return file.read_text("utf-8").split("---\n", 2)[2]


@pytest.mark.parametrize(
    ("a", "b", "versions"),
    [("cc-by-3.0", "cc-by-4.0", None), ("osl-1.1", "osl-2.0", ("1.1", "2.0")), ("afl-2.0", "afl-2.1", ("2.0", "2.1"))],
)
def test_versions_of_licences(a: str, b: str, versions: tuple[str, str] | None) -> None:
    found = compare_texts(licence(a), licence(b))
    check_places(found.facts, found.a.text, found.b.text)
    numbers = {(fact.words_a, fact.words_b) for fact in found.facts if FactKind.NUMBER in fact.kinds}
    assert found.near_copies is (versions is not None)
    assert versions is None or any(v in one and w in other for one, other in numbers for v, w in [versions])


def test_all_three_outputs_say_so(cli: Cli, tmp_path: Path) -> None:
    for name, town in (("a", "Newark"), ("b", "Akron")):
        (tmp_path / name).write_text(f"{BEFORE} the mayor of {town} is here {AFTER}", "utf-8")
    files = [str(tmp_path / name) for name in "ab"]
    shown = cli("compare", *files, "--html", str(tmp_path / "page.html"))
    assert "Same form, different facts: 1 place" in shown.out
    page = (tmp_path / "page.html").read_text("utf-8")
    assert "Same form, different facts" in page
    assert '<td>name</td><td class="words" dir="auto">Newark</td><td class="words" dir="auto">Akron</td>' in page
    (fact,) = cli("compare", *files, "--json").json["facts"]
    place = len(f"{BEFORE} the mayor of ")
    assert fact == {
        "kinds": ["name"],
        "a": [place, place + 6],
        "b": [place, place + 5],
        "words_a": "Newark",
        "words_b": "Akron",
    }
