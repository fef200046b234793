"""Decisions of reviewers: whether two texts belong together, which document to keep, and notes."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from datetime import datetime, timezone

import numpy as np

from es_neardupe.display_text import named
from es_neardupe.errors import IndexUnusable, InputError, NotFound, SettingsError
from es_neardupe.groups.decisions import (
    MAX_TEXTS,
    ContentPair,
    Decision,
    Decisions,
    Verdict,
    agreed_verdict,
    said_about_pairs,
)
from es_neardupe.groups.former import places_of_decision
from es_neardupe.index import queries
from es_neardupe.index.document_text import TextFields, prepared_text, text_of
from es_neardupe.index.index import Index, opened
from es_neardupe.index.permissions import check_sees_all
from es_neardupe.index.stored_fields import group_of, stored_fields
from es_neardupe.keys.text import contents
from es_neardupe.records import Address, one_line
from es_neardupe.server.bulk import chunked
from es_neardupe.similarity.measure import Measure
from es_neardupe.verification.current_texts import current_source, similarities
from es_neardupe.wording import command


@dataclass(frozen=True)
class Contradiction:
    """Why a decision cannot be satisfied together with others."""

    documents: tuple[Address, Address]
    """The documents that it is about."""
    others: tuple[Decision, ...]
    """The decisions that say the opposite together."""

    def __str__(self) -> str:
        said = "; ".join(f"{_names(one.documents)} are {one.verdict.value} ({one.author})" for one in self.others)
        return f"{_names(self.documents)}: {said}"


_NAMED = 3
"""Documents of a decision that are named in a message."""


def _names(documents: Sequence[Address]) -> str:
    """The ids of some documents, with their indices if these differ."""
    several = len({one.index for one in documents}) > 1
    names = [named(one, several) for one in documents[:_NAMED]]
    if len(documents) > _NAMED:
        names.append(f"{len(documents) - _NAMED:,} more")
    return f"{', '.join(names[:-1])} and {names[-1]}"


@dataclass(frozen=True)
class DecisionReport:
    """Result of `decide`: ``decisions = stored + unchanged``; nothing is stored with ``dry_run``."""

    index: str
    decisions: tuple[Decision, ...]
    """One for each pair, for each document with *keep*, or one about all parts."""
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
    verdict: Verdict | str | None = None,
    id: str | Address | None = None,
    others: Sequence[str | Address] = (),
    *,
    parts: Sequence[Sequence[str | Address]] = (),
    author: str,
    note: str | None = None,
    seen: Mapping[str | Address, str] | None = None,
    dry_run: bool = False,
) -> DecisionReport:
    """Record a decision of the reviewer ``author`` about the document ``id`` and each of the ``others``. A document is
    given by its id, or by its `Address` if several indices have this id.

    ``parts``, instead of ``verdict`` and ``id``: the documents of a group, divided into parts. Those of each part are
    the same, and different from those of the other parts. This is one decision, which binds like all the pairs.

    ``verdict``: ``same`` and ``different`` are about each pair of ``id`` and one of the others, and apply with the next
    run of ``group``. ``keep`` says that ``id`` is the one to keep of its group and of these documents, and replaces
    earlier ones of this reviewer among them. ``note`` stores the text ``note``, about the pairs or about ``id`` alone.

    A decision is about the words of the texts: it holds for all exact copies, as long as the texts are unchanged.
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
    if parts:
        if verdict is not None or id is not None or others:
            raise SettingsError("Give either parts, or a verdict with id and others.")
        documents = [one for part in parts for one in part]
    else:
        verdict, documents = _checked(verdict), [*([] if id is None else [id]), *others]
        if id is None or (verdict.decides and not others):
            raise SettingsError(
                f"The verdict {verdict.value} is about documents: name one, and the other ones as well."
            )
    if len(documents) > MAX_TEXTS:
        raise SettingsError(f"One decision can be about {MAX_TEXTS:,} documents, not {len(documents):,}.")
    index = opened(index, texts=True)
    check_sees_all(index, "deciding")  # about all copies, with the decisions about other texts
    texts = [_Text.read(index, one, None if seen is None else seen.get(one)) for one in documents]
    if len({one.address for one in texts}) != len(texts):
        raise SettingsError("The same document is named twice.")
    store, now = Decisions(index), datetime.now(timezone.utc).isoformat(timespec="milliseconds")
    if verdict is None:
        numbers = [number for number, part in enumerate(parts, 1) for _ in part]
        made = [_divided(index, texts, numbers, author=author, note=note, at=now)]
    else:
        made = _made(index, verdict, texts, author=author, note=note, at=now)
    rivals = _rivals(index, texts) if verdict is Verdict.KEEP else set[str]()
    stored = store.about({one.content for one in texts} | rivals)
    own = {one.id: one for one in stored if one.author == author}
    fresh = [one for one in made if not _says_the_same(one, own.get(one.id))]
    said = {(pair, verdict): one for one in fresh for pair, verdict in one.pairs()}
    new = {pair for pair, _ in said}
    replaced = [
        one
        for one in own.values()
        if (one.verdict.decides and new and new.issuperset(pair for pair, _ in one.pairs()))
        or (one.verdict is Verdict.KEEP and one.contents[0] in rivals)
        or any(one.id == other.id for other in fresh)
    ]
    disputes = _disputes(made, [one for one in stored if one.author != author])
    contradictions = _contradictions(store, {key: one for key, one in said.items() if key[0] not in disputes}, new)
    if contradictions and not dry_run:
        more = f", and {len(contradictions) - 1:,} more" if len(contradictions) > 1 else ""
        raise SettingsError(
            f"This decision contradicts others: {contradictions[0]}{more}. Withdraw one of them first: the page of "
            f"decisions lists them."
        )
    if not dry_run and (fresh or replaced):
        over = {one.id for one in fresh}  # written over those of the same texts
        known = {one.content: text_of(one.source, index.settings.fields) for one in texts}
        places = {
            one.id: places_of_decision([known[content] for content in one.contents])
            for one in fresh
            if one.verdict.decides
        }
        store.put([*(replace(one, withdrawn=now) for one in replaced if one.id not in over), *fresh], places)
    return DecisionReport(
        index=index.name,
        decisions=tuple(made),
        stored=len(fresh),
        unchanged=len(made) - len(fresh),
        replaced=tuple(replaced),
        disputed=tuple({one.id: one for one in disputes.values()}.values()),
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


def _checked(verdict: Verdict | str | None) -> Verdict:
    with suppress(ValueError):
        if (known := Verdict(verdict)) is not Verdict.SPLIT:
            return known
    possible = ", ".join(one.value for one in Verdict if one is not Verdict.SPLIT)
    raise SettingsError(f"Unknown verdict {'' if verdict is None else str(verdict)!r}. Known: {possible}.")


def _made(
    index: Index, verdict: Verdict, texts: Sequence[_Text], *, author: str, note: str | None, at: str
) -> list[Decision]:
    """A decision for each pair, or about the first document alone."""
    first, *others = texts
    if verdict is Verdict.KEEP or not others:
        return [Decision(verdict, (first.content,), (first.address,), author, at, note).checked()]
    if verdict.decides and (copies := [one for one in others if one.content == first.content]):
        raise _exact_copies(copies[0], first)
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


def _exact_copies(one: _Text, other: _Text) -> SettingsError:
    """The error for copies that a decision cannot part."""
    return SettingsError(f"{_names((one.address, other.address))} are exact copies: copies are always in one group.")


def _divided(
    index: Index, texts: Sequence[_Text], numbers: Sequence[int], *, author: str, note: str | None, at: str
) -> Decision:
    """The decision that the texts of each part are the same, and different from those of the others. ``numbers``: the
    part of each text."""
    parts: dict[str, tuple[_Text, int]] = {}
    for one, number in zip(texts, numbers, strict=True):
        first, part = parts.setdefault(one.content, (one, number))
        if part != number:
            raise _exact_copies(first, one)
    if len(parts) < 2:
        raise SettingsError("A decision needs two documents with different texts: copies are always in one group.")
    used = {part: number for number, part in enumerate(dict.fromkeys(part for _, part in parts.values()), 1)}
    verdict = {1: Verdict.SAME, len(parts): Verdict.DIFFERENT}.get(len(used), Verdict.SPLIT)
    distinct = [one for one, _ in parts.values()]
    if len(distinct) == 2:
        return _made(index, verdict, distinct, author=author, note=note, at=at)[0]
    return Decision(
        verdict,
        tuple(one.content for one in distinct),
        tuple(one.address for one in distinct),
        author,
        at,
        note,
        parts=tuple(used[part] for _, part in parts.values()) if verdict is Verdict.SPLIT else None,
    ).checked()


def _says_the_same(one: Decision, stored: Decision | None) -> bool:
    if stored is None or (stored.verdict, stored.note) != (one.verdict, one.note):
        return False
    return one.parts is None or dict(one.pairs()) == dict(stored.pairs())


def _rivals(index: Index, texts: Sequence[_Text]) -> set[str]:
    """The contents of which the first text is to be kept: those of its group, and the other texts."""
    first, *others = texts
    found = {one.content for one in others}
    if first.group is not None:
        of_group = {"term": {index.fields.group: first.group}}
        found |= {one["content"] for one in index.documents.buckets(of_group, {"content": index.fields.content})}
    return found - {first.content}


def _disputes(made: Sequence[Decision], others: Sequence[Decision]) -> dict[ContentPair, Decision]:
    """Pairs about which another reviewer says the opposite, with this decision."""
    theirs = said_about_pairs(others)
    found: dict[ContentPair, Decision] = {}
    for one in made:
        for pair, verdict in one.pairs():
            for said, decision in theirs.get(pair, {}).values():
                if said is not verdict:
                    found[pair] = decision
    return found


_Link = tuple[ContentPair, Decision]
"""Two texts, and the decision about them."""


def _contradictions(
    store: Decisions, said: Mapping[tuple[ContentPair, Verdict], Decision], new: Collection[ContentPair]
) -> list[Contradiction]:
    """What cannot be satisfied together with that on which all reviewers agree. ``said``: by the new decisions, about
    pairs that nobody disputes. ``new``: all their pairs, about which earlier decisions of this reviewer hold no longer.
    """
    links: dict[str, dict[str, _Link]] = defaultdict(dict)
    apart: list[_Link] = []
    reached, waiting = set[str](), {content for pair, _ in said for content in pair}
    while waiting:
        reached |= waiting
        following = set[str]()
        for pair, by_reviewer in said_about_pairs(store.about(waiting)).items():
            verdict = agreed_verdict({name: one for name, (one, _) in by_reviewer.items()})
            if pair in new or verdict is None:
                continue
            _, decision = next(iter(by_reviewer.values()))
            if verdict is Verdict.SAME:
                _link(links, (pair, decision))
                following.update(pair)
            else:
                apart.append((pair, decision))
        waiting = following - reached
    for (pair, verdict), decision in said.items():
        if verdict is Verdict.SAME:
            _link(links, (pair, decision))
        else:
            apart.append((pair, decision))
    contradictions: dict[ContentPair, Contradiction] = {}
    joined = _joined(links)
    for pair, decision in apart:
        if joined.get(pair[0], pair[0]) == joined.get(pair[1], pair[1]):
            way = [*_way(links, *pair), (pair, decision)]
            own = next((one for one in reversed(way) if one[0] in new), None)
            if own is not None and own[0] not in contradictions:
                others = tuple({one.id: one for between, one in way if between not in new}.values())
                first, second = (one for one in own[1].contents if one in own[0])
                documents = own[1].document(first), own[1].document(second)
                contradictions[own[0]] = Contradiction(documents, others)
    return list(contradictions.values())


def _link(links: dict[str, dict[str, _Link]], one: _Link) -> None:
    first, second = one[0]
    links[first][second] = links[second][first] = one


def _joined(links: Mapping[str, Mapping[str, _Link]]) -> dict[str, str]:
    """For each text, one of those that it is the same as, the same for all of these."""
    found: dict[str, str] = {}
    for start in links:
        waiting = [] if start in found else [start]
        while waiting:
            here = waiting.pop()
            if here not in found:
                found[here] = start
                waiting += links[here]
    return found


def _way(links: Mapping[str, Mapping[str, _Link]], start: str, end: str) -> list[_Link]:
    """The shortest way from one text to another that is the same."""
    before: dict[str, tuple[str, _Link] | None] = {start: None}
    waiting = deque([start])
    while end not in before:
        here = waiting.popleft()
        for there, one in links[here].items():
            if there not in before:
                before[there] = (here, one)
                waiting.append(there)
    way: list[_Link] = []
    step = before[end]
    while step is not None:
        way.append(step[1])
        step = before[step[0]]
    return way[::-1]


def _copies(index: Index, hashes: Collection[str]) -> dict[str, int]:
    """The number of documents with each content hash, as searches see them."""
    found: dict[str, int] = {}
    for chunk in chunked(hashes, MAX_TEXTS):
        answer = index.documents.search(queries.copies(index.fields, {"match_all": {}}, chunk))
        found |= {one["key"]: int(one["doc_count"]) for one in answer["aggregations"]["copies"]["buckets"]}
    return found
