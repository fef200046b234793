"""Verification by current texts: each text is read once, and changes in the meantime are noticed."""

from __future__ import annotations

import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit_tools import set_resemblance, shingle_set, words
from verifier_tools import all_pairs, texts_by_class, texts_of, verifier_of

from es_neardupe.candidates import pair_arrays, spill_to_disk
from es_neardupe.options import Matching, MeasureName
from es_neardupe.similarity.features import INDEXED, parse_all
from es_neardupe.similarity.measure import Measure
from es_neardupe.verification import current_texts
from es_neardupe.verification.criterion import MatchCriterion


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("limits", [(1_000_000, 500, 1_000_000), (50, 3, 30), (1, 1, 1)])
def test_against_sets(seed: int, limits: tuple[int, int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """The same similarities, however much fits into memory or a request, also within a cluster; every text is read
    once."""
    monkeypatch.setattr(pair_arrays, "BLOCK", limits[2])
    for name, value in zip(("_TOKENS", "_DOCUMENTS", "_BLOCK"), limits, strict=True):
        monkeypatch.setattr(current_texts, name, value)
    monkeypatch.setattr(spill_to_disk, "HELD", limits[2])
    dice = random.Random(seed)
    texts = texts_of(dice, 12)
    verifier, client = verifier_of(texts)
    left, right = all_pairs(len(verifier.classes))
    kept = np.array([dice.random() < 0.3 for _ in left], np.bool_)
    left, right = left[kept], right[kept]
    report: list[tuple[str, int, int | None]] = []
    found = verifier.similarities(left, right, lambda *stage: report.append(stage))
    shown = [shingle_set(text) for text in texts_by_class(verifier, texts)]
    assert found.tolist() == [set_resemblance(shown[a], shown[b]) for a, b in zip(left, right, strict=True)]
    in_pairs = set(left.tolist()) | set(right.tolist())
    assert len(client.asked) == len(set(client.asked)) == verifier.documents.seen.sum() == len(in_pairs)
    assert max(client.requests, default=0) <= limits[1]
    assert not verifier.documents.changed_or_deleted.any()
    assert report[-1] == ("verifying pairs", len(left), len(left))


def test_both_ends_of_the_range_match() -> None:
    criterion = MatchCriterion(Measure(), 0.5, 0.9, None, None)
    similarity = np.array([0.4999, 0.5, 0.7, 0.9, 0.9001, np.nan])
    assert criterion.matches(similarity).tolist() == [False, True, True, True, False, False]


MEASURES = [
    Measure(MeasureName.CONTAINMENT, Matching.INFORMATION),
    Measure(MeasureName.EDIT),
    Measure(MeasureName.BAG, ngram=2),
    Measure(MeasureName.BAG, whitespace=True),
    Measure(sources=parse_all(["flatten(words)"])),
    Measure(sources=parse_all(["text:sentences", "characters(3)"])),
]


@pytest.mark.parametrize("measure", MEASURES, ids=lambda one: one.label)
@pytest.mark.parametrize("limits", [(1_000_000, 1_000_000), (60, 100)])
def test_any_measure(measure: Measure, limits: tuple[int, int], monkeypatch: pytest.MonkeyPatch) -> None:
    """The similarity of both texts; copies are compared too if the measure distinguishes them."""
    monkeypatch.setattr(current_texts, "_TOKENS", limits[0])
    monkeypatch.setattr(current_texts, "_BLOCK", limits[1])
    monkeypatch.setattr(spill_to_disk, "HELD", limits[1])
    texts = {**texts_of(random.Random(3), 9), "e1": "One two. Three four!", "e2": "one two three four"}
    verifier, client = verifier_of(texts, {"d03": "something else"}, measure)
    distinct = len(texts) if not measure.copies_are_equal else len({text.lower() for text in texts.values()}) - 1
    assert len(verifier.classes) == distinct
    left, right = all_pairs(distinct)
    report: list[tuple[str, int, int | None]] = []
    found = verifier.similarities(left, right, lambda *stage: report.append(stage))
    shown = texts_by_class(verifier, texts)
    prepared = measure.prepare(shown, [{INDEXED: [text], "text": [text]} for text in shown])
    away = set(np.flatnonzero(verifier.first_rows(np.arange(distinct)) < 0).tolist())
    assert len(away) <= 1
    for a, b, value in zip(left.tolist(), right.tolist(), found.tolist(), strict=True):
        assert np.isnan(value) if {a, b} & away else value == measure.score(prepared[a], prepared[b])
    verified = [done for stage, done, _ in report if stage == "verifying pairs"]
    assert verified == sorted(verified)
    assert report[-1][1:] == (len(left), len(left))
    assert len(client.asked) == len(set(client.asked))


def test_changed_and_deleted_copies_are_replaced() -> None:
    base, other = words(0, 20), words(2, 20)
    texts = {"a1": base, "a2": base, "a3": base, "a4": base, "b1": other}
    verifier, client = verifier_of(texts, {"a1": "something else now", "a2": None})
    found = verifier.similarities(*all_pairs(2))
    assert found.tolist() == [set_resemblance(shingle_set(base), shingle_set(other))]
    rows = {verifier.corpus.references[row][1]: row for row in range(5)}
    documents = verifier.documents
    assert np.flatnonzero(documents.changed).tolist() == [rows["a1"]]
    assert np.flatnonzero(documents.deleted).tolist() == [rows["a2"]]
    assert sorted(id for _, id in client.asked) == ["a1", "a2", "a3", "b1"]
    number = next(k for k, members in enumerate(verifier.classes) if rows["a1"] in members)
    assert verifier.first_rows(np.array([number])).tolist() == [rows["a3"]]
    again = verifier.similarities(*all_pairs(2))  # documents known to be deleted are not requested again
    assert again.tolist() == found.tolist()
    assert sorted(id for _, id in client.asked[4:]) == ["a3", "b1"]


def test_a_class_without_documents_takes_part_in_nothing() -> None:
    texts = {"a1": words(0, 20), "a2": words(0, 20), "b1": words(1, 20), "c1": words(2, 20)}
    verifier, _ = verifier_of(texts, {"a1": None, "a2": "else"})
    first = texts_by_class(verifier, texts).index(texts["a1"])
    left, right = all_pairs(3)
    found = verifier.similarities(left, right)
    for a, b, value in zip(left.tolist(), right.tolist(), found.tolist(), strict=True):
        assert np.isnan(value) == (first in (a, b))
    assert verifier.first_rows(np.array([first])).tolist() == [-1]
    assert (found >= 0.01).sum() == 1


@pytest.mark.parametrize("now", [None, {"object": "now"}, "", ["a", {"b": 1}]])
def test_texts_that_are_none_any_more(now: Any) -> None:
    texts = {"a": words(0, 20), "b": words(1, 20)}
    verifier, client = verifier_of(texts)
    client.sources["i", "a"]["text"] = now
    assert np.isnan(verifier.similarities(*all_pairs(2))).all()
    assert {verifier.corpus.references[int(row)][1] for row in np.flatnonzero(verifier.documents.changed)} == {"a"}


def test_another_way_to_write_the_same_tokens_is_no_change() -> None:
    texts = {"a": words(0, 20), "b": words(1, 20)}
    verifier, client = verifier_of(texts)
    client.sources["i", "a"]["text"] = [word.upper() + "!" for word in texts["a"].split()]
    assert verifier.similarities(*all_pairs(2)).tolist() == [
        set_resemblance(shingle_set(texts["a"]), shingle_set(texts["b"]))
    ]
    assert not verifier.documents.changed_or_deleted.any()


def test_no_pairs_ask_for_nothing() -> None:
    verifier, client = verifier_of({"a": "one", "b": "two"})
    none = np.zeros(0, np.intp)
    assert verifier.similarities(none, none).tolist() == []
    assert client.requests == []


@given(st.integers(0, 10_000))
def test_random_changes(seed: int) -> None:
    """A pair has a similarity exactly if some document still has each of its texts; it is that of these texts."""
    dice = random.Random(seed)
    texts = texts_of(dice, 8)
    present = {id: dice.choice([None, "now something else", texts[id]]) for id in texts if dice.random() < 0.4}
    verifier, client = verifier_of(texts, present)
    left, right = all_pairs(len(verifier.classes))
    found = verifier.similarities(left, right)
    shown = texts_by_class(verifier, texts)
    standing = {text for id, text in texts.items() if present.get(id, text) == text}
    for a, b, value in zip(left.tolist(), right.tolist(), found.tolist(), strict=True):
        if shown[a] in standing and shown[b] in standing:
            assert value == set_resemblance(shingle_set(shown[a]), shingle_set(shown[b]))
        else:
            assert np.isnan(value)
    assert len(client.asked) == len(set(client.asked))
