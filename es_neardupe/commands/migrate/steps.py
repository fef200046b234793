"""The steps of a migration, and what a run has done. Each step can be repeated at any time."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import nullcontext
from dataclasses import dataclass, replace

from es_neardupe.commands.clean import clean
from es_neardupe.commands.enrich import enrich
from es_neardupe.commands.group import group
from es_neardupe.commands.migrate.plan import MigrationPlan
from es_neardupe.commands.migrate.report import MigrateWrites
from es_neardupe.commands.pipeline import pipeline
from es_neardupe.errors import RequestError
from es_neardupe.groups.compare_groupings import GroupChangeExample, GroupChanges, compare_groups
from es_neardupe.groups.registry import Registry
from es_neardupe.groups.rules import RunRules
from es_neardupe.index.hidden_indices import OF_KEYS, HiddenIndex, HiddenStore
from es_neardupe.index.index import Index, opened
from es_neardupe.index.migration_state import Phase
from es_neardupe.index.on_server.ingest_pipeline import OwnPipelines
from es_neardupe.index.runs.lease import held
from es_neardupe.index.settings import Settings
from es_neardupe.index.storage.field_writes import document_writer
from es_neardupe.index.storage.same_indices import SameIndicesClient
from es_neardupe.index.stored_fields import timestamp
from es_neardupe.progress import Progress
from es_neardupe.records import Action, Address, Hit
from es_neardupe.report_parts import WriteCounts
from es_neardupe.server.bulk import BulkCounts, chunked, write
from es_neardupe.server.client import Client
from es_neardupe.server.dry_run import DryRunClient
from es_neardupe.server.failures import Failure, Failures
from es_neardupe.similarity.measure import Measure
from es_neardupe.verification.match_rules import MatchRules

_ROUNDS = 5
_SHOWN = 5
"""Documents of an example."""


@dataclass(frozen=True)
class MigrationRun:
    """How a run of `migrate` behaves; the same for `enrich`, `group` and `clean` in it."""

    workers: int
    batch: int
    max_chars: int
    dry_run: bool
    show_requests: int
    progress: Progress


class MigrationWork:
    """The steps of a run, and what they have done so far, by the names of `MigrateReport`.

    A dry run does the same, through the client of a dry run. It ends after a step that has documents to write, as the
    next one needs its result. It takes no lease, and groups nothing: grouping needs keys that it has not written.
    """

    def __init__(self, plan: MigrationPlan, run: MigrationRun, dry_client: DryRunClient) -> None:
        self.plan, self.run, self.dry_client = plan, run, dry_client
        self.client: Client = dry_client if run.dry_run else plan.old.server
        self.state, self.changes = plan.state, plan.changes
        self.regroups = Registry(plan.old).last_run() is not None
        self.groups: GroupChanges | None = None
        self.writes = MigrateWrites()
        self.pipeline: str | None = None
        self.outdated_pipelines: Mapping[str, tuple[str, ...]] = {}

    @property
    def new(self) -> Index:
        """The index with the new keys under their own prefix. An index just created by a rollover has none yet."""
        return opened(self._with_prefix(self.plan.settings.prefix), adopting=True)

    @property
    def _begins(self) -> bool:
        """Whether this is a dry run before any new keys and groups exist."""
        return self.run.dry_run and self.plan.phase is None

    @property
    def _ends(self) -> bool:
        """Whether this run ends before the next step: documents are left, or a dry run has not written what that step
        needs."""
        writes = self.writes
        lacks_sidecars = self._begins and bool(self.plan.old.storage.sidecars)
        return bool(writes.left or (self.run.dry_run and (writes.enriched or writes.switched or lacks_sidecars)))

    def _with_prefix(self, prefix: str) -> Index:
        return Index(self.plan.old.name, self.client, prefix)

    def _mark(self, phase: Phase) -> None:
        self.plan.mark(phase, self.client)

    def resume(self, confirm: Callable[[GroupChanges | None], bool] | None) -> bool:
        """Do the remaining steps, without ``confirm`` only up to the switch. Returns whether `clean` must follow."""
        phase = self.plan.phase
        if phase in (None, Phase.PREPARING):
            self.prepare()
            if self._ends or confirm is None or not (self.run.dry_run or confirm(self.groups)):
                return False
        if phase is not Phase.CLEANING:
            self.switch()
            if self._ends:
                return False
        self.finish()
        return not self.writes.left

    def prepare(self) -> None:
        """Make new keys and groups in addition to the old ones. Renews those of texts changed since an earlier run."""
        plan = self.plan
        self._mark(Phase.PREPARING)
        self.changes += _rule_changes(plan.old, plan.coming)
        if self._begins and plan.old.storage.sidecars:  # the new ones do not exist yet
            self.writes = MigrateWrites(enriched=plan.old.plain_documents.count())
            return
        self._renew(plan.settings.prefix, lambda: _inherit_groups(plan.old, self.new, timestamp()))
        self.state = "prepared"
        if self.regroups and not (self.writes.left or self._begins):
            self.groups = _compare(plan.old, self.new, self.run.progress)

    def _renew(self, prefix: str, before_grouping: Callable[[], None] = lambda: None) -> None:
        """Bring keys and groups under a prefix up to date."""
        run = self.run
        enriched = enrich(
            self._with_prefix(prefix),
            check=True,
            workers=run.workers,
            batch=run.batch,
            max_chars=run.max_chars,
            dry_run=run.dry_run,
            show_requests=run.show_requests,
            progress=run.progress,
        )
        self.dry_client.keep(enriched.requests)
        self.writes = self.writes.plus(enriched.writes, enriched=enriched.writes.written)
        if self.regroups and not run.dry_run:
            before_grouping()
            grouped = group(
                self._with_prefix(prefix),
                check=True,  # notices deleted documents
                evidence=self.plan.evidence,
                workers=run.workers,
                batch=run.batch,
                progress=run.progress,
            )
            left = Failures(one for one in grouped.writes.left_documents if one.kind != "conflict")
            self.writes = self.writes.plus(replace(grouped.writes, left_documents=left))

    def switch(self) -> None:
        """Let commands use the new keys.

        Commands read them under their own prefix until all documents have them under the old one, which searches use.
        """
        after = self.plan.after
        with nullcontext() if self.run.dry_run else held(after, "migrate", progress=self.run.progress) as lease:
            self._mark(Phase.SWITCHING)
            self.state = "switching"
            if lease is not None:
                lease.check()
                _hand_over(self.new, after, timestamp())
            switched = self._switch_documents()
            self.writes = self.writes.plus(switched, switched=switched.written)
            if not self._ends:
                if lease is not None:
                    lease.check()
                self._mark(Phase.CLEANING)

    def _switch_documents(self) -> WriteCounts:
        """Copy the new fields of each document to the old prefix, until no document is left; at most `_ROUNDS` times.

        Documents are left that kept changing, or were rejected by the server. A search finds a group id in each
        document at every moment.
        """
        new, after, run = self.new, self.plan.after, self.run
        client = SameIndicesClient(new)
        tally, left, writer = BulkCounts(), Failures(), document_writer(after, client)
        every = after.with_target(replace(after.target, indices=new.target.indices))  # only these know of a rollover
        rounds, workers = (1, 1) if run.dry_run else (_ROUNDS, run.workers)  # the shown requests are in order
        for _ in range(rounds):
            left = Failures()
            _refresh_both(new, after)
            writer.failed.clear()
            actions = new.storage.takeovers(after, writer, batch=run.batch, progress=run.progress)
            for outcome in write(client, actions, batch=run.batch, workers=workers):
                action = outcome.action
                document = every.storage.documents_of(action.index)
                if outcome.conflict:
                    left.add(Failure.conflict((document, action.id, action.routing)))
                    continue
                tally.add(outcome)
                if not (outcome.done or outcome.gone):
                    left.add(Failure.refused(outcome, document))
            left.extend(writer.failed.values())
            if not left:
                break
        tally.add_failed(writer.failed.values(), writer.failures)
        _refresh_both(new, after)
        return WriteCounts.of(tally, left_documents=left)

    def finish(self) -> None:
        """Process the documents that were added or changed during the migration. New ones get the new keys."""
        self._mark(Phase.CLEANING)
        run, prefix = self.run, self.plan.prefix
        if OwnPipelines(self.plan.after).names:
            installed = pipeline(
                self._with_prefix(prefix), "install", dry_run=run.dry_run, show_requests=run.show_requests
            )
            self.dry_client.keep(installed.requests)
            self.pipeline, self.outdated_pipelines = installed.pipeline, installed.kept
        self._renew(prefix)

    def undo(self) -> None:
        """Mark all indices as prepared, even if an earlier run was killed before it did; `clean` must follow."""
        self._mark(Phase.PREPARING)

    def clean(self, state: str) -> None:
        """Remove the fields and hidden indices of the second prefix, and the lease with them. This is the last step."""
        run = self.run
        cleaned = clean(
            self._with_prefix(self.plan.settings.prefix),
            workers=run.workers,
            batch=run.batch,
            dry_run=run.dry_run,
            show_requests=run.show_requests,
            progress=run.progress,
        )
        self.dry_client.keep(cleaned.requests)
        self.writes = self.writes.plus(cleaned.writes, cleaned=cleaned.writes.written)
        if not cleaned.writes.left:
            self.state = state


def _refresh_both(new: Index, after: Index) -> None:
    """Refresh the indices that the switch reads and writes."""
    new.storage.refresh()
    after.storage.refresh()


def _inherit_groups(old: Index, new: Index, at: str) -> None:
    """Copy the groups and the rules of the last run to the new registry, before `group` first writes it.

    So the history of the groups continues.
    """
    source, target = (HiddenStore(one, HiddenIndex.GROUPS, new.server) for one in (old, new))
    known = source.exists()
    target.create()
    if known and not any(_pages_of_kind(target, "run")):
        hits = (hit for page in _pages_of_kind(source, "group") for hit in page)
        _write_all(target, (Action("index", target.name, hit.id, hit.source) for hit in hits))
    last = Registry(old).last_run()
    if last is not None and last.rules is not None:
        Registry(new).hand_over_rules(_handed_over(last.rules, old.settings, new.settings), at)


def _handed_over(rules: RunRules, old: Settings, new: Settings) -> RunRules:
    """The rules of the last run for the new keys, with values that follow from the new settings."""
    match, measure = rules.match, rules.measure
    if MatchRules.of(old) != MatchRules.of(new):
        match = MatchRules.of(new)
        measure = Measure(match.measure, shingle=new.shingle, unit=new.unit).label
    minimum = new.threshold_of(match.measure) if match.min is None else match.min
    return replace(rules, match=match, measure=measure, min=minimum)


def _hand_over(new: Index, after: Index, at: str) -> None:
    """Replace the old registry and evidence by those of the new keys. Can be repeated."""
    for kind in OF_KEYS:
        source, target = (HiddenStore(one, kind, new.server) for one in (new, after))
        if not source.exists():
            continue
        target.create()
        source.refresh()
        target.refresh()
        _write_all(target, _endings(source, target, at))
        hits = (hit for hit in _all(source) if hit.source.get("kind") != "lease")
        _write_all(target, (Action("index", target.name, hit.id, hit.source) for hit in hits))


def _endings(source: HiddenStore, target: HiddenStore, at: str) -> Iterator[Action]:
    """The actions for documents of the hidden index ``target``, of the old keys, that ``source`` does not have: groups
    end, all others are deleted.

    Such groups were founded after the new registry was made.
    """
    for chunk in chunked(_all(target), 500):
        counterparts = source.fetch([(source.name, hit.id, None) for hit in chunk], ["kind"], batch=500)
        for hit, counterpart in zip(chunk, counterparts, strict=True):
            stored = hit.source.get("kind")
            if counterpart is not None or stored == "lease":
                continue
            if stored != "group":
                yield Action("delete", target.name, hit.id, {})
            elif hit.source.get("ended") is None:
                events = [*hit.source["history"]["events"], {"at": at, "event": "dissolved", "group": None}]
                ended = {"ended": at, "updated": at, "history": {"events": events}}
                yield Action("index", target.name, hit.id, {**hit.source, **ended})


def _pages_of_kind(hidden: HiddenStore, kind: str) -> Iterator[list[Hit]]:
    """The documents of one kind in a hidden index, in pages."""
    hidden.refresh()
    yield from hidden.pages({"query": {"term": {"kind": kind}}}, page_size=1000)


def _all(hidden: HiddenStore) -> Iterator[Hit]:
    for page in hidden.pages({"query": {"match_all": {}}}, page_size=1000):
        yield from page


def _write_all(hidden: HiddenStore, actions: Iterator[Action]) -> None:
    """Write to a hidden index. Raises `RequestError` if the server rejects a document."""
    for outcome in hidden.write_in_order(actions):
        if not (outcome.done or outcome.gone):
            raise RequestError(
                f"The server rejected a document of the hidden index {hidden.name}: {outcome.reason}",
                status=outcome.status,
                type=outcome.type,
                reason=outcome.reason,
            )


def _compare(old: Index, new: Index, progress: Progress) -> GroupChanges:
    """The groups that searches use now, compared with those that they will use."""
    overlaps: Counter[tuple[str, str]] = Counter()
    for before, after in new.storage.group_pairs(old, progress):
        if before is not None and after is not None:
            overlaps[before, after] += 1
    changes = compare_groups(overlaps)
    examples = tuple(_with_documents(old, new, one) for one in changes.examples)
    return GroupChanges(changes.documents, changes.moved, changes.before, changes.after, changes.kinds, examples)


def _rule_changes(old: Index, new: Index) -> tuple[str, ...]:
    """The rules of the last run of `group` that change, without the scheme, as ``group NAME: new, not old``. Before
    ``new`` is grouped, those that `group` will have."""
    last, next = Registry(old).last_run(), Registry(new).last_run()
    if last is None or last.rules is None:
        return ()
    made = next.rules if next is not None and next.rules else _handed_over(last.rules, old.settings, new.settings)
    before, after = last.rules.deciding, made.deciding
    names = sorted(before.keys() - {"scheme", "weights"})
    return tuple(f"group {name}: {after[name]}, not {before[name]}" for name in names if before[name] != after[name])


def _with_documents(old: Index, new: Index, example: GroupChangeExample) -> GroupChangeExample:
    """The example with some of its documents, principals first."""
    documents: dict[Address, None] = {}
    for index, groups in ((old, example.before), (new, example.after)):
        clauses = [{"terms": {index.fields.group: sorted(groups)[:_SHOWN]}}]
        principals = [{"term": {index.fields.principal: {"value": True}}}]
        query = {"bool": {"filter": clauses, "should": principals, "minimum_should_match": 0}}
        body = {"size": _SHOWN, "query": query, "_source": False}
        hits = index.documents.search(body)["hits"]["hits"] if groups else []
        documents |= {Address(hit["_index"], hit["_id"]): None for hit in hits}
    return GroupChangeExample(example.kind, example.before, example.after, tuple(documents)[:_SHOWN])
