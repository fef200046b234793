"""One stage of a request that finds pairs: hash the features of the scope, group the hashes, validate the pairs."""

from __future__ import annotations

import time
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from es_neardupe import queries
from es_neardupe.asking import count
from es_neardupe.clients import Client
from es_neardupe.comparers import Comparer
from es_neardupe.feature_trees import describe, fields_of
from es_neardupe.keys.scheme import agreement
from es_neardupe.pipeline.duplicate_comparers import comparer_of
from es_neardupe.pipeline.duplicate_examples import skipped_groups
from es_neardupe.pipeline.duplicate_results import PairList, PairsResult
from es_neardupe.pipeline.pairing import read_fingerprints
from es_neardupe.pipeline.reading import field_pages
from es_neardupe.progress import Progress
from es_neardupe.records import Scope
from es_neardupe.requests import DuplicatesPlan, SchemeKeys
from es_neardupe.sidecar import View, opened
from es_neardupe.spill import Entries, scratch
from es_neardupe.stages.hash_groups import HashGroups, group_hashes
from es_neardupe.stages.scope import enriched_scope, read_scope
from es_neardupe.stages.validation import Validated, validate

__all__ = ["find_pairs"]

Diagnostics = dict[str, Any]


def find_pairs(client: Client, index: str, plan: DuplicatesPlan, *, prefix: str, progress: Progress) -> PairsResult:
    """Answer a stage of type ``documentPairs:duplicates``.

    Texts are read twice at most: all of them to be hashed, those of candidates to be compared. What would take
    too much memory lies in temporary files meanwhile.
    """
    clock = _Clock()
    with scratch() as files:
        entries = Entries(files)
        scope, hashed = _scope(client, index, plan, entries, prefix=prefix, progress=progress)
        hashed["Seconds"] = clock.lap()
        groups = group_hashes(entries, scope.numbers, plan.max_group, progress)
        aggregated = _aggregated(groups) | {"Seconds": clock.lap()}
        comparer, weighed = comparer_of(client, scope, plan.validation)
        left, right = _across_indices(scope, groups) if plan.across_indices else (groups.left, groups.right)
        found = validate(client, scope, left, right, comparer=comparer, files=files, progress=progress)
    passing = (found.similarity >= plan.validation.min) & (found.similarity <= plan.validation.max)
    validation = _validation(plan, comparer, found, passing) | weighed | {"Seconds": clock.lap()}
    aggregated["Out of scope pairs"] = aggregated["Candidate pairs"] - int((~np.isnan(found.similarity)).sum())
    return PairsResult(
        pairs=_listed(scope, left, right, found, passing, comparer=comparer if plan.explanations else None),
        diagnostics={
            "Computing feature hashes": hashed,
            "Aggregating results": aggregated,
            f"Validating pairs using {comparer.label}": validation,
        },
        skipped_groups=skipped_groups(client, index, scope, groups.largest, plan.grouping, prefix=prefix),
    )


class _Clock:
    """Tells the seconds since it was asked last."""

    def __init__(self) -> None:
        self._since = time.monotonic()

    def lap(self) -> float:
        before, self._since = self._since, time.monotonic()
        return round(self._since - before, 3)


def _scope(
    client: Client, index: str, plan: DuplicatesPlan, entries: Entries, *, prefix: str, progress: Progress
) -> tuple[Scope, Diagnostics]:
    """Read the documents in scope; the hashes of their features, or their stored keys, are in ``entries`` then."""
    query = queries.matching(plan.query)
    if isinstance(plan.grouping, SchemeKeys):
        return _enriched(client, index, query, entries, prefix=prefix, progress=progress)
    total = count(client, index, query)
    fields = fields_of(plan.grouping)
    pages = field_pages(client, index, fields, query, fields)
    scope = read_scope(pages, plan.grouping, entries, progress, total)
    return scope, {
        "Features": describe(plan.grouping),
        "Documents": len(scope),
        "Documents without features": scope.empty,
        "Hash count": entries.total,
    }


def _enriched(
    client: Client, index: str, query: dict[str, Any], entries: Entries, *, prefix: str, progress: Progress
) -> tuple[Scope, Diagnostics]:
    """The stored keys of those documents in scope that have a fingerprint; the others are counted."""
    client, target = opened(client, index, prefix)
    total = count(client, index, query)
    corpus = read_fingerprints(client, target, progress, scope=query)
    if isinstance(client, View):  # the texts are read by the user's versions, which entries do not bear
        corpus = replace(corpus, versions=client.versions(corpus.references))
    scheme = target.settings.scheme
    scope = enriched_scope(corpus, scheme.agree, entries)
    bands = f"{scheme.bands} bands of {scheme.rows} rows{agreement(scheme.agree)}"
    return scope, {
        "Features": f"band keys of scheme {target.scheme_id} ({bands})",
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


def _validation(plan: DuplicatesPlan, comparer: Comparer, found: Validated, passing: NDArray[np.bool_]) -> Diagnostics:
    compared = int((~np.isnan(found.similarity)).sum())
    return {
        "Pairwise similarity function": comparer.label,
        "Similarity thresholds": [plan.validation.min, plan.validation.max],
        "Pairs passing": int(passing.sum()),
        "Pairs failing": compared - int(passing.sum()),
        "Documents read": found.read,
        "Documents deleted or changed": found.away,
    }


def _across_indices(scope: Scope, groups: HashGroups) -> tuple[NDArray[np.intp], NDArray[np.intp]]:
    """The candidates whose documents are in two different indices."""
    names = {name: number for number, name in enumerate(dict.fromkeys(reference[0] for reference in scope.references))}
    index = np.array([names[reference[0]] for reference in scope.references], np.int64)
    across = index[groups.left] != index[groups.right]
    return groups.left[across], groups.right[across]


def _listed(
    scope: Scope,
    left: NDArray[np.intp],
    right: NDArray[np.intp],
    found: Validated,
    passing: NDArray[np.bool_],
    *,
    comparer: Comparer | None,
) -> PairList:
    """The passing pairs in order; explained where there is a ``comparer``."""
    some = np.flatnonzero(passing)
    some = some[np.argsort(-found.similarity[some], kind="stable")]  # pairs ascend by address already

    def explained(similarity: float, one: int, other: int) -> str:
        assert comparer is not None
        return comparer.explained(similarity, (int(found.sizes[one]), int(found.sizes[other])))

    return PairList(scope.references, left[some], right[some], found.similarity[some], explained if comparer else None)
