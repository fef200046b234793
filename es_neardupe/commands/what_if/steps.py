"""Steps of ``what_if``: the rules of the last run, and the groups of a threshold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from es_neardupe.candidates.detection import DetectionCase, cases_in_index, detection_of
from es_neardupe.candidates.fingerprints import classes_of
from es_neardupe.candidates.join import candidate_pairs
from es_neardupe.candidates.who_may_meet import GroupRules
from es_neardupe.errors import IndexUnusable
from es_neardupe.groups.build import LinkedClasses, new_groupings
from es_neardupe.groups.decided_links import decided_classes, link_decided
from es_neardupe.groups.decisions import Decisions, PairDecisions
from es_neardupe.groups.linkage import principals_by
from es_neardupe.groups.linked_pairs import LinkedPairs, incomplete_clusters
from es_neardupe.groups.registry import Registry
from es_neardupe.groups.rules import RunRules, check_linkage, remembered_rules, rules_of
from es_neardupe.groups.stars import Matches
from es_neardupe.index.hidden_indices import HiddenIndex, HiddenStore
from es_neardupe.index.index import Index
from es_neardupe.keys.arrays import Bytes, Flags, Ints
from es_neardupe.options import Linkage, Matching, MeasureName
from es_neardupe.records import FingerprintColumns, one_line
from es_neardupe.similarity.measure import ALIGNED, Measure
from es_neardupe.verification.criterion import MatchRules
from es_neardupe.verification.evidence import StoredEvidence, stored_measure
from es_neardupe.verification.verify import PairMemory, Verified, Verifier
from es_neardupe.wording import command


@dataclass(frozen=True)
class Threshold:
    """The groups that `group` would make with another ``min``, compared with the stored ones."""

    min: float
    groups: int
    """Of two documents or more."""
    grouped: int
    """Documents in these groups."""
    largest: int
    joined: int
    """Documents that are in no group now, and would be in one."""
    left: int
    """Documents that are in a group now, and would be in none."""
    moved: int
    """Documents that would be in a group with another id than now."""
    detection: float | None
    """Probability that a pair exactly ``min`` similar is a candidate; None if the measure does not determine it."""
    detection_cases: tuple[DetectionCase, ...]
    """If ``detection`` is None, the probabilities for some kinds of pairs."""
    open: int
    """With linkage complete: pairs of texts that are linked by matches, but are no candidates. `group` compares those
    that decide, and so can make larger groups; this simulation compares none."""


@dataclass(frozen=True)
class WhatIfReport:
    """Simulated groups. All other rules are those of the last run: measure, ``max``, scope, window and principal."""

    index: str
    scheme: str
    measure: str
    min: float
    """Minimum of the last run."""
    max: float
    linkage: str
    documents: int
    """Enriched documents."""
    corrupt: int
    """Of these, documents with unreadable keys: in no group before and after."""
    groups: int
    """Stored groups of two or more documents, without the ``corrupt`` ones."""
    grouped: int
    largest: int
    candidates: int
    """Candidate pairs of distinct texts."""
    unknown: int
    """Of these, pairs without evidence, which count as no match."""
    unknown_documents: int
    """Documents in such pairs."""
    stale: int
    """Entries of evidence about changed or deleted documents, or of another scheme."""
    unprocessed: int
    """Documents without a fingerprint of the index's scheme, which are in no group."""
    thresholds: tuple[Threshold, ...]
    seconds: float = field(compare=False)

    def __repr__(self) -> str:
        return one_line(
            self,
            index=self.index,
            groups=self.groups,
            grouped=self.grouped,
            thresholds=[one.min for one in self.thresholds],
        )


@dataclass(frozen=True)
class _LastRules:
    """The rules of the last run of `group`, with the linkage to try."""

    index: Index
    rules: RunRules
    group: GroupRules
    """The group rules, with the linkage to try."""
    created: Mapping[str, str]
    """Group id -> when the group was created, for all groups that have not ended."""
    decisions: PairDecisions
    """Those of reviewers; none if the last run ignored them."""

    def known_pairs(self, corpus: FingerprintColumns, stored: StoredEvidence) -> Verified:
        """The candidates that `group` would verify, with their stored similarities; NaN for unknown pairs."""
        classes = classes_of(corpus, copies=self.rules.match.max >= 1)
        candidates = candidate_pairs(self.index, corpus, classes, self.group)
        content = corpus.content[classes.first]
        similarity = stored.memory.lookup(content[candidates.left], content[candidates.right])
        other = None
        if self.rules.match.facts:
            rejected = PairMemory()
            left, right = stored.contents[stored.other_facts].T
            rejected.add(left, right, np.ones(len(left)))
            other = ~np.isnan(rejected.lookup(content[candidates.left], content[candidates.right]))
        unused = Verifier(self.index.client, self.index.settings, corpus, classes, Measure())  # compares no pair
        return Verified(corpus, classes, candidates, unused, similarity, np.ones(len(corpus), np.bool_), other)

    def simulated(self, pairs: Verified, minimum: float) -> Threshold:
        """The groups of one threshold, with the ids that `group` would assign."""
        corpus, classes, candidates, similarity = pairs.corpus, pairs.classes, pairs.candidates, pairs.similarity
        maximum = self.rules.match.max
        matches = pairs.matches(lambda similarity: (similarity >= minimum) & (similarity <= maximum))
        found = Matches(candidates.left[matches], candidates.right[matches], similarity[matches])
        measure = self.rules.match.measure
        principal = principals_by(self.group.linkage, found, classes.sizes, measure)
        open = incomplete_clusters(pairs, matches) if self.group.linkage is Linkage.COMPLETE else ()
        others = LinkedPairs(open=sum(one.others for one in open))
        among = np.ones(len(classes), np.bool_)
        if decided := decided_classes(self.decisions, corpus, classes, among, self.group):
            principal = link_decided(
                self.group.linkage,
                principal,
                found,
                decided,
                measure,
                order=np.arange(len(classes)),
                compare=lambda left, right: np.zeros(len(left), np.bool_),
            ).principal
        linked = LinkedClasses(pairs, matches, principal, np.ones(len(classes)), others)
        groupings = new_groupings(linked, created=lambda id: self.created.get(id, ""))
        ids = groupings.ids[groupings.group_of]
        shape = _shape(self.rules.match, self.index)
        return Threshold(
            min=minimum,
            **statistics(ids),
            **_moves(corpus.group_ids, ids),
            detection=detection_of(shape, minimum, self.index.settings.scheme),
            detection_cases=cases_in_index(self.index, shape, minimum),
            open=others.open,
        )


def last_rules(index: Index, linkage: Linkage | str | None) -> _LastRules:
    """The rules of the last run. Raises `IndexUnusable` if there was none."""
    registry = Registry(index)
    last = registry.last_run()
    if last is None or last.rules is None:
        raise IndexUnusable(
            f"Index {index.name} has not been grouped. Run `{command('group', index.name)} --evidence` first."
        )
    rules = last.rules
    with remembered_rules(index, rules.match, rules.group):
        group = rules_of(index, rules.group, linkage=linkage)
        check_linkage(group.linkage, rules.match.measure)
    created = {id: one.created for id, one in registry.living().items() if one is not None}
    decisions = Decisions(index).pairs() if rules.reviews == "respected" else {}
    return _LastRules(index, rules, group, created, PairDecisions.of(decisions))


def measure_in_evidence(index: Index, rules: RunRules) -> str:
    """The label of the last run's measure in evidence. Raises `IndexUnusable` if there is no evidence for it."""
    measure = stored_measure(rules.measure, rules.weights)
    query = {"bool": {"filter": [{"term": {"scheme": index.scheme_id}}, {"term": {"measure": measure}}]}}
    pairs = HiddenStore(index, HiddenIndex.PAIRS)
    if pairs.refreshed() and pairs.count(query):
        return measure
    raise IndexUnusable(
        f"Index {index.name} has no evidence for {measure}, the measure of its last run. Run "
        f"`{command('group', index.name)} --evidence`."
    )


def _sizes(ids: Bytes) -> Ints:
    """The number of documents with the id of each document; 0 for a document without one."""
    _, group, sizes = np.unique(ids, return_inverse=True, return_counts=True)
    return np.where(ids == b"", 0, sizes[group.reshape(-1)])


def statistics(ids: Bytes) -> dict[str, int]:
    """The numbers of the groups with these ids."""
    sizes = _sizes(ids)
    several = sizes > 1
    return {
        "groups": len(np.unique(ids[several])),
        "grouped": int(several.sum()),
        "largest": int(sizes[several].max(initial=0)),
    }


def _moves(before: Bytes, after: Bytes) -> dict[str, int]:
    """Numbers of documents that join a group, leave their group, or move to another group, by their ids."""
    was, now = _sizes(before) > 1, _sizes(after) > 1
    return {
        "joined": int((~was & now).sum()),
        "left": int((was & ~now).sum()),
        "moved": int((was & now & (before != after)).sum()),
    }


def documents(pairs: Verified, chosen: Flags) -> int:
    """Number of documents in the chosen pairs."""
    numbers = np.unique([pairs.candidates.left[chosen], pairs.candidates.right[chosen]])
    return int(pairs.classes.sizes[numbers].sum())


def _shape(match: MatchRules, index: Index) -> Measure:
    """A measure with the same detection probability as the chosen one."""
    name, settings = match.measure, index.settings
    if name in ALIGNED:
        matching = match.matching or Matching.LITERAL
        return Measure(name, matching, settings.shingle, unit=settings.unit, min_words=match.passage)
    by_order = match.by_resemblance or name is MeasureName.EDIT
    return Measure(name if by_order else MeasureName.BAG, shingle=settings.shingle, unit=settings.unit)
