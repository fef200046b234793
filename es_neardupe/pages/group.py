"""Page of a group: what differs, the heaviest first, the text of one document with what the others read, and the bar
with the decisions."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from types import MappingProxyType
from typing import Any

from es_neardupe.display_text import beginning, score_text, shown
from es_neardupe.groups.collate import MAX_MEMBERS, CollatedRow, CollatedTexts, RowState
from es_neardupe.groups.decisions import Decision
from es_neardupe.groups.listing import QueuePlace
from es_neardupe.groups.read import Member
from es_neardupe.groups.reviewed import GroupFindings
from es_neardupe.pages.application import Site
from es_neardupe.pages.bar import Said
from es_neardupe.pages.page import rendered
from es_neardupe.pages.readings import (
    AS_REFERENCE,
    ShownReading,
    each_in_few_words,
    field_value,
    in_few_words,
    in_narrow_column,
    shown_reading,
    with_context,
)
from es_neardupe.pages.site import Hosted, hosted
from es_neardupe.similarity.collation import MAX_WORDS
from es_neardupe.similarity.weighed_places import (
    FACTS,
    LAYOUT,
    PLACE_KINDS,
    WORDS,
    PlaceReading,
    WeighedPlace,
    heaviest_first,
    weighed_places,
)

STYLES, SCRIPTS = ("group.css",), ("history.js", "group.js")

COLUMNS = 4
"""Texts that have a column each. More are listed in a pane of their own."""

MAX_PLACES = 100
"""Places that are shown, the heaviest."""
MAX_VALUES = 40
"""Values of a place that are shown."""
TABLE_PLACES = 40
"""Places in the table of documents and places."""
MAX_RELATED = 100
"""Related groups that are listed."""

_FIRST_ROWS = 12
"""Differences that are listed before the others are asked for."""
_LINE = {2: 74, 3: 60, 4: 50}
"""Characters of a line in the column of A, by the number of texts; otherwise 44."""
_CELL = {2: 150, 3: 110}
"""Characters of a reading; otherwise 80."""
_VALUE, _VALUE_LINE = 34, 46
"""Characters of a value among many, and of a line of them."""
_FRAME, _FRAME_WITH_NUMBER = 3, 6
"""Characters that the frame of a value takes, without and with a number of documents."""
_NARROW = 11
"""Characters that a column of the pane of documents has room for."""
_FOLDED = 4000
"""Characters between two places beyond which their middle is folded."""
_WHOLE = 200_000
"""Characters of a text beyond which its equal stretches are not on the page."""
_BLANK_LINE, _LINE_BREAK = re.compile(r"\n\s*\n"), re.compile(r"\s*\n\s*")
_ITEM = re.compile(r"[-*•–>#|]|\(?\w{1,3}[.)]\s")
_WRAPPED = 40
"""Characters of the shortest line that may be wrapped."""
_EDGE = 700
"""Characters shown before and after what is folded."""


@dataclass(frozen=True)
class TextOfGroup:
    """A distinct text of the group, with its documents."""

    letter: str
    row: CollatedRow
    content: str | None
    """The content hash, if the text can be decided about."""
    decisions: Sequence[Decision]

    @property
    def first(self) -> Member:
        """The document that is shown; the others are its exact copies."""
        return self.row.members[0]


@dataclass(frozen=True)
class Value:
    """What some texts read in a place."""

    reading: ShownReading
    texts: tuple[int, ...]
    """Numbers of the texts."""
    documents: int
    rest: bool
    """It is shown only if the place is the current one."""


@dataclass(frozen=True)
class DifferenceRow:
    """A row of what differs."""

    number: int
    kind: str
    is_fact: bool
    also: tuple[int, ...]
    a: ShownReading
    documents: int
    """Documents that read as A."""
    cells: tuple[ShownReading, ...]
    """Of up to `COLUMNS` texts: what each of the others reads."""
    values: tuple[Value, ...]
    """Of more texts: the different readings."""
    more: int
    """Values that are not shown."""
    several: bool
    """Whether a value has more than one document."""
    later: bool
    """Whether it is one of those after the first rows."""
    readings: tuple[PlaceReading, ...]
    """What all texts read, first A."""

    @property
    def mark(self) -> str:
        """How it is marked."""
        return "fact" if self.is_fact else "word"


@dataclass(frozen=True)
class TextPiece:
    """A part of the text of A."""

    lines: tuple[str, ...]
    place: DifferenceRow | None = None
    folded: tuple[str, ...] = ()
    """Lines that are folded, the same in all texts."""
    words: int = 0
    """Words that are folded."""
    kept: bool = True
    """False: the folded words are not on the page."""


def letter(number: int) -> str:
    """A, B, ... Z, AA, AB, ..."""
    return chr(65 + number) if number < 26 else chr(64 + number // 26) + chr(65 + number % 26)


def group_page(
    site: Site,
    texts: CollatedTexts,
    findings: GroupFindings,
    *,
    titles: Mapping[str, Mapping[str, str]] = MappingProxyType({}),
    queue: QueuePlace | None = None,
    said: Said | None = None,
) -> Hosted:
    """A page of the texts of a group, and what reviewers have decided about them. ``titles``: of related groups, the
    fields to show. ``said``: what was done just before."""
    values = _values(site, texts, findings)
    return hosted(
        "group.html.j2", site, styles=STYLES, scripts=SCRIPTS, **values, titles=titles, queue=queue, said=said
    )


def group_file(site: Site, texts: CollatedTexts, findings: GroupFindings, made: str) -> str:
    """The same as a file of its own, without links into the application. ``made``: when, as ISO 8601."""
    values = _values(site, texts, findings)
    return rendered(
        "group.html.j2", styles=STYLES, scripts=(), **values, queue=None, said=None, index=site.index, made=made
    )


def _values(site: Site, texts: CollatedTexts, findings: GroupFindings) -> dict[str, Any]:
    page, found = texts.page, texts.found
    all_texts = [
        TextOfGroup(letter(number), row, _decidable(row, findings), findings.about.get(row.members[0].address, ()))
        for number, row in enumerate(texts.rows)
        if row.state is RowState.COLLATED
    ]
    places = weighed_places(found)
    rows = heaviest_first(places)
    columns = len(all_texts) if len(all_texts) <= COLUMNS else 0
    differences = [
        _difference(one, all_texts, found.reference.text, columns, later=number >= _FIRST_ROWS)
        for number, one in enumerate(rows[:MAX_PLACES])
    ]
    layout = [one for one in places if one.kind == LAYOUT]
    if not differences:  # then they are all there is
        differences = [_difference(one, all_texts, found.reference.text, columns) for one in layout[:8]]
    by_number = {one.number: one for one in differences}
    by_number |= {number: one for one in differences for number in one.also}
    marked = [(one, by_number[one.place.number]) for one in places if one.place.number in by_number]
    counts = Counter("fact" if one.is_fact else one.kind for one in rows)
    principal = None if page.principal is None else page.principal.address
    given = {"id": page.group, **_reference(texts, principal)}
    here = site.below_root(site.link("/group", **given, start=page.start or None))
    end = page.start + len(page.members)
    return {
        "texts": texts,
        "page": page,
        "principal": principal,
        "known": page.known,
        "findings": findings,
        "all": all_texts,
        "listed": list(_documents_of(texts)),
        "evidence": any(row.evidence for row in texts.rows),
        "compared": _compared(texts),
        "field_value": field_value,
        "apart": [row for row in texts.rows if row.state is not RowState.COLLATED],
        "form": {1: "alone", 2: "pair", 3: "three", 4: "four"}.get(len(all_texts), "many"),
        "differences": differences,
        "only_layout": bool(layout) and not rows,
        "in_order": [one for place, one in marked if place.place.number == one.number],
        "pieces": list(_pieces(found.reference.text, marked)),
        "counts": [(kind, counts[kind]) for kind in ("fact", *PLACE_KINDS) if counts[kind]],
        "layout": _samples(layout),
        "in_layout": len(layout),
        "prepared": any(one.prepared != one.text or one.as_prepared for one in map(found.side, range(len(found.rows)))),
        "unshown": max(len(rows) - MAX_PLACES, 0),
        "table": _table(all_texts, differences[:TABLE_PLACES]) if len(all_texts) > 2 else [],
        "table_places": differences[:TABLE_PLACES],
        "rail": _by_reading(all_texts, differences) if len(all_texts) > COLUMNS else [],
        "data": _data(marked),
        "max_words": MAX_WORDS,
        "max_related": MAX_RELATED,
        "name_of": site.name,
        "in_rail": in_narrow_column([site.name(one.first) for one in all_texts], _NARROW),
        "to_decide": sum(one.content is not None for one in all_texts) > 1,
        "reference_link": lambda one: site.link("/group", id=page.group, **_other(one, principal)),
        "here": here,
        "file": f"{site.link('/group/file')}?{here.partition('?')[2]}",
        "end": end,
        "paged": len(page.members) < page.size,
        "previous": site.link("/group", **given, start=max(page.start - MAX_MEMBERS, 0) or None)
        if page.start
        else None,
        "next": site.link("/group", **given, start=end) if end < page.reachable else None,
    }


def _documents_of(texts: CollatedTexts) -> Iterator[tuple[Member, str, str]]:
    """Each document of the page, with the letter of its text and what it is."""
    number = 0
    for row in texts.rows:
        what = {RowState.LEFT_OUT: "not compared", RowState.DELETED: "deleted"}.get(row.state, "")
        for place, one in enumerate(row.members):
            said = _evidence(row) if not place else "exact copy"
            yield one, "" if what else letter(number), what or said
        number += not what


def _evidence(row: CollatedRow) -> str:
    """The stored evidence about a text and the principal."""
    known = row.evidence
    if known is None:
        return ""
    verdict = f"; by reviewers: {known.verdict}" if known.verdict else ""
    return f"{known.relation.value}, {known.decision}: {score_text(known.value)}{verdict}"


def _compared(texts: CollatedTexts) -> dict[str, str]:
    """Of each field that differs, the first value: that with which the others are compared."""
    members = [one for row in texts.rows for one in row.members]
    return {name: next((v for one in members if (v := one.fields.get(name))), "") for name in texts.differing}


def _decidable(row: CollatedRow, findings: GroupFindings) -> str | None:
    return None if row.changed else findings.contents.get(row.members[0].address)


def _reference(texts: CollatedTexts, principal: object) -> dict[str, str | None]:
    return _other(texts.reference, principal)


def _other(one: Member, principal: object) -> dict[str, str | None]:
    """How an address names the reference; nothing for the principal."""
    own = one.address == principal
    return {"reference": None if own else one.id, "reference_index": None if own else one.index}


def _difference(
    one: WeighedPlace, texts: Sequence[TextOfGroup], text: str, columns: int, *, later: bool = False
) -> DifferenceRow:
    own, *others = one.readings
    limit = _CELL.get(columns, 80)
    against = others[0].text if others else ""
    a = with_context(
        shown_reading(own.text, against, one.kind, limit), text, one.place.characters, _LINE.get(columns, 44)
    )
    cells: list[ShownReading] = []
    for number in range(1, columns):
        reading = next(reading for reading in one.readings if number in reading.rows)
        cells.append(AS_REFERENCE if reading is own else shown_reading(reading.text, own.text, one.kind, limit))
    several = any(_documents(reading, texts) > 1 for reading in one.readings)
    frame = _FRAME_WITH_NUMBER if several else _FRAME
    values = [] if columns else list(_values_of(others[:MAX_VALUES], own.text, one.kind, texts, frame))
    return DifferenceRow(
        number=one.place.number,
        kind=one.kind,
        is_fact=one.is_fact,
        also=one.also,
        a=a,
        documents=_documents(own, texts),
        cells=tuple(cells),
        values=tuple(values),
        more=0 if columns else max(len(others) - MAX_VALUES, 0),
        several=several,
        later=later,
        readings=one.readings,
    )


def _documents(reading: PlaceReading, texts: Sequence[TextOfGroup]) -> int:
    return sum(len(texts[row].row.members) for row in reading.rows)


def _values_of(
    readings: Sequence[PlaceReading], own: str, kind: str, texts: Sequence[TextOfGroup], frame: int
) -> Iterator[Value]:
    used = 0
    facts = [in_few_words(one.text, own, kind) if kind in FACTS else "" for one in readings]
    for number, (one, fact) in enumerate(zip(readings, facts, strict=True)):
        if not fact or len(one.text) <= _VALUE:
            reading = shown_reading(one.text, own, kind, _VALUE)
        elif facts.count(fact) == 1:
            reading = shown_reading(fact, "", kind, _VALUE)
        else:  # several readings have this fact, among other words
            reading = shown_reading(one.text, own, WORDS, _VALUE)
        used += min(reading.size or len("omitted"), _VALUE) + frame
        yield Value(reading, one.rows, _documents(one, texts), number > 0 and used > _VALUE_LINE)


def unwrapped(text: str) -> str:
    """The text with a blank for each line break within a paragraph of wrapped lines, where a line has no room for the
    first word of the next one. A text without blank lines is left as it is: each of its lines is a paragraph."""
    blocks, at = [], 0
    for gap in _BLANK_LINE.finditer(text):
        blocks += [_joined_lines(text[at : gap.start()]), gap[0]]
        at = gap.end()
    return "".join([*blocks, _joined_lines(text[at:])]) if blocks else text


def _joined_lines(block: str) -> str:
    lines = block.split("\n")
    width = max(len(one.rstrip()) for one in lines)

    def is_wrapped(line: str, following: str) -> bool:
        words = following.split(maxsplit=1)
        needed = len(line.rstrip()) + 1 + len(words[0] if words else "")
        return needed > max(width, _WRAPPED) and not _ITEM.match(following.lstrip())

    wrapped = [is_wrapped(line, following) for line, following in pairwise(lines)]
    if 2 * sum(wrapped) < len(wrapped):
        return block
    return lines[0] + "".join((" " if joined else "\n") + one for joined, one in zip(wrapped, lines[1:], strict=True))


def _pieces(text: str, marked: Sequence[tuple[WeighedPlace, DifferenceRow]]) -> Iterator[TextPiece]:
    """The text of A, cut into the places and what is between them."""
    keep = len(text) <= _WHOLE
    breaks = _BLANK_LINE if _BLANK_LINE.search(text) else _LINE_BREAK  # otherwise each line is a paragraph
    text = unwrapped(text)

    def lines(part: str) -> tuple[str, ...]:
        return tuple(breaks.split(shown(part)))

    def between(part: str, *, last: bool) -> Iterator[TextPiece]:
        if len(part) <= _FOLDED or (keep and not marked):
            yield TextPiece(lines(part))
            return
        start = part.rfind(" ", 0, _EDGE) + 1 or _EDGE
        stop = len(part) if last else part.find(" ", len(part) - _EDGE)
        stop = len(part) - _EDGE if stop < 0 else stop
        middle = part[start:stop]
        yield TextPiece(lines(part[:start]), folded=lines(middle) if keep else (), words=len(middle.split()), kept=keep)
        yield TextPiece(lines(part[stop:]))

    at = 0
    for place, one in marked:
        start, end = place.place.characters
        if start >= at:
            yield from between(text[at:start], last=False)
            yield TextPiece(lines(text[start:end][:_FOLDED]), one)
            at = end
    yield from between(text[at:], last=bool(marked))


def _samples(layout: Sequence[WeighedPlace]) -> list[tuple[str, str]]:
    """Both forms of some differences in layout."""
    found = []
    for one in layout[:6]:
        own, *others = one.readings
        found.append((beginning(own.text, 70), beginning(others[0].text, 70)))
    return found


def _table(
    texts: Sequence[TextOfGroup], differences: Sequence[DifferenceRow]
) -> list[tuple[TextOfGroup, list[ShownReading]]]:
    """What each text reads in the places of the table."""
    columns: list[dict[int, ShownReading]] = []
    for one in differences:
        own, *others = one.readings
        column = dict.fromkeys(own.rows, AS_REFERENCE) | {0: ShownReading(one.a.runs)}
        for each in others:
            column |= dict.fromkeys(each.rows, shown_reading(each.text, own.text, one.kind, 50))
        columns.append(column)
    return [(text, [column[number] for column in columns]) for number, text in enumerate(texts)]


def _data(marked: Sequence[tuple[WeighedPlace, DifferenceRow]]) -> dict[str, Any]:
    """For the script: what each text reads in each place."""
    data: dict[str, Any] = {}
    for place, one in marked:
        if place.place.number == one.number:
            words = each_in_few_words([each.text for each in place.readings], place.kind)
            data[str(one.number)] = {
                "kind": place.kind,
                "values": [
                    {"text": text or "omitted", "short": short or "omitted", "texts": list(each.rows)}
                    for text, short, each in zip(words, in_narrow_column(words, _NARROW), place.readings, strict=True)
                ],
            }
    return data


def _by_reading(texts: Sequence[TextOfGroup], differences: Sequence[DifferenceRow]) -> list[tuple[int, str, str, bool]]:
    """Number of each text, what it reads in the first of the differences, the same for a narrow column, and whether
    this begins there."""
    if not differences:
        return [(number, "", "", False) for number in range(len(texts))]
    first = differences[0]
    own, *_ = first.readings
    listed = []
    words = each_in_few_words([each.text for each in first.readings], first.kind)
    for text, short, each in zip(words, in_narrow_column(words, _NARROW), first.readings, strict=True):
        listed += [
            (row, text or "omitted", short or "omitted", place == 0 and each is not own)
            for place, row in enumerate(each.rows)
        ]
    return listed
