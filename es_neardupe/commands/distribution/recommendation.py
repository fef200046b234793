"""Recommended measure and threshold, from labelled pairs, and the preset that suits the texts, in words."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace

import numpy as np

from es_neardupe.candidates.detection import unsuited_lengths
from es_neardupe.candidates.unprepared import texts_of_one_kind
from es_neardupe.commands.distribution.presets import LOWER, SINGLE_WORDS, WITH_FACTS, bounded, tried
from es_neardupe.commands.distribution.report import (
    Distribution,
    LabelCounts,
    LabelsReport,
    PresetAdvice,
    PresetChoice,
    PresetTrial,
    Recommendation,
)
from es_neardupe.index.index import Index
from es_neardupe.index.settings import Settings
from es_neardupe.keys.prepare.preparation import Preparation
from es_neardupe.keys.scheme import Scheme
from es_neardupe.keys.text import word_counts
from es_neardupe.keys.unit import Unit, shingle_text
from es_neardupe.options import PRESETS, Clean, MeasureName
from es_neardupe.progress import Progress, silent
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

_VISIBLE = 0.1
"""Share of the texts of a sample in pairs from which these decide."""

_TIMES = {"reader": 1 / (1 - _MANY), "short": 2, "scans": 4, "logs": 2}
"""How many times as many documents as a simpler preset these must match."""

_TIMES_OF_TEMPLATES = 2
"""The same for reader if texts share a template: then what it adds may be other texts of the same template."""

_TIMES_WITH_OPTIONS = 2
"""The same for a preset with options."""

_PAIRS = 3
"""Maximum number of pairs for each document that another preset adds: with more, texts have only a template in
common."""

_HELD = 0.1
"""Share of the documents in pairs that a preset may add to those held together by boilerplate only."""


def preset_advice(
    index: Index, distributions: Sequence[Distribution], sample: Sequence[str], progress: Progress = silent
) -> tuple[PresetAdvice, tuple[PresetTrial, ...]]:
    """The preset for the texts of a sample, and what each preset matches in it.

    The pairs of the sample decide if a tenth of the texts are in some. Otherwise they are too few: then the candidate
    pairs of the index decide, if they were compared by the resemblance of 5-word shingles, and its keys are made of
    these.
    """
    texts = bounded(sample)
    kind = texts_of_one_kind(texts)
    clean = None if kind is None or kind.clean is None else Clean(kind.clean)
    texts = Preparation(clean).texts(texts)
    trials = tried(texts, progress)
    words = word_counts(texts)
    median = int(np.median(words)) if texts else 0
    of_lengths = by_lengths(words)
    advice = by_trials(
        *(trials, len(texts), median),
        of_kind=None if kind is None else kind.preset,
        of_lengths=None if of_lengths is None else of_lengths.preset,
    )
    if advice is None:
        unknown = clean is not None or have_moved(trials, len(texts))
        of_index = None if unknown else _by_resemblance(index, distributions, median)
        advice = of_lengths or of_index or _default(median)
        advice = _without_boilerplate(advice, trials)
    sentences = [advice.reasons, *_held(index.name, trials, advice)]
    migrate = [command("migrate", index.name), f"--preset {advice.preset}", *filter(None, [advice.options])]
    if kind is not None and clean is not None:
        found = f"{kind.found:,} of {counted(kind.documents, 'text')} of the sample are {kind.kind}"
        line = " ".join([*migrate, kind.options])
        sentences.insert(0, f"{found}, and the presets were tried without {kind.not_their_own}: `{line}`.")
    elif advice.options:
        sentences.append(f"To use it: `{' '.join(migrate)}`.")
    if advice.facts is not None:
        sentences.append(f"Then `{command('group', index.name)} --facts {advice.facts}` keeps apart what differs.")
    return replace(advice, reasons=" ".join(sentences), clean=clean and clean.value, texts=len(texts)), trials


def by_trials(
    trials: Sequence[PresetTrial], texts: int, median: int, *, of_kind: str | None, of_lengths: str | None
) -> PresetAdvice | None:
    """The simplest preset that matches nearly as many documents as others that mix none; None if all match few texts.

    ``of_kind``: the preset for the kind of the texts, if there is one. Only log lines are grouped by their template,
    and only scans by the shapes of letters, which texts on one subject share too. ``of_lengths``: that for their
    lengths, if they are short.
    """
    of = _by_title(trials)
    times = _TIMES | ({"reader": _TIMES_OF_TEMPLATES} if _mixes(of["scans"], of["strict"]) else {})
    chosen = of["strict"]
    others = ["short"] if of_lengths == "short" else ["reader", *["scans"] * (of_kind == "scans")]
    for other in (of[name] for name in [*others, *["logs"] * (of_kind == "logs")]):
        more = other.documents >= max(times[other.preset] * chosen.documents, 1)
        if more and (other.preset == "logs" or not _mixes(other, of["strict"])) and _visible(other, texts):
            chosen = other
    mixing = [of[name] for name in others if _mixes(of[name], of["strict"]) and _visible(of[name], texts)]
    chosen = _with_options(chosen, of, texts, templates=bool(mixing))
    if not _visible(chosen, texts):
        return _template(mixing[0]) if mixing else None
    found = f"Of {counted(texts, 'text')} of the sample, {chosen.documents:,} are in pairs that {chosen.title} matches"
    if chosen.title != "strict":
        simpler = of[WITH_FACTS.title if chosen.choice == SINGLE_WORDS else "strict"]
        reasons = f"{found}, and {simpler.documents:,} in pairs that {simpler.title} matches."
        return PresetAdvice(**chosen.named, reasons=reasons)
    nearly = of["supershingles"].documents
    if median >= _LONG and nearly >= _MOST * max(chosen.documents, of["reader"].documents):
        return PresetAdvice(
            "supershingles",
            f"The texts are long (median: {counted(median, 'word')}), and of {chosen.documents:,} documents in pairs "
            f"that strict matches, {nearly:,} are in pairs that supershingles matches.",
        )
    return PresetAdvice(
        "strict", f"{found}, and no other preset matches many more without mixing texts that share a template."
    )


def _with_options(chosen: PresetTrial, of: Mapping[str, PresetTrial], texts: int, *, templates: bool) -> PresetTrial:
    """A preset with options instead of the chosen one, if it matches many more documents: with a lower threshold
    passages may have moved, unless texts have ``templates`` in common; with single words, those of titles."""

    def is_better(one: PresetChoice, other: PresetTrial) -> bool:
        trial = of[one.title]
        many = trial.documents >= max(_TIMES_WITH_OPTIONS * other.documents, 1)
        return many and not _mixes(trial, of["strict"]) and _visible(trial, texts)

    for one in () if templates else LOWER:
        chosen = of[one.title] if is_better(one, chosen) else chosen
    if WITH_FACTS.title in of:  # of pairs without these facts many may be wrong
        chosen = of[WITH_FACTS.title] if is_better(WITH_FACTS, chosen) else chosen
        chosen = of[SINGLE_WORDS.title] if is_better(SINGLE_WORDS, of[WITH_FACTS.title]) else chosen
    return chosen


def _by_title(trials: Sequence[PresetTrial]) -> dict[str, PresetTrial]:
    return {one.title: one for one in trials}


def have_moved(trials: Sequence[PresetTrial], texts: int) -> bool:
    """Whether texts of the sample are similar to others in their passages, but not in the order of these: then reader,
    which compares the order, matches no more than strict."""
    of = _by_title(trials)
    lower, reader, strict = of[LOWER[0].title], of["reader"], of["strict"]
    return _visible(lower, texts) and reader.documents <= strict.documents < lower.documents


def _visible(trial: PresetTrial, texts: int) -> bool:
    """Whether enough texts are in pairs to decide by them."""
    return trial.documents >= max(_VISIBLE * texts, 2)


def _mixes(trial: PresetTrial, strict: PresetTrial) -> bool:
    """Whether a preset matches texts that have only a template or boilerplate in common."""
    added, held = trial.documents - strict.documents, trial.held - strict.held
    return trial.pairs - strict.pairs > _PAIRS * max(added, 0) + strict.documents or held > _HELD * trial.documents


def _template(mixing: PresetTrial) -> PresetAdvice:
    return PresetAdvice(
        "strict",
        f"{mixing.preset} matches {counted(mixing.pairs, 'pair')} of {counted(mixing.documents, 'document')} of the "
        f"sample: texts that have only a template in common.",
    )


def _without_boilerplate(advice: PresetAdvice, trials: Sequence[PresetTrial]) -> PresetAdvice:
    """The preset strict instead of one that mixes texts of the sample."""
    of = _by_title(trials)
    return _template(of[advice.title]) if _mixes(of[advice.title], of["strict"]) else advice


def _held(index: str, trials: Sequence[PresetTrial], advice: PresetAdvice) -> Iterator[str]:
    """What to do about boilerplate."""
    if held := _by_title(trials)[advice.title].held:
        line = f"{command('group', index)} --ignore-common auto"
        yield f"Only boilerplate holds {counted(held, 'document')} of them together: `{line}` ignores it."


def by_lengths(words: Sequence[int]) -> PresetAdvice | None:
    """The preset for texts of these numbers of words, by which `init` and `group` find it too: if one changed word
    takes many of them below the threshold of a simpler preset. None if they are long enough."""
    for preset in ("reader", "strict"):
        found = unsuited_lengths(Settings.chosen(("text",), preset=preset), Counter(words))
        if found is not None and found.preset is not None:
            return PresetAdvice(
                found.preset,
                f"{found.unsuited:,} of {counted(found.documents, 'text')} of the sample have fewer than {found.words} "
                f"words: one changed word makes two such texts less than {found.threshold:g} similar, the threshold of "
                f"the preset {preset}.",
            )
    return None


def _default(median: int) -> PresetAdvice:
    return PresetAdvice(
        "strict", f"It is the default, and texts of {counted(median, 'word')} (the median) are long enough for it."
    )


def _by_resemblance(index: Index, distributions: Sequence[Distribution], median: int) -> PresetAdvice | None:
    """By the candidate pairs of the index, if they were compared by the shingles of the preset strict, which its keys
    have too."""
    for one in distributions:
        size = (one.shingle, one.unit) == (PRESETS["strict"]["shingle"], Unit.WORD)
        if one.measure == MeasureName.RESEMBLANCE.value and size and _as_in_the_index(index, one):
            return _by_pairs(index.settings.scheme, one.candidates, median)
    return None


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
