"""Places of a collation by what differs there: facts that contradict each other, passages, other words, what belongs to
a copy, layout.

The heaviest is what a reader wants to see first. A place with the same letters and digits in all texts is layout.
"""

from __future__ import annotations

import re
from bisect import bisect_left, bisect_right
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

from es_neardupe.similarity.collation import Collation, Place
from es_neardupe.similarity.comparison import facts_of
from es_neardupe.similarity.facts.differing import differences
from es_neardupe.similarity.facts.numerals import with_plain_digits
from es_neardupe.similarity.facts.spelling import differ_in_layout_only, folded

PASSAGE, WORDS, LAYOUT = "passage", "words", "layout"

_WEIGHTS = {
    "amount": 100,
    "unit": 96,
    "date": 92,
    "number": 90,
    "code": 88,
    "negation": 86,
    "name": 80,
    "title": 78,
    PASSAGE: 50,
    WORDS: 30,
    "contact": 20,
    "stamp": 15,
    "counter": 10,
    LAYOUT: 0,
}
"""Kind -> weight."""
PLACE_KINDS = tuple(_WEIGHTS)
"""Kinds of places, heaviest first."""
FACTS = PLACE_KINDS[: PLACE_KINDS.index(PASSAGE)]
"""Kinds of facts, heaviest first."""
_LIGHT = frozenset(PLACE_KINDS[PLACE_KINDS.index(WORDS) + 1 :])
"""Kinds that say nothing about what a text is about."""

_PASSAGE = 20
"""Words of a passage. A place with fewer is one of facts or words."""
_INSERTED = 12
"""Words of a passage that only one text has."""
_UNSURE = 25
"""How much less figures weigh that stand among other words than facts whose surroundings are equal."""
_LACKING, _REPLACED = 10, 5
"""How much more words weigh if a figure stands in them, and if a word of content replaces another one."""
_FIGURE = re.compile(r"[$€£¥]\s?\d[\d.,]*\d|[$€£¥]\s?\d|\d[\d.,]*\d|\d")


@dataclass(frozen=True, slots=True)
class PlaceReading:
    """What some texts have in a place."""

    rows: tuple[int, ...]
    """The rows of the collation."""
    text: str
    """As the first of them is written; "" for nothing."""


@dataclass(frozen=True, slots=True)
class WeighedPlace:
    """A place of the reference where a text differs, with what all of them have there."""

    place: Place
    kind: str
    """One of `PLACE_KINDS`."""
    weight: float
    readings: tuple[PlaceReading, ...]
    """The first is that of the reference; then by the number of texts."""
    also: tuple[int, ...] = ()
    """Numbers of lighter places that have the same values."""

    @property
    def is_fact(self) -> bool:
        """Whether facts differ."""
        return self.kind in FACTS


def weighed_places(found: Collation) -> list[WeighedPlace]:
    """All places of a collation, in the order of the text."""
    kinds = _kinds(found)
    places = []
    for place in found.places:
        readings = tuple(
            PlaceReading(tuple(rows), found.cell(rows[0], place.number).text)
            for rows in found.rows_by_value(place.number)
        )
        places.append(_weighed(found, place, readings, kinds.get(place.number, {})))
    return places


def heaviest_first(places: Sequence[WeighedPlace]) -> list[WeighedPlace]:
    """The places without those of layout, by weight. The same values at several places are one."""
    rows: dict[object, WeighedPlace] = {}
    for one in sorted(places, key=lambda one: (-one.weight, one.place.number)):
        if one.kind != LAYOUT:
            values = one.kind, *((folded(reading.text), reading.rows) for reading in one.readings)
            first = rows.setdefault(values, one)
            if first is not one:
                rows[values] = replace(first, also=(*first.also, one.place.number))
    return list(rows.values())


def _weighed(
    found: Collation, place: Place, readings: tuple[PlaceReading, ...], by_row: Mapping[int, set[str]]
) -> WeighedPlace:
    """``by_row``: the kinds of the facts that differ between the reference and the text of a row."""
    own, others = readings[0].text, [one.text for one in readings[1:]]
    sizes = [len(one.text.split()) for one in readings]
    kinds = set[str]().union(*(_between(own, one.text, by_row.get(row)) for one in readings[1:] for row in one.rows))
    if kinds <= _LIGHT:
        kind = max(kinds, key=_WEIGHTS.__getitem__)
        return WeighedPlace(place, kind, _WEIGHTS[kind], readings)
    contradict = own and any(others)  # otherwise only a negation is more than words that are missing
    if certain := kinds & (set(FACTS) if contradict else {"negation"}):
        kind = max(certain, key=_WEIGHTS.__getitem__)
        return WeighedPlace(place, kind, _WEIGHTS[kind] - min(max(sizes), 30) / 10, readings)
    if max(sizes) > _PASSAGE or (min(sizes) * 4 < max(sizes) >= _INSERTED):
        return WeighedPlace(place, PASSAGE, _WEIGHTS[PASSAGE] + min(max(sizes), 300) / 10, readings)
    if kind := _contradicting(found, readings):
        return WeighedPlace(place, kind, _WEIGHTS[kind] - _UNSURE, readings)
    figures = any(map(_FIGURE.search, [own, *others]))
    return WeighedPlace(place, WORDS, _WEIGHTS[WORDS] + _LACKING * figures + _REPLACED * ("word" in kinds), readings)


def _between(own: str, other: str, kinds: set[str] | None) -> set[str]:
    """The kinds of what differs between two readings. ``kinds``: of the places where facts or words differ, those that
    overlap or touch this one; None if there are none."""
    if kinds is None:
        return {LAYOUT if folded(own) == folded(other) else WORDS}
    if not differ_in_layout_only(own, other):  # the layout is that of a part, or of a moved passage
        return kinds - {LAYOUT} or {WORDS}
    others = kinds - {WORDS, "title"}  # the words are next to this place
    return others | {LAYOUT} if others < kinds else kinds


def _contradicting(found: Collation, readings: Sequence[PlaceReading]) -> str:
    """The kind of figures that differ among other words, and are nowhere else in the other text; "" for none."""
    own = set(_FIGURE.findall(with_plain_digits(readings[0].text)))
    for one in readings[1:]:
        its = set(_FIGURE.findall(with_plain_digits(one.text)))
        other = with_plain_digits(found.side(one.rows[0]).text)
        if own and its and own.isdisjoint(its) and not any(figure in other for figure in own):
            return "amount" if any(figure[0] in "$€£¥" for figure in own | its) else "number"
    return ""


def _kinds(found: Collation) -> dict[int, dict[int, set[str]]]:
    """Number of a place -> row -> kinds of the facts that differ there between the reference and the text of the row;
    `LAYOUT` if they differ in notation only, `WORDS` if in other words."""
    if not found.places:  # exact copies, or one text that is very long
        return {}
    starts = [one.characters[0] for one in found.places]
    ends = [one.characters[1] for one in found.places]
    kinds: dict[int, dict[int, set[str]]] = {}
    own = facts_of(found.reference)
    for row in range(1, len(found.rows)):
        for one in differences(own, facts_of(found.side(row))):
            start, end = one.a
            its = {kind.value for kind in one.kinds} or {LAYOUT if one.layout else WORDS}
            for place in range(bisect_left(ends, start), bisect_right(starts, end)):
                by_row = kinds.setdefault(found.places[place].number, {})
                by_row.setdefault(row, set()).update(its)
    return kinds
