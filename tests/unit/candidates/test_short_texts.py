"""Bands chosen from the lengths of short texts, against brute force: the keys of random texts with changed words."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given, reject, settings
from hypothesis import strategies as st

from es_neardupe.candidates.detection import (
    BandsByLengths,
    Changes,
    TextLength,
    bands_by_lengths,
    default_lengths,
    detection_cases,
    settings_by_lengths,
)
from es_neardupe.errors import SettingsError
from es_neardupe.index.settings import Settings
from es_neardupe.keys.fingerprint import fingerprints
from es_neardupe.keys.scheme import bands_for, choose_bands, mean_detection
from es_neardupe.keys.shingles import features
from es_neardupe.keys.unit import Unit
from es_neardupe.options import BY_LENGTHS, MeasureName, preset_measure
from es_neardupe.similarity.measure import Measure

SPECS = [1, 2, 3, "4c", "5c"]
LETTERS = "abcdefghijklmnopqrstuvwxyz"


def short(measure: MeasureName = MeasureName.JACCARD, **given: object) -> Settings:
    return Settings.chosen(("text",), preset="short", measure=measure, **given)


def word(chance: random.Random) -> str:
    return "".join(chance.choices(LETTERS, k=chance.randint(2, 9)))


def pair_at(measure: Measure, minimum: float, words: int, chance: random.Random) -> tuple[str, str] | None:
    """A random text, and the same with as many words changed in random places as ``minimum`` allows."""
    one = [word(chance) for _ in range(words)]
    for changed in range(words, 0, -1):
        other = list(one)
        for place in chance.sample(range(words), changed):
            other[place] = word(chance)
        texts = " ".join(one), " ".join(other)
        if measure.score(*measure.prepare(texts)) >= minimum:
            return texts
    return None


@settings(max_examples=8, deadline=None)
@given(
    st.lists(st.integers(1, 20), min_size=1, max_size=5),
    st.sampled_from(SPECS),
    st.sampled_from(BY_LENGTHS),
    st.sampled_from([0.6, 0.75, 0.9]),
    st.integers(0, 2**32),
)
def test_random_pairs_at_the_threshold_are_found(
    words: list[int], spec: int | str, name: MeasureName, minimum: float, seed: int
) -> None:
    """At least as often as predicted, within four standard deviations: the prediction is for the shape that shares
    fewest shingles, and random changes share more."""
    chance, given_ = random.Random(seed), short(name, threshold=minimum, shingle=spec)
    lengths = [
        TextLength(size, len(features([text], given_.shingle, given_.unit)[0]))
        for size in words
        for text in [" ".join(word(chance) for _ in range(size))]
    ]
    try:
        chosen = settings_by_lengths(given_, name, lengths)
    except SettingsError:
        reject()
    found = bands_by_lengths(chosen, name, minimum, lengths, len(lengths))
    assert found.detection >= chosen.detection
    assert (
        chosen.scheme.detection(chosen.threshold)
        >= chosen.detection
        > chosen.scheme.detection(chosen.threshold - 0.001)
    )
    measure = Measure(name, shingle=given_.shingle, unit=given_.unit)
    pairs = [pair for size in words for _ in range(20) if (pair := pair_at(measure, minimum, size, chance))]
    keys = [set(one.bands) for one in fingerprints([text for pair in pairs for text in pair], chosen.scheme)]
    met = sum(not one.isdisjoint(other) for one, other in zip(keys[::2], keys[1::2], strict=True))
    share = found.detection_by_changes["throughout"]
    assert met >= len(pairs) * share - 4 * (len(pairs) * share * (1 - share)) ** 0.5 - 1


@given(st.lists(st.floats(0.1, 1), min_size=1, max_size=6), st.floats(0.5, 0.99))
def test_bands_for_several_similarities(similarities: list[float], detection: float) -> None:
    chosen = bands_for(similarities, detection, 128)
    assert chosen is not None
    bands, rows = chosen
    mean = np.mean([1 - (1 - np.array(similarities) ** rows) ** bands])
    assert mean_detection(similarities, bands, rows) == pytest.approx(mean)
    assert mean_detection(similarities, bands, rows) >= detection
    assert bands == 1 or mean_detection(similarities, bands - 1, rows) < detection
    assert rows == 32 or mean_detection(similarities, min(128, 128 // (rows + 1)), rows + 1) < detection
    assert bands_for(similarities[:1], detection, 128) == choose_bands(similarities[0], detection, 128)


def test_the_preset() -> None:
    """Its threshold is by S_J; the stored one is the resemblance that the bands find as often."""
    given_ = short()
    assert (given_.shingle, given_.unit, given_.threshold) == (2, Unit.WORD, 0.6)
    assert preset_measure("short") is MeasureName.JACCARD
    lengths = default_lengths(given_)
    assert [one.words for one in lengths] == list(range(3, 21))
    assert [one.features for one in lengths] == list(range(2, 20))
    chosen = settings_by_lengths(given_, MeasureName.JACCARD, lengths)
    found = bands_by_lengths(chosen, MeasureName.JACCARD, 0.6, lengths, 0)
    assert isinstance(found, BandsByLengths)
    assert (found.words, found.documents, found.only_copies) == ((3, 11, 20), 0, 0)
    assert found.resemblance[0] < chosen.threshold < 0.6
    assert found.detection >= 0.99


def test_bands_of_one_row_are_for_no_texts() -> None:
    """Changes throughout a press release of 350 words leave so few common shingles that only bands of one row would
    find them, by which 15 % of all texts meet. The bands are for changes in one place, and both numbers are given."""
    given_ = short(shingle=5, threshold=0.6)
    lengths = [TextLength(350, 346)] * 3
    chosen = settings_by_lengths(given_, MeasureName.JACCARD, lengths)
    assert chosen.scheme.rows > 1
    found = bands_by_lengths(chosen, MeasureName.JACCARD, 0.6, lengths, 3)
    assert found.changes is Changes.IN_ONE_PLACE
    one_place, throughout = found.detection_by_changes.values()
    assert one_place == found.detection >= 0.99 > 0.5 > throughout
    usual = default_lengths(short())
    chosen = settings_by_lengths(short(), MeasureName.JACCARD, usual)
    assert bands_by_lengths(chosen, MeasureName.JACCARD, 0.6, usual, 0).changes is Changes.THROUGHOUT


def test_letters_of_the_default_lengths() -> None:
    """Words of five letters: 15 characters in three words, so 11 shingles of 5."""
    first, *_ = default_lengths(short(shingle="5c"))
    assert first == TextLength(3, 11)
    assert first.width(short(shingle="5c").scheme) == 5


@pytest.mark.parametrize("words", [8, 20])
def test_cases_of_character_shingles(words: int) -> None:
    """For words of equal length the stated resemblance is nearly that of such texts."""
    chance = random.Random(words)
    scheme = short(shingle="5c").scheme
    text = [f"{k:05}" for k in chance.sample(range(10**5), 3 * words)]
    one, other = text[:words], text[:words]
    common = round(0.6 * 2 * words / 1.6 + 0.49)
    other[common:] = text[words : 2 * words - common]
    measure = Measure(MeasureName.JACCARD, shingle=5, unit=Unit.CHARACTER)
    length = TextLength(words, 5 * words - 4)
    (case, *_) = detection_cases(measure, 0.6, scheme, length)
    texts = " ".join(one), " ".join(other)
    resemblance = Measure(shingle=5, unit=Unit.CHARACTER)
    assert case.resemblance == pytest.approx(resemblance.score(*resemblance.prepare(texts)), abs=0.03)


def test_too_low_a_threshold_for_any_bands() -> None:
    given_ = short(shingle=3, threshold=0.036)
    with pytest.raises(SettingsError, match="use shorter shingles, a higher threshold or more permutations"):
        settings_by_lengths(given_, MeasureName.JACCARD, [TextLength(60, 58)])
