"""The bands that `bands` chooses and their curve, against their definitions."""

from __future__ import annotations

from itertools import pairwise, product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from es_neardupe.commands.bands import bands
from es_neardupe.errors import SettingsError
from es_neardupe.keys.scheme import Scheme


@pytest.mark.parametrize(
    ("threshold", "shape", "detection"),
    [(0.8, (16, 6), 0.9923), (0.5, (35, 3), 0.9907), (1.0, (1, 32), 1.0), (0.9, (11, 10), 0.9911)],
)
def test_chosen_bands(threshold: float, shape: tuple[int, int], detection: float) -> None:
    report = bands(threshold)
    assert (report.bands, report.rows) == shape
    assert report.detection == pytest.approx(1 - (1 - threshold ** shape[1]) ** shape[0], abs=1e-12)
    assert report.detection == pytest.approx(detection, abs=6e-5)
    assert report.key_bytes == 8 * shape[0]
    assert (report.threshold, report.permutations, report.wanted_detection) == (threshold, 128, 0.99)


@given(st.floats(0.3, 1), st.floats(0.5, 0.99))
def test_most_rows_then_fewest_bands(threshold: float, detection: float) -> None:
    report = bands(threshold, detection=detection)

    def reaches(b: int, r: int) -> bool:
        return 1 - (1 - threshold**r) ** b >= detection

    every = [(b, r) for b, r in product(range(1, 129), range(1, 33)) if b * r <= 128 and reaches(b, r)]
    assert (report.bands, report.rows) == min(every, key=lambda shape: (-shape[1], shape[0]))


def test_curve() -> None:
    report = bands(0.8)
    assert [similarity for similarity, _ in report.curve] == pytest.approx([k / 20 for k in range(1, 21)])
    for similarity, probability in report.curve:
        assert probability == pytest.approx(1 - (1 - similarity**6) ** 16)
    assert report.curve[-1] == (1.0, 1.0)


@pytest.mark.parametrize(("b", "r", "agree"), [(16, 6, 1), (35, 3, 1), (9, 13, 1), (1, 32, 1), (6, 14, 2), (4, 8, 4)])
def test_step(b: int, r: int, agree: int) -> None:
    """The step is near the steepest place of the curve, and there pairs share `agree` bands on average."""
    report = bands(0.8, bands=b, rows=r, agree=agree, permutations=b * r)
    if agree == 1:
        assert report.step == pytest.approx((1 / b) ** (1 / r))
    assert b * report.step**r == pytest.approx(agree)
    scheme = Scheme(bands=b, rows=r, agree=agree, permutations=b * r)
    places = [k / 1000 for k in range(1001)]
    slopes = {s: scheme.detection(t) - scheme.detection(s) for s, t in pairwise(places)}
    steepest = max(slopes, key=slopes.__getitem__)
    assert steepest == pytest.approx(
        ((agree * r - 1) / (b * r - 1)) ** (1 / r), abs=2e-3
    )  # where the slope is greatest
    assert report.step == pytest.approx(steepest, abs=0.04)


def test_bands_by_hand() -> None:
    report = bands(0.8, bands=4, rows=8)
    assert (report.bands, report.rows) == (4, 8)
    assert report.detection < report.wanted_detection
    with pytest.raises(SettingsError, match="136"):
        bands(0.8, bands=17, rows=8)
    with pytest.raises(SettingsError):
        bands(0.01)
