"""Shares of the chunks of documents that match chunks of other documents, as products of sparse matrices."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from scipy.sparse import coo_array, csr_array, eye_array

from es_neardupe.columns import RowLists, ValueSets
from es_neardupe.commands.documents.report import SharedChunks, SharingDocuments
from es_neardupe.keys.arrays import Floats, Ints, Numbers
from es_neardupe.progress import Progress, silent
from es_neardupe.records import FingerprintColumns

_ENTRIES = 4_000_000
"""Maximum number of products summed up at a time, unless one document has more."""


def shared_texts_meet_all(corpus: FingerprintColumns) -> FingerprintColumns:
    """The corpus for comparisons across documents: a text that chunks of several documents have is compared with all
    others, as one text. ``across`` of the corpus: the documents of each chunk."""
    _, text = np.unique(corpus.content, return_inverse=True)
    numbers, sets = corpus.across.numbers, corpus.across.sets
    lowest = np.full(len(numbers), len(sets))
    highest = np.full(len(numbers), -1)
    np.minimum.at(lowest, text.reshape(-1), numbers)
    np.maximum.at(highest, text.reshape(-1), numbers)
    of_one = (lowest == highest)[text.reshape(-1)]
    return replace(corpus, across=ValueSets(np.where(of_one, numbers, len(sets)), [*sets, ()]))


@dataclass(frozen=True)
class ChunksOfDocuments:
    """The chunks of d documents, in k classes of equal texts."""

    names: tuple[str, ...]
    """Of the documents, sorted."""
    counts: csr_array
    """Chunks of each document in each class; shape (k, d)."""
    words: csr_array
    """Words of these chunks; shape (k, d)."""
    number: int
    """Chunks of documents."""
    without: int
    """Chunks of no document."""

    def pairs(
        self, left: Numbers, right: Numbers, top: int, progress: Progress = silent
    ) -> tuple[tuple[SharingDocuments, ...], int]:
        """The ``top`` pairs of documents, and the number of all. ``left`` and ``right``: classes that match."""
        size = len(self.names)
        links = coo_array((np.ones(len(left), np.int64), (left, right)), shape=(self.counts.shape[0],) * 2).tocsr()
        has = (self.counts > 0).astype(np.int64)
        found = ((links + links.T + eye_array(len(has.indptr) - 1, dtype=np.int64, format="csr")) @ has).tocsr()
        found.data[:] = 1
        """Whether a chunk of the document matches the class; shape (k, d)."""
        best, total = np.zeros((0, 6), np.int64), 0
        for first, last in self._blocks(found, has):
            progress("comparing documents", first, size)
            blocks = [_product(one, other, first, last) for one, other in self._factors(found)]
            rows = np.stack([blocks[0].row + first, blocks[0].col, *(block.data for block in blocks)], axis=1)
            rows = rows[rows[:, 0] < rows[:, 1]]
            total += len(rows)
            best = self._best(np.concatenate((best, rows)), top)
        progress("comparing documents", size, size)
        pairs = (SharingDocuments(self._side(*row[::2]), self._side(*row[1::2])) for row in best.tolist())
        return tuple(pairs), total

    def _factors(self, found: csr_array) -> Iterator[tuple[csr_array, csr_array]]:
        """Matrices whose products count the matching chunks of the first and the second document, then the words."""
        yield self.counts, found
        yield found, self.counts
        yield self.words, found
        yield found, self.words

    def _blocks(self, found: csr_array, has: csr_array) -> Iterator[tuple[int, int]]:
        """Ranges of documents whose products fit into memory."""
        each = np.diff(found.indptr).astype(np.int64)
        work = has.T @ each + found.T @ np.diff(has.indptr).astype(np.int64)
        done, first = np.cumsum(work), 0
        while first < len(done):
            before = done[first - 1] if first else 0
            last = max(first + 1, int(np.searchsorted(done, before + _ENTRIES, "right")))
            yield first, last
            first = last

    def _best(self, rows: Ints, top: int) -> Ints:
        """The pairs with the largest shares, in this order."""
        order = np.lexsort((rows[:, 1], rows[:, 0], -self._share(rows)))
        return rows[order[:top]]

    def _share(self, rows: Ints) -> Floats:
        """The larger share of words of each pair, rounded so that equal shares are equal."""
        words = self._all_words
        shares = np.maximum(rows[:, 4] / words[rows[:, 0]], rows[:, 5] / words[rows[:, 1]])
        return np.round(shares, 12).astype(np.float64)

    @cached_property
    def _all_words(self) -> Ints:
        words: Ints = self.words.sum(axis=0)
        return words

    def _side(self, document: int, chunks: int, words: int) -> SharedChunks:
        every, all_words = (int(matrix[:, [document]].sum()) for matrix in (self.counts, self.words))
        return SharedChunks(self.names[document], every, chunks, chunks / every, all_words, words, words / all_words)


def chunks_of_documents(corpus: FingerprintColumns, classes: RowLists) -> ChunksOfDocuments:
    """The chunks of these classes. ``across`` of the corpus: the documents of each chunk."""
    names = sorted({str(value) for values in corpus.across.sets for value in values})
    place = {name: number for number, name in enumerate(names)}
    sets = [[place[str(value)] for value in values] for values in corpus.across.sets]
    bounds = np.cumsum([0, *map(len, sets)])
    flat = np.array([number for one in sets for number in one], np.int64)
    of_set = csr_array((np.ones(len(flat), np.int64), flat, bounds), shape=(len(sets), len(names)))
    rows = classes.rows
    of_row = of_set[corpus.across.numbers[rows]]

    def summed(weight: Ints) -> csr_array:
        by_class = csr_array((weight, np.arange(len(rows)), classes.bounds), shape=(len(classes), len(rows)))
        return csr_array(by_class @ of_row)

    counts, words = summed(np.ones(len(rows), np.int64)), summed(corpus.tokens[rows].astype(np.int64))
    having = np.flatnonzero(counts.sum(axis=0))
    given = int(corpus.across.given(rows).sum())
    return ChunksOfDocuments(
        tuple(names[number] for number in having.tolist()),
        counts[:, having],
        words[:, having],
        given,
        len(rows) - given,
    )


def _product(one: csr_array, other: csr_array, first: int, last: int) -> coo_array:
    """Some rows of the product of two matrices over the classes, in ascending order of their places."""
    found = csr_array(one[:, first:last].T @ other)
    found.sort_indices()
    return found.tocoo()
