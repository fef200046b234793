"""The report of `fold`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from es_neardupe.records import one_line
from es_neardupe.server.dry_run import ShownRequest


@dataclass(frozen=True, kw_only=True)
class FoldReport:
    """Result of `fold`."""

    index: str
    action: str
    state: str
    """After the action; see `folding.state`."""
    pipelines: Mapping[str, str | None]
    """Concrete index -> its default search pipeline before the action."""
    group_field: str | None
    """The field with a copy of the group id."""
    pipeline: str | None
    """The pipeline that the action installed."""
    changed: tuple[str, ...]
    """Concrete indices whose default search pipeline was changed; in a dry run: would be changed."""
    documents: int
    without_group: int
    """Documents without a value in the group field: all of them become one hit."""
    dry_run: bool
    requests: tuple[ShownRequest, ...] = ()
    """The first write requests of a dry run, up to ``show_requests``."""

    def __repr__(self) -> str:
        return one_line(self, index=self.index, action=self.action, state=self.state, dry_run=self.dry_run)
