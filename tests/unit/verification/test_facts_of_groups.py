"""Texts of a group that overlap: windows of one document."""

from __future__ import annotations

import pytest

from es_neardupe.similarity.facts.tokens import fact_tokens
from es_neardupe.verification.facts import _continues

WORDS = [f"w{number}" for number in range(1000)]


def windows(size: int, step: int) -> tuple[str, str]:
    return " ".join(WORDS[:size]), " ".join(WORDS[step : step + size])


@pytest.mark.parametrize(
    ("size", "step", "overlap"),
    [
        (200, 100, True),  # exactly half, as in docs/retrieval.md
        (201, 100, True),
        (200, 20, True),
        (10, 5, True),
        (200, 101, False),
        (200, 150, False),
        (200, 0, False),
        (5, 3, False),
    ],
)
def test_windows(size: int, step: int, overlap: bool) -> None:
    first, second = (fact_tokens(text).keys for text in windows(size, step))
    assert _continues(first, second) == overlap
    assert not _continues(second, first)


def test_words_at_the_cuts() -> None:
    first, second = windows(200, 100)
    assert _continues(fact_tokens(first[:-2]).keys, fact_tokens(second[2:]).keys), "parts of words"
    one_word_more = fact_tokens(f"more {first}").keys
    assert not _continues(one_word_more, fact_tokens(first).keys)
    assert not _continues(fact_tokens(first).keys, one_word_more)


def test_parts_that_change_places_do_not_overlap() -> None:
    """A notice in two languages, with either first."""
    english, german = " ".join(WORDS[:90]), " ".join(WORDS[100:200])
    for one, other in ((english, german), (german, english)):
        first, second = (fact_tokens(text).keys for text in (f"{one} {other}", f"{other} {one}"))
        assert not _continues(first, second)
    revised = " ".join([*WORDS[:40], "other", *WORDS[41:90]])
    assert not _continues(fact_tokens(f"{english} {german}").keys, fact_tokens(f"{german} {revised}").keys)
