"""Groups of verified pairs: members, ids and statistics of each group, and the updates to write."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from functools import partial
from itertools import repeat
from types import MappingProxyType

import numpy as np

from es_neardupe.candidates.fingerprints import in_order
from es_neardupe.candidates.memory_limit import MemoryLimit
from es_neardupe.candidates.pair_arrays import blocks
from es_neardupe.candidates.who_may_meet import GroupRules
from es_neardupe.columns import RowLists
from es_neardupe.groups.clusters import ClusterSum, ClusterUpdate, RelatedCounts, split_clusters
from es_neardupe.groups.decided_links import decided_classes, link_decided
from es_neardupe.groups.decisions import ContentPair, PairDecisions
from es_neardupe.groups.incremental import RunScope
from es_neardupe.groups.linkage import (
    ChainBridges,
    GroupCohesion,
    assign_ids,
    bridges,
    cohesions_of,
    principals_by,
    set_similarities,
)
from es_neardupe.groups.linked_pairs import LinkedPairs, link_clusters
from es_neardupe.groups.registry import GroupHistoryUpdate, GroupRecord, Registry, Totals, mean_similarity
from es_neardupe.groups.rules import RunRules
from es_neardupe.groups.stars import Matches
from es_neardupe.groups.write import changes
from es_neardupe.index import queries
from es_neardupe.index.index import Index
from es_neardupe.index.stored_fields import group_of, own_group, stored_fields
from es_neardupe.keys.arrays import I32, Bytes, Flags, Floats, Numbers, Positions
from es_neardupe.options import Linkage
from es_neardupe.progress import Progress, silent
from es_neardupe.records import Address, FingerprintColumns, Groupings
from es_neardupe.server.bulk import chunked
from es_neardupe.verification.criterion import MatchCriterion
from es_neardupe.verification.verified_pairs import counted_pairs
from es_neardupe.verification.verify import Verified

_TERMS = 1000


@dataclass(frozen=True)
class AppliedDecisions:
    """What a run did with the decisions of reviewers. j pairs of classes that were joined by *same*."""

    same: int = 0
    different: int = 0
    disputed: int = 0
    unsatisfied: tuple[ContentPair, ...] = ()
    """The decisions *same* that are not satisfied, in the whole index."""
    left: Positions = field(default_factory=lambda: np.zeros(0, np.intp))
    """Shape (j,)."""
    right: Positions = field(default_factory=lambda: np.zeros(0, np.intp))
    split_left: Positions = field(default_factory=lambda: np.zeros(0, np.intp))
    """Pairs of classes decided to be the same that are in different groups."""
    split_right: Positions = field(default_factory=lambda: np.zeros(0, np.intp))
    held: Positions = field(default_factory=lambda: np.zeros(0, np.intp))
    """Classes that do not match their principal, but are in its group because of a decision."""


@dataclass(frozen=True)
class LinkedClasses:
    """The classes of equal texts, each with its principal. k classes, p candidate pairs."""

    verified: Verified
    matches: Flags
    """Candidate pairs of affected classes that match; shape (p,)."""
    principal: Numbers
    """The principal of each class, itself if it is alone; shape (k,)."""
    similarity: Floats
    """Similarity of each class to its principal; NaN if the principal was changed or deleted; shape (k,)."""
    others: LinkedPairs
    """With complete linkage, the pairs of linked texts that are no candidates."""
    decisions: AppliedDecisions = field(default_factory=AppliedDecisions)


def link(
    rules: GroupRules,
    verified: Verified,
    criterion: MatchCriterion,
    progress: Progress = silent,
    decisions: PairDecisions | None = None,
) -> LinkedClasses:
    """Link the matches between affected rows, after checking that all their texts still exist. ``decisions`` of
    reviewers: those about these texts."""
    linkage, candidates, similarity = rules.linkage, verified.candidates, verified.similarity
    matches = verified.confirmed(criterion.matches, progress)
    decided = None
    if decisions is not None and len(decisions):
        among = verified.inside[verified.classes.first]
        decided = decided_classes(decisions, verified.corpus, verified.classes, among, rules)
        elsewhere = _unsatisfied_elsewhere(decisions, verified, rules, examined=decided.same)
        decided = decided.only(verified.exist(decided.left, decided.right, progress))
    size, measure = len(verified.classes), criterion.measure.name
    matching = Matches(candidates.left[matches], candidates.right[matches], similarity[matches])
    documents = verified.classes.counted(verified.inside & ~verified.verifier.documents.changed_or_deleted)
    differing = None if verified.other_facts is None else verified.linked(verified.other_facts)
    rank = _ranks(verified)
    order: Numbers = np.arange(size, dtype=np.int32) if rank is None else np.argsort(rank).astype(np.int32)
    principal = principals_by(linkage, matching, documents, measure, apart=differing, rank=rank)
    others = LinkedPairs()
    if linkage is Linkage.COMPLETE:
        others = link_clusters(
            verified, criterion, rules, matches=matches, order=order, principal=principal, progress=progress
        )
    applied = AppliedDecisions(disputed=0 if decisions is None else decisions.disputed)
    if decided:
        found = link_decided(
            linkage,
            principal,
            matching,
            decided,
            measure,
            order=order,
            compare=_more_matches(verified, criterion, rules, progress),
        )
        principal, joined = found.principal, found.joined
        split = np.setdiff1d(np.arange(len(decided.left)), joined)
        applied = AppliedDecisions(
            len(decided.same),
            decided.different,
            applied.disputed,
            left=decided.left[joined],
            right=decided.right[joined],
            split_left=decided.left[split],
            split_right=decided.right[split],
        )
    if decisions is not None and decided is not None:
        places = np.concatenate((decided.unsatisfied(principal), elsewhere))
        applied = replace(applied, unsatisfied=tuple(decisions.contents(place) for place in places.tolist()))
    to_principal = np.where(principal == np.arange(size, dtype=np.int32), 1.0, np.nan)
    for some in blocks(len(matches)):
        chosen = matches[some]
        pairs = Matches(candidates.left[some][chosen], candidates.right[some][chosen], similarity[some][chosen])
        set_similarities(to_principal, principal, pairs)
    if linkage is not Linkage.STAR or len(applied.left):
        apart = np.flatnonzero(np.isnan(to_principal))
        to_principal[apart] = verified.verifier.similarities(principal[apart], apart, progress)
        joined = np.union1d(applied.left, applied.right)
        held = joined[~criterion.matches(to_principal[joined]) & (principal[joined] != joined)]
        applied = replace(applied, held=held)
    return LinkedClasses(verified, matches, principal, to_principal, others, applied)


def _unsatisfied_elsewhere(
    decisions: PairDecisions, verified: Verified, rules: GroupRules, *, examined: Positions
) -> Positions:
    """The places of the decisions *same* that are not satisfied by the stored groups, except those that the run
    ``examined``: an incremental run has also read the documents of those that were not satisfied before."""
    corpus, classes = verified.corpus, verified.classes
    if verified.inside.all():
        return np.zeros(0, np.intp)
    decided = decided_classes(decisions, corpus, classes, np.ones(len(classes), np.bool_), rules)
    _, stored = np.unique(corpus.group_ids[classes.first], return_inverse=True)
    return np.setdiff1d(decided.unsatisfied(stored), examined)


def _more_matches(
    verified: Verified, criterion: MatchCriterion, rules: GroupRules, progress: Progress
) -> Callable[[Positions, Positions], Flags]:
    """Compares pairs of classes that are no candidates, if the rules allow them."""
    corpus, first = verified.corpus, verified.classes.first

    def compare(left: Positions, right: Positions) -> Flags:
        matches = criterion.matches(verified.verifier.similarities(left, right, progress))
        if criterion.facts and matches.any():
            matches[matches] = ~verified.facts(criterion.facts).differ(left[matches], right[matches], progress)
        return matches & rules.allow(corpus, first[left], first[right])

    return compare


def _ranks(verified: Verified) -> I32 | None:
    """The rank of each class in the order of principals, by its first unchanged document; shape (k,). None if it is the
    number of the class.

    Classes are numbered by their documents as they were read. If the first one has changed since, the class gets the
    rank of the next one, as it will have once the changed document has its new keys.
    """
    if not verified.verifier.documents.changed_or_deleted.any():
        return None
    unchanged = verified.verifier.first_rows(np.arange(len(verified.classes), dtype=np.int32))
    firsts = np.where(unchanged < 0, verified.classes.first, unchanged)
    place = np.empty(len(verified.corpus), np.int32)
    place[in_order(verified.corpus, firsts)] = np.arange(len(firsts), dtype=np.int32)
    return place[firsts]


@dataclass(frozen=True)
class GroupingResult:
    """The groups that a run makes, and how they differ from what is stored."""

    linked: LinkedClasses
    groupings: Groupings
    """Row -> new grouping, of every row that the run processed, except deleted documents."""
    writes: Groupings
    """Those that differ from the stored grouping."""
    records: dict[str, GroupRecord]
    """Id -> record of the groups of two or more documents that the run processed."""
    updates: GroupHistoryUpdate
    """Records to write: those that differ from the registry."""
    damaged: Set[str]
    """Ids of records to delete, which no run has stored."""
    other_groups: Totals
    """Totals of all other groups of the index."""
    clusters: ClusterUpdate
    """Records of clusters to write and to delete."""
    cluster_sum: ClusterSum
    """That of all records of clusters, after these are written."""
    related: RelatedCounts
    """Totals over all clusters of several groups, of the whole index."""
    at: str


def form_groups(
    index: Index,
    registry: Registry,
    scope: RunScope,
    linked: LinkedClasses,
    *,
    rules: RunRules,
    limit: MemoryLimit | None = None,
    progress: Progress = silent,
) -> GroupingResult:
    """Assign ids to the groups of linked documents, keeping existing ids where possible, and describe the groups.
    Raises `SettingsError` for more groups than the ``limit`` allows."""
    corpus, inside = linked.verified.corpus, linked.verified.inside
    if scope.whole:
        registered, known = registry.living(), registry.clusters()
        before = {id: record for id, record in registered.items() if record is not None}
        damaged: Set[str] = registered.keys() - before.keys()
    else:  # those that the run can change
        stored = {id.decode() for id in np.unique(corpus.group_ids[inside]).tolist() if id} | scope.broken
        before, known, damaged = registry.records(stored), registry.clusters(stored), scope.damaged
    living = {id: record for id, record in before.items() if record.ended is None}
    groupings = new_groupings(
        linked,
        created=lambda id: living[id].created if id in living else "",
        leaders={id: record.principal for id, record in living.items()},
        taken=None if scope.whole else partial(_used_elsewhere, index, linked.verified),
    )

    def check(groups: int) -> None:
        if limit is not None:
            verified = linked.verified
            pairs = counted_pairs(len(verified.candidates), rules.group, verified.verifier.memory)
            limit.holding(documents=len(verified.corpus), groups=len(before) + groups, **pairs)

    unchanged = ~linked.verified.verifier.documents.changed & (groupings.group_of >= 0)
    # The row numbers are not held meanwhile: the memory of a run is largest now.
    records = _records(linked, groupings.only(np.flatnonzero(unchanged)), rules=rules, check=check, progress=progress)
    clusters = split_clusters(*_split(linked), groupings)
    others = ClusterSum() if scope.whole else scope.clusters - ClusterSum.of(known)
    before |= registry.records(records.keys() - before.keys())
    at = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    return GroupingResult(
        linked=linked,
        groupings=groupings,
        writes=changes(linked.verified.corpus, groupings),
        records=records,
        updates=GroupHistoryUpdate(before, records, previous_ids(linked.verified.corpus, groupings, before), at),
        damaged=damaged - records.keys(),
        other_groups=Totals() if scope.whole else registry.totals(without=before.keys() | damaged),
        clusters=ClusterUpdate.of(known, clusters),
        cluster_sum=others + ClusterSum.of({one.id: one for one in clusters}),
        related=RelatedCounts.of(clusters) + (registry.related_counts(known) if others.number else RelatedCounts()),
        at=at,
    )


def _split(linked: LinkedClasses) -> tuple[Numbers, Numbers, Floats]:
    """The pairs of classes that a match or a decision connects, but that are in different groups, as a row of each side
    and the similarity, NaN without a match."""
    verified, decided = linked.verified, linked.decisions
    candidates, principal = verified.candidates, linked.principal
    chosen = [np.zeros(0, np.intp)]
    for some in blocks(len(candidates)):
        apart = principal[candidates.left[some]] != principal[candidates.right[some]]
        chosen.append(np.flatnonzero(linked.matches[some] & apart) + some.start)
    pairs = np.concatenate(chosen)
    left, right = (
        verified.verifier.first_rows(np.concatenate((side[pairs], more)))
        for side, more in ((candidates.left, decided.split_left), (candidates.right, decided.split_right))
    )
    return left, right, np.concatenate((verified.similarity[pairs], np.full(len(decided.split_left), np.nan)))


def _used_elsewhere(index: Index, verified: Verified, ids: Sequence[str]) -> Iterator[str]:
    """The ids that a document outside of the run has."""
    inside = {verified.corpus.address(row) for row in np.flatnonzero(verified.inside).tolist()}
    name = index.fields.group
    for chunk in chunked(ids, _TERMS):
        body = {"query": queries.all_of({"terms": {name: chunk}}), "_source": [name]}
        for page in index.documents.pages(body):
            for hit in page:
                group = group_of(stored_fields(hit.source, index.settings.prefix))
                if group is not None and hit.address not in inside:
                    yield group


def new_groupings(
    linked: LinkedClasses,
    *,
    created: Callable[[str], str] = lambda stored: "",
    leaders: Mapping[str, Address] = MappingProxyType({}),
    taken: Callable[[Sequence[str]], Iterable[str]] | None = None,
) -> Groupings:
    """The new grouping of every affected row, including rows without keys, except deleted documents. A row with another
    text than when it was fingerprinted is alone.

    ``created`` returns when an id became that of a group, ``taken`` which of new ids other documents have already.
    ``leaders``: the principal of each group in the registry.
    """
    corpus, changed_or_deleted = linked.verified.corpus, linked.verified.verifier.documents.changed_or_deleted
    members, similarity = _members(linked)
    led = _led(corpus, members, leaders, changed_or_deleted)
    reserved = np.setdiff1d(corpus.group_ids[changed_or_deleted], b"")
    while True:
        ids = assign_ids(
            members,
            corpus.group_ids,
            led,
            lambda row, attempt: own_group(*corpus.address(row), attempt),
            reserved=reserved,
            created=created,
        )
        if taken is None:
            break
        # A neighbour that the run has read, and does not process, keeps its id.
        new = [id.decode() for id in np.setdiff1d(ids, corpus.group_ids[linked.verified.inside]).tolist()]
        elsewhere = np.setdiff1d(np.array([id.encode() for id in taken(new)], "S16"), reserved)
        if not len(elsewhere):
            break
        reserved = np.concatenate((reserved, elsewhere))
    return groupings_of(members, similarity, ids)


def groupings_of(members: RowLists, similarity: Floats, ids: Bytes) -> Groupings:
    """The groupings of groups (rows, the principal first) with these ids; ``similarity``: of each row (shape (n,))."""
    return Groupings(members.of_rows(len(similarity)), similarity, members.first, ids)


def _led(corpus: FingerprintColumns, members: RowLists, leaders: Mapping[str, Address], changed: Flags) -> Flags:
    """Whether the group of each row contains the former principal of its id; shape (n,). That is known from the
    registry, which a run writes before the documents; for other ids from the documents. A document that waits, or has
    ``changed`` (bool of the rows), has no claim as a principal: it has another text, or was created again.

    A document that was alone has no better claim to its id than others: it can be a new one, and the other id that of a
    group whose principal was deleted.
    """
    ids, group_of = corpus.group_ids, members.of_rows(len(corpus))
    led: Flags = (corpus.leading == 1) & _is_in(_repeated(ids), ids)[0]
    registered = np.array(sorted(id.encode() for id in leaders), "S16")
    known, place = _is_in(registered, ids)
    led_by: dict[Address, list[bytes]] = {}
    for group, address in leaders.items():
        led_by.setdefault(address, []).append(group.encode())
    group_with, has_claim = np.full(len(registered), -2), np.zeros(len(registered), np.bool_)
    waits = (corpus.leading < 0) | changed
    for row, (index, id, _) in enumerate(corpus.references if leaders else ()):
        if (led_here := led_by.get(Address(index, id))) is not None and group_of[row] >= 0:
            numbers = np.searchsorted(registered, np.array(led_here, "S16"))
            group_with[numbers], has_claim[numbers] = group_of[row], not waits[row]
    place = place[known]
    led[known] = (group_of[known] == group_with[place]) & ((corpus.leading[known] == 1) | has_claim[place])
    return led & ~changed


def _repeated(ids: Bytes) -> Bytes:
    """The ids that occur more than once, except the empty one."""
    ordered = np.sort(ids)
    return np.setdiff1d(ordered[1:][ordered[1:] == ordered[:-1]], b"")


def _is_in(known: Bytes, ids: Bytes) -> tuple[Flags, Positions]:
    """Whether each id is one of the ``known`` ones, which ascend, and its place there."""
    if not len(known):
        return np.zeros(len(ids), np.bool_), np.zeros(len(ids), np.intp)
    place = np.minimum(np.searchsorted(known, ids), len(known) - 1)
    return known[place] == ids, place


def _members(linked: LinkedClasses) -> tuple[RowLists, Floats]:
    """The rows of each group, the principal first, and the similarity of each row to it."""
    verified, classes = linked.verified, linked.verified.classes
    inside, documents = verified.inside, verified.verifier.documents
    size = len(classes)
    known = ~np.isnan(linked.similarity) & inside[classes.first]
    # Groups are numbered by the first of their classes, then those of rows without keys, or with another text than
    # their keys, by their rows.
    numbers = np.flatnonzero(known)[::-1].astype(np.int32)
    group_of = np.zeros(size, np.int32)
    group_of[linked.principal[numbers]] = numbers
    del numbers
    # Within a group, the class of the principal comes first.
    place = group_of[linked.principal] * 2 + (linked.principal != np.arange(size, dtype=np.int32))
    del group_of
    chosen = classes.repeated(known) & ~documents.changed_or_deleted[classes.rows]
    place = classes.repeated(place)[chosen]
    order = np.argsort(place, kind="stable")
    group = place[order] // 2
    del place
    rows = classes.rows[chosen][order]
    del order, chosen
    alone = np.flatnonzero(inside & (documents.changed | (classes.of_rows(len(inside)) < 0))).astype(rows.dtype)
    starts = np.flatnonzero(np.concatenate(([True], group[1:] != group[:-1]))[: len(group)]).astype(np.int32)
    bounds = np.concatenate((starts, np.arange(len(rows), len(rows) + len(alone) + 1, dtype=np.int32)))
    members = RowLists(np.concatenate((rows, alone)), bounds)
    del group, rows, starts
    similarity = np.full(len(inside), np.nan)
    similarity[classes.rows] = classes.repeated(linked.similarity)
    similarity[members.first] = 1.0
    return members, similarity


def previous_ids(
    corpus: FingerprintColumns, groupings: Groupings, before: Mapping[str, GroupRecord]
) -> dict[str, Counter[str]]:
    """Of each new group id, how many of its documents have which id now, of those in ``before``."""
    known = np.array([id.encode() for id in before], "S16")
    counts = Counter[tuple[bytes, bytes]]()
    for some in blocks(len(corpus) if before else 0):
        stored, group = corpus.group_ids[some], groupings.group_of[some]
        chosen = (group >= 0) & np.isin(stored, known)
        counts.update(zip(groupings.ids[group[chosen]].tolist(), stored[chosen].tolist(), strict=True))
    previous: dict[str, Counter[str]] = {}
    for (new, one), number in counts.items():
        previous.setdefault(new.decode(), Counter())[one.decode()] = number
    return previous


def record_of(
    corpus: FingerprintColumns,
    groupings: Groupings,
    rows: Numbers,
    cohesion: GroupCohesion,
    *,
    texts: int,
    chained: ChainBridges | None = None,
    rules: RunRules | None = None,
    held: int = 0,
) -> GroupRecord:
    """The record of a group of two or more documents (rows), without dates and history. ``texts``: how many of them
    differ; ``chained``: only with linkage chain; ``held``: those that a decision holds in the group."""
    group = int(groupings.group_of[rows[0]])
    first = int(groupings.principals[group])
    similarities = groupings.similarity[rows[rows != first]].tolist()
    return GroupRecord(
        group=groupings.ids[group].decode(),
        created="",
        updated="",
        ended=None,
        size=len(rows),
        texts=texts,
        principal=corpus.address(first),
        min_similarity=min(similarities),
        mean_similarity=mean_similarity(similarities, [1] * len(similarities)),
        pairs_below=cohesion.below,
        pairs_not_compared=cohesion.not_compared,
        diameter=chained.diameter if chained else None,
        weakest=chained.weakest if chained else None,
        held=held,
        settings=rules,
    )


def _records(
    linked: LinkedClasses,
    groupings: Groupings,
    *,
    rules: RunRules,
    check: Callable[[int], None],
    progress: Progress,
) -> dict[str, GroupRecord]:
    """The record of each group of two or more documents, without dates and history. ``check`` is called with the number
    of these groups."""
    verified = linked.verified
    classes, candidates = verified.classes, verified.candidates
    sizes = classes.counted(groupings.group_of >= 0)
    groups = _class_groups(linked, sizes)
    check(len(groups))
    cohesions: Iterable[GroupCohesion]
    joined = linked.decisions
    if rules.group.linkage is Linkage.COMPLETE and not len(joined.left):  # all pairs were compared, and match
        cohesions = repeat(GroupCohesion(0, 0), len(groups))
    else:
        every = Matches(candidates.left, candidates.right, verified.similarity)
        compare = partial(verified.verifier.similarities, progress=progress)
        cohesions = cohesions_of(groups, every, compare, documents=sizes, minimum=rules.min)
    chains: Iterable[ChainBridges | None] = repeat(None, len(groups))
    if rules.group.linkage is Linkage.CHAIN:
        matches = linked.matches
        if len(joined.left):  # decisions link texts like matches do
            every, matches = _with_decisions(linked, progress)
        chains = bridges(groups, *every, matches, size=len(classes))
    records = {}
    for members, cohesion, chained in zip(groups, cohesions, chains, strict=True):
        rows = np.concatenate([classes[number] for number in members.tolist()])
        rows = rows[groupings.group_of[rows] >= 0]
        held = int(sizes[members[np.isin(members, linked.decisions.held)]].sum())
        record = record_of(
            verified.corpus, groupings, rows, cohesion, texts=len(members), chained=chained, rules=rules, held=held
        )
        records[record.group] = record
    return records


def _with_decisions(linked: LinkedClasses, progress: Progress) -> tuple[Matches, Flags]:
    """The candidate pairs and those that decisions joined, with their similarity, and which of them are links."""
    verified, size = linked.verified, len(linked.principal)
    candidates = verified.candidates
    left, right = candidates.left[linked.matches], candidates.right[linked.matches]
    known = np.isin(linked.decisions.left * size + linked.decisions.right, left.astype(np.intp) * size + right)
    _, first = np.unique(linked.decisions.left * size + linked.decisions.right, return_index=True)
    new = first[~known[first]]
    ones, others = linked.decisions.left[new], linked.decisions.right[new]
    pairs = Matches(
        np.concatenate((left, ones)),
        np.concatenate((right, others)),
        np.concatenate((verified.similarity[linked.matches], verified.verifier.similarities(ones, others, progress))),
    )
    return pairs, np.ones(len(pairs.left), np.bool_)


def _class_groups(linked: LinkedClasses, sizes: Numbers) -> RowLists:
    """The classes of each group of two or more documents, ascending. ``sizes``: documents of each class."""
    linked_classes = np.flatnonzero(linked.principal != np.arange(len(sizes), dtype=np.int32))
    possible = sizes > 1
    possible[linked_classes] = possible[linked.principal[linked_classes]] = True
    filled = np.flatnonzero(possible & (sizes > 0))
    documents = np.bincount(linked.principal[filled], sizes[filled], len(sizes))
    filled = filled[documents[linked.principal[filled]] > 1]
    order = filled[np.argsort(linked.principal[filled], kind="stable")]
    starts = np.flatnonzero(np.diff(linked.principal[order], prepend=-1))
    return RowLists(order, np.append(starts, len(order)))
