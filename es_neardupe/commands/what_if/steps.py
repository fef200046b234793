"""Steps of ``what_if``: the rules of the last run, and the groups of a threshold."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

import numpy as np

from es_neardupe.candidates.detection import Detection
from es_neardupe.candidates.fingerprints import read_fingerprints
from es_neardupe.candidates.who_may_meet import GroupRules
from es_neardupe.commands.what_if.report import Threshold
from es_neardupe.errors import IndexUnusable
from es_neardupe.groups.build import link, new_groupings
from es_neardupe.groups.decisions import Decisions, PairDecisions
from es_neardupe.groups.registry import Registry
from es_neardupe.groups.rules import RunRules, check_linkage, remembered_rules, rules_of
from es_neardupe.index.index import Index
from es_neardupe.keys.arrays import Bytes, Ints
from es_neardupe.options import Linkage
from es_neardupe.progress import Progress
from es_neardupe.verification.criterion import MatchCriterion, match_criterion
from es_neardupe.verification.verified_pairs import verified_pairs
from es_neardupe.verification.verify import Verified
from es_neardupe.wording import command


@dataclass(frozen=True)
class _LastRules:
    """The rules of the last run of `group`, with the linkage to try."""

    index: Index
    rules: RunRules
    group: GroupRules
    """The group rules, with the linkage to try."""
    created: Mapping[str, str]
    """Group id -> when the group was created, for all groups that have not ended."""
    decisions: PairDecisions | None
    """Those of reviewers; None if the last run ignored them."""

    def criterion(self, minimum: float, progress: Progress) -> MatchCriterion:
        """The criterion of the last run, with another minimum."""
        match = replace(self.rules.match, min=minimum)
        with remembered_rules(self.index, match, self.rules.group):
            return match_criterion(self.index, match, progress=progress)

    def verified(self, criterion: MatchCriterion, progress: Progress) -> Verified:
        """The candidates that `group` would verify, compared by their current texts."""
        corpus = read_fingerprints(self.index, progress, self.group)
        return verified_pairs(self.index, criterion, corpus, rules=self.group, progress=progress)

    def simulated(self, verified: Verified, criterion: MatchCriterion, minimum: float, progress: Progress) -> Threshold:
        """The groups of one threshold, with the ids that `group` would assign."""
        linked = link(self.group, verified, replace(criterion, min=minimum), progress, self.decisions)
        groupings = new_groupings(linked, created=lambda id: self.created.get(id, ""))
        ids, measure = groupings.ids[groupings.group_of], criterion.measure
        return Threshold(
            min=minimum,
            **statistics(ids),
            **_moves(verified.corpus.group_ids, ids),
            detection=Detection.in_index(self.index, measure, minimum),
        )


def last_rules(index: Index, linkage: Linkage | str | None) -> _LastRules:
    """The rules of the last run. Raises `IndexUnusable` if there was none."""
    registry = Registry(index)
    last = registry.last_run()
    if last is None or last.rules is None:
        raise IndexUnusable(f"Index {index.name} has not been grouped. Run `{command('group', index.name)}` first.")
    rules = last.rules
    with remembered_rules(index, rules.match, rules.group):
        group = rules_of(index, rules.group, linkage=linkage)
        check_linkage(group.linkage, rules.match.measure)
    created = {id: one.created for id, one in registry.living().items() if one is not None}
    decisions = PairDecisions.of(Decisions(index).pairs()) if rules.reviews == "respected" else None
    return _LastRules(index, rules, group, created, decisions)


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
