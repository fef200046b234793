"""Presets and options tried on labelled pairs: which keys, preparation and rule decide them best."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from es_neardupe.candidates.pair_arrays import blocks, components
from es_neardupe.commands.distribution.facts import kinds_of, separated
from es_neardupe.commands.distribution.labels import ComparedLabels, best_threshold, cross_validated
from es_neardupe.commands.distribution.presets import boilerplate_among, bounded, matches
from es_neardupe.commands.distribution.report import LabelledTrial, PresetAdvice
from es_neardupe.index.index import Index
from es_neardupe.index.settings import Settings
from es_neardupe.keys.arrays import Flags, Floats, Positions
from es_neardupe.keys.prepare.preparation import Preparation
from es_neardupe.keys.scheme import Scheme
from es_neardupe.keys.shingles import features
from es_neardupe.keys.text import word_counts
from es_neardupe.keys.unit import shingle_of
from es_neardupe.options import AUTO, PRESETS, Clean, FactKind, MeasureName, preset_measure
from es_neardupe.progress import Progress, silent, tracked
from es_neardupe.similarity.facts.differing import differing_facts
from es_neardupe.similarity.facts.tokens import FactTokens, fact_tokens
from es_neardupe.similarity.measure import Ignored, Measure
from es_neardupe.verification.boilerplate import largest_clusters
from es_neardupe.verification.current_texts import CurrentDocuments
from es_neardupe.wording import command, counted

_PAIRS = 500
"""Pairs whose texts are in memory at a time."""

_CHARACTERS = 100_000
"""Maximum number of characters of a text."""

_BETTER = 0.005
"""Difference of F from which more options are recommended."""

_FOUND = 0.5
"""Probability of being found by keys that cannot be changed, from which a pair counts."""

_MOST = 0.95
"""Share of the pairs labelled same that the keys must find."""

_OFTEN = 0.1
"""Share of the texts of which words must be left out before it is tried."""

_FACTS = ("figures", "figures,names", "facts", "all", "names,words,titles")
"""Values of ``--facts`` that are tried, those that separate fewer pairs first."""

_STEP = 0.05
"""The threshold of keys is a multiple of this, if another measure decides."""


@dataclass(frozen=True)
class _Options:
    """Options that are tried, except the facts that decide: these separate pairs whatever their similarity is."""

    preset: str
    clean: Clean | None
    ignored: Ignored | None
    """With ``ignore_common``: the shingles of boilerplate."""

    @property
    def preparation(self) -> Preparation:
        return Preparation(self.clean, PRESETS[self.preset].get("mask", ()))

    @property
    def keys(self) -> Measure:
        """The measure that the keys find pairs by."""
        shingle, unit = shingle_of(PRESETS[self.preset]["shingle"])
        measure = Measure(shingle=shingle, unit=unit)
        return measure if "min" in PRESETS[self.preset] else replace(measure, name=self.decides_by)

    @property
    def decides(self) -> Measure:
        """The measure that decides."""
        return replace(self.keys, name=self.decides_by, ignored=self.ignored)

    @property
    def decides_by(self) -> MeasureName:
        name: MeasureName = PRESETS[self.preset].get("measure", MeasureName.RESEMBLANCE)
        return name

    @property
    def scheme(self) -> Scheme | None:
        """The scheme of keys that a threshold does not change; None for others."""
        return Settings.chosen(("text",), preset=self.preset).scheme if "bands" in PRESETS[self.preset] else None


def tried_on_labels(
    documents: CurrentDocuments, labelled: ComparedLabels, sample: Sequence[str], seed: int, progress: Progress = silent
) -> tuple[LabelledTrial, ...]:
    """Each preset, with and without what can be left out of texts, on labelled pairs. The boilerplate to ignore is that
    of the sample."""
    tried = list(_tried(bounded(sample)))
    deciding, found = (np.zeros((len(tried), len(labelled.same))) for _ in range(2))
    kinds = {one.preparation: list[frozenset[FactKind]]() for one in tried}
    pairs = list(blocks(len(labelled.same), _PAIRS))
    for some in tracked(pairs, progress, "options on labelled pairs", len(pairs), step=1):
        rows, places = np.unique((labelled.left[some], labelled.right[some]), return_inverse=True)
        left, right = places.reshape(2, -1)
        read = dict(documents.texts(rows))
        texts = [read.get(row, "")[:_CHARACTERS] for row in rows.tolist()]
        prepared = dict[Preparation, list[str]]()
        for number, one in enumerate(tried):
            if one.preparation not in prepared:
                prepared[one.preparation] = one.preparation.texts(texts)
            for values, measure in ((deciding, one.decides), (found, one.keys)):
                of_texts = measure.prepare(prepared[one.preparation])
                values[number, some] = measure.scores(of_texts, left, right)
        for preparation, of_pairs in kinds.items():
            using = [number for number, one in enumerate(tried) if one.preparation == preparation]
            similar = deciding[using, some].max(axis=0) > 0
            of_pairs.extend(_kinds(prepared[preparation], left, right, similar))
    trials = []
    for one, values, by_keys in zip(tried, deciding, found, strict=True):
        detected = values if one.scheme is None else np.where(_detected(one.scheme, by_keys), values, 0)
        for facts, decides in _with_facts(detected, kinds[one.preparation]):
            trials.append(_trial(one, decides, by_keys, labelled.same, facts=facts, seed=seed))
    return tuple(sorted(trials, key=lambda one: one.facts is not None))


def _kinds(texts: Sequence[str], left: Positions, right: Positions, similar: Flags) -> Iterator[frozenset[FactKind]]:
    """The kinds of facts that differ in each pair of texts; none for those that are not similar."""
    tokens: dict[int, FactTokens] = {}
    for one, other, is_similar in zip(left.tolist(), right.tolist(), similar.tolist(), strict=True):
        if not is_similar:
            yield frozenset()
            continue
        for place in (one, other):
            if place not in tokens:
                tokens[place] = fact_tokens(texts[place])
        yield kinds_of(differing_facts(tokens[one], tokens[other]))


def _with_facts(similarity: Floats, kinds: Sequence[frozenset[FactKind]]) -> Iterator[tuple[str | None, Floats]]:
    """The similarities, and those with each value of ``--facts`` that makes a difference: 0 for pairs that it
    separates."""
    tried = [similarity]
    yield None, similarity
    for value in _FACTS:
        values = np.where(separated(kinds, value), 0, similarity)
        if not any(np.array_equal(values, one) for one in tried):
            tried.append(values)
            yield value, values


def _tried(sample: Sequence[str]) -> Iterator[_Options]:
    """The options to try, the simplest ones first."""
    cleans = [None, *(one for one in Clean if _changes(one, sample))]
    for clean in cleans:
        for preset in PRESETS:
            yield _Options(preset, clean, None)
    by_sets = [name for name, one in PRESETS.items() if "measure" not in one and "mask" not in one]
    for clean in cleans:
        passages = list(_boilerplate(Preparation(clean).texts(sample), by_sets))
        for preset in by_sets if passages else ():
            shingles = np.unique(np.concatenate(features(passages, *shingle_of(PRESETS[preset]["shingle"]))))
            yield _Options(preset, clean, Ignored("boilerplate", shingles))


def _boilerplate(texts: Sequence[str], presets: Sequence[str]) -> Iterator[str]:
    """The passages that hold clusters of matches of any of the presets together."""
    for preset in presets:
        for members in largest_clusters(components(len(texts), *matches(preset, texts))):
            yield from boilerplate_among(texts, members) or ()


def _changes(clean: Clean, texts: Sequence[str]) -> bool:
    """Whether it leaves words out of many of the texts."""
    words, left = (np.array(word_counts(some)) for some in (texts, Preparation(clean).texts(texts)))
    return bool((words != left).sum() > _OFTEN * len(texts))


def _trial(
    options: _Options, deciding: Floats, found: Floats, same: Flags, *, facts: str | None, seed: int
) -> LabelledTrial:
    threshold, _ = best_threshold(deciding, same)
    reached = found[same & (deciding >= threshold)]
    return LabelledTrial(
        preset=options.preset,
        clean=options.clean and options.clean.value,
        ignore_common=None if options.ignored is None else AUTO,
        facts=facts,
        threshold=threshold,
        keys=_keys(options, threshold, reached),
        validated=cross_validated(deciding, same, seed),
    )


def _detected(scheme: Scheme, similarity: Floats) -> Flags:
    """Whether pairs are probably found."""
    return np.array([scheme.detection(one) >= _FOUND for one in similarity.tolist()], np.bool_)


def _keys(options: _Options, threshold: float, reached: Floats) -> float:
    """The threshold of the keys that finds most of the pairs that reach the threshold, of these similarities."""
    settings = PRESETS[options.preset]
    if "bands" in settings:
        return float(settings["threshold"])
    if options.ignored is None and "min" not in settings:
        return threshold
    lowest = float(np.quantile(reached, 1 - _MOST)) if len(reached) else 1.0
    return min(float(settings["threshold"]), round(max(int(lowest / _STEP), 1) * _STEP, 2))


def best_trial(trials: Sequence[LabelledTrial]) -> LabelledTrial:
    """The one with the highest F, or a simpler one that is nearly as good."""
    highest = max(one.validated.f for one in trials)
    return next(one for one in trials if one.validated.f >= highest - _BETTER)


def labelled_advice(index: Index, trials: Sequence[LabelledTrial], pairs: int, texts: int) -> PresetAdvice:
    """The preset and options that decide labelled pairs best, with the commands. ``texts``: those of the sample."""
    best = best_trial(trials)
    settings = PRESETS[best.preset]
    migrate = [f"--preset {best.preset}"]
    if "bands" not in settings and best.keys != settings["threshold"]:
        migrate.append(f"--threshold {best.keys:g}")
    migrate += [f"--clean {best.clean}"] * (best.clean is not None)
    group = [f"--ignore-common {best.ignore_common}"] * (best.ignore_common is not None)
    group += [f"--facts {best.facts}"] * (best.facts is not None)
    if best.threshold != settings.get("min", best.keys):
        group.insert(0, f"--min {best.threshold:g}")
    commands = [f"`{' '.join([command('group', index.name), '--default-rules', *group])}`"]
    if not _has(index, best):
        commands.insert(0, f"`{' '.join([command('migrate', index.name), *migrate])}`")
    plain = next(one for one in trials if one.preset == "strict")
    reasons = (
        f"Of {counted(len(trials), 'choice')} of preset, --clean, --ignore-common and --facts it decides the "
        f"{counted(pairs, 'labelled pair')} best: F {best.validated.f:.2f} in cross-validation (strict alone: "
        f"{plain.validated.f:.2f}), from {best.threshold:g} on. Run {', then '.join(commands)}."
    )
    return PresetAdvice(best.preset, reasons, clean=best.clean, texts=texts)


def _has(index: Index, best: LabelledTrial) -> bool:
    """Whether the keys of an index are those of the preset with its options."""
    if preset_measure(best.preset) is not None:  # its bands depend on the lengths of the texts
        return False
    settings = index.settings
    wanted = Settings.chosen(settings.fields, preset=best.preset, threshold=best.keys, clean=best.clean)
    return (settings.scheme, settings.threshold) == (wanted.scheme, wanted.threshold)
