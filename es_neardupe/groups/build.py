"""Groups of verified pairs: who is with whom, under which id, how good each group is, and what has to be written."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from typing import Any

import numpy as np
from numpy.typing import NDArray

from es_neardupe.candidates.fingerprints import in_order
from es_neardupe.groups.history import GroupHistoryUpdate
from es_neardupe.groups.linkage import assign_ids, bridges, chain, complete, inner_pairs, judge, star
from es_neardupe.groups.registry import GroupRecord, Registry, Totals
from es_neardupe.groups.rules import RunRules
from es_neardupe.groups.what_changed import RunScope
from es_neardupe.groups.write import changes
from es_neardupe.index import queries
from es_neardupe.index.index import Index
from es_neardupe.index.stored_fields import group_of, own_group, stored_fields
from es_neardupe.options import Linkage
from es_neardupe.progress import Progress, silent
from es_neardupe.records import Grouping
from es_neardupe.server.bulk import chunked
from es_neardupe.verification.criterion import MatchCriterion
from es_neardupe.verification.verify import Verified

__all__ = ["LINK", "GroupingResult", "LinkedClasses", "form_groups", "groupings", "link"]

Ints = NDArray[np.intp]
LINK = {Linkage.STAR: star, Linkage.CHAIN: chain, Linkage.COMPLETE: complete}


@dataclass(frozen=True)
class LinkedClasses:
    """Which class is with which principal."""

    found: Verified
    matches: NDArray[np.bool_]
    """Which candidates are matches of classes inside."""
    principal: Ints
    """The principal of each class, itself where it is alone."""
    similarity: NDArray[np.float64]
    """Of each class to its principal; NaN where the principal vanished while we looked."""


def link(linkage: Linkage, found: Verified, wanted: MatchCriterion, progress: Progress = silent) -> LinkedClasses:
    """Link the matches between rows that are inside, after checking that all their texts are still there."""
    candidates, similarity = found.candidates, found.similarity
    matches = found.confirmed(wanted.matches, progress)
    size = len(found.classes)
    rank = _ranks(found)
    pairs = np.stack([candidates.left[matches], candidates.right[matches]])
    left, right = np.take_along_axis(pairs, np.argsort(rank[pairs], axis=0), axis=0)
    numbered = np.argsort(rank)
    principal = numbered[LINK[linkage](size, rank[left], rank[right])[rank]]
    to_principal = np.ones(size)
    direct = principal[right] == left
    to_principal[right[direct]] = similarity[matches][direct]
    if linkage is Linkage.CHAIN:
        verified = np.zeros(size, np.bool_)
        verified[right[direct]] = True
        apart = np.flatnonzero((principal != np.arange(size)) & ~verified)
        to_principal[apart] = found.verifier.similarities(principal[apart], apart, progress)
    return LinkedClasses(found, matches, principal, to_principal)


def _ranks(found: Verified) -> Ints:
    """The place of each class in the order of principals, by its first document that is still as it was.

    Classes are numbered by the documents that were read. Where the first one has changed since, the class stands
    further back, as it will once that document has its new keys.
    """
    numbers = np.arange(len(found.classes))
    if not found.verifier.documents.changed_or_deleted.any():
        return numbers
    still = found.verifier.first_rows(numbers)
    firsts = np.where(still < 0, found.classes.first, still)
    place = {row: place for place, row in enumerate(in_order(found.corpus, firsts).tolist())}
    return np.array([place[row] for row in firsts.tolist()], np.intp)


@dataclass(frozen=True)
class GroupingResult:
    """The groups that a run wants, and how they differ from what is stored."""

    linked: LinkedClasses
    groupings: dict[int, Grouping]
    """Of every row that is looked at."""
    writes: dict[int, Grouping]
    """Of those that bear another one."""
    entries: dict[str, GroupRecord]
    """The groups of two or more documents that were looked at."""
    told: list[GroupRecord]
    """What the registry does not say yet."""
    rest: Totals
    """All other groups."""
    at: str


def form_groups(
    index: Index,
    registry: Registry,
    start: RunScope,
    linked: LinkedClasses,
    *,
    rules: RunRules,
    progress: Progress = silent,
) -> GroupingResult:
    """Name the groups of linked documents as they are named already, as far as possible, and describe them."""
    if start.whole:
        before = {entry.group: entry for entry in registry.living()}
    else:  # those that the run can change
        borne = {linked.found.corpus.group_ids[row] for row in np.flatnonzero(linked.found.inside).tolist()}
        before = registry.entries({id for id in borne if id is not None} | start.broken)
    living = {id: entry.created for id, entry in before.items() if entry.ended is None}
    wanted = groupings(
        linked,
        created=lambda id: living.get(id, ""),
        taken=lambda ids: () if start.whole else _borne_elsewhere(index, ids, linked.found),
    )
    found = _entries(linked, wanted, rules=rules, progress=progress)
    before |= registry.entries(found.keys() - before.keys())
    at = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    return GroupingResult(
        linked=linked,
        groupings=wanted,
        writes=changes(linked.found.corpus, wanted),
        entries=found,
        told=GroupHistoryUpdate(before, found, _bearers(linked, wanted), at).entries(),
        rest=Totals() if start.whole else registry.totals(without=before),
        at=at,
    )


def _borne_elsewhere(index: Index, ids: Sequence[str], found: Verified) -> Iterator[str]:
    """Those of new ids that a document outside of the run bears."""
    inside = {found.corpus.references[row][:2] for row in np.flatnonzero(found.inside).tolist()}
    name = index.fields.group
    for chunk in chunked(ids, 1000):
        body = {"query": queries.all_of({"terms": {name: chunk}}), "_source": [name]}
        for page in index.client.pages(index.path, body):
            for hit in page:
                group = group_of(stored_fields(hit.source, index.settings.prefix))
                if group is not None and hit.address not in inside:
                    yield group


def groupings(
    linked: LinkedClasses,
    *,
    created: Callable[[str], str] = lambda stored: "",
    taken: Callable[[Sequence[str]], Iterable[str]] = lambda ids: (),
) -> dict[int, Grouping]:
    """The wanted grouping of every row inside that is as it was fingerprinted, rows without keys included.

    ``created`` says since when an id has been a group's, ``taken`` which of new ids somebody else bears.
    """
    corpus, away = linked.found.corpus, linked.found.verifier.documents.changed_or_deleted
    members, similarity_of = _members(linked)
    reserved = {id for row in np.flatnonzero(away).tolist() if (id := corpus.group_ids[row]) is not None}
    known = set(corpus.group_ids)
    while True:
        ids = assign_ids(
            members,
            corpus.group_ids,
            lambda row: (before := corpus.groupings[row]) is not None and before.principal,
            lambda row, attempt: own_group(*corpus.references[row][:2], attempt),
            reserved=reserved,
            created=created,
        )
        elsewhere = set(taken([id for id in ids.values() if id not in known])) - reserved
        if not elsewhere:
            break
        reserved |= elsewhere
    return {
        row: Grouping(ids[first], row == first, 1.0 if row == first else similarity_of[row])
        for first, rows in members.items()
        for row in rows
    }


def _members(linked: LinkedClasses) -> tuple[dict[int, list[int]], dict[int, float]]:
    """The rows of each group, the principal first, and the similarity of each row to it."""
    rows_of: dict[int, list[int]] = {}
    similarity_of: dict[int, float] = {}
    inside, away = linked.found.inside, linked.found.verifier.documents.changed_or_deleted
    keyed = np.zeros(len(inside), np.bool_)
    for number, rows in enumerate(linked.found.classes.members):
        keyed[rows] = True
        if np.isnan(linked.similarity[number]) or not inside[rows[0]]:
            continue
        present = [row for row in rows.tolist() if not away[row]]
        together = rows_of.setdefault(int(linked.principal[number]), [])
        together[:] = [*present, *together] if linked.principal[number] == number else [*together, *present]
        similarity_of.update(dict.fromkeys(present, float(linked.similarity[number])))
    members = {rows[0]: rows for rows in rows_of.values() if rows}
    members |= {row: [row] for row in np.flatnonzero(inside & ~keyed).tolist()}
    return members, similarity_of


def _bearers(linked: LinkedClasses, wanted: Mapping[int, Grouping]) -> dict[str, Counter[str]]:
    """How many documents of each wanted group bear which id now."""
    found: dict[str, Counter[str]] = {}
    for row, grouping in wanted.items():
        stored = linked.found.corpus.group_ids[row]
        found.setdefault(grouping.group, Counter()).update([stored] if stored is not None else [])
    return found


def _entries(
    linked: LinkedClasses,
    wanted: Mapping[int, Grouping],
    *,
    rules: RunRules,
    progress: Progress = silent,
) -> dict[str, GroupRecord]:
    """What the registry is to say of each group of two or more documents (dates and history are left empty)."""
    found = linked.found
    corpus, classes, candidates, similarity = found.corpus, found.classes, found.candidates, found.similarity
    present = _present(classes.members, wanted)
    groups = _class_groups(linked, present)
    left, right, known = candidates.left, candidates.right, similarity
    more = inner_pairs(groups, left, right, len(classes))
    left, right = np.concatenate([left, more[0]]), np.concatenate([right, more[1]])
    known = np.concatenate([known, found.verifier.similarities(*more, progress)])
    inside = list(judge(groups, left, right, known, documents=present, minimum=rules.min))
    hanging: list[Any] = [None] * len(groups)
    if rules.group.linkage is Linkage.CHAIN:
        at = linked.matches
        pairs = (candidates.left[at], candidates.right[at])
        hanging = list(bridges(groups, *pairs, similarity[at], len(classes)))
    described = {}
    for members, pairs_inside, held in zip(groups, inside, hanging, strict=True):
        rows = [row for number in members.tolist() for row in classes.members[number].tolist() if row in wanted]
        (first,) = (row for row in rows if wanted[row].principal)
        others = [wanted[row].similarity for row in rows if row != first]
        described[wanted[first].group] = GroupRecord(
            group=wanted[first].group,
            created="",
            updated="",
            ended=None,
            size=len(rows),
            texts=len(members),
            principal=corpus.references[first][:2],
            min_similarity=min(others),
            mean_similarity=sum(others) / len(others),
            pairs_below=pairs_inside.below,
            pairs_not_compared=pairs_inside.not_compared,
            diameter=held.diameter if held else None,
            weakest=held.weakest if held else None,
            settings=rules,
        )
    return described


def _present(members: Sequence[Ints], wanted: Mapping[int, Grouping]) -> Ints:
    """The number of documents of each class that get a grouping."""
    return np.array([sum(row in wanted for row in rows.tolist()) for rows in members], np.intp)


def _class_groups(linked: LinkedClasses, present: Ints) -> list[Ints]:
    """The classes of each group of two or more documents, ascending."""
    there = np.flatnonzero(present)
    order = there[np.argsort(linked.principal[there], kind="stable")]
    bounds = np.flatnonzero(np.diff(linked.principal[order])) + 1
    return [part for part in np.split(order, bounds) if len(part) and present[part].sum() > 1]
