"""Plots of distributions, drawn by matplotlib (extra ``plot``)."""

from __future__ import annotations

import importlib.util
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from es_neardupe.commands.distribution.report import Distribution, DistributionReport
from es_neardupe.errors import InputError, SettingsError
from es_neardupe.folders import install_extra, replaced
from es_neardupe.similarity.histogram import Histogram
from es_neardupe.wording import counted, option

if TYPE_CHECKING:
    from matplotlib.axes import Axes


_SUFFIXES = (".png", ".svg")

# Colours that colour-blind people can distinguish (Okabe & Ito 2008), and greys.
_BLUE, _ORANGE, _GREEN, _PURPLE, _RED = "#0072B2", "#E69F00", "#009E73", "#CC79A7", "#D55E00"
_GREY, _LIGHT = "#555555", "#DDDDDD"

_STYLE: Any = {
    "font.size": 9,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "svg.fonttype": "none",  # store text as text
    "svg.hashsalt": "es-neardupe",  # the same numbers give the same file
}

_LEGEND: Any = {"fontsize": 8, "edgecolor": "none", "framealpha": 0.9}

_ASIDE = 0.03
"""Distance of the bars for exactly 0 and exactly 1 from 0 and 1."""


def check_plot(file: str) -> None:
    """Check, before the run, that a plot can be written to a file. Raises `SettingsError`."""
    path = Path(file)
    if path.suffix.lower() not in _SUFFIXES:
        raise SettingsError(f"{option('plot')} must be a file that ends in {' or '.join(_SUFFIXES)}, not {file!r}.")
    try:
        folder, taken = path.parent.is_dir(), path.is_dir()
    except OSError as error:
        raise SettingsError(f"{option('plot')} cannot write {file!r}: {error.strerror}.") from error
    if not folder:
        raise SettingsError(f"{option('plot')} cannot write {file!r}: its folder does not exist.")
    if taken:
        raise SettingsError(f"{option('plot')} cannot write {file!r}: it is a folder.")
    if importlib.util.find_spec("matplotlib") is None:
        raise SettingsError(f"{option('plot')} needs matplotlib: {install_extra('plot')}")


def draw(report: DistributionReport, file: str) -> None:
    """Draw one row for each distribution: the histogram, and the results of each threshold. Replaces the file.

    Raises `SettingsError` as `check_plot` does, `InputError` if the file cannot be written.
    """
    check_plot(file)
    from matplotlib import rc_context
    from matplotlib.figure import Figure

    rows = len(report.distributions)
    with rc_context(_STYLE), warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Glyph .* missing from font")  # an index may have any name
        figure = Figure(figsize=(12, 0.6 + 3.6 * rows), layout="constrained")
        figure.suptitle(
            f"{report.index}: {counted(report.documents, 'document with keys', 'documents with keys')}",
            parse_math=False,
        )
        axes = figure.subplots(rows, 2, squeeze=False)
        for one, (left, right) in zip(report.distributions, axes, strict=True):
            _draw_histogram(left, one, report)
            _draw_levels(right, one, report)
        try:
            kind = Path(file).suffix.lower().removeprefix(".")
            with replaced(Path(file)) as draft:
                figure.savefig(draft, format=kind, dpi=120, metadata={"Date": None} if kind == "svg" else None)
        except OSError as error:
            raise InputError(f"The plot {file!r} cannot be written: {error.strerror}.") from error


def _draw_histogram(axes: Axes, one: Distribution, report: DistributionReport) -> None:
    sample = f"all {counted(one.sample.pairs, 'pair')} of {counted(one.sampled, 'sampled document')}"
    candidates = f"{counted(one.candidates.pairs, 'candidate pair')} of the index"
    _bars(axes, one.sample, report.edges, label=sample, color=_BLUE, alpha=0.5, fill=True)
    _bars(axes, one.candidates, report.edges, label=candidates, color=_RED, linewidth=1.5)
    axes.axvline(report.threshold, color=_GREY, linestyle="--", linewidth=1.2, label=f"threshold {report.threshold:g}")
    axes.set_yscale("log")
    axes.set_ylim(bottom=0.6)
    axes.set_xlim(-2 * _ASIDE, 1 + 2 * _ASIDE)
    axes.set_xticks([-_ASIDE, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1 + _ASIDE])
    axes.set_xticklabels(["=0", *(f"{tick / 10:g}" for tick in range(1, 10)), "=1"])
    axes.set_xlabel(one.title)
    axes.set_ylabel("pairs (logarithmic)")
    axes.legend(loc="upper right", **_LEGEND)


def _bars(axes: Axes, histogram: Histogram, edges: tuple[float, ...], *, label: str, **style: Any) -> None:
    """Draw the bins as one outline, and exactly 0 and exactly 1 as separate bars."""
    axes.stairs(histogram.counts, edges, baseline=0.5, label=label, **style)
    for place, count in ((-_ASIDE, histogram.zero), (1 + _ASIDE, histogram.one)):
        axes.stairs([count], [place - _ASIDE / 2, place + _ASIDE / 2], baseline=0.5, **style)


def _draw_levels(axes: Axes, one: Distribution, report: DistributionReport) -> None:
    at = np.array([level.threshold for level in one.levels])
    expected = np.array([(level.expected.pairs, level.expected.low, level.expected.high) for level in one.levels])
    known = expected[:, 0] > 0
    ends = np.abs(expected[known, 1:].T - expected[known, 0])
    axes.errorbar(
        at[known], expected[known, 0], ends, fmt="s", markersize=4, color=_BLUE, capsize=3, linewidth=1,
        label="all pairs, estimated from the sample (95 %)",
    )  # fmt: skip
    lines = (
        ("pairs", "pairs found", _RED, "o-"),
        ("documents", "documents in them", _ORANGE, "^-"),
        ("groups", "groups", _GREEN, "v-"),
        ("largest", "documents of the largest group", _PURPLE, "d-"),
    )
    for name, label, colour, style in lines:
        values = np.array([getattr(level, name) for level in one.levels], np.float64)
        values[values == 0] = np.nan  # not shown on a logarithmic axis
        axes.plot(at, values, style, color=colour, markersize=4, linewidth=1.2, label=label)
    _shade_unreliable(axes, one)
    axes.axvline(report.threshold, color=_GREY, linestyle="--", linewidth=1.2)
    axes.set_yscale("log")
    axes.set_ylim(bottom=0.6)
    axes.set_xlabel(f"threshold of {one.title}")
    axes.set_ylabel("number (logarithmic)")
    axes.legend(**_LEGEND)


def _shade_unreliable(axes: Axes, one: Distribution) -> None:
    """Shade the thresholds at which the bands find fewer than 90 % of the pairs."""
    unreliable = [level.threshold for level in one.levels if level.detection is not None and level.detection < 0.9]
    if unreliable:
        axes.axvspan(
            min(unreliable) - 0.02, max(unreliable) + 0.02, color=_LIGHT, alpha=0.6, linewidth=0,
            label="keys find less than 90 % of pairs here",
        )  # fmt: skip
