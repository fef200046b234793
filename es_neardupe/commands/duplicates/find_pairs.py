"""Stage ``documentPairs:duplicates``: hash the features of the documents in scope, group the hashes, validate pairs."""

from __future__ import annotations

import time
from array import array
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from es_neardupe.candidates.fingerprints import read_fingerprints
from es_neardupe.candidates.spill_to_disk import SpilledEntries, scratch
from es_neardupe.commands.duplicates.diagnostics import (
    GroupingDiagnostics,
    HashingDiagnostics,
    PairsDiagnostics,
    ValidationDiagnostics,
)
from es_neardupe.commands.duplicates.hash_features import (
    HashGroups,
    LargeGroup,
    enriched_scope,
    group_hashes,
    read_scope,
)
from es_neardupe.commands.duplicates.request_plan import RATIO, SHARED, DuplicatesPlan, SchemeKeys, Validation
from es_neardupe.commands.duplicates.results import PairList, PairsStageReport, SkippedGroup
from es_neardupe.display_text import beginning, score_text
from es_neardupe.index import queries
from es_neardupe.index.document_text import TextFields, field_pages, text_of, values_by_field
from es_neardupe.index.index import Index, opened
from es_neardupe.index.slices import address_hashes
from es_neardupe.keys.arrays import Flags, Floats, Ints, Numbers, Positions
from es_neardupe.keys.minhash import estimate_of
from es_neardupe.keys.scheme import agreement
from es_neardupe.options import MeasureName
from es_neardupe.progress import Progress, silent
from es_neardupe.records import Address, DocumentsInScope
from es_neardupe.server.client import Client
from es_neardupe.server.search import count, fetch
from es_neardupe.similarity.alignment import totals
from es_neardupe.similarity.common_passages import common_passage
from es_neardupe.similarity.features import FeatureTree, describe, example, fields_of
from es_neardupe.similarity.formulas import Weights
from es_neardupe.similarity.measure import Measure, Prepared, weights_of
from es_neardupe.verification.current_texts import (
    CurrentDocuments,
    PairComparer,
    current_hits,
    prepared,
)
from es_neardupe.wording import counted

_MAX_CHARS = 100_000
"""Characters of a text that are searched for a common passage."""

_SAMPLE = 2000
"""Documents of the sample for the frequencies of shingles."""


def find_pairs(index: Index, plan: DuplicatesPlan, *, progress: Progress) -> PairsStageReport:
    """Run a stage of type ``documentPairs:duplicates``.

    Each text is read at most twice: to hash its features, and, if it is in a candidate pair, to compare it. Hashes
    that do not fit into memory are spilled to disk.
    """
    clock = _Clock()
    with scratch() as files:
        entries = SpilledEntries(files)
        scope, hashing = _scope(index, plan, entries, progress=progress)
        hashing = replace(hashing, seconds=clock.lap())
        groups = group_hashes(entries, scope.numbers, plan.max_group, progress)
        grouping_seconds = clock.lap()
        left, right = _across_indices(scope, groups) if plan.across_indices else (groups.left, groups.right)
    pairs, validated = _Pairs(left, right), list[_Validated]()
    for validation in plan.validations:
        one, pairs = _validate(index.client, scope, validation, pairs, progress)
        one.seconds = clock.lap()
        validated.append(one)
    if plan.explanations:
        pairs = _explain(validated, pairs, progress)
    failing = sum(one.failing for one in validated)
    grouping = GroupingDiagnostics(
        max_group=plan.max_group,
        groups=groups.groups,
        skipped=groups.skipped,
        comparisons=groups.comparisons,
        skipped_comparisons=groups.skipped_comparisons,
        candidates=len(groups.left),
        out_of_scope=len(groups.left) - len(pairs.left) - failing,
        seconds=grouping_seconds,
    )
    return PairsStageReport(
        pairs=_in_order(scope, pairs, [one.function for one in validated] if plan.explanations else []),
        diagnostics=PairsDiagnostics(hashing, grouping, tuple(one.diagnostics() for one in validated)),
        skipped_groups=_skipped_groups(index, scope, groups.largest, plan.grouping),
        validations=len(validated),
        scope=scope,
    )


class _Clock:
    """Measures the seconds between its laps."""

    def __init__(self) -> None:
        self._since = time.monotonic()

    def lap(self) -> float:
        before, self._since = self._since, time.monotonic()
        return round(self._since - before, 3)


# Scope


def _scope(
    index: Index, plan: DuplicatesPlan, entries: SpilledEntries, *, progress: Progress
) -> tuple[DocumentsInScope, HashingDiagnostics]:
    """Read the documents in scope, and write the hashes of their features, or their stored keys, to ``entries``."""
    query = queries.matching(plan.query)
    if isinstance(plan.grouping, SchemeKeys):
        return _enriched(index, query, entries, progress=progress)
    total = index.documents.count(query)
    fields = fields_of(plan.grouping)
    pages = field_pages(index.documents, fields, query, fields)
    scope = read_scope(pages, plan.grouping, entries, progress, total)
    return scope, HashingDiagnostics(
        features=describe(plan.grouping),
        documents=len(scope),
        without_fingerprint=None,
        without_features=scope.empty,
        hashes=entries.total,
    )


def _enriched(
    index: Index, query: dict[str, Any], entries: SpilledEntries, *, progress: Progress
) -> tuple[DocumentsInScope, HashingDiagnostics]:
    """Read the stored keys of the documents in scope that have a fingerprint; the others are counted."""
    index = opened(index)
    total = count(index.client, index.name, query)
    corpus = read_fingerprints(index, progress, scope=query)
    corpus = replace(corpus, versions=index.storage.document_versions(corpus.references, corpus.versions[:]))
    scheme = index.settings.scheme
    scope = enriched_scope(corpus, scheme.agree, entries)
    bands = f"{counted(scheme.bands, 'band')} of {counted(scheme.rows, 'row')}{agreement(scheme.agree)}"
    return scope, HashingDiagnostics(
        features=f"band keys of scheme {index.scheme_id} ({bands})",
        documents=total,
        without_fingerprint=total - len(corpus),
        without_features=scope.empty,
        hashes=entries.total,
    )


# Grouping


def _across_indices(scope: DocumentsInScope, groups: HashGroups) -> tuple[Numbers, Numbers]:
    """The candidate pairs of documents in two different indices."""
    index = scope.references.indices
    across = index[groups.left] != index[groups.right]
    return groups.left[across], groups.right[across]


def _skipped_groups(
    index: Index, scope: DocumentsInScope, groups: Sequence[LargeGroup], grouping: FeatureTree | SchemeKeys
) -> tuple[SkippedGroup, ...]:
    """The groups with the addresses of their documents and an example of their feature, read from the current texts.

    For stored keys, the example is a common passage of the documents.
    """
    if not groups:
        return ()
    if isinstance(grouping, SchemeKeys):
        fields = opened(index).settings.fields
        examples = [_passage(index.client, scope, group, fields) for group in groups]
    else:
        examples = _features(index.client, scope, groups, grouping)
    return tuple(
        SkippedGroup(group.size, tuple(Address(*scope.references[number][:2]) for number in group.documents), text)
        for group, text in zip(groups, examples, strict=True)
    )


def _features(
    client: Client, scope: DocumentsInScope, groups: Sequence[LargeGroup], tree: FeatureTree
) -> list[str | None]:
    """The feature of each group, from its first listed document that still has it; None if none has."""
    found: list[str | None] = [None] * len(groups)
    fields = fields_of(tree)
    for place in range(max(len(group.documents) for group in groups)):
        pending = [k for k, group in enumerate(groups) if found[k] is None and place < len(group.documents)]
        references = [scope.references[groups[k].documents[place]] for k in pending]
        for k, hit in zip(pending, fetch(client, references, fields), strict=True):
            if hit is not None:
                text = example(tree, values_by_field(hit.source, fields), groups[k].hash)
                found[k] = None if text is None else beginning(text)
    return found


def _passage(client: Client, scope: DocumentsInScope, group: LargeGroup, fields: Sequence[str]) -> str | None:
    """The beginning of a passage that the listed documents of a group share; None if they share none."""
    references = [scope.references[number] for number in group.documents]
    hits = [hit for hit in fetch(client, references, fields) if hit is not None]
    passage = common_passage([text_of(hit.source, fields)[:_MAX_CHARS] for hit in hits])
    return beginning(passage) or None


# Validation


@dataclass(frozen=True)
class SimilarityFunction:
    """Measure of a pair of documents, of their features (`OF_FEATURES`) or of their texts."""

    measure: Measure
    fields: tuple[str, ...]
    """Fields of the features; or the fields whose values, joined in this order, are the text."""
    counted: bool = False
    """Whether the similarity is the number of shared features instead of their ratio."""

    @property
    def label(self) -> str:
        """The name of the function in the diagnostics."""
        if self.measure.sources:
            return f"pairwiseSimilarity:{SHARED if self.counted else RATIO} [{self._features}]"
        words = "" if self.measure.name in (MeasureName.BAG, MeasureName.EDIT) else f"w = {self.measure.shingle}; "
        return f"pairwiseSimilarity:{self.measure.label} [{words}texts {self._from}]"

    @property
    def details(self) -> Measure | None:
        """The measure with the numbers that an explanation needs in addition to the similarity."""
        if self.measure.aligned:
            return AlignmentNumbers(self.measure.name, self.measure.matching, shingle=self.measure.shingle)
        return Measure(shingle=self.measure.shingle) if self.measure.name is MeasureName.WEIGHTED else None

    def explained(self, similarity: float, sizes: tuple[int, int], numbers: Sequence[float] = ()) -> str:
        """A sentence with the numbers that a similarity is computed from.

        ``sizes``: compared parts of each document (`Measure.prepare`). ``numbers``: of the `details`: L, S, C and n of
        common passages; the resemblance for the measure weighted.
        """
        if self.measure.sources:
            common = round(similarity) if self.counted else shared(similarity, sum(sizes))
            total = counted(sum(sizes) - common, "distinct feature")
            return f"Documents share {common:,} out of {total} ({self._features})."
        interval = _interval(similarity, sizes[0]) if self.measure.name is MeasureName.ESTIMATE else ""
        measured = f"{self.measure.label} of the texts {self._from}"
        counts = self._counts(similarity, sizes, numbers)
        return f"Documents are {score_text(similarity)} similar{interval} by {measured}: {counts}."

    def _counts(self, similarity: float, sizes: tuple[int, int], numbers: Sequence[float]) -> str:
        """The counts of the fraction that a similarity of texts is, such as "85 of 112 words in 2 passages"."""
        name, both = self.measure.name, sum(sizes)
        if self.measure.aligned:
            longer, shorter, common, passages = map(int, numbers)
            whole = {MeasureName.JACCARD: longer + shorter - common, MeasureName.CONTAINMENT: shorter}.get(name, longer)
            words, parts = counted(whole, "word"), counted(passages, "passage")
            return f"{common:,} of {words} in {parts}, L = {longer:,}, S = {shorter:,}"
        if name is MeasureName.ESTIMATE:
            equal = _equal_slots(similarity, sizes[0])
            return f"{equal:,} of {sizes[0]:,} slots of the signatures {'is' if equal == 1 else 'are'} equal"
        if name is MeasureName.EDIT:
            return f"{round(similarity * max(sizes)):,} of {counted(max(sizes), 'word')} unchanged"
        common = shared(numbers[0] if name is MeasureName.WEIGHTED else similarity, both)
        noun = f"{self.measure.ngram}-gram" if name is MeasureName.BAG else "shingle"
        how = {MeasureName.WEIGHTED: ", weighted by rarity", MeasureName.BAG: ", counted with repetitions"}
        return f"{common:,} of {counted(both - common, noun)}{how.get(name, '')}"

    @property
    def _features(self) -> str:
        return " + ".join(map(describe, self.measure.sources))

    @property
    def _from(self) -> str:
        return f"from field{'s' * (len(self.fields) != 1)}: {', '.join(self.fields)}"


def shared(ratio: float, both: int) -> int:
    """The number of common elements of two sets. From s = c / (a + b - c) follows c = s (a + b) / (1 + s)."""
    return round(ratio * both / (1 + ratio))


@dataclass(frozen=True)
class AlignmentNumbers(Measure):
    """Notes L, S, C and n of each pair. A score is the place of a pair in ``numbers``."""

    numbers: array[int] = field(default_factory=lambda: array("q"), compare=False, repr=False)

    def scores(
        self, prepared: Sequence[Prepared], left: Numbers, right: Numbers, progress: Progress = silent
    ) -> Floats:
        """The places of the numbers of the pairs."""
        first = len(self.numbers) // 4
        for found in totals(prepared, left, right, self.matching, self.shingle, progress=progress):
            self.numbers.extend(found)
        return np.arange(first, first + len(left), dtype=np.float64)

    def of(self, places: Floats, sizes: Ints) -> Floats:
        """L, S, C and n of the pairs with these places; float64[pairs, 4]. ``sizes``: words of both texts, int64[pairs,
        2]. Texts without words are not aligned, and have nothing in common."""
        numbers = np.zeros((len(places), 4))
        numbers[:, 0], numbers[:, 1] = sizes.max(axis=1, initial=0), sizes.min(axis=1, initial=0)
        worded = (sizes > 0).all(axis=1)
        numbers[worded] = np.array(self.numbers).reshape(-1, 4)[places[worded].astype(np.intp)]
        return numbers


@dataclass(frozen=True)
class _Pairs:
    """Pairs that passed some validations. p pairs, v validations."""

    left: Numbers
    """Shape (p,)."""
    right: Numbers
    similarity: tuple[Floats | Ints, ...] = ()
    """By each validation: v arrays of shape (p,); integers for numbers of shared features."""
    sizes: tuple[Ints, ...] = ()
    """Compared parts of both documents: v arrays of shape (p, 2)."""
    numbers: tuple[Floats, ...] = ()
    """What explanations need in addition: v arrays of shape (p, 4), (p, 1) or (p, 0)."""

    @property
    def ends(self) -> tuple[Numbers, Numbers]:
        """Both documents of each pair."""
        return self.left, self.right

    def only(self, some: Flags | Positions) -> _Pairs:
        """Some of the pairs."""
        return _Pairs(
            self.left[some],
            self.right[some],
            tuple(one[some] for one in self.similarity),
            tuple(one[some] for one in self.sizes),
            tuple(one[some] for one in self.numbers),
        )


@dataclass
class _Validated:
    """A validation that was computed."""

    validation: Validation
    function: SimilarityFunction
    documents: CurrentDocuments
    passing: int
    failing: int
    seconds: float = 0

    def diagnostics(self) -> ValidationDiagnostics:
        """Its numbers."""
        weights = self.function.measure.weights
        return ValidationDiagnostics(
            function=self.function.label,
            min=self.validation.min,
            max=self.validation.max,
            passing=self.passing,
            failing=self.failing,
            read=int(self.documents.seen.sum()),
            changed_or_deleted=int(self.documents.changed_or_deleted.sum()),
            sampled=None if weights is None else weights.documents,
            seconds=self.seconds,
        )


def _validate(
    client: Client, scope: DocumentsInScope, validation: Validation, pairs: _Pairs, progress: Progress
) -> tuple[_Validated, _Pairs]:
    """Compute the similarity of pairs by their current texts. The pairs that pass have it in addition."""
    function = _similarity_function(client, scope, validation)
    documents = CurrentDocuments.of_scope(client, scope, function.fields)
    comparer = PairComparer(documents, {"validating pairs": function.measure})
    compared = comparer.compare(pairs.left, pairs.right, progress)
    (ratio,), (sizes,) = compared
    both = np.stack([sizes[pairs.left], sizes[pairs.right]], axis=1)
    similarity: Floats | Ints = ratio
    compared_pairs = ~np.isnan(ratio)
    if function.counted:
        known = np.where(compared_pairs, ratio, 0)
        similarity = np.rint(known * both.sum(axis=1) / (1 + known)).astype(np.int64)
    passing = compared_pairs & (similarity >= validation.min) & (similarity <= validation.max)
    number = int(passing.sum())
    validated = _Validated(validation, function, documents, number, int(compared_pairs.sum()) - number)
    added = _Pairs(pairs.left, pairs.right, (*pairs.similarity, similarity), (*pairs.sizes, both), pairs.numbers)
    return validated, added.only(passing)


def similarities_of(
    client: Client,
    scope: DocumentsInScope,
    validation: Validation,
    left: Numbers,
    right: Numbers,
    *,
    progress: Progress,
) -> Floats:
    """The similarity of any pairs in scope, a ratio; NaN for pairs with a document that was changed or deleted."""
    function = _similarity_function(client, scope, validation)
    comparer = PairComparer(
        CurrentDocuments.of_scope(client, scope, function.fields), {"comparing members": function.measure}
    )
    similarity: Floats = comparer.compare(left, right, progress).similarity[0]
    return similarity


def _explain(validated: Sequence[_Validated], pairs: _Pairs, progress: Progress) -> _Pairs:
    """Add what explanations need and the comparison has not kept, from the texts, which are read again.

    Pairs with a document that was changed or deleted in the meantime are left out.
    """
    for one in validated:
        measure, numbers = one.function.details, np.empty((len(pairs.left), 0))
        if measure is not None:
            (found,) = (
                PairComparer(one.documents, {"explaining pairs": measure}).compare(*pairs.ends, progress).similarity
            )
            pairs, found = pairs.only(~np.isnan(found)), found[~np.isnan(found)]
            numbers = found.reshape(-1, 1)
            if isinstance(measure, AlignmentNumbers):
                numbers = measure.of(found, pairs.sizes[len(pairs.numbers)])
        pairs = replace(pairs, numbers=(*pairs.numbers, numbers))
    validated[-1].passing = len(pairs.left)
    return pairs


def _equal_slots(similarity: float, slots: int) -> int:
    """The number of equal slots of signatures that gives this estimate."""
    return round(slots * (similarity + (1 - similarity) / 256))


def _interval(similarity: float, slots: int) -> str:
    """The interval of an estimated similarity."""
    estimate = estimate_of(_equal_slots(similarity, slots), slots)
    return f" (95 % interval: {score_text(estimate.low)} to {score_text(estimate.high)})"


def _similarity_function(client: Client, scope: DocumentsInScope, validation: Validation) -> SimilarityFunction:
    """The function, with the weights that it needs, if any."""
    if validation.features is not None:
        measure, counted = Measure(sources=(validation.features,)), validation.measure == SHARED
        return SimilarityFunction(measure, fields_of(validation.features), counted)
    name = MeasureName(validation.measure)
    weights = _weights(client, scope, validation) if name is MeasureName.WEIGHTED else None
    ngram = validation.ngram if name is MeasureName.BAG else 1
    measure = Measure(name, validation.matching, shingle=validation.shingle, ngram=ngram, weights=weights)
    return SimilarityFunction(measure, validation.fields)


def _weights(client: Client, scope: DocumentsInScope, validation: Validation) -> Weights:
    """Frequencies of shingles in a random sample of the scope, which depends only on the addresses."""
    order = np.argsort(address_hashes(scope.references), kind="stable")
    sample = [scope.references[number] for number in order[:_SAMPLE].tolist()]
    resemblance, sets = Measure(shingle=validation.shingle), list[Prepared]()
    for hits in current_hits(client, sample, validation.fields):
        sets += prepared(resemblance, [hit.source for hit in hits], TextFields(tuple(validation.fields)))
    return weights_of(sets)


def _in_order(scope: DocumentsInScope, pairs: _Pairs, functions: Sequence[SimilarityFunction]) -> PairList:
    """The pairs by falling similarity, explained by the ``functions``, if any."""
    order = np.argsort(-pairs.similarity[0], kind="stable")  # pairs are in the order of addresses already
    pairs = pairs.only(order)

    def explained(place: int) -> str:
        columns = zip(functions, pairs.similarity, pairs.sizes, pairs.numbers, strict=True)
        return " ".join(
            function.explained(float(similarity[place]), tuple(sizes[place].tolist()), numbers[place].tolist())
            for function, similarity, sizes, numbers in columns
        )

    first, *others = pairs.similarity
    return PairList(scope.references, pairs.left, pairs.right, first, explained if functions else None, tuple(others))
