"""What the groups would be under other thresholds: from evidence and keys, without reading a single text."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from es_neardupe import options
from es_neardupe.candidates.detection import DetectionCase, detection_cases, detection_of
from es_neardupe.candidates.fingerprints import classes_of, read_fingerprints
from es_neardupe.candidates.join import candidate_pairs
from es_neardupe.candidates.who_may_meet import GroupRules
from es_neardupe.commands.report_parts import one_line
from es_neardupe.errors import IndexUnusable, SettingsError
from es_neardupe.groups.build import LINK, LinkedClasses, new_groupings
from es_neardupe.groups.registry import Registry
from es_neardupe.groups.rules import RunRules, check_linkage, remembered_rules, rules_of
from es_neardupe.index.hidden_indices import HiddenIndex, exists, hidden_index_name
from es_neardupe.index.index import Index, opened
from es_neardupe.index.permissions import check_sees_all
from es_neardupe.options import Linkage, Matching, MeasureName
from es_neardupe.progress import Progress, silent
from es_neardupe.records import FingerprintColumns
from es_neardupe.server.search import count, refresh_if_allowed
from es_neardupe.similarity.measure import ALIGNED, Measure
from es_neardupe.verification.criterion import MatchOptions, check_min
from es_neardupe.verification.evidence import StoredEvidence, read_evidence, stored_measure, valid_entries
from es_neardupe.verification.verify import Verified, Verifier

__all__ = ["Threshold", "WhatIf", "what_if"]


@dataclass(frozen=True)
class Threshold:
    """The groups that `group` would make with another ``min``, against those that are stored."""

    min: float
    groups: int
    """Of two documents or more."""
    grouped: int
    """Documents in them."""
    largest: int
    joined: int
    """Documents in a group that are alone now."""
    left: int
    """Documents alone that are in a group now."""
    moved: int
    """Documents in a group now and then, but of another id."""
    detection: float | None
    """Probability that a pair exactly ``min`` similar became a candidate; None where the measure does not decide it."""
    detection_cases: tuple[DetectionCase, ...]
    """In that case, for some kinds of pairs."""


@dataclass(frozen=True)
class WhatIf:
    """All else is as in the last run of `group`: the measure, ``max``, who may meet, who is principal."""

    index: str
    scheme: str
    measure: str
    min: float
    """Of the last run."""
    max: float
    linkage: str
    documents: int
    groups: int
    """As they are stored."""
    grouped: int
    largest: int
    candidates: int
    """Candidate pairs of distinct texts."""
    unknown: int
    """Of these, pairs without evidence: taken for no match."""
    unknown_documents: int
    """Documents in such pairs."""
    stale: int
    """Entries of evidence about documents that changed or went, or of another scheme."""
    unprocessed: int
    """Documents without a fingerprint of the index's scheme: in no group."""
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


def what_if(
    index: Index,
    *,
    min: options.ThresholdsToTry,
    linkage: options.LinkageToTry = None,
    progress: Progress = silent,
) -> WhatIf:
    """Form the groups anew for each ``min``, in memory. ``linkage`` is that of the last run by default.

    Raises `IndexUnusable` for an index that was not grouped yet, or has no evidence of the last run's measure.
    """
    started = time.monotonic()
    if not min:
        raise SettingsError("Name one threshold or more to try, as `min` 0.7,0.8,0.9.")
    index = opened(index)
    check_sees_all(index, "the evidence")
    past = _past(index, linkage)
    kept = read_evidence(index, _measure_kept(index, past.rules), progress=progress)
    corpus = read_fingerprints(index, progress, past.group)
    found = past.known_pairs(corpus, kept)
    unknown = np.isnan(found.similarity)
    return WhatIf(
        index=index.name,
        scheme=index.scheme_id,
        measure=past.rules.measure,
        min=past.rules.min,
        max=past.rules.match.max,
        linkage=past.group.linkage.value,
        documents=len(corpus) + len(corpus.corrupt),
        **_figures(_sizes(corpus.group_ids)),
        candidates=len(found.candidates),
        unknown=int(unknown.sum()),
        unknown_documents=_documents(found, unknown),
        stale=int((~valid_entries(kept, corpus)).sum()) + len(kept.invalid),
        unprocessed=count(index.client, index.path, index.target.stale()),
        thresholds=tuple(past.tried(found, minimum) for minimum in map(check_min, min)),
        seconds=time.monotonic() - started,
    )


@dataclass(frozen=True)
class _LastRules:
    """The last run of `group`, of which one thing or two are to be otherwise."""

    index: Index
    rules: RunRules
    group: GroupRules
    """Those of the rules, with the linkage to be tried."""
    created: Mapping[str, str]
    """Since when each living group is there."""

    def known_pairs(self, corpus: FingerprintColumns, kept: StoredEvidence) -> Verified:
        """The candidates that `group` would verify, with what is known of them; NaN for the others."""
        classes = classes_of(corpus, copies=self.rules.match.max >= 1)
        candidates = candidate_pairs(self.index, corpus, classes, self.group)
        content = corpus.content[classes.first]
        similarity = kept.memory.lookup(content[candidates.left], content[candidates.right])
        nobody = Verifier(self.index.client, self.index.settings, corpus, classes, Measure())  # is asked for no pair
        return Verified(corpus, classes, candidates, nobody, similarity, np.ones(len(corpus), np.bool_))

    def tried(self, found: Verified, minimum: float) -> Threshold:
        """The groups of one threshold, under the ids that `group` would give them."""
        corpus, classes, candidates, similarity = found.corpus, found.classes, found.candidates, found.similarity
        matches = (similarity >= minimum) & (similarity <= self.rules.match.max)
        principal = LINK[self.group.linkage](len(classes), candidates.left[matches], candidates.right[matches])
        linked = LinkedClasses(found, matches, principal, np.ones(len(classes)))
        wanted = new_groupings(linked, created=lambda id: self.created.get(id, ""))
        ids = [wanted[row].group for row in range(len(corpus))]
        measure, scheme = _shape(self.rules.match, self.index), self.index.settings.scheme
        return Threshold(
            min=minimum,
            **_figures(_sizes(ids)),
            **_moves(corpus.group_ids, ids),
            detection=detection_of(measure, minimum, scheme),
            detection_cases=detection_cases(measure, minimum, scheme),
        )


def _past(index: Index, linkage: Linkage | str | None) -> _LastRules:
    registry = Registry(index)
    last = registry.last_run()
    if last is None or last.rules is None:
        raise IndexUnusable(
            f"{index.name} was not grouped yet: there is nothing to compare with. Run `es-neardupe group "
            f"{index.name} --evidence` first."
        )
    rules = last.rules
    with remembered_rules(index, rules.match, rules.group):
        group = rules_of(index, rules.group, linkage=linkage)
        check_linkage(group.linkage, rules.match.measure)
    return _LastRules(index, rules, group, {one.group: one.created for one in registry.living()})


def _measure_kept(index: Index, rules: RunRules) -> str:
    """The measure of the last run, as evidence has it. Raises `IndexUnusable` where there is none of it."""
    name, measure = hidden_index_name(index.target, HiddenIndex.PAIRS), stored_measure(rules.measure, rules.weights)
    kept = {"bool": {"filter": [{"term": {"scheme": index.scheme_id}}, {"term": {"measure": measure}}]}}
    if exists(index.client, name):
        refresh_if_allowed(index.client, name)
        if count(index.client, name, kept):
            return measure
    raise IndexUnusable(
        f"There is no evidence of pairs of {index.name} by {measure}, the measure of its last grouping. Run "
        f"`es-neardupe group {index.name} --evidence`."
    )


def _sizes(ids: Sequence[str | None]) -> Counter[str]:
    return Counter(id for id in ids if id is not None)


def _figures(sizes: Counter[str]) -> dict[str, int]:
    several = [size for size in sizes.values() if size > 1]
    return {"groups": len(several), "grouped": sum(several), "largest": max(several, default=0)}


def _moves(before: Sequence[str | None], after: Sequence[str]) -> dict[str, int]:
    """How many documents get into a group, out of one, and from one into another, by their ids."""
    sizes_before, sizes_after = _sizes(before), _sizes(after)
    moves = Counter[str]()
    for one, other in zip(before, after, strict=True):
        grouped = one is not None and sizes_before[one] > 1, sizes_after[other] > 1
        moves["joined"] += grouped == (False, True)
        moves["left"] += grouped == (True, False)
        moves["moved"] += grouped == (True, True) and one != other
    return {name: moves[name] for name in ("joined", "left", "moved")}


def _documents(found: Verified, pairs: NDArray[np.bool_]) -> int:
    """Documents of the classes that are in these pairs."""
    numbers = np.unique([found.candidates.left[pairs], found.candidates.right[pairs]])
    return sum(len(found.classes.members[number]) for number in numbers.tolist())


def _shape(match: MatchOptions, index: Index) -> Measure:
    """A measure that the keys find as surely as the one that was chosen: only what shapes pairs counts."""
    name, shingle = match.measure, index.settings.shingle
    if name in ALIGNED:
        return Measure(name, match.matching or Matching.LITERAL, shingle=shingle)
    by_order = match.by_resemblance or name is MeasureName.EDIT
    return Measure(name if by_order else MeasureName.BAG, shingle=shingle)
