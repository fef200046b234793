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

from rapidfuzz.distance import Levenshtein

from es_neardupe.keys.arrays import U64, Ints
from es_neardupe.keys.text import Range
from es_neardupe.similarity.alignment import Alignment

__all__ = [
    "MAX_FACT_WORDS",
    "Fact",
    "Kind",
    "TextChange",
    "changes",
    "characters",
    "characters_with_signs",
    "extended",
    "fact_kinds",
    "facts",
]

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


MAX_FACT_WORDS = 20
"""Maximum number of words of a change in which facts differ. A longer change is another passage, not another fact."""
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
_BEFORE, _AFTER = re.compile(r"[$€£¥+-]$"), re.compile(r"^\s?%")


def facts(texts: tuple[str, str], spans: tuple[Ints, Ints], changes: Sequence[TextChange]) -> Iterator[Fact]:
    """The facts that differ in changes of up to 20 words, in order. ``spans``: int64[words, 2] of each text."""
    names = tuple(_names(text) for text in texts) if changes else ()
    short = [one for one in changes if max(one.a[1] - one.a[0], one.b[1] - one.b[0]) <= MAX_FACT_WORDS]
    for change in _merged(extended(one, texts, spans) for one in short):
        places = tuple(
            characters_with_signs(text, its, words) for text, its, words in zip(texts, spans, change, strict=True)
        )
        in_a, in_b = (_facts_at(text, place, known) for text, place, known in zip(texts, places, names, strict=True))
        kinds = tuple(kind for kind in Kind if in_a.get(kind) != in_b.get(kind))
        if kinds:
            words = [text[start:end] for text, (start, end) in zip(texts, places, strict=True)]
            yield Fact(kinds, places[0], places[1], words[0], words[1])


def fact_kinds(text: str, places: Sequence[Range]) -> list[tuple[Kind, ...]]:
    """The kinds of the facts in each of some ranges of characters."""
    names = _names(text) if places else frozenset()
    found = (_facts_at(text, place, names) for place in places)
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


def _facts_at(text: str, place: Range, names: frozenset[str]) -> Mapping[Kind, list[str]]:
    """The normalised facts in a range of characters, by kind."""
    start, end = place
    if start == end:
        return {}
    low, high = max(start - _CONTEXT, 0), min(end + _CONTEXT, len(text))
    window = text[low:high]
    found: dict[Kind, list[str]] = {}
    taken: list[Range] = []
    for kind, pattern in _PATTERNS.items():
        for match in pattern.finditer(window):
            first, last = match.start() + low, match.end() + low
            if first < end and start < last and not _in_any(first, last, taken):
                found.setdefault(kind, []).append(" ".join(match[0].lower().split()))
                taken.append((first, last))
    for match in _WORD.finditer(text, start, end):
        name = match[0]
        if name[0].isupper() and name.lower() in names and not _in_any(match.start(), match.end(), taken):
            found.setdefault(Kind.NAME, []).append(name.lower())
    return found


def _in_any(start: int, end: int, ranges: Iterable[Range]) -> bool:
    return any(first < end and start < last for first, last in ranges)


def _names(text: str) -> frozenset[str]:
    """The words, in lower case, that are capitalised inside a sentence and never occur in lower case. Words in capitals
    throughout are ignored, since headings have them."""
    found, common = set(), set()
    for match in _WORD.finditer(text):
        word = match[0]
        if word[0].islower():
            common.add(word)
        elif not (len(word) > 1 and word.isupper()) and word not in _PRONOUNS:
            before = max(match.start() - 4, 0)
            if not _SENTENCE_END.search(text[before : match.start()] if before else f".{text[: match.start()]}"):
                found.add(word.lower())
    return frozenset(found - common)
