"""``bands``: the bands for a threshold, with their size and detection curve. Needs no server."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from es_neardupe import options

if TYPE_CHECKING:
    from es_neardupe.commands.bands.report import BandsReport


_STEPS = 20


PresetOfBands = Annotated[
    str | None,
    options.one_of(
        [name for name in options.PRESETS if options.preset_measure(name) is None],
        "--preset",
        help="Predefined settings.",
        show_default=False,
    ),
]


def bands(
    threshold: options.Threshold = None,
    *,
    preset: PresetOfBands = None,
    shingle: options.Shingle = None,
    detection: options.Detection = None,
    permutations: options.Permutations = None,
    bands: options.Bands = None,
    rows: options.Rows = None,
    agree: options.Agree = None,
) -> BandsReport:
    """Show the bands for a threshold, their size in each document, and the probability of finding a pair.

    These are the maximum number of rows, then the minimum number of bands, that find ``detection`` of the pairs exactly
    at the threshold.

    None: the default of `Settings.chosen`. Raises `SettingsError` for values out of range, or if no bands reach
    ``detection``.
    """
    from es_neardupe.candidates.unrelated import unrelated_candidates
    from es_neardupe.commands.bands.report import BandsReport
    from es_neardupe.index.settings import Settings

    settings = Settings.chosen(
        ("text",),
        preset=preset,
        threshold=threshold,
        shingle=shingle,
        detection=detection,
        permutations=permutations,
        bands=bands,
        rows=rows,
        agree=agree,
    )
    threshold, scheme = settings.threshold, settings.scheme
    similarities = [step / _STEPS for step in range(1, _STEPS + 1)]
    return BandsReport(
        threshold=threshold,
        bands=scheme.bands,
        rows=scheme.rows,
        agree=scheme.agree,
        permutations=scheme.permutations,
        key_bytes=8 * scheme.bands,
        detection=scheme.detection(threshold),
        wanted_detection=settings.detection,
        step=scheme.step,
        unrelated=unrelated_candidates(scheme, threshold),
        curve=tuple((similarity, scheme.detection(similarity)) for similarity in similarities),
    )
