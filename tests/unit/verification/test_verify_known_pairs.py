"""Verification with a memory: known pairs are neither read nor compared, and used only if their texts still exist."""

from __future__ import annotations

import random
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit_tools import set_resemblance, shingle_set, words
from verifier_tools import all_pairs, texts_by_class, texts_of, verifier_of

from es_neardupe.options import MeasureName
from es_neardupe.similarity.features import parse_all
from es_neardupe.similarity.measure import Measure
from es_neardupe.verification.verify import PairMemory


def filled(texts: dict[str, str], measure: Measure | None = None) -> PairMemory:
    """The memory after a first run over all pairs."""
    verifier, _ = verifier_of(texts, measure=measure)
    verifier.memory = PairMemory()
    verifier.similarities(*all_pairs(len(verifier.classes)))
    return verifier.memory


@pytest.mark.parametrize("measure", [Measure(), Measure(MeasureName.EDIT)], ids=lambda one: one.label)
def test_a_second_run_reads_and_compares_nothing(measure: Measure) -> None:
    texts = texts_of(random.Random(1), 12)
    first, _ = verifier_of(texts, measure=measure)
    first.memory = PairMemory()
    left, right = all_pairs(len(first.classes))
    expected = first.similarities(left, right)
    assert first.compared == len(left)
    assert len(first.memory) == len(left)
    again, client = verifier_of(texts, measure=measure)
    again.memory = first.memory
    found: list[tuple[str, int, int | None]] = []
    assert again.similarities(left, right, lambda *stage: found.append(stage)).tolist() == expected.tolist()
    assert (again.compared, client.asked) == (0, [])
    assert found[-1] == ("verifying pairs", len(left), len(left))


def test_only_what_is_new_is_compared() -> None:
    old = {f"a{k}": words(k, 20) for k in range(4)}
    verifier, client = verifier_of({**old, "n": words(2, 30)})
    verifier.memory = filled(old)
    left, right = all_pairs(5)
    found = verifier.similarities(left, right)
    shown = [shingle_set(text) for text in texts_by_class(verifier, {**old, "n": words(2, 30)})]
    assert found.tolist() == [set_resemblance(shown[a], shown[b]) for a, b in zip(left, right, strict=True)]
    assert verifier.compared == 4
    assert len(verifier.memory) == 10
    assert len(client.asked) == 5  # each of the pairs with the new text needs both


def test_measures_that_see_more_than_tokens_remember_nothing() -> None:
    measure = Measure(sources=parse_all(["text:sentences"]))
    texts = {f"a{k}": words(k, 20) for k in range(3)}
    verifier, client = verifier_of(texts, measure=measure)
    verifier.memory = filled(texts)
    found = verifier.similarities(*all_pairs(3))
    assert (verifier.compared, len(client.asked)) == (3, 3)
    assert found.tolist() == [0.0, 0.0, 0.0]
    assert len(verifier.memory) == 3  # of the other measure, untouched
    assert 0.0 not in verifier.memory.lookup(*(verifier.corpus.content[[side]] for side in (0, 1))).tolist()


def test_matches_are_confirmed_by_their_present_texts() -> None:
    texts = {"a": words(0, 20), "b": words(1, 20), "c": words(2, 20), "x": words(100, 20), "y": words(100, 20)}
    verifier, client = verifier_of(texts, {"b": "something else now", "y": None})
    verifier.memory = filled(texts)
    left, right = all_pairs(len(verifier.classes))
    found = verifier.similarities(left, right)
    assert client.asked == []
    matches = found >= 0.7
    ids = [verifier.corpus.references[int(rows[0])][1] for rows in verifier.classes]
    pairs = [tuple(sorted((ids[a], ids[b]))) for a, b in zip(left, right, strict=True)]
    assert {pair for pair, match in zip(pairs, matches, strict=True) if match} == {("a", "b"), ("b", "c"), ("a", "c")}
    confirmed = verifier.confirmed(left, right, matches)
    assert {pair for pair, match in zip(pairs, confirmed, strict=True) if match} == {("a", "c")}
    assert sorted(id for _, id in client.asked) == ["a", "b", "c", "x", "y"]
    rows = {reference[1]: row for row, reference in enumerate(verifier.corpus.references)}
    documents = verifier.documents
    assert np.flatnonzero(documents.changed).tolist() == [rows["b"]]
    assert np.flatnonzero(documents.deleted).tolist() == [rows["y"]]
    again = verifier.similarities(left, right)  # deleted documents are in no pair
    assert [np.isnan(value) for value in again] == ["b" in pair for pair in pairs]


def test_answers_are_told_once() -> None:
    """Any pairs, in any order and repeatedly; no similarity of deleted texts."""
    texts = {"a": words(0, 20), "b": words(1, 20), "c": words(2, 20), "d": words(3, 20)}
    verifier, _ = verifier_of(texts, {"d": None})
    assert [len(column) for column in verifier.answered()] == [0, 0, 0]
    left, right = all_pairs(4)
    verifier.similarities(left[:2], right[:2])
    verifier.similarities(right, left)
    one, other, similarity = verifier.answered()
    shown = texts_by_class(verifier, texts)
    expected = [(a, b) for a, b in combinations(range(4), 2) if texts["d"] not in (shown[a], shown[b])]
    assert list(zip(one.tolist(), other.tolist(), strict=True)) == expected
    assert similarity.tolist() == [set_resemblance(shingle_set(shown[a]), shingle_set(shown[b])) for a, b in expected]


def test_documents_that_match_nothing_need_not_be_read() -> None:
    texts = {"a": words(0, 20), "b": words(1, 20), "x": words(100, 20)}
    verifier, client = verifier_of(texts)
    verifier.memory = filled(texts)
    left, right = all_pairs(3)
    verifier.confirmed(left, right, verifier.similarities(left, right) >= 0.5)
    assert sorted(id for _, id in client.asked) == ["a", "b"]


@given(st.integers(0, 10_000))
def test_with_or_without_memory(seed: int) -> None:
    """Whatever is known before, and whatever changed since: the confirmed matches are those of a run that knows
    nothing."""
    dice = random.Random(seed)
    texts = texts_of(dice, 8)
    known = filled({id: text for id, text in texts.items() if dice.random() < 0.7})
    present = {id: dice.choice([None, "now something else"]) for id in texts if dice.random() < 0.3}
    results = []
    for memory in (None, known):
        verifier, _ = verifier_of(texts, present)
        verifier.memory = memory
        left, right = all_pairs(len(verifier.classes))
        matches = verifier.similarities(left, right) >= 0.4
        results.append((verifier.confirmed(left, right, matches).tolist(), verifier))
    (fresh, one), (with_memory, other) = results
    assert fresh == with_memory
    assert other.compared <= len(left)
    assert not (other.documents.changed_or_deleted & ~one.documents.changed_or_deleted).any()
