"""Collation of similar texts: one of them, the reference, with every place where another text differs, and a table of
what each text has there. 200 form letters are one letter, and a table of towns and amounts.

The differences are those of `es_neardupe.similarity.differences`, between the reference and each other text. Words
count, as in all comparisons: texts that differ only in case and punctuation are equal.
"""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from enum import Enum

import numpy as np
from rapidfuzz.distance import Levenshtein

from es_neardupe.errors import SettingsError
from es_neardupe.keys.arrays import U64, Flags, Ints
from es_neardupe.keys.prepare.placed import PlacedText
from es_neardupe.keys.shingles import span_hashes, token_hashes
from es_neardupe.keys.text import Range
from es_neardupe.options import FactKind
from es_neardupe.records import one_line
from es_neardupe.similarity.alignment import DEFAULT_MIN_WORDS, Alignment, literal
from es_neardupe.similarity.comparison import Side, facts_of, side_of
from es_neardupe.similarity.differences import TextChange, changes, characters_with_signs, extended
from es_neardupe.similarity.facts.present import fact_kinds

_SHORT_WORDS = 20
"""Maximum number of words of a short difference. A longer one is another passage, with a place of its own."""

MAX_TEXTS = 201
"""Maximum number of texts: the reference and 200 others."""

MAX_WORDS = 500_000
"""Maximum number of words of all distinct texts together. Texts beyond it are left out; the reference never is."""

_EDITED = 1_000
"""Maximum number of differing words of two texts with moved passages that are also compared word by word. It bounds
time and memory."""

_RARE = 0.05
"""Maximum share of the texts that have a rare value."""


class CellKind(str, Enum):
    """What a text has in a place."""

    SAME = "same"
    """The words of the reference, or no words, as the reference."""
    OTHER = "other"
    """Other words."""
    NOTHING = "nothing"
    """No words; the reference has some."""
    ADDED = "added"
    """Words; the reference has none."""


@dataclass(frozen=True, slots=True)
class Place:
    """A place of the reference where at least one text differs."""

    number: int
    """From 1, in the order of the reference."""
    words: Range
    """An empty range is a position between two words."""
    characters: Range
    """The same in characters, with the signs of an amount."""
    text: str
    values: int
    """Number of different values of all texts."""


@dataclass(frozen=True, slots=True)
class Cell:
    """What a text has in a place."""

    kind: CellKind
    words: Range
    """Words of this text."""
    text: str
    """As written in this text."""
    unusual: bool
    """Whether the value is rare in this place: at most 5 % of the texts have it, or a single one, and at least half of
    the texts have values that are not rare."""


@dataclass(frozen=True)
class Collation:
    """A reference text, and what other texts have in the places where any of them differs.

    Between the places, all texts have the same words. So each text consists of the words of the reference between the
    places and of the cells of its row, in this order.
    """

    places: tuple[Place, ...]
    rows: tuple[tuple[int, ...], ...]
    """The texts, by their numbers (0: the reference). Texts with the same words have one row; the first is that of the
    reference."""
    left_out: tuple[int, ...]
    """Texts beyond `MAX_WORDS`, which have no row."""
    _sides: tuple[Side, ...] = field(repr=False, compare=False)
    """The first text of each row."""
    _bounds: Ints = field(repr=False, compare=False)
    """Words of each text in each place: int64[rows, places, 2]."""
    _values: U64 = field(repr=False, compare=False)
    """Hash of these words, 0 for none: uint64[rows, places]."""
    _unusual: Flags = field(repr=False, compare=False)
    """bool[rows, places]"""

    def __repr__(self) -> str:
        return one_line(self, places=len(self.places), rows=len(self.rows), left_out=len(self.left_out))

    @property
    def reference(self) -> Side:
        """The reference text."""
        return self._sides[0]

    def side(self, row: int) -> Side:
        """The first text of a row."""
        return self._sides[row]

    def rows_by_value(self, number: int) -> list[list[int]]:
        """The rows that have the same words in the place of this number: first that of the reference, then by their
        number of texts."""
        found: dict[int, list[int]] = {}
        for row, value in enumerate(self._values[:, number - 1].tolist()):
            found.setdefault(value, []).append(row)
        own, *others = found.values()
        return [own, *sorted(others, key=lambda some: -sum(len(self.rows[row]) for row in some))]

    def cell(self, row: int, number: int) -> Cell:
        """What the texts of a row have in the place of this number."""
        place, side = number - 1, self._sides[row]
        first, end = self._bounds[row, place].tolist()
        value, of_reference = self._values[row, place], self._values[0, place]
        if value == of_reference:
            kind = CellKind.SAME
        elif first == end:
            kind = CellKind.NOTHING
        else:
            kind = CellKind.OTHER if of_reference else CellKind.ADDED
        start, stop = characters_with_signs(side.text, side.spans, (first, end))
        return Cell(kind, (first, end), side.text[start:stop], bool(self._unusual[row, place]))

    def kinds(self, places: Sequence[Place]) -> list[tuple[FactKind, ...]]:
        """The kinds of the facts that the reference has in some places; none in a longer passage."""
        short = [one.characters for one in places if _is_short(one.words)]
        found = iter(fact_kinds(facts_of(self.reference), short) if short else ())
        return [next(found) if _is_short(one.words) else () for one in places]


def collate(texts: Sequence[str | PlacedText], *, passage: int = DEFAULT_MIN_WORDS) -> Collation:
    """Collate texts; the first is the reference. ``passage``: minimum number of words in a common passage.

    Differences of several texts that overlap or touch in the reference are one place, extended to whole units such as
    ``$45,000``. A difference of more than 20 words is not merged with shorter ones: if it contains the places of
    others, it is divided there, so that a text without a paragraph does not hide the facts in it. A passage that was
    moved is nothing in one place and added in another.

    Raises `SettingsError` for no text or more than `MAX_TEXTS`, `InputError` for a text that is too long to compare.
    """
    if not 1 <= len(texts) <= MAX_TEXTS:
        raise SettingsError(f"A collation has 1 to {MAX_TEXTS} texts, not {len(texts)}.")
    hashes = token_hashes([one if isinstance(one, str) else one.prepared for one in texts])
    rows, left_out = _rows(hashes)
    distinct = [hashes[row[0]] for row in rows]
    sides = tuple(side_of(str(row[0]), texts[row[0]]) for row in rows)
    differing = [changes(distinct[0], other, _passages(distinct[0], other, passage)) for other in distinct]
    short, long = [], []
    for side, found in zip(sides, differing, strict=True):
        for one in found:
            if _is_short(one.a) and _is_short(one.b):
                whole = extended(one, (sides[0].text, side.text), (sides[0].spans, side.spans))
                short.append(whole.a)
            else:
                long.append(one.a)
    columns = _Columns.of(_united(short), _united(long))
    bounds = np.stack([columns.bounds(found, len(distinct[0])) for found in differing])
    values = np.stack([_values(words, its) for words, its in zip(distinct, bounds, strict=True)])
    unusual, counts = _unusual(values, np.array([len(row) for row in rows]))
    differ = np.flatnonzero(counts > 1)  # not a part of a long change in which all texts are equal
    bounds, values, unusual = bounds[:, differ], values[:, differ], unusual[:, differ]
    places = []
    for number, column in enumerate(differ.tolist(), 1):
        words = columns.ranges[column]
        start, end = characters_with_signs(sides[0].text, sides[0].spans, words)
        places.append(Place(number, words, (start, end), sides[0].text[start:end], int(counts[column])))
    return Collation(tuple(places), rows, left_out, sides, bounds, values, unusual)


def _is_short(words: Range) -> bool:
    return words[1] - words[0] <= _SHORT_WORDS


def _rows(hashes: Sequence[U64]) -> tuple[tuple[tuple[int, ...], ...], tuple[int, ...]]:
    """The numbers of the texts of each row, and those that are left out."""
    rows: dict[bytes, list[int]] = {}
    left_out = []
    words = 0
    for number, one in enumerate(hashes):
        content = one.tobytes()
        if content not in rows:
            if number and words + len(one) > MAX_WORDS:
                left_out.append(number)
                continue
            words += len(one)
        rows.setdefault(content, []).append(number)
    return tuple(map(tuple, rows.values())), tuple(left_out)


def _passages(a: U64, b: U64, minimum: int) -> Alignment:
    """The passages that follow each other in both texts, with as many words as possible.

    In a text that repeats its blocks, the longest passage is often that of a block and of the one after it: then a
    single word would move all blocks after it. So what both texts begin and end with is cut off first. If passages
    between seem to be moved, those between the fewest differing words are taken instead, if they have more words.
    """
    first = _common(a, b, minimum)
    last = _common(a[first:][::-1], b[first:][::-1], minimum)
    size_a, size_b = len(a) - last, len(b) - last
    middle = a[first:size_a], b[first:size_b]
    tiles = literal(*middle, minimum).blocks
    inner = _in_order(tiles)
    if len(inner) < len(tiles):
        others = max(map(len, middle)) - _words(inner)
        inner = max(inner, _edited(*middle, minimum, min(others, _EDITED)), key=_words)
    ends = np.array([(0, 0, first), (size_a, size_b, last)], np.int64)
    blocks = np.concatenate((ends[:1], np.add(inner, (first, first, 0)), ends[1:]))
    return Alignment((len(a), len(b)), _words(blocks), blocks[blocks[:, 2] > 0])


def _words(blocks: Ints) -> int:
    return int(blocks[:, 2].sum())


def _common(a: U64, b: U64, minimum: int) -> int:
    """The number of words that both texts begin with; 0 for fewer than ``minimum``."""
    size = min(len(a), len(b))
    different = np.flatnonzero(a[:size] != b[:size])
    words = int(different[0]) if different.size else size
    return words if words >= minimum else 0


def _in_order(blocks: Ints) -> Ints:
    """The blocks that follow each other in both texts, with as many words as possible."""
    if (np.diff(blocks[:, 1]) > 0).all():
        return blocks
    # Best chains by the place in b of their last block: later places only with more words.
    places: list[int] = []
    best: list[tuple[int, int]] = []
    before: list[int] = []
    for number, (_, place, size) in enumerate(blocks.tolist()):
        at = bisect_left(places, place)
        words, previous = best[at - 1] if at else (0, -1)
        before.append(previous)
        end = at
        while end < len(best) and best[end][0] <= words + size:
            end += 1
        places[at:end], best[at:end] = [place], [(words + size, number)]
    chosen = []
    last = best[-1][1]
    while last >= 0:
        chosen.append(last)
        last = before[last]
    return blocks[chosen[::-1]]


def _edited(a: U64, b: U64, minimum: int, limit: int) -> Ints:
    """The blocks of at least ``minimum`` words between the fewest words that differ (Levenshtein 1966); none if these
    are more than ``limit``."""
    words = a.tolist(), b.tolist()
    distance = Levenshtein.distance(*words, score_cutoff=limit)
    found = Levenshtein.opcodes(*words, score_hint=distance).as_matching_blocks() if distance <= limit else []
    return np.array([one for one in found if one.size >= minimum], np.int64).reshape(-1, 3)


def _united(ranges: Iterable[Range]) -> list[Range]:
    """The unions of ranges that overlap or touch, in order."""
    united: list[Range] = []
    for start, end in sorted(set(ranges)):
        if united and start <= united[-1][1]:
            united[-1] = united[-1][0], max(united[-1][1], end)
        else:
            united.append((start, end))
    return united


@dataclass(frozen=True)
class _Columns:
    """The places as ranges of words of the reference: disjoint, in order; every change lies in adjoining ones."""

    ranges: list[Range]
    short: list[int]
    """Numbers of the places of short changes."""
    long: list[int]
    """Numbers of the other ones: parts of long changes."""

    @classmethod
    def of(cls, short: Sequence[Range], long: Sequence[Range]) -> _Columns:
        """The places of short changes, and the rest of the long ones."""
        starts = [start for start, _ in short]
        parts = []
        for start, end in long:
            after = bisect_right(starts, end)
            inside = [one for one in short[max(bisect_right(starts, start) - 1, 0) : after] if one[1] >= start]
            if start == end:
                if not any(first < start < last or first == last for first, last in inside):
                    parts.append((start, end))
                continue
            place = start
            for first, last in inside:
                if place < first:
                    parts.append((place, first))
                place = max(place, last)
            if place < end:
                parts.append((place, end))
        marked = sorted([(one, 0) for one in short] + [(one, 1) for one in parts])
        numbers: tuple[list[int], list[int]] = [], []
        for number, (_, kind) in enumerate(marked):
            numbers[kind].append(number)
        return cls([one for one, _ in marked], *numbers)

    def bounds(self, found: Sequence[TextChange], words: int) -> Ints:
        """The words of a text in each place, int64[places, 2], given its changes. ``words``: those of the reference."""
        a, b = (np.array([one[side] for one in found], np.int64).reshape(-1, 2) for side in (0, 1))
        edges = np.bincount(a[:, 0], minlength=words + 1) - np.bincount(a[:, 1], minlength=words + 1)
        replaced = np.append(0, np.cumsum(np.cumsum(edges)[:-1]))
        starts, ends = np.array(self.ranges, np.int64).reshape(-1, 2).T
        kept = (ends - starts) - (replaced[ends] - replaced[starts])
        lengths = kept + np.bincount(self._numbers(a, b), b[:, 1] - b[:, 0], len(self.ranges)).astype(np.int64)
        shift = np.cumsum(lengths - (ends - starts))
        return np.stack((ends + shift - lengths, ends + shift), axis=1)

    def _numbers(self, a: Ints, b: Ints) -> Ints:
        """The place that has the words of b, for each change. The other places of the change have nothing instead of
        words of a."""
        starts, ends = np.array([self.ranges[one] for one in self.short], np.int64).reshape(-1, 2).T
        at = np.searchsorted(starts, a[:, 0], side="right") - 1
        # A long change may begin before the place of a short one, and have no other place.
        at += (at < 0) | ((a[:, 0] < a[:, 1]) & (np.append(ends, 0)[at] <= a[:, 0]))
        numbers = np.append(self.short, -1).astype(np.int64)[at]
        long_ends = [self.ranges[one][1] for one in self.long]
        for change in np.flatnonzero(np.maximum(a[:, 1] - a[:, 0], b[:, 1] - b[:, 0]) > _SHORT_WORDS).tolist():
            start, end = a[change].tolist()
            place = bisect_left(long_ends, start)
            for number in self.long[place : place + 2]:
                first, last = self.ranges[number]
                if (first < end and start < last) or (start == end and first <= start <= last):
                    numbers[change] = number
                    break
        return numbers


def _values(words: U64, bounds: Ints) -> U64:
    starts, ends = bounds.T
    found = np.zeros(len(bounds), np.uint64)
    filled = starts < ends
    if filled.any():
        found[filled] = span_hashes(words, starts[filled], ends[filled])
    return found


def _unusual(values: U64, sizes: Ints) -> tuple[Flags, Ints]:
    """Whether each value is unusual, and the number of different values of each place. ``sizes``: texts of each row."""
    of_texts = np.repeat(values, sizes, axis=0)
    texts, places = of_texts.shape
    order = np.argsort(of_texts, axis=0, kind="stable")
    ordered = np.take_along_axis(of_texts, order, axis=0)
    begins = np.ones(ordered.shape, np.bool_)
    begins[1:] = ordered[1:] != ordered[:-1]
    runs = np.cumsum(begins, axis=0) - 1 + np.arange(places) * texts
    rare = np.bincount(runs.ravel(), minlength=1)[runs] <= max(1, _RARE * texts)
    rare &= 2 * (~rare).sum(axis=0) >= texts
    unusual = np.empty_like(rare)
    np.put_along_axis(unusual, order, rare, axis=0)
    return unusual[np.cumsum(sizes) - sizes], begins.sum(axis=0)
