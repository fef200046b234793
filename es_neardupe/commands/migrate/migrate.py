"""Give an index keys of another scheme without downtime: beside the old ones, then in their place."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

from es_neardupe import options
from es_neardupe.commands.migrate.dry_run import first_requests
from es_neardupe.commands.migrate.plan import MigrationOptions, MigrationPlan, open_plan
from es_neardupe.commands.migrate.steps import MigrationProgress, MigrationWork
from es_neardupe.commands.report_parts import one_line
from es_neardupe.errors import BeingMigrated, SettingsError
from es_neardupe.groups.compare_groupings import GroupChanges
from es_neardupe.groups.registry import Registry, remembered
from es_neardupe.groups.rules import remembered_rules, rules_of
from es_neardupe.index.hidden_indices import HiddenIndex, hidden_index_name, remove
from es_neardupe.index.index import Index, opened
from es_neardupe.index.lease import held
from es_neardupe.index.migration_state import Phase, next_prefix, phase_of
from es_neardupe.index.permissions import check_may_delete, check_sees_all, check_updates
from es_neardupe.index.storage import settings_mappings
from es_neardupe.index.target import stored_settings
from es_neardupe.index.tuning import tunable
from es_neardupe.options import DEFAULT_MAX_CHARS
from es_neardupe.progress import Progress, silent
from es_neardupe.server.dry_run import DryRunClient, ShownRequest
from es_neardupe.server.search import count
from es_neardupe.verification.criterion import match_criterion

__all__ = ["MigrateReport", "MigrateWrites", "migrate"]

_LEASE = "lease-migrate"


@dataclass(frozen=True, kw_only=True)
class MigrateWrites:
    """Documents by what the steps of a run did to them; one document may count in several."""

    enriched: int
    """Got new keys; in a dry run: would get them."""
    switched: int
    """Got the new fields in the place of the old ones."""
    cleaned: int
    """Rid of the fields that the migration does not need any more."""
    left: int
    """Changed again and again while the run went on, or refused: run it again."""
    refusals: tuple[str, ...]


@dataclass(frozen=True)
class MigrateReport:
    """What a run did, and where the migration stands now."""

    index: str
    scheme: str
    """The new one."""
    documents: int
    """In the index."""
    state: str
    """``not begun``, ``prepared``, ``switching``, ``done`` or ``aborted``."""
    changes: tuple[str, ...]
    """The settings that become other, as ``name: new, not old``; empty once the switch has begun."""
    regroups: bool
    """Whether there are groups to be made."""
    groups: GroupChanges | None
    """Groups by the old keys and by the new ones; None where there is nothing to compare (yet), or no more."""
    writes: MigrateWrites
    dry_run: bool
    seconds: float = field(compare=False)
    tuned: Mapping[str, Mapping[str, str | None]] | None = None
    """With ``tune``: index -> the settings that were lowered, with the values they have again."""
    requests: tuple[ShownRequest, ...] = ()
    """Of a dry run: those that `first_requests` tells."""

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


@tunable
def migrate(
    index: Index,
    *,
    fields: options.NewFields = (),
    preset: options.NewPreset = None,
    threshold: options.NewThreshold = None,
    detection: options.NewDetection = None,
    shingle: options.NewShingle = None,
    permutations: options.NewPermutations = None,
    bands: options.NewBands = None,
    rows: options.NewRows = None,
    agree: options.NewAgree = None,
    sample_mod: options.NewSampleMod = None,
    sample_keys: options.NewSampleKeys = None,
    prepare: options.Prepare = False,
    abort: options.Abort = False,
    confirm: Callable[[GroupChanges | None], bool] = lambda comparison: True,
    evidence: options.Evidence = False,
    workers: options.Workers = 2,
    batch: options.Batch = 500,
    max_chars: options.MaxChars = DEFAULT_MAX_CHARS,
    tune: options.Tune = False,
    dry_run: options.DryRun = False,
    show_requests: options.ShowRequests = 0,
    progress: Progress = silent,
) -> MigrateReport:
    """Lead an index to other settings; what is not given stays as it is, also the rules of the last run of `group`.

    New keys and groups (and, with ``evidence``, the evidence) are made under a prefix of their own while the old ones
    serve (``prepare`` stops there), both groupings are compared, and if ``confirm`` says so, each document gets the new
    fields in the place of the old ones; what is left over is taken away. Group ids and their history go along.
    ``abort`` gives up before the switch.
    ``tune``: see `tunable`. A dry run can ``show_requests``: see `first_requests`. Started again at any time, also
    without options, it goes on where it stopped. Raises `SchemeMismatch` for other settings than those of a migration
    under way, `LeaseHeld` while another one works on the index, and what `init`, `enrich` and `group` raise.
    """
    started = time.monotonic()
    rehearsal = DryRunClient(index.plain, show_requests, dry_run=dry_run)
    numbers = {"threshold": threshold, "detection": detection, "shingle": shingle, "permutations": permutations}
    numbers |= {"bands": bands, "rows": rows, "agree": agree, "sample_mod": sample_mod}
    wanted = MigrationOptions(fields, preset, numbers, sample_keys, evidence)
    if abort and (wanted.something or prepare):
        raise SettingsError("`abort` takes no settings, and no `prepare`.")
    plan = _aborting(index) if abort else open_plan(index, wanted)
    if plan is None:
        found, done = opened(index), MigrationProgress("aborted" if abort else "done")
        if abort and not dry_run:
            _remove_strays(found)
        return _report(found, done, dry_run, started)
    check_sees_all(plan.old, "migrating")
    if plan.phase is None:
        _check_rules(plan.old)
    work = MigrationWork(index, plan, max_chars, workers=workers, batch=batch, progress=progress)
    shown: tuple[ShownRequest, ...] = ()
    if dry_run:
        work.foretell(abort)
        shown = first_requests(
            rehearsal, plan, show_requests, abort=abort, prepare=prepare, max_chars=max_chars, batch=batch
        )
    else:
        check_may_delete(index.plain, _coming_names(plan))
        plan.old.storage.check_writable()
        check_updates(plan.old, "migrating")
        with held(plan.coming, "migrate", id=_LEASE):
            _check_phase(plan)
            plan.old.storage.prepare_rolled_over()
            ready = work.undo() if abort else work.go_on(None if prepare else confirm)
        if ready:
            work.clean("aborted" if abort else "done")
    return replace(_report(plan.after, work.done, dry_run, started), requests=shown)


def _coming_names(plan: MigrationPlan) -> list[str]:
    """Our indices under the new prefix, which are there until the migration is over."""
    coming = plan.coming
    every = coming.with_target(replace(coming.target, new=()))  # those of rolled-over indices will be there too
    return [*(hidden_index_name(coming.target, kind) for kind in HiddenIndex), *every.storage.sidecars]


def _check_phase(plan: MigrationPlan) -> None:
    """Raises `BeingMigrated` if another run went on between our look and our lease."""
    index = plan.old.name
    if phase_of(settings_mappings(plan.old.plain, index, plan.prefix).values(), plan.prefix) is not plan.phase:
        raise BeingMigrated(
            f"Another run has led index {index} further to other keys meanwhile: run the same command again."
        )


def _report(index: Index, done: MigrationProgress, dry_run: bool, started: float) -> MigrateReport:
    return MigrateReport(
        index=index.name,
        scheme=index.scheme_id,
        documents=count(index.plain, index.path),
        state=done.state,
        changes=done.changes,
        regroups=done.grouped,
        groups=done.comparison,
        writes=MigrateWrites(
            enriched=done.enriched,
            switched=done.switched,
            cleaned=done.cleaned,
            left=done.left,
            refusals=done.refusals,
        ),
        dry_run=dry_run,
        seconds=time.monotonic() - started,
    )


def _aborting(index: Index) -> MigrationPlan | None:
    """The migration that is to be given up. Raises `BeingMigrated` once the switch has begun."""
    phase = phase_of(settings_mappings(index.plain, index.name, index.prefix).values(), index.prefix)
    if phase is None:
        return None
    if phase is not Phase.PREPARING:
        raise BeingMigrated(
            f"The switch of index {index.name} has begun: documents have lost their former keys. Run `es-neardupe "
            f"migrate {index.name}` to its end; another migration leads back."
        )
    return open_plan(index, MigrationOptions((), None, {}, None))


def _remove_strays(index: Index) -> None:
    """A run that was killed at once left a lease, in an index of ours that belongs to no settings."""
    settings = replace(index.settings, prefix=next_prefix(index.settings.prefix))
    coming = index.with_target(replace(index.target, settings=settings))
    mappings = settings_mappings(index.plain, index.name, index.settings.prefix).values()
    if all(stored_settings(mapping, coming.settings.prefix) is None for mapping in mappings):
        remove(coming)


def _check_rules(old: Index) -> None:
    """Raises `SettingsError` for rules of the last run that `group` would refuse, before any work is done."""
    match, group = remembered(Registry(old).last_run())
    with remembered_rules(old, match, group):
        rules_of(old, group)
        match_criterion(old, match)
