"""One stage of a request that finds pairs: hash the features of the scope, group the hashes, validate the pairs."""

from __future__ import annotations

import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from es_neardupe.candidates.fingerprints import read_fingerprints
from es_neardupe.commands.duplicates.hash_features import (
    HashGroups,
    LargeGroup,
    enriched_scope,
    group_hashes,
    read_scope,
)
from es_neardupe.commands.duplicates.request_plan import DuplicatesPlan, SchemeKeys
from es_neardupe.commands.duplicates.results import PairList, PairsResult, SkippedGroup
from es_neardupe.commands.duplicates.validation import SimilarityFunction, similarity_function
from es_neardupe.display_text import beginning
from es_neardupe.index import queries
from es_neardupe.index.document_text import field_pages, text_of, values_by_field
from es_neardupe.index.index import Index, opened
from es_neardupe.keys.scheme import agreement
from es_neardupe.progress import Progress
from es_neardupe.records import Address, DocumentsInScope
from es_neardupe.server.client import Client
from es_neardupe.server.fetch import fetch
from es_neardupe.server.search import count
from es_neardupe.similarity.common_passages import common_passage
from es_neardupe.similarity.features import FeatureTree, describe, example, fields_of
from es_neardupe.verification.current_texts import Compared, CurrentDocuments, PairComparer
from es_neardupe.verification.spill_to_disk import SpilledEntries, scratch

__all__ = ["find_pairs", "skipped_groups"]


_FETCH = 20
_LOOKED_AT = 100_000
"""Characters of a text in which common passages are sought."""


def skipped_groups(
    index: Index,
    scope: DocumentsInScope,
    groups: Sequence[LargeGroup],
    grouping: FeatureTree | SchemeKeys,
) -> tuple[SkippedGroup, ...]:
    """The groups by their documents' addresses, each with its feature as a document has it now. For stored keys that
    is the passage that some of its documents share."""
    if not groups:
        return ()
    if isinstance(grouping, SchemeKeys):
        fields = opened(index).settings.fields
        found = [_passage(index.client, scope, one, fields) for one in groups]
    else:
        found = _features(index.client, scope, groups, grouping)
    return tuple(
        SkippedGroup(one.size, tuple(Address(*scope.references[number][:2]) for number in one.documents), text)
        for one, text in zip(groups, found, strict=True)
    )


def _features(
    client: Client, scope: DocumentsInScope, groups: Sequence[LargeGroup], tree: FeatureTree
) -> list[str | None]:
    """Asks the first document of each group, then the second of those that lost the feature, and so on."""
    found: list[str | None] = [None] * len(groups)
    fields = fields_of(tree)
    for place in range(max(len(one.documents) for one in groups)):
        asked = [k for k, one in enumerate(groups) if found[k] is None and place < len(one.documents)]
        references = [scope.references[groups[k].documents[place]] for k in asked]
        for k, hit in zip(asked, fetch(client, references, fields, batch=_FETCH), strict=True):
            if hit is not None:
                text = example(tree, values_by_field(hit.source, fields), groups[k].hash)
                found[k] = None if text is None else beginning(text)
    return found


def _passage(client: Client, scope: DocumentsInScope, group: LargeGroup, fields: Sequence[str]) -> str | None:
    references = [scope.references[number] for number in group.documents]
    hits = [hit for hit in fetch(client, references, fields) if hit is not None]
    passage = common_passage([text_of(hit.source, fields)[:_LOOKED_AT] for hit in hits])
    return beginning(passage) or None


Diagnostics = dict[str, Any]


def find_pairs(index: Index, plan: DuplicatesPlan, *, progress: Progress) -> PairsResult:
    """Answer a stage of type ``documentPairs:duplicates``.

    Texts are read twice at most: all of them to be hashed, those of candidates to be compared. What would take
    too much memory lies in temporary files meanwhile.
    """
    clock = _Clock()
    with scratch() as files:
        entries = SpilledEntries(files)
        scope, hashed = _scope(index, plan, entries, progress=progress)
        hashed["Seconds"] = clock.lap()
        groups = group_hashes(entries, scope.numbers, plan.max_group, progress)
        aggregated = _aggregated(groups) | {"Seconds": clock.lap()}
        function, weighed = similarity_function(index.client, scope, plan.validation)
        left, right = _across_indices(scope, groups) if plan.across_indices else (groups.left, groups.right)
    documents = CurrentDocuments.of_scope(index.client, scope, function.fields)
    found = PairComparer(documents, {"validating pairs": function.measure}).compare(left, right, progress)
    (similarity,) = found.similarity
    passing = (similarity >= plan.validation.min) & (similarity <= plan.validation.max)
    compared = int((~np.isnan(similarity)).sum())
    validation = {
        "Pairwise similarity function": function.label,
        "Similarity thresholds": [plan.validation.min, plan.validation.max],
        "Pairs passing": int(passing.sum()),
        "Pairs failing": compared - int(passing.sum()),
        "Documents read": int(documents.seen.sum()),
        "Documents deleted or changed": int(documents.changed_or_deleted.sum()),
        **weighed,
        "Seconds": clock.lap(),
    }
    aggregated["Out of scope pairs"] = aggregated["Candidate pairs"] - compared
    return PairsResult(
        pairs=_listed(scope, left, right, found, passing, function=function if plan.explanations else None),
        diagnostics={
            "Computing feature hashes": hashed,
            "Aggregating results": aggregated,
            f"Validating pairs using {function.label}": validation,
        },
        skipped_groups=skipped_groups(index, scope, groups.largest, plan.grouping),
    )


class _Clock:
    """Tells the seconds since it was asked last."""

    def __init__(self) -> None:
        self._since = time.monotonic()

    def lap(self) -> float:
        before, self._since = self._since, time.monotonic()
        return round(self._since - before, 3)


def _scope(
    index: Index, plan: DuplicatesPlan, entries: SpilledEntries, *, progress: Progress
) -> tuple[DocumentsInScope, Diagnostics]:
    """Read the documents in scope; the hashes of their features, or their stored keys, are in ``entries`` then."""
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
) -> tuple[DocumentsInScope, Diagnostics]:
    """The stored keys of those documents in scope that have a fingerprint; the others are counted."""
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


def _aggregated(groups: HashGroups) -> Diagnostics:
    return {
        "Hash collision groups": groups.groups,
        "Skipped large hash collision groups": groups.skipped,
        "Pairwise hash comparisons": groups.comparisons,
        "Candidate pairs": len(groups.left),
        "Out of scope pairs": 0,
    }


def _across_indices(scope: DocumentsInScope, groups: HashGroups) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The candidates whose documents are in two different indices."""
    names = {name: number for number, name in enumerate(dict.fromkeys(reference[0] for reference in scope.references))}
    index = np.array([names[reference[0]] for reference in scope.references], np.int64)
    across = index[groups.left] != index[groups.right]
    return groups.left[across], groups.right[across]


def _listed(
    scope: DocumentsInScope,
    left: NDArray[np.intp],
    right: NDArray[np.intp],
    found: Compared,
    passing: NDArray[np.bool_],
    *,
    function: SimilarityFunction | None,
) -> PairList:
    """The passing pairs in order; explained where there is a ``function``."""
    (similarities,), (sizes,) = found
    some = np.flatnonzero(passing)
    some = some[np.argsort(-similarities[some], kind="stable")]  # pairs ascend by address already

    def explained(similarity: float, one: int, other: int) -> str:
        assert function is not None
        return function.explained(similarity, (int(sizes[one]), int(sizes[other])))

    return PairList(scope.references, left[some], right[some], similarities[some], explained if function else None)
