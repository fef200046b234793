"""From an enriched index to its verified pairs: what group and pairs have in common."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from es_neardupe import queries
from es_neardupe.clients import Client
from es_neardupe.indices import Target, count, refresh
from es_neardupe.progress import Progress, silent, tracked
from es_neardupe.records import Classes, Corpus
from es_neardupe.scoring import Measure
from es_neardupe.stages.candidates import Candidates, find_candidates
from es_neardupe.stages.corpus import classes_of, read_corpus, source_of
from es_neardupe.stages.verify import Verifier

__all__ = ["Verified", "class_keys", "read_fingerprints", "verified_pairs"]

_PAGE = 2000


class Verified(NamedTuple):
    """All candidate pairs of an index, compared."""

    corpus: Corpus
    classes: Classes
    candidates: Candidates
    verifier: Verifier
    similarity: NDArray[np.float64]
    """Of each candidate pair; NaN where a text is no longer there."""


def verified_pairs(
    client: Client, target: Target, measure: Measure, *, copies: bool, max_bucket: int, progress: Progress
) -> Verified:
    """Read the keys, join them, and compare each candidate pair by its present texts.

    ``copies``: whether exact copies go through all of it as one text.
    """
    corpus = read_fingerprints(client, target, progress)
    classes = classes_of(corpus, copies)
    candidates = find_candidates(class_keys(corpus, classes), max_bucket)
    verifier = Verifier(client, target.settings, corpus, classes, measure)
    similarity = verifier.similarities(candidates.left, candidates.right, progress)
    return Verified(corpus, classes, candidates, verifier, similarity)


def read_fingerprints(client: Client, target: Target, progress: Progress = silent) -> Corpus:
    """Read the fingerprints of the index's scheme as columns."""
    refresh(client, target.path)
    query = queries.fingerprinted(target.fields, target.scheme_id)
    total = count(client, target.path, query)
    body = {"query": query, "_source": source_of(target.fields)}
    pages = client.pages(target.path, body, page_size=_PAGE)
    told = tracked(pages, lambda stage, done, _: progress(stage, done * _PAGE, total), "reading keys", total, step=1)
    return read_corpus(told, target.settings.prefix, target.settings.scheme.bands)


def class_keys(corpus: Corpus, classes: Classes) -> NDArray[np.uint64]:
    """The keys of each class, shape (classes, bands)."""
    first = np.array([rows[0] for rows in classes.members], np.intp)
    keys: NDArray[np.uint64] = corpus.keys[first]
    return keys
