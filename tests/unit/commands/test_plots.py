"""Plots of distributions: real files, read back."""

from __future__ import annotations

import errno
import importlib.util
import os
import re
from collections.abc import Sequence
from pathlib import Path
from xml.etree import ElementTree

import pytest

from es_neardupe.commands.distribution.plots import check_plot, draw
from es_neardupe.commands.distribution.report import (
    Distribution,
    DistributionReport,
    FactsReport,
    PresetAdvice,
    PresetTrial,
    ThresholdLevel,
)
from es_neardupe.commands.distribution.sample import EstimatedPairs
from es_neardupe.errors import InputError, SettingsError
from es_neardupe.folders import install_extra
from es_neardupe.keys.unit import Unit
from es_neardupe.similarity.histogram import EDGES, Histogram

ADVICE = PresetAdvice("strict", "It is the default.")


def report(name: str = "news", measures: Sequence[str] = ("resemblance",), *, pairs: int = 7) -> DistributionReport:
    """Figures such as an index gives."""
    counts = tuple(pairs * (50 - bin) for bin in range(50))
    sample = Histogram(1000 + sum(counts), 1000, counts, 0)
    candidates = Histogram(pairs * 3, 0, (*[0] * 48, pairs, pairs), pairs)
    levels = tuple(
        ThresholdLevel(
            step / 10,
            0.1 * step,
            pairs * (11 - step),
            9,
            4 if pairs else 0,
            3 if pairs else 0,
            pairs,
            pairs,
            EstimatedPairs(pairs * 10, pairs * 5, pairs * 20 + 1),
        )
        for step in range(3, 11)
    )
    made = [
        Distribution(one, None, 5, Unit.WORD, False, 50, sample, candidates, levels, (), (), None) for one in measures
    ]
    edges = tuple(EDGES.tolist())
    trials = (PresetTrial("strict", 1, 2, 0),)
    facts = FactsReport(0, 0, None, None, ())
    return DistributionReport(
        name, (name,), "v1-0", 0.8, 1, 100, 21, 0, 0, edges, None, None, ADVICE, trials, (), facts, tuple(made), 1.0
    )


@pytest.mark.parametrize("number", [2, *(pytest.param(one, marks=pytest.mark.long) for one in (1, 3))])
def test_png(tmp_path: Path, number: int, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.image import imread

    monkeypatch.delenv("DISPLAY", raising=False)
    file = tmp_path / "a.png"
    draw(report(measures=["resemblance", "bag", "edit"][:number]), str(file))
    pixels = imread(file)
    height, width, _ = pixels.shape
    assert width == 1440
    assert height > 400 * number
    colours = {tuple(round(255 * part) for part in colour[:3]) for colour in pixels.reshape(-1, pixels.shape[2])[::7]}
    assert {(0xD5, 0x5E, 0x00), (0x00, 0x9E, 0x73), (0x55, 0x55, 0x55)} <= colours  # candidates, groups, threshold


def text_of(file: Path) -> str:
    """All text in a plot."""
    return "\n".join(
        "".join(one.itertext()) for one in ElementTree.parse(file).iter("{http://www.w3.org/2000/svg}text")
    )


def test_svg_says_what_it_shows(tmp_path: Path) -> None:
    file = tmp_path / "a.SVG"
    draw(report(measures=["resemblance", "bag"]), str(file))
    text = text_of(file)
    for said in (
        "news: 100 documents with keys",
        "resemblance, 5 words",
        "threshold of bag, 5 words",
        "pairs (logarithmic)",
        "21 candidate pairs of the index",
        "all 9,925 pairs of 50 sampled documents",
        "threshold 0.8",
        "keys find less than 90 % of pairs here",
        "all pairs, estimated from the sample (95 %)",
        "documents of the largest group",
        "=0",
        "=1",
    ):
        assert said in text
    assert "<script" not in file.read_text("utf-8")


def test_the_same_figures_give_the_same_file(tmp_path: Path) -> None:
    one, other = tmp_path / "a.svg", tmp_path / "b.svg"
    draw(report(), str(one))
    draw(report(), str(other))
    assert one.read_bytes() == other.read_bytes()
    draw(report(pairs=5), str(other))
    assert one.read_bytes() != other.read_bytes()


@pytest.mark.parametrize("name", ["a$x^$b_{", "<b>&amp;</b>新闻-ข่าว-\u202e🙂"])
def test_an_index_may_have_any_name(tmp_path: Path, name: str) -> None:
    file = tmp_path / "a.svg"
    draw(report(name), str(file))
    draw(report(name), str(tmp_path / "a.png"))
    assert f"{name}: 100 documents with keys" in text_of(file)


def test_a_plot_without_pairs(tmp_path: Path) -> None:
    file = tmp_path / "a.svg"
    draw(report(pairs=0), str(file))
    assert "0 candidate pairs of the index" in text_of(file)


@pytest.mark.parametrize("name", ["a.pdf", "a", ".png", "png", "a.png.txt"])
def test_other_formats_are_rejected(tmp_path: Path, name: str) -> None:
    with pytest.raises(SettingsError, match=r"ends in \.png or \.svg"):
        check_plot(str(tmp_path / name))


def test_missing_folder_and_folder_as_file(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="its folder does not exist"):
        check_plot(str(tmp_path / "none" / "a.png"))
    (tmp_path / "b.png").mkdir()
    with pytest.raises(SettingsError, match="is a folder"):
        check_plot(str(tmp_path / "b.png"))


def test_without_matplotlib(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(SettingsError, match=re.escape(install_extra("plot"))):
        check_plot(str(tmp_path / "a.png"))


def test_a_file_that_cannot_be_written(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from matplotlib.figure import Figure

    with pytest.raises(SettingsError, match="File name too long"):
        check_plot(str(tmp_path / f"{'x' * 300}.png"))
    file = tmp_path / "full.png"
    file.write_bytes(b"the last picture")

    def no_room(self: Figure, place: Path, **_: object) -> None:
        place.write_bytes(b"half")
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(Figure, "savefig", no_room)
    with pytest.raises(InputError, match="cannot be written: No space left"):
        draw(report(), str(file))
    assert [one.read_bytes() for one in tmp_path.iterdir()] == [b"the last picture"]
