"""Steps of ``group``: what a run reads, verifies and writes, and its report."""

from __future__ import annotations

import builtins
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace

from es_neardupe.candidates.detection import Detection
from es_neardupe.candidates.fingerprints import read_fingerprints
from es_neardupe.candidates.join import with_passages
from es_neardupe.candidates.spill_to_disk import Scratch
from es_neardupe.candidates.unprepared import unfit_texts
from es_neardupe.candidates.who_may_meet import GroupRules
from es_neardupe.commands.group.report import (
    DecisionCounts,
    GroupCounts,
    GroupReport,
    GroupScope,
    GroupsLookedAt,
    PairCounts,
)
from es_neardupe.errors import Forbidden, LeaseHeld, SettingsError
from es_neardupe.groups.build import GroupingResult, LinkedClasses
from es_neardupe.groups.decisions import PairDecisions, WaitingDecisions
from es_neardupe.groups.incremental import GroupRun, RunScope, affected_pairs
from es_neardupe.groups.registry import LastRun, Registry, mean_similarity, remembered
from es_neardupe.groups.waiting import written_since_enrich
from es_neardupe.groups.write import write_groups
from es_neardupe.index import queries
from es_neardupe.index.index import Index
from es_neardupe.index.permissions import check_sees_all, check_updates
from es_neardupe.index.runs.lease import Lease
from es_neardupe.index.storage.change_feed import ChangeFeed, Consumer
from es_neardupe.index.storage.interface import GroupIdsWritten
from es_neardupe.keys.unit import Unit
from es_neardupe.records import Outcome
from es_neardupe.report_parts import WriteCounts
from es_neardupe.server.bulk import BulkCounts
from es_neardupe.similarity.measure import SETS
from es_neardupe.verification.boilerplate import Boilerplate, boilerplate, groups_held
from es_neardupe.verification.common_shingles import CommonShinglesUsed, effect, store_list, used
from es_neardupe.verification.evidence_entries import EvidenceReport, write_evidence
from es_neardupe.verification.facts import GroupFacts, facts_in_groups
from es_neardupe.verification.match_rules import MatchRules
from es_neardupe.verification.verified_pairs import verified_pairs
from es_neardupe.verification.verify import Verified


def check_permissions(index: Index, *, dry_run: bool) -> None:
    """Raises `Forbidden` if the user may not see or write what a run needs."""
    check_sees_all(index, "grouping")
    if not dry_run:
        index.storage.check_writable()
        check_updates(index, "grouping")


def last_run(registry: Registry) -> LastRun | None:
    """The last run; None if its rules cannot be read, which a run with ``default_rules`` does not need."""
    try:
        return registry.last_run()
    except SettingsError:
        return None


def unchanged_last_run(index: Index, registry: Registry, before: tuple[MatchRules, GroupRules]) -> LastRun | None:
    """The last run. Raises `LeaseHeld` if another run with other rules has finished since ``before`` was read."""
    last = registry.last_run()
    if remembered(last, index.settings) != before:
        raise LeaseHeld(f"Another run has grouped {index.name} by other rules in the meantime: run the command again.")
    return last


@dataclass(frozen=True, kw_only=True)
class Run(GroupRun):
    """One run of ``group``, and how it reads and writes."""

    batch: int
    slices: int | None
    workers: int

    def limited(self, scope: RunScope) -> Run:
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
        if not scope.whole:
            return affected_pairs(self, scope)
        rules = self.rules.group
        if self.evidence is not None:
            self.evidence.read_all(self.progress)
        verified = verified_pairs(
            self.index,
            self.criterion,
            read_fingerprints(
                self.index,
                self.progress,
                rules,
                documents=scope.documents,
                shards=self.shards,
                slices=self.slices,
                limit=self.limit,
                files=files,
            ),
            rules=rules,
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

        The evidence comes first, so that it is complete when the groups are. The registry is written
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
                self.evidence,
                result.linked.verified,
                result.linked.principal,
                verdicts=None if decisions is None else decisions.verdicts,
                whole=scope.whole,
                batch=self.batch,
                workers=self.workers,
                progress=self.progress,
            )
        gaps = stored is not None and stored.refused > 0
        changed = scope.changed or result.writes or result.updates or result.damaged or result.clusters
        if scope.settled and not (changed or gaps):
            return BulkCounts(), stored
        lease.check()
        self.registry.note_begun(result.at)
        self.registry.write(result.updates, result.clusters, result.damaged)
        lease.check()
        texts = None if self.feed is None else ChangeFeed(self.index, Consumer.TEXTS, opened_with=self.feed)
        written = self.write_documents(result, workers=self.workers, note=self.noting(texts))
        self.index.documents.refresh()
        if gaps or any(written.counts[left] for left in ("refused", "unsettled", "failed")):
            if texts is not None:
                texts.store(whole=False)
            return written, stored
        kinds = queries.principals_and_members(self.index.fields, self.index.scheme_id)
        principals, members = kinds["principals"], kinds["members"]
        counted = self.index.documents.counts(principals=principals, members=members)
        now = None if self.feed is None else self.feed.states_now()
        if self.feed is not None and self.feed.others_have_written(now):
            counted = {}  # documents that were deleted during the run are missing from these numbers
        self.registry.note_ended(
            self.rules,
            result.at,
            evidence=self.evidence is not None,
            counted=counted,
            clusters=result.cluster_sum,
            unsatisfied=result.linked.decisions.unsatisfied,
        )
        if self.feed is not None:
            self.feed.store(whole=True, now=now, also=texts)
        if self.field_feed is not None:
            self.field_feed.store(whole=True)
        if self.decisions is not None:
            self.decisions.settle(waiting)
        return written, stored

    def write_documents(
        self, result: GroupingResult, *, workers: int, note: Callable[[Outcome], None] = lambda outcome: None
    ) -> BulkCounts:
        """Store the groups in the documents."""
        writer, corpus = self.index.storage.field_writer(), result.linked.verified.corpus
        return write_groups(writer, corpus, result.writes, batch=self.batch, workers=workers, note=note)

    def noting(self, texts: ChangeFeed | None) -> Callable[[Outcome], None]:
        """Notes the writes of groups in the change feeds, of groups and of ``texts``. They change no text, so the next
        run of ``enrich`` need not read the documents, unless another client has changed them before."""

        def note(outcome: Outcome) -> None:
            if self.feed is not None and texts is not None:
                self.feed.note_written(outcome)
                texts.note_rewritten(outcome)

        return note

    def groups_held(self, linked: LinkedClasses, found: Boilerplate) -> int:
        """The number of groups that only boilerplate holds together, by the resemblance."""
        criterion = self.criterion
        minimum = criterion.min if criterion.measure.name in SETS else self.index.settings.threshold
        return groups_held(
            self.index, linked.verified, linked.principal, found, minimum=minimum, progress=self.progress
        )

    def group_facts(self, result: GroupingResult) -> GroupFacts | None:
        """Groups in which facts differ; None if facts decide, or if the keys are those of texts with wrong characters,
        in which facts differ by mistake."""
        if self.criterion.facts or self.index.settings.unit is not Unit.WORD:
            return None
        verified = result.linked.verified
        grouped = verified.classes.counted(result.groupings.group_of >= 0) > 0
        return facts_in_groups(self.index, verified, result.linked.principal, grouped)

    def common_shingles(self, verified: Verified, *, with_effect: bool) -> CommonShinglesUsed | None:
        """The ignored shingles, and with ``with_effect`` how many matches that changes."""
        if self.criterion.common is None:
            return None
        changed = effect(self.index, verified, self.criterion.matches, self.progress) if with_effect else None
        return used(self.criterion.common, verified.verifier, changed)

    def note_mirrored(self, mirrored: GroupIdsWritten | None) -> None:
        """Note copies of group ids that were written into documents: they change no field of a rule."""
        if self.field_feed is not None and mirrored is not None:
            self.field_feed.store_all_written(mirrored.written)

    def report(
        self,
        scope: RunScope,
        result: GroupingResult,
        written: BulkCounts,
        mirrored: GroupIdsWritten | None,
        evidence: EvidenceReport | None,
        *,
        dry_run: bool,
    ) -> GroupReport:
        """What the run has done, without its time. ``mirrored``: copies of group ids."""
        index, criterion, linked = self.index, self.criterion, result.linked
        verified = linked.verified
        group_scope = _scope(index, scope, result)
        unprepared, unsuited = unfit_texts(index, group_scope.documents if scope.whole else 0)
        by_boilerplate = boilerplate(index, verified.corpus, verified.classes, *verified.linked(linked.matches))
        return GroupReport(
            index=index.name,
            scheme=index.scheme_id,
            rules=self.rules,
            detection=Detection.in_index(index, criterion.measure, criterion.min),
            common=self.common_shingles(verified, with_effect=dry_run),
            boilerplate=by_boilerplate,
            unprepared=unprepared,
            unsuited=unsuited,
            scope=group_scope,
            pairs=_pairs(index, result, criterion.min),
            decisions=_decisions(result),
            groups=_groups(group_scope, result, self.groups_held(linked, by_boilerplate), self.group_facts(result)),
            writes=_writes(result, written, mirrored),
            evidence=evidence,
            dry_run=dry_run,
            seconds=0,
        )


def _scope(index: Index, scope: RunScope, result: GroupingResult) -> GroupScope:
    """The documents of the index, and those that the run processed."""
    verified = result.linked.verified
    corpus, inside = verified.corpus, int(verified.inside.sum())
    changed = int((verified.inside & verified.verifier.documents.changed).sum())
    untouched, affected = inside - len(result.groupings), inside + len(corpus.corrupt)
    return GroupScope(
        documents=affected if scope.whole else scope.documents,  # others may have written since they were counted
        unprocessed=index.documents.count(index.target.stale()),
        whole=scope.whole,
        reason=scope.reason,
        affected=affected,
        states=corpus.states,
        stale=untouched + changed,
        untouched=untouched,
        corrupt=len(corpus.corrupt),
        written_since_enrich=_written_since_enrich(index),
    )


def _written_since_enrich(index: Index) -> int:
    """The documents written since the last ``enrich``. Those that an earlier run has found changed are alone, and no
    later run reads them."""
    with suppress(Forbidden):
        return written_since_enrich(index, ChangeFeed(index, Consumer.TEXTS, stores=False))
    return 0


def _pairs(index: Index, result: GroupingResult, minimum: float) -> PairCounts:
    """The pairs that the run processed."""
    verified = result.linked.verified
    corpus, classes, candidates, inside = verified.corpus, verified.classes, verified.candidates, verified.inside
    nearly, nearly_texts = verified.nearly(minimum)
    return PairCounts(
        copies=int((classes.sizes - 1)[inside[classes.first]].sum()),
        candidates=len(candidates),
        compared=verified.verifier.compared,
        matches=int(result.linked.matches.sum()),
        other_facts=0 if verified.other_facts is None else int(verified.other_facts.sum()),
        nearly=nearly,
        nearly_texts=nearly_texts,
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


def _groups(scope: GroupScope, result: GroupingResult, only_boilerplate: int, facts: GroupFacts | None) -> GroupCounts:
    """The groups of the index: those that the run processed, and all others from the registry."""
    groups, others = result.records.values(), result.other_groups
    members = [one.size - 1 for one in groups]
    grouped = others.documents + sum(one.size for one in groups)
    minima = [one for one in (others.min_similarity, *(one.min_similarity for one in groups)) if one is not None]
    return GroupCounts(
        count=others.groups + len(groups),
        grouped=grouped,
        alone=scope.documents - grouped - scope.untouched - scope.corrupt,
        largest=builtins.max([others.largest, *(one.size for one in groups)]),
        min_similarity=builtins.min(minima, default=None),
        related=result.related,
        looked_at=GroupsLookedAt(
            count=len(groups),
            mean_similarity=mean_similarity([one.mean_similarity for one in groups], members) if members else None,
            pairs_below=sum(one.pairs_below for one in groups),
            pairs_not_compared=sum(one.pairs_not_compared for one in groups),
            only_boilerplate=only_boilerplate,
            facts=facts,
        ),
    )


def _writes(result: GroupingResult, written: BulkCounts, mirrored: GroupIdsWritten | None) -> WriteCounts:
    """The updates of documents by outcome."""
    return WriteCounts.of(written, unchanged=len(result.groupings) - len(result.writes), mirrored=mirrored)
