"""Result of ``enrich``."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from es_neardupe.candidates.detection import UnsuitedTexts
from es_neardupe.records import one_line
from es_neardupe.report_parts import EnrichScope, FingerprintWrites
from es_neardupe.server.dry_run import ShownRequest


@dataclass(frozen=True)
class EnrichReport:
    """Result of `enrich`: ``scope.read`` is the sum of the writes."""

    index: str
    scheme: str
    prepared: tuple[str, ...]
    """Indices from a rollover that got the fields and settings of the others in this run."""
    scope: EnrichScope
    writes: FingerprintWrites
    removed: int
    """Entries of deleted documents, removed from the sidecar index."""
    unsuited: UnsuitedTexts | None
    """Documents that are too short or too long for the keys; None if these suit all lengths."""
    dry_run: bool
    seconds: float = field(compare=False)
    requests: tuple[ShownRequest, ...] = ()
    """The first write requests of a dry run, up to ``show_requests``."""
    tuned: Mapping[str, Mapping[str, str | None]] | None = None
    """With ``tune``: index -> the settings that were lowered, with their restored values."""

    def __repr__(self) -> str:
        return one_line(
            self,
            index=self.index,
            documents=self.scope.documents,
            read=self.scope.read,
            written=self.writes.written,
            left=self.writes.left,
            dry_run=self.dry_run,
        )
