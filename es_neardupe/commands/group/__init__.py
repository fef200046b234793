"""Group the near-duplicates of an index: find candidates, verify them, form groups, write them back."""

from __future__ import annotations

import time
from contextlib import nullcontext
from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from es_neardupe import options
from es_neardupe.errors import SettingsError
from es_neardupe.keywords import Unpack, with_defaults
from es_neardupe.match_options import RuleOptions
from es_neardupe.run_options import RUN_DEFAULTS, RunOptions, on_engine, tunable
from es_neardupe.wording import option

if TYPE_CHECKING:
    from es_neardupe.commands.group.report import GroupReport
    from es_neardupe.index.index import Index


ChosenLinkage = Annotated[
    str | None, options.one_of(options.words_of(options.Linkage), "--linkage", help=options.LINKAGE)
]
Principal = Annotated[
    str | None,
    typer.Option(
        "--principal",
        metavar="POLICY",
        help="How the principal is chosen: longest, oldest, newest, FIELD:asc or FIELD:desc.",
    ),
]
Window = Annotated[
    str | None,
    typer.Option(
        "--window",
        metavar="FIELD:DAYS",
        help="Compare only documents whose dates are at most this many days apart.",
    ),
]
DefaultRules = Annotated[
    bool,
    typer.Option("--default-rules", help="Take rules that are not given from the defaults, not from the last run."),
]
CheckGroups = Annotated[
    bool, typer.Option("--check", help="Also check all groups against the registry, to notice deleted documents.")
]
Rebuild = Annotated[bool, typer.Option("--rebuild", help="Process all documents, not only what changed.")]
IgnoreReviews = Annotated[
    bool, typer.Option("--ignore-reviews", help="Form the groups without the decisions of reviewers.")
]
BreakLease = Annotated[bool, typer.Option("--break-lease", help="Delete the lease of another run.")]


class GroupOptions(RuleOptions, RunOptions, total=False):
    """The rules of `group`, and how it runs. A rule that is None is that of the last run."""

    linkage: ChosenLinkage
    principal: Principal
    window: Window


OF_LAST_RUN = dict.fromkeys(name for name in GroupOptions.__annotations__ if name not in RUN_DEFAULTS)


@with_defaults(RUN_DEFAULTS, first=OF_LAST_RUN, default_text="as in the last run")
@tunable
@on_engine
def group(
    index: Index,
    *,
    default_rules: DefaultRules = False,
    renew: options.Renew = False,
    check: CheckGroups = False,
    rebuild: Rebuild = False,
    ignore_reviews: IgnoreReviews = False,
    evidence: options.Evidence = False,
    memory: options.Memory = None,
    break_lease: BreakLease = False,
    **given: Unpack[GroupOptions],
) -> GroupReport:
    """Find groups of near-duplicates and write group, principal and similarity into every document.

    Two documents match if their exact similarity by ``measure`` lies between ``min`` and ``max``, both included, and
    ``facts``, ``within``, ``across`` and ``window`` allow the pair. If one of these rules, from ``measure`` to
    ``max_bucket``, is None, it is taken from the last run that finished and was not a dry run. In the first run, and
    with ``default_rules``, it is the default: the measure of the index, from its threshold to 1, linkage star,
    principal longest.

    ``facts``: texts that differ in facts of these kinds do not match, however similar they are: the same form, but
    about something else. Exact copies have no facts that differ.

    A run with the rules of the last one processes only the documents whose group can have changed: because of new and
    changed documents, of deleted ones, and of decisions of reviewers. ``check`` compares all groups with the registry,
    even if no document is missing. A run with other rules, or with ``rebuild``, processes all documents. A second run
    without changes writes nothing.

    Texts that reviewers decided to be different are never in one group, and those decided to be the same always are,
    unless reviewers disagree; ``ignore_reviews`` forms the groups without these decisions, in this run only.

    ``evidence`` stores every verified pair in a hidden index, and does not compare stored pairs again.
    ``ignore_common``: shingles in more than this share of a sample of the documents are ignored, or with ``auto`` those
    of passages that hold groups of unrelated texts together; the list is stored and used again until ``renew``.
    ``memory``: maximum memory in bytes; keys that do not fit are spilled to disk, with the same result. ``slices``:
    number of parts to read at a time. ``tune``: see `tunable`. ``break_lease`` deletes the lease of another run, which
    stops before its next write if it is alive. ``show_requests``: number of write requests that a dry run returns.

    Raises `SettingsError` for options that are unknown, contradict each other or have no effect on the measure, for
    rules of the last run that are no longer valid, and if ``memory`` or the disk is too small; `LeaseHeld` while
    another run groups the same index.

    >>> report = news.group(min=0.8)
    >>> report.groups.count, report.groups.grouped, report.groups.alone
    (1, 4, 5)
    >>> print(report.rules)
    measure resemblance, min 0.8, max 1.0, max-bucket 200, linkage star, principal longest
    """
    from es_neardupe.candidates.memory_limit import MemoryLimit
    from es_neardupe.candidates.spill_to_disk import scratch
    from es_neardupe.commands.group.steps import Run, check_permissions, last_run, unchanged_last_run
    from es_neardupe.groups.build import form_groups, link
    from es_neardupe.groups.decisions import Decisions, WaitingDecisions
    from es_neardupe.groups.incremental import choose_scope
    from es_neardupe.groups.registry import Registry, remembered
    from es_neardupe.groups.rules import RunRules, check_linkage, remembered_rules, rules_of
    from es_neardupe.index.index import opened
    from es_neardupe.index.runs.lease import delete_lease, held
    from es_neardupe.server.dry_run import DryRunClient
    from es_neardupe.verification.criterion import match_criterion
    from es_neardupe.verification.evidence import evidence_of

    progress, dry_run = given["progress"], given["dry_run"]
    started = time.monotonic()
    if break_lease and dry_run:
        raise SettingsError(
            f"{option('break_lease')} and {option('dry_run')} are given: a dry run takes no lease. Omit one of them."
        )
    client = DryRunClient(index.client, given["show_requests"], dry_run=dry_run)
    index = opened(index.through(client) if dry_run else index, writes=not dry_run)
    registry = Registry(index)
    limit = None if memory is None else MemoryLimit(memory)
    before = remembered(None if default_rules else registry.last_run(), index.settings)
    with remembered_rules(index, *before):
        match = before[0].having(given)
        criterion = match_criterion(index, match, renew=renew, limit=limit, progress=progress)
        rules = rules_of(
            index,
            before[1],
            linkage=given["linkage"],
            principal=given["principal"],
            within=given["within"],
            across=given["across"],
            window=given["window"],
            max_bucket=given["max_bucket"],
        )
        check_linkage(rules.linkage, criterion.measure.name)
    check_permissions(index, dry_run=dry_run)
    work = Run(
        index=index,
        registry=registry,
        rules=RunRules.of(match, rules, criterion, index.scheme_id, ignore_reviews=ignore_reviews),
        criterion=criterion,
        evidence=evidence_of(index, criterion) if evidence else None,
        batch=given["batch"],
        slices=given["slices"],
        workers=given["workers"],
        limit=limit,
        progress=progress,
        decisions=None if ignore_reviews else Decisions(index),
    )
    if break_lease:
        delete_lease(index)
    with scratch() as files, nullcontext() if dry_run else held(index, progress=progress) as lease:
        last = last_run(registry) if default_rules else unchanged_last_run(index, registry, before)
        feed = index.storage.group_feed(stores=not dry_run)  # it refreshes the index
        fields = index.storage.field_feed(stores=not dry_run) if rules.columns else None
        work = replace(work, feed=feed, field_feed=fields)
        waiting = WaitingDecisions() if work.decisions is None else work.decisions.waiting()
        scope = choose_scope(work, last, waiting, check=check, rebuild=rebuild)
        work = work.limited(scope)
        verified, decisions = work.verify(scope, files)
        linked = link(rules, verified, criterion, progress, decisions)
        result = form_groups(index, registry, scope, linked, rules=work.rules, limit=work.limit, progress=progress)
        if lease is None:
            written, stored = work.write_documents(result, workers=1), None  # to the client of a dry run
        else:
            written, stored = work.write(scope, result, lease, waiting, decisions)
        mirrored = index.storage.write_group_ids(batch=given["batch"], workers=given["workers"], dry_run=dry_run)
        work.note_mirrored(mirrored)
    report = work.report(scope, result, written, mirrored, stored, dry_run=dry_run)
    return replace(report, seconds=time.monotonic() - started, requests=client.shown)
