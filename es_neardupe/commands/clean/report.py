"""The report of `clean`."""

from __future__ import annotations

from dataclasses import dataclass, field

from es_neardupe.records import one_line
from es_neardupe.report_parts import WriteCounts
from es_neardupe.server.dry_run import ShownRequest


@dataclass(frozen=True)
class CleanReport:
    """Result of `clean`: ``documents`` is the sum of the writes."""

    index: str
    prepared: bool
    """False: there was nothing to clean, because the index had no settings and no sidecar index."""
    documents: int
    """Documents that had the fields when the run read them."""
    writes: WriteCounts
    """``written``: documents from which the fields were removed."""
    deleted_indices: tuple[str, ...]
    """Hidden indices that were deleted: the registry of groups, the evidence of pairs, the sidecar indices, and with
    ``decisions`` the decisions of reviewers."""
    kept_decisions: int
    """Decisions of reviewers that were kept, for when the index is prepared again."""
    unfolded: tuple[str, ...]
    """Concrete indices whose search pipeline of `fold` was removed."""
    deleted_pipelines: tuple[str, ...]
    """Ingest pipelines of `pipeline` that were deleted."""
    mapped: tuple[str, ...]
    """Fields that stay in the mapping, because no server can remove a field from a mapping."""
    template: bool
    """Whether an index template adds the fields to the next index of a data stream, or of an alias."""
    dry_run: bool
    seconds: float = field(compare=False)
    requests: tuple[ShownRequest, ...] = ()
    """The first write requests of a dry run, up to ``show_requests``."""

    def __repr__(self) -> str:
        return one_line(
            self,
            index=self.index,
            prepared=self.prepared,
            documents=self.documents,
            cleaned=self.writes.written,
            left=self.writes.left,
            dry_run=self.dry_run,
        )
