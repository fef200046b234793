"""The report of `documents`."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from es_neardupe.candidates.detection import Detection
from es_neardupe.candidates.large_buckets import Bucket
from es_neardupe.records import one_line
from es_neardupe.tables import Cell, Table, Tabular
from es_neardupe.verification.match_rules import WeightsUsed


@dataclass(frozen=True, slots=True)
class SharedChunks:
    """A document of a pair, and its chunks that match a chunk of the other one."""

    document: str
    chunks: int
    matching: int
    share: float
    """Of the chunks."""
    words: int
    """Of all chunks: those in an overlap count twice."""
    matching_words: int
    """Of the matching chunks."""
    word_share: float


@dataclass(frozen=True, slots=True)
class SharingDocuments:
    """Two documents with matching chunks, ``a < b``."""

    a: SharedChunks
    b: SharedChunks


@dataclass(frozen=True)
class DocumentsReport(Tabular):
    """Pairs of documents, those with the largest share of words of one of the two first."""

    index: str
    by: str
    """Field with the document that a chunk is from."""
    measure: str
    min: float
    detection: Detection
    weights: WeightsUsed | None
    """For the measure weighted: the source of the weights."""
    documents: int
    """Documents with any chunks."""
    chunks: int
    """Chunks with keys, of these documents."""
    without: int
    """Chunks with keys that are of no document."""
    total: int
    """Pairs of documents with matching chunks."""
    pairs: tuple[SharingDocuments, ...]
    """The first ``top`` of them."""
    candidates: int
    """Pairs of chunks with different texts that were verified."""
    skipped: int
    """Pairs of chunks that share a large bucket and were not compared, each once."""
    large_buckets: tuple[Bucket, ...]
    stale: int
    """Chunks whose text has changed since it was fingerprinted: they count nowhere."""
    unprocessed: int
    """Chunks without a fingerprint of the index's scheme: they count nowhere."""

    def table(self) -> Table:
        """A row for each pair."""
        one = {"document": str, "chunks": int, "matching": int, "share": float}
        one |= {"words": int, "matching_words": int, "word_share": float}
        return Table({f"{side}_{name}": kind for side in "ab" for name, kind in one.items()}, self._rows())

    def _rows(self) -> Iterator[tuple[Cell, ...]]:
        for pair in self.pairs:
            yield tuple(
                value
                for one in (pair.a, pair.b)
                for value in (
                    one.document,
                    one.chunks,
                    one.matching,
                    one.share,
                    one.words,
                    one.matching_words,
                    one.word_share,
                )
            )

    def __repr__(self) -> str:
        return one_line(self, index=self.index, by=self.by, documents=self.documents, pairs=self.total, min=self.min)
