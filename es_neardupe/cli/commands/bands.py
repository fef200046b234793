"""Commands that choose the keys: init, bands."""

from __future__ import annotations

import typer

from es_neardupe.cli.charts import plot_curve
from es_neardupe.cli.commands.init import Preset
from es_neardupe.cli.options import Agree, AsJson, Bands, Detection, Permutations, Rows, Threshold
from es_neardupe.cli.output import print_json, print_table, show, warn
from es_neardupe.commands.bands import bands as bands_

__all__ = [
    "register",
]


def bands(
    *,
    preset: Preset = None,
    threshold: Threshold = None,
    detection: Detection = None,
    permutations: Permutations = None,
    bands: Bands = None,
    rows: Rows = None,
    agree: Agree = None,
    as_json: AsJson = False,
) -> None:
    """Show which bands a threshold gets, what they cost, and what they find.

    Examples:

      es-neardupe bands --threshold 0.6

      es-neardupe bands --preset supershingles
    """
    report = bands_(
        threshold,
        preset=preset,
        detection=detection,
        permutations=permutations,
        bands=bands,
        rows=rows,
        agree=agree,
    )
    if as_json:
        print_json(report)
        return
    show(
        f"{report.bands} bands x {report.rows} rows of {report.permutations} slots: {report.key_bytes} bytes of keys "
        f"and {report.permutations} bytes of signature in each document."
    )
    if report.agree > 1:
        show(f"Two documents are candidates if {report.agree} of their bands agree.")
    show(f"A pair exactly {report.threshold:g} similar becomes a candidate with probability {report.detection:.4f}.")
    if report.detection < report.wanted_detection:
        warn(f"That is less than the detection of {report.wanted_detection:g} asked for.")
    print_table(["resemblance", "becomes a candidate with probability"], [(f"{s:.2f}", p) for s, p in report.curve])
    plot_curve(report.curve, report.threshold)


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command()(bands)
