"""The report of `search`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from es_neardupe.records import one_line


@dataclass(frozen=True)
class Copy:
    """Another document of a hit's group that also matches the query."""

    index: str
    id: str
    similarity: float | None
    """To the principal of the group; None for a document that waits for ``group``."""
    principal: bool
    fields: Mapping[str, str]


@dataclass(frozen=True)
class SearchHit:
    """The first document of a group, in the order of the search; or one without a group id."""

    index: str
    id: str
    score: float | None
    """Score of the server; None if the hits are sorted by something else."""
    group: str | None
    near_copies: int
    """Number of other documents of the group that match the query; exact."""
    fields: Mapping[str, str]
    """Field -> its text, for the fields to show."""
    members: tuple[Copy, ...]
    """With ``expand``, up to 99 of the near-copies."""
    related: tuple[SearchHit, ...] = ()
    """With ``related``, the other hits of the page whose groups are related to this one."""

    def __repr__(self) -> str:
        return one_line(
            self,
            index=self.index,
            id=self.id,
            score=self.score,
            group=self.group,
            near_copies=self.near_copies,
            fields=list(self.fields),
        )


@dataclass(frozen=True)
class SearchReport:
    """One page of hits, and the counts of all matching documents."""

    index: str
    documents: int
    """Documents with a group id that match the query."""
    groups: int
    """Number of their groups; the server's ``cardinality``, which is approximate."""
    without_group: int
    """Matching documents without a group id: they are in ``apart``, not in ``hits``."""
    without_similarity: int
    """Matching documents whose text has changed since ``group`` last ran, and those without a group id. With a sidecar,
    new documents too."""
    start: int
    size: int
    hits: tuple[SearchHit, ...]
    apart: tuple[SearchHit, ...]
    """The same page of the documents without a group id."""
    indices: tuple[str, ...]
    """Concrete indices that were searched."""

    def __repr__(self) -> str:
        return one_line(
            self,
            index=self.index,
            documents=self.documents,
            groups=self.groups,
            hits=len(self.hits),
            without_group=self.without_group,
        )
