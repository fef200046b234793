"""``es-neardupe bands``: bands for a threshold, their size and detection probability."""

from __future__ import annotations

from typing import Any

from es_neardupe.cli.arguments import AsJson
from es_neardupe.cli.derived import with_options_of
from es_neardupe.cli.messages import show_unrelated
from es_neardupe.cli.output import plot_curve, print_json, print_table, show, warn
from es_neardupe.commands.bands import bands as library
from es_neardupe.display_text import score_text
from es_neardupe.wording import counted


@with_options_of(library)
def bands(
    *,
    as_json: AsJson = False,
    **given: Any,
) -> None:
    """
    Examples:

      es-neardupe bands --threshold 0.6

      es-neardupe bands --preset supershingles
    """

    report = library(**given)
    if as_json:
        print_json(report)
        return
    show(
        f"{counted(report.bands, 'band')} x {counted(report.rows, 'row')} of {counted(report.permutations, 'slot')}: "
        f"{counted(report.key_bytes, 'byte')} of keys and {counted(report.permutations, 'byte')} of signature in each "
        f"document."
    )
    if report.agree > 1:
        show(f"Two documents are candidates if {report.agree} of their bands agree.")
    show(
        f"A pair exactly {report.threshold:g} similar becomes a candidate with probability "
        f"{score_text(report.detection)}."
    )
    if report.detection < report.wanted_detection:
        warn(f"That is less than --detection {report.wanted_detection:g}.")
    show_unrelated(report.unrelated)
    step = f"({report.agree}/{report.bands})^(1/{report.rows}) = {score_text(report.step)}"
    show(f"The probability rises most steeply near {step}.")
    print_table(["resemblance", "becomes a candidate with probability"], [(f"{s:.2f}", p) for s, p in report.curve])
    plot_curve(report.curve, report.threshold)
