"""The report of `contained`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from es_neardupe.keys.intervals import Estimate
from es_neardupe.options import Matching
from es_neardupe.records import one_line
from es_neardupe.similarity.comparison import Block, Direction
from es_neardupe.verification.common_shingles import CommonShinglesList


@dataclass(frozen=True)
class ContainedHit:
    """A document that contains the probe or is contained in it, by at least the minimum share of words."""

    index: str
    id: str
    direction: Direction
    of_probe: float
    """Share of the probe's words that are in common passages, exact. With ``ignore_common``, of those that count."""
    of_document: float
    """Share of the document's words that are in common passages, exact."""
    estimated_of_probe: Estimate
    """Share of the probe's shingles that the document has: matched keys / keys of the probe."""
    estimated_of_document: Estimate
    """Share of the document's shingles that the probe has: matched keys / keys of the document."""
    matched_keys: int
    common_words: int
    passages: tuple[Block, ...]
    """``a`` in the probe, ``b`` in the document, in characters."""
    excerpt: str
    """The longest passage, or its beginning."""
    group: str | None

    def __repr__(self) -> str:
        return one_line(
            self,
            index=self.index,
            id=self.id,
            of_probe=self.of_probe,
            of_document=self.of_document,
            passages=len(self.passages),
        )


@dataclass(frozen=True)
class SampledDetection:
    """Probability of finding a document by the sampled keys."""

    min: float
    probability: float
    """Lower bound of the probability that a document with this share of the probe's shingles shares a used key."""
    shingles: int
    """Number of distinct shingles from which a document that the probe contains whole has a key with probability
    `SURE`."""


@dataclass(frozen=True)
class ContainedReport:
    """Report of `contained`."""

    query: Mapping[str, Any]
    """The probe: ``index`` and ``id``, or ``text`` (its beginning); its ``state``, ``tokens`` and ``features``."""
    hits: tuple[ContainedHit, ...]
    """By the higher of their two shares, falling."""
    found: int
    """Number of documents that qualify, including those beyond ``top``."""
    candidates: int
    """Documents that share a used key."""
    not_compared: int
    """Candidates beyond ``max_candidates``: those with the lowest estimates."""
    unreadable: int
    """Candidates with malformed sampled keys: not compared."""
    unprocessed: int
    """Other documents that match ``query`` but are not enriched, so they cannot be found."""
    keys: int
    """Sampled keys of the probe, without ignored ones."""
    keys_ignored: int
    """Its sampled keys of common shingles that are ignored."""
    keys_left_out: int
    """Of ``keys``, those that were not used to find candidates."""
    detection: SampledDetection
    sample_mod: int
    shingle: int
    """Minimum number of words in a common passage: those of a shingle; with character shingles, 1."""
    matching: Matching
    common: CommonShinglesList | None
    """With ``ignore_common``: the ignored shingles."""
    indices: tuple[str, ...]
    """Concrete indices that were searched."""

    def __repr__(self) -> str:
        return one_line(self, query=self.query, hits=len(self.hits), found=self.found, candidates=self.candidates)
