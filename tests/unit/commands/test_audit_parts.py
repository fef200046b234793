"""Parts of an audit without a server: exact comparison, intervals, kinds of texts, verdicts."""

from __future__ import annotations

from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit_tools import SETTINGS, hits, set_resemblance, words

from es_neardupe.candidates.fingerprints import classes_of, read_corpus
from es_neardupe.candidates.join import find_candidates
from es_neardupe.commands.audit import true_pairs
from es_neardupe.commands.audit.report import RecallCounts, effective, recall_of
from es_neardupe.commands.audit.true_pairs import InvertedIndex, PairSimilarities
from es_neardupe.commands.audit.why_missed import (
    FOUND,
    LENGTHS,
    Candidacy,
    LossReason,
    lengths,
    lost,
    script,
    states_of,
    verdicts,
)
from es_neardupe.errors import SettingsError
from es_neardupe.keys.scheme import Scheme
from es_neardupe.run_options import check_seed

SETS = st.lists(st.sets(st.integers(0, 2**64 - 1) | st.integers(0, 12), max_size=12), max_size=12)


def arrays(sets: list[set[int]]) -> list[Any]:
    return [np.array(sorted(one), np.uint64) for one in sets]


@given(SETS, SETS, st.sampled_from([1, 3, 1000]), st.sampled_from([0.01, 0.3, 0.5, 1.0]))
def test_every_similar_pair_is_found_and_no_other(
    inside: list[set[int]], given: list[set[int]], cells: int, minimum: float
) -> None:
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(true_pairs, "_CELLS", cells)
        inverted = InvertedIndex(arrays(inside))
        found = list(inverted.similar(arrays(given), minimum))
        inner = list(inverted.within(minimum))
    truth = {
        (a, b): set_resemblance(inside[a], given[b])
        for a, b in product(range(len(inside)), range(len(given)))
        if inside[a] and given[b]
    }
    assert pairs_of(found) == {pair: value for pair, value in truth.items() if value >= minimum}
    numbers = combinations((k for k, one in enumerate(inside) if one), 2)
    truth = {(a, b): set_resemblance(inside[a], inside[b]) for a, b in numbers}
    assert pairs_of(inner) == {pair: value for pair, value in truth.items() if value >= minimum}


def pairs_of(blocks: list[PairSimilarities]) -> dict[tuple[int, int], float]:
    every = [one for block in blocks for one in zip(*(column.tolist() for column in block), strict=True)]
    assert len({one[:2] for one in every}) == len(every)
    return {(a, b): value for a, b, value in every}


def test_wilson() -> None:
    """95 of 100 and 10 of 10, as in the tables (Newcombe 1998)."""
    one, all_of_ten = recall_of(100, 95, 100, whole=False), recall_of(10, 10, 99, whole=False)
    assert (one.recall, one.low, one.high) == pytest.approx((0.95, 0.8882, 0.9785), abs=1e-4)
    assert (all_of_ten.low, all_of_ten.high) == pytest.approx((0.7225, 1.0), abs=1e-4)
    assert recall_of(0, 0, 0, whole=False).recall is None


@given(st.integers(1, 10**6), st.data(), st.floats(0, 10**6))
def test_intervals_hold_the_share(pairs: int, data: st.DataObject, independent: float) -> None:
    found = data.draw(st.integers(0, pairs))
    one = recall_of(pairs, found, independent, whole=False)
    assert one.recall is not None
    assert one.low is not None
    assert one.high is not None
    assert 0 <= one.low <= one.recall <= one.high <= 1
    exactly = recall_of(pairs, found, independent, whole=True)
    assert exactly.low == exactly.high == exactly.recall == found / pairs
    alone = recall_of(pairs, found, 1, whole=False)
    assert alone.low is not None
    assert alone.low <= one.low  # fewer independent pairs, a wider interval


@given(st.lists(st.integers(0, 1000), max_size=30))
def test_pairs_of_one_document_count_less(degrees: list[int]) -> None:
    found = effective(np.array(degrees, np.int64))
    assert 0 <= found <= sum(one > 0 for one in degrees) + 1e-9
    assert effective(np.array([7, 7, 0, 7])) == pytest.approx(3)
    assert effective(np.array([1000, 1])) == pytest.approx(1, abs=0.01)


def test_intervals_hold_the_truth_for_pairs_that_are_lost_together() -> None:
    """Documents in 1 to 40 pairs; all pairs of a document are found, or none: the truth lies inside in 95 of 100."""
    rng = np.random.default_rng(1)
    degrees = rng.integers(1, 41, 20_000)
    found = np.where(rng.random(20_000) < 0.9, degrees, 0)
    truth = found.sum() / degrees.sum()
    hits = []
    for _ in range(400):
        drawn = rng.choice(20_000, 150, replace=False)
        one = recall_of(int(degrees[drawn].sum()), int(found[drawn].sum()), effective(degrees[drawn]), whole=False)
        assert one.low is not None
        assert one.high is not None
        hits.append(one.low <= truth <= one.high)
    assert np.mean(hits) >= 0.93


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("The quick brown fox", "Latin"),
        ("быстрая лиса, fox", "Cyrillic"),
        ("नमस्ते दुनिया", "Devanagari"),
        ("東京に行く人々が多数参加", "Han"),
        ("ひらがなの文", "Hiragana"),
        ("ｆｕｌｌ ｗｉｄｔｈ", "Latin"),
        ("12 345, 67!", "none"),
        ("", "none"),
        ("12 a", "Latin"),
    ],
)
def test_scripts(text: str, name: str) -> None:
    assert script(text) == name


def test_lengths() -> None:
    found = [LENGTHS[k] for k in lengths(np.array([0, 19, 20, 99, 100, 499, 500, 1999, 2000, 10**6])).tolist()]
    assert found == [name for name in LENGTHS for _ in range(2)]


@pytest.mark.parametrize("seed", [-1, 2**64])
def test_wrong_seeds(seed: int) -> None:
    with pytest.raises(SettingsError):
        check_seed(seed)


# Verdicts, on documents in memory


TEXTS = {f"d{k}": words(0, 200) + f" x{k}" for k in range(6)} | {"copy": words(0, 200) + " x0"}


def judged(changed: dict[str, dict[str, Any]], max_bucket: int = 200) -> dict[tuple[str, str], LossReason | None]:
    """The verdict on every pair of documents, some of whose stored fields were changed after the keys were read."""
    found = hits(TEXTS)
    corpus = read_corpus([found], "neardupe", SETTINGS.scheme.bands)
    classes = classes_of(corpus)
    first = np.array([rows[0] for rows in classes])
    candidates = find_candidates(corpus.keys[first], max_bucket)
    candidacy = Candidacy(corpus, classes, candidates.left, candidates.right)
    for hit in found:
        dict.update(hit.source["neardupe"], changed.get(hit.id, {}))
    documents = states_of(found, SETTINGS).among(candidacy)
    a, b = np.triu_indices(len(found), 1)
    verdict = verdicts(candidacy, documents, documents, a, b)
    names = {int(k): loss for loss, numbers in lost(verdict) for k in numbers}
    assert len(names) == int((verdict != FOUND).sum())
    tally = RecallCounts(len(found))
    tally.add(PairSimilarities(a, b, np.full(len(a), 0.9)), verdict, documents, documents)
    assert tally.all.pairs == tally.all.found + sum(one.pairs for one in tally.reasons()) == len(a)
    assert tally.all.degrees.tolist() == [len(found) - 1] * len(found)
    assert tally.expected(SETTINGS.scheme) == pytest.approx(SETTINGS.scheme.detection(0.9))
    ids = list(TEXTS)
    return {(ids[i], ids[j]): names.get(k) for k, (i, j) in enumerate(zip(a.tolist(), b.tolist(), strict=True))}


def test_all_is_found_in_a_sound_index() -> None:
    assert set(judged({}).values()) == {None}


OTHER = next(iter(hits({"o": words(5000, 200)}))).source["neardupe"]


@pytest.mark.parametrize(
    ("fields", "reason"),
    [
        ({"scheme": "v1-00000000"}, LossReason.UNPROCESSED),
        ({"scheme": None}, LossReason.UNPROCESSED),
        ({"group": None}, LossReason.UNPROCESSED),
        ({"state": "too_large", "content": None, "bands": [], "tokens": 0, "features": 0}, LossReason.TOO_LARGE),
        ({"state": "failed", "content": None, "bands": [], "tokens": 0, "features": 0}, LossReason.FAILED),
        ({"bands": None}, LossReason.CORRUPT),
        ({"bands": ["tooshort"]}, LossReason.CORRUPT),
        ({"tokens": -1}, LossReason.CORRUPT),
        ({"content": OTHER["content"]}, LossReason.STALE),
        ({"state": "empty", "content": None, "bands": [], "tokens": 0, "features": 0}, LossReason.STALE),
    ],
)
def test_each_condition_of_a_document(fields: dict[str, Any], reason: LossReason) -> None:
    found = judged({"d2": fields})
    assert {pair: loss for pair, loss in found.items() if loss} == {pair: reason for pair in found if "d2" in pair}


def test_the_first_reason_counts() -> None:
    found = judged({"d2": {"content": OTHER["content"]}, "d3": {"scheme": None}})
    assert found["d2", "d3"] is LossReason.UNPROCESSED
    assert (found["d1", "d2"], found["d1", "d3"]) == (LossReason.STALE, LossReason.UNPROCESSED)


def test_large_buckets() -> None:
    """Six distinct texts share nearly all keys: each is compared with the two representatives only."""
    found = judged({}, max_bucket=2)
    assert {loss for loss in found.values() if loss} == {LossReason.BUCKET}
    assert found["d0", "copy"] is None


def test_nothing_is_expected_of_no_pairs() -> None:
    assert RecallCounts(2).expected(Scheme(bands=16, rows=6)) is None
