"""Every preset tried on a sample: the pairs that its rule matches, and those that only boilerplate holds together. The
preset strict is also tried with lower thresholds, by which moved passages match, and the preset short, on short texts,
with facts that decide and with single words, which have no order."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from es_neardupe.candidates.pair_arrays import components
from es_neardupe.commands.distribution.report import PresetChoice, PresetTrial
from es_neardupe.index.settings import Settings
from es_neardupe.keys.arrays import Flags, Floats, Positions
from es_neardupe.keys.prepare.preparation import Preparation
from es_neardupe.keys.shingles import token_hashes
from es_neardupe.keys.text import word_counts
from es_neardupe.keys.unit import shingle_of
from es_neardupe.options import PRESETS, SHORT, MeasureName
from es_neardupe.progress import Progress, silent, tracked
from es_neardupe.similarity.boilerplate import boilerplate_of
from es_neardupe.similarity.facts.agreement import FactsAgree
from es_neardupe.similarity.facts.kinds import parse_facts
from es_neardupe.similarity.measure import Measure, all_pairs
from es_neardupe.verification.boilerplate import MEMBERS, evenly_spread, largest_clusters
from es_neardupe.verification.facts import overlap

_TEXTS = 1000
"""Maximum number of texts that are compared with each other: half a million pairs for each preset."""

_CHARACTERS = 1_000_000
"""Maximum number of characters of all of them."""

_OF_ONE = 100_000
"""Maximum number of characters of a text."""

_FOUND = 0.5
"""Probability of being found by the keys from which a pair counts."""


_SAME_WORDS = 0.6
"""Similarity of the bags of words of texts whose passages have moved, at least. Different texts with the same half of
boilerplate have about 0.5."""

_MOST_SIMILAR = 5
"""Other texts with whose facts those of a text are compared, at most."""

LOWER = tuple(PresetChoice("strict", threshold=one) for one in (0.6, 0.5))
"""The preset strict with lower thresholds."""

_FACTS = "facts,words"
WITH_FACTS = PresetChoice("short", facts=_FACTS)
SINGLE_WORDS = PresetChoice("short", shingle=1, threshold=0.5, facts=_FACTS)
"""For titles with the same words in another order: other titles have many words in common too."""


def bounded(texts: Sequence[str]) -> list[str]:
    """The first texts, as many as are compared with each other."""
    shortened = [one[:_OF_ONE] for one in texts[:_TEXTS]]
    ends = np.cumsum([len(one) for one in shortened])
    return shortened[: int(np.searchsorted(ends, _CHARACTERS, side="right"))]


def tried(texts: Sequence[str], progress: Progress = silent) -> tuple[PresetTrial, ...]:
    """Each preset on these texts, and some with options."""
    choices = list(_choices(texts))
    return tuple(_tried(one, texts) for one in tracked(choices, progress, "presets", len(choices), step=1))


def _choices(texts: Sequence[str]) -> Iterator[PresetChoice]:
    yield from map(PresetChoice, PRESETS)
    yield from LOWER
    if texts and np.median(word_counts(texts)) < SHORT:
        yield from (WITH_FACTS, SINGLE_WORDS)


def _tried(choice: PresetChoice, texts: Sequence[str]) -> PresetTrial:
    masks = PRESETS[choice.preset].get("mask", ())
    prepared = Preparation(masks=masks).texts(texts)
    left, right = _chosen_pairs(choice, prepared)
    # what is left of masked texts is the template that they are meant to be grouped by
    clusters = [] if masks else largest_clusters(components(len(texts), left, right))
    return PresetTrial(
        **choice.named,
        pairs=len(left),
        documents=len(np.union1d(left, right)),
        held=sum(len(members) for members in clusters if boilerplate_among(prepared, members) is not None),
    )


def _chosen_pairs(choice: PresetChoice, texts: Sequence[str]) -> tuple[Positions, Positions]:
    """The pairs that count for a choice."""
    options = {"shingle": choice.shingle, "threshold": choice.threshold}
    given = {name: value for name, value in options.items() if value is not None}
    left, right, similarity = _matches({**PRESETS[choice.preset], **given}, texts)
    if choice.facts is not None:
        kept = _most_similar(left, right, similarity)
        left, right = left[kept], right[kept]
        facts = FactsAgree(kinds=parse_facts((choice.facts,)))
        kept = facts.scores(facts.prepare(texts), left, right) == 1
    elif choice in LOWER:  # windows of one document are at most this similar
        words = token_hashes(texts)
        pairs = zip(left.tolist(), right.tolist(), strict=True)
        kept = np.array([not overlap(words[one], words[other]) for one, other in pairs], np.bool_)
        bag = Measure(MeasureName.BAG)
        kept &= bag.scores(bag.prepare(texts), left, right) >= _SAME_WORDS
    else:
        return left, right
    return left[kept], right[kept]


def _most_similar(left: Positions, right: Positions, similarity: Floats) -> Flags:
    """Whether each pair is among those of the most similar texts of one of its two."""
    kept = np.zeros(len(left), np.bool_)
    seen = Counter[int]()
    for pair in np.argsort(-similarity, kind="stable").tolist():
        both = int(left[pair]), int(right[pair])
        kept[pair] = min(seen[one] for one in both) < _MOST_SIMILAR
        seen.update(both)
    return kept


def boilerplate_among(texts: Sequence[str], members: Positions) -> list[str] | None:
    """The passages that hold a cluster together, if only boilerplate does."""
    different = list(dict.fromkeys(texts[one] for one in members.tolist()))
    if len(different) < MEMBERS:
        return None
    return boilerplate_of([different[one] for one in evenly_spread(np.arange(len(different)))])


def matches(name: str, texts: Sequence[str]) -> tuple[Positions, Positions]:
    """The pairs that the keys of a preset probably find and that its measure matches."""
    left, right, _ = _matches(PRESETS[name], texts)
    return left, right


def _matches(preset: Mapping[str, Any], texts: Sequence[str]) -> tuple[Positions, Positions, Floats]:
    """The pairs by the settings of a preset, with their similarities."""
    shingle, unit = shingle_of(preset["shingle"])
    measure = preset.get("measure", MeasureName.RESEMBLANCE)
    minimum = preset.get("min", preset["threshold"])
    if measure is MeasureName.RESEMBLANCE:
        return _reaching(Measure(shingle=shingle, unit=unit), texts, minimum)
    if "min" in preset:  # the measure decides on what keys by resemblance find
        scheme = Settings(("text",), threshold=preset["threshold"], shingle=shingle, unit=unit).scheme
        found = next(one / 100 for one in range(101) if scheme.detection(one / 100) >= _FOUND)
        left, right, _ = _reaching(Measure(shingle=shingle, unit=unit), texts, found)
    else:  # two texts have at most as many words in common passages as in their bags
        left, right, _ = _reaching(Measure(MeasureName.BAG), texts, minimum)
    decides = Measure(measure, shingle=shingle, unit=unit)
    similarity = decides.scores(decides.prepare(texts), left, right)
    reached = similarity >= minimum
    return left[reached], right[reached], similarity[reached]


def _reaching(measure: Measure, texts: Sequence[str], minimum: float) -> tuple[Positions, Positions, Floats]:
    """All pairs of at least this similarity, and the similarities."""
    pairs = [np.zeros((2, 0), np.intp)]
    values = [np.zeros(0)]
    for left, right, similarity in all_pairs(measure, measure.prepare(texts)):
        reached = similarity >= minimum
        pairs.append(np.stack((left, right))[:, reached])
        values.append(similarity[reached])
    left, right = np.concatenate(pairs, axis=1)
    return left, right, np.concatenate(values)
