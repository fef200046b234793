"""Group the near-duplicates of an index: find candidates, verify them, form groups, write them back."""

from __future__ import annotations

import builtins
import time
from collections.abc import Callable, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field, replace

from es_neardupe import options
from es_neardupe.candidates.detection import DetectionCase, ShortTexts, cases_in_index, short_texts
from es_neardupe.candidates.fingerprints import read_fingerprints
from es_neardupe.candidates.join import with_passages
from es_neardupe.candidates.memory_limit import MemoryLimit
from es_neardupe.candidates.spill_to_disk import Scratch, scratch
from es_neardupe.candidates.who_may_meet import GroupRules
from es_neardupe.errors import LeaseHeld, SettingsError
from es_neardupe.groups.build import GroupingResult, LinkedClasses, form_groups, link
from es_neardupe.groups.decisions import Decisions, PairDecisions, WaitingDecisions
from es_neardupe.groups.incremental import RunScope, affected_pairs, choose_scope
from es_neardupe.groups.registry import LastRun, Registry, remembered
from es_neardupe.groups.rules import RunRules, check_linkage, remembered_rules, rules_of
from es_neardupe.groups.write import write_groups
from es_neardupe.index import queries
from es_neardupe.index.index import Index, opened
from es_neardupe.index.permissions import check_sees_all, check_updates
from es_neardupe.index.runs.lease import Lease, delete_lease, held
from es_neardupe.index.storage.change_feed import ChangeFeed, Consumer
from es_neardupe.index.storage.interface import GroupIdsWritten
from es_neardupe.progress import Progress, silent
from es_neardupe.records import Outcome, one_line
from es_neardupe.report_parts import (
    DecisionCounts,
    GroupCounts,
    GroupScope,
    GroupsLookedAt,
    PairCounts,
    WriteCounts,
)
from es_neardupe.run_options import on_engine, tunable
from es_neardupe.server.bulk import BulkCounts
from es_neardupe.server.dry_run import DryRunClient, ShownRequest
from es_neardupe.similarity.measure import SETS
from es_neardupe.verification.boilerplate import Boilerplate, boilerplate, groups_held
from es_neardupe.verification.common_shingles import CommonShinglesUsed, effect, store_list, used
from es_neardupe.verification.criterion import MatchCriterion, MatchOptions, match_criterion
from es_neardupe.verification.evidence import Evidence, EvidenceReport, evidence_of, write_evidence
from es_neardupe.verification.verify import Verified, verified_pairs
from es_neardupe.wording import option


@dataclass(frozen=True)
class GroupReport:
    """Result of a run: ``affected = stale + corrupt`` + the sum of the writes.

    In the whole index, ``documents = grouped + alone + stale + corrupt``.
    """

    index: str
    scheme: str
    rules: RunRules
    """All rules in force, given or from the last run; ``str`` gives them in one line."""
    detection: float | None
    """Probability that a pair exactly ``rules.min`` similar is a candidate; None if the measure does not determine
    it."""
    detection_cases: tuple[DetectionCase, ...]
    """If ``detection`` is None, the probabilities for some kinds of pairs."""
    common: CommonShinglesUsed | None
    """With ``ignore_common``: the ignored shingles."""
    boilerplate: Boilerplate
    """The clusters that only boilerplate holds together, of the documents that the run processed."""
    short: ShortTexts | None
    """Documents that are too short for the keys; None if the keys were chosen by the lengths of the texts."""
    scope: GroupScope
    pairs: PairCounts
    decisions: DecisionCounts
    """All 0 with ``ignore_reviews``."""
    groups: GroupCounts
    writes: WriteCounts
    evidence: EvidenceReport | None
    """The stored evidence; None without ``evidence``, and in a dry run."""
    dry_run: bool
    seconds: float = field(compare=False)
    requests: tuple[ShownRequest, ...] = ()
    """With ``show_requests``: the first write requests of a dry run."""
    tuned: Mapping[str, Mapping[str, str | None]] | None = None
    """With ``tune``: index -> the settings that were changed during the run, with their restored values."""

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
@on_engine
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
    ignore_reviews: options.IgnoreReviews = False,
    evidence: options.Evidence = False,
    slices: options.Slices = None,
    workers: options.Workers = 2,
    batch: options.Batch = 500,
    memory: options.Memory = None,
    engine: options.EngineName = None,
    insecure_engine: options.InsecureEngine = False,
    tune: options.Tune = False,
    break_lease: options.BreakLease = False,
    dry_run: options.DryRun = False,
    show_requests: options.ShowRequests = 0,
    progress: Progress = silent,
) -> GroupReport:
    """Find the groups of an enriched index, and write group, principal and similarity to each document.

    Two documents match if their exact similarity by ``measure`` lies between ``min`` and ``max``, both included, and
    ``within`` and ``window`` allow the pair. If one of these rules, from ``measure`` to ``max_bucket``, is None, it is
    taken from the last run that finished and was not a dry run. In the first run, and with ``default_rules``, it is the
    default: the measure of the index, from its threshold to 1, linkage star, principal longest.

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
    (1, 3, 6)
    >>> print(report.rules)
    measure resemblance, min 0.8, max 1.0, max-bucket 200, linkage star, principal longest
    """
    started = time.monotonic()
    if break_lease and dry_run:
        raise SettingsError(
            f"{option('break_lease')} and {option('dry_run')} are given: a dry run takes no lease. Omit one of them."
        )
    client = DryRunClient(index.client, show_requests, dry_run=dry_run)
    index = opened(index.through(client) if dry_run else index, writes=not dry_run)
    registry = Registry(index)
    before = remembered(None if default_rules else registry.last_run(), index.settings)
    with remembered_rules(index, *before):
        match = before[0].having(
            measure=measure,
            matching=matching,
            min=min,
            max=max,
            features=features,
            ngram=ngram,
            whitespace=whitespace,
            ignore_common=ignore_common,
        )
        criterion = match_criterion(index, match, renew=renew, progress=progress)
        rules = rules_of(
            index,
            before[1],
            linkage=linkage,
            principal=principal,
            within=within,
            window=window,
            max_bucket=max_bucket,
        )
        check_linkage(rules.linkage, criterion.measure.name)
    _check_permissions(index, dry_run=dry_run)
    run = _Run(
        index,
        registry,
        RunRules.of(match, rules, criterion, index.scheme_id, ignore_reviews=ignore_reviews),
        criterion,
        evidence_of(index, criterion) if evidence else None,
        batch=batch,
        slices=slices,
        workers=workers,
        limit=None if memory is None else MemoryLimit(memory),
        progress=progress,
        decisions=None if ignore_reviews else Decisions(index),
    )
    if break_lease:
        delete_lease(index)
    with scratch() as files, nullcontext() if dry_run else held(index, progress=progress) as lease:
        last = _last_run(registry) if default_rules else _unchanged_last_run(index, registry, before)
        feed = index.storage.group_feed(stores=not dry_run)  # it refreshes the index
        fields = index.storage.field_feed(stores=not dry_run) if rules.columns else None
        run = replace(run, feed=feed, field_feed=fields)
        waiting = WaitingDecisions() if run.decisions is None else run.decisions.waiting()
        scope = choose_scope(
            index,
            registry,
            last,
            run.rules,
            feed=feed,
            field_feed=fields,
            evidence=evidence,
            only_words=criterion.measure.copies_are_equal,
            decisions=waiting,
            check=check,
            rebuild=rebuild,
        )
        run = run.limited(scope)
        verified, decisions = run.verify(scope, files)
        linked = link(rules, verified, criterion, progress, decisions)
        result = form_groups(index, registry, scope, linked, rules=run.rules, limit=run.limit, progress=progress)
        if lease is None:
            written, stored = run.write_documents(result, workers=1), None  # to the client of a dry run
        else:
            written, stored = run.write(scope, result, lease, waiting, decisions)
        mirrored = index.storage.write_group_ids(batch=batch, workers=workers, dry_run=dry_run)
        if fields is not None and mirrored is not None:
            fields.note_all_written(mirrored.written)
            fields.store(whole=False)
    group_scope = _scope(index, scope, result)
    by_boilerplate = boilerplate(index, verified.corpus, verified.classes, *verified.linked(linked.matches))
    return GroupReport(
        index=index.name,
        scheme=index.scheme_id,
        rules=run.rules,
        detection=criterion.detection,
        detection_cases=cases_in_index(index, criterion.measure, criterion.min),
        common=run.common_shingles(verified, with_effect=dry_run),
        boilerplate=by_boilerplate,
        short=short_texts(index),
        scope=group_scope,
        pairs=_pairs(index, result),
        decisions=_decisions(result),
        groups=_groups(group_scope, result, run.groups_held(linked, by_boilerplate)),
        writes=_writes(result, written, mirrored),
        evidence=stored,
        dry_run=dry_run,
        seconds=time.monotonic() - started,
        requests=client.shown,
    )


def _check_permissions(index: Index, *, dry_run: bool) -> None:
    check_sees_all(index, "grouping")
    if not dry_run:
        index.storage.check_writable()
        check_updates(index, "grouping")


def _last_run(registry: Registry) -> LastRun | None:
    """The last run; None if its rules cannot be read, which a run with ``default_rules`` does not need."""
    try:
        return registry.last_run()
    except SettingsError:
        return None


def _unchanged_last_run(index: Index, registry: Registry, before: tuple[MatchOptions, GroupRules]) -> LastRun | None:
    """The last run. Raises `LeaseHeld` if another run with other rules has finished since ``before`` was read."""
    last = registry.last_run()
    if remembered(last, index.settings) != before:
        raise LeaseHeld(f"Another run has grouped {index.name} by other rules in the meantime: run the command again.")
    return last


@dataclass(frozen=True)
class _Run:
    """One run of ``group``: its rules, and how it reads and writes."""

    index: Index
    registry: Registry
    rules: RunRules
    criterion: MatchCriterion
    evidence: Evidence | None
    batch: int
    slices: int | None
    workers: int
    limit: MemoryLimit | None
    progress: Progress
    decisions: Decisions | None = None
    """None: they are ignored."""
    feed: ChangeFeed | None = None
    """The documents that were written since the last run; None if each of them has no similarity."""
    field_feed: ChangeFeed | None = None
    """Those that were written since the last run has used their fields; None if it has not, or `feed` shows them."""

    @property
    def shards(self) -> Sequence[int | None]:
        """The shards to read one after the other."""
        return (None,) if self.feed is None else self.feed.shards

    def limited(self, scope: RunScope) -> _Run:
        """The run with the numbers of stored groups and pairs in its memory limit. Raises `SettingsError` if they do
        not fit."""
        limit = self.limit
        if limit is not None and scope.whole:
            limit = limit.holding(groups=self.registry.totals().groups)
            if self.evidence is not None:
                limit = limit.holding(stored_pairs=self.evidence.count())
        return replace(self, limit=limit)

    def verify(self, scope: RunScope, files: Scratch) -> tuple[Verified, PairDecisions | None]:
        """The candidate pairs of the scope, each compared by its current texts, and the decisions about these texts.
        ``files``: for what does not fit into memory, until the groups are written."""
        rules = self.rules.group
        if not scope.whole:
            return affected_pairs(
                self.index,
                self.criterion,
                rules,
                scope.seeds,
                shards=self.shards,
                evidence=self.evidence,
                decisions=self.decisions,
                unsatisfied=scope.unsatisfied,
                limit=self.limit,
                progress=self.progress,
            )
        if self.evidence is not None:
            self.evidence.read_all(self.progress)
        verified = verified_pairs(
            self.index,
            self.criterion.measure,
            read_fingerprints(
                self.index,
                self.progress,
                rules,
                shards=self.shards,
                slices=self.slices,
                limit=self.limit,
                files=files,
            ),
            copies=self.criterion.copies_match,
            rules=rules,
            memory=None if self.evidence is None else self.evidence.memory,
            limit=self.limit,
            progress=self.progress,
        )
        return verified, None if self.decisions is None else PairDecisions.of(self.decisions.pairs())

    def write(
        self,
        scope: RunScope,
        result: GroupingResult,
        lease: Lease,
        waiting: WaitingDecisions,
        decisions: PairDecisions | None,
    ) -> tuple[BulkCounts, EvidenceReport | None]:
        """Store common shingles, evidence, registry and documents.

        The evidence comes first, because the next run would not compare these pairs again. The registry is written
        before the documents, so that after a killed run the next one knows what it was about to write. If anything is
        left to write, even only evidence, the run has not finished, and the next one processes all documents. The
        progress of the change feed and the decisions that no longer wait come last: until then, the next run starts
        from the same documents.
        """
        stored = None
        if self.criterion.common is not None:
            store_list(self.index, self.criterion.common)
        if self.evidence is not None:
            stored = write_evidence(
                self.index,
                self.criterion,
                self.evidence,
                result.linked.verified,
                verdicts=None if decisions is None else decisions.verdicts,
                whole=scope.whole,
                batch=self.batch,
                workers=self.workers,
                progress=self.progress,
            )
        gaps = stored is not None and stored.refused > 0
        if scope.settled and not (scope.changed or result.writes or result.updates or gaps):
            return BulkCounts(), stored
        lease.check()
        self.registry.note_begun(result.at)
        self.registry.write(result.updates)
        lease.check()
        written = self.write_and_note(result)
        self.index.documents.refresh()
        if not (gaps or any(written.counts[left] for left in ("refused", "unsettled", "failed"))):
            kinds = queries.principals_and_members(self.index.fields, self.index.scheme_id)
            principals, members = kinds["principals"], kinds["members"]
            counted = self.index.documents.counts(principals=principals, members=members)
            if self.feed is not None and self.feed.others_have_written():
                counted = {}  # documents that were deleted during the run are missing from these numbers
            self.registry.note_ended(
                self.rules,
                result.at,
                evidence=self.evidence is not None,
                counted=counted,
                unsatisfied=result.linked.decisions.unsatisfied,
            )
            for feed in (self.feed, self.field_feed):
                if feed is not None:
                    feed.store(whole=True)
            if self.decisions is not None:
                self.decisions.settle(waiting)
        return written, stored

    def write_documents(
        self, result: GroupingResult, *, workers: int, note: Callable[[Outcome], None] = lambda outcome: None
    ) -> BulkCounts:
        """Store the groups in the documents."""
        writer, corpus = self.index.storage.field_writer(), result.linked.verified.corpus
        return write_groups(writer, corpus, result.writes, batch=self.batch, workers=workers, note=note)

    def write_and_note(self, result: GroupingResult) -> BulkCounts:
        """Store the groups in the documents, and note these writes in the change feeds. They change no text, so the
        next run of ``enrich`` need not read the documents, unless another client has changed them before."""
        if self.feed is None or not result.writes:
            return self.write_documents(result, workers=self.workers)
        groups, texts = self.feed, ChangeFeed(self.index, Consumer.TEXTS)

        def note(outcome: Outcome) -> None:
            groups.note_written(outcome)
            texts.note_rewritten(outcome)

        written = self.write_documents(result, workers=self.workers, note=note)
        texts.store(whole=False)
        return written

    def groups_held(self, linked: LinkedClasses, found: Boilerplate) -> int:
        """The number of groups that only boilerplate holds together, by the resemblance."""
        criterion = self.criterion
        minimum = criterion.min if criterion.measure.name in SETS else self.index.settings.threshold
        return groups_held(
            self.index, linked.verified, linked.principal, found, minimum=minimum, progress=self.progress
        )

    def common_shingles(self, verified: Verified, *, with_effect: bool) -> CommonShinglesUsed | None:
        """The ignored shingles, and with ``with_effect`` how many matches that changes."""
        if self.criterion.common is None:
            return None
        changed = effect(self.index, verified, self.criterion.matches, self.progress) if with_effect else None
        return used(self.criterion.common, verified.verifier, changed)


def _scope(index: Index, scope: RunScope, result: GroupingResult) -> GroupScope:
    """The documents of the index, and those that the run processed."""
    verified = result.linked.verified
    corpus, inside = verified.corpus, int(verified.inside.sum())
    changed = int((verified.inside & verified.verifier.documents.changed).sum())
    untouched = inside - len(result.groupings)
    return GroupScope(
        documents=scope.documents,
        unprocessed=index.documents.count(index.target.stale()),
        whole=scope.whole,
        reason=scope.reason,
        affected=inside + len(corpus.corrupt),
        states=corpus.states,
        stale=untouched + changed,
        untouched=untouched,
        corrupt=len(corpus.corrupt),
    )


def _pairs(index: Index, result: GroupingResult) -> PairCounts:
    """The pairs that the run processed."""
    verified = result.linked.verified
    corpus, classes, candidates, inside = verified.corpus, verified.classes, verified.candidates, verified.inside
    return PairCounts(
        copies=int((classes.sizes - 1)[inside[classes.first]].sum()),
        candidates=len(candidates),
        compared=verified.verifier.compared,
        matches=int(result.linked.matches.sum()),
        skipped=candidates.skipped,
        compared_to_link=result.linked.others.compared,
        open=result.linked.others.open,
        large_buckets=with_passages(index, corpus, classes, candidates.large),
    )


def _decisions(result: GroupingResult) -> DecisionCounts:
    """The decisions about the texts that the run processed."""
    applied = result.linked.decisions
    return DecisionCounts(
        same=applied.same,
        different=applied.different,
        disputed=applied.disputed,
        unsatisfied=len(applied.unsatisfied),
        held=sum(one.held for one in result.records.values()),
    )


def _groups(scope: GroupScope, result: GroupingResult, only_boilerplate: int) -> GroupCounts:
    """The groups of the index: those that the run processed, and all others from the registry."""
    groups, others = result.records.values(), result.other_groups
    members = sum(one.size - 1 for one in groups)
    grouped = others.documents + sum(one.size for one in groups)
    minima = [one for one in (others.min_similarity, *(one.min_similarity for one in groups)) if one is not None]
    return GroupCounts(
        count=others.groups + len(groups),
        grouped=grouped,
        alone=scope.documents - grouped - scope.stale - scope.corrupt,
        largest=builtins.max([others.largest, *(one.size for one in groups)]),
        min_similarity=builtins.min(minima, default=None),
        looked_at=GroupsLookedAt(
            count=len(groups),
            mean_similarity=sum(one.mean_similarity * (one.size - 1) for one in groups) / members if members else None,
            pairs_below=sum(one.pairs_below for one in groups),
            pairs_not_compared=sum(one.pairs_not_compared for one in groups),
            only_boilerplate=only_boilerplate,
        ),
    )


def _writes(result: GroupingResult, written: BulkCounts, mirrored: GroupIdsWritten | None) -> WriteCounts:
    """The updates of documents by outcome."""
    return WriteCounts.of(written, unchanged=len(result.groupings) - len(result.writes), mirrored=mirrored)
