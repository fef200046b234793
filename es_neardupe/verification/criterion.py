"""Match criterion: the options of similar, group and pairs that decide whether a pair is a match, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from enum import Enum
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from es_neardupe.candidates.detection import DetectionCase, detection_cases, detection_of
from es_neardupe.errors import SettingsError
from es_neardupe.index import mapping
from es_neardupe.index.index import Index
from es_neardupe.index.target import mappings_of
from es_neardupe.options import DECIDING, Matching, MeasureName
from es_neardupe.similarity.features import FeatureTree, named_fields, parse_all
from es_neardupe.similarity.measure import ALIGNED, SETS, Measure
from es_neardupe.verification.common_shingles import Common, common_shingles
from es_neardupe.verification.feature_weights import frequencies

__all__ = ["Choice", "Criterion", "WeightsUsed", "check_min", "criterion"]

_E = TypeVar("_E", bound=Enum)


@dataclass(frozen=True)
class Choice:
    """The options as they were given."""

    measure: str
    matching: Matching | str | None
    min: float | None
    """Default: the threshold of the index."""
    max: float
    features: Sequence[str]
    ngram: int | None
    whitespace: bool
    renew: bool
    ignore_common: float | None = None
    """Shingles that more than this share of the documents have do not count."""


@dataclass(frozen=True)
class WeightsUsed:
    """The sample that the weights of features are from."""

    documents: int
    at: str


@dataclass(frozen=True)
class Criterion:
    """A pair is a match if its measure lies between ``min`` and ``max``, both included."""

    measure: Measure
    min: float
    max: float
    detection: float | None
    """Probability that a pair exactly ``min`` similar is a candidate; None where the measure does not decide that."""
    detection_cases: tuple[DetectionCase, ...]
    """In that case, for some kinds of pairs."""
    weights: WeightsUsed | None
    common: Common | None = None
    """The shingles that do not count."""

    def fits(self, similarity: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which of the similarities are matches; NaN is none."""
        return (similarity >= self.min) & (similarity <= self.max)

    @property
    def copies_fit(self) -> bool:
        """Whether exact copies match each other without being compared."""
        return self.measure.copies_are_equal and self.max >= 1


def criterion(index: Index, choice: Choice) -> Criterion:
    """Check the options and put them together.

    Raises `SettingsError` for what is out of range, unknown, or would have no effect on the chosen measure.
    """
    name = _one_of(choice.measure, DECIDING, "measure")
    settings = index.settings
    least = _check_range(settings.threshold if choice.min is None else choice.min, choice.max)
    sources = parse_all(choice.features)
    _check_fields(index, sources)
    _check_effect(name, choice)
    weights = None
    if name is MeasureName.WEIGHTED:
        sets = Measure(shingle=settings.shingle, sources=sources)
        weights = frequencies(index, sets, renew=choice.renew)
    share = choice.ignore_common
    common = None if share is None else common_shingles(index, share, renew=choice.renew)
    chosen = Measure(
        name,
        _one_of(choice.matching or Matching.LITERAL, tuple(Matching), "matching"),
        shingle=settings.shingle,
        ngram=1 if choice.ngram is None else choice.ngram,
        weights=weights.weights if weights else None,
        whitespace=choice.whitespace,
        sources=sources,
        ignored=common.ignored if common else None,
    )
    return Criterion(
        chosen,
        least,
        choice.max,
        detection_of(chosen, least, settings.scheme),
        detection_cases(chosen, least, settings.scheme),
        WeightsUsed(weights.weights.documents, weights.at) if weights else None,
        common,
    )


def _one_of(value: str, known: tuple[_E, ...], what: str) -> _E:
    found = next((one for one in known if one.value == value), None)
    if found is None:
        names = ", ".join(str(one.value) for one in known)
        raise SettingsError(f"There is no {what} {str(value)!r} to decide by. Known: {names}.")
    return found


def check_min(least: float) -> float:
    """Raises `SettingsError` unless the wanted similarity lies in (0, 1]."""
    if not 0 < least <= 1:
        raise SettingsError(f"`min` must lie in (0, 1], not {least}.")
    return least


def _check_range(least: float, most: float) -> float:
    check_min(least)
    if not 0 < most <= 1:
        raise SettingsError(f"`max` must lie in (0, 1], not {most}.")
    if least > most:
        raise SettingsError(f"`min` {least:g} is above `max` {most:g}: no pair lies between them.")
    return least


def _check_effect(name: MeasureName, choice: Choice) -> None:
    """Raises `SettingsError` for an option that the measure does not know."""
    of_grams = choice.ngram is not None or choice.whitespace
    if choice.matching is not None and name not in ALIGNED:
        raise SettingsError(f"`matching` is for {', '.join(one.value for one in ALIGNED)}, not for {name.value}.")
    if of_grams and name is not MeasureName.BAG:
        raise SettingsError(f"`ngram` and `whitespace` are for bag, not for {name.value}.")
    if of_grams and choice.features:
        raise SettingsError("A bag has either the n-grams of `ngram` and `whitespace`, or those of `features`.")
    if choice.ignore_common is not None and (name not in SETS or choice.features):
        what = f"{name.value} of other features" if name in SETS else name.value
        raise SettingsError(
            f"`ignore_common` is for {' and '.join(one.value for one in SETS)} of shingles, not for {what}."
        )
    if choice.renew and name is not MeasureName.WEIGHTED and choice.ignore_common is None:
        raise SettingsError(f"`renew` is for weighted and `ignore_common`: {name.value} alone needs no frequencies.")


def _check_fields(index: Index, sources: Sequence[FeatureTree]) -> None:
    """Raises `SettingsError` for a field whose values are not in the documents of any index."""
    named = named_fields(sources)
    if not named:
        return
    known = mapping.value_fields(mappings_of(index.client, index.path).values(), index.settings.prefix)
    for name in named:
        if name not in known:
            raise SettingsError(f"There are no values of a field {name!r} to compare. Fields: {', '.join(known)}.")
