"""Quality of the keys, as numbers with tolerances."""

from __future__ import annotations

import random
import statistics
import string
from itertools import pairwise

import numpy as np
import pytest
from numpy.typing import NDArray

from es_neardupe.errors import SettingsError
from es_neardupe.index.settings import Settings
from es_neardupe.keys.bands import band_keys
from es_neardupe.keys.fingerprint import fingerprints, signatures
from es_neardupe.keys.minhash import estimate
from es_neardupe.keys.scheme import Scheme
from es_neardupe.keys.shingles import features
from es_neardupe.similarity.formulas import resemblance

SCHEME = Scheme(bands=16, rows=6, shingle=1)


def pair(similarity: float, size: int, chance: random.Random) -> tuple[str, str, float]:
    """Two texts of single words, about ``size`` distinct ones together, and their resemblance."""
    words = [f"w{chance.getrandbits(60):x}" for _ in range(size)]
    common = round(similarity * size)
    middle = (size + common) // 2
    return " ".join(words[:middle]), " ".join(words[middle - common :]), common / size


def signed_pairs(similarity: float, size: int, count: int) -> tuple[NDArray[np.uint8], NDArray[np.uint8], float]:
    chance = random.Random(f"{similarity} {size}")
    left, right, truth = zip(*(pair(similarity, size, chance) for _ in range(count)), strict=True)
    return signatures(left, SCHEME), signatures(right, SCHEME), truth[0]


@pytest.mark.parametrize("similarity", [0.1, 0.5, 0.8, 0.95])
@pytest.mark.parametrize("size", [20, 60, 300])
def test_estimates_are_near_the_truth(similarity: float, size: int) -> None:
    left, right, truth = signed_pairs(similarity, size, 500)
    estimates = [estimate(a, b) for a, b in zip(left, right, strict=True)]
    spread = (truth * (1 - truth) / 128) ** 0.5
    assert statistics.mean(e.value for e in estimates) == pytest.approx(truth, abs=4 * spread / 500**0.5)
    assert statistics.stdev(e.value for e in estimates) < 1.15 * spread
    assert statistics.mean(e.low <= truth <= e.high for e in estimates) > 0.93


@pytest.mark.parametrize(("wrong", "share"), [(0.03, 0.99), (0.05, 0.99), (0.1, 0.8)])
def test_scans_find_copies_with_wrong_characters(wrong: float, share: float) -> None:
    """Of 400 texts of 100 words: letters replaced, and blanks lost. No two texts match."""
    chance, letters = random.Random(7), "eeeettaoinshrdlucmfw"
    words = ["".join(chance.choices(letters, k=chance.randrange(2, 10))) for _ in range(3000)]
    texts = [" ".join(chance.choices(words, k=100)) for _ in range(400)]
    copies = [
        "".join(
            one if chance.random() >= wrong else "" if one == " " else chance.choice(string.ascii_letters)
            for one in text
        )
        for text in texts
    ]
    settings = Settings.chosen(("text",), preset="scans")
    made = fingerprints(texts + copies, settings.scheme)
    sets = features(texts + copies, settings.shingle, settings.unit)
    found = 0
    for (one, other), (a, b) in zip(
        zip(made[:400], made[400:], strict=True), zip(sets[:400], sets[400:], strict=True), strict=True
    ):
        found += any(map(str.__eq__, one.bands, other.bands)) and resemblance(a, b) >= settings.threshold
    assert found >= 400 * share
    assert max(resemblance(one, other) for one, other in pairwise(sets[:400])) < settings.threshold / 2


@pytest.mark.parametrize("similarity", [0.6, 0.7, 0.8, 0.9])
@pytest.mark.parametrize("size", [20, 200])
def test_pairs_share_a_band_as_often_as_the_curve_says(similarity: float, size: int) -> None:
    count = 2000
    left, right, truth = signed_pairs(similarity, size, count)
    keys = zip(band_keys(left, 16, 6), band_keys(right, 16, 6), strict=True)
    found = sum(not set(a).isdisjoint(b) for a, b in keys) / count
    expected = SCHEME.detection(truth)
    # Chance agreement of 8-bit slots lifts the curve a little: s becomes s + (1 - s) / 256.
    lifted = SCHEME.detection(truth + (1 - truth) / 256)
    tolerance = 4 * (expected * (1 - expected) / count) ** 0.5 + 0.002
    assert expected - tolerance <= found <= lifted + tolerance


def test_unrelated_texts_share_no_key() -> None:
    chance = random.Random(1)
    texts = [" ".join(f"w{chance.getrandbits(60):x}" for _ in range(k)) for k in range(1, 40) for _ in range(50)]
    for scheme in (SCHEME, Scheme(bands=16, rows=6)):
        made = fingerprints(texts, scheme)
        keys = [key for fingerprint in made for key in fingerprint.bands]
        assert len(set(keys)) == len(keys) == 16 * len(texts)


def test_slots_are_uniform() -> None:
    chance = random.Random(2)
    texts = [f"w{chance.getrandbits(60):x} " * 3 for _ in range(2000)]
    signed = signatures(texts, Scheme(bands=16, rows=6))
    counts = np.bincount(signed.ravel(), minlength=256)
    expected = signed.size / 256
    assert ((counts - expected) ** 2 / expected).sum() < 350  # chi-square with 255 degrees of freedom
    assert abs(np.corrcoef(signed.T) - np.eye(128)).max() < 0.12


def test_keys_have_eight_characters_of_latin_1() -> None:
    (fingerprint,) = fingerprints(["one two"], Scheme(bands=128, rows=1))
    assert len(set(fingerprint.bands)) == 128
    assert {len(key) for key in fingerprint.bands} == {8}
    assert {len(key.encode("latin-1")) for key in fingerprint.bands} == {8}
    assert [key[0] for key in fingerprint.bands[62:66]] == ["-", "_", "\u00c0", "\u00c1"]


def test_example_of_the_interval() -> None:
    found = estimate(bytes(200), bytes(139) + b"\1" * 61)
    assert str(found) == "69% (62% to 76%)"
    assert found.low < found.value < found.high


def test_identical_and_unrelated_signatures() -> None:
    same = estimate(bytes(128), np.zeros(128, np.uint8))
    assert (same.value, same.high) == (1, 1)
    assert 0.96 < same.low < 1
    other = estimate(bytes(128), b"\1" * 128)
    assert (other.value, other.low) == (0, 0)
    assert 0 < other.high < 0.03


@pytest.mark.parametrize(("a", "b"), [(b"", b""), (b"a", b"ab")])
def test_signatures_that_cannot_be_compared(a: bytes, b: bytes) -> None:
    with pytest.raises(SettingsError, match="cannot be compared"):
        estimate(a, b)


def test_bands_that_do_not_fit_the_signature() -> None:
    with pytest.raises(SettingsError, match="cannot be cut from 8 slots"):
        band_keys(np.zeros((1, 8), np.uint8), 3, 3)


def test_one_text_is_not_a_sequence_of_texts() -> None:
    with pytest.raises(SettingsError, match="must be a list, not one text"):
        fingerprints("text", SCHEME)


@pytest.mark.parametrize("similarity", [2, -1, float("nan"), 1.0001])
def test_numbers_that_are_no_resemblance(similarity: float) -> None:
    with pytest.raises(SettingsError, match="A resemblance lies between 0 and 1, not"):
        SCHEME.detection(similarity)
    with pytest.raises(SettingsError, match="A resemblance lies between 0 and 1, not"):
        SCHEME.candidate_probability(similarity)


@pytest.mark.parametrize("shingle", [0, -1])
def test_shingles_of_no_words(shingle: int) -> None:
    with pytest.raises(SettingsError, match="A shingle has 1 word or more, not"):
        features(["a b c"], shingle)


def test_features_are_exact_and_do_not_depend_on_the_seed() -> None:
    text = "to be or not to be that is to be or not to be"
    (found,) = features([text], 2)
    tokens = text.split()
    assert len(found) == len(set(pairwise(tokens)))
    assert (np.diff(found) > 0).all()
    counts = {fingerprints([text], Scheme(bands=1, rows=1, shingle=2, seed=s))[0].features for s in (1, 2)}
    assert counts == {len(found)}


def test_short_texts_are_equal_only_to_themselves() -> None:
    texts = ["a", "a a", "a a a", "a b", "b a", "a b c", "a a a a a", "a a a a a a"]
    found = [set(f.tolist()) for f in features(texts, 5)]
    assert [len(f) for f in found] == [1] * 8
    assert found[6] == found[7]
    assert len(set.union(*found)) == 7
