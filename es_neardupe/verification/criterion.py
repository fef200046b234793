"""Match criterion: decides whether a pair is a match; built from the checked options of similar, group and pairs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from es_neardupe.candidates.memory_limit import MemoryLimit
from es_neardupe.errors import SettingsError
from es_neardupe.index import mapping
from es_neardupe.index.index import Index
from es_neardupe.keys.arrays import Flags, Floats
from es_neardupe.options import FactKind, Matching, MeasureName
from es_neardupe.progress import Progress, silent
from es_neardupe.similarity.features import FeatureTree, named_fields, parse_all
from es_neardupe.similarity.measure import ALIGNED, SETS, Measure
from es_neardupe.verification.match_rules import FACTS_OF_LOGS, MatchRules, WeightsUsed
from es_neardupe.wording import option

if TYPE_CHECKING:
    from es_neardupe.verification.common_shingles import CommonShingles


@dataclass(frozen=True)
class MatchCriterion:
    """A pair is a match if its similarity lies between ``min`` and ``max``, both included."""

    measure: Measure
    min: float
    max: float
    weights: WeightsUsed | None
    common: CommonShingles | None = None
    """The ignored shingles."""
    facts: frozenset[FactKind] = frozenset()
    """Texts that differ in facts of these kinds do not match."""
    only_places: bool = False
    """Whether the only numbers of the texts are those of places in source code, and others are masked."""

    def matches(self, similarity: Floats) -> Flags:
        """Whether each similarity is a match; False for NaN."""
        return (similarity >= self.min) & (similarity <= self.max)

    @property
    def copies_match(self) -> bool:
        """Whether exact copies match without being compared."""
        return self.measure.copies_are_equal and self.max >= 1

    @property
    def one_for_all_copies(self) -> bool:
        """Whether a document stands for all with the same content hash."""
        return self.measure.copies_are_equal and not self.signs_decide

    @property
    def signs_decide(self) -> bool:
        """Whether documents with the same content hash may differ in facts, by their signs: ``$5`` and ``€5``. The
        numbers of places in source code have no signs, and those for yes and no do not decide by default."""
        return bool(self.facts) and not (self.only_places and self.facts == {*map(FactKind, FACTS_OF_LOGS)})


def match_criterion(
    index: Index,
    options: MatchRules,
    *,
    renew: bool = False,
    limit: MemoryLimit | None = None,
    progress: Progress = silent,
) -> MatchCriterion:
    """The criterion of these options in an index. ``renew`` recomputes the feature frequencies, and finds the common
    shingles again, within the ``limit``.

    Raises `SettingsError` for values out of range, unknown fields, and options without effect on the measure.
    """
    name, settings = options.measure, index.settings
    minimum = _check_range(settings.threshold_of(name) if options.min is None else options.min, options.max)
    sources = parse_all(options.features)
    _check_fields(index, sources)
    _check_effect(options, renew)
    weights = None
    if name is MeasureName.WEIGHTED:
        from es_neardupe.verification.feature_weights import frequencies

        sets = Measure(shingle=settings.shingle, unit=settings.unit, sources=sources)
        weights = frequencies(index, sets, renew=renew)
    share = options.ignore_common
    common = None
    if share is not None:
        from es_neardupe.verification.common_shingles import common_shingles  # which reads all keys and compares texts

        lowest = min(minimum, settings.threshold)
        common = common_shingles(index, share, lowest, renew=renew, limit=limit, progress=progress)
    measure = Measure(
        name,
        options.matching or Matching.LITERAL,
        shingle=settings.shingle,
        unit=settings.unit,
        ngram=1 if options.ngram is None else options.ngram,
        weights=weights.weights if weights else None,
        whitespace=options.whitespace,
        sources=sources,
        ignored=common.ignored if common else None,
        min_words=options.passage,
    )
    return MatchCriterion(
        measure,
        minimum,
        options.max,
        WeightsUsed(weights.weights.documents, weights.at) if weights else None,
        common,
        frozenset(map(FactKind, options.facts)),
        settings.scheme.preparation.keeps_only_places,
    )


def check_min(minimum: float) -> float:
    """The minimum similarity. Raises `SettingsError` unless it lies in (0, 1]."""
    if not 0 < minimum <= 1:
        percent = f": write {minimum / 100:g} for {minimum:g} %" if 1 < minimum <= 100 else ""
        raise SettingsError(f"{option('min')} must lie in (0, 1], not {minimum}{percent}.")
    return minimum


def _check_range(minimum: float, maximum: float) -> float:
    check_min(minimum)
    if not 0 < maximum <= 1:
        raise SettingsError(f"{option('max')} must lie in (0, 1], not {maximum}.")
    if minimum > maximum:
        raise SettingsError(f"{option('min')} {minimum:g} is greater than {option('max')} {maximum:g}.")
    return minimum


def _check_effect(options: MatchRules, renew: bool) -> None:
    """Raises `SettingsError` for an option that has no effect on the measure."""
    name = options.measure
    grams = options.ngram is not None or options.whitespace
    if (options.matching is not None or options.passage is not None) and name not in ALIGNED:
        known = ", ".join(one.value for one in ALIGNED)
        raise SettingsError(f"{option('matching')} and {option('passage')} are for {known}, not for {name.value}.")
    if grams and name is not MeasureName.BAG:
        raise SettingsError(f"{option('ngram')} and {option('whitespace')} are for bag, not for {name.value}.")
    if grams and options.features:
        raise SettingsError(
            f"A bag has either the n-grams of {option('ngram')} and {option('whitespace')}, or those of "
            f"{option('features')}."
        )
    if options.ignore_common is not None and (name not in SETS or options.features):
        what = f"{name.value} of other features" if name in SETS else name.value
        raise SettingsError(
            f"{option('ignore_common')} is for {' and '.join(one.value for one in SETS)} of shingles, not for {what}."
        )
    if renew and name is not MeasureName.WEIGHTED and options.ignore_common is None:
        raise SettingsError(
            f"{option('renew')} computes the frequencies of shingles again, and {name.value} uses none."
        )


def _check_fields(index: Index, sources: Sequence[FeatureTree]) -> None:
    """Raises `SettingsError` for a field without values in the documents of any of the indices."""
    named = named_fields(sources)
    if not named:
        return
    known = mapping.value_fields(index.target.mappings.values(), index.settings.prefix)
    for name in named:
        if name not in known:
            raise SettingsError(f"No field {name!r} with values to compare. Available: {', '.join(known)}.")
