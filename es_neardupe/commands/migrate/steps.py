"""The steps of a migration, and what they have done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from es_neardupe.commands.clean import clean
from es_neardupe.commands.enrich.enrich import enrich
from es_neardupe.commands.group import group
from es_neardupe.commands.migrate.comparison import compared, regrouped
from es_neardupe.commands.migrate.plan import MigrationPlan, mark
from es_neardupe.errors import RequestError
from es_neardupe.groups.compare_groupings import GroupChanges
from es_neardupe.groups.registry import Registry
from es_neardupe.index import queries
from es_neardupe.index.hidden_indices import HiddenIndex, ensure, exists, hidden_index_name
from es_neardupe.index.index import Index, opened
from es_neardupe.index.lease import held
from es_neardupe.index.migration_state import Phase
from es_neardupe.index.stored_fields import timestamp
from es_neardupe.progress import Progress, silent
from es_neardupe.records import Action, Hit
from es_neardupe.server.bulk import BulkCounts, chunked, write
from es_neardupe.server.client import Client
from es_neardupe.server.dry_run import DryRunClient
from es_neardupe.server.search import count, fetch, refresh

__all__ = ["MigrationProgress", "MigrationWork", "hand_over", "inherit_groups", "rehearse_switch", "switch_documents"]


_ROUNDS = 5


def inherit_groups(old: Index, new: Index, at: str) -> None:
    """Let the new registry know the groups that there are, before the first run of `group` writes it (what becomes of
    them is told in their history), and the rules of the last run."""
    source, target = (hidden_index_name(one.target, HiddenIndex.GROUPS) for one in (old, new))
    if not (exists(new.plain, target) and any(True for page in _of_kind(new.plain, target, "run") for _ in page)):
        ensure(new, HiddenIndex.GROUPS)
        hits = (hit for page in _of_kind(new.plain, source, "group") for hit in page)
        _write_all(new.plain, (Action("index", target, hit.id, hit.source) for hit in hits), target)
    last = Registry(old).last_run()
    if last is not None and last.rules is not None:
        Registry(new).hand_over_rules(last.rules, at)


def hand_over(new: Index, after: Index, at: str) -> None:
    """Put registry and evidence of the new keys in the place of the former ones; done twice, it does the same.

    Groups that only the former registry knows came after the new one was made, and have ended.
    """
    for kind in HiddenIndex:
        source, target = hidden_index_name(new.target, kind), hidden_index_name(after.target, kind)
        if not exists(new.plain, source):
            continue
        ensure(after, kind)
        refresh(new.plain, source)
        refresh(new.plain, target)
        _write_all(new.plain, _superseded(new.plain, source, target, at), target)
        hits = (hit for hit in _every(new.plain, source) if hit.source.get("kind") != "lease")
        _write_all(new.plain, (Action("index", target, hit.id, hit.source) for hit in hits), target)


def _superseded(client: Client, source: str, target: str, at: str) -> Iterator[Action]:
    """What becomes of documents of ``target`` that ``source`` does not have."""
    for chunk in chunked(_every(client, target), 500):
        there = fetch(client, [(source, hit.id, None) for hit in chunk], ["kind"])
        for hit, known in zip(chunk, there, strict=True):
            kind = hit.source.get("kind")
            if known is not None or kind == "lease":
                continue
            if kind != "group":
                yield Action("delete", target, hit.id, {})
            elif hit.source.get("ended") is None:
                events = [*hit.source["history"]["events"], {"at": at, "event": "dissolved", "group": None}]
                ended = {"ended": at, "updated": at, "history": {"events": events}}
                yield Action("index", target, hit.id, {**hit.source, **ended})


def _of_kind(client: Client, name: str, kind: str) -> Iterator[list[Hit]]:
    if exists(client, name):
        refresh(client, name)
        yield from client.pages(name, {"query": {"term": {"kind": kind}}}, page_size=1000)


def _every(client: Client, name: str) -> Iterator[Hit]:
    for page in client.pages(name, {"query": {"match_all": {}}}, page_size=1000):
        yield from page


def _write_all(client: Client, actions: Iterator[Action], name: str) -> None:
    """Write to an index of ours. Raises `RequestError` if anything is refused."""
    for outcome in write(client, actions, workers=1):
        if not (outcome.done or outcome.gone):
            raise RequestError(
                f"Our index {name} refused a document: {outcome.reason}",
                status=outcome.status,
                type=outcome.type,
                reason=outcome.reason,
            )
    refresh(client, name)


def switch_documents(
    new: Index, after: Index, *, batch: int, workers: int, progress: Progress
) -> tuple[BulkCounts, int]:
    """Give every document the new fields under the old prefix too, until a pass finds none without.

    What was done, and how many are left: changed again and again, or refused. Users' searches find a group id in each
    document at every moment.
    """
    tally, left = BulkCounts(), 0
    for _ in range(_ROUNDS):
        left = 0
        _refresh(new, after)
        actions = new.storage.takeovers(after, batch=batch, progress=progress)
        for outcome in write(new.plain, actions, batch=batch, workers=workers):
            left += not (outcome.done or outcome.gone)
            if not outcome.conflict:
                tally.add(outcome)
        if not left:
            break
    _refresh(new, after)
    return tally, left


def rehearse_switch(rehearsal: DryRunClient, new: Index, after: Index, *, batch: int) -> None:
    """Show a dry run the first requests of `switch_documents`."""
    _refresh(new, after)
    actions = new.through(rehearsal).storage.takeovers(after, batch=batch, progress=silent)
    for _ in write(rehearsal, actions, batch=batch, workers=1):
        if rehearsal.full:
            break


def _refresh(new: Index, after: Index) -> None:
    """What the switch reads and writes."""
    new.storage.refresh()
    after.storage.refresh()


@dataclass
class MigrationProgress:
    """Where a migration stands, and what the present run has done for it."""

    state: str
    """``not begun``, ``prepared``, ``switching``, ``done`` or ``aborted``."""
    changes: tuple[str, ...] = ()
    """The settings that become other, as ``name: new, not old``; empty once the switch has begun."""
    enriched: int = 0
    """Got new keys; in a dry run: would get them."""
    grouped: bool = False
    """Whether there are groups to be made: ``group`` was run with the old keys."""
    comparison: GroupChanges | None = None
    """Groups by the old keys and by the new ones; None where there is nothing to compare (yet), or no more."""
    switched: int = 0
    """Got the new fields in the place of the old ones."""
    cleaned: int = 0
    """Rid of the fields that the migration does not need any more."""
    left: int = 0
    """Changed again and again while the run went on, or refused: run it again."""
    refusals: tuple[str, ...] = ()


class MigrationWork:
    """The steps of a run; each may be done again at any time."""

    def __init__(self, index: Index, plan: MigrationPlan, max_chars: int, **options: Any) -> None:
        """``options``: workers, batch and progress, of `enrich`, `group` and `clean` alike."""
        self.index, self.plan = index, plan
        self.options, self.max_chars = options, max_chars
        state = {None: "not begun", Phase.PREPARING: "prepared"}.get(plan.phase, "switching")
        self.done = MigrationProgress(state, plan.changes, grouped=Registry(plan.old).last_run() is not None)

    @property
    def new(self) -> Index:
        """The target of the new keys under their own prefix; an index that a rollover made just now has none yet."""
        return opened(self.index, adopting=True, prefix=self.plan.settings.prefix)

    def _under(self, prefix: str) -> Index:
        """The index with the fields of a prefix."""
        return Index(self.index.name, self.index.plain, prefix)

    def go_on(self, confirm: Callable[[GroupChanges | None], bool] | None) -> bool:
        """All steps that are left, or those up to the switch; says whether `clean` is to follow."""
        phase = self.plan.phase
        if phase in (None, Phase.PREPARING):
            self.prepare()
            if self.done.left or confirm is None or not confirm(self.done.comparison):
                return False
        if phase is not Phase.CLEANING:
            self.switch()
        if not self.done.left:
            self.finish()
        return not self.done.left

    def prepare(self) -> None:
        """New keys and groups beside the old ones. Texts that have changed since an earlier run are read too."""
        mark(self.index, self.plan, Phase.PREPARING)
        self._renew(self.plan.settings.prefix, lambda: inherit_groups(self.plan.old, self.new, timestamp()))
        self.done.state = "prepared"
        if self.done.grouped and not self.done.left:
            self.done.comparison = compared(self.plan.old, self.new, self.options["progress"])
            self.done.changes += regrouped(self.plan.old, self.new)

    def _renew(self, prefix: str, before_grouping: Callable[[], None] = lambda: None) -> None:
        """Keys and groups under a prefix as they should be."""
        done = enrich(self._under(prefix), check=True, max_chars=self.max_chars, **self.options)
        self.done.enriched += done.writes.written
        self.done.left += done.writes.left
        self.done.refusals += done.writes.refusals
        if self.done.grouped:
            before_grouping()
            grouped = group(
                self._under(prefix), check=True, evidence=self.plan.evidence, **self.options
            )  # with deletions
            self.done.left += grouped.writes.refused
            self.done.refusals += grouped.writes.refusals

    def switch(self) -> None:
        """From here on commands use the new keys: under their own prefix, until all documents have them under the
        old one, where users' searches look."""
        plan = self.plan
        with held(plan.after, "migrate") as lease:
            mark(self.index, plan, Phase.SWITCHING)
            self.done.state = "switching"
            lease.check()
            hand_over(self.new, plan.after, timestamp())
            tally, self.done.left = switch_documents(self.new, plan.after, **self.options)
            self.done.switched, self.done.refusals = tally.counts["written"], tally.refusals
            if not self.done.left:
                lease.check()
                mark(self.index, plan, Phase.CLEANING)

    def finish(self) -> None:
        """See to the documents that came or changed meanwhile."""
        mark(self.index, self.plan, Phase.CLEANING)
        self._renew(self.plan.prefix)

    def undo(self) -> bool:
        """Make sure that all indices are as they were left by a run that prepared; `clean` is to follow."""
        mark(self.index, self.plan, Phase.PREPARING)
        return True

    def clean(self, state: str) -> None:
        """Take away what is not needed any more, the lease of this work with it: no other step follows."""
        done = clean(self._under(self.plan.settings.prefix), **self.options)
        self.done.cleaned, self.done.left = done.writes.written, done.writes.left
        self.done.refusals += done.writes.refusals
        if not done.writes.left:
            self.done.state = state

    def foretell(self, abort: bool) -> None:
        """What a dry run can say: the comparison needs the new keys, and these are there once they are prepared."""
        refresh(self.index.plain, self.plan.old.path)
        if self.plan.phase is None:
            self.done.enriched = count(self.index.plain, self.plan.old.path)
        elif self.plan.phase is Phase.PREPARING:
            new = self.new
            client = new.client
            self.done.enriched = 0 if abort else count(client, new.path, queries.stale(new.fields, new.scheme_id))
            if abort and new.storage.groups_in_documents:
                self.done.cleaned = count(client, new.path, queries.processed(new.fields))
            if self.done.grouped and not abort:
                self.done.comparison = compared(self.plan.old, new, self.options["progress"])
                self.done.changes += regrouped(self.plan.old, new)
