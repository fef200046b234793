"""True pairs of a sample: its comparison with all texts of an index, in this process or by tasks on workers, each of
which reads a slice of the documents. Only pairs leave the workers, and what decides whether the index finds them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np

from es_neardupe.commands.audit.all_true_pairs import InvertedIndex, PairSimilarities
from es_neardupe.commands.audit.why_missed import DocumentStates, source_of, states_of
from es_neardupe.engines.chosen import until_cancelled
from es_neardupe.index import queries
from es_neardupe.index.document_text import prepared_text, text_pages
from es_neardupe.index.index import Index
from es_neardupe.index.index_on_workers import IndexOnWorkers
from es_neardupe.index.settings import Settings
from es_neardupe.keys.arrays import U64, Flags
from es_neardupe.keys.shingles import features
from es_neardupe.options import MAX_SLICES
from es_neardupe.progress import Progress
from es_neardupe.records import Address, Hit
from es_neardupe.similarity.formulas import resemblances
from es_neardupe.verification.boilerplate import Boilerplate

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

    addresses: frozenset[Address]
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
        others = [hit for hit in hits if hit.address not in self.addresses]
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
