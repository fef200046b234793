"""``migrate``: switches an index to new keys without downtime."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, TypedDict, cast

import typer

from es_neardupe import options
from es_neardupe.errors import SettingsError
from es_neardupe.keywords import Unpack, with_defaults
from es_neardupe.options import DEFAULT_MAX_CHARS
from es_neardupe.run_options import WRITE_DEFAULTS, WriteOptions, tunable
from es_neardupe.wording import option

if TYPE_CHECKING:
    from es_neardupe.commands.migrate.report import MigrateReport
    from es_neardupe.groups.compare_groupings import GroupChanges
    from es_neardupe.index.index import Index


_KEYS = {"show_default": "unchanged", "rich_help_panel": "New keys"}
"""A setting that is not given stays."""

NewPreset = Annotated[str | None, options.like(options.Preset, **_KEYS)]
NewThreshold = Annotated[float | None, options.like(options.Threshold, **_KEYS)]
NewThresholdMeasure = Annotated[
    str | None,
    options.one_of(
        options.names_of(options.BY_LENGTHS),
        "--measure",
        help=f"Measure of the new threshold: choose bands for it from the lengths of texts. {options.JACCARD}",
        show_default="resemblance",
        rich_help_panel=_KEYS["rich_help_panel"],
    ),
]
NewDetection = Annotated[float | None, options.like(options.Detection, **_KEYS)]
NewShingle = Annotated[int | str | None, options.like(options.Shingle, **_KEYS)]
NewClean = Annotated[
    str | None,
    options.one_of(
        [*options.words_of(options.Clean), "none"],
        "--clean",
        help="What to leave out of texts; none: nothing.",
        **_KEYS,
    ),
]
NewMask = Annotated[
    str | None,
    typer.Option(
        "--mask",
        metavar="KINDS",
        help="Parts of texts to replace by placeholders, separated by commas; all, or none.",
        **_KEYS,
    ),
]
NewPermutations = Annotated[int | None, options.like(options.Permutations, **_KEYS)]
NewBands = Annotated[int | None, options.like(options.Bands, **_KEYS)]
NewRows = Annotated[int | None, options.like(options.Rows, **_KEYS)]
NewAgree = Annotated[int | None, options.like(options.Agree, **_KEYS)]
NewSampleMod = Annotated[int | None, options.like(options.SampleMod, **_KEYS)]
NewSampleKeys = Annotated[int | None, options.like(options.SampleKeys, rich_help_panel=_KEYS["rich_help_panel"])]
NewFields = Annotated[
    Sequence[str],
    typer.Option(
        "--field",
        metavar="FIELD",
        help="Text fields to use from now on. Repeatable.",
        **_KEYS,
    ),
]
Prepare = Annotated[bool, typer.Option("--prepare", help="Stop before the switch, with the old and the new groups.")]
Abort = Annotated[bool, typer.Option("--abort", help="Cancel before the switch: remove the new keys.")]


class NewKeys(TypedDict, total=False):
    """Settings of the keys. Those that are not given stay."""

    fields: NewFields
    preset: NewPreset
    threshold: NewThreshold
    measure: NewThresholdMeasure
    detection: NewDetection
    shingle: NewShingle
    clean: NewClean
    mask: NewMask
    permutations: NewPermutations
    bands: NewBands
    rows: NewRows
    agree: NewAgree
    sample_mod: NewSampleMod
    sample_keys: NewSampleKeys


class MigrateOptions(NewKeys, WriteOptions, total=False):
    """The new keys, and how a migration runs."""


UNCHANGED: Mapping[str, object] = {**dict.fromkeys(NewKeys.__annotations__), "fields": ()}
"""The values of new keys that are not given."""


@with_defaults(WRITE_DEFAULTS, first=UNCHANGED)
@tunable
def migrate(
    index: Index,
    *,
    prepare: Prepare = False,
    abort: Abort = False,
    confirm: Callable[[GroupChanges | None], bool] = lambda comparison: True,
    evidence: options.Evidence = False,
    max_chars: options.MaxChars = DEFAULT_MAX_CHARS,
    **run: Unpack[MigrateOptions],
) -> MigrateReport:
    """Switch an index to new keys without downtime.

    Settings that are not given stay, as do the rules of the last run of `group`.

    New keys and groups (and, with ``evidence``, the evidence) are made under a second prefix, while searches use the
    old ones; ``prepare`` stops there. Then both groupings are compared. If ``confirm`` returns true, the new fields
    replace the old ones in each document, and those of the second prefix are removed. Group ids and their history are
    kept. ``abort`` cancels a migration before the switch.

    Without options it continues an interrupted migration. ``tune``: see `tunable`. A dry run returns its first
    ``show_requests`` write requests. Raises `SchemeMismatch` for settings that differ from those of a migration that
    has begun, `LeaseHeld` while another run migrates the index, `NameTaken` if another index has the name of a hidden
    index, and the errors of `init`, `enrich` and `group`.

    >>> news.migrate(threshold=0.7, dry_run=True).changes
    ('threshold: 0.7, not 0.8', 'bands: 17, not 16', 'rows: 4, not 6', 'group min: 0.7, not 0.8')
    """
    from es_neardupe.commands.migrate.plan import (
        LEASE,
        check_both_names,
        check_phase,
        check_rules,
        open_plan,
        plan_to_abort,
        remove_abandoned_lease,
        temporary_indices,
    )
    from es_neardupe.commands.migrate.report import MigrateReport
    from es_neardupe.commands.migrate.steps import MigrationRun, MigrationWork
    from es_neardupe.index.index import opened
    from es_neardupe.index.on_server.ingest_pipeline import OwnPipelines, check_keys
    from es_neardupe.index.permissions import check_may_delete, check_sees_all, check_updates
    from es_neardupe.index.runs.lease import held
    from es_neardupe.server.dry_run import DryRunClient

    dry_run = run["dry_run"]
    started = time.monotonic()
    dry_client = DryRunClient(index.server, run["show_requests"], dry_run=dry_run)
    keys = {name: value for name, value in run.items() if name in UNCHANGED and value not in (None, (), [])}
    if abort and (keys or prepare):
        raise SettingsError(f"{option('abort')} cannot be combined with settings or {option('prepare')}.")
    plan = plan_to_abort(index) if abort else open_plan(index, cast("NewKeys", keys), evidence=evidence)
    if plan is None:
        current = opened(index)
        if abort and not dry_run:
            remove_abandoned_lease(current)
        return MigrateReport.of(current, started, state="not begun" if abort else "done", dry_run=dry_run)
    check_sees_all(plan.old, "migrating")
    if plan.phase is None:
        check_rules(plan.old)
    if not abort and OwnPipelines(plan.after).names:  # it will be replaced
        check_keys(index, plan.after.settings)
    how = MigrationRun(run["workers"], run["batch"], max_chars, dry_run, run["show_requests"], run["progress"])
    work = MigrationWork(plan, how, dry_client)
    if dry_run:
        plan.old.plain_documents.refresh()
    else:
        check_may_delete(index.server, temporary_indices(plan))
        plan.old.storage.check_writable()
        check_updates(plan.old, "migrating")
    check_both_names(plan)
    with nullcontext() if dry_run else held(plan.coming, "migrate", id=LEASE, progress=run["progress"]):
        check_phase(plan)
        plan.old.through(work.client).storage.prepare_rolled_over()
        if abort:
            work.undo()
        to_clean = abort or work.resume(None if prepare else confirm)
    if to_clean:
        work.clean("aborted" if abort else "done")
    return MigrateReport.of(
        plan.after,
        started,
        state=plan.state if dry_run else work.state,
        changes=work.changes,
        regroups=work.regroups,
        groups=work.groups,
        writes=work.writes,
        pipeline=work.pipeline,
        outdated_pipelines=work.outdated_pipelines,
        unrelated=plan.unrelated,
        dry_run=dry_run,
        requests=dry_client.shown,
    )
