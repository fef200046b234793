"""Decisions about two documents of which a text has changed since, and what has changed.

A decision holds as long as both texts are unchanged, and old texts are not stored. With a decision about few texts, the
places where each of them differed from the first one are stored, within limits. If one of the two texts is unchanged,
these places give back what the other one read there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, NamedTuple

from pydantic import TypeAdapter, ValidationError

from es_neardupe.display_text import words_after, words_before
from es_neardupe.errors import NeardupeError
from es_neardupe.groups.decisions import Decision, Decisions, Verdict, said_about_pairs
from es_neardupe.index.document_text import text_of
from es_neardupe.index.index import Index
from es_neardupe.keys.text import Range
from es_neardupe.options import FactKind
from es_neardupe.records import Address
from es_neardupe.similarity.facts.differing import differences
from es_neardupe.similarity.facts.tokens import fact_tokens
from es_neardupe.verification.current_texts import current_source

_MAX_CHARACTERS = 200_000
"""Characters of two texts of which the places are stored."""

_MAX_TEXTS = 10
"""Texts of a decision that are compared with the first one."""

_MAX_PLACES = 30
"""FormerPlaces of each of these."""

_MAX_WORDS = 300
"""Characters of each text at a place."""

_AROUND = 40
"""Characters of context."""

_MAX_FORMER = 3
"""Pairs that are shown."""

_MAX_SHOWN = 3
"""Changes of each."""


class FormerPlace(NamedTuple):
    """A place where two texts differed. An empty range is a position."""

    a: Range
    b: Range
    words_a: str
    words_b: str

    @property
    def exchanged(self) -> FormerPlace:
        """The place with the sides exchanged."""
        return FormerPlace(self.b, self.a, self.words_b, self.words_a)


class FormerPlaces(NamedTuple):
    """The places where two texts differed, by position."""

    places: tuple[FormerPlace, ...]
    complete: bool
    """False: there were more behind the last one."""


class ChangedReading(NamedTuple):
    """What one text read at a place, and what it reads now, with equal words around it, and the blanks before
    and after it."""

    before: str
    then: str
    now: str
    after: str


@dataclass(frozen=True)
class FormerVerdict:
    """What a reviewer said about two documents before the text of one of them, or of both, changed."""

    author: str
    at: str
    verdict: Verdict
    documents: tuple[Address, Address]
    changed: tuple[Address, ...]
    """Those of the two whose text has changed."""
    changes: tuple[ChangedReading, ...] = ()
    """Of the changed text, if the other one is unchanged: the first ones."""
    then: tuple[FormerPlace, ...] = ()
    """If both have changed: the first places where they differed."""


def places_of(a: str, b: str) -> FormerPlaces:
    """The places where two texts differ, within the limits."""
    if len(a) + len(b) > _MAX_CHARACTERS:
        return FormerPlaces((), complete=False)
    found = [
        FormerPlace(one.a, one.b, a[slice(*one.a)], b[slice(*one.b)])
        for one in differences(fact_tokens(a), fact_tokens(b))
        if FactKind.TITLE not in one.kinds  # the words of titles are places of their own
    ]
    found.sort()
    long = [k for k, one in enumerate(found) if max(len(one.words_a), len(one.words_b)) > _MAX_WORDS]
    end = min([_MAX_PLACES, len(found), *long])
    return FormerPlaces(tuple(found[:end]), complete=end == len(found))


def places_of_decision(texts: Sequence[str]) -> list[Any]:
    """What is stored with a decision about these texts: the places of each but the first one."""
    if len(texts) > _MAX_TEXTS:
        return []
    return [[*places_of(texts[0], other)] for other in texts[1:]]


def former_verdicts(index: Index, contents: Mapping[Address, str]) -> list[FormerVerdict]:
    """What was decided about two of some documents, with their current content hashes, before one of them or both
    changed: the last of each reviewer."""
    store = Decisions(index)
    seen = store.seen_of({address.id for address in contents})
    if not seen:
        return []
    now = said_about_pairs(store.about(set(contents.values())))
    former: dict[tuple[str, Address, Address], FormerVerdict] = {}
    for one, stored in reversed(seen):
        if len(former) >= _MAX_FORMER:
            break
        then = dict(zip(one.documents, one.contents, strict=True))
        changed = {address for address in then if address in contents and contents[address] != then[address]}
        verdicts = dict(one.pairs())
        for two in combinations([address for address in then if address in contents], 2) if changed else ():
            low, high = sorted(then[address] for address in two)
            present = sorted(contents[address] for address in two)
            decided = one.author in now.get((present[0], present[1]), {}) or present[0] == present[1]
            key = (one.author, two[0], two[1])
            if changed.isdisjoint(two) or decided or key in former or len(former) >= _MAX_FORMER:
                continue
            moved = tuple(address for address in two if address in changed)
            shown = _shown(index, one, stored, two, moved)
            former[key] = FormerVerdict(one.author, one.at, verdicts[low, high], two, moved, *shown)
    return list(former.values())


def _shown(
    index: Index, decision: Decision, stored: Any, two: tuple[Address, Address], changed: Sequence[Address]
) -> tuple[tuple[ChangedReading, ...], tuple[FormerPlace, ...]]:
    """The changes of one text, or the former differences of two."""
    numbers = sorted(decision.documents.index(one) for one in two)
    try:
        known = _PLACES.validate_python(stored[numbers[1] - 1] if numbers[0] == 0 else None)
        if len(changed) > 1:
            return (), known.places[:_MAX_SHOWN]
        same, other = decision.documents[numbers[0]], decision.documents[numbers[1]]
        if same in changed:
            same, other = other, same
            known = known._replace(places=tuple(one.exchanged for one in known.places))
        names = index.settings.fields
        one, its = (text_of(current_source(index, document, names)[1], names) for document in (same, other))
        return tuple(changes(known, one, its))[:_MAX_SHOWN], ()
    except (ValidationError, IndexError, TypeError, KeyError, NeardupeError):
        return (), ()  # nothing is stored, or any client has written it, or a document was deleted meanwhile


def changes(then: FormerPlaces, same: str, other: str) -> Iterator[ChangedReading]:
    """What has changed in a text: the places where it differed from another text ``then``, which is still the ``same``,
    compared with those where it differs now."""
    now = places_of(same, other)
    ends = [one.places[-1].a[1] if one.places else 0 for one in (then, now) if not one.complete]
    end = min(ends, default=len(same) + 1)
    for start, stop in _joined([one.a for one in (*then.places, *now.places) if one.a[1] <= end]):
        before, after = (_read(same, places.places, start, stop) for places in (then, now))
        if before != after:
            earlier = words_before(same, start, _AROUND) + " " * same[:start][-1:].isspace()
            later = " " * same[stop : stop + 1].isspace() + words_after(same, stop, _AROUND)
            yield ChangedReading(earlier, before, after, later)


def _joined(ranges: Sequence[Range]) -> Iterator[Range]:
    """Ranges that overlap or touch, as one."""
    start, stop = -1, -1
    for first, last in sorted(ranges):
        if first > stop:
            if start >= 0:
                yield start, stop
            start, stop = first, last
        stop = max(stop, last)
    if start >= 0:
        yield start, stop


def _read(same: str, places: Sequence[FormerPlace], start: int, stop: int) -> str:
    """What the other text reads in a range of the one that is the same."""
    parts, at = [], start
    for one in places:
        if start <= one.a[0] and one.a[1] <= stop:
            parts += [same[at : one.a[0]], one.words_b]
            at = one.a[1]
    return " ".join("".join([*parts, same[at:stop]]).split())


_PLACES = TypeAdapter(FormerPlaces)
