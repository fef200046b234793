"""The steps of a migration, and what they have done."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from es_neardupe import documents, queries
from es_neardupe.asking import count, refresh
from es_neardupe.clients import Client
from es_neardupe.group_changes import GroupChanges
from es_neardupe.indices import Target
from es_neardupe.lease import held
from es_neardupe.migrations import Phase
from es_neardupe.pipeline.clean import clean
from es_neardupe.pipeline.enrich import enrich
from es_neardupe.pipeline.group import group
from es_neardupe.pipeline.migration_comparison import compared, regrouped
from es_neardupe.pipeline.migration_plan import Plan, mark
from es_neardupe.pipeline.switching import hand_over, inherit_groups, switch_documents
from es_neardupe.registry import Registry
from es_neardupe.sidecar import opened, over

__all__ = ["Done", "Work"]


@dataclass
class Done:
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


class Work:
    """The steps of a run; each may be done again at any time."""

    def __init__(self, client: Client, plan: Plan, max_chars: int, **options: Any) -> None:
        """``options``: workers, batch and progress, of `enrich`, `group` and `clean` alike."""
        self.client, self.plan, self.index = client, plan, plan.old.name
        self.options, self.max_chars = options, max_chars
        state = {None: "not begun", Phase.PREPARING: "prepared"}.get(plan.phase, "switching")
        self.done = Done(state, plan.changes, grouped=Registry(client, plan.old).last_run() is not None)

    @property
    def new(self) -> Target:
        """The target of the new keys under their own prefix; an index that a rollover made just now has none yet."""
        return opened(self.client, self.index, self.plan.settings.prefix, adopting=True)[1]

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
        mark(self.client, self.index, self.plan, Phase.PREPARING)
        self._renew(self.plan.settings.prefix, lambda: inherit_groups(self.client, self.plan.old, self.new))
        self.done.state = "prepared"
        if self.done.grouped and not self.done.left:
            self.done.comparison = compared(self.client, self.plan.old, self.new, self.options["progress"])
            self.done.changes += regrouped(self.client, self.plan.old, self.new)

    def _renew(self, prefix: str, before_grouping: Callable[[], None] = lambda: None) -> None:
        """Keys and groups under a prefix as they should be."""
        done = enrich(self.client, self.index, prefix=prefix, check=True, max_chars=self.max_chars, **self.options)
        self.done.enriched += done.written
        self.done.left += done.conflicts + done.refused
        self.done.refusals += done.refusals
        if self.done.grouped:
            before_grouping()
            choice = {"check": True, **self.plan.grouping, **self.options}  # with deletions
            grouped = group(self.client, self.index, prefix=prefix, **choice)
            self.done.left += grouped.refused
            self.done.refusals += grouped.refusals

    def switch(self) -> None:
        """From here on commands use the new keys: under their own prefix, until all documents have them under the
        old one, where users' searches look."""
        plan = self.plan
        with held(self.client, plan.after, "migrate") as lease:
            mark(self.client, self.index, plan, Phase.SWITCHING)
            self.done.state = "switching"
            lease.check()
            hand_over(self.client, self.new, plan.after, documents.timestamp())
            tally, self.done.left = switch_documents(self.client, self.new, plan.after, **self.options)
            self.done.switched, self.done.refusals = tally.counts["written"], tally.refusals
            if not self.done.left:
                lease.check()
                mark(self.client, self.index, plan, Phase.CLEANING)

    def finish(self) -> None:
        """See to the documents that came or changed meanwhile."""
        mark(self.client, self.index, self.plan, Phase.CLEANING)
        self._renew(self.plan.prefix)

    def undo(self) -> bool:
        """Make sure that all indices are as they were left by a run that prepared; `clean` is to follow."""
        mark(self.client, self.index, self.plan, Phase.PREPARING)
        return True

    def clean(self, state: str) -> None:
        """Take away what is not needed any more, the lease of this work with it: no other step follows."""
        done = clean(self.client, self.index, prefix=self.plan.settings.prefix, **self.options)
        self.done.cleaned, self.done.left = done.cleaned, done.left
        self.done.refusals += done.refusals
        if not done.left:
            self.done.state = state

    def foretell(self, abort: bool) -> None:
        """What a dry run can say: the comparison needs the new keys, and these are there once they are prepared."""
        refresh(self.client, self.plan.old.path)
        if self.plan.phase is None:
            self.done.enriched = count(self.client, self.plan.old.path)
        elif self.plan.phase is Phase.PREPARING:
            new = self.new
            client = over(self.client, new)
            self.done.enriched = 0 if abort else count(client, new.path, queries.stale(new.fields, new.scheme_id))
            if abort and new.beside is None:
                self.done.cleaned = count(client, new.path, queries.processed(new.fields))
            if self.done.grouped and not abort:
                self.done.comparison = compared(self.client, self.plan.old, new, self.options["progress"])
                self.done.changes += regrouped(self.client, self.plan.old, new)
