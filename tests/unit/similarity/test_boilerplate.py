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
