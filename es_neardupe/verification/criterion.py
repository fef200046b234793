"""Match criterion: the options of similar, group and pairs that decide whether a pair is a match, checked."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any, TypeVar

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
from es_neardupe.verification.common_shingles import CommonShingles, common_shingles
from es_neardupe.verification.feature_weights import frequencies

__all__ = ["MatchCriterion", "MatchOptions", "WeightsUsed", "check_min", "criterion"]

_E = TypeVar("_E", bound=Enum)


@dataclass(frozen=True)
class MatchOptions:
    """The options that decide what a match is, as they were given."""

    measure: MeasureName = MeasureName.RESEMBLANCE
    matching: Matching | None = None
    """Default: literal."""
    min: float | None = None
    """Default: the threshold of the index."""
    max: float = 1.0
    features: tuple[str, ...] = ()
    ngram: int | None = None
    """Default: 1."""
    whitespace: bool = False
    ignore_common: float | None = None
    """Shingles that more than this share of the documents have do not count."""

    def having(
        self,
        *,
        measure: str | None = None,
        matching: Matching | str | None = None,
        min: float | None = None,
        max: float | None = None,
        features: Sequence[str] | None = None,
        ngram: int | None = None,
        whitespace: bool | None = None,
        ignore_common: float | None = None,
    ) -> MatchOptions:
        """These options with others in the place of some; None: as it is. Raises `SettingsError` for unknown names."""
        if features is not None:
            parse_all(features)
        given = {
            "measure": None if measure is None else _one_of(measure, DECIDING, "measure"),
            "matching": None if matching is None else _one_of(matching, tuple(Matching), "matching"),
            "min": min,
            "max": max,
            "features": None if features is None else tuple(features),
            "ngram": ngram,
            "whitespace": whitespace,
            "ignore_common": ignore_common,
        }
        changes: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
        return replace(self, **changes)

    @property
    def by_resemblance(self) -> bool:
        """Whether the measure is the resemblance that the keys are made for."""
        return self.measure is MeasureName.RESEMBLANCE and not self.features and self.ignore_common is None


@dataclass(frozen=True)
class WeightsUsed:
    """The sample that the weights of features are from."""

    documents: int
    at: str


@dataclass(frozen=True)
class MatchCriterion:
    """A pair is a match if its measure lies between ``min`` and ``max``, both included."""

    measure: Measure
    min: float
    max: float
    detection: float | None
    """Probability that a pair exactly ``min`` similar is a candidate; None where the measure does not decide that."""
    detection_cases: tuple[DetectionCase, ...]
    """In that case, for some kinds of pairs."""
    weights: WeightsUsed | None
    common: CommonShingles | None = None
    """The shingles that do not count."""

    def matches(self, similarity: NDArray[np.float64]) -> NDArray[np.bool_]:
        """Which of the similarities are matches; NaN is none."""
        return (similarity >= self.min) & (similarity <= self.max)

    @property
    def copies_fit(self) -> bool:
        """Whether exact copies match each other without being compared."""
        return self.measure.copies_are_equal and self.max >= 1


def criterion(index: Index, options: MatchOptions, *, renew: bool = False) -> MatchCriterion:
    """Check the options and put them together; ``renew`` counts the frequencies of features again.

    Raises `SettingsError` for what is out of range, unknown, or would have no effect on the chosen measure.
    """
    name, settings = options.measure, index.settings
    minimum = _check_range(settings.threshold if options.min is None else options.min, options.max)
    sources = parse_all(options.features)
    _check_fields(index, sources)
    _check_effect(options, renew)
    weights = None
    if name is MeasureName.WEIGHTED:
        sets = Measure(shingle=settings.shingle, sources=sources)
        weights = frequencies(index, sets, renew=renew)
    share = options.ignore_common
    common = None if share is None else common_shingles(index, share, renew=renew)
    chosen = Measure(
        name,
        options.matching or Matching.LITERAL,
        shingle=settings.shingle,
        ngram=1 if options.ngram is None else options.ngram,
        weights=weights.weights if weights else None,
        whitespace=options.whitespace,
        sources=sources,
        ignored=common.ignored if common else None,
    )
    return MatchCriterion(
        chosen,
        minimum,
        options.max,
        detection_of(chosen, minimum, settings.scheme),
        detection_cases(chosen, minimum, settings.scheme),
        WeightsUsed(weights.weights.documents, weights.at) if weights else None,
        common,
    )


def _one_of(value: str, known: tuple[_E, ...], what: str) -> _E:
    found = next((one for one in known if one.value == value), None)
    if found is None:
        names = ", ".join(str(one.value) for one in known)
        raise SettingsError(f"There is no {what} {str(value)!r} to decide by. Known: {names}.")
    return found


def check_min(minimum: float) -> float:
    """Raises `SettingsError` unless the wanted similarity lies in (0, 1]."""
    if not 0 < minimum <= 1:
        raise SettingsError(f"`min` must lie in (0, 1], not {minimum}.")
    return minimum


def _check_range(minimum: float, maximum: float) -> float:
    check_min(minimum)
    if not 0 < maximum <= 1:
        raise SettingsError(f"`max` must lie in (0, 1], not {maximum}.")
    if minimum > maximum:
        raise SettingsError(f"`min` {minimum:g} is above `max` {maximum:g}: no pair lies between them.")
    return minimum


def _check_effect(options: MatchOptions, renew: bool) -> None:
    """Raises `SettingsError` for an option that the measure does not know."""
    name = options.measure
    of_grams = options.ngram is not None or options.whitespace
    if options.matching is not None and name not in ALIGNED:
        raise SettingsError(f"`matching` is for {', '.join(one.value for one in ALIGNED)}, not for {name.value}.")
    if of_grams and name is not MeasureName.BAG:
        raise SettingsError(f"`ngram` and `whitespace` are for bag, not for {name.value}.")
    if of_grams and options.features:
        raise SettingsError("A bag has either the n-grams of `ngram` and `whitespace`, or those of `features`.")
    if options.ignore_common is not None and (name not in SETS or options.features):
        what = f"{name.value} of other features" if name in SETS else name.value
        raise SettingsError(
            f"`ignore_common` is for {' and '.join(one.value for one in SETS)} of shingles, not for {what}."
        )
    if renew and name is not MeasureName.WEIGHTED and options.ignore_common is None:
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
