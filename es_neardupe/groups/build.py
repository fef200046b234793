"""Groups of verified pairs: members, ids and statistics of each group, and the updates to write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime, timezone
from types import MappingProxyType

import numpy as np

from es_neardupe.candidates.fingerprints import in_order
from es_neardupe.candidates.pair_arrays import blocks
from es_neardupe.candidates.who_may_meet import GroupRules
from es_neardupe.groups.incremental import RunScope
from es_neardupe.groups.linkage import (
    ChainBridges,
    GroupCohesion,
    assign_ids,
    bridges,
    chain,
    complete,
    inner_pairs,
    judge,
    star,
)
from es_neardupe.groups.linked_pairs import LinkedPairs, link_clusters
from es_neardupe.groups.registry import GroupHistoryUpdate, GroupRecord, Registry, Totals
from es_neardupe.groups.rules import RunRules
from es_neardupe.groups.write import changes
from es_neardupe.index import queries
from es_neardupe.index.index import Index
from es_neardupe.index.stored_fields import group_of, own_group, stored_fields
from es_neardupe.keys.arrays import Flags, Floats, Positions
from es_neardupe.options import Linkage
from es_neardupe.progress import Progress, silent
from es_neardupe.records import Address, FingerprintColumns, Grouping
from es_neardupe.server.bulk import chunked
from es_neardupe.verification.criterion import MatchCriterion
from es_neardupe.verification.verify import Verified

__all__ = [
    "LINK",
    "GroupingResult",
    "LinkedClasses",
    "form_groups",
    "link",
    "new_groupings",
    "previous_ids",
    "record_of",
]

LINK = {Linkage.STAR: star, Linkage.CHAIN: chain, Linkage.COMPLETE: complete}
_TERMS = 1000


@dataclass(frozen=True)
class LinkedClasses:
    """The classes of equal texts, each with its principal. k classes, p candidate pairs."""

    verified: Verified
    matches: Flags
    """Candidate pairs of affected classes that match; shape (p,)."""
    principal: Positions
    """The principal of each class, itself if it is alone; shape (k,)."""
    similarity: Floats
    """Similarity of each class to its principal; NaN if the principal was changed or deleted; shape (k,)."""
    others: LinkedPairs
    """With complete linkage, the pairs of linked texts that are no candidates."""


def link(
    rules: GroupRules, verified: Verified, criterion: MatchCriterion, progress: Progress = silent
) -> LinkedClasses:
    """Link the matches between affected rows, after checking that all their texts still exist."""
    linkage, candidates, similarity = rules.linkage, verified.candidates, verified.similarity
    matches = verified.confirmed(criterion.matches, progress)
    size = len(verified.classes)
    left, right = candidates.left[matches], candidates.right[matches]
    rank = _ranks(verified)
    if rank is None:
        order = np.arange(size)
        principal = LINK[linkage](size, left, right)
    else:
        left, right = np.sort(rank.astype(np.int32)[np.stack((left, right))], axis=0)
        order = np.argsort(rank)
        principal = order[LINK[linkage](size, left, right)[rank]]
    others = LinkedPairs()
    if linkage is Linkage.COMPLETE:
        others = link_clusters(
            verified, criterion, rules, matches=matches, order=order, principal=principal, progress=progress
        )
    to_principal = np.where(principal == np.arange(size), 1.0, np.nan)
    for some in blocks(len(matches)):
        left, right = candidates.left[some][matches[some]], candidates.right[some][matches[some]]
        value = similarity[some][matches[some]]
        for one, other in ((left, right), (right, left)):
            direct = principal[other] == one
            to_principal[other[direct]] = value[direct]
    if linkage is not Linkage.STAR:
        apart = np.flatnonzero(np.isnan(to_principal))
        to_principal[apart] = verified.verifier.similarities(principal[apart], apart, progress)
    return LinkedClasses(verified, matches, principal, to_principal, others)


def _ranks(verified: Verified) -> Positions | None:
    """The rank of each class in the order of principals, by its first unchanged document; shape (k,). None if it is the
    number of the class.

    Classes are numbered by their documents as they were read. If the first one has changed since, the class gets the
    rank of the next one, as it will have once the changed document has its new keys.
    """
    if not verified.verifier.documents.changed_or_deleted.any():
        return None
    unchanged = verified.verifier.first_rows(np.arange(len(verified.classes)))
    firsts = np.where(unchanged < 0, verified.classes.first, unchanged)
    place = {row: place for place, row in enumerate(in_order(verified.corpus, firsts).tolist())}
    return np.array([place[row] for row in firsts.tolist()], np.intp)


@dataclass(frozen=True)
class GroupingResult:
    """The groups that a run makes, and how they differ from what is stored."""

    linked: LinkedClasses
    groupings: dict[int, Grouping]
    """Row -> new grouping, of every row that the run processed."""
    writes: dict[int, Grouping]
    """Those that differ from the stored grouping."""
    records: dict[str, GroupRecord]
    """Id -> record of the groups of two or more documents that the run processed."""
    updates: list[GroupRecord]
    """Records to write: those that differ from the registry."""
    other_groups: Totals
    """Totals of all other groups of the index."""
    at: str


def form_groups(
    index: Index,
    registry: Registry,
    scope: RunScope,
    linked: LinkedClasses,
    *,
    rules: RunRules,
    progress: Progress = silent,
) -> GroupingResult:
    """Assign ids to the groups of linked documents, keeping existing ids where possible, and describe the groups."""
    if scope.whole:
        before = {record.group: record for record in registry.living()}
    else:  # those that the run can change
        corpus, inside = linked.verified.corpus, linked.verified.inside
        stored = {corpus.group_ids[row] for row in np.flatnonzero(inside).tolist()}
        before = registry.records({id for id in stored if id is not None} | scope.broken)
    living = {id: record for id, record in before.items() if record.ended is None}
    groupings = new_groupings(
        linked,
        created=lambda id: living[id].created if id in living else "",
        leaders={id: record.principal for id, record in living.items()},
        taken=lambda ids: () if scope.whole else _used_elsewhere(index, ids, linked.verified),
    )
    records = _records(linked, groupings, rules=rules, progress=progress)
    before |= registry.records(records.keys() - before.keys())
    at = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    return GroupingResult(
        linked=linked,
        groupings=groupings,
        writes=changes(linked.verified.corpus, groupings),
        records=records,
        updates=GroupHistoryUpdate(before, records, previous_ids(linked.verified.corpus, groupings), at).records(),
        other_groups=Totals() if scope.whole else registry.totals(without=before),
        at=at,
    )


def _used_elsewhere(index: Index, ids: Sequence[str], verified: Verified) -> Iterator[str]:
    """The ids that a document outside of the run has."""
    inside = {verified.corpus.references[row][:2] for row in np.flatnonzero(verified.inside).tolist()}
    name = index.fields.group
    for chunk in chunked(ids, _TERMS):
        body = {"query": queries.all_of({"terms": {name: chunk}}), "_source": [name]}
        for page in index.client.pages(index.path, body):
            for hit in page:
                group = group_of(stored_fields(hit.source, index.settings.prefix))
                if group is not None and hit.address not in inside:
                    yield group


def new_groupings(
    linked: LinkedClasses,
    *,
    created: Callable[[str], str] = lambda stored: "",
    leaders: Mapping[str, Address] = MappingProxyType({}),
    taken: Callable[[Sequence[str]], Iterable[str]] = lambda ids: (),
) -> dict[int, Grouping]:
    """The new grouping of every affected row that has not changed since it was fingerprinted, including rows without
    keys.

    ``created`` returns when an id became that of a group, ``taken`` which of new ids other documents have already.
    ``leaders``: the principal of each group in the registry.
    """
    corpus, changed_or_deleted = linked.verified.corpus, linked.verified.verifier.documents.changed_or_deleted
    members, similarity_of = _members(linked)
    rows = np.flatnonzero(changed_or_deleted).tolist()
    reserved = {id for row in rows if (id := corpus.group_ids[row]) is not None}
    known = Counter(corpus.group_ids)
    led = _led(corpus, members, known, leaders)
    while True:
        ids = assign_ids(
            members,
            corpus.group_ids,
            led.__contains__,
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


def _led(
    corpus: FingerprintColumns,
    members: Mapping[int, Sequence[int]],
    documents: Mapping[str | None, int],
    leaders: Mapping[str, Address],
) -> set[int]:
    """The rows whose group contains the former principal of their id. That is known from the registry, which a run
    writes before the documents; for other ids from the documents. A document that waits has no claim as a principal: it
    has another text, or was created again.

    A document that was alone has no better claim to its id than others: it can be a new one, and the other id that of a
    group whose principal was deleted. ``documents``: how many have each id.
    """
    principals = set(leaders.values())
    group_of = {row: first for first, rows in members.items() for row in rows}
    addresses = {row: Address(*corpus.references[row][:2]) for row in group_of} if principals else {}
    found = {one: row for row, one in addresses.items() if one in principals}
    led = set[int]()
    for row, first in group_of.items():
        id, before = corpus.group_ids[row], corpus.groupings[row]
        was_principal = before is not None and before.principal
        if id is not None and id in leaders:
            leader = found.get(leaders[id])
            is_led = (
                leader is not None
                and group_of[leader] == first
                and (was_principal or corpus.groupings[leader] is not None)
            )
        else:
            is_led = was_principal and documents[id] > 1
        if is_led:
            led.add(row)
    return led


def _members(linked: LinkedClasses) -> tuple[dict[int, list[int]], dict[int, float]]:
    """The rows of each group, the principal first, and the similarity of each row to it."""
    rows_of: dict[int, list[int]] = {}
    similarity_of: dict[int, float] = {}
    inside, changed_or_deleted = linked.verified.inside, linked.verified.verifier.documents.changed_or_deleted
    keyed = np.zeros(len(inside), np.bool_)
    for number, rows in enumerate(linked.verified.classes.members):
        keyed[rows] = True
        if np.isnan(linked.similarity[number]) or not inside[rows[0]]:
            continue
        current = [row for row in rows.tolist() if not changed_or_deleted[row]]
        together = rows_of.setdefault(int(linked.principal[number]), [])
        together[:] = [*current, *together] if linked.principal[number] == number else [*together, *current]
        similarity_of.update(dict.fromkeys(current, float(linked.similarity[number])))
    members = {rows[0]: rows for rows in rows_of.values() if rows}
    members |= {row: [row] for row in np.flatnonzero(inside & ~keyed).tolist()}
    return members, similarity_of


def previous_ids(corpus: FingerprintColumns, groupings: Mapping[int, Grouping]) -> dict[str, Counter[str]]:
    """Of each new group id, how many of its documents have which id now."""
    previous: dict[str, Counter[str]] = {}
    for row, grouping in groupings.items():
        stored = corpus.group_ids[row]
        previous.setdefault(grouping.group, Counter()).update([stored] if stored is not None else [])
    return previous


def record_of(
    corpus: FingerprintColumns,
    groupings: Mapping[int, Grouping],
    rows: Sequence[int],
    cohesion: GroupCohesion,
    *,
    texts: int,
    held: ChainBridges | None = None,
    rules: RunRules | None = None,
) -> GroupRecord:
    """The record of a group of two or more documents (rows), without dates and history. ``texts``: how many of them
    differ; ``held``: only with linkage chain."""
    (first,) = (row for row in rows if groupings[row].principal)
    similarities = [groupings[row].similarity for row in rows if row != first]
    return GroupRecord(
        group=groupings[first].group,
        created="",
        updated="",
        ended=None,
        size=len(rows),
        texts=texts,
        principal=Address(*corpus.references[first][:2]),
        min_similarity=min(similarities),
        mean_similarity=sum(similarities) / len(similarities),
        pairs_below=cohesion.below,
        pairs_not_compared=cohesion.not_compared,
        diameter=held.diameter if held else None,
        weakest=held.weakest if held else None,
        settings=rules,
    )


def _records(
    linked: LinkedClasses, groupings: Mapping[int, Grouping], *, rules: RunRules, progress: Progress
) -> dict[str, GroupRecord]:
    """The record of each group of two or more documents, without dates and history."""
    verified = linked.verified
    classes, candidates = verified.classes, verified.candidates
    sizes = np.array([sum(row in groupings for row in rows.tolist()) for rows in classes.members], np.intp)
    groups = _class_groups(linked, sizes)
    if rules.group.linkage is Linkage.COMPLETE:  # all pairs were compared, and match
        cohesions = [GroupCohesion(0, 0)] * len(groups)
    else:
        more = inner_pairs(groups, candidates.left, candidates.right, len(classes))
        every = (candidates.left, candidates.right, verified.similarity)
        compared = (*more, verified.verifier.similarities(*more, progress))
        cohesions = list(judge(groups, every, compared, documents=sizes, minimum=rules.min))
    chains: list[ChainBridges | None] = [None] * len(groups)
    if rules.group.linkage is Linkage.CHAIN:
        chains = list(bridges(groups, *every, linked.matches, size=len(classes)))
    records = {}
    for members, cohesion, held in zip(groups, cohesions, chains, strict=True):
        rows = [row for number in members.tolist() for row in classes.members[number].tolist() if row in groupings]
        record = record_of(verified.corpus, groupings, rows, cohesion, texts=len(members), held=held, rules=rules)
        records[record.group] = record
    return records


def _class_groups(linked: LinkedClasses, sizes: Positions) -> list[Positions]:
    """The classes of each group of two or more documents, ascending. ``sizes``: documents of each class."""
    filled = np.flatnonzero(sizes)
    order = filled[np.argsort(linked.principal[filled], kind="stable")]
    bounds = np.flatnonzero(np.diff(linked.principal[order])) + 1
    return [part for part in np.split(order, bounds) if len(part) and sizes[part].sum() > 1]
