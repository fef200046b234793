"""Comparison of pairs of texts by tasks on the workers of an engine. Each task reads its documents by their ids, once;
only similarities and flags leave the worker."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from es_neardupe.candidates.pair_arrays import portions
from es_neardupe.columns import References
from es_neardupe.engines.engine import Engine
from es_neardupe.index.index import Index
from es_neardupe.index.index_on_workers import IndexOnWorkers
from es_neardupe.keys.arrays import Bytes, Flags, Floats, Ints, Numbers, Positions
from es_neardupe.similarity.measure import Measure
from es_neardupe.verification.current_texts import CurrentDocuments, PairComparer, StoredTexts

_READ = 5000
"""Documents that a task reads if it compares no pairs."""


@dataclass(frozen=True)
class _Texts:
    """The texts of a task, as far as they are known without reading them; see `StoredTexts`."""

    references: References
    content: Bytes
    tokens: Ints


@dataclass(frozen=True)
class _Part:
    """The texts of a task, and the pairs to compare by the places of their texts."""

    number: int
    texts: _Texts
    left: Positions
    right: Positions


@dataclass(frozen=True)
class _Shared:
    """What the tasks of a run have in common."""

    index: IndexOnWorkers
    measure: Measure


@dataclass(frozen=True)
class ComparedTexts:
    """The result of a task. n texts, p pairs."""

    rows: Positions
    """The rows of the texts in the corpus; shape (n,)."""
    similarity: Floats
    """NaN if a text was changed or deleted; shape (p,)."""
    changed_or_deleted: Flags
    """Shape (n,)."""
    deleted: Flags
    """Shape (n,)."""
    common: Flags
    """Texts that have only ignored shingles; shape (n,)."""


@dataclass(frozen=True)
class ComparingWorkers:
    """Compares texts of an index by one measure."""

    engine: Engine
    shared: _Shared

    @classmethod
    def of(cls, index: Index, measure: Measure) -> ComparingWorkers | None:
        """The workers of the engine of an index; None without one."""
        if index.engine is None:
            return None
        return cls(index.engine, _Shared(IndexOnWorkers.of(index, index.engine.workers), measure))

    def compare(self, corpus: StoredTexts, left: Numbers, right: Numbers) -> Iterator[tuple[Positions, ComparedTexts]]:
        """The pairs of rows in portions, each with its result. Pairs that are connected by others are in one portion,
        so that each text is read once."""
        waiting: dict[int, tuple[Positions, Positions]] = {}
        limit = CurrentDocuments.portion

        def parts() -> Iterator[_Part]:
            for number, portion in enumerate(portions(left, right, corpus.tokens, limit)):
                pairs, rows = np.concatenate(list(portion.pairs())), portion.nodes
                waiting[number] = pairs, rows
                sides = (np.searchsorted(rows, side[pairs]) for side in (left, right))
                yield _Part(number, _texts(corpus, rows), *sides)

        for part, result in self.engine.run(_compare, self.shared, parts()):
            pairs, rows = waiting.pop(part.number)
            yield pairs, _of_rows(rows, result)

    def check(self, corpus: StoredTexts, rows: Positions) -> Iterator[tuple[Positions, ComparedTexts]]:
        """The rows in portions, each with the current state of its documents."""
        some = {number: rows[start : start + _READ] for number, start in enumerate(range(0, len(rows), _READ))}
        none = np.zeros(0, np.intp)
        parts = (_Part(number, _texts(corpus, one), none, none) for number, one in some.items())
        for part, result in self.engine.run(_compare, self.shared, parts):
            yield some[part.number], _of_rows(some[part.number], result)


def _texts(corpus: StoredTexts, rows: Positions) -> _Texts:
    return _Texts(corpus.references.take(rows), corpus.content[rows], corpus.tokens[rows])


_Result = tuple[Floats, Flags, Flags, Flags]
"""The columns of `ComparedTexts`, without the rows."""


def _of_rows(rows: Positions, result: _Result) -> ComparedTexts:
    return ComparedTexts(rows, *result)


def _compare(shared: _Shared, part: _Part) -> _Result:
    """Task: read the current texts, and compare the pairs."""
    index = shared.index.opened()
    documents = CurrentDocuments.of_corpus(index.client, index.settings, part.texts)
    comparer = PairComparer(documents, {"": shared.measure})
    similarity = comparer.compare(part.left, part.right).similarity[0]
    comparer.check(np.flatnonzero(~documents.seen))
    common = np.zeros(len(documents.seen), np.bool_)
    common[list(comparer.common)] = True
    return similarity, documents.changed_or_deleted, documents.deleted, common
