"""Common shingles: the remaining shingles of texts, and their similarity."""

from __future__ import annotations

import base64
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit_tools import SETTINGS, FakeClient, hits, index_of, set_resemblance, shingle_set, words

from es_neardupe.candidates.detection import Detection, TextLength
from es_neardupe.candidates.fingerprints import read_corpus
from es_neardupe.candidates.join import read_signatures
from es_neardupe.display_text import beginning
from es_neardupe.errors import SettingsError
from es_neardupe.index.settings import Settings
from es_neardupe.index.target import IndexTarget
from es_neardupe.keys.shingles import features, token_hashes, window_hashes
from es_neardupe.keys.unit import Unit
from es_neardupe.options import MeasureName
from es_neardupe.records import TextClasses
from es_neardupe.similarity import formulas
from es_neardupe.similarity.common_passages import covered_passages, covered_words
from es_neardupe.similarity.features import parse_all
from es_neardupe.similarity.formulas import Weights
from es_neardupe.similarity.measure import Ignored, Measure
from es_neardupe.verification.common_shingles import _decoded, _ignored

TEXT = st.lists(st.sampled_from("abc"), max_size=12).map(" ".join)
LEGAL = words(0, 40, "legal")


def ignoring(texts: list[str], **more: Any) -> Measure:
    """A measure that ignores the shingles of these texts."""
    found = features(texts, 3)
    return Measure(shingle=3, ignored=_ignored(np.unique(np.concatenate([*found, np.empty(0, np.uint64)]))), **more)


@given(TEXT, TEXT, st.lists(TEXT, max_size=2))
def test_against_sets(a: str, b: str, common: list[str]) -> None:
    """Common shingles are removed from both texts; a text with no others keeps all of them."""
    away = frozenset().union(*(shingle_set(one, 3) for one in common))
    measure = ignoring(common)
    one, other = measure.prepare([a, b])
    left = [shingle_set(text, 3) - away or shingle_set(text, 3) for text in (a, b)]
    assert measure.score(one, other) == measure.score(other, one) == set_resemblance(*left)
    assert [len(one), len(other)] == [len(kept) for kept in left]
    whole = [bool(shingle_set(text, 3)) and shingle_set(text, 3) <= away for text in (a, b)]
    assert [measure.only_ignored(one), measure.only_ignored(other)] == whole
    assert measure.score(one, one) == 1


@given(st.lists(TEXT, max_size=5), st.lists(TEXT, max_size=2))
def test_many_pairs(texts: list[str], common: list[str]) -> None:
    measure = ignoring(common)
    prepared = measure.prepare(texts)
    pairs = list(combinations(range(len(texts)), 2))
    left, right = (np.array([pair[side] for pair in pairs], np.intp) for side in (0, 1))
    assert measure.scores(prepared, left, right).tolist() == [measure.score(prepared[a], prepared[b]) for a, b in pairs]


def test_a_text_of_boilerplate_is_no_duplicate_of_everything() -> None:
    """Such texts are similar to each other, and not to texts with other shingles."""
    texts = [LEGAL, f"{LEGAL} thanks", f"{words(0, 20)} {LEGAL}", f"{words(50, 20)} {LEGAL}", LEGAL.upper()]
    measure = ignoring([LEGAL])
    prepared = measure.prepare(texts)
    scores = {(a, b): measure.score(prepared[a], prepared[b]) for a, b in combinations(range(5), 2)}
    assert scores.pop((0, 4)) == 1
    assert set(scores.values()) == {0}
    assert [measure.only_ignored(one) for one in prepared] == [True, False, False, False, True]
    assert formulas.resemblance(*features(texts[:2], 3)) > 0.97


def test_weighted_too() -> None:
    (boilerplate,) = features([LEGAL], 3)
    weights = Weights(100, boilerplate, np.full(len(boilerplate), 90))
    measure = ignoring([LEGAL], name=MeasureName.WEIGHTED, weights=weights)
    one, same, other = measure.prepare([f"a b c d {LEGAL}", f"a b c d {LEGAL}", f"e f g h {LEGAL}"])
    assert (measure.score(one, same), measure.score(one, other)) == (1, 0)


def test_what_cannot_ignore() -> None:
    nothing = Ignored("v", np.empty(0, np.uint64))
    for name in set(MeasureName) - {MeasureName.RESEMBLANCE, MeasureName.WEIGHTED}:
        with pytest.raises(SettingsError, match="ignore common"):
            Measure(name, ignored=nothing)
    with pytest.raises(SettingsError, match="ignore common"):
        Measure(ignored=nothing, sources=parse_all(["words"]))


def test_it_is_another_measure() -> None:
    """The keys do not estimate it, its label names the list, and equal texts stay equal."""
    measure = ignoring([LEGAL])
    assert measure.label.startswith("resemblance (without the 38 shingles of list ")
    assert ignoring([LEGAL, "x y z"]).label != measure.label
    assert (measure.by_keys, measure.copies_are_equal) == (False, True)
    found = Detection.of(Settings(("text",)), measure, 0.8, TextLength(100, 0))
    assert found.probability is None
    assert found.cases


@given(st.lists(st.sampled_from("abc"), max_size=30), st.integers(1, 6), st.data())
def test_covered_words(text: list[str], shingle: int, data: st.DataObject) -> None:
    """Those of windows that are chosen at random, by looking at every window."""
    windows = sorted({tuple(text[k : k + shingle]) for k in range(max(len(text) - shingle, 0) + 1)} - {()})
    chosen = data.draw(st.sets(st.sampled_from(windows))) if windows else set()
    covering = np.unique([one for shingles in features([" ".join(one) for one in chosen], shingle) for one in shingles])
    expected = [
        any(tuple(text[k : k + shingle]) in chosen for k in range(len(text)) if k <= place < k + shingle)
        for place in range(len(text))
    ]
    assert covered_words(" ".join(text), covering.astype(np.uint64), shingle).tolist() == expected


def test_covered_words_of_characters() -> None:
    (common,) = features(["one two"], 5, Unit.CHARACTER)
    assert covered_words("One Two, twofold. One! two", common, 5, Unit.CHARACTER).tolist() == [
        *[True] * 2,
        False,
        *[True] * 2,
    ]
    assert covered_words("", common, 5, Unit.CHARACTER).tolist() == []


def test_covered_passages_of_characters() -> None:
    """In whole words, as written in the text, whatever stands between them."""
    texts = ["One two, THREE", "x o\u00adne TWO", "other one-\ntwofold"]
    (common,) = features(["one two"], 5, Unit.CHARACTER)
    assert covered_passages(texts, common, 5, Unit.CHARACTER) == [("One two", 3)]
    assert covered_passages(texts[2:], common, 5, Unit.CHARACTER) == [("one- twofold", 1)]


def test_covered_passages() -> None:
    """Passages of common shingles only, the most frequent first."""
    (notice,) = token_hashes(["one two three four five"])
    common = np.unique(window_hashes(notice, 3))
    texts = ["x One  two\nthree, four five y", "one two three four five", "z two three four z", "nothing", ""]
    assert covered_passages(texts, common, 3) == [("One two three, four five", 2), ("two three four", 1)]
    assert covered_passages(texts, np.empty(0, np.uint64), 3) == []
    assert beginning("one  two\nthree", 10) == "one two..."
    assert beginning("one two", 7) == "one two"
    assert beginning("onetwothree", 5) == "onetw..."


def test_signatures_that_cannot_be_read() -> None:
    """They are all zeros: deleted meanwhile, of another length, or no base64. The others stand in their place."""
    found = hits({str(row): words(row, 30) for row in range(5)})
    corpus = read_corpus([found], "neardupe", SETTINGS.scheme.bands)
    sources: dict[tuple[str, str], Any] = {hit.address: hit.source for hit in found}
    wanted = [base64.b64decode(hit.source["neardupe"]["signature"]) for hit in found]
    del sources["i", "1"]
    sources["i", "2"] = {"neardupe": {"signature": "AAAA"}}
    sources["i", "3"] = {"neardupe": {"signature": "?"}}
    client: Any = FakeClient(sources)
    target = IndexTarget("i", ("i",), SETTINGS, 10_000)
    classes = TextClasses.of([[row] for row in range(5)])
    read = read_signatures(index_of(client, target), corpus, classes, np.array([4, 3, 2, 1, 0]))
    assert [row.tobytes() for row in read] == [wanted[4], bytes(128), bytes(128), bytes(128), wanted[0]]


def test_a_stored_list_is_checked() -> None:
    ignored = _ignored(np.array([1, 2**63], np.uint64))
    value = {"version": ignored.version, "share": 0.2, "documents": 500, "at": "2024-05-01T00:00:00Z"}
    value["passages"] = []
    good = {**value, "hashes": ["0000000000000001", "8000000000000000"]}
    assert _decoded(good).ignored == ignored
    assert _decoded(good).ignored.features.tolist() == [1, 2**63]
    for bad in (None, {}, value, {**good, "hashes": ["1"]}, {**good, "hashes": ["x"]}, {**good, "version": "0"}):
        with pytest.raises(SettingsError, match="`renew`"):
            _decoded(bad)
