"""Words around a place of a text: whole ones, in one line."""

from __future__ import annotations

import pytest

from es_neardupe.display_text import both_ends, words_after, words_before

TEXT = "The harbour bridge\nis closed until May."


@pytest.mark.parametrize(
    ("characters", "before", "after"),
    [
        (6, "bridge", "is"),
        (7, "bridge", "is"),
        (14, "harbour bridge", "is closed"),
        (16, "harbour bridge", "is closed until"),
        (99, "The harbour bridge", "is closed until May."),
    ],
)
def test_whole_words(characters: int, before: str, after: str) -> None:
    place = TEXT.index("\n")
    assert words_before(TEXT, place, characters) == before
    assert words_after(TEXT, place, characters) == after


def test_both_ends_of_a_long_name() -> None:
    assert both_ends("a" * 100) == "a" * 100
    assert both_ends("a" * 60 + "b" * 413 + "c" * 40) == "a" * 60 + "…" + "c" * 40


def test_a_word_that_is_longer_is_cut() -> None:
    assert words_before("x" * 9, 9, 4) == words_after("x" * 9, 0, 4) == "xxxx"
