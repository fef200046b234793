"""Every preset tried on a sample: the pairs that its rule matches, and those that only boilerplate holds together."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from es_neardupe.candidates.pair_arrays import components
from es_neardupe.commands.distribution.report import PresetTrial
from es_neardupe.index.settings import Settings
from es_neardupe.keys.arrays import Positions
from es_neardupe.keys.prepare.preparation import Preparation
from es_neardupe.keys.unit import shingle_of
from es_neardupe.options import PRESETS, MeasureName
from es_neardupe.progress import Progress, silent, tracked
from es_neardupe.similarity.boilerplate import boilerplate_of
from es_neardupe.similarity.measure import Measure, all_pairs
from es_neardupe.verification.boilerplate import MEMBERS, evenly_spread, largest_clusters

_TEXTS = 1000
"""Maximum number of texts that are compared with each other: half a million pairs for each preset."""

_CHARACTERS = 1_000_000
"""Maximum number of characters of all of them."""

_OF_ONE = 100_000
"""Maximum number of characters of a text."""

_FOUND = 0.5
"""Probability of being found by the keys from which a pair counts."""


def bounded(texts: Sequence[str]) -> list[str]:
    """The first texts, as many as are compared with each other."""
    shortened = [one[:_OF_ONE] for one in texts[:_TEXTS]]
    ends = np.cumsum([len(one) for one in shortened])
    return shortened[: int(np.searchsorted(ends, _CHARACTERS, side="right"))]


def tried(texts: Sequence[str], progress: Progress = silent) -> tuple[PresetTrial, ...]:
    """Each preset on these texts."""
    return tuple(_tried(name, texts) for name in tracked(PRESETS, progress, "presets", len(PRESETS), step=1))


def _tried(name: str, texts: Sequence[str]) -> PresetTrial:
    preset = PRESETS[name]
    masks = preset.get("mask", ())
    prepared = Preparation(masks=masks).texts(texts)
    left, right = matches(name, prepared)
    # what is left of masked texts is the template that they are meant to be grouped by
    clusters = [] if masks else largest_clusters(components(len(texts), left, right))
    return PresetTrial(
        preset=name,
        pairs=len(left),
        documents=len(np.union1d(left, right)),
        held=sum(len(members) for members in clusters if boilerplate_among(prepared, members) is not None),
    )


def boilerplate_among(texts: Sequence[str], members: Positions) -> list[str] | None:
    """The passages that hold a cluster together, if only boilerplate does."""
    different = list(dict.fromkeys(texts[one] for one in members.tolist()))
    if len(different) < MEMBERS:
        return None
    return boilerplate_of([different[one] for one in evenly_spread(np.arange(len(different)))])


def matches(name: str, texts: Sequence[str]) -> tuple[Positions, Positions]:
    """The pairs that the keys of a preset probably find and that its measure matches."""
    preset = PRESETS[name]
    shingle, unit = shingle_of(preset["shingle"])
    measure = preset.get("measure", MeasureName.RESEMBLANCE)
    minimum = preset.get("min", preset["threshold"])
    if measure is MeasureName.RESEMBLANCE:
        return _reaching(Measure(shingle=shingle, unit=unit), texts, minimum)
    if "min" in preset:  # the measure decides on what keys by resemblance find
        scheme = Settings.chosen(("text",), preset=name).scheme
        found = next(one / 100 for one in range(101) if scheme.detection(one / 100) >= _FOUND)
        left, right = _reaching(Measure(shingle=shingle, unit=unit), texts, found)
    else:  # two texts have at most as many words in common passages as in their bags
        left, right = _reaching(Measure(MeasureName.BAG), texts, minimum)
    decides = Measure(measure, shingle=shingle, unit=unit)
    reached = decides.scores(decides.prepare(texts), left, right) >= minimum
    return left[reached], right[reached]


def _reaching(measure: Measure, texts: Sequence[str], minimum: float) -> tuple[Positions, Positions]:
    """All pairs of at least this similarity."""
    found = [np.zeros((2, 0), np.intp)]
    for left, right, similarity in all_pairs(measure, measure.prepare(texts)):
        found.append(np.stack((left, right))[:, similarity >= minimum])
    left, right = np.concatenate(found, axis=1)
    return left, right
