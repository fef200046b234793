"""Stage ``documentPairs:duplicates``: hash the features of the documents in scope, group the hashes, validate pairs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from es_neardupe.candidates.fingerprints import read_fingerprints
from es_neardupe.commands.duplicates.hash_features import (
    HashGroups,
    LargeGroup,
    enriched_scope,
    group_hashes,
    read_scope,
)
from es_neardupe.commands.duplicates.request_plan import RATIO, DuplicatesPlan, SchemeKeys, Validation
from es_neardupe.commands.duplicates.results import PairList, PairsResult, SkippedGroup
from es_neardupe.display_text import beginning
from es_neardupe.index import queries
from es_neardupe.index.document_text import field_pages, text_of, values_by_field
from es_neardupe.index.index import Index, opened
from es_neardupe.index.random_samples import address_hashes
from es_neardupe.keys.arrays import Flags, Positions
from es_neardupe.keys.minhash import estimate_of
from es_neardupe.keys.scheme import agreement
from es_neardupe.options import MeasureName
from es_neardupe.progress import Progress
from es_neardupe.records import Address, DocumentsInScope
from es_neardupe.server.client import Client
from es_neardupe.server.search import count, fetch
from es_neardupe.similarity.common_passages import common_passage
from es_neardupe.similarity.features import FeatureTree, describe, example, fields_of
from es_neardupe.similarity.formulas import Weights
from es_neardupe.similarity.measure import MEANINGS, Measure, Prepared, weights_of
from es_neardupe.verification.current_texts import (
    Compared,
    CurrentDocuments,
    PairComparer,
    current_hits,
    prepared,
)
from es_neardupe.verification.spill_to_disk import SpilledEntries, scratch

__all__ = ["SimilarityFunction", "find_pairs"]


_MAX_CHARS = 100_000
"""Characters of a text that are searched for a common passage."""

_SAMPLE = 2000
"""Documents of the sample for the frequencies of shingles."""

Counters = dict[str, Any]
"""Name of a count in the diagnostics -> number or text."""


def find_pairs(index: Index, plan: DuplicatesPlan, *, progress: Progress) -> PairsResult:
    """Run a stage of type ``documentPairs:duplicates``.

    Each text is read at most twice: to hash its features, and, if it is in a candidate pair, to compare it. Hashes
    that do not fit into memory are spilled to disk.
    """
    clock = _Clock()
    with scratch() as files:
        entries = SpilledEntries(files)
        scope, hashed = _scope(index, plan, entries, progress=progress)
        hashed["Seconds"] = clock.lap()
        groups = group_hashes(entries, scope.numbers, plan.max_group, progress)
        aggregated = _aggregated(groups) | {"Seconds": clock.lap()}
        function, sampled = _similarity_function(index.client, scope, plan.validation)
        left, right = _across_indices(scope, groups) if plan.across_indices else (groups.left, groups.right)
    documents = CurrentDocuments.of_scope(index.client, scope, function.fields)
    compared = PairComparer(documents, {"validating pairs": function.measure}).compare(left, right, progress)
    (similarity,) = compared.similarity
    passing = (similarity >= plan.validation.min) & (similarity <= plan.validation.max)
    in_scope = int((~np.isnan(similarity)).sum())
    validation = {
        "Pairwise similarity function": function.label,
        "Similarity thresholds": [plan.validation.min, plan.validation.max],
        "Pairs passing": int(passing.sum()),
        "Pairs failing": in_scope - int(passing.sum()),
        "Documents read": int(documents.seen.sum()),
        "Documents deleted or changed": int(documents.changed_or_deleted.sum()),
        **sampled,
        "Seconds": clock.lap(),
    }
    aggregated["Out of scope pairs"] = aggregated["Candidate pairs"] - in_scope
    return PairsResult(
        pairs=_passing(scope, left, right, compared, passing, function=function if plan.explanations else None),
        diagnostics={
            "Computing feature hashes": hashed,
            "Aggregating results": aggregated,
            f"Validating pairs using {function.label}": validation,
        },
        skipped_groups=_skipped_groups(index, scope, groups.largest, plan.grouping),
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
) -> tuple[DocumentsInScope, Counters]:
    """Read the documents in scope, and write the hashes of their features, or their stored keys, to ``entries``."""
    query = queries.matching(plan.query)
    if isinstance(plan.grouping, SchemeKeys):
        return _enriched(index, query, entries, progress=progress)
    total = count(index.client, index.name, query)
    fields = fields_of(plan.grouping)
    pages = field_pages(index.client, index.name, fields, query, fields)
    scope = read_scope(pages, plan.grouping, entries, progress, total)
    return scope, {
        "Features": describe(plan.grouping),
        "Documents": len(scope),
        "Documents without features": scope.empty,
        "Hash count": entries.total,
    }


def _enriched(
    index: Index, query: dict[str, Any], entries: SpilledEntries, *, progress: Progress
) -> tuple[DocumentsInScope, Counters]:
    """Read the stored keys of the documents in scope that have a fingerprint; the others are counted."""
    index = opened(index)
    total = count(index.client, index.name, query)
    corpus = read_fingerprints(index, progress, scope=query)
    corpus = replace(corpus, versions=index.storage.document_versions(corpus.references, corpus.versions))
    scheme = index.settings.scheme
    scope = enriched_scope(corpus, scheme.agree, entries)
    bands = f"{scheme.bands} bands of {scheme.rows} rows{agreement(scheme.agree)}"
    return scope, {
        "Features": f"band keys of scheme {index.scheme_id} ({bands})",
        "Documents": total,
        "Documents without fingerprint": total - len(corpus),
        "Documents without features": scope.empty,
        "Hash count": entries.total,
    }


# Grouping


def _aggregated(groups: HashGroups) -> Counters:
    return {
        "Hash collision groups": groups.groups,
        "Skipped large hash collision groups": groups.skipped,
        "Pairwise hash comparisons": groups.comparisons,
        "Candidate pairs": len(groups.left),
        "Out of scope pairs": 0,
    }


def _across_indices(scope: DocumentsInScope, groups: HashGroups) -> tuple[Positions, Positions]:
    """The candidate pairs of documents in two different indices."""
    names = {name: number for number, name in enumerate(dict.fromkeys(reference[0] for reference in scope.references))}
    index = np.array([names[reference[0]] for reference in scope.references], np.int64)
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
    """Measure of a pair of documents, of their features (`RATIO`) or of their texts."""

    measure: Measure
    fields: tuple[str, ...]
    """Fields of the features; or the fields whose values, joined in this order, are the text."""

    @property
    def label(self) -> str:
        """The name of the function in the diagnostics."""
        if self.measure.sources:
            return f"pairwiseSimilarity:{RATIO} [{self._features}]"
        words = "" if self.measure.name in (MeasureName.BAG, MeasureName.EDIT) else f"w = {self.measure.shingle}; "
        return f"pairwiseSimilarity:{self.measure.label} [{words}texts {self._from}]"

    def explained(self, similarity: float, sizes: tuple[int, int]) -> str:
        """A sentence that explains a similarity. ``sizes``: compared parts of each document (`Measure.prepare`)."""
        if self.measure.sources:
            return self._shares(similarity, sum(sizes))
        meaning = MEANINGS[self.measure.name].partition(":")[0]
        measured = f"{self.measure.label} of the texts {self._from}: {meaning}"
        interval = _interval(similarity, sizes[0]) if self.measure.name is MeasureName.ESTIMATE else ""
        return f"Documents are {similarity:.4f} similar{interval} by {measured}."

    def _shares(self, similarity: float, both: int) -> str:
        """From s = c / (a + b - c) follows the number of shared features, c = s (a + b) / (1 + s)."""
        common = round(similarity * both / (1 + similarity))
        total = both - common
        return f"Documents share {common:,} out of {total:,} distinct feature{'s' * (total != 1)} ({self._features})."

    @property
    def _features(self) -> str:
        return " + ".join(map(describe, self.measure.sources))

    @property
    def _from(self) -> str:
        return f"from field{'s' * (len(self.fields) != 1)}: {', '.join(self.fields)}"


def _interval(similarity: float, slots: int) -> str:
    """The interval of an estimated similarity, from the number of equal slots that gives this estimate."""
    estimate = estimate_of(round(slots * (similarity + (1 - similarity) / 256)), slots)
    return f" (95 % interval: {estimate.low:.4f} to {estimate.high:.4f})"


def _similarity_function(
    client: Client, scope: DocumentsInScope, validation: Validation
) -> tuple[SimilarityFunction, Counters]:
    """The function, and the counters of the sample that it needs, if any."""
    if validation.features is not None:
        return SimilarityFunction(Measure(sources=(validation.features,)), fields_of(validation.features)), {}
    name = MeasureName(validation.measure)
    weights = _weights(client, scope, validation) if name is MeasureName.WEIGHTED else None
    ngram = validation.ngram if name is MeasureName.BAG else 1
    measure = Measure(name, validation.matching, shingle=validation.shingle, ngram=ngram, weights=weights)
    sampled = {} if weights is None else {"Documents sampled for weights": weights.documents}
    return SimilarityFunction(measure, validation.fields), sampled


def _weights(client: Client, scope: DocumentsInScope, validation: Validation) -> Weights:
    """Frequencies of shingles in a random sample of the scope, which depends only on the addresses."""
    order = np.argsort(address_hashes(scope.references), kind="stable")
    sample = [scope.references[number] for number in order[:_SAMPLE].tolist()]
    resemblance, sets = Measure(shingle=validation.shingle), list[Prepared]()
    for hits in current_hits(client, sample, validation.fields):
        sets += prepared(resemblance, [hit.source for hit in hits], validation.fields)
    return weights_of(sets)


def _passing(
    scope: DocumentsInScope,
    left: Positions,
    right: Positions,
    compared: Compared,
    passing: Flags,
    *,
    function: SimilarityFunction | None,
) -> PairList:
    """The passing pairs in order, explained if there is a ``function``."""
    (similarities,), (sizes,) = compared
    some = np.flatnonzero(passing)
    some = some[np.argsort(-similarities[some], kind="stable")]  # pairs are in the order of addresses already

    def explained(similarity: float, one: int, other: int) -> str:
        assert function is not None
        return function.explained(similarity, (int(sizes[one]), int(sizes[other])))

    return PairList(scope.references, left[some], right[some], similarities[some], explained if function else None)
