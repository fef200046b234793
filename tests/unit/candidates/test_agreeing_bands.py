"""Candidates that share several keys: the preset ``supershingles``, and any other scheme with ``agree``; no server."""

from __future__ import annotations

import json
import random
from collections import Counter
from itertools import combinations, product
from typing import Any

import numpy as np
import pytest
from golden_vectors import FOLDER, golden_text
from hypothesis import assume, given, settings
from hypothesis import strategies as st
from key_matrices import buckets, key, listed, matrices
from scheme_oracle import oracle
from unit_tools import hits, words

from es_neardupe.candidates.fingerprints import classes_of, read_corpus
from es_neardupe.candidates.join import bucket_sizes, find_candidates
from es_neardupe.commands.audit.why_missed import FOUND, Candidacy, LossReason, lost, states_of, verdicts
from es_neardupe.commands.distribution.sample import compare_sample
from es_neardupe.errors import SettingsError
from es_neardupe.index import queries
from es_neardupe.index.mapping import Fields
from es_neardupe.index.settings import Settings
from es_neardupe.keys.bands import band_keys
from es_neardupe.keys.fingerprint import fingerprints, signatures
from es_neardupe.keys.scheme import Scheme
from es_neardupe.options import PRESETS
from es_neardupe.similarity.measure import Measure

PRESET = Settings.chosen(("text",), preset="supershingles")
GOLDEN = json.loads((FOLDER / "supershingles_v1.json").read_text("ascii"))


# The scheme


def test_the_preset() -> None:
    """As in the literature: 84 minima of 8-word shingles, 6 supershingles of 14, of which 2 must agree."""
    assert PRESET.scheme == Scheme(shingle=8, permutations=84, bands=6, rows=14, agree=2)
    assert (PRESET.threshold, PRESET.detection) == (0.976, 0.99)


def test_its_threshold_is_the_lowest_that_is_found() -> None:
    assert PRESET.scheme.detection(PRESET.threshold) >= PRESET.detection > PRESET.scheme.detection(0.975)


def test_ids_of_schemes_of_one_band_stay() -> None:
    """A setting that was added later changes nothing if it has its default."""
    scheme = Scheme(bands=16, rows=6, agree=1)
    assert (scheme.id, "agree" in scheme.to_dict()) == ("v1-f812d244", False)
    assert Scheme.from_dict(scheme.to_dict()) == scheme == Scheme.from_dict({**scheme.to_dict(), "agree": 1})
    assert Scheme(bands=16, rows=6, agree=2).id != scheme.id
    assert Scheme.from_dict(PRESET.scheme.to_dict()) == PRESET.scheme


@pytest.mark.parametrize("case", GOLDEN["cases"], ids=lambda case: case["name"])
def test_golden_vectors(case: dict[str, Any]) -> None:
    """Frozen, like the vectors of ``scheme_v1.json``."""
    frozen, expected = GOLDEN["schemes"]["supershingles"], case["fingerprints"]["supershingles"]
    scheme = Scheme.from_dict(frozen["settings"])
    assert scheme.id == frozen["id"] == PRESET.scheme.id
    text = golden_text(case)
    (made,) = fingerprints([text], scheme)
    assert ("".join(made.bands), made.signature.hex()) == (expected["bands"], expected["signature"])
    assert (made.state.value, made.content) == (expected["state"], expected["content"])
    assert (made.tokens, made.features) == (expected["tokens"], expected["features"])
    if len(text) < 2000:
        assert made == oracle(text, scheme)


@given(st.floats(0, 1), st.integers(1, 7), st.integers(1, 5), st.integers(1, 7))
def test_detection_against_all_ways_to_agree(similarity: float, bands: int, rows: int, agree: int) -> None:
    assume(agree <= bands)
    scheme, shared = Scheme(bands=bands, rows=rows, agree=agree), similarity**rows
    ways = (pattern for pattern in product((0, 1), repeat=bands) if sum(pattern) >= agree)
    expected = sum(shared ** sum(one) * (1 - shared) ** (bands - sum(one)) for one in ways)
    assert scheme.detection(similarity) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("similarity", [0.85, 0.9, 0.95, 0.976])
def test_real_keys_agree_as_often_as_the_curve_says(similarity: float) -> None:
    chance, size, count = random.Random(str(similarity)), 400, 1000
    common = round(similarity * size)
    left, right = [], []
    for _ in range(count):
        every = [f"w{chance.getrandbits(60):x}" for _ in range(size)]
        middle = (size + common) // 2
        left.append(" ".join(every[:middle]))
        right.append(" ".join(every[middle - common :]))
    scheme = Scheme(shingle=1, permutations=84, bands=6, rows=14, agree=2)
    both = zip(*(band_keys(signatures(texts, scheme), 6, 14) for texts in (left, right)), strict=True)
    found = sum(len(set(a) & set(b)) >= 2 for a, b in both) / count
    truth = common / size
    expected, lifted = (scheme.detection(one) for one in (truth, truth + (1 - truth) / 256))
    tolerance = 4 * (expected * (1 - expected) / count) ** 0.5 + 0.002
    assert expected - tolerance <= found <= lifted + tolerance


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"agree": 0}, "agree must be 1 to 16, not 0"),
        ({"agree": 17}, "agree must be 1 to 16, not 17"),
        ({"agree": True}, "agree must be a whole number, not True"),
        ({"agree": 3}, "3 of 16 bands can be chosen in 560 ways, the maximum is 128"),
    ],
)
def test_refused_schemes(changes: dict[str, Any], message: str) -> None:
    with pytest.raises(SettingsError, match=message):
        Scheme(**{"bands": 16, "rows": 6} | changes)


# Settings


@pytest.mark.parametrize(
    "options",
    [{"shingle": 5}, {"permutations": 128}, {"bands": 16, "rows": 6}, {"rows": 13}, {"agree": 1}, {"agree": 3}],
)
def test_options_that_contradict_the_preset(options: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=f"The preset supershingles has .*--{min(options)}"):
        Settings.chosen(("text",), preset="supershingles", **options)


def test_options_beside_the_preset() -> None:
    fixed = dict(PRESETS["supershingles"])
    assert Settings.chosen(("text",), preset="supershingles", **fixed) == PRESET
    lower = Settings.chosen(("text",), preset="supershingles", threshold=0.9, detection=0.4, prefix="nd", shingle=None)
    assert (lower.threshold, lower.detection, lower.prefix, lower.scheme) == (0.9, 0.4, "nd", PRESET.scheme)
    assert Settings.chosen(("text",), threshold=None, agree=None) == Settings(("text",))
    with pytest.raises(SettingsError, match=r"Unknown preset 'super'\. Presets: strict, reader, supershingles"):
        Settings.chosen(("text",), preset="super")
    with pytest.raises(SettingsError, match="agree requires bands and rows"):
        Settings(("text",), agree=2)


def test_settings_survive_the_mapping_and_differ_from_others() -> None:
    assert Settings.from_meta(json.loads(json.dumps(PRESET.to_meta())), "neardupe") == PRESET
    one = Settings(("text",), threshold=0.976, shingle=8, permutations=84, bands=6, rows=14)
    assert (one.differences(PRESET), PRESET.differences(one)) == (["agree: 1, not 2"], ["agree: 2, not 1"])


# Candidates


@given(matrices(), st.integers(1, 4))
def test_pairs_with_enough_equal_keys_and_no_others(keys: Any, agree: int) -> None:
    assume(agree <= keys.shape[1])
    sets = [set(row) - {0} for row in keys.tolist()]
    wanted = [pair for pair in combinations(range(len(sets)), 2) if len(sets[pair[0]] & sets[pair[1]]) >= agree]
    found = find_candidates(keys, agree=agree)
    assert listed(found) == wanted
    assert found.large == ()


def joint_buckets(keys: Any, agree: int) -> dict[str, list[int]]:
    """Rows that have all of several keys, by the names of the keys."""
    found: dict[str, list[int]] = {}
    for chosen in combinations(buckets(keys).items(), agree):
        rows = sorted(set.intersection(*(set(rows) for _, rows in chosen)))
        if rows:
            found["+".join(key(number) for number, _ in sorted(chosen, key=lambda one: one[0] % 100))] = rows
    return found


@given(matrices(), st.integers(2, 3), st.integers(1, 5))
def test_large_buckets_are_counted_by_the_pairs_that_share_enough(keys: Any, agree: int, max_bucket: int) -> None:
    """Only pairs that share enough keys are counted as skipped."""
    assume(agree <= keys.shape[1])
    pairs: set[tuple[int, int]] = set()
    large = {}
    for name, rows in joint_buckets(keys, agree).items():
        every = set(combinations(rows, 2))
        pairs |= {pair for pair in every if len(rows) <= max_bucket or pair[0] in rows[:max_bucket]}
        if len(rows) > max_bucket:
            large[name] = every
    found = find_candidates(keys, max_bucket, agree=agree)
    assert listed(found) == sorted(pairs)
    counted = {one.key: (one.size * (one.size - 1) // 2, one.compared, one.skipped) for one in found.large}
    assert counted == {name: (len(every), len(every & pairs), len(every - pairs)) for name, every in large.items()}
    assert found.skipped == len(set().union(*large.values()) - pairs)


@given(matrices(), st.integers(2, 3), st.integers(0, 9))
def test_bucket_sizes(keys: Any, agree: int, maximum: int) -> None:
    assume(agree <= keys.shape[1])
    counts = Counter({name: len(rows) for name, rows in joint_buckets(keys, agree).items() if len(rows) > 1})
    found = bucket_sizes(keys, maximum, agree)
    assert [size for _, size in found] == sorted(counts.values(), reverse=True)[:maximum]
    assert all(counts[name] == size for name, size in found)


def test_one_common_key_costs_nothing() -> None:
    """5,000 texts that share one key, as with boilerplate: there are no pairs, and none is skipped."""
    keys = np.arange(1, 15_001, dtype=np.uint64).reshape(5000, 3) << np.uint64(8)
    keys[:, 0] = 5
    found = find_candidates(keys, 100, agree=2)
    assert (len(found), found.large) == (0, ())
    assert len(find_candidates(keys, 100)) > 100 * 4000


def test_the_request_asks_for_as_many() -> None:
    body = queries.candidates(Fields("nd"), ("Akey", "Bkey", "Ckey"), size=5, agree=2)
    assert body["query"]["bool"]["minimum_should_match"] == 2
    assert len(body["query"]["bool"]["should"]) == 3


# Audit and distribution

TWO = Settings(("text",), threshold=0.8, bands=16, rows=5, agree=2)
TEXTS = {f"d{k}": words(0, 60 + 6 * k) + " " + words(1000 * k, 20, "x") for k in range(12)}
TEXTS |= {f"near{k}": words(0, 100) + f" y{k}" for k in range(6)}


def keys_of() -> Any:
    corpus = read_corpus([hits(TEXTS, TWO)], "neardupe", TWO.scheme.bands)
    assert [id for _, id, _ in corpus.references] == list(TEXTS)
    return corpus.keys


def test_a_sample_counts_pairs_that_share_enough() -> None:
    keys = keys_of()
    common = [int((keys[a] == keys[b]).sum()) for a, b in combinations(range(len(keys)), 2)]
    assert 1 in common
    for agree in (1, 2, 3):
        found = compare_sample(Measure(), list(TEXTS.values()), keys, thresholds=[1e-9], threshold=0.5, agree=agree)
        assert found.found.tolist() == [sum(one >= agree for one in common)]


@pytest.mark.parametrize("max_bucket", [2, 200])
def test_an_audit_says_why_a_pair_is_lost(max_bucket: int) -> None:
    """Pairs with one common key are missed; pairs with two only if their bucket is too large."""
    found = hits(TEXTS, TWO)
    corpus = read_corpus([found], "neardupe", TWO.scheme.bands)
    classes = classes_of(corpus)
    made = find_candidates(corpus.keys[classes.first], max_bucket, agree=2)
    candidacy = Candidacy(corpus, classes, made.left, made.right, 2)
    documents = states_of(found, TWO).among(candidacy)
    a, b = np.triu_indices(len(found), 1)
    verdict = verdicts(candidacy, documents, documents, a, b)
    why = {int(k): loss for loss, numbers in lost(verdict) for k in numbers}
    common = (corpus.keys[a] == corpus.keys[b]).sum(axis=1).tolist()
    assert {why.get(k) for k, number in enumerate(common) if number < 2} == {LossReason.BANDS}
    enough = {why.get(k) for k, number in enumerate(common) if number >= 2}
    assert enough == ({None, LossReason.BUCKET} if max_bucket == 2 else {None})
    assert int((verdict == FOUND).sum()) == sum(k not in why for k in range(len(a)))


@settings(max_examples=20)
@given(st.integers(1, 6))
def test_any_number_that_must_agree(agree: int) -> None:
    """The more bands must agree, the fewer pairs are found at each resemblance; equal texts are always found."""
    curve = [Scheme(bands=6, rows=14, agree=agree).detection(step / 20) for step in range(21)]
    fewer = [Scheme(bands=6, rows=14, agree=max(1, agree - 1)).detection(step / 20) for step in range(21)]
    assert all(one <= other for one, other in zip(curve, fewer, strict=True))
    assert (curve[0], curve[20]) == (0, 1)
