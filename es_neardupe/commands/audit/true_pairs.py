"""True pairs of a sample: its comparison with all texts of an index by counting every common feature, in this process
or by tasks on workers, each of which reads a slice of the documents. Only pairs leave the workers, and what decides
whether the index finds them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from scipy.sparse import csr_array

from es_neardupe.commands.audit.why_missed import DocumentStates, source_of, states_of
from es_neardupe.engines.chosen import until_cancelled
from es_neardupe.index import queries
from es_neardupe.index.document_text import prepared_text, text_pages
from es_neardupe.index.index import Index
from es_neardupe.index.index_on_workers import IndexOnWorkers
from es_neardupe.index.settings import Settings
from es_neardupe.keys.arrays import U64, Flags, Floats, Ints, Positions
from es_neardupe.keys.shingles import features
from es_neardupe.options import MAX_SLICES
from es_neardupe.progress import Progress
from es_neardupe.records import Hit, Reference
from es_neardupe.similarity.formulas import resemblances
from es_neardupe.verification.boilerplate import Boilerplate

_CELLS = 2_000_000
"""Pairs of texts counted at a time, which bounds the memory of a block to about 50 MB."""


class PairSimilarities(NamedTuple):
    """Pairs of a text inside the index and a given text, by their numbers, and their resemblance."""

    inside: Positions
    given: Positions
    similarity: Floats

    def only(self, kept: Flags) -> PairSimilarities:
        """The pairs selected by ``kept``, bool[pairs]."""
        return PairSimilarities(self.inside[kept], self.given[kept], self.similarity[kept])


class InvertedIndex:
    """Index from each feature of some texts to the texts that have it.

    A product of sparse matrices counts the common features of every pair. No pair is left out because of keys, lengths
    or estimates, so the result is the reference for candidates.
    """

    def __init__(self, features: Sequence[U64]) -> None:
        """``features``: sorted distinct features of each text, as returned by `es_neardupe.keys.shingles.features`."""
        self.features = list(features)
        self.sizes = _sizes(features)
        self._known, columns = np.unique(_joined(features), return_inverse=True)
        rows = np.concatenate(([0], np.cumsum(self.sizes)))
        shape = len(features), max(len(self._known), 1)
        matrix = csr_array((np.ones(len(columns), np.int32), columns.reshape(-1), rows), shape=shape)
        self._transposed = matrix.T.tocsr()

    def similar(self, features: Sequence[U64], minimum: float) -> Iterator[PairSimilarities]:
        """All pairs of a text inside and a given one that are at least ``minimum`` (above 0) similar, in blocks."""
        step = max(1, _CELLS // max(len(self.sizes), 1))
        for begin in range(0, len(features), step):
            block = features[begin : begin + step]
            sizes = _sizes(block)
            common = (self._rows(block, sizes) @ self._transposed).tocoo()
            given, inside = common.row, common.col
            similarity = common.data / (sizes[given] + self.sizes[inside] - common.data)
            true = np.flatnonzero(similarity >= minimum)
            yield PairSimilarities(inside[true].astype(np.intp), given[true].astype(np.intp) + begin, similarity[true])

    def within(self, minimum: float) -> Iterator[PairSimilarities]:
        """All such pairs of two texts inside, each pair once."""
        for inside, given, similarity in self.similar(self.features, minimum):
            once = inside < given
            yield PairSimilarities(inside[once], given[once], similarity[once])

    def _rows(self, block: Sequence[U64], sizes: Ints) -> csr_array:
        """Matrix of the given texts by known features."""
        flat = _joined(block)
        place = np.searchsorted(self._known, flat)
        known = np.zeros(len(flat), np.bool_)
        below = place < len(self._known)
        known[below] = self._known[place[below]] == flat[below]
        bounds = np.concatenate(([0], np.cumsum(known)))[np.concatenate(([0], np.cumsum(sizes)))]
        columns = place[known]
        shape = len(block), max(len(self._known), 1)
        return csr_array((np.ones(len(columns), np.int32), columns, bounds), shape=shape)


def _sizes(features: Sequence[U64]) -> Ints:
    return np.array([len(one) for one in features], np.int64)


def _joined(features: Sequence[U64]) -> U64:
    return np.concatenate([np.empty(0, np.uint64), *features])


_STAGE = "comparing with all texts"

_PER_WORKER = 4
"""Slices for each task that runs at a time, as of `enrich`."""


class TruePairs(NamedTuple):
    """Pairs of a sampled document and another one."""

    pairs: PairSimilarities
    others: DocumentStates
    """The given documents of the pairs, without classes."""
    only_boilerplate: Flags
    """Pairs that are similar only because of boilerplate."""


@dataclass(frozen=True)
class SampleTexts:
    """The texts of a sample, and when another one makes a true pair with them."""

    references: frozenset[Reference]
    inverted: InvertedIndex
    """The features of the sample."""
    minimum: float
    boilerplate: Boilerplate
    """Passages because of which unrelated texts are similar."""

    @cached_property
    def _without_passages(self) -> list[U64]:
        return self.boilerplate.without(self.inverted.features)

    def compared(self, hits: Sequence[Hit], settings: Settings) -> Iterator[TruePairs]:
        """The true pairs with documents that are not in the sample, in blocks."""
        others = [hit for hit in hits if hit.reference not in self.references]
        read = features_of(others, settings)
        for pairs in self.inverted.similar(read, self.minimum):
            inside, given, similarity = pairs
            apart = self.only_boilerplate(pairs, read)
            numbers, places = np.unique(given, return_inverse=True)
            states = states_of([others[k] for k in numbers.tolist()], settings)
            yield TruePairs(PairSimilarities(inside, places.reshape(-1), similarity), states, apart)

    def only_boilerplate(self, pairs: PairSimilarities, features: Sequence[U64]) -> Flags:
        """Whether each pair of a sampled text and one of these features is less similar without the passages than the
        minimum."""
        if not self.boilerplate.clusters:
            return np.zeros(len(pairs.inside), np.bool_)
        rest = [*self._without_passages, *self.boilerplate.without(features)]
        return resemblances(rest, pairs.inside, pairs.given + len(self._without_passages)) < self.minimum


def features_of(hits: Sequence[Hit], settings: Settings) -> list[U64]:
    """The features of the current texts; empty for a document without a readable text."""
    texts = [prepared_text(hit.source, settings) for hit in hits]
    return features(texts, settings.shingle, settings.unit)


def true_pairs(index: Index, sample: SampleTexts, progress: Progress) -> Iterator[TruePairs]:
    """Every true pair of a sampled document and one that is not in the sample."""
    total, read = index.documents.count(queries.matching(index.target.within())), 0
    portions: Iterable[tuple[int, Iterable[TruePairs]]] = _compared(index, sample, None)
    if index.engine is not None:
        slices = min(_PER_WORKER * index.engine.workers, MAX_SLICES)
        shared = _Comparing(IndexOnWorkers.of(index, index.engine.workers), sample, slices)
        portions = (result for _, result in index.engine.run(_compare_slice, shared, range(slices)))
    for size, found in portions:
        yield from found
        progress(_STAGE, read := read + size, total)


def _compared(
    index: Index, sample: SampleTexts, slice: tuple[int, int] | None
) -> Iterator[tuple[int, Iterator[TruePairs]]]:
    """The size of each page of documents, and their true pairs."""
    query = queries.matching(index.target.within())
    for page in text_pages(index, query, source_of(index.settings), slice):
        yield len(page), sample.compared(page, index.settings)


@dataclass(frozen=True)
class _Comparing:
    """What the tasks have in common."""

    index: IndexOnWorkers
    sample: SampleTexts
    slices: int


def _compare_slice(shared: _Comparing, number: int) -> tuple[int, list[TruePairs]]:
    """Task: the number of documents of a slice, and their true pairs."""
    progress, read, pairs = until_cancelled(), 0, list[TruePairs]()
    for size, found in _compared(shared.index.opened(), shared.sample, (number, shared.slices)):
        pairs += [one for one in found if len(one.pairs.inside)]
        progress(_STAGE, read := read + size, None)
    return read, pairs
