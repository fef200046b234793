"""`bands`: the chosen bands, and the probability of a candidate; no server."""

from __future__ import annotations

from itertools import pairwise, product
from math import comb

import pytest
from bad_input import refused
from conftest import Cli
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


def test_figures_and_curve(cli: Cli) -> None:
    run = cli("bands", "--threshold", "0.5", "--json")
    assert (run.code, run.err) == (0, "")
    assert (run.json["bands"], run.json["rows"], run.json["key_bytes"]) == (35, 3, 280)
    assert run.json["step"] == pytest.approx((1 / 35) ** (1 / 3))
    shown = cli("bands")
    assert shown.code == 0
    assert "16 bands x 6 rows of 128 slots: 128 bytes of keys" in shown.out
    assert "probability 0.9923" in shown.out
    assert "rises most steeply near (1/16)^(1/6) = 0.6300." in shown.out
    assert "^ threshold 0.8" in shown.out


def test_weak_bands_are_said_to_be_weak(cli: Cli) -> None:
    run = cli("bands", "--bands", "4", "--rows", "8")
    assert run.code == 0
    assert "less than --detection 0.99" in run.err


def test_the_curve_of_supershingles(cli: Cli) -> None:
    run = cli("bands", "--preset", "supershingles", "--json")
    assert (run.code, run.err) == (0, "")
    assert {name: run.json[name] for name in ("threshold", "bands", "rows", "agree", "permutations", "key_bytes")} == {
        "threshold": 0.976,
        "bands": 6,
        "rows": 14,
        "agree": 2,
        "permutations": 84,
        "key_bytes": 48,
    }
    for similarity, probability in run.json["curve"]:
        shared = similarity**14
        assert probability == pytest.approx(
            sum(comb(6, k) * shared**k * (1 - shared) ** (6 - k) for k in range(2, 7)), abs=1e-12
        )
    shown = cli("bands", "--preset", "supershingles")
    for said in (
        "6 bands x 14 rows of 84 slots",
        "if 2 of their bands agree",
        "exactly 0.976",
        "(2/6)^(1/14)",
        "^ threshold 0.976",
    ):
        assert said in shown.out
    low = cli("bands", "--preset", "supershingles", "--threshold", "0.8")
    assert "exactly 0.8 similar becomes a candidate with probability 0.0258" in low.out
    assert "less than --detection 0.99" in low.err


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--preset", "supershingles", "--permutations", "128"], "leave out either --preset or --permutations"),
        (["--preset", "supershingles", "--agree", "1"], "has agree 2, not 1"),
        (["--preset", "default"], "'default' is not one of strict, reader, supershingles"),
        (["--agree", "2"], "agree requires bands and rows"),
    ],
)
def test_wrong_presets(cli: Cli, options: list[str], message: str) -> None:
    refused(cli("bands", *options), message, code=2)
