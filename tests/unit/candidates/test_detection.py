"""Detection by measures other than the resemblance: the cases are true of texts of their lengths, and of their keys."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from itertools import product
from typing import Any

import pytest
from unit_tools import words

from es_neardupe.candidates.detection import (
    Detection,
    DetectionCase,
    TextLength,
    default_lengths,
    detection_cases,
    least_words,
    settings_by_lengths,
    unsuited_lengths,
)
from es_neardupe.index.settings import Settings
from es_neardupe.keys.fingerprint import fingerprints
from es_neardupe.keys.scheme import Scheme
from es_neardupe.keys.shingles import features
from es_neardupe.keys.unit import Unit
from es_neardupe.options import Matching, MeasureName, preset_measure
from es_neardupe.similarity.formulas import resemblance
from es_neardupe.similarity.measure import Measure

SCHEME = Scheme.for_threshold(0.8)
PAIRED = Scheme(shingle=2, bands=42, rows=3)
ORDERED = [MeasureName.CONTAINMENT, MeasureName.CONTAINMENT_LONGER, MeasureName.JACCARD, MeasureName.EDIT]
LENGTHS = [5, 6, 7, 20, 61]
PAIRS = 1000
"""Pairs of each case whose keys are compared."""


def test_detection_of_the_resemblance() -> None:
    found = Detection.of(Settings(("text",)), Measure(), 0.8, TextLength(100, 0))
    assert found == Detection(0.8, Settings(("text",)).scheme.detection(0.8), (), keys_made_for=True)


@pytest.mark.parametrize("matching", Matching)
@pytest.mark.parametrize("name", [*ORDERED, MeasureName.BAG])
def test_never_the_detection_of_the_resemblance(name: MeasureName, matching: Matching) -> None:
    measure = Measure(name, matching)
    settings = Settings(("text",))
    found = Detection.of(settings, measure, 0.8, TextLength(100, 0))
    assert (found.min, found.probability, found.keys_made_for) == (0.8, None, False)
    assert found.cases == detection_cases(measure, 0.8, settings.scheme, TextLength(100, 0))
    assert found.cases
    assert all(case.probability == settings.scheme.detection(case.resemblance) for case in found.cases)


def texts_of(shape: str, common: int, measure: Measure, number: int) -> tuple[str, str]:
    """Two texts of this shape with so many common words. Texts of different numbers have no word in common."""
    one, other = map(int, re.findall(r"\d+", shape))
    passages = 1
    if shape.startswith("changes"):
        passages = min(one - common + 1, common // measure.shingle if measure.aligned else common) or 1
    sides: list[list[str]] = []
    for mark, size in (("x", one), ("y", other)):
        own = [f"{mark}{number}n{k}" for k in range(size - common)]
        both = [f"c{number}n{k}" for k in range(common)]
        text: list[str] = []
        for place in range(passages):
            text += both[place * common // passages : (place + 1) * common // passages]
            last = place + 1 == max(passages - 1, 1)
            text += [own.pop(0) for _ in range(len(own) if last else min(1, len(own)))]
        sides.append(text)
    assert [len(text) for text in sides] == [one, other]
    return " ".join(sides[0]), " ".join(sides[1])


def similarity(measure: Measure, texts: tuple[str, str]) -> float:
    return measure.score(*measure.prepare(texts))


@cache
def common_words(shape: str, measure: Measure, minimum: float) -> int:
    """The lowest number of common words with which texts of this shape reach the minimum, by trying each."""
    shorter = min(map(int, re.findall(r"\d+", shape)))
    tried = (common for common in range(shorter + 1))
    return next(one for one in tried if similarity(measure, texts_of(shape, one, measure, 0)) >= minimum - 1e-9)


def cases() -> Iterator[tuple[Scheme, Measure, float, DetectionCase]]:
    for scheme, minima, lengths in ((SCHEME, (0.7, 0.9), LENGTHS), (PAIRED, (0.6,), [3, 9])):
        for name, minimum, length in product(ORDERED, minima, lengths):
            measure = Measure(name, shingle=scheme.shingle)
            for case in detection_cases(measure, minimum, scheme, TextLength(length, 0)):
                yield scheme, measure, minimum, case


@pytest.mark.parametrize(
    ("scheme", "measure", "minimum", "case"),
    [pytest.param(*one, id=f"{one[0].shingle} {one[1].name.value} {one[2]} {one[3].shape}") for one in cases()],
)
def test_cases_come_true(scheme: Scheme, measure: Measure, minimum: float, case: DetectionCase) -> None:
    """Texts of the stated lengths that only just reach the minimum have the stated resemblance, and their keys meet as
    often as stated: within three standard deviations, and the agreement by chance of one slot in 256."""
    common = common_words(case.shape, measure, minimum)
    resemblance = similarity(Measure(shingle=scheme.shingle), texts_of(case.shape, common, measure, 0))
    assert resemblance == pytest.approx(case.resemblance)
    pairs = (texts_of(case.shape, common, measure, number) for number in range(PAIRS))
    keys = [set(one.bands) for one in fingerprints([text for pair in pairs for text in pair], scheme)]
    met = sum(not one.isdisjoint(other) for one, other in zip(keys[::2], keys[1::2], strict=True))
    expected = case.probability, scheme.detection(case.resemblance + (1 - case.resemblance) / 256)
    low, high = (
        PAIRS * one + sign * 3 * (PAIRS * one * (1 - one)) ** 0.5 for one, sign in zip(expected, (-1, 1), strict=True)
    )
    assert low - 0.5 <= met <= high + 0.5


def test_six_words() -> None:
    """One word in six is two of three shingles: not the resemblance, and the probability, of long texts."""
    six = {one.shape: one for one in detection_cases(Measure(MeasureName.JACCARD), 0.7, SCHEME, TextLength(6, 0))}
    assert six["one passage, 6 and 6 words"].resemblance == 1 / 3
    assert six["one passage, 6 and 8 words"].probability == pytest.approx(0.223, abs=0.0005)
    (long, *_) = detection_cases(Measure(MeasureName.JACCARD), 0.7, SCHEME, TextLength(100_000, 0))
    assert long.probability == pytest.approx(0.865, abs=0.0005)


def test_lengths_that_can_reach_the_minimum() -> None:
    def shapes(name: MeasureName) -> list[str]:
        return [one.shape for one in detection_cases(Measure(name), 0.4, SCHEME, TextLength(100, 0))]

    last = "changes throughout, 100 and 100 words"
    contained = [f"one passage, 100 and {longer} words" for longer in (100, 200, 500)]
    assert shapes(MeasureName.CONTAINMENT) == [*contained, last]
    for name in set(ORDERED) - {MeasureName.CONTAINMENT}:
        assert shapes(name) == [*contained[:2], "one passage, 100 and 250 words", last]


@pytest.mark.parametrize("words_", [0, 1, 4])
def test_texts_without_a_passage_match_only_their_copies(words_: int) -> None:
    for name in set(ORDERED) - {MeasureName.EDIT}:
        assert detection_cases(Measure(name), 0.6, SCHEME, TextLength(words_, 0)) == ()
        assert similarity(Measure(name), (words(0, 4), words(0, 5))) == 0


@pytest.mark.parametrize("name", ORDERED)
def test_copies_are_always_found(name: MeasureName) -> None:
    first, *_, last = detection_cases(Measure(name), 1.0, SCHEME, TextLength(50, 0))
    assert (first.resemblance, first.probability, last.resemblance, last.probability) == (1, 1, 1, 1)


def test_supershingles() -> None:
    """Bands that must agree count."""
    scheme = Scheme(bands=6, rows=14, agree=2)
    cases = detection_cases(Measure(MeasureName.EDIT), 0.9, scheme, TextLength(300, 0))
    assert cases
    assert [case for case in cases if case.probability != scheme.detection(case.resemblance)] == []


@pytest.mark.parametrize(
    ("shingle", "unit", "threshold", "words"),
    [(5, Unit.WORD, 0.8, 49), (3, Unit.WORD, 0.7, 19), (8, Unit.WORD, 0.976, 666), (2, Unit.WORD, 0.5, 7)],
)
def test_least_words(shingle: int, unit: Unit, threshold: float, words: int) -> None:
    """A text of so many words, and a copy with another word in the middle, just reach the threshold."""
    assert least_words(shingle, unit, threshold) == words
    for number, reaches in ((words, True), (words - 1, False)):
        text = [f"w{place}" for place in range(number)]
        other = [*text[: number // 2], "new", *text[number // 2 + 1 :]]
        one, two = features([" ".join(text), " ".join(other)], shingle, unit)
        assert (resemblance(one, two) >= threshold) == reaches


@pytest.mark.parametrize(
    ("preset", "given", "lengths", "expected"),
    [
        ("strict", {}, [48] * 3 + [49] * 9, ("short", 49, 3, "reader")),
        ("strict", {}, [48] * 2 + [49] * 9, ("short", 49, 2, None)),
        ("strict", {}, [18] * 3 + [49] * 9, ("short", 49, 3, "short")),
        ("short", {}, [29] * 9 + [30] * 3, ("long", 30, 3, "reader")),
        ("short", {}, [29] * 9 + [30] * 2, ("long", 30, 2, None)),
        ("short", {}, [300] * 9, ("long", 30, 9, "strict")),
        ("short", {}, [18] * 3 + [30] * 9, ("long", 30, 9, None)),  # no preset suits both
        ("short", {"shingle": "5c"}, [300] * 9, ("long", 30, 9, "strict")),
        ("short", {"shingle": 3}, [300] * 9, None),  # chosen for longer texts
        ("logs", {}, [5] * 9, None),  # a line is a short text
        ("strict", {"mask": "all"}, [5] * 9, ("short", 49, 9, "short")),
    ],
)
def test_texts_that_do_not_suit_the_keys(
    preset: str, given: dict[str, Any], lengths: list[int], expected: tuple[object, ...] | None
) -> None:
    settings = Settings.chosen(("text",), preset=preset, measure=preset_measure(preset), **given)
    if preset == "short":
        settings = settings_by_lengths(settings, MeasureName.JACCARD, default_lengths(settings))
    found = unsuited_lengths(settings, Counter([*lengths, 0]))
    if expected is None:
        assert found is None
        return
    assert found is not None
    assert (found.too, found.words, found.unsuited, found.preset) == expected
    assert found.documents == len(lengths)


@pytest.mark.parametrize(
    ("preset", "measure", "minimum", "expected"),
    [
        ("scans", Measure(), 0.25, True),
        ("scans", Measure(), 0.2, False),
        ("strict", Measure(), 0.9, True),
        ("strict", Measure(MeasureName.EDIT), 0.9, False),
        ("reader", Measure(MeasureName.EDIT), 0.71, True),
        ("reader", Measure(MeasureName.EDIT), 0.7, False),
        ("reader", Measure(), 0.7, True),
        ("reader", Measure(), 0.69, False),
    ],
)
def test_what_keys_were_made_for(preset: str, measure: Measure, minimum: float, expected: bool) -> None:
    settings = Settings.chosen(("text",), preset=preset)
    assert Detection.of(settings, measure, minimum, TextLength(100, 0)).keys_made_for == expected
