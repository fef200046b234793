"""Decisions of reviewers: whether two texts belong together, which document to keep, and notes."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timezone

import numpy as np

from es_neardupe.display_text import named
from es_neardupe.errors import IndexUnusable, InputError, NotFound, SettingsError
from es_neardupe.groups.decisions import Decision, Decisions, Verdict
from es_neardupe.index import queries
from es_neardupe.index.document_text import TextFields, prepared_text
from es_neardupe.index.index import Index, opened
from es_neardupe.index.permissions import check_sees_all
from es_neardupe.index.stored_fields import group_of, stored_fields
from es_neardupe.keys.text import contents
from es_neardupe.records import Address, one_line
from es_neardupe.server.bulk import chunked
from es_neardupe.similarity.measure import Measure
from es_neardupe.verification.current_texts import current_source, similarities
from es_neardupe.wording import command

_MAX_DOCUMENTS = 1000
"""Documents in one decision."""


@dataclass(frozen=True)
class Contradiction:
    """Why a decision cannot be satisfied together with others."""

    documents: tuple[Address, Address]
    """The documents that it is about."""
    others: tuple[Decision, ...]
    """The decisions that say the opposite together."""

    def __str__(self) -> str:
        said = "; ".join(f"{_both(one.documents)} are {one.verdict.value} ({one.author})" for one in self.others)
        return f"{_both(self.documents)}: {said}"


def _both(documents: Sequence[Address]) -> str:
    """The ids of two documents, with their indices if these differ."""
    several = documents[0].index != documents[1].index
    return " and ".join(named(one, several) for one in documents)


@dataclass(frozen=True)
class DecisionReport:
    """Result of `decide`: ``decisions = stored + unchanged``; nothing is stored with ``dry_run``."""

    index: str
    decisions: tuple[Decision, ...]
    """One for each pair, or for each document with *keep*."""
    stored: int
    """New ones, and those that replace another one of this reviewer."""
    unchanged: int
    """Those that this reviewer had already made."""
    replaced: tuple[Decision, ...]
    """Earlier decisions of this reviewer that no longer hold: about the same texts, and to keep another document."""
    disputed: tuple[Decision, ...]
    """Decisions of other reviewers who say the opposite: these pairs stay open until one of them is withdrawn."""
    contradictions: tuple[Contradiction, ...]
    """Only with ``dry_run``; otherwise they are refused."""
    copies: Mapping[str, int]
    """Content hash of each text -> documents with it, all of which the decision is about."""
    dry_run: bool

    def __repr__(self) -> str:
        return one_line(self, index=self.index, stored=self.stored, unchanged=self.unchanged, dry_run=self.dry_run)


def decide(
    index: Index,
    verdict: Verdict | str,
    id: str | Address,
    others: Sequence[str | Address] = (),
    *,
    author: str,
    note: str | None = None,
    seen: Mapping[str | Address, str] | None = None,
    dry_run: bool = False,
) -> DecisionReport:
    """Record a decision of the reviewer ``author`` about the document ``id`` and each of the ``others``. A document is
    given by its id, or by its `Address` if several indices have this id.

    ``verdict``: ``same`` and ``different`` are about each pair of ``id`` and one of the others, and apply with the next
    run of ``group``. ``keep`` says that ``id`` is the one to keep of its group and of these documents, and replaces
    earlier ones of this reviewer among them. ``note`` stores the text ``note``, about the pairs or about ``id`` alone.

    A decision is about the words of both texts: it holds for all exact copies, as long as the texts are unchanged.
    ``seen``: document, as it is given -> content hash that the reviewer saw, which must still be that of the text. A
    dry run stores nothing.

    Raises `NotFound` for an unknown id, `IndexUnusable` if a text has changed since it was read or enriched, and
    `SettingsError` for a decision that contradicts others, which must be withdrawn first, and for a pair of exact
    copies.

    >>> report = news.decide("same", "1001", ["1002"], author="Ada", note="only the cost differs")
    >>> report.stored
    1
    >>> news.group().groups.largest
    4
    """
    try:
        verdict = Verdict(verdict)
    except ValueError:
        known = ", ".join(one.value for one in Verdict)
        raise SettingsError(f"Unknown verdict {str(verdict)!r}. Known: {known}.") from None
    if verdict.decides and not others:
        raise SettingsError(f"The verdict {verdict.value} is about two documents: name the other ones as well.")
    if len(others) > _MAX_DOCUMENTS:
        raise SettingsError(f"One decision can be about {_MAX_DOCUMENTS:,} documents, not {len(others):,}.")
    index = opened(index, texts=True)
    check_sees_all(index, "deciding")  # about all copies, with the decisions about other texts
    texts = [_Text.read(index, one, None if seen is None else seen.get(one)) for one in (id, *others)]
    if len({one.address for one in texts}) != len(texts):
        raise SettingsError("The same document is named twice.")
    store, now = Decisions(index), datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    made = _made(index, verdict, texts, author=author, note=note, at=now)
    rivals = _rivals(index, texts) if verdict is Verdict.KEEP else set[str]()
    stored = store.about({one.content for one in texts} | rivals)
    own = {one.id: one for one in stored if one.author == author}
    fresh = [one for one in made if not _says_the_same(one, own.get(one.id))]
    replaced = [own[one.id] for one in fresh if one.id in own]
    replaced += [one for one in own.values() if one.verdict is Verdict.KEEP and one.contents[0] in rivals]
    disputed, contradictions = [], []
    if verdict.decides:
        between = {one.between for one in made}
        disputed = [
            one
            for one in stored
            if one.verdict.decides and one.between in between and one.author != author and one.verdict is not verdict
        ]
        open_pairs = {one.between for one in disputed}
        contradictions = _contradictions(store, [one for one in fresh if one.between not in open_pairs])
    if contradictions and not dry_run:
        more = f", and {len(contradictions) - 1:,} more" if len(contradictions) > 1 else ""
        raise SettingsError(
            f"This decision contradicts others: {contradictions[0]}{more}. Withdraw one of them first: the page of "
            f"decisions lists them."
        )
    if not dry_run and (fresh or replaced):
        new = {one.id for one in fresh}  # which are written over those of the same texts
        store.put([*(replace(one, withdrawn=now) for one in replaced if one.id not in new), *fresh])
    return DecisionReport(
        index=index.name,
        decisions=tuple(made),
        stored=len(fresh),
        unchanged=len(made) - len(fresh),
        replaced=tuple(replaced),
        disputed=tuple(disputed),
        contradictions=tuple(contradictions),
        copies=_copies(index, sorted({one.content for one in texts})),
        dry_run=dry_run,
    )


def withdraw(index: Index, ids: Sequence[str]) -> list[Decision]:
    """Withdraw decisions; the next run of ``group`` decides about their texts as before. They stay in the list, as
    withdrawn ones. Withdrawing one again changes nothing. Raises `NotFound` for an unknown id.

    >>> report = news.decide("keep", "1002", author="Ada")
    >>> withdrawn = news.withdraw([decision.id for decision in report.decisions])
    >>> [decision.verdict.value for decision in withdrawn]
    ['keep']
    """
    index = opened(index, groups=True)
    check_sees_all(index, "withdrawing")
    store = Decisions(index)
    found = store.get(set(ids))
    if unknown := [id for id in ids if id not in found]:
        raise NotFound(f"There is no decision {unknown[0]!r} about {index.name}.", status=404)
    now = datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    holding = [replace(one, withdrawn=now) for one in found.values() if one.withdrawn is None]
    if holding:
        store.put(holding)
    return [one if one.withdrawn else replace(one, withdrawn=now) for one in found.values()]


def decisions(index: Index, *, author: str | None = None, withdrawn: bool = False) -> list[Decision]:
    """The decisions of reviewers that hold, newest first. ``author``: only those of this one. ``withdrawn``: also the
    withdrawn ones.

    >>> report = news.decide("note", "1001", author="Ada", note="see the corrected figure")
    >>> [decision.note for decision in news.decisions(author="Ada")]
    ['see the corrected figure']
    """
    index = opened(index, groups=True)
    check_sees_all(index, "the list of decisions")
    store = Decisions(index)
    found = (one for one in store.all() if author in (None, one.author))
    return [one for one in found if withdrawn or one.withdrawn is None]


@dataclass(frozen=True)
class _Text:
    """A document with its current text."""

    address: Address
    content: str
    group: str | None
    source: Mapping[str, object]

    @classmethod
    def read(cls, index: Index, document: str | Address, seen: str | None) -> _Text:
        fields, prefix = index.settings.fields, index.settings.prefix
        address, source = current_source(index, document, [*fields, index.fields.content, index.fields.group])
        id, concrete = address.id, address.index
        (content,) = contents([prepared_text(source, index.settings)])
        if not content:
            raise InputError(f"Document {id!r} of index {concrete} has no words: no decision about it can be stored.")
        if seen is not None and seen != content:
            raise IndexUnusable(f"The text of {id!r} has changed since you saw it: look at it again, and decide then.")
        stored = stored_fields(source, prefix)
        if stored.get("content") != content:
            raise IndexUnusable(
                f"The text of {id!r} has changed since it got its keys: run `{command('enrich', index.name)}`, and "
                f"decide then."
            )
        return cls(address, content, group_of(stored), source)


def _made(
    index: Index, verdict: Verdict, texts: Sequence[_Text], *, author: str, note: str | None, at: str
) -> list[Decision]:
    """A decision for each pair, or about the first document alone."""
    first, *others = texts
    if verdict is Verdict.KEEP or not others:
        return [Decision(verdict, (first.content,), (first.address,), author, at, note).checked()]
    if verdict.decides and (copies := [one for one in others if one.content == first.content]):
        raise SettingsError(
            f"{_both((copies[0].address, first.address))} are exact copies: copies are always in one group."
        )
    scheme, fields = index.settings.scheme, TextFields.of(index.settings)
    measure = Measure(shingle=scheme.shingle, unit=scheme.unit)
    right = np.arange(1, len(texts))
    values = similarities(measure, [one.source for one in texts], fields, np.zeros_like(right), right).tolist()
    return list(
        {
            one.content: Decision(
                verdict,
                (first.content, one.content),
                (first.address, one.address),
                author,
                at,
                note,
                value,
                measure.label,
            ).checked()
            for one, value in zip(others, values, strict=True)
        }.values()
    )


def _says_the_same(one: Decision, stored: Decision | None) -> bool:
    return stored is not None and (stored.verdict, stored.note) == (one.verdict, one.note)


def _rivals(index: Index, texts: Sequence[_Text]) -> set[str]:
    """The contents of which the first text is to be kept: those of its group, and the other texts."""
    first, *others = texts
    found = {one.content for one in others}
    if first.group is not None:
        of_group = {"term": {index.fields.group: first.group}}
        found |= {one["content"] for one in index.documents.buckets(of_group, {"content": index.fields.content})}
    return found - {first.content}


def _contradictions(store: Decisions, made: Sequence[Decision]) -> list[Contradiction]:
    """The new decisions that cannot be satisfied together with those on which all reviewers agree."""
    links: dict[str, dict[str, Decision]] = defaultdict(dict)
    apart: list[Decision] = []
    reached, waiting = set[str](), {content for one in made for content in one.contents}
    new = {one.between for one in made}
    while waiting:
        reached |= waiting
        by_pair: dict[tuple[str, ...], list[Decision]] = defaultdict(list)
        for one in store.about(waiting):
            if one.verdict.decides and one.between not in new:
                by_pair[one.between].append(one)
        found = [some[0] for some in by_pair.values() if len({one.verdict for one in some}) == 1]
        for one in found:
            if one.verdict is Verdict.SAME:
                _link(links, one)
            else:
                apart.append(one)
        waiting = {content for one in found if one.verdict is Verdict.SAME for content in one.contents} - reached
    contradictions = []
    for one in made:
        if one.verdict is Verdict.SAME:
            _link(links, one)
            ways = ((other, _way(links, *other.contents)) for other in apart)
            wrong = next(((way, other) for other, way in ways if way), None)
            if wrong is not None:
                way, other = wrong
                others = tuple(part for part in way if part is not one)
                contradictions.append(Contradiction((one.documents[0], one.documents[1]), (*others, other)))
        elif way := _way(links, *one.contents):
            contradictions.append(Contradiction((one.documents[0], one.documents[1]), tuple(way)))
    return contradictions


def _link(links: dict[str, dict[str, Decision]], one: Decision) -> None:
    first, second = one.contents
    links[first][second] = links[second][first] = one


def _way(links: Mapping[str, Mapping[str, Decision]], start: str, end: str) -> list[Decision]:
    """The shortest way from one text to another by decisions *same*; empty if there is none."""
    before: dict[str, tuple[str, Decision] | None] = {start: None}
    waiting = deque([start])
    while waiting and end not in before:
        here = waiting.popleft()
        for there, one in links.get(here, {}).items():
            if there not in before:
                before[there] = (here, one)
                waiting.append(there)
    way: list[Decision] = []
    step = before.get(end)
    while step is not None:
        way.append(step[1])
        step = before[step[0]]
    return way[::-1]


def _copies(index: Index, hashes: Collection[str]) -> dict[str, int]:
    """The number of documents with each content hash, as searches see them."""
    found: dict[str, int] = {}
    for chunk in chunked(hashes, _MAX_DOCUMENTS):
        answer = index.documents.search(queries.copies(index.fields, {"match_all": {}}, chunk))
        found |= {one["key"]: int(one["doc_count"]) for one in answer["aggregations"]["copies"]["buckets"]}
    return found
