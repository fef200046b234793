"""Collation of the members of a group: what differs in their current texts, where, and why each of them belongs.

All is bounded: a collation covers one page of members, a number of words, and a number of places at a time, and says
what it leaves out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from enum import Enum
from typing import Any

from es_neardupe.errors import NotFound, SettingsError
from es_neardupe.groups.read import Member, MemberPage, read_member, read_members, unknown_group
from es_neardupe.groups.registry import GroupRecord
from es_neardupe.groups.related import linked_groups
from es_neardupe.index.document_text import values_of
from es_neardupe.index.index import Index
from es_neardupe.index.shown_fields import ShownFields, read_shown_fields
from es_neardupe.keys.text import Range, contents
from es_neardupe.options import FactKind
from es_neardupe.records import Address, one_line
from es_neardupe.similarity.collation import MAX_WORDS, CellKind, Collation, collate
from es_neardupe.verification.current_texts import current_sources
from es_neardupe.verification.evidence import PairEvidence, evidence_with

MAX_MEMBERS = 200
"""Members of a page."""

MAX_PLACES = 40
"""Places of a page."""

MAX_CHARACTERS = 300
"""Characters of a cell, or of a place in the table."""


class RowState(str, Enum):
    """Whether the text of a row is in the collation."""

    COLLATED = "collated"
    LEFT_OUT = "left out"
    """The texts of the page have too many words."""
    DELETED = "deleted"
    """The document was deleted after its page was read."""


@dataclass(frozen=True)
class CollatedPlace:
    """A place of the reference text where a member differs."""

    number: int
    """From 1, in the order of the text."""
    characters: Range
    """An empty range is a position."""
    text: str
    """Its beginning, up to `MAX_CHARACTERS`."""
    cut: int
    """Number of further characters."""
    kinds: tuple[FactKind, ...]
    """Kinds of facts that the reference has there."""
    values: int
    """Number of different values."""


@dataclass(frozen=True)
class CollatedCell:
    """What a member has in a place; see `es_neardupe.similarity.collation.Cell`."""

    kind: CellKind
    text: str
    """Its beginning, up to `MAX_CHARACTERS`; "" if it is the same as in the reference."""
    cut: int
    """Number of further characters."""
    unusual: bool


@dataclass(frozen=True)
class CollatedRow:
    """Members whose texts have the same words, with what they have in each of the places."""

    members: tuple[Member, ...]
    """Exact copies of the first one follow it."""
    state: RowState
    changed: bool
    """Whether the current text is another one than that of the last ``enrich``."""
    evidence: PairEvidence | None
    """The stored evidence about these words and those of the principal; None if there is none."""
    cells: tuple[CollatedCell, ...]
    """One for each of the places; none for a text that is not in the collation."""


@dataclass(frozen=True)
class GroupCollation:
    """One page of the members of a group, collated with a reference document.

    The members of the ``rows`` are those of the page, and the reference, which may be on another page.
    """

    group: str
    principal: Address | None
    """None if this user may not read it, or if it was deleted."""
    size: int
    """Members of the group."""
    reachable: int
    """Members that can be shown page by page."""
    min_similarity: float
    """Minimum similarity of a member to the principal."""
    start: int
    """Number of the first member of the page, from 0."""
    members: int
    """Members of the page."""
    reference: Member
    title: str
    """Of the reference: the first of its fields to show that has a value, besides those of its origin."""
    of_page: bool
    """Whether the reference is on this page."""
    text: str
    """The text of the reference between the places before and after ``places``."""
    text_start: int
    """Number of its first character, from 0. ``text`` and the places count the characters of the whole text."""
    characters: int
    """Characters of the whole text."""
    total_places: int
    first_place: int
    """Number of the first one of ``places``."""
    places: tuple[CollatedPlace, ...]
    rows: tuple[CollatedRow, ...]
    """The first is that of the reference. The order of others: of the group, or as required."""
    left_out: int
    """Members of the page whose texts are not collated, because all of them have too many words."""
    deleted: int
    """Members of the page that were deleted meanwhile."""
    differing: tuple[str, ...]
    """The fields to show that are not equal for all."""
    equal: Mapping[str, str]
    """The others, each with its value."""
    order: str
    _known: GroupRecord | None = None

    def __repr__(self) -> str:
        return one_line(self, group=self.group, size=self.size, places=self.total_places, rows=len(self.rows))

    @property
    def known(self) -> GroupRecord | None:
        """The record of the group in the registry; None if there is none, or if it is about other documents."""
        return self._known


def collate_group(
    index: Index,
    group: str,
    shown: ShownFields,
    *,
    start: int = 0,
    size: int = MAX_MEMBERS,
    reference: str | Address | None = None,
    first_place: int = 1,
    order: str = "",
) -> GroupCollation:
    """Collate a page of the members of a group of an opened index, by their current texts.

    ``start``: number of the first member of the page, which has up to ``size``. ``reference``: a member, by its id,
    or by its address if several indices have this id; by default the principal, or the first member if there is none.
    ``first_place``: of the `MAX_PLACES` to return. ``order``: of the rows, by the number of a place, by
    ``similarity``, ``id`` or ``field.`` and a field to show; with ``-`` descending.

    Raises `NotFound` for an unknown group or reference, `InputError` for a text that is too long to compare, and
    `SettingsError` for an unknown order.
    """
    texts = read_collated(index, group, shown, start=start, size=size, reference=reference)
    page, found = texts.page, texts.found
    first_place = max(1, min(first_place, len(found.places)))
    numbers = range(first_place, min(first_place + MAX_PLACES, len(found.places) + 1))
    rows = [
        replace(one, cells=tuple(_cell(found, row, number) for number in numbers)) if row < len(found.rows) else one
        for row, one in enumerate(texts.rows)
    ]
    part = _part(found, numbers)
    return GroupCollation(
        group=group,
        principal=None if page.principal is None else page.principal.address,
        size=page.size,
        reachable=page.reachable,
        min_similarity=page.min_similarity,
        start=page.start,
        members=len(page.members),
        reference=texts.reference,
        title=texts.title,
        of_page=any(one.address == texts.reference.address for one in page.members),
        text=found.reference.text[slice(*part)],
        text_start=part[0],
        characters=found.reference.characters,
        total_places=len(found.places),
        first_place=first_place,
        places=_places(found, numbers),
        rows=tuple(_ordered(rows, found, order, shown)),
        left_out=texts.left_out,
        deleted=texts.deleted,
        differing=texts.differing,
        equal=texts.equal,
        order=order,
        _known=page.known,
    )


@dataclass(frozen=True)
class CollatedTexts:
    """The texts of a page of members of a group, collated with that of the reference."""

    page: MemberPage
    reference: Member
    title: str
    """Of the reference; see `GroupCollation`."""
    found: Collation
    rows: tuple[CollatedRow, ...]
    """Those of ``found``, without cells, and then the members that are not collated."""
    differing: tuple[str, ...]
    equal: Mapping[str, str]

    @property
    def left_out(self) -> int:
        """Members of the page whose texts are not collated, because all of them have too many words."""
        return sum(len(row.members) for row in self.rows if row.state is RowState.LEFT_OUT)

    @property
    def deleted(self) -> int:
        """Members of the page that were deleted meanwhile."""
        return sum(len(row.members) for row in self.rows if row.state is RowState.DELETED)


def read_collated(
    index: Index,
    group: str,
    shown: ShownFields,
    *,
    start: int = 0,
    size: int = MAX_MEMBERS,
    reference: str | Address | None = None,
) -> CollatedTexts:
    """Read a page of the members of a group of an opened index, and collate their texts: see `collate_group`."""
    page = read_members(index, group, start=start, size=size)
    if page is None:
        raise unknown_group(index, group)
    related, same_form = linked_groups(index, group)
    page = replace(page, related=related, same_form=same_form)
    chosen, tokens = _reference(index, page, reference)
    classes = _classes(page, chosen)
    read, left_out = _within_limit(classes, page, tokens)
    sources = _sources(index, [some[0] for some in read], page, shown)
    if sources[0] is None:
        raise NotFound(f"Document {chosen.id!r} of group {group} was deleted.", status=404)
    existing = [k for k, source in enumerate(sources) if source is not None]
    scheme = index.settings.scheme
    texts = [scheme.preparation.placed(values_of(sources[k] or {}, index.settings.fields)) for k in existing]
    found = collate(texts, passage=scheme.unit.passage(scheme.shingle))
    changed = [
        bool(stored := page.content.get(read[k][0].address)) and stored != content
        for k, content in zip(existing, contents([one.prepared for one in texts]), strict=True)
    ]
    fields = _fields(index, shown, read, sources, left_out)

    def titled(members: Sequence[Member]) -> tuple[Member, ...]:
        return tuple(replace(one, fields=fields.get(one.address, {})) for one in members)

    evidence = _evidence(index, page)
    rows = []
    for of_row in found.rows:
        members = [one for number in of_row for one in read[existing[number]]]
        state = any(changed[number] for number in of_row)
        known = None if state else evidence.get(page.content.get(members[0].address, ""))
        rows.append(CollatedRow(titled(members), RowState.COLLATED, state, known, ()))
    beyond = [(RowState.LEFT_OUT, some) for some in [*(read[existing[number]] for number in found.left_out), *left_out]]
    gone = [(RowState.DELETED, some) for some, source in zip(read, sources, strict=True) if source is None]
    for kind, some in [*beyond, *gone]:
        known = evidence.get(page.content.get(some[0].address, ""))
        rows.append(CollatedRow(titled(some), kind, False, known, ()))
    names, equal = _compared_fields(shown, rows)
    return CollatedTexts(
        page=page,
        reference=titled([chosen])[0],
        title=_title(shown, fields.get(chosen.address, {})),
        found=found,
        rows=tuple(rows),
        differing=names,
        equal=equal,
    )


def _reference(index: Index, page: MemberPage, given: str | Address | None) -> tuple[Member, int]:
    """The reference, and its stored number of words."""
    if given is None:
        chosen = page.principal or page.members[0]
        return chosen, page.tokens.get(chosen.address, 0)
    found = read_member(index, page.group, given)
    if found is None:
        id = given.id if isinstance(given, Address) else given
        raise NotFound(f"Document {id!r} is not in group {page.group} of index {index.name}.", status=404)
    return found


def _classes(page: MemberPage, reference: Member) -> list[list[Member]]:
    """Members with the same stored content, in the order of the page; first those with that of the reference, which is
    the first one. The texts of one of each class are read."""
    own = page.content.get(reference.address) or reference.address
    classes: dict[str | Address, list[Member]] = {own: [reference]}
    for one in page.members:
        if one.address != reference.address:
            classes.setdefault(page.content.get(one.address) or one.address, []).append(one)
    return list(classes.values())


def _within_limit(
    classes: list[list[Member]], page: MemberPage, tokens: int
) -> tuple[list[list[Member]], list[list[Member]]]:
    """The classes whose texts are read, and those that are left out."""
    read, left_out = classes[:1], []
    for some in classes[1:]:
        more = page.tokens.get(some[0].address, 0)
        if tokens + more > MAX_WORDS:
            left_out.append(some)
        else:
            tokens += more
            read.append(some)
    return read, left_out


def _sources(
    index: Index, members: Sequence[Member], page: MemberPage, shown: ShownFields
) -> list[Mapping[str, Any] | None]:
    """Text and fields to show of some members; None for one that was deleted."""
    names = list(dict.fromkeys([*index.settings.fields, *shown.names]))
    tokens = [page.tokens.get(one.address, 0) for one in members]
    return list(current_sources(index.client, [one.reference for one in members], tokens, names))


def _fields(
    index: Index,
    shown: ShownFields,
    read: Sequence[Sequence[Member]],
    sources: Sequence[Mapping[str, Any] | None],
    left_out: Sequence[Sequence[Member]],
) -> dict[Address, dict[str, str]]:
    """The fields to show of all members. Of a text without a title, the beginning is read of those that are read
    anyway: copies have the same, and those left out are long."""
    known = {
        some[0].address: shown.of(source) for some, source in zip(read, sources, strict=True) if source is not None
    }
    others = [one for some in read for one in some[1:]] + [one for some in left_out for one in some]
    found = read_shown_fields(index, shown.whole, [one.reference for one in others])
    if shown.beginning_of is not None:
        for first, *copies in read:
            text = known.get(first.address, {}).get(shown.beginning_of, "")
            found |= {one.address: {shown.beginning_of: text, **found.get(one.address, {})} for one in copies}
    return known | found


def _title(shown: ShownFields, fields: Mapping[str, str]) -> str:
    return next((value for name, value in fields.items() if value and name not in shown.origin), "")


def _evidence(index: Index, page: MemberPage) -> dict[str, PairEvidence]:
    """The evidence about the stored contents of the members and that of the principal, by content."""
    if page.principal is None:
        return {}
    content = page.content.get(page.principal.address, "")
    others = {page.content.get(one.address, "") for one in page.members} - {"", content}
    return evidence_with(index, content, others)


def _places(found: Collation, numbers: Sequence[int]) -> tuple[CollatedPlace, ...]:
    places = [found.places[number - 1] for number in numbers]
    return tuple(
        CollatedPlace(one.number, one.characters, *_beginning(one.text), kinds, one.values)
        for one, kinds in zip(places, found.kinds(places), strict=True)
    )


def _part(found: Collation, numbers: range) -> Range:
    """The characters of the reference between the places before and after these."""
    before = found.places[numbers.start - 2].characters[1] if numbers and numbers.start > 1 else 0
    after = found.places[numbers.stop - 1].characters[0] if numbers and numbers.stop <= len(found.places) else None
    return before, found.reference.characters if after is None else after


def _cell(found: Collation, row: int, number: int) -> CollatedCell:
    cell = found.cell(row, number)
    text, cut = ("", 0) if cell.kind is CellKind.SAME else _beginning(cell.text)
    return CollatedCell(cell.kind, text, cut, cell.unusual)


def _beginning(text: str) -> tuple[str, int]:
    return text[:MAX_CHARACTERS], max(len(text) - MAX_CHARACTERS, 0)


def _compared_fields(shown: ShownFields, rows: Sequence[CollatedRow]) -> tuple[tuple[str, ...], dict[str, str]]:
    """The names of the fields that are not equal for all members, and the others with their values. Members that were
    deleted do not count, and texts of which only the beginning is shown are never called equal."""
    members = [one for row in rows if row.state is not RowState.DELETED for one in row.members]
    values = {name: {one.fields.get(name, "") for one in members} for name in shown.names}
    text = values.pop(shown.beginning_of, set()) - {""} if shown.beginning_of is not None else set()
    differing = [name for name, found in values.items() if len(found) > 1]
    if len(text) > 1 and shown.beginning_of is not None:
        differing.insert(0, shown.beginning_of)
    return tuple(differing), {name: found.pop() for name, found in values.items() if len(found) == 1}


_PLACE = re.compile(r"[1-9][0-9]{0,9}")
_NUMBER = re.compile(r"(\d[\d,]*(?:\.\d+)?)")


def _ordered(rows: list[CollatedRow], found: Collation, order: str, shown: ShownFields) -> list[CollatedRow]:
    """The row of the reference, and the others in this order; by a place, first those that are in the collation."""
    if not order:
        return rows
    name = order.removeprefix("-")
    values: dict[str, Callable[[int], Any]] = {
        "similarity": lambda number: rows[number].members[0].similarity,
        "id": lambda number: _natural(rows[number].members[0].id),
    }
    for field in shown.names:
        values[f"field.{field}"] = lambda number, field=field: _natural(  # type: ignore[misc]
            rows[number].members[0].fields.get(field, "")
        )
    by_place = _PLACE.fullmatch(name) is not None and int(name) <= len(found.places)
    if by_place:
        values[name] = lambda number: _natural(found.cell(number, int(name)).text)
    if name not in values:
        raise SettingsError(
            f"The members cannot be sorted by {order!r}. Possible: similarity, id, the number of a place, and `field.` "
            f"with the name of a field to show; with - in front, descending."
        )
    last = len(found.rows) if by_place else len(rows)
    numbers = sorted(range(1, last), key=values[name], reverse=order.startswith("-"))
    return [rows[number] for number in (0, *numbers)] + rows[last:]


def _natural(text: str) -> list[Any]:
    """A key by which texts are sorted as people do: $900 before $1,200."""
    parts = _NUMBER.split(text.casefold())
    return [float(part.replace(",", "")) if number % 2 else part for number, part in enumerate(parts)]
