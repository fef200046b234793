"""Progress of a review: which texts of a group reviewers have decided about, as of now.

A text is decided if reviewers agree about it and another text of the same group. A group is reviewed if all its texts
are. Since decisions are about contents, a group returns to review when one of its texts changes.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Collection, Mapping, Sequence, Set
from concurrent.futures import ThreadPoolExecutor, TimeoutError
from dataclasses import dataclass, field, replace
from enum import Enum

from es_neardupe.errors import IncompleteAnswer
from es_neardupe.groups.decisions import (
    Claim,
    Decision,
    Decisions,
    PairVerdicts,
    SaidAboutPairs,
    Verdict,
    agreed_verdict,
    said_about_pairs,
)
from es_neardupe.groups.former import FormerVerdict, former_verdicts
from es_neardupe.groups.heaviest import HeaviestDifference
from es_neardupe.groups.listing import GroupFilter, GroupPage, ReviewedIds
from es_neardupe.groups.read import groups_of_texts, texts_of_groups
from es_neardupe.groups.registry import Registry
from es_neardupe.index.index import Index, opened
from es_neardupe.index.stored_fields import stored_fields
from es_neardupe.records import Address, Reference

_OVERLAP = 100
"""Writes before the last known one that are read again: of two writes at a time, the later one may be visible first."""

_MANY = 10_000
"""Decisions whose states are read in less than a second."""

_MAX_TEXTS = 50_000
"""Texts of the groups of one page that are read."""


class ReviewState(str, Enum):
    """How far the review of a group is."""

    OPEN = "open"
    """No text is decided, or only some are."""
    DISPUTED = "disputed"
    """Reviewers disagree about a pair of its texts."""
    REVIEWED = "reviewed"
    """All its texts are decided, or it has exact copies only."""


@dataclass(frozen=True)
class GroupReview:
    """What reviewers have decided about the texts of a group."""

    decided: int = 0
    """Texts about which they agree."""
    disputed: int = 0
    """Pairs of its texts on which they disagree."""
    reviewers: tuple[str, ...] = ()


@dataclass(frozen=True)
class TitledPage:
    """A page of groups, with the fields to show of their principals."""

    page: GroupPage
    fields: Mapping[Address, Mapping[str, str]]
    """None for a principal that was deleted or is hidden."""
    all_found: bool
    """False: too many groups have documents of the filter; only the first of them, by id, are counted and listed."""
    after: str | None
    """Continues with the next page."""
    reviews: Mapping[str, GroupReview]
    """Group -> what reviewers have decided; without groups about which they have decided nothing."""
    heaviest: Mapping[str, HeaviestDifference] = field(default_factory=dict)
    """Group -> its heaviest difference, if it was asked for."""
    compared: tuple[int, int] | None = None
    """The filter by the heaviest difference has compared only so many of so many groups yet; None: all of them."""
    reading: ReadProgress | None = None
    """The filter by review does not know the last decisions, which are still being read; None: it knows all."""


@dataclass(frozen=True)
class ReadProgress:
    """Progress of reading decisions: ``done`` of ``total`` items of ``stage``; None: the total is unknown."""

    stage: str
    done: int
    total: int | None


@dataclass(frozen=True)
class KnownReviews:
    """The reviews of groups."""

    groups: Mapping[str, tuple[GroupReview, ReviewState]] | None
    """Group -> its review and state; None: nothing was read yet."""
    reading: ReadProgress | None = None
    """The last decisions, or the last run of `group`, are still being read; None: the reviews are current."""
    kept_by: Mapping[str, Set[str]] = field(default_factory=dict)
    """Group -> the reviewers who have chosen a document of it to keep."""

    def by_group(self) -> Mapping[str, tuple[GroupReview, ReviewState]]:
        """Those of the groups. Raises `IncompleteAnswer` if no review was read yet."""
        if self.groups is None:
            raise IncompleteAnswer(
                "The decisions of reviewers are still being read after the start, so groups cannot be chosen or sorted "
                "by their review yet. Load the page again in a few seconds."
            )
        return self.groups

    def ids(self) -> ReviewedIds:
        """The groups, for the order by review. Raises `IncompleteAnswer` as `by_group` does."""
        states = {group: state for group, (_, state) in self.by_group().items()}
        return ReviewedIds(
            disputed=[group for group, state in states.items() if state is ReviewState.DISPUTED],
            reviewed=[group for group, state in states.items() if state is ReviewState.REVIEWED],
        )


@dataclass(frozen=True)
class ReviewFilter:
    """Which groups to list by their review."""

    state: ReviewState | None = None
    reviewer: str | None = None
    """Only groups about which this reviewer has decided something."""

    def __bool__(self) -> bool:
        return self.state is not None or self.reviewer is not None

    def applied(self, known: KnownReviews, only: GroupFilter) -> GroupFilter:
        """The filter of groups with these conditions. Raises `IncompleteAnswer` if no review was read yet."""
        found = known.by_group()
        if self.reviewer is not None:
            decided = {group for group, (review, _) in found.items() if self.reviewer in review.reviewers}
            kept = {group for group, names in known.kept_by.items() if self.reviewer in names}
            only = only.among(sorted(decided | kept))
        if self.state is ReviewState.OPEN:
            done = [group for group, (_, state) in found.items() if state is not ReviewState.OPEN]
            return replace(only, without=done, min_texts=2)
        if self.state is not None:
            return only.among([group for group, (_, state) in found.items() if state is self.state])
        return only


def state_of(review: GroupReview | None, texts: int) -> ReviewState:
    """The state of a group of so many distinct texts."""
    if review is not None and review.disputed:
        return ReviewState.DISPUTED
    decided = 0 if review is None else review.decided
    return ReviewState.REVIEWED if texts < 2 or decided >= texts else ReviewState.OPEN


def review_of_groups(index: Index, groups: Sequence[str]) -> dict[str, GroupReview]:
    """The reviews of some groups of an opened index; none for a group without decisions."""
    store = Decisions(index)
    if not groups or not store.exist():
        return {}
    found = texts_of_groups(index, {"terms": {index.fields.group: list(groups)}}, _MAX_TEXTS)
    verdicts = store.pairs({content for some in found.values() for content in some})
    return _reviews(found, verdicts)


def is_open(index: Index, group: str) -> bool:
    """Whether texts of a group of an opened index are not decided yet."""
    texts = Registry(index).texts([group]).get(group, 0)
    return state_of(review_of_groups(index, [group]).get(group), texts) is ReviewState.OPEN


class ReviewedGroups:
    """The reviews and states of all groups of one index with a decision about two of their texts.

    Groups and texts are those of the last run of `group`, decisions are current. What was read is kept: the next call
    only reads the decisions that were stored or withdrawn since, unless `group` has run. Threads may share it.
    """

    def __init__(self) -> None:
        self._reader = ThreadPoolExecutor(1, "reviews")  # the only thread that changes the values below
        self._as_of: tuple[object, int, int] | None = None
        """The state that was read, see `_state`; None: nothing was read."""
        self._verdicts: dict[tuple[str, str], Mapping[str, Verdict]] = {}
        self._kept: dict[str, set[str]] = {}
        """Content hash -> the reviewers who keep a document of it."""
        self._asked: set[str] = set()
        """The content hashes whose groups were read."""
        self._contents: dict[str, set[str]] = {}
        """Group -> which of these its documents have."""
        self._texts: dict[str, int | None] = {}
        """Group -> its distinct texts; None if it has ended."""
        self._found: dict[str, tuple[GroupReview, ReviewState]] | None = None
        self._kept_by: dict[str, set[str]] = {}
        self._progress = ReadProgress("decisions", 0, None)

    def begin(self, index: Index, before: Callable[[Index], None]) -> None:
        """Call ``before``, then read, in the background, for the first page that asks. An error is raised there."""
        self._reader.submit(before, index)
        self._reader.submit(lambda: self._read(opened(index, groups=True)))

    def read(self, index: Index, patience: float | None = None) -> KnownReviews:
        """The reviews of the groups of an opened index. If there are many decisions, wait at most ``patience`` seconds:
        then reading goes on in the background, and the result is the former one. Raises `Forbidden` unless its user may
        read decisions."""
        now = _state(index)
        if now is None:
            return KnownReviews({})
        if now != self._as_of:
            many = now[2] > _MANY
            try:
                self._reader.submit(self._read, index).result(patience if many else None)
            except TimeoutError:
                return KnownReviews(self._found, self._progress, self._kept_by)
        return KnownReviews(self._found, kept_by=self._kept_by)

    def _note(self, stage: str, done: int, total: int | None) -> None:
        self._progress = ReadProgress(stage, done, total)

    def _read(self, index: Index) -> None:
        now = _state(index)
        if now is None or now == self._as_of:
            return
        self._note("decisions", 0, None)
        store, registry = Decisions(index), Registry(index)
        run, written, _ = self._as_of or (None, -1, 0)
        if now[0] != run or now[1] < written:  # the last write is only earlier if somebody has deleted decisions
            verdicts = store.pairs(progress=self._note)
            self._verdicts, self._asked, self._contents, self._texts = dict(verdicts), set(), {}, {}
        else:
            self._read_changed(store, written)
        self._kept = store.kept()
        self._read_groups(index, registry)
        self._as_of = now

    def _read_changed(self, store: Decisions, written: int) -> None:
        changed = store.written_since(max(written - _OVERLAP, 0))
        verdicts = store.pairs({content for pair in changed for content in pair}, self._note)
        for pair in changed:
            self._verdicts.pop(pair, None)
            if pair in verdicts:
                self._verdicts[pair] = verdicts[pair]

    def _read_groups(self, index: Index, registry: Registry) -> None:
        new = ({content for pair in self._verdicts for content in pair} | self._kept.keys()) - self._asked
        for group, some in groups_of_texts(index, new, self._note).items():
            self._contents[group] = self._contents.get(group, set()) | some
        self._asked |= new
        reviews = _reviews({group: some for group, some in self._contents.items() if len(some) > 1}, self._verdicts)
        unknown = reviews.keys() - self._texts.keys()
        self._texts |= dict.fromkeys(unknown) | registry.texts(unknown)
        kept_by: dict[str, set[str]] = defaultdict(set)
        for group, some in self._contents.items():
            for content in some & self._kept.keys():
                kept_by[group] |= self._kept[content]
        self._kept_by = dict(kept_by)
        sizes = ((group, review, self._texts[group]) for group, review in reviews.items())
        self._found = {group: (review, state_of(review, texts)) for group, review, texts in sizes if texts is not None}


def _state(index: Index) -> tuple[object, int, int] | None:
    """The version of the last run of `group`, the last write of a decision, and the number of stored decisions and
    claims; None if nothing was ever decided."""
    written = Decisions(index).last_write()
    return None if written is None else (Registry(index).version(), *written)


def _reviews(contents: Mapping[str, Collection[str]], verdicts: PairVerdicts) -> dict[str, GroupReview]:
    """The reviews of groups, given as group -> content hashes."""
    groups_of: dict[str, list[str]] = defaultdict(list)
    for group, some in contents.items():
        for content in some:
            groups_of[content].append(group)
    decided: dict[str, set[str]] = defaultdict(set)
    disputed: dict[str, int] = defaultdict(int)
    reviewers: dict[str, set[str]] = defaultdict(set)
    for (low, high), said in verdicts.items():
        agreed = agreed_verdict(said) is not None
        for group in set(groups_of.get(low, ())) & set(groups_of.get(high, ())):
            reviewers[group].update(said)
            if agreed:
                decided[group] |= {low, high}
            else:
                disputed[group] += 1
    return {
        group: GroupReview(len(decided[group]), disputed[group], tuple(sorted(some)))
        for group, some in reviewers.items()
    }


@dataclass(frozen=True)
class Dispute:
    """Two reviewers disagree about pairs of documents, by one decision of each."""

    documents: tuple[Address, ...]
    pairs: int
    """The pairs of them on which they disagree."""
    author: str
    verdict: Verdict
    other: str
    opposite: Verdict

    @property
    def of_all(self) -> bool:
        """Whether they disagree about each pair of the documents, and each says the same about all of them."""
        return 2 * self.pairs == len(self.documents) * (len(self.documents) - 1)


@dataclass(frozen=True)
class GroupFindings:
    """What reviewers have decided about some documents of a group."""

    contents: Mapping[Address, str]
    """The content hash of each document; none for one that has no words."""
    about: Mapping[Address, Sequence[Decision]]
    """The decisions about each document and the reference document, or about the document alone."""
    claim: Claim | None
    """Who works on the group."""
    last: Sequence[Decision]
    """The decisions that the reviewer has stored last about texts of the group, also of other pages of it."""
    disputes: Sequence[Dispute] = ()
    """What reviewers disagree about."""
    former: Sequence[FormerVerdict] = ()
    """What was decided about two of these documents before one of them or both changed, the last ones."""
    verdicts: Mapping[Address, Mapping[str, Verdict]] = field(default_factory=dict)
    """What each reviewer says about a document and the reference document."""


def last_decisions(index: Index, group: str | None, contents: set[str], reviewer: str) -> Sequence[Decision]:
    """The decisions that a reviewer has stored last about these contents, or about texts of the group."""
    store = Decisions(index)
    if not store.exist():
        return ()
    if group is not None:
        query = {"term": {index.fields.group: group}}
        contents = contents | texts_of_groups(index, query, _MAX_TEXTS).get(group, set())
    return store.last_of(reviewer, contents)


def review_findings(
    index: Index, group: str, reference: Reference, members: Sequence[Reference], reviewer: str
) -> GroupFindings:
    """The decisions about members of a group and the reference document, as one ``reviewer`` sees them."""
    fields, prefix, store = index.fields, index.settings.prefix, Decisions(index)
    hits = index.documents.fetch([reference, *members], [fields.content])
    stored = {hit.address: stored_fields(hit.source, prefix).get("content") for hit in hits if hit is not None}
    contents = {address: one for address, one in stored.items() if isinstance(one, str)}
    first = contents.get(Address(*reference[:2]), "")
    found = store.about(set(contents.values()))
    about: dict[Address, list[Decision]] = {}
    for address, content in contents.items():
        about[address] = [
            one
            for one in found
            if content in one.contents and (len(one.contents) == 1 or (content != first and first in one.contents))
        ]
    last = last_decisions(index, group, set(contents.values()), reviewer)
    said = said_about_pairs(found)
    verdicts = {address: _verdicts(said, first, content) for address, content in contents.items()}
    return GroupFindings(
        contents,
        about,
        store.claims([group]).get(group),
        last,
        _disputes(said, contents, reviewer),
        former_verdicts(index, contents),
        verdicts,
    )


def _verdicts(about_pairs: SaidAboutPairs, one: str, other: str) -> dict[str, Verdict]:
    low, high = sorted((one, other))
    return {author: verdict for author, (verdict, _) in about_pairs.get((low, high), {}).items()}


def _disputes(about_pairs: SaidAboutPairs, contents: Mapping[Address, str], reviewer: str) -> list[Dispute]:
    addresses = {content: address for address, content in contents.items()}
    found: dict[tuple[str, Verdict, str, str, Verdict, str], list[tuple[Address, Address]]] = defaultdict(list)
    for (low, high), said in about_pairs.items():
        if low in addresses and high in addresses and len({verdict for verdict, _ in said.values()}) > 1:
            author, *others = sorted(said, key=lambda name: (name != reviewer, name))
            other = next(name for name in others if said[name][0] is not said[author][0])
            (verdict, one), (opposite, its) = said[author], said[other]
            found[author, verdict, one.id, other, opposite, its.id].append((addresses[low], addresses[high]))
    return [
        Dispute(tuple(sorted({one for pair in pairs for one in pair})), len(pairs), author, verdict, other, opposite)
        for (author, verdict, _, other, opposite, _), pairs in found.items()
    ]
