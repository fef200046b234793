"""Recommended measure and threshold, from labelled pairs, and the preset that suits the texts, in words."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from es_neardupe.commands.distribution.report import (
    Distribution,
    LabelCounts,
    LabelsReport,
    PresetAdvice,
    Recommendation,
)
from es_neardupe.index.index import Index
from es_neardupe.keys.scheme import Scheme
from es_neardupe.keys.unit import Unit, shingle_text
from es_neardupe.options import PRESETS, MeasureName
from es_neardupe.similarity.histogram import EDGES, Histogram
from es_neardupe.similarity.measure import ALIGNED
from es_neardupe.wording import command, counted

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


_LONG = 500
"""Median number of words from which texts are long."""

_NEARLY_IDENTICAL = 0.96
"""Resemblance of pairs for supershingles."""

_MOST = 0.95
"""Minimum share of such pairs for supershingles."""

_REVISED = 0.6
"""Resemblance of 5-word shingles below which few pairs reach the threshold of the preset reader."""

_MANY = 0.25
"""Minimum share of pairs between `_REVISED` and the threshold of the preset strict for reader."""


def preset_advice(index: Index, distributions: Sequence[Distribution], median: int) -> PresetAdvice:
    """The preset for texts of this median number of words: by their length, if one changed word takes them below the
    threshold of a preset; otherwise by the candidate pairs, if these were compared by the resemblance of 5-word
    shingles, and the keys of the index are made of these."""
    for preset, shorter in (("reader", "short"), ("strict", "reader")):
        if (share := _after_one_word(median, preset)) < PRESETS[preset]["threshold"]:
            return PresetAdvice(
                shorter,
                f"The median text has {counted(median, 'word')}. If one word in the middle changes, {share:.2f} of its "
                f"{PRESETS[preset]['shingle']}-word shingles are the same, less than the threshold "
                f"{PRESETS[preset]['threshold']:g} of the preset {preset}.",
            )
    for one in distributions:
        size = (one.shingle, one.unit) == (PRESETS["strict"]["shingle"], Unit.WORD)
        if one.measure == MeasureName.RESEMBLANCE.value and size and _as_in_the_index(index, one):
            return _by_pairs(index.settings.scheme, one.candidates, median)
    return PresetAdvice(
        "strict", f"It is the default, and texts of {counted(median, 'word')} (the median) are long enough for it."
    )


def _by_pairs(scheme: Scheme, pairs: Histogram, median: int) -> PresetAdvice:
    """The preset by the similarities of the candidate pairs. Those that the keys miss are added by the detection."""
    strict = PRESETS["strict"]["threshold"]
    middles = [(low + high) / 2 for low, high in zip(EDGES[:-1].tolist(), EDGES[1:].tolist(), strict=True)]
    numbers = {
        middle: number / max(scheme.detection(middle), 0.01)
        for middle, number in zip(middles, pairs.counts, strict=True)
        if middle > _REVISED
    }
    everything = sum(numbers.values()) + pairs.one
    if not everything:
        return PresetAdvice("strict", f"It is the default: no pair has a resemblance of {_REVISED:g} or more.")
    identical = (
        sum(number for middle, number in numbers.items() if middle > _NEARLY_IDENTICAL) + pairs.one
    ) / everything
    revised = sum(number for middle, number in numbers.items() if middle < strict) / everything
    if median >= _LONG and identical >= _MOST:
        return PresetAdvice(
            "supershingles",
            f"The texts are long (median: {counted(median, 'word')}), and about {identical:.0%} of the pairs of "
            f"resemblance {_REVISED:g} or more have {_NEARLY_IDENTICAL:g} or more.",
        )
    share = f"About {revised:.0%} of the pairs of resemblance {_REVISED:g} or more have less than {strict:g}"
    if revised >= _MANY:
        return PresetAdvice(
            "reader", f"{share}: revisions that people call near-duplicates, and the preset strict omits."
        )
    return PresetAdvice("strict", f"{share}: most near-duplicates are copies with few changes.")


def _after_one_word(words: int, preset: str) -> float:
    """The resemblance of a text of so many different words and a copy with one changed word in the middle."""
    size = int(PRESETS[preset]["shingle"])
    shingles = max(words - size + 1, size)
    return (shingles - size) / (shingles + size)


def _sentences(
    index: Index, one: Distribution, labels: LabelsReport, counts: LabelCounts, threshold: float, *, of: int
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
        pairs = counted(fewest, "pair is", "pairs are")
        yield f"Only {pairs} labelled {label}: label more before you rely on it."
    yield from _use(index, one, best.threshold)
    if best.found < best.same:
        by_keys = one.measure == MeasureName.RESEMBLANCE.value and _as_in_the_index(index, one)
        advice = (
            f"run `{command('migrate', index.name)} --threshold {best.threshold:g}`"
            if by_keys
            else "lower its threshold"
        )
        yield (
            f"The keys of this index find only {best.found:,} of the "
            f"{counted(best.same, 'pair labelled same that reaches', 'pairs labelled same that reach')} it: "
            f"{advice}."
        )


def _compared(labels: LabelsReport, threshold: float) -> str:
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
    yield f"To use it: `{command('group', index.name)} {' '.join(words)} --min {threshold:g}`."


def _as_in_the_index(index: Index, one: Distribution) -> bool:
    """Whether a measure has the size of shingles, or of common passages, that it has in this index."""
    shingle, unit = index.settings.shingle, index.settings.unit
    passages = MeasureName(one.measure) in ALIGNED
    return (one.shingle, one.unit) == ((unit.passage(shingle), Unit.WORD) if passages else (shingle, unit))
