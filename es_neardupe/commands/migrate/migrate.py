"""Give an index keys of another scheme without downtime: beside the old ones, then in their place."""

from __future__ import annotations

import dataclasses
import inspect
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Any

from es_neardupe.commands.group import group
from es_neardupe.commands.init.sidecar import prepare_rolled_over
from es_neardupe.commands.migrate.dry_run import first_requests
from es_neardupe.commands.migrate.plan import Plan, Wanted, open_plan
from es_neardupe.commands.migrate.steps import Done, Work
from es_neardupe.errors import BeingMigrated, SettingsError
from es_neardupe.groups.compare_groupings import GroupChanges
from es_neardupe.groups.rule_options import check_linkage, rules_of
from es_neardupe.index.hidden_indices import Companion, companion_name, remove
from es_neardupe.index.lease import held
from es_neardupe.index.migration_state import Phase, next_prefix, phase_of
from es_neardupe.index.permissions import check_may_delete, check_sees_all, check_updates, check_writable
from es_neardupe.index.settings import DEFAULT_MAX_CHARS, DEFAULT_PREFIX
from es_neardupe.index.sidecar.names import sidecar_name
from es_neardupe.index.sidecar.open import opened, over, telling_mappings
from es_neardupe.index.target import Target, stored_settings
from es_neardupe.index.tuning import tunable
from es_neardupe.progress import Progress, silent
from es_neardupe.server.client import Client
from es_neardupe.server.dry_run import Rehearsal, ShownRequest
from es_neardupe.server.search import count
from es_neardupe.verification.criterion import Choice, criterion

__all__ = ["MigrateReport", "migrate"]

_LEASE = "lease-migrate"


@dataclass(frozen=True)
class MigrateReport:
    """What a run did, and where the migration stands now; for the other fields see `Done`."""

    index: str
    scheme: str
    """The new one."""
    documents: int
    """In the index."""
    state: str
    changes: tuple[str, ...]
    enriched: int
    grouped: bool
    comparison: GroupChanges | None
    switched: int
    cleaned: int
    left: int
    refusals: tuple[str, ...]
    dry_run: bool
    seconds: float = field(compare=False)
    tuned: Mapping[str, Mapping[str, str | None]] | None = None
    """With ``tune``: index -> the settings that were lowered, with the values they have again."""
    requests: tuple[ShownRequest, ...] = ()
    """Of a dry run: those that `first_requests` tells."""


@tunable
def migrate(
    client: Client,
    index: str,
    *,
    fields: Sequence[str] = (),
    preset: str | None = None,
    threshold: float | None = None,
    detection: float | None = None,
    shingle: int | None = None,
    permutations: int | None = None,
    bands: int | None = None,
    rows: int | None = None,
    agree: int | None = None,
    sample_mod: int | None = None,
    sample_keys: int | None = None,
    prepare: bool = False,
    abort: bool = False,
    confirm: Callable[[GroupChanges | None], bool] = lambda comparison: True,
    workers: int = 2,
    batch: int = 500,
    max_chars: int = DEFAULT_MAX_CHARS,
    prefix: str = DEFAULT_PREFIX,
    tune: bool = False,
    dry_run: bool = False,
    show_requests: int = 0,
    progress: Progress = silent,
    **grouping: Any,
) -> MigrateReport:
    """Lead an index to other settings; what is not given stays as it is. ``grouping`` takes the options of `group`.

    New keys and groups are made under a prefix of their own while the old ones serve (``prepare`` stops there), both
    groupings are compared, and if ``confirm`` says so, each document gets the new fields in the place of the old ones;
    what is left over is taken away. Group ids and their history go along. ``abort`` gives up before the switch.
    ``tune``: see `tunable`. A dry run can ``show_requests``: see `first_requests`. Started again at any time, also
    without options, it goes on where it stopped. Raises `SchemeMismatch` for other settings than those of a migration
    under way, `LeaseHeld` while another one works on the index, and what `init`, `enrich` and `group` raise.
    """
    started = time.monotonic()
    rehearsal = Rehearsal(client, show_requests, dry_run=dry_run)
    numbers = {"threshold": threshold, "detection": detection, "shingle": shingle, "permutations": permutations}
    numbers |= {"bands": bands, "rows": rows, "agree": agree, "sample_mod": sample_mod}
    wanted = Wanted(fields, preset, numbers, sample_keys, grouping)
    if abort and (wanted.something or prepare or grouping):
        raise SettingsError("--abort takes no settings, and no --prepare.")
    plan = _aborting(client, index, prefix) if abort else open_plan(client, index, prefix, wanted)
    if plan is None:
        (_, target), done = opened(client, index, prefix), Done("aborted" if abort else "done")
        if abort and not dry_run:
            _remove_strays(client, target)
        return _report(client, target, done, dry_run, started)
    check_sees_all(client, plan.old, "migrating")
    if plan.phase is None:
        _check_grouping(client, plan)
    work = Work(client, plan, max_chars, workers=workers, batch=batch, progress=progress)
    shown: tuple[ShownRequest, ...] = ()
    if dry_run:
        work.foretell(abort)
        shown = first_requests(
            rehearsal, plan, show_requests, abort=abort, prepare=prepare, max_chars=max_chars, batch=batch
        )
    else:
        check_may_delete(client, _coming_names(plan))
        check_writable(over(client, plan.old), index)
        check_updates(client, plan.old, "migrating")
        with held(client, plan.coming, "migrate", id=_LEASE):
            _check_phase(client, plan)
            prepare_rolled_over(client, plan.old)
            ready = work.undo() if abort else work.go_on(None if prepare else confirm)
        if ready:
            work.clean("aborted" if abort else "done")
    return replace(_report(client, plan.after, work.done, dry_run, started), requests=shown)


def _coming_names(plan: Plan) -> list[str]:
    """Our indices under the new prefix, which are there until the migration is over."""
    beside = plan.old.indices if plan.old.beside is not None else ()
    prefix = plan.settings.prefix
    return [*(companion_name(plan.coming, kind) for kind in Companion), *(sidecar_name(one, prefix) for one in beside)]


def _check_phase(client: Client, plan: Plan) -> None:
    """Raises `BeingMigrated` if another run went on between our look and our lease."""
    index = plan.old.name
    if phase_of(telling_mappings(client, index, plan.prefix).values(), plan.prefix) is not plan.phase:
        raise BeingMigrated(
            f"Another run has led index {index} further to other keys meanwhile: run the same command again."
        )


def _report(client: Client, target: Target, done: Done, dry_run: bool, started: float) -> MigrateReport:
    return MigrateReport(
        index=target.name,
        scheme=target.scheme_id,
        documents=count(client, target.path),
        **{one.name: getattr(done, one.name) for one in dataclasses.fields(Done)},
        dry_run=dry_run,
        seconds=time.monotonic() - started,
    )


def _aborting(client: Client, index: str, prefix: str) -> Plan | None:
    """The migration that is to be given up. Raises `BeingMigrated` once the switch has begun."""
    phase = phase_of(telling_mappings(client, index, prefix).values(), prefix)
    if phase is None:
        return None
    if phase is not Phase.PREPARING:
        raise BeingMigrated(
            f"The switch of index {index} has begun: documents have lost their former keys. Run `es-neardupe migrate "
            f"{index}` to its end; another migration leads back."
        )
    return open_plan(client, index, prefix, Wanted((), None, {}, None, {}))


def _remove_strays(client: Client, target: Target) -> None:
    """A run that was killed at once left a lease, in an index of ours that belongs to no settings."""
    coming = replace(target, settings=replace(target.settings, prefix=next_prefix(target.settings.prefix)))
    mappings = telling_mappings(client, target.name, target.settings.prefix).values()
    if all(stored_settings(mapping, coming.settings.prefix) is None for mapping in mappings):
        remove(client, coming)


def _check_grouping(client: Client, plan: Plan) -> None:
    """Raises `SettingsError` for options that `group` would refuse, before any work is done."""
    known = {name: one.default for name, one in inspect.signature(group).parameters.items()}
    if unknown := sorted(plan.grouping.keys() - known.keys()):
        raise SettingsError(f"Neither migrate nor group has an option {', '.join(unknown)}.")
    options = known | dict(plan.grouping)
    choice = Choice(*(options[one.name] for one in dataclasses.fields(Choice)))
    asking = over(client, plan.old)
    rules = rules_of(asking, plan.old, **{name: options[name] for name in ("linkage", "principal", "within", "window")})
    check_linkage(rules.linkage, criterion(asking, plan.old, choice).measure.name)
