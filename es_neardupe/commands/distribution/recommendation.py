"""Recommended measure and threshold, from labelled pairs, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from es_neardupe.commands.distribution.report import Distribution, LabelCounts, LabelResults, Recommendation
from es_neardupe.index.index import Index
from es_neardupe.keys.scheme import Unit, shingle_text
from es_neardupe.options import MeasureName
from es_neardupe.similarity.measure import ALIGNED

__all__ = ["recommended"]

_FEW = 30
"""Pairs of one label below which the recommendation warns."""


def recommended(
    index: Index, distributions: Sequence[Distribution], counts: LabelCounts, threshold: float
) -> Recommendation | None:
    """The distribution with the highest cross-validated F, the first of several; None without labels.

    ``threshold``: the one to compare it with.
    """
    results = [(one, one.labels) for one in distributions if one.labels is not None]
    if not results:
        return None
    one, labels = max(results, key=lambda result: result[1].validated.f)
    sentences = _sentences(index, one, labels, counts, threshold, of=len(results))
    return Recommendation(
        measure=one.measure,
        matching=one.matching,
        shingle=one.shingle,
        unit=one.unit,
        whitespace=one.whitespace,
        threshold=labels.best.threshold,
        text=" ".join(sentences),
    )


def _sentences(
    index: Index, one: Distribution, labels: LabelResults, counts: LabelCounts, threshold: float, *, of: int
) -> Iterator[str]:
    best, validated = labels.best, labels.validated
    symbol = MeasureName(one.measure).symbol
    measure = one.title + (f" ({symbol})" if symbol else "")
    if best.f == 0:
        yield f"No threshold of {measure} recognises a pair labelled same: try other measures."
        return
    yield f"Recommended: threshold {best.threshold:g} of {measure}."
    precision = "-" if validated.precision is None else f"{validated.precision:.0%}"
    yield (
        f"{precision} of the pairs that reach it are labelled same, and {validated.recall:.0%} of the pairs labelled "
        f"same reach it: F {validated.f:.2f}{_compared(labels, threshold)}."
    )
    yield (
        f"This is the result of {validated.folds}-fold cross-validation on {counts.same + counts.different:,} labelled "
        f"pairs, {counts.same:,} of them labelled same; the thresholds of the folds are from "
        f"{validated.lowest_threshold:g} to {validated.highest_threshold:g}, their F from {validated.lowest_f:.2f} to "
        f"{validated.highest_f:.2f}."
    )
    if of > 1:
        yield f"It is the best of {of} histograms by the same labels, so F is slightly too high."
    if (fewest := min(counts.same, counts.different)) < _FEW:
        label = "same" if fewest == counts.same else "different"
        yield f"Only {fewest} pairs are labelled {label}: label more before you rely on it."
    yield from _use(index, one, best.threshold)
    if best.found < best.same:
        by_keys = one.measure == MeasureName.RESEMBLANCE.value and _as_in_the_index(index, one)
        advice = (
            f"run `es-neardupe migrate {index.name} --threshold {best.threshold:g}`"
            if by_keys
            else "lower its threshold"
        )
        yield (
            f"The keys of this index find only {best.found:,} of the {best.same:,} pairs labelled same that reach it: "
            f"{advice}."
        )


def _compared(labels: LabelResults, threshold: float) -> str:
    """The F of the threshold that was given, if it is another one."""
    (given,) = (level for level in labels.levels if level.threshold == threshold)
    other = (given.same, given.different) != (labels.best.same, labels.best.different)
    return f" ({given.f:.2f} with threshold {threshold:g})" if other else ""


def _use(index: Index, one: Distribution, threshold: float) -> Iterator[str]:
    """How to group by it."""
    if one.measure == MeasureName.ESTIMATE.value:
        yield "Estimates decide no match: use resemblance."
        return
    words = [f"--measure {one.measure}"]
    if one.measure == MeasureName.BAG.value:
        words += [f"--ngram {one.shingle}"] + ["--whitespace"] * one.whitespace
    elif one.shingle is not None and one.unit is not None and not _as_in_the_index(index, one):
        yield f"It needs an index with shingles of {shingle_text(one.shingle, one.unit)}."
        return
    if one.matching:
        words.append(f"--matching {one.matching}")
    yield f"To use it: `es-neardupe group {index.name} {' '.join(words)} --min {threshold:g}`."


def _as_in_the_index(index: Index, one: Distribution) -> bool:
    """Whether a measure has the size of shingles, or of common passages, that it has in this index."""
    shingle, unit = index.settings.shingle, index.settings.unit
    passages = MeasureName(one.measure) in ALIGNED
    return (one.shingle, one.unit) == ((unit.passage(shingle), Unit.WORD) if passages else (shingle, unit))
