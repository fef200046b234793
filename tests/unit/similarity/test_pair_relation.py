"""Relation of two texts: examples of each kind, and properties of all."""

from __future__ import annotations

import random

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from unit_tools import set_resemblance, shingle_set

from es_neardupe.keys.shingles import token_hashes
from es_neardupe.keys.text import tokenize
from es_neardupe.similarity import pair_relation
from es_neardupe.similarity.alignment import literal
from es_neardupe.similarity.formulas import containment, edit, jaccard
from es_neardupe.similarity.pair_relation import (
    CONTAINED,
    MUCH_SHORTER,
    REVISION,
    PairDescription,
    Relation,
    compared_texts,
    describe_pair,
)

NOTICE = (
    "The town hall will be closed on 3 May because of the repair of its roof. Letters and parcels can be left at the "
    "library, which is open until 6 pm. The mayor asks all citizens for their patience and thanks them for their help."
)


def words(start: int, count: int) -> str:
    """Distinct words that are not numbers."""
    return " ".join(f"w{''.join(chr(97 + int(digit)) for digit in str(k))}" for k in range(start, start + count))


def described(a: str, b: str) -> PairDescription:
    one, other = compared_texts([a, b], 5)
    return describe_pair(one, other, 5)


@pytest.mark.parametrize(
    ("other", "relation"),
    [
        (NOTICE, Relation.EXACT),
        (NOTICE.upper().replace(",", " --"), Relation.EXACT),
        (NOTICE.replace("3 May", "4 May"), Relation.REVISION),
        (NOTICE.replace("will be", "will not be"), Relation.REVISION),
        (NOTICE.replace("all citizens", "all people"), Relation.NEAR),
        (NOTICE.replace("for their help", "in the name of Rome and its 12 parts"), Relation.NEAR),
        (f"{NOTICE} 30", Relation.NEAR),
        (NOTICE.replace("6 pm", "7 pm"), Relation.REVISION),
        (f"{NOTICE} {words(0, 60)}", Relation.CONTAINED),
        (f"{words(0, 60)} {NOTICE} {words(60, 60)}", Relation.CONTAINED),
        (f"{NOTICE.replace('3 May', '4 May')} {words(0, 60)}", Relation.CONTAINED),
        (NOTICE.partition("library")[0], Relation.CONTAINED),
        (f"{NOTICE} {words(0, 3)}", Relation.NEAR),
        (words(0, 40), Relation.NEAR),
        ("", Relation.NEAR),
    ],
)
def test_examples(other: str, relation: Relation) -> None:
    assert described(NOTICE, other).relation is relation
    assert described(other, NOTICE).relation is relation


def test_texts_without_words_are_equal() -> None:
    assert described("", "?!").relation is Relation.EXACT


@pytest.mark.parametrize(("shorter", "relation"), [(79, Relation.CONTAINED), (80, Relation.NEAR)])
def test_a_contained_text_is_much_shorter(shorter: int, relation: Relation) -> None:
    assert described(words(0, shorter), words(0, 100)).relation is relation


@pytest.mark.parametrize(("foreign", "relation"), [(10, Relation.CONTAINED), (11, Relation.NEAR)])
def test_nearly_all_of_a_contained_text_is_in_the_other(foreign: int, relation: Relation) -> None:
    one = f"{words(0, 100 - foreign)} {words(500, foreign)}"
    assert described(one, words(0, 300)).relation is relation


@pytest.mark.parametrize(("changed", "relation"), [(20, Relation.REVISION), (21, Relation.NEAR)])
def test_a_revision_keeps_most_words(changed: int, relation: Relation) -> None:
    one = [f"{k}th" for k in range(100)]
    other = [f"{k + 500}th" if k % 4 == 0 and k < 4 * changed else word for k, word in enumerate(one)]
    assert described(" ".join(one), " ".join(other)).relation is relation


def test_texts_too_long_for_edit(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without the edit similarity, no pair is a revision."""
    monkeypatch.setattr(pair_relation, "MAX_CELLS", 100)
    found = described(NOTICE, NOTICE.replace("3 May", "4 May"))
    assert (found.edit, found.relation) == (None, Relation.NEAR)
    assert described("one 2 three", "one 3 three").edit is not None


vocabulary = st.sampled_from(["the", "Mayor", "said", "not", "3", "4", "May", "$5,000", "hall", "was", "open", "東京"])
texts = st.lists(vocabulary, max_size=60).map(" ".join)


@given(texts, texts)
@example(NOTICE, NOTICE.replace("3 May", "4 May"))
def test_total_and_symmetric(a: str, b: str) -> None:
    found = described(a, b)
    assert found == described(b, a)
    assert (found.relation is Relation.EXACT) == (tokenize(a) == tokenize(b))


@given(texts, st.integers(0, 60), st.lists(st.tuples(st.integers(0, 59), vocabulary), max_size=6))
def test_by_the_rule(text: str, size: int, edits: list[tuple[int, str]]) -> None:
    """Versions of one text: the measures equal those of `formulas`, and each relation has its properties."""
    changed = text.split()[:size]
    for place, word in edits:
        changed[place : place + 1] = [word]
    other = " ".join(changed)
    found = described(text, other)
    one, two = token_hashes([text, other])
    aligned = literal(one, two, 5)
    assert found.resemblance == set_resemblance(shingle_set(text), shingle_set(other))
    assert (found.jaccard, found.containment) == (jaccard(aligned), containment(aligned))
    assert found.edit == edit(one, two)
    assert found.containment is not None
    inside = found.containment >= CONTAINED and aligned.shorter < MUCH_SHORTER * aligned.longer
    if inside:
        assert found.edit < REVISION
    if found.relation is Relation.REVISION:
        assert found.edit >= REVISION
    if found.relation is not Relation.EXACT:
        assert (found.relation is Relation.CONTAINED) == inside


@pytest.mark.parametrize(
    ("text", "repeats"),
    [
        (words(0, 30_000), False),
        (" ".join([words(0, 5_000)] * 6), False),
        (" ".join([words(0, 300)] * 100), True),
        (" ".join(f"page {number} {words(0, 50)} {words(50 + 150 * number, 150)}" for number in range(100)), False),
        (words(0, 25_000) + " same" * 5_000, True),
        (" ".join(random.Random(1).choices("abcd", k=20_000)), True),
    ],
    ids=["no repetition", "few", "a passage", "headers of pages", "a word", "few words"],
)
def test_long_texts_that_repeat_much_have_no_common_passages(text: str, repeats: bool) -> None:
    """They would take minutes for a million words. The others have all their measures."""
    found = described(f"{text} first one", f"{text} second one")
    assert (found.edit, found.relation) == (None, Relation.NEAR)
    assert (found.jaccard is None, found.containment is None) == (repeats, repeats)
    assert found.resemblance > 0.5
    assert described(text, text).relation is Relation.EXACT
    short = described(NOTICE, NOTICE + " same" * 20_000)
    assert short.jaccard is not None
