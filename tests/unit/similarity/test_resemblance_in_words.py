"""The numbers of docs/resemblance.md: what a resemblance means in changed words, and that of its two examples."""

from __future__ import annotations

import re
from collections.abc import Callable

import pytest
from docs_pages import DOCS, table

from es_neardupe import features

PAGE = (DOCS / "resemblance.md").read_text("utf-8")
NUMBERS, *EXAMPLES = (table(part) for part in PAGE.split("\n## ")[0:1] + PAGE.split("\n\nTwo ")[1:])


def resemblance(one: str, other: str) -> float:
    """That of the program, with its default shingles."""
    a, b = (set(found.tolist()) for found in features([one, other], 5))
    return len(a & b) / len(a | b)


def of_words(text: list[str], changed: list[str]) -> float:
    return resemblance(" ".join(text), " ".join(changed))


def spread(text: list[str], number: int) -> float:
    """With this number of single words changed, evenly spread."""
    places = {int((place + 0.5) * len(text) / number) for place in range(number)}
    return of_words(text, [f"other{place}" if place in places else word for place, word in enumerate(text)])


def in_a_row(text: list[str], number: int) -> float:
    """With this number of words changed in the middle."""
    start = (len(text) - number) // 2
    return of_words(text, [*text[:start], *(f"other{n}" for n in range(number)), *text[start + number :]])


def added(text: list[str], number: int) -> float:
    """With this number of words more at the end."""
    return of_words(text, [*text, *(f"other{n}" for n in range(number))])


WAYS: dict[str, Callable[[list[str], int], float]] = {
    "single words, evenly spread": spread,
    "words in a row": in_a_row,
    "words added at the end": added,
}


def test_each_number_is_in_the_table() -> None:
    assert [(float(row[0]), row[1]) for row in NUMBERS] == [(t, way) for t in (0.8, 0.7, 0.5) for way in WAYS]


@pytest.mark.parametrize("row", NUMBERS, ids=lambda row: f"{row[0]} {row[1]}")
def test_changed_words(row: list[str]) -> None:
    """So many words may change, and one more is too much."""
    threshold, way, *numbers = row
    for length, number in zip((50, 200, 1000), map(int, numbers), strict=True):
        text = [f"word{n}" for n in range(length)]
        assert WAYS[way](text, number + 1) < float(threshold) <= WAYS[way](text, number)


def test_the_numbers_in_the_sentence() -> None:
    (sentence,) = re.findall(r"^For example, .*", PAGE, re.MULTILINE)
    assert re.findall(r"up to (\d+)", sentence) == [row[3] for row in NUMBERS[:3]]


@pytest.mark.parametrize(("example", "expected"), [(0, "0.80"), (1, "0.50")])
def test_examples(example: int, expected: str) -> None:
    """Their resemblance, and that the bold words are all that differ."""
    ((one, other),) = EXAMPLES[example]
    assert f"{resemblance(one, other):.2f}" == expected
    assert f"a resemblance of **{expected}**" in PAGE
    assert [re.sub(r"\W", "", re.sub(r"\*\*.*?\*\*", "", text)).lower() for text in (one, other)] in (
        [re.sub(r"\W", "", re.sub(r"\*\*.*?\*\*", "", one)).lower()] * 2,
    )
