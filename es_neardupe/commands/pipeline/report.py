"""The report of `pipeline`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from es_neardupe.index.on_server.ingest_pipeline import IndexPipelines
from es_neardupe.records import one_line
from es_neardupe.server.dry_run import ShownRequest


@dataclass(frozen=True, kw_only=True)
class PipelineReport:
    """Result of `pipeline`."""

    index: str
    action: str
    scheme: str
    pipeline: str
    """The name of the pipeline that makes the keys of the index."""
    state: str
    """``none``, ``stored`` (no index names it), ``default`` or ``final`` (all indices name it), ``partly`` (some do),
    ``outdated`` (a pipeline of this program with an older scheme or other fields) or ``missing`` (an index names a
    pipeline that does not exist); after the action."""
    pipelines: Mapping[str, IndexPipelines]
    """Concrete index -> its pipelines after the action."""
    texts: int
    """Texts whose keys were compared with those of Python, by ``install`` and ``check``."""
    different: int
    """Texts with other keys."""
    difference: str | None
    """The first of them."""
    changed: tuple[str, ...]
    """Concrete indices whose settings were changed; in a dry run: would be changed."""
    deleted: tuple[str, ...]
    """Pipelines that were deleted."""
    kept: Mapping[str, tuple[str, ...]]
    """Pipelines that were not deleted -> what else uses them."""
    dry_run: bool
    requests: tuple[ShownRequest, ...] = ()
    """The first write requests of a dry run, up to ``show_requests``."""

    def __repr__(self) -> str:
        return one_line(self, index=self.index, action=self.action, state=self.state, dry_run=self.dry_run)
