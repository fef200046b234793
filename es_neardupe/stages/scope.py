"""Stage: the documents in scope as they stream from the index -> where they are, and the hashes of their features."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Sequence
from sys import intern

import numpy as np
from numpy.typing import NDArray

from es_neardupe import documents
from es_neardupe.feature_trees import FeatureTree, distinct, fields_of, hashes
from es_neardupe.keys.bands import joint_keys
from es_neardupe.keys.mixing import mix64
from es_neardupe.progress import Progress, silent
from es_neardupe.records import Corpus, Hit, Reference, Scope
from es_neardupe.spill import Entries

__all__ = ["enriched_scope", "read_scope"]


def read_scope(
    pages: Iterable[Sequence[Hit]], tree: FeatureTree, entries: Entries, progress: Progress = silent, total: int = 0
) -> Scope:
    """Hash the features of each document, distinct ones, into ``entries``; of texts nothing is kept."""
    fields = fields_of(tree)
    references: list[Reference] = []
    versions, sizes = array("q"), array("q")
    empty = 0
    progress("hashing features", 0, total)
    for page in pages:
        values = [documents.values_by_field(hit.source, fields) for hit in page]
        first = len(references)
        for hit, one in zip(page, values, strict=True):
            references.append((intern(hit.index), hit.id, hit.routing))
            versions.extend((hit.seq_no or 0, hit.primary_term or 0))
            sizes.append(sum(len(value) for field in one.values() for value in field))
        found = distinct(hashes(tree, values))
        counts = np.diff(found.bounds)
        entries.add(found.values, np.repeat(np.arange(first, first + len(page), dtype=np.uint32), counts))
        empty += int((counts == 0).sum())
        progress("hashing features", len(references), total)
    return _scope(references, np.frombuffer(versions, np.int64).reshape(-1, 2), np.frombuffer(sizes, np.int64), empty)


def enriched_scope(corpus: Corpus, agree: int, entries: Entries) -> Scope:
    """The stored band keys of each document into ``entries``, joined where ``agree`` of them make a candidate."""
    keys = joint_keys(corpus.keys, agree)
    rows = np.repeat(np.arange(len(corpus), dtype=np.uint32), keys.shape[1]).reshape(keys.shape)
    there = keys != 0
    entries.add(mix64(keys[there]), rows[there])  # mixed: the characters of keys are in few ranges
    return _scope(corpus.references, corpus.versions, corpus.tokens, int((~there.any(axis=1)).sum()))


def _scope(references: list[Reference], versions: NDArray[np.int64], sizes: NDArray[np.int64], empty: int) -> Scope:
    order = sorted(range(len(references)), key=lambda row: (references[row][1], references[row][0]))
    numbers = np.empty(len(order), np.intp)
    numbers[order] = np.arange(len(order))
    return Scope([references[row] for row in order], versions[order], sizes[order], numbers, empty)
