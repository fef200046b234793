"""What a dry run of `migrate` shows: the requests that the run would send first."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import chain, islice

from es_neardupe.commands.clean import clean
from es_neardupe.commands.enrich import enrich
from es_neardupe.commands.migrate.plan import MigrationPlan, mark
from es_neardupe.commands.migrate.steps import rehearse_switch
from es_neardupe.index.index import Index, opened
from es_neardupe.index.migration_state import Phase
from es_neardupe.server.dry_run import DryRunClient, ShownRequest

__all__ = ["first_requests"]


def first_requests(
    rehearsal: DryRunClient,
    plan: MigrationPlan,
    maximum: int,
    *,
    abort: bool,
    prepare: bool,
    max_chars: int,
    batch: int,
) -> tuple[ShownRequest, ...]:
    """The first ``maximum`` requests to the index: for its mapping, new keys, the switch and the clean-up.

    Not those of ``group``: the groups take keys that are not there yet. Nothing is read for requests beyond the last.
    """
    if maximum < 1:
        return ()
    rehearsed = _DryRunSteps(rehearsal, plan, maximum, max_chars, batch)
    steps = rehearsed.undo() if abort else rehearsed.go_on(prepare)
    return tuple(islice(chain(rehearsed.begin(), steps), maximum))


class _DryRunSteps:
    """The steps of `Work`, as far as their requests can be told before."""

    def __init__(self, client: DryRunClient, plan: MigrationPlan, maximum: int, max_chars: int, batch: int) -> None:
        self._client, self._plan, self._index = client, plan, plan.old.through(client)
        self._coming = plan.settings.prefix
        self._maximum, self._max_chars, self._batch = maximum, max_chars, batch

    def _under(self, prefix: str) -> Index:
        return Index(self._index.name, self._client, prefix)

    def begin(self) -> Iterator[ShownRequest]:
        """Prepare what a rollover made."""
        self._index.storage.prepare_rolled_over()
        yield from self._client.shown

    def undo(self) -> Iterator[ShownRequest]:
        """As `Work.undo`, then the clean-up."""
        yield from self._marked(Phase.PREPARING)
        yield from self._cleaned()

    def go_on(self, prepare: bool) -> Iterator[ShownRequest]:
        """As `Work.go_on`, then the clean-up. No step follows one that has documents to write: each needs the end of
        the one before."""
        phase = self._plan.phase
        if phase in (None, Phase.PREPARING):
            yield from self._marked(Phase.PREPARING)
            if phase is None and self._plan.old.storage.sidecars:  # the indices that were shown are not there
                return
            enriched = self._enriched(self._coming)
            yield from enriched
            if prepare or enriched:
                return
        if phase is not Phase.CLEANING:
            yield from self._marked(Phase.SWITCHING)
            switched = self._switched()
            yield from switched
            if switched:
                return
        yield from self._marked(Phase.CLEANING)
        yield from self._enriched(self._plan.prefix)
        yield from self._cleaned()

    def _marked(self, phase: Phase) -> tuple[ShownRequest, ...]:
        before = len(self._client.shown)
        mark(self._index, self._plan, phase)
        return self._client.shown[before:]

    def _enriched(self, prefix: str) -> tuple[ShownRequest, ...]:
        report = enrich(
            self._under(prefix),
            check=True,
            batch=self._batch,
            max_chars=self._max_chars,
            dry_run=True,
            show_requests=self._maximum,
        )
        return report.requests

    def _switched(self) -> tuple[ShownRequest, ...]:
        new = opened(self._index, adopting=True, prefix=self._coming)
        before = len(self._client.shown)
        rehearse_switch(self._client, new, self._plan.after, batch=self._batch)
        return self._client.shown[before:]

    def _cleaned(self) -> tuple[ShownRequest, ...]:
        report = clean(
            self._under(self._coming),
            batch=self._batch,
            dry_run=True,
            show_requests=self._maximum,
        )
        return report.requests
