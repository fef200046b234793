"""Collation: each text is rebuilt from the reference and its row, places are disjoint, form letters become a table."""

from __future__ import annotations

from random import Random

import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit_tools import in_seconds

from es_neardupe.errors import SettingsError
from es_neardupe.keys.text import tokenize
from es_neardupe.options import FactKind
from es_neardupe.similarity import collation
from es_neardupe.similarity.collation import CellKind, Collation, collate

LETTER = (
    "Dear citizens of {town}, we are glad to announce that the federal government has granted {amount} for the repair "
    "of the bridge over the river in your town, and that the work will begin in the spring of the coming year.{more}"
)


def letter(town: str, amount: str, more: str = "") -> str:
    return LETTER.format(town=town, amount=amount, more=more)


def rebuilt(found: Collation, row: int) -> list[str]:
    """The tokens of a text: those of the reference between the places, and those of its cells."""
    reference, text = tokenize(found.reference.text), tokenize(found._sides[row].text)
    tokens, at = [], 0
    for place in found.places:
        first, end = found.cell(row, place.number).words
        tokens += reference[at : place.words[0]] + text[first:end]
        at = place.words[1]
    return tokens + reference[at:]


def check(texts: list[str], found: Collation) -> None:
    """What holds for all collations."""
    numbers = sorted([number for row in found.rows for number in row] + list(found.left_out))
    assert numbers == list(range(len(texts)))
    assert found.rows[0][0] == 0
    at = (-1, -1)
    for number, place in enumerate(found.places, 1):
        assert place.number == number
        assert at[1] <= place.words[0] <= place.words[1]
        assert at < place.words
        at = place.words
        cells = [found.cell(row, number) for row in range(len(found.rows))]
        assert cells[0].kind is CellKind.SAME
        assert cells[0].words == place.words
        assert cells[0].text == place.text == found.reference.text[slice(*place.characters)]
        assert 1 < place.values <= len(cells)
        for row, cell in enumerate(cells):
            own = tokenize(found._sides[row].text)[slice(*cell.words)]
            of_reference = tokenize(found.reference.text)[slice(*place.words)]
            assert (own == of_reference) == (cell.kind is CellKind.SAME)
            assert (cell.kind is CellKind.NOTHING) == bool(of_reference and not own)
            assert (cell.kind is CellKind.ADDED) == bool(own and not of_reference)
    for row, members in enumerate(found.rows):
        for number in members:
            assert rebuilt(found, row) == tokenize(texts[number])


def words(name: object, count: int) -> list[str]:
    return [f"{name}-{number}".replace("-", "x") for number in range(count)]


WORDS = st.sampled_from(["a", "b", "c", "d,", "12", "$3", "4.5", "don't", "Ä", "½", "中文", "-"])
PASSAGE = st.lists(WORDS, max_size=30).map(" ".join)


@st.composite
def revisions(draw: st.DrawFn) -> list[str]:
    """A text and revisions of it: passages are replaced, removed, added and moved."""
    parts = draw(st.lists(PASSAGE, min_size=1, max_size=8))
    texts = [" ".join(parts)]
    for _ in range(draw(st.integers(0, 5))):
        own = list(parts)
        for _ in range(draw(st.integers(0, 4))):
            at = draw(st.integers(0, len(own)))
            match draw(st.sampled_from(["replace", "remove", "add", "move"])):
                case "replace":
                    own[at : at + 1] = [draw(PASSAGE)]
                case "remove":
                    del own[at : at + 1]
                case "add":
                    own.insert(at, draw(PASSAGE))
                case "move" if at < len(own):
                    own.insert(draw(st.integers(0, len(own) - 1)), own.pop(at))
        texts.append(" ".join(own))
    return texts


@given(revisions(), st.integers(1, 5))
def test_each_text_is_rebuilt_from_the_reference_and_its_row(texts: list[str], passage: int) -> None:
    check(texts, collate(texts, passage=passage))


@given(st.lists(st.lists(st.integers(0, 400), max_size=120), min_size=1, max_size=5), st.integers(0, 2**32))
def test_texts_of_long_passages_are_rebuilt(cuts: list[list[int]], seed: int) -> None:
    random, reference = Random(seed), words("reference", 400)
    texts = [" ".join(reference)]
    for places in cuts:
        own = list(reference)
        for place in places:
            end = place + random.choice((1, 2, 10, 30, 100))
            own[place:end] = words(random.randrange(99), random.choice((0, 0, 1, 3, 40)))
        texts.append(" ".join(own))
    check(texts, collate(texts))


def test_form_letters_are_one_letter_and_a_table() -> None:
    towns = ["Akron", "New Haven", "Boston", "Mount Gilead", "Salem"]
    texts = [letter(towns[n % 5], f"${n + 1},{n:03}", " Sincerely yours." * (n % 7 == 6)) for n in range(200)]
    found = collate(texts)
    check(texts, found)
    assert [one.text for one in found.places] == ["Akron", "$1,000", ""]
    assert found.kinds(found.places) == [(FactKind.NAME,), (FactKind.AMOUNT,), ()]
    assert [one.values for one in found.places] == [5, 200, 2]
    assert [found.cell(row, 1).text for row in range(5)] == towns
    assert [found.cell(row, 2).text for row in (1, 199)] == ["$2,001", "$200,199"]
    assert [found.cell(row, 3).text for row in (5, 6)] == ["", "Sincerely yours"]
    assert [found.cell(row, 3).kind for row in (5, 6)] == [CellKind.SAME, CellKind.ADDED]
    assert not any(found.cell(row, 2).unusual for row in range(200))


def test_unusual_values_are_marked() -> None:
    texts = [letter("Akron" if n % 2 else "Boston", "$5,000" if n != 17 else "$50,000") for n in range(40)]
    found = collate([*texts, letter("Salem", "$5,000")])
    unusual = [
        (found.cell(row, place.number).text, len(members))
        for row, members in enumerate(found.rows)
        for place in found.places
        if found.cell(row, place.number).unusual
    ]
    assert sorted(unusual) == [("$50,000", 1), ("Salem", 1)]


def test_exact_copies_have_one_row() -> None:
    found = collate([letter("Akron", "$5"), letter("Boston", "$5"), letter("AKRON", "$5"), letter("Boston", "5")])
    assert found.rows == ((0, 2), (1, 3))
    assert collate(["one two three"] * 3).places == ()


def test_a_missing_paragraph_does_not_hide_the_facts_in_it() -> None:
    paragraph = " ".join(words("paragraph", 60))
    texts = [f"{paragraph} {letter(town, '$5,000')} {paragraph}" for town in ("Akron", "Boston", "Salem")]
    texts.append(f"{paragraph} {paragraph}")
    found = collate(texts)
    check(texts, found)
    (place,) = [one for one in found.places if one.text == "Akron"]
    cells = [found.cell(row, place.number) for row in range(4)]
    assert [one.text for one in cells] == ["Akron", "Boston", "Salem", ""]
    assert cells[3].kind is CellKind.NOTHING
    assert len(found.places) == 3


def test_a_moved_passage_is_nothing_and_added() -> None:
    one, other, third = (" ".join(words(name, 40)) for name in ("one", "other", "third"))
    found = collate([f"{one} {other} {third}", f"{other} {third} {one}"])
    assert [found.cell(1, place.number).kind for place in found.places] == [CellKind.NOTHING, CellKind.ADDED]
    assert found.cell(1, 2).text == one


@st.composite
def edited_repetitions(draw: st.DrawFn) -> tuple[list[str], list[str], int, int, int]:
    """The words of a text that repeats a block, and of the same with one word inserted, removed or replaced; where, and
    the number of words there."""
    text = words("block", draw(st.integers(2, 60))) * draw(st.integers(2, 8))
    at, removed, added = draw(st.integers(0, len(text) - 1)), *draw(st.sampled_from([(0, 1), (1, 0), (1, 1)]))
    return text, [*text[:at], *["other"] * added, *text[at + removed :]], at, removed, added


@given(edited_repetitions())
def test_one_word_in_repeated_blocks_is_one_place(drawn: tuple[list[str], list[str], int, int, int]) -> None:
    text, edited, at, removed, added = drawn
    for texts, sizes in (((text, edited), (removed, added)), ((edited, text), (added, removed))):
        joined = [" ".join(one) for one in texts]
        found = collate(joined)
        check(joined, found)
        assert [one.words for one in found.places] == [(at, at + sizes[0])]
        assert found.cell(1, 1).words == (at, at + sizes[1])


def test_several_words_in_repeated_blocks_are_places() -> None:
    text = words("block", 200) * 9
    for changed in ([272, 571, 1130], [221, 332, 776, 1196, 1776], [342, 470, 622, 965, 1361, 1537]):
        edited = [one for number, word in enumerate(text) for one in [word] + ["inserted"] * (number in changed)]
        texts = [" ".join(text), " ".join(edited)]
        found = collate(texts)
        check(texts, found)
        assert [(one.words, found.cell(1, one.number).text) for one in found.places] == [
            ((at + 1, at + 1), "inserted") for at in changed
        ]


def test_moved_blocks_of_repetitions_stay_moved() -> None:
    block, other = " ".join(words("block", 60)), " ".join(words("other", 40))
    found = collate([f"{other} {block} {block} {block}", f"{block} {block} {block} {other}"])
    assert [found.cell(1, place.number).kind for place in found.places] == [CellKind.NOTHING, CellKind.ADDED]
    assert found.cell(1, 2).text == other


def test_what_exceeds_the_limits_is_named(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(SettingsError, match="1 to 201 texts, not 202"):
        collate([""] * 202)
    with pytest.raises(SettingsError, match="not 0"):
        collate([])
    texts = [letter(town, "$5") for town in ("Akron", "Boston", "Akron", "Salem")]
    monkeypatch.setattr(collation, "MAX_WORDS", 90)
    found = collate(texts)
    assert found.left_out == (3,)
    check(texts, found)
    monkeypatch.setattr(collation, "MAX_WORDS", 1)
    assert collate(texts).rows == ((0, 2),)


@pytest.mark.parametrize(("size", "texts"), [(1_000, 200), (100_000, 4)])
def test_many_and_long_texts_take_bounded_time(size: int, texts: int) -> None:
    random, reference = Random(1), words("long", size)
    others = []
    for _ in range(texts):
        own = list(reference)
        for place in range(0, size, 100):
            own[place] = f"Town{random.randrange(50)}"
        others.append(" ".join(own))
    with in_seconds(5):
        found = collate([" ".join(reference), *others])
    assert len(found.places) == size // 100
