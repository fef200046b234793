"""Result of ``migrate``."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from itertools import chain
from typing import Any

from es_neardupe.candidates.unrelated import UnrelatedCandidates
from es_neardupe.groups.compare_groupings import GroupChanges
from es_neardupe.index.index import Index
from es_neardupe.records import one_line
from es_neardupe.report_parts import WriteCounts
from es_neardupe.server.dry_run import ShownRequest
from es_neardupe.server.failures import Failures


@dataclass(frozen=True, kw_only=True)
class MigrateWrites:
    """Documents by the steps that wrote them; a document may count in several."""

    enriched: int = 0
    """Documents that got new keys; in a dry run: would get them."""
    switched: int = 0
    """Documents whose old fields were replaced."""
    cleaned: int = 0
    """Documents from which the fields under the second prefix were removed."""
    left: int = 0
    """Documents that kept changing during the run, that the server rejected, or that could not be written without a
    change to another field: run it again."""
    refusals: tuple[str, ...] = ()
    failures: tuple[str, ...] = ()
    """Reasons for the last kind."""
    left_documents: Failures = field(default_factory=Failures, compare=False)
    """The documents of ``left``, each with the reason."""

    def plus(self, part: WriteCounts, *, enriched: int = 0, switched: int = 0, cleaned: int = 0) -> MigrateWrites:
        """With the writes of another step, and the documents that it enriched, switched or cleaned."""
        left = Failures(chain(self.left_documents, part.left_documents))
        return MigrateWrites(
            enriched=self.enriched + enriched,
            switched=self.switched + switched,
            cleaned=self.cleaned + cleaned,
            left=len(left),
            refusals=(*self.refusals, *part.refusals),
            failures=(*self.failures, *part.failures),
            left_documents=left,
        )


@dataclass(frozen=True, kw_only=True)
class MigrateReport:
    """Result of `migrate`, and the state of the migration."""

    index: str
    scheme: str
    """The new scheme."""
    documents: int
    """Documents of the index."""
    state: str
    """``not begun``, ``prepared``, ``switching``, ``done`` or ``aborted``."""
    changes: tuple[str, ...] = ()
    """Changed settings, as ``name: new, not old``; empty once the switch has begun."""
    regroups: bool = False
    """Whether the index is grouped with the new keys, because it was grouped with the old ones."""
    groups: GroupChanges | None = None
    """Groups with the old and with the new keys; None if there is nothing to compare before the switch, or after it."""
    writes: MigrateWrites = field(default_factory=MigrateWrites)
    pipeline: str | None = None
    """The ingest pipeline that `pipeline` made for the new settings, if it replaced one of the old settings."""
    outdated_pipelines: Mapping[str, tuple[str, ...]] = field(default_factory=dict)
    """Ingest pipelines of the old settings that were not deleted -> what still uses them."""
    dry_run: bool
    seconds: float = field(compare=False)
    tuned: Mapping[str, Mapping[str, str | None]] | None = None
    """With ``tune``: index -> the settings that were lowered, with their restored values."""
    unrelated: UnrelatedCandidates | None = None
    """How many of a million unrelated texts become candidates by the new keys; None once the migration has begun."""
    requests: tuple[ShownRequest, ...] = ()
    """The first write requests of a dry run, up to ``show_requests``, without those of `group`."""

    @classmethod
    def of(cls, index: Index, started: float, **done: Any) -> MigrateReport:
        """The report of a run that ends now. ``done``: further fields."""
        return cls(
            index=index.name,
            scheme=index.scheme_id,
            documents=index.plain_documents.count(),
            seconds=time.monotonic() - started,
            **done,
        )

    def __repr__(self) -> str:
        return one_line(
            self,
            index=self.index,
            state=self.state,
            enriched=self.writes.enriched,
            switched=self.writes.switched,
            left=self.writes.left,
            dry_run=self.dry_run,
        )
