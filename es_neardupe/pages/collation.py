"""Page of a group: the text of one member, the reference, with every place marked where another member differs, and the
table of what each of them has there."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from es_neardupe.display_text import beginning
from es_neardupe.groups.collate import MAX_MEMBERS, MAX_PLACES, CollatedPlace, CollatedRow, GroupCollation
from es_neardupe.groups.read import Member
from es_neardupe.groups.reviewed import GroupFindings
from es_neardupe.pages.application import Site
from es_neardupe.pages.page import SITE_STYLES, rendered
from es_neardupe.pages.site import Hosted, hosted
from es_neardupe.similarity.collation import MAX_WORDS
from es_neardupe.wording import counted

WHOLE_TEXT = 20_000
"""Characters of a text that is shown whole. Of a longer one, the surroundings of each place are shown."""

CELL = 120
"""Characters shown of a cell of the table."""

_BEFORE = 40
"""Characters shown of a cell before its first difference from the reference."""

_END = 30
"""Characters shown of the end of a value that is cut off."""

_CONTEXT = 300
"""Characters shown before and after a place of a longer text, and of the place itself."""


@dataclass(frozen=True)
class _Piece:
    """A part of the reference text."""

    text: str
    place: CollatedPlace | None
    """The place that it is."""
    cut: int
    """Characters left out before this piece."""


@dataclass(frozen=True)
class _Column:
    """A sortable column of the table."""

    order: str
    link: str
    """Sorts by the column, or in the other direction."""
    arrow: str


def group_page(site: Site, found: GroupCollation, findings: GroupFindings, *, done: str = "") -> Hosted:
    """A page of the members of a group, collated, and what reviewers have decided about their texts. ``done``: what was
    stored just before."""
    return hosted("group.html.j2", site, **_values(site, found, findings), done=done)


def group_file(site: Site, found: GroupCollation, findings: GroupFindings, made: str) -> str:
    """The same as a file of its own, without links into the application. ``made``: when, as ISO 8601."""
    values = _values(site, found, findings)
    return rendered(
        "group.html.j2",
        styles=SITE_STYLES,
        scripts=(),
        **values,
        done="",
        index=site.index,
        made=made,
    )


def _values(site: Site, found: GroupCollation, findings: GroupFindings) -> dict[str, Any]:
    given = {
        "id": found.group,
        "reference": None if found.reference.address == found.principal else found.reference.id,
        "reference_index": None if found.reference.address == found.principal else found.reference.index,
    }

    def link(**values: object) -> str:
        kept = {"start": found.start or None, "sort": found.order, "places": _place(found.first_place)}
        return site.link("/group", **{**given, **kept, **values})

    def reference_link(one: Member) -> str:
        index, id = (None, None) if one.address == found.principal else one.address
        return link(reference=id, reference_index=index, sort=None, places=None)

    def column(order: str) -> _Column:
        is_chosen = found.order.removeprefix("-") == order
        descends = found.order.startswith("-")
        return _Column(
            order,
            link(sort=f"-{order}" if is_chosen and not descends else order),
            ("▼" if descends else "▲") if is_chosen else "",
        )

    last = found.first_place + len(found.places) - 1
    end = found.start + found.members
    size = max(len(found.places), 1)
    here = link().partition("?")[2]
    return {
        "found": found,
        "findings": findings,
        "last": site.names(findings.last),
        "max_words": MAX_WORDS,
        "name_of": site.name,
        "compared": _compared(found),
        "pieces": list(_pieces(found)),
        "whole": len(found.text) <= WHOLE_TEXT,
        "last_place": last,
        "columns": {one: column(one) for one in ("id", "similarity")},
        "field_columns": {one: column(f"field.{one}") for one in found.differing},
        "place_columns": [(one, column(str(one.number))) for one in found.places],
        "reference_link": reference_link,
        "row_name": _row_name,
        "from_difference": from_difference,
        "field_value": field_value,
        "here": here,
        "file": site.link("/group/file") + f"?{here}",
        "end": end,
        "previous": link(start=max(found.start - MAX_MEMBERS, 0) or None) if found.start else None,
        "next": link(start=end, sort=None, places=None) if end < found.reachable else None,
        "earlier": link(places=_place(max(found.first_place - MAX_PLACES, 1))) if found.first_place > 1 else None,
        "later": link(places=found.first_place + size) if last < found.total_places else None,
    }


def _compared(found: GroupCollation) -> dict[str, str]:
    """Of each field that differs, the first value: that with which the others are compared."""
    members = [one for row in found.rows for one in row.members]
    return {name: next((v for one in members if (v := one.fields.get(name))), "") for name in found.differing}


def _place(number: int) -> int | None:
    return number if number > 1 else None


def _row_name(row: CollatedRow) -> str:
    copies = len(row.members) - 1
    return counted(copies, "exact copy", "exact copies") if copies else ""


def from_difference(text: str, reference: str) -> str:
    """What a cell shows of its text: of a long one that begins as that of the reference does, the part from shortly
    before the first difference on, beginning with a word or a part of a URL if one begins there."""
    pairs = zip(text, reference, strict=False)
    same = next((place for place, (one, other) in enumerate(pairs) if one != other), min(len(text), len(reference)))
    before = max(same - _BEFORE, 0)
    near = max(before - _BEFORE, 0)
    start = max(text.rfind(" ", near, before), text.rfind("/", near, before)) + 1 or before
    if len(text) <= CELL or text == reference:
        start = 0
    return ("... " if start else "") + beginning(text[start:], CELL)


def field_value(text: str, reference: str) -> str:
    """What is shown of the value of a field: as `from_difference`, and the end of one that is cut off, by which URLs of
    one site often differ."""
    shown = from_difference(text, reference)
    return f"{shown} {text[-_END:]}" if shown.endswith("...") and not text.endswith("...") else shown


def _pieces(found: GroupCollation) -> Iterator[_Piece]:
    """The text of the page, cut into places and the words between them."""
    whole = len(found.text) <= WHOLE_TEXT
    at = found.text_start
    stop = at + len(found.text)
    for place in [*found.places, None]:
        start, end = (stop, stop) if place is None else place.characters
        between = found.text[at - found.text_start : start - found.text_start]
        if whole or len(between) <= 2 * _CONTEXT:
            yield _Piece(between, None, 0)
        else:
            yield _Piece(between[:_CONTEXT], None, 0)
            yield _Piece(between[-_CONTEXT:], None, len(between) - 2 * _CONTEXT)
        if place is not None:
            words = found.text[start - found.text_start : end - found.text_start]
            yield _Piece(words if whole else words[:_CONTEXT], place, 0)
            if not whole and len(words) > _CONTEXT:
                yield _Piece("", None, len(words) - _CONTEXT)
        at = end
