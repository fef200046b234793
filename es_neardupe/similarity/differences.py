"""Differences of two aligned texts: the words outside their common passages, and the facts that differ in them.

Facts are numbers, dates, amounts, negations and names. They are found by patterns made for English texts; a capitalised
word is a name if its text has it capitalised inside a sentence.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from rapidfuzz.distance import Levenshtein

from es_neardupe.keys.arrays import U64, Flags, Ints
from es_neardupe.keys.text import Range
from es_neardupe.similarity.alignment import Alignment

_REFINED = 200
"""Maximum number of words of a gap that is divided into several changes. Words that longer gaps share are chance."""


class TextChange(NamedTuple):
    """Words of a that are replaced by words of b. A side may be empty: then it is a position between two words."""

    a: Range
    """The first word and the one after the last."""
    b: Range


def changes(a: U64, b: U64, alignment: Alignment) -> list[TextChange]:
    """The changes between the blocks of a literal alignment, sorted by position in a, then in b.

    The words between two passages that follow each other in both texts are one change, or several if they have words
    in common (Levenshtein 1966). The words between passages that follow each other in one text only are a change of
    that text alone. The beginnings and the ends of the texts count as passages.
    """
    paired, alone = _gaps(alignment, len(a), len(b))
    refined = [change for gap in paired for change in _refined(a, b, gap)]
    return sorted(refined + alone)


def characters(spans: Ints, words: Range) -> Range:
    """A range of words as a range of characters, given the `es_neardupe.keys.text.spans` of the text. An empty range of
    words becomes the position after the word before it."""
    first, end = words
    if first == end:
        at = int(spans[first - 1, 1]) if first else 0
        return at, at
    return int(spans[first, 0]), int(spans[end - 1, 1])


def _gaps(alignment: Alignment, size_a: int, size_b: int) -> tuple[list[TextChange], list[TextChange]]:
    """The words between adjacent blocks: of both texts, and of one text alone."""
    blocks = [(0, 0, 0), *map(tuple, alignment.blocks.tolist()), (size_a, size_b, 0)]
    inner = range(1, len(blocks) - 1)
    in_b = [0, *sorted(inner, key=lambda k: blocks[k][1]), len(blocks) - 1]
    after_in_b = dict(pairwise(in_b))
    paired, alone = [], []
    for k in range(len(blocks) - 1):
        end_a, end_b = blocks[k][0] + blocks[k][2], blocks[k][1] + blocks[k][2]
        gap_a, gap_b = (end_a, blocks[k + 1][0]), (end_b, blocks[after_in_b[k]][1])
        if after_in_b[k] == k + 1:
            paired.append(TextChange(gap_a, gap_b))
        else:
            alone += [TextChange(gap_a, (end_b, end_b)), TextChange((end_a, end_a), gap_b)]
    return [gap for gap in paired if _has_words(gap)], [gap for gap in alone if _has_words(gap)]


def _has_words(gap: TextChange) -> bool:
    return gap.a[0] < gap.a[1] or gap.b[0] < gap.b[1]


def _refined(a: U64, b: U64, gap: TextChange) -> Iterator[TextChange]:
    (start_a, end_a), (start_b, end_b) = gap
    if not (0 < end_a - start_a <= _REFINED and 0 < end_b - start_b <= _REFINED):
        yield gap
        return
    refined: list[TextChange] = []
    for step in Levenshtein.opcodes(a[start_a:end_a].tolist(), b[start_b:end_b].tolist()):
        if step.tag == "equal":
            continue
        part_a = start_a + step.src_start, start_a + step.src_end
        part_b = start_b + step.dest_start, start_b + step.dest_end
        if refined and refined[-1].a[1] == part_a[0] and refined[-1].b[1] == part_b[0]:
            last = refined.pop()
            part_a, part_b = (last.a[0], part_a[1]), (last.b[0], part_b[1])
        refined.append(TextChange(part_a, part_b))
    yield from refined


_MAX_FACT_WORDS = 8
"""Maximum number of words of a change, in each text, in which facts differ. A longer change is a rewritten passage."""
_MAX_NEGATION_WORDS = 4
"""The same for a change by which only a negation comes or goes."""
_MAX_OTHER_WORDS = 2
"""Maximum number of words of a change, in each text, that are not part of a fact."""
_NEIGHBOURS = 6
"""Words on each side of a change, of which with those of the other side at least half must be equal in both texts."""
_CONTEXT = 40
"""Characters around a change in which facts are searched: a change may be a part of a date or an amount."""
_MAX_EXTENSION = 8
"""Words by which a change is extended on each side, to include all of ``2.0.1`` or ``$45,000``."""


class Kind(str, Enum):
    """Kind of a fact."""

    AMOUNT = "amount"
    DATE = "date"
    NUMBER = "number"
    NEGATION = "negation"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class Fact:
    """Facts that differ between two near-copies in one place."""

    kinds: tuple[Kind, ...]
    a: Range
    """Characters of the original text. An empty range is a position."""
    b: Range
    words_a: str
    """The text of range ``a``."""
    words_b: str


def _any(words: str) -> str:
    """A pattern of any of these words, as written or in capitals."""
    return "(?:" + "|".join(sorted({*words.split(), *words.upper().split()}, key=len, reverse=True)) + ")"


_MONTH = rf"\b{_any('January February March April May June July August September October November December')}\b"
_SHORT_MONTH = rf"\b{_any('Jan Feb Mar Apr Jun Jul Aug Sep Sept Oct Nov Dec')}\b\.?"
_WEEKDAY = rf"\b{_any('Monday Tuesday Wednesday Thursday Friday Saturday Sunday')}\b"
_DAY = r"\d{1,2}(?:st|nd|rd|th)?\b"
_YEAR = r"\d{4}\b"
_ANY_MONTH = rf"(?:{_MONTH}|{_SHORT_MONTH})"
_PATTERNS: dict[Kind, re.Pattern[str]] = {
    Kind.DATE: re.compile(
        rf"\b{_DAY}\.?\s+(?:of\s+)?{_ANY_MONTH}(?:,?\s+{_YEAR})?|{_ANY_MONTH}\s+{_DAY}(?:,?\s+{_YEAR})?"
        rf"|{_ANY_MONTH},?\s+{_YEAR}|{_MONTH}|{_WEEKDAY}"
        rf"|\b\d{{4}}-\d\d-\d\d\b|\b\d{{1,2}}[/.]\d{{1,2}}[/.]\d{{2,4}}\b"
    ),
    Kind.AMOUNT: re.compile(
        r"[$€£¥]\s?\d[\d.,]*\d?(?:\s+(?:thousand|million|billion|trillion)\b)?"
        r"|\b\d[\d.,]*\s*(?:%|(?:percent|per\s+cent|dollars?|euros?|pounds|thousand|million|billion|trillion"
        r"|USD|EUR|GBP)\b)",
        re.IGNORECASE,
    ),
    Kind.NUMBER: re.compile(
        r"\w*\d+(?:[.,:/'’-]?\w+)*"
        r"|\b(?:two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|thirteen|fourteen|fifteen|sixteen|seventeen"
        r"|eighteen|nineteen|twenty|thirty|forty|fifty|sixty|seventy|eighty|ninety|hundred|thousand|million|billion"
        r"|dozen|half|twice|double)\b",
        re.IGNORECASE,
    ),
    Kind.NEGATION: re.compile(
        r"\b(?:no|not|never|none|nor|neither|nobody|nothing|nowhere|without|cannot|unable|unless|except|excluding)\b"
        r"|n['’]t\b",
        re.IGNORECASE,
    ),
}
"""In order of precedence: a number in a date or an amount is part of that fact."""

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_JOINT = re.compile(r"[.,:/'’+@&-]")
_SENTENCE_END = re.compile(r"(?:[.!?:;\n\r\"“”(*•]|--)\s*$")
_PRONOUNS = ("I", "I'm", "I’m")
_AROUND, _LOWER = 3, 2
"""Of so many words before and after a name, at least so many begin with a small letter."""
_THOUSANDS = re.compile(r"(?<=\d),(?=\d{3}\b)")
_BEFORE, _AFTER = re.compile(r"[$€£¥+-]$"), re.compile(r"^\s?%")


class _FactsAt(NamedTuple):
    """The facts in a range of characters."""

    values: Mapping[Kind, list[str]]
    """Normalised, in order."""
    places: Sequence[Range]


def facts(texts: tuple[str, str], spans: tuple[Ints, Ints], changes: Sequence[TextChange]) -> Iterator[Fact]:
    """The facts that differ, in order. ``spans``: int64[words, 2] of each text.

    A change is a differing fact if each text has a fact of the same kind there and hardly any other words, and if it is
    surrounded by equal words: in a rewritten sentence, or after unrelated endings, two facts have no relation. A
    negation may be in one text only.
    """
    short = [one for one in changes if _longer(one) <= _MAX_FACT_WORDS]
    if not short:
        return
    names = _names(texts[0]), _names(texts[1])
    changed = _changed(changes, spans)
    for change in _merged(extended(one, texts, spans) for one in short):
        surrounded, at_an_end = _surroundings(change, changed)
        if not surrounded or _longer(change) > _MAX_FACT_WORDS:
            continue
        places = tuple(
            characters_with_signs(text, its, words) for text, its, words in zip(texts, spans, change, strict=True)
        )
        in_a, in_b = (_facts_at(text, place, known) for text, place, known in zip(texts, places, names, strict=True))
        words_a, words_b = (text[start:end] for text, (start, end) in zip(texts, places, strict=True))
        if _letters(words_a) == _letters(words_b):
            continue  # written in another way, such as "JeffersonCounty"
        others = max(_words_outside(in_a.places, spans[0], change.a), _words_outside(in_b.places, spans[1], change.b))
        if kinds := tuple(_kinds(in_a.values, in_b.values, change, others, at_an_end=at_an_end)):
            yield Fact(kinds, places[0], places[1], words_a, words_b)


def _longer(change: TextChange) -> int:
    return max(change.a[1] - change.a[0], change.b[1] - change.b[0])


def _changed(changes: Iterable[TextChange], spans: tuple[Ints, Ints]) -> tuple[Flags, Flags]:
    """Whether each word of a text is in a change: bool[words] of each text."""
    flags = np.zeros(len(spans[0]), bool), np.zeros(len(spans[1]), bool)
    for change in changes:
        for flag, (first, end) in zip(flags, change, strict=True):
            flag[first:end] = True
    return flags


def _surroundings(change: TextChange, changed: tuple[Flags, Flags]) -> tuple[bool, bool]:
    """Whether a change is surrounded by equal words, and whether it begins or ends both texts."""
    starts = [first > 0 for first, _ in change]
    ends = [end < len(flags) for (_, end), flags in zip(change, changed, strict=True)]
    if starts[0] != starts[1] or ends[0] != ends[1] or not (starts[0] or ends[0]):
        return False, False
    for (first, end), flags in zip(change, changed, strict=True):
        before, after = flags[max(first - _NEIGHBOURS, 0) : first], flags[end : end + _NEIGHBOURS]
        neighbours = np.concatenate([before, after])
        touched = before[-1:].any() or after[:1].any()
        if touched or 2 * np.count_nonzero(neighbours) > len(neighbours):
            return False, False
    return True, not (starts[0] and ends[0])


def _kinds(
    a: Mapping[Kind, list[str]], b: Mapping[Kind, list[str]], change: TextChange, others: int, *, at_an_end: bool
) -> Iterator[Kind]:
    """The kinds of facts that differ. ``others``: words that are not part of a fact, in the text that has more."""
    as_many = change.a[1] - change.a[0] == change.b[1] - change.b[0]
    for kind in Kind:
        in_a, in_b = a.get(kind), b.get(kind)
        if in_a == in_b:
            continue
        if kind is Kind.NEGATION:
            if _longer(change) <= _MAX_NEGATION_WORDS and not at_an_end:
                yield kind
        elif in_a and in_b and others <= _MAX_OTHER_WORDS and (not at_an_end or (as_many and not others)):
            yield kind


def _words_outside(places: Sequence[Range], spans: Ints, words: Range) -> int:
    return sum(not _in_any(start, end, places) for start, end in spans[words[0] : words[1]].tolist())


def _letters(text: str) -> str:
    """The letters and digits of a text without digits; other texts as they are, since 1.5 is not 15."""
    return text if any(map(str.isdigit, text)) else "".join(filter(str.isalnum, text.casefold()))


def fact_kinds(text: str, places: Sequence[Range]) -> list[tuple[Kind, ...]]:
    """The kinds of the facts in each of some ranges of characters."""
    names = _names(text) if places else frozenset()
    found = (_facts_at(text, place, names).values for place in places)
    return [tuple(kind for kind in Kind if kind in one) for one in found]


def extended(change: TextChange, texts: tuple[str, str], spans: tuple[Ints, Ints]) -> TextChange:
    """Extend a change, equally in both texts, while it begins or ends inside a unit such as ``45,000`` or ``don't``."""
    (a, end_a), (b, end_b) = change

    def inside_unit(word_a: int, word_b: int) -> bool:
        in_a = a < end_a and _is_joined(texts[0], spans[0], word_a)
        return in_a or (b < end_b and _is_joined(texts[1], spans[1], word_b))

    for _ in range(_MAX_EXTENSION):
        if not (a and b and inside_unit(a, b)):
            break
        a, b = a - 1, b - 1
    for _ in range(_MAX_EXTENSION):
        if end_a >= len(spans[0]) or end_b >= len(spans[1]) or not inside_unit(end_a, end_b):
            break
        end_a, end_b = end_a + 1, end_b + 1
    return TextChange((a, end_a), (b, end_b))


def _is_joined(text: str, spans: Ints, word: int) -> bool:
    """Whether only a sign such as a comma or an apostrophe separates a word from the one before it."""
    return bool(_JOINT.fullmatch(text[spans[word - 1, 1] : spans[word, 0]]))


def _merged(changes: Iterable[TextChange]) -> Iterator[TextChange]:
    """Merge changes that overlap after they were extended."""
    current: TextChange | None = None
    for change in changes:
        if current and (change.a[0] < current.a[1] or change.b[0] < current.b[1]):
            ends = max(current.a[1], change.a[1]), max(current.b[1], change.b[1])
            starts = min(current.a[0], change.a[0]), min(current.b[0], change.b[0])
            current = TextChange((starts[0], ends[0]), (starts[1], ends[1]))
            continue
        if current:
            yield current
        current = change
    if current:
        yield current


def characters_with_signs(text: str, spans: Ints, words: Range) -> Range:
    """The range of characters of some words, including the signs that belong to a number."""
    start, stop = characters(spans, words)
    if start == stop:
        return start, stop
    if text[start].isdigit() and _BEFORE.search(text[max(start - 1, 0) : start]):
        start -= 1
    if text[stop - 1].isdigit() and (after := _AFTER.match(text[stop : stop + 2])):
        stop += after.end()
    return start, stop


def _facts_at(text: str, place: Range, names: frozenset[str]) -> _FactsAt:
    """The facts in a range of characters, or partly in it."""
    start, end = place
    found: dict[Kind, list[str]] = {}
    taken: list[Range] = []
    if start == end:
        return _FactsAt(found, taken)
    low, high = max(start - _CONTEXT, 0), min(end + _CONTEXT, len(text))
    window = text[low:high]
    for kind, pattern in _PATTERNS.items():
        for match in pattern.finditer(window):
            first, last = match.start() + low, match.end() + low
            if first < end and start < last and not _in_any(first, last, taken):
                found.setdefault(kind, []).append(_THOUSANDS.sub("", " ".join(match[0].lower().split())))
                taken.append((first, last))
    for match in _WORD.finditer(text, start, end):
        name = match[0]
        if name[0].isupper() and name.lower() in names and not _in_any(match.start(), match.end(), taken):
            found.setdefault(Kind.NAME, []).append(name.lower())
            taken.append(match.span())
    return _FactsAt(found, taken)


def _in_any(start: int, end: int, ranges: Iterable[Range]) -> bool:
    return any(first < end and start < last for first, last in ranges)


def _names(text: str) -> frozenset[str]:
    """The words, in lower case, that are capitalised inside a sentence and never occur in lower case. Words in capitals
    throughout are ignored, since headings have them, and so are words among capitalised ones only, as in titles."""
    found, common = set(), set()
    matches = list(_WORD.finditer(text))
    lower = [match[0][0].islower() for match in matches]
    for number, match in enumerate(matches):
        word = match[0]
        if lower[number]:
            common.add(word)
        elif not (len(word) > 1 and word.isupper()) and word not in _PRONOUNS and word.lower() not in found:
            around = lower[max(number - _AROUND, 0) : number + _AROUND + 1]
            before = max(match.start() - 4, 0)
            inside = not _SENTENCE_END.search(text[before : match.start()] if before else f".{text[: match.start()]}")
            if inside and sum(around) >= _LOWER:
                found.add(word.lower())
    return frozenset(found - common)
