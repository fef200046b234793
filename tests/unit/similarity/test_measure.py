"""Measures: scores of prepared texts are equal to the formulas for two texts."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit_tools import set_resemblance, shingle_set, words

from es_neardupe.errors import SettingsError
from es_neardupe.keys.shingles import features, token_hashes
from es_neardupe.keys.unit import Unit
from es_neardupe.options import Matching, MeasureName
from es_neardupe.similarity import formulas
from es_neardupe.similarity.alignment import align
from es_neardupe.similarity.features import parse, parse_all
from es_neardupe.similarity.formulas import Weights
from es_neardupe.similarity.measure import MEANINGS, Measure, named_measure

NONE = Weights(0, np.empty(0, np.uint64), np.empty(0, np.int64))
EVERY = [
    Measure(name, matching, weights=NONE if name is MeasureName.WEIGHTED else None)
    for name, matching in product(MeasureName, Matching)
]
TEXT = st.lists(st.sampled_from("abcd"), max_size=14).map(" ".join)


SYMBOLS = {"S_R": MeasureName.RESEMBLANCE, "S_J": MeasureName.JACCARD, "S_L": MeasureName.CONTAINMENT_LONGER}


def test_names_and_symbols() -> None:
    """A symbol means the measure of its formula, in exactly this spelling."""
    assert {one.symbol: one for one in MeasureName if one.symbol} == SYMBOLS
    for one in MeasureName:
        assert named_measure(one.value) is named_measure(one) is one
    for symbol, one in SYMBOLS.items():
        assert named_measure(symbol) is one
    for wrong in ("s_l", "SL", "S_L ", "S_C", ""):
        with pytest.raises(SettingsError, match=r"Known: resemblance, .*, estimate, S_R, S_J, S_L\."):
            named_measure(wrong)
    with pytest.raises(SettingsError, match=r"Known: jaccard, edit, S_J\."):
        named_measure("S_R", (MeasureName.JACCARD, MeasureName.EDIT))


@given(st.sampled_from(EVERY), st.lists(TEXT, max_size=5))
def test_scores_of_many_pairs(measure: Measure, texts: list[str]) -> None:
    prepared = measure.prepare(texts)
    pairs = list(combinations(range(len(texts)), 2))
    left, right = (np.array([pair[side] for pair in pairs], np.intp) for side in (0, 1))
    found = measure.scores(prepared, left, right)
    assert found.dtype == np.float64
    assert found.tolist() == [measure.score(prepared[a], prepared[b]) for a, b in pairs]
    assert found.tolist() == measure.scores(prepared, right, left).tolist()
    assert all(0 <= one <= 1 for one in found)
    assert all(measure.score(one, one) == 1 for one in prepared)


@given(TEXT, TEXT, st.sampled_from(list(Matching)), st.integers(1, 6))
def test_they_are_the_measures(a: str, b: str, matching: Matching, w: int) -> None:
    def of(name: MeasureName, **more: Any) -> float:
        measure = Measure(name, shingle=w, **more)
        one, other = measure.prepare([a, b])
        return measure.score(one, other)

    tokens, sets = token_hashes([a, b]), features([a, b], w)
    aligned = align(tokens[0], tokens[1], matching, w)
    assert of(MeasureName.RESEMBLANCE) == set_resemblance(shingle_set(a, w), shingle_set(b, w))
    assert of(MeasureName.JACCARD, matching=matching) == formulas.jaccard(aligned)
    assert of(MeasureName.CONTAINMENT, matching=matching) == formulas.containment(aligned)
    assert of(MeasureName.CONTAINMENT_LONGER, matching=matching) == formulas.containment_longer(aligned)
    assert of(MeasureName.EDIT) == formulas.edit(*tokens)
    in_a, in_b = Counter(a.split()), Counter(b.split())
    assert of(MeasureName.BAG) == ((in_a & in_b).total() / (in_a | in_b).total() if in_a or in_b else 1)
    assert of(MeasureName.WEIGHTED, weights=NONE) == pytest.approx(formulas.resemblance(*sets))


def test_weights_count() -> None:
    """A pair that shares frequent features is less similar than one that shares rare ones."""
    a, common, rare = words(0, 12), f"{words(0, 6)} {words(50, 6)}", f"{words(80, 6)} {words(6, 6)}"
    (boilerplate,) = features([words(0, 6)], 5)
    weights = Weights(100, boilerplate, np.full(len(boilerplate), 100))
    measure = Measure(MeasureName.WEIGHTED, weights=weights)
    one, with_common, with_rare = measure.prepare([a, common, rare])
    plain = Measure()
    sets = plain.prepare([a, common, rare])
    assert plain.score(sets[0], sets[1]) == plain.score(sets[0], sets[2])
    assert measure.score(one, with_common) < plain.score(sets[0], sets[1]) < measure.score(one, with_rare)


def test_words_as_they_stand() -> None:
    plain, standing = Measure(MeasureName.BAG), Measure(MeasureName.BAG, whitespace=True)
    texts = ["The cat, the CAT", "the cat the cat"]
    one, other = plain.prepare(texts)
    assert plain.score(one, other) == 1
    one, other = standing.prepare(texts)
    assert standing.score(one, other) == 1 / 7
    assert (plain.copies_are_equal, standing.copies_are_equal) == (True, False)


@pytest.mark.parametrize("n", range(1, 8))
def test_ngrams_of_a_bag(n: int) -> None:
    measure = Measure(MeasureName.BAG, ngram=n)
    one, other = measure.prepare(["a b c a b c x", "c a b c a b"])
    in_a, in_b = (["".join(t[k : k + n]) for k in range(max(1, len(t) - n + 1))] for t in ("abcabcx", "cabcab"))
    common = sum(min(in_a.count(gram), in_b.count(gram)) for gram in set(in_a))
    assert measure.score(one, other) == common / (len(in_a) + len(in_b) - common)


@pytest.mark.parametrize(
    ("settings", "words_"),
    [
        ({"shingle": 0}, "1 word or more"),
        ({"name": MeasureName.JACCARD, "min_words": 0}, "at least 1 word"),
        ({"name": MeasureName.EDIT, "min_words": 5}, "only for measures of common passages, not for edit"),
        ({"name": MeasureName.BAG, "ngram": 0}, "1 to 7"),
        ({"name": MeasureName.BAG, "ngram": 8}, "1 to 7"),
        ({"ngram": 2}, "for the measure bag"),
        ({"whitespace": True}, "for the measure bag"),
        ({"name": MeasureName.WEIGHTED}, "frequencies"),
        ({"name": MeasureName.EDIT, "sources": (parse("words"),)}, "edit compares words in order"),
        ({"name": MeasureName.JACCARD, "sources": (parse("words"),)}, "jaccard compares words in order"),
        ({"name": MeasureName.BAG, "ngram": 2, "sources": (parse("words"),)}, "not both"),
    ],
)
def test_refused(settings: dict[str, Any], words_: str) -> None:
    with pytest.raises(SettingsError, match=words_):
        Measure(**settings)


def test_without_any_of_the_features_a_document_is_like_no_other() -> None:
    measure = Measure(sources=parse_all(["title:words"]))
    one, none = measure.prepare(["", ""], [{"title": ["a b"]}, {"title": []}])
    assert (measure.score(one, one), measure.score(one, none), measure.score(none, none)) == (1, 0, 0)
    pairs = np.array([0, 1], np.intp), np.array([1, 1], np.intp)
    assert measure.scores([one, none], *pairs).tolist() == [0, 0]


@pytest.mark.parametrize("unit", list(Unit))
@pytest.mark.parametrize("name", [MeasureName.JACCARD, MeasureName.CONTAINMENT, MeasureName.CONTAINMENT_LONGER])
def test_passages_apart_from_shingles(name: MeasureName, unit: Unit) -> None:
    """The size of shingles does not change a measure whose passages have their own size."""
    rng = np.random.default_rng(4)
    texts = [" ".join(rng.choice(list("abcd"), 40)) for _ in range(6)]
    wanted, measure = Measure(name, shingle=4), Measure(name, shingle=2, unit=unit, min_words=4)
    left, right = np.triu_indices(len(texts), 1)
    expected = wanted.scores(wanted.prepare(texts), left, right)
    assert 0 < expected.min() < expected.max() < 1
    assert measure.scores(measure.prepare(texts), left, right).tolist() == expected.tolist()
    usual = replace(measure, min_words=None)
    assert usual.scores(usual.prepare(texts), left, right).tolist() != expected.tolist()


def test_labels_and_meanings() -> None:
    assert set(MEANINGS) == set(MeasureName)
    assert Measure().label == "resemblance"
    assert Measure(MeasureName.CONTAINMENT, Matching.INFORMATION).label == "containment (information)"
    assert Measure(MeasureName.CONTAINMENT, min_words=5).label == "containment (literal)"
    assert Measure(MeasureName.JACCARD, min_words=1).label == "jaccard (literal, passages of 1 word)"
    assert Measure(MeasureName.BAG, ngram=2).label == "bag (2-grams)"
    assert Measure(MeasureName.BAG, whitespace=True).label == "bag (1-grams of words as they stand)"
    assert Measure(sources=parse_all(["a:words", "values"])).label == "resemblance (a:words + values)"
    assert Measure(MeasureName.EDIT).label == "edit"


@pytest.mark.parametrize(
    ("spec", "equal"),
    [
        ("flatten(words)", True),
        ("flatten(ngrams(3))", True),
        ("flatten(characters(3))", True),
        ("words", False),  # the same tokens in other values
        ("flatten(values)", False),  # case and punctuation
        ("flatten(sentences)", False),  # punctuation
        ("title:flatten(words)", False),
    ],
)
def test_which_copies_need_no_comparing(spec: str, equal: bool) -> None:
    assert Measure(sources=(parse(spec),)).copies_are_equal is equal
