"""Steps of ``distribution``: the pairs of the sample and of the index, and their distribution."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np

from es_neardupe.candidates.fingerprints import classes_of, keyed_rows
from es_neardupe.candidates.join import CandidatePairs
from es_neardupe.commands.distribution.report import (
    Distribution,
    SimilarityExample,
    ThresholdLevel,
)
from es_neardupe.commands.distribution.sample import Sample, extrapolated, nearest
from es_neardupe.errors import IndexUnusable, SettingsError
from es_neardupe.groups.stars import Matches, star
from es_neardupe.index.settings import Settings
from es_neardupe.keys.arrays import Floats, Ints, Numbers, Positions
from es_neardupe.keys.scheme import MAX_SHINGLE, Scheme
from es_neardupe.keys.shingles import token_hashes
from es_neardupe.keys.text import spans
from es_neardupe.keys.unit import Unit, shingle_of
from es_neardupe.options import FactKind, Matching, MeasureName
from es_neardupe.progress import Progress, tracked
from es_neardupe.records import Address, FingerprintColumns, Reference, TextClasses
from es_neardupe.similarity.formulas import Weights
from es_neardupe.similarity.histogram import Histogram, binned
from es_neardupe.similarity.measure import (
    ALIGNED,
    Measure,
    measure_name,
    measure_size,
    named_measure,
    weights_of,
)
from es_neardupe.verification.current_texts import CurrentDocuments, PairComparer
from es_neardupe.verification.equal_signs import with_equal_signs
from es_neardupe.verification.verify import FactsOfClasses
from es_neardupe.wording import command, counted, option

Pair = tuple[float, int, int]
"""Similarity and the rows of two documents."""

_NO_WEIGHTS = Weights(0, np.empty(0, np.uint64), np.empty(0, np.int64))

THRESHOLDS = tuple(step / 20 for step in range(1, 21))

_MAX_EXAMPLES = 3
"""On each side of the threshold."""

_BEFORE, _WORDS, _CHARS = 3, 15, 120
"""Of an excerpt: words before the first difference, maximum number of words and of characters."""


def names_of_measures(
    measure: Sequence[MeasureName | str] | None,
    *,
    whitespace: bool,
    matching: str = Matching.LITERAL.value,
    shingle: Sequence[int | str] | None = None,
) -> list[MeasureName]:
    """The measures, each once. Raises `SettingsError` for an unknown name, and for an option without effect on them."""
    usual = MeasureName.BAG if whitespace else MeasureName.RESEMBLANCE
    names = list(dict.fromkeys(map(named_measure, measure or (usual,))))
    if whitespace and MeasureName.BAG not in names:
        raise SettingsError(
            f"{option('whitespace')} is for the measure bag, not for {', '.join(one.value for one in names)}."
        )
    if matching != Matching.LITERAL.value:
        _check_effect("matching", names, [one for one in MeasureName if one in ALIGNED])
    if shingle:
        _check_effect("shingle", names, [one for one in MeasureName if one is not MeasureName.EDIT])
    return names


def _check_effect(name: str, names: Sequence[MeasureName], has_effect: Sequence[MeasureName]) -> None:
    """Raises `SettingsError` for an option that has an effect on none of the measures."""
    if not {*names} & {*has_effect}:
        raise SettingsError(f"{option(name)} is for the measures {', '.join(one.value for one in has_effect)}.")


def thresholds_of_table(thresholds: Sequence[float], chosen: float) -> list[float]:
    """The thresholds of the table, in order. Raises `SettingsError` for one out of range."""
    levels = sorted({*thresholds, chosen})
    if wrong := [one for one in levels if not 0 < one <= 1]:
        raise SettingsError(f"Thresholds must be above 0 and at most 1, not {', '.join(map(str, wrong))}.")
    return levels


def measures_of(
    names: Sequence[MeasureName],
    matching: Matching,
    shingles: Sequence[tuple[int, Unit]],
    settings: Settings,
    whitespace: bool,
) -> Iterator[Measure]:
    """One measure for each name and shingle size, without weights."""
    for wrong in (one for one, _ in shingles if not 1 <= one <= MAX_SHINGLE):
        raise SettingsError(f"{option('shingle')} must be from 1 to {MAX_SHINGLE:,} words, not {wrong}.")
    for name in names:
        for words, unit in dict.fromkeys(shingles):
            if name is MeasureName.BAG:
                if not 1 <= words <= 7:
                    raise SettingsError(
                        f"For the measure bag, {option('shingle')} must be from 1 to 7 words, not {words}."
                    )
                yield Measure(name, ngram=words, whitespace=whitespace)
            elif name is MeasureName.EDIT:
                yield Measure(name)
                break
            else:
                scheme = replace(settings.scheme, shingle=words, unit=unit) if name is MeasureName.ESTIMATE else None
                weights = _NO_WEIGHTS if name is MeasureName.WEIGHTED else None
                yield Measure(name, matching, words, unit=unit, weights=weights, scheme=scheme)


def shingle_sizes(given: Sequence[int | str] | None, settings: Settings) -> list[tuple[int, Unit]]:
    """The shingles to compare; by default those of the index."""
    return [shingle_of(one) for one in given] if given else [(settings.shingle, settings.unit)]


def weighted(measure: Measure, sample: Sequence[str]) -> Measure:
    """The measure with the feature frequencies of the sample, if it uses weights."""
    if measure.name is not MeasureName.WEIGHTED:
        return measure
    return replace(measure, weights=weights_of(Measure(shingle=measure.shingle, unit=measure.unit).prepare(sample)))


def detecting(measure: Measure, settings: Settings) -> Scheme | None:
    """The scheme of the index if its bands were made for this measure."""
    shingle = measure.shingle, measure.unit
    same = measure.name is MeasureName.RESEMBLANCE and shingle == (settings.shingle, settings.unit)
    return settings.scheme if same else None


def keyed(corpus: FingerprintColumns) -> int:
    """The number of documents with keys."""
    return len(keyed_rows(corpus))


def drawn_documents(
    index: str, documents: CurrentDocuments, rows: Positions, progress: Progress
) -> tuple[Positions, list[str]]:
    """The rows and texts of a sample. Raises `IndexUnusable` for fewer than two."""
    read = list(tracked(documents.texts(rows), progress, "reading the sample", len(rows)))
    if len(read) < 2:
        changed = int(documents.changed_or_deleted.sum())
        stale = f" (and {changed} that have changed since)" if changed else ""
        raise IndexUnusable(
            f"Index {index} has {counted(len(read), 'document with keys', 'documents with keys')}{stale}, but a "
            f"distribution needs at least 2. Run `{command('enrich', index)} --check`."
        )
    return np.array([row for row, _ in read], np.intp), [text for _, text in read]


@dataclass(frozen=True)
class ComparedCandidates:
    """Candidate pairs, of classes of equal texts, with their similarities by one measure."""

    left: Numbers
    right: Numbers
    similarity: Floats
    """NaN if a text has changed or was deleted."""
    sizes: Ints
    """Documents in each class, without changed and deleted ones."""
    first: Numbers
    """Row of an unchanged document of each class, -1 if there is none."""
    other_facts: int = 0
    """Pairs of documents that were left out because facts that decide differ."""


def compared_candidates(
    documents: CurrentDocuments,
    classes: TextClasses,
    candidates: CandidatePairs,
    measures: Sequence[Measure],
    progress: Progress,
) -> Iterator[ComparedCandidates]:
    """The candidates by each measure, all computed in one pass over the texts. Every exact copy is read too, to check
    that it still is one."""
    stages = {f"candidates, {measure_name(one)}": one for one in measures}
    comparer = PairComparer(documents, stages, classes)
    found = comparer.compare(candidates.left, candidates.right, progress)
    comparer.check_copies()
    sizes = classes.counted(~documents.changed_or_deleted).astype(np.int64)
    first = comparer.first_rows(np.arange(len(classes)))
    for similarity in found.similarity:
        yield ComparedCandidates(candidates.left, candidates.right, similarity, sizes, first)


def texts_compared(
    corpus: FingerprintColumns,
    documents: CurrentDocuments,
    measures: Sequence[Measure],
    kinds: frozenset[FactKind],
    progress: Progress,
) -> TextClasses:
    """The classes of exact copies that are compared as one text. If facts of some ``kinds`` decide, copies have equal
    signs."""
    copies = all(one.copies_are_equal for one in measures)
    classes = classes_of(corpus, copies)
    return with_equal_signs(corpus, classes, documents, progress) if kinds and copies else classes


def without_other_facts(
    compared: Sequence[ComparedCandidates],
    documents: CurrentDocuments,
    classes: TextClasses,
    kinds: frozenset[FactKind],
    *,
    lowest: float,
    progress: Progress,
) -> Iterator[ComparedCandidates]:
    """The candidates by each measure without the pairs that reach the ``lowest`` threshold and differ in facts of these
    kinds."""
    if not kinds:
        yield from compared
        return
    left, right = compared[0].left, compared[0].right
    facts = FactsOfClasses(documents, classes, kinds)
    reached = np.flatnonzero(np.logical_or.reduce([one.similarity >= lowest for one in compared]))
    differ = np.zeros(len(left), np.bool_)
    differ[reached] = facts.differ(left[reached], right[reached], progress)
    for one in compared:
        apart = differ & (one.similarity >= lowest)
        yield replace(
            one,
            left=left[~apart],
            right=right[~apart],
            similarity=one.similarity[~apart],
            other_facts=int((one.sizes[left[apart]] * one.sizes[right[apart]]).sum()),
        )


def distribution(
    measure: Measure, sample: Sample, compared: ComparedCandidates, levels: Iterable[ThresholdLevel]
) -> Distribution:
    """The distribution of a measure, without examples and labels."""
    shingle, unit = measure_size(measure) or (None, None)
    return Distribution(
        measure=measure.name.value,
        matching=measure.matching.value if measure.aligned else None,
        shingle=shingle,
        unit=unit,
        whitespace=measure.whitespace,
        sampled=sample.degrees.shape[1],
        sample=Histogram.of(sample.counts),
        candidates=_histogram(compared),
        other_facts=compared.other_facts,
        levels=tuple(levels),
        above=(),
        below=(),
        labels=None,
    )


def _histogram(compared: ComparedCandidates) -> Histogram:
    """Histogram of pairs of documents: a pair of classes counts for all their documents, and copies are pairs too."""
    known = ~np.isnan(compared.similarity)
    weights = compared.sizes[compared.left] * compared.sizes[compared.right]
    counts = binned(compared.similarity[known], weights[known])
    counts[-1] += _copies(compared)
    return Histogram.of(counts)


def _copies(compared: ComparedCandidates) -> int:
    """The number of pairs of exact copies."""
    return int((compared.sizes * (compared.sizes - 1) // 2).sum())


def levels_of(
    compared: ComparedCandidates,
    sample: Sample,
    thresholds: Sequence[float],
    documents: int,
    scheme: Scheme | None,
    *,
    measure: MeasureName,
) -> Iterator[ThresholdLevel]:
    """Results of each threshold, by the measure of this name. Groups are stars, the default linkage of `group`."""
    for threshold, degrees, found in zip(thresholds, sample.degrees, sample.found.tolist(), strict=True):
        reached = compared.similarity >= threshold
        left, right = compared.left[reached], compared.right[reached]
        sizes = _group_sizes(compared.sizes, Matches(left, right, compared.similarity[reached]), measure)
        yield ThresholdLevel(
            threshold=threshold,
            detection=None if scheme is None else scheme.detection(threshold),
            pairs=int((compared.sizes[left] * compared.sizes[right]).sum()) + _copies(compared),
            documents=_in_pairs(compared.sizes, left, right),
            groups=len(sizes),
            largest=int(sizes.max(initial=0)),
            sample_pairs=int(degrees.sum()) // 2,
            sample_found=found,
            expected=extrapolated(degrees, documents),
        )


def _in_pairs(sizes: Ints, left: Positions, right: Positions) -> int:
    """The number of documents in pairs, including exact copies."""
    in_pairs = sizes > 1
    in_pairs[left] = in_pairs[right] = True
    return int(sizes[in_pairs].sum())


def _group_sizes(sizes: Ints, matches: Matches, measure: MeasureName) -> Ints:
    """The number of documents in each group of two or more."""
    nodes = np.unique(np.concatenate((matches.left, matches.right)))  # in the order of principals, as all classes are
    left, right = (np.searchsorted(nodes, side) for side in (matches.left, matches.right))
    principal = star(Matches(left, right, matches.similarity), sizes[nodes], measure)
    grouped = np.bincount(principal, sizes[nodes]).astype(np.int64)
    alone = np.delete(sizes, nodes)
    every = np.concatenate((grouped, alone))
    return every[every > 1]


# Examples


def examples(
    documents: CurrentDocuments,
    classes: TextClasses,
    compared: ComparedCandidates,
    sampled: Iterable[Pair],
    threshold: float,
) -> tuple[tuple[SimilarityExample, ...], tuple[SimilarityExample, ...]]:
    """Up to three pairs just above the threshold and three just below, the nearest first.

    They are candidate pairs of the index or pairs of the sample, but no exact copies. A document is in more than one
    example only if there are too few others.
    """
    class_of = classes.of_rows(len(documents.references))
    found: dict[tuple[int, int], Pair] = {}
    for pair in (*_of_candidates(compared, threshold), *sampled):
        a, b = sorted(class_of[list(pair[1:])].tolist())
        if a != b and pair[0] > 0:
            found.setdefault((a, b), pair)
    pairs = sorted(found.values(), key=lambda pair: (abs(pair[0] - threshold), pair))
    above = _chosen([pair for pair in pairs if pair[0] >= threshold])
    below = _chosen([pair for pair in pairs if pair[0] < threshold])
    read = dict(documents.texts(np.unique([row for _, *both in above + below for row in both]).astype(np.intp)))
    named = [tuple(_named(documents.references, read, side)) for side in (above, below)]
    return named[0], named[1]


def _of_candidates(compared: ComparedCandidates, threshold: float) -> Iterator[Pair]:
    known = np.flatnonzero(~np.isnan(compared.similarity))
    for place in known[nearest(compared.similarity[known], threshold)]:
        a, b = compared.first[compared.left[place]], compared.first[compared.right[place]]
        yield float(compared.similarity[place]), int(a), int(b)


def _chosen(pairs: Sequence[Pair]) -> list[Pair]:
    """The first pairs without a common document, then others, up to the maximum number."""
    fresh: list[Pair] = []
    again: list[Pair] = []
    used: set[int] = set()
    for pair in pairs:
        (fresh if used.isdisjoint(pair[1:]) else again).append(pair)
        used.update(pair[1:])
    return sorted((fresh + again)[:_MAX_EXAMPLES], key=pairs.index)


def _named(
    references: Sequence[Reference], texts: dict[int, str], pairs: Sequence[Pair]
) -> Iterator[SimilarityExample]:
    """Pairs with the excerpts of their texts, without those whose texts can no longer be read."""
    for similarity, *both in pairs:
        if all(row in texts for row in both):
            a, b = (Address(*references[row][:2]) for row in both)
            yield SimilarityExample(similarity, a, b, *excerpts(*(texts[row] for row in both)))


def excerpts(a: str, b: str) -> tuple[str, str]:
    """Some words of each text, from shortly before the first word that differs."""
    one, other = token_hashes([a, b])
    size = min(len(one), len(other))
    different = np.flatnonzero(one[:size] != other[:size])
    place = int(different[0]) if different.size else size
    return _excerpt(a, place), _excerpt(b, place)


def _excerpt(text: str, place: int) -> str:
    tokens = spans(text)
    shown = tokens[max(0, place - _BEFORE) : max(0, place - _BEFORE) + _WORDS]
    if not len(shown):
        return ""
    start, end = int(shown[0, 0]), min(int(shown[-1, 1]), int(shown[0, 0]) + _CHARS)
    before, after = start > tokens[0, 0], end < tokens[-1, 1]
    return "… " * bool(before) + text[start:end] + " …" * bool(after)
