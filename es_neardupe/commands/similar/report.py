"""The report of `similar`."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from es_neardupe.candidates.detection import Detection
from es_neardupe.records import State, one_line
from es_neardupe.similarity.facts.differing import Fact
from es_neardupe.tables import Cell, Table, Tabular
from es_neardupe.verification.match_rules import WeightsUsed


@dataclass(frozen=True)
class SimilarHit:
    """A verified near-duplicate."""

    index: str
    id: str
    similarity: float
    shared_bands: int
    group: str | None
    copies: int = 0
    """Other candidates with the same content hash, which are not listed."""
    measure: str = "resemblance"
    fields: Mapping[str, str] = field(default_factory=dict, hash=False)
    """Field -> its text, for the fields to show."""
    facts: tuple[Fact, ...] = field(default=(), hash=False)
    """Of a related document, the facts that decide and differ."""

    def __repr__(self) -> str:
        return one_line(
            self,
            index=self.index,
            id=self.id,
            similarity=self.similarity,
            shared_bands=self.shared_bands,
            group=self.group,
            copies=self.copies,
        )

    @property
    def resemblance(self) -> float | None:
        """The similarity if it is the resemblance, None for another measure."""
        return self.similarity if self.measure == "resemblance" else None


@dataclass(frozen=True)
class SimilarReport(Tabular):
    """The hits, most similar first; equal ones by shared bands, then by index and id."""

    query: Mapping[str, Any]
    """``index`` and ``id``, or ``text`` (its beginning); with ``state`` and ``tokens`` of the probe."""
    hits: tuple[SimilarHit, ...]
    candidates: int
    """Documents that share enough band keys: one, unless the scheme requires more."""
    texts: int
    """Texts of candidates that were compared: exact copies are compared once."""
    not_compared: int
    """Candidates beyond the first ``max_candidates`` texts, with the fewest shared keys."""
    detection: Detection
    measure: str
    """Name of the measure with its options; ``resemblance`` by default."""
    max: float
    weights: WeightsUsed | None
    """For the measure weighted: the source of the weights."""
    indices: tuple[str, ...]
    """Concrete indices that were searched."""
    other_facts: int = 0
    """With ``facts``: candidates that are similar enough, but differ in these facts."""
    related: tuple[SimilarHit, ...] = ()
    """The first of these, in the order of the hits."""
    _shown: tuple[str, ...] = ()
    """Names of the fields to show."""

    @property
    def without_keys(self) -> str | None:
        """Why nothing can be found; None if the probe has keys."""
        state = State(self.query["state"])
        if state.has_keys:
            return None
        return f"The text is {state.value}: it has no keys, and no near-duplicates can be found by them."

    def table(self) -> Table:
        """A row for each hit."""
        columns = {"index": str, "id": str, "measure": str, "similarity": float}
        columns |= {"shared_bands": int, "group": str, "copies": int}
        return Table(columns | {f"fields_{name}": str for name in self._shown}, self._rows())

    def _rows(self) -> Iterator[tuple[Cell, ...]]:
        for hit in self.hits:
            figures = (hit.measure, hit.similarity, hit.shared_bands, hit.group, hit.copies)
            yield hit.index, hit.id, *figures, *map(hit.fields.get, self._shown)

    def __repr__(self) -> str:
        return one_line(
            self,
            query=self.query,
            hits=len(self.hits),
            candidates=self.candidates,
            min=self.detection.min,
            measure=self.measure,
        )
