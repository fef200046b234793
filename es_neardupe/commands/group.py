"""Group the near-duplicates of an index: candidates, exact verification, groups, write-back."""

from __future__ import annotations

import builtins
import time
from collections.abc import Mapping
from contextlib import nullcontext
from dataclasses import dataclass, field

from es_neardupe import options
from es_neardupe.candidates.detection import DetectionCase
from es_neardupe.candidates.fingerprints import read_fingerprints
from es_neardupe.candidates.join import with_passages
from es_neardupe.candidates.who_may_meet import DEFAULT_RULES
from es_neardupe.commands.report_parts import (
    GroupCounts,
    GroupScope,
    GroupsLookedAt,
    PairCounts,
    WriteCounts,
    one_line,
)
from es_neardupe.errors import LeaseHeld, SettingsError
from es_neardupe.groups.build import GroupingResult, form_groups, link
from es_neardupe.groups.neighbourhood import affected_pairs
from es_neardupe.groups.registry import LastRun, Registry, remembered
from es_neardupe.groups.rules import RunRules, check_linkage, remembered_rules, rules_of
from es_neardupe.groups.what_changed import RunScope, start_of
from es_neardupe.groups.write import write_groups
from es_neardupe.index.index import Index, opened
from es_neardupe.index.lease import Lease, held
from es_neardupe.index.permissions import check_sees_all, check_updates
from es_neardupe.index.tuning import tunable
from es_neardupe.progress import Progress, silent
from es_neardupe.server.bulk import BulkCounts
from es_neardupe.server.dry_run import DryRunClient, ShownRequest
from es_neardupe.server.search import count, refresh
from es_neardupe.verification.common_shingles import CommonShinglesUsed, effect, keep, used
from es_neardupe.verification.criterion import MatchCriterion, MatchOptions, WeightsUsed, criterion
from es_neardupe.verification.evidence import EvidenceReport, evidence_of, write_evidence
from es_neardupe.verification.verify import verified_pairs

__all__ = ["GroupReport", "group"]


@dataclass(frozen=True)
class GroupReport:
    """What a run found and wrote: ``affected = stale + corrupt`` + the sum of the writes.

    Over the whole index ``documents = grouped + alone + stale + corrupt``.
    """

    index: str
    scheme: str
    measure: str
    """What decided, in words; ``resemblance`` by default."""
    min: float
    max: float
    rules: RunRules
    """All rules in force, given or as in the last run; as text, in one line."""
    linkage: str
    principal: str
    """The policy that chose the principals."""
    within: str | None
    window: str | None
    detection: float | None
    """Probability that a pair exactly ``min`` similar became a candidate; None where the measure does not decide it."""
    detection_cases: tuple[DetectionCase, ...]
    """In that case, for some kinds of pairs."""
    weights: WeightsUsed | None
    """For the measure weighted: where the weights are from."""
    common: CommonShinglesUsed | None
    """With ``ignore_common``: the shingles that did not count."""
    scope: GroupScope
    pairs: PairCounts
    groups: GroupCounts
    writes: WriteCounts
    evidence: EvidenceReport | None
    """What was kept as evidence; None where that was not asked for, or in a dry run."""
    dry_run: bool
    seconds: float = field(compare=False)
    requests: tuple[ShownRequest, ...] = ()
    """The first writes of a dry run, if they were asked for."""
    tuned: Mapping[str, Mapping[str, str | None]] | None = None
    """With ``tune``: index -> the settings that were lowered, with the values they have again."""

    def __repr__(self) -> str:
        return one_line(
            self,
            index=self.index,
            groups=self.groups.count,
            grouped=self.groups.grouped,
            matches=self.pairs.matches,
            written=self.writes.written,
            dry_run=self.dry_run,
        )


@tunable
def group(
    index: Index,
    *,
    measure: options.RuleMeasure = None,
    matching: options.RuleMatching = None,
    min: options.RuleMinimum = None,
    max: options.RuleMaximum = None,
    features: options.RuleFeatures = None,
    ngram: options.RuleNgram = None,
    whitespace: options.RuleWhitespace = None,
    ignore_common: options.RuleIgnoreCommon = None,
    linkage: options.RuleLinkage = None,
    principal: options.RulePrincipal = None,
    within: options.RuleWithin = None,
    window: options.RuleWindow = None,
    max_bucket: options.RuleMaxBucket = None,
    default_rules: options.DefaultRules = False,
    renew: options.Renew = False,
    check: options.CheckGroups = False,
    rebuild: options.Rebuild = False,
    evidence: options.Evidence = False,
    workers: options.Workers = 2,
    batch: options.Batch = 500,
    tune: options.Tune = False,
    dry_run: options.DryRun = False,
    show_requests: options.ShowRequests = 0,
    progress: Progress = silent,
) -> GroupReport:
    """Find the groups of an enriched index and write group, principal and similarity into every document.

    Two documents match if their exact similarity by ``measure`` lies between ``min`` and ``max``, both included, and
    ``within`` and ``window`` let them meet. Each of these rules, from ``measure`` to ``max_bucket``, that is None is as
    in the last run that came to its end and was no dry run; with ``default_rules``, and in the first run, it is
    the default: resemblance, from the threshold of the index to 1, linkage star, principal longest.

    A run with the rules of the one before looks only at what new, changed and (as far as it meets them, or with
    ``check`` all) deleted documents can have moved; a run with others, or ``rebuild``, at all documents. A second
    run without changes writes nothing. ``evidence`` keeps every verified pair in a hidden index, and compares none
    that is there. Shingles that more than a share ``ignore_common`` of a sample of the documents have do not count;
    the list is stored and used again, until ``renew``. ``tune``: see `tunable`. A dry run can ``show_requests``, the
    first so many to the index. Raises `SettingsError` for options that are unknown, contradict each other or mean
    nothing to the measure, and for rules of the last run that do not fit any more, and `LeaseHeld` while another run
    groups the same index.
    """
    started = time.monotonic()
    rehearsal = DryRunClient(index.client, show_requests, dry_run=dry_run)
    index = opened(index.through(rehearsal) if dry_run else index, writes=not dry_run)
    registry = Registry(index)
    before = (MatchOptions(), DEFAULT_RULES) if default_rules else remembered(registry.last_run())
    with remembered_rules(index, *before):
        options = before[0].having(
            measure=measure,
            matching=matching,
            min=min,
            max=max,
            features=features,
            ngram=ngram,
            whitespace=whitespace,
            ignore_common=ignore_common,
        )
        wanted = criterion(index, options, renew=renew)
        grouping = rules_of(
            index,
            before[1],
            linkage=linkage,
            principal=principal,
            within=within,
            window=window,
            max_bucket=max_bucket,
        )
        check_linkage(grouping.linkage, wanted.measure.name)
    rules = RunRules.of(options, grouping, wanted, index.scheme_id)
    check_sees_all(index, "grouping")
    if not dry_run:
        index.storage.check_writable()
        check_updates(index, "grouping")
    known = evidence_of(index, wanted) if evidence else None
    with nullcontext() if dry_run else held(index) as lease:
        last = _last_run(registry, default_rules)
        if not default_rules and remembered(last) != before:
            raise LeaseHeld(
                f"Another run has grouped {index.name} by other rules meanwhile: run the same command again."
            )
        refresh(index.client, index.path)
        by_words = wanted.measure.copies_are_equal
        start = start_of(
            index, registry, last, rules, evidence=evidence, by_words=by_words, check=check, rebuild=rebuild
        )

        # Candidate pairs, each compared by its current texts
        if start.whole:
            if known is not None:
                known.read_all(progress)
            pairs = verified_pairs(
                index,
                wanted.measure,
                read_fingerprints(index, progress, grouping),
                copies=wanted.copies_fit,
                rules=grouping,
                memory=known.memory if known is not None else None,
                progress=progress,
            )
        else:
            pairs = affected_pairs(index, wanted, grouping, start.seeds, evidence=known, progress=progress)

        # Groups
        linked = link(grouping.linkage, pairs, wanted, progress)
        found = form_groups(
            index,
            registry,
            start,
            linked,
            rules=rules,
            progress=progress,
        )

        # Writes: evidence before anything else, since a later run would not ask for these pairs again
        tally, kept = BulkCounts(), None
        if lease is None:
            tally.counts["written"] = len(found.writes)
            if show_requests:
                _write_documents(index, found, batch=batch, workers=1)
        else:
            if wanted.common is not None:
                keep(index, wanted.common)
            if known is not None:
                kept = write_evidence(
                    index, wanted, known, pairs, whole=start.whole, batch=batch, workers=workers, progress=progress
                )
            gaps = kept is not None and kept.refused > 0
            if found.writes or found.told or gaps or not start.settled:
                tally = _write(
                    index, registry, rules, found, lease, evidence=evidence, gaps=gaps, batch=batch, workers=workers
                )
        mirrored = index.storage.write_group_ids(batch=batch, workers=workers, dry_run=dry_run)
    scope = _scope(index, start, found)
    return GroupReport(
        index=index.name,
        scheme=index.scheme_id,
        measure=wanted.measure.label,
        min=wanted.min,
        max=wanted.max,
        rules=rules,
        linkage=grouping.linkage.value,
        principal=grouping.principal.name,
        within=None if grouping.within is None else grouping.within.field,
        window=None if grouping.window is None else str(grouping.window),
        detection=wanted.detection,
        detection_cases=wanted.detection_cases,
        weights=wanted.weights,
        common=_common(index, wanted, found, progress, dry_run=dry_run),
        scope=scope,
        pairs=_pairs(index, found),
        groups=_groups(scope, found),
        writes=WriteCounts(
            written=tally.counts["written"],
            unchanged=len(found.groupings) - len(found.writes),
            conflicts=tally.counts["changed"],
            deleted=tally.counts["deleted"],
            refused=tally.counts["refused"],
            refusals=tally.refusals,
            mirrored=mirrored,
        ),
        evidence=kept,
        dry_run=dry_run,
        seconds=time.monotonic() - started,
        requests=rehearsal.shown,
    )


def _last_run(registry: Registry, default_rules: bool) -> LastRun | None:
    """The last run; whoever starts from the defaults needs no rules of it that can be read."""
    try:
        return registry.last_run()
    except SettingsError:
        if default_rules:
            return None
        raise


def _write(
    index: Index,
    registry: Registry,
    rules: RunRules,
    found: GroupingResult,
    lease: Lease,
    *,
    evidence: bool,
    gaps: bool,
    batch: int,
    workers: int,
) -> BulkCounts:
    """The registry first, then the documents: what a killed run wanted stands where the next one looks.

    A run that left something to write, even if only ``gaps`` in the evidence, has not come to its end: the next one
    looks at all documents.
    """
    lease.check()
    registry.note_begun(found.at)
    registry.write(found.told)
    lease.check()
    tally = _write_documents(index, found, batch=batch, workers=workers)
    refresh(index.client, index.path)
    if not (gaps or tally.counts["refused"] or tally.counts["unsettled"]):
        registry.note_ended(rules, found.at, evidence=evidence)
    return tally


def _write_documents(index: Index, found: GroupingResult, *, batch: int, workers: int) -> BulkCounts:
    """The groupings of the documents, which a dry run gives to a client that sends nothing."""
    corpus, prefix = found.linked.found.corpus, index.settings.prefix
    return write_groups(index.client, corpus, found.writes, prefix, batch=batch, workers=workers)


def _common(
    index: Index, wanted: MatchCriterion, found: GroupingResult, progress: Progress, *, dry_run: bool
) -> CommonShinglesUsed | None:
    """What was ignored, and in a dry run what that changes."""
    if wanted.common is None:
        return None
    pairs = found.linked.found
    changed = effect(index, pairs, wanted.matches, progress) if dry_run else None
    return used(wanted.common, pairs.verifier, changed)


def _scope(index: Index, start: RunScope, found: GroupingResult) -> GroupScope:
    """The documents of the index, and those that the run looked at."""
    pairs = found.linked.found
    corpus, inside = pairs.corpus, int(pairs.inside.sum())
    return GroupScope(
        documents=start.documents,
        unprocessed=count(index.client, index.path, index.target.stale()),
        whole=start.whole,
        reason=start.reason,
        affected=inside + len(corpus.corrupt),
        states=corpus.states,
        stale=inside - len(found.groupings),
        corrupt=len(corpus.corrupt),
    )


def _pairs(index: Index, found: GroupingResult) -> PairCounts:
    """The pairs that the run looked at."""
    pairs = found.linked.found
    corpus, classes, candidates, inside = pairs.corpus, pairs.classes, pairs.candidates, pairs.inside
    return PairCounts(
        copies=sum(len(rows) - 1 for rows in classes.members if inside[rows[0]]),
        candidates=len(candidates),
        compared=pairs.verifier.compared,
        matches=int(found.linked.matches.sum()),
        skipped=candidates.skipped,
        large_buckets=with_passages(index, corpus, classes, candidates.large),
    )


def _groups(scope: GroupScope, found: GroupingResult) -> GroupCounts:
    """The groups of the index: those that the run looked at, and the rest as the registry has them."""
    groups, rest = found.entries.values(), found.rest
    members = sum(one.size - 1 for one in groups)
    grouped = rest.documents + sum(one.size for one in groups)
    minima = [one for one in (rest.min_similarity, *(one.min_similarity for one in groups)) if one is not None]
    return GroupCounts(
        count=rest.groups + len(groups),
        grouped=grouped,
        alone=scope.documents - grouped - scope.stale - scope.corrupt,
        largest=builtins.max([rest.largest, *(one.size for one in groups)]),
        min_similarity=builtins.min(minima, default=None),
        looked_at=GroupsLookedAt(
            count=len(groups),
            mean_similarity=sum(one.mean_similarity * (one.size - 1) for one in groups) / members if members else None,
            pairs_below=sum(one.pairs_below for one in groups),
            pairs_not_compared=sum(one.pairs_not_compared for one in groups),
        ),
    )
