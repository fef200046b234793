"""Result of ``migrate``, and its dry run."""

from __future__ import annotations

import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field

from es_neardupe.candidates.unrelated import UnrelatedCandidates
from es_neardupe.commands.clean import clean
from es_neardupe.commands.enrich import enrich
from es_neardupe.commands.migrate.steps import MigrationProgress, MigrationWork, refresh_both, rule_changes
from es_neardupe.commands.pipeline import pipeline
from es_neardupe.groups.compare_groupings import GroupChanges
from es_neardupe.index.index import Index, opened
from es_neardupe.index.migration_state import Phase
from es_neardupe.index.on_server.ingest_pipeline import OwnPipelines
from es_neardupe.index.storage.field_writes import document_writer
from es_neardupe.records import one_line
from es_neardupe.report_parts import WriteCounts
from es_neardupe.server.bulk import BulkCounts, write
from es_neardupe.server.dry_run import DryRunClient, ShownRequest
from es_neardupe.server.failures import Failures


@dataclass(frozen=True, kw_only=True)
class MigrateWrites:
    """Documents by the steps that wrote them; a document may count in several."""

    enriched: int
    """Documents that got new keys; in a dry run: would get them."""
    switched: int
    """Documents whose old fields were replaced."""
    cleaned: int
    """Documents from which the fields under the second prefix were removed."""
    left: int
    """Documents that kept changing during the run, that the server rejected, or that could not be written without a
    change to another field: run it again."""
    refusals: tuple[str, ...]
    failures: tuple[str, ...]
    """Reasons for the last kind."""
    left_documents: Failures = field(default_factory=Failures, compare=False)
    """The documents of ``left``, each with the reason."""


@dataclass(frozen=True)
class MigrateReport:
    """Result of `migrate`, and the state of the migration."""

    index: str
    scheme: str
    """The new scheme."""
    documents: int
    """Documents of the index."""
    state: str
    """``not begun``, ``prepared``, ``switching``, ``done`` or ``aborted``."""
    changes: tuple[str, ...]
    """Changed settings, as ``name: new, not old``; empty once the switch has begun."""
    regroups: bool
    """Whether the index is grouped with the new keys, because it was grouped with the old ones."""
    groups: GroupChanges | None
    """Groups with the old and with the new keys; None if there is nothing to compare before the switch, or after it."""
    writes: MigrateWrites
    pipeline: str | None
    """The ingest pipeline that `pipeline` made for the new settings, if it replaced one of the old settings."""
    outdated_pipelines: Mapping[str, tuple[str, ...]]
    """Ingest pipelines of the old settings that were not deleted -> what still uses them."""
    dry_run: bool
    seconds: float = field(compare=False)
    tuned: Mapping[str, Mapping[str, str | None]] | None = None
    """With ``tune``: index -> the settings that were lowered, with their restored values."""
    unrelated: UnrelatedCandidates | None = None
    """How many of a million unrelated texts become candidates by the new keys; None once the migration has begun."""
    requests: tuple[ShownRequest, ...] = ()
    """The first write requests of a dry run, up to ``show_requests``, without those of `group`."""

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


def report(index: Index, done: MigrationProgress, dry_run: bool, started: float) -> MigrateReport:
    """What was done."""
    return MigrateReport(
        index=index.name,
        scheme=index.scheme_id,
        documents=index.plain_documents.count(),
        state=done.state,
        changes=done.changes,
        regroups=done.grouped,
        groups=done.comparison,
        writes=MigrateWrites(
            enriched=done.enriched,
            switched=done.switched,
            cleaned=done.cleaned,
            left=len(done.left),
            refusals=done.refusals,
            failures=done.failures,
            left_documents=done.left,
        ),
        pipeline=done.pipeline,
        outdated_pipelines=done.outdated_pipelines,
        dry_run=dry_run,
        seconds=time.monotonic() - started,
    )


class DryRun:
    """The next steps of `MigrationWork` in a dry run: counts their documents, and keeps their first write requests.

    Ends after a step with documents to write, as the next step needs its result. `group` is not included: grouping
    needs keys that a dry run has not written.
    """

    def __init__(self, client: DryRunClient, work: MigrationWork, maximum: int) -> None:
        self._client, self._work, self._maximum = client, work, maximum
        self._plan, self._run, self._done = work.plan, work.run, work.done
        self._index = work.plan.old.through(client)
        self._requests: list[ShownRequest] = []

    def requests(self, *, abort: bool, prepare: bool) -> tuple[ShownRequest, ...]:
        """Do the steps; returns the first ``maximum`` requests."""
        self._plan.old.plain_documents.refresh()
        with self._shown():
            self._index.storage.prepare_rolled_over()
        if abort:
            self._mark(Phase.PREPARING)
            self._clean()
        else:
            self._resume(prepare=prepare)
        return tuple(self._requests[: self._maximum])

    def _resume(self, *, prepare: bool) -> None:
        phase = self._plan.phase
        if phase in (None, Phase.PREPARING):
            self._mark(Phase.PREPARING)
            if phase is None and self._done.grouped:
                self._done.changes += rule_changes(self._plan.old, self._plan.coming)
            if phase is None and self._plan.old.storage.sidecars:  # the new sidecar indices do not exist yet
                self._done.enriched = self._plan.old.plain_documents.count()
                return
            self._enrich(self._plan.settings.prefix)
            if phase is not None and self._done.grouped and not self._done.left:
                self._work.compare(self._work.new)
            if prepare or self._writes_documents:
                return
        if phase is not Phase.CLEANING:
            self._mark(Phase.SWITCHING)
            self._switch()
            if self._writes_documents:
                return
        self._mark(Phase.CLEANING)
        if OwnPipelines(self._plan.after).names:
            installed = pipeline(
                self._with_prefix(self._plan.prefix), "install", dry_run=True, show_requests=self._maximum
            )
            self._done.pipeline, self._done.outdated_pipelines = installed.pipeline, installed.kept
            self._requests += installed.requests
        self._enrich(self._plan.prefix)
        if not self._done.left:
            self._clean()

    @property
    def _writes_documents(self) -> bool:
        return bool(self._done.enriched or self._done.switched or self._done.left)

    def _with_prefix(self, prefix: str) -> Index:
        return Index(self._index.name, self._client, prefix)

    @contextmanager
    def _shown(self) -> Iterator[None]:
        """Keep the requests that are sent to the client meanwhile."""
        before = len(self._client.shown)
        yield
        self._requests += self._client.shown[before:]

    def _mark(self, phase: Phase) -> None:
        with self._shown():
            self._plan.mark(phase, self._client)

    def _enrich(self, prefix: str) -> None:
        run = self._run
        report = enrich(
            self._with_prefix(prefix),
            check=True,
            batch=run.batch,
            max_chars=run.max_chars,
            dry_run=True,
            show_requests=self._maximum,
            progress=run.progress,
        )
        self._requests += report.requests
        self._done.enriched += report.writes.written
        self._count(report.writes)

    def _switch(self) -> None:
        new, after = opened(self._index, adopting=True, prefix=self._plan.settings.prefix), self._plan.after
        tally, writer = BulkCounts(), document_writer(after, self._client)
        refresh_both(new, after)
        actions = new.storage.takeovers(after, writer, batch=self._run.batch, progress=self._run.progress)
        with self._shown():
            for outcome in write(self._client, actions, batch=self._run.batch, workers=1):
                tally.add(outcome)
        self._done.switched = tally.counts["written"]
        self._done.left.extend(writer.failed.values())
        self._done.failures += writer.failures

    def _clean(self) -> None:
        new = self._with_prefix(self._plan.settings.prefix)
        report = clean(
            new, batch=self._run.batch, dry_run=True, show_requests=self._maximum, progress=self._run.progress
        )
        self._requests += report.requests
        self._done.cleaned = report.writes.written
        self._count(report.writes)

    def _count(self, writes: WriteCounts) -> None:
        self._done.left.extend(writes.left_documents)
        self._done.failures += writes.failures
