"""From an enriched index to its verified pairs: what group and pairs have in common."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from es_neardupe.candidates.fingerprints import classes_of, read_corpus, source_of
from es_neardupe.candidates.join import Bucket, Candidates, find_candidates
from es_neardupe.candidates.large_buckets import passages, read_signatures
from es_neardupe.candidates.who_may_meet import DEFAULT_RULES, GroupRules
from es_neardupe.index import queries
from es_neardupe.index.index import Index
from es_neardupe.index.target import IndexTarget
from es_neardupe.progress import Progress, silent, tracked
from es_neardupe.records import Classes, Corpus
from es_neardupe.server.search import count, refresh_if_allowed
from es_neardupe.similarity.measure import Measure
from es_neardupe.verification.known_pairs import PairMemory
from es_neardupe.verification.verify import Verifier

__all__ = [
    "Verified",
    "candidate_pairs",
    "class_keys",
    "compared",
    "explained",
    "joined",
    "parts",
    "read_fingerprints",
    "verified_pairs",
]

_PAGE = 2000

_EXPLAINED = 20
"""Large buckets whose texts are looked at for what they have in common: the largest ones."""


class Verified(NamedTuple):
    """All candidate pairs of an index, compared."""

    corpus: Corpus
    classes: Classes
    candidates: Candidates
    verifier: Verifier
    similarity: NDArray[np.float64]
    """Of each candidate pair; NaN where a text is no longer there."""


def verified_pairs(
    index: Index,
    measure: Measure,
    *,
    copies: bool,
    progress: Progress,
    rules: GroupRules = DEFAULT_RULES,
    memory: PairMemory | None = None,
) -> Verified:
    """Read the keys, join them, and compare each candidate pair by its present texts.

    ``copies``: whether exact copies go through all of it as one text. The rules say which documents may meet, the
    memory which pairs need no reading.
    """
    corpus = read_fingerprints(index, progress, rules)
    return compared(
        index,
        measure,
        corpus,
        copies=copies,
        rules=rules,
        memory=memory,
        progress=progress,
    )


def compared(
    index: Index,
    measure: Measure,
    corpus: Corpus,
    *,
    copies: bool,
    rules: GroupRules,
    memory: PairMemory | None,
    progress: Progress,
    inside: NDArray[np.bool_] | None = None,
    earlier: Verifier | None = None,
) -> Verified:
    """The candidate pairs of a corpus, compared; with ``inside`` (bool[rows]) only pairs that touch such a row.

    ``earlier``: the verifier of a smaller corpus, whose reading need not be done again.
    """
    classes = classes_of(corpus, copies)
    candidates = candidate_pairs(index, corpus, classes, rules)
    if inside is not None:
        touched = classes.touching(inside)
        candidates = _only(candidates, touched[candidates.left] | touched[candidates.right])
    verifier = Verifier(index.client, index.settings, corpus, classes, measure, memory)
    if earlier is not None:
        verifier.adopt(earlier)
    similarity = verifier.similarities(candidates.left, candidates.right, progress)
    return Verified(corpus, classes, candidates, verifier, similarity)


def candidate_pairs(index: Index, corpus: Corpus, classes: Classes, rules: GroupRules) -> Candidates:
    """What `joined` finds, as far as it may meet by the rules; no text is read."""
    return _meeting(corpus, classes, joined(index, corpus, classes, rules.max_bucket), rules)


def joined(index: Index, corpus: Corpus, classes: Classes, max_bucket: int) -> Candidates:
    """The pairs of classes that share as many keys as the scheme asks for; in buckets over ``max_bucket`` those that
    the stored signatures choose."""
    documents = np.array([len(rows) for rows in classes.members], np.int64)
    signatures = partial(read_signatures, index, corpus, classes)
    agree = index.settings.scheme.agree
    return find_candidates(class_keys(corpus, classes), max_bucket, signatures, documents, agree)


def explained(index: Index, found: Verified) -> tuple[Bucket, ...]:
    """The large buckets; the largest of them with what their texts have in common."""
    large = found.candidates.large
    some = large[:_EXPLAINED]
    shared = passages(index, found.corpus, found.classes, [one.sample for one in some])
    return (*(replace(one, passage=passage) for one, passage in zip(some, shared, strict=True)), *large[_EXPLAINED:])


def _meeting(corpus: Corpus, classes: Classes, candidates: Candidates, rules: GroupRules) -> Candidates:
    """The candidates that may meet by the rules."""
    if rules.within is None and rules.window is None:
        return candidates
    first = classes.first
    a, b = first[candidates.left], first[candidates.right]
    may = corpus.scopes[a] == corpus.scopes[b]
    if rules.window is not None:
        may &= np.abs(corpus.days[a] - corpus.days[b]) <= rules.window.days
    return _only(candidates, may)


def _only(candidates: Candidates, kept: NDArray[np.bool_]) -> Candidates:
    return replace(candidates, left=candidates.left[kept], right=candidates.right[kept])


def read_fingerprints(
    index: Index,
    progress: Progress = silent,
    rules: GroupRules = DEFAULT_RULES,
    scope: Mapping[str, Any] | None = None,
) -> Corpus:
    """Read the fingerprints of the index's scheme, and what the rules need of each document, as columns.

    ``scope``: only of documents that match it.
    """
    refresh_if_allowed(index.client, index.path)
    query = queries.fingerprinted(index.fields, index.scheme_id)
    query = query if scope is None else queries.all_of(scope, query)
    total = count(index.client, index.path, query)
    body = {"query": query, **parts(index.target, rules)}
    pages = index.client.pages(index.path, body, page_size=_PAGE)
    told = tracked(pages, lambda stage, done, _: progress(stage, done * _PAGE, total), "reading keys", total, step=1)
    return read_corpus(told, index.settings.prefix, index.settings.scheme.bands, rules)


def parts(target: IndexTarget, rules: GroupRules) -> dict[str, Any]:
    """The parts of documents that a corpus is made of, for the body of a search."""
    columns = rules.columns
    return {"_source": source_of(target.fields)} | ({"docvalue_fields": columns} if columns else {})


def class_keys(corpus: Corpus, classes: Classes) -> NDArray[np.uint64]:
    """The keys of each class, shape (classes, bands)."""
    keys: NDArray[np.uint64] = corpus.keys[classes.first]
    return keys
