"""Boilerplate of some texts."""

from __future__ import annotations

from hypothesis import assume, given
from hypothesis import strategies as st
from server_tools import words

from es_neardupe.similarity.boilerplate import boilerplate_of


def text(*subject: object, own: int = 12, shared: int = 60) -> str:
    return f"{' '.join(words(subject, own))} {' '.join(words('notice', shared))}"


def test_a_notice_below_different_texts() -> None:
    """The passage is given as it is written."""
    texts = [f"{text(row)}!" for row in range(5)]
    assert boilerplate_of([one.replace("!", ", End.") for one in texts]) == [f"{' '.join(words('notice', 60))}, End"]


def test_several_passages_are_given_longest_first() -> None:
    texts = [f"{' '.join(words('head', 6))} {text(row)}" for row in range(6)]
    assert boilerplate_of(texts) == [" ".join(words("notice", 60)), " ".join(words("head", 6))]


def test_versions_of_one_text_have_none() -> None:
    """They differ in a word here and there, or in a paragraph that most of them have."""
    body = words("body", 100)
    changed = [" ".join([*body[: 10 * row], f"new{row}", *body[10 * row + 1 :]]) for row in range(8)]
    assert boilerplate_of(changed) is None
    paragraphs = [" ".join([*body, *words("more", 20 + 3 * row)]) for row in range(8)]
    assert boilerplate_of(paragraphs) is None


def letter(number: int) -> str:
    """A form letter: address block, date, policy and salutation are more than five words in a row."""
    town, person = (words((one, number), 2) for one in ("town", "person"))
    street, city, first, last = (one.title() for one in (*town, *person))
    address = f"{first} {last}\n{street} Street {number + 7}\n{10203 + number} {city}\n\n{number % 28 + 1} March 2026"
    return f"{address}\n\nDear Ms {last},\n\n{' '.join(words('premium', 60))} EUR {311 + number}.{number + 20}."


def test_form_letters_have_none() -> None:
    """Between their common words are names and figures only. What is said there is about something."""
    letters = [letter(number) for number in range(10)]
    assert boilerplate_of(letters) is None
    assert boilerplate_of([f"{' '.join(words(row, 4))} {one}" for row, one in enumerate(letters)]) is None
    assert boilerplate_of([f"{' '.join(words(row, 5))} {one}" for row, one in enumerate(letters)]) is not None


def test_a_notice_in_capitals_or_without_case() -> None:
    """Where all is in capitals, names have no sign; where nothing is, all words are as plain."""
    notices = [text(row) for row in range(6)]
    assert boilerplate_of([one.upper() for one in notices]) == [" ".join(words("notice", 60)).upper()]
    arabic = str.maketrans("abcdefghijklmnopqrstuvwxyz", "".join(map(chr, range(0x0627, 0x0641))))
    assert boilerplate_of([one.translate(arabic) for one in notices]) is not None


def test_exact_copies_and_unrelated_texts_have_none() -> None:
    assert boilerplate_of([text(1)] * 6) is None
    assert boilerplate_of([" ".join(words(row, 50)) for row in range(6)]) is None


def test_a_short_notice_has_none() -> None:
    """It is not what makes the texts similar."""
    assert boilerplate_of([text(row, own=80, shared=20) for row in range(6)]) is None


@given(st.lists(st.text("ab .", max_size=30), min_size=5, max_size=8), st.integers(30, 60))
def test_any_texts(texts: list[str], shared: int) -> None:
    """Each passage is part of a text."""
    texts = [f"{text(row, shared=shared)} {one}" for row, one in enumerate(texts)]
    found = boilerplate_of(texts)
    assume(found)
    assert [passage for passage in found or () if not any(passage in one for one in texts)] == []
