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

__all__ = ["Fact", "Kind", "TextChange", "changes", "characters", "facts"]

_REFINED = 200
"""Longer gaps are one change: words that they share by chance mean nothing."""


class TextChange(NamedTuple):
    """Words of a in whose place b has others. One side may be empty: then it is a place between two words."""

    a: Range
    """First word and the one after the last."""
    b: Range


def changes(a: U64, b: U64, alignment: Alignment) -> list[TextChange]:
    """What lies outside the blocks of a literal alignment, by its place in a, then in b.

    Words between two passages that follow each other in both texts are one change, or several where they have
    words in common (Levenshtein 1966). Words between passages that follow each other in one text only are a change
    of that text alone. The beginnings and the ends of the texts count as passages.
    """
    paired, alone = _gaps(alignment, len(a), len(b))
    refined = [change for gap in paired for change in _refined(a, b, gap)]
    return sorted(refined + alone)


def characters(spans: Ints, words: Range) -> Range:
    """A range of words in characters of the text (`es_neardupe.keys.text.spans`); an empty one is a place behind the
    word before it."""
    first, end = words
    if first == end:
        at = int(spans[first - 1, 1]) if first else 0
        return at, at
    return int(spans[first, 0]), int(spans[end - 1, 1])


def _gaps(alignment: Alignment, size_a: int, size_b: int) -> tuple[list[TextChange], list[TextChange]]:
    """The words between neighbouring blocks: of both texts, and of one alone."""
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
    return [gap for gap in paired if _holds(gap)], [gap for gap in alone if _holds(gap)]


def _holds(gap: TextChange) -> bool:
    return gap.a[0] < gap.a[1] or gap.b[0] < gap.b[1]


def _refined(a: U64, b: U64, gap: TextChange) -> Iterator[TextChange]:
    (start_a, end_a), (start_b, end_b) = gap
    if not (0 < end_a - start_a <= _REFINED and 0 < end_b - start_b <= _REFINED):
        yield gap
        return
    found: list[TextChange] = []
    for step in Levenshtein.opcodes(a[start_a:end_a].tolist(), b[start_b:end_b].tolist()):
        if step.tag == "equal":
            continue
        part_a = start_a + step.src_start, start_a + step.src_end
        part_b = start_b + step.dest_start, start_b + step.dest_end
        if found and found[-1].a[1] == part_a[0] and found[-1].b[1] == part_b[0]:
            last = found.pop()
            part_a, part_b = (last.a[0], part_a[1]), (last.b[0], part_b[1])
        found.append(TextChange(part_a, part_b))
    yield from found


_LONGEST = 20
"""Words: a longer change is another passage, not another fact."""
_CONTEXT = 40
"""Characters around a change that show what it is a part of."""
_MAX_GROWN = 8
"""Words on each side that a change grows by, to the whole of ``2.0.1`` or ``$45,000``."""


class Kind(str, Enum):
    """What kind of fact differs."""

    AMOUNT = "amount"
    DATE = "date"
    NUMBER = "number"
    NEGATION = "negation"
    NAME = "name"


@dataclass(frozen=True, slots=True)
class Fact:
    """A place where two near-copies differ materially."""

    kinds: tuple[Kind, ...]
    a: Range
    """Characters of the original text: the first, and the one after the last; an empty range is a place."""
    b: Range
    words_a: str
    """The characters of that range."""
    words_b: str


def _any(words: str) -> str:
    """A pattern of any of these words, as they are or in capitals."""
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
"""A number that is a part of a date or an amount is one fact, of that kind."""

_WORD = re.compile(r"[^\W\d_]+(?:['’-][^\W\d_]+)*")
_JOINT = re.compile(r"[.,:/'’+@&-]")
_SENTENCE_END = re.compile(r"(?:[.!?:;\n\r\"“”(*•]|--)\s*$")
_PRONOUNS = ("I", "I'm", "I’m")
_BEFORE, _AFTER = re.compile(r"[$€£¥+-]$"), re.compile(r"^\s?%")


def facts(texts: tuple[str, str], spans: tuple[Ints, Ints], changes: Sequence[TextChange]) -> Iterator[Fact]:
    """The changes of up to 20 words in which facts differ, by their places. ``spans``: int64[words, 2] of each text."""
    names = tuple(_names(text) for text in texts) if changes else ()
    short = [one for one in changes if max(one.a[1] - one.a[0], one.b[1] - one.b[0]) <= _LONGEST]
    for change in _joined(_grown(one, texts, spans) for one in short):
        places = tuple(_characters(text, its, words) for text, its, words in zip(texts, spans, change, strict=True))
        found = [_facts_at(text, place, known) for text, place, known in zip(texts, places, names, strict=True)]
        kinds = tuple(kind for kind in Kind if found[0].get(kind) != found[1].get(kind))
        if kinds:
            words = [text[start:end] for text, (start, end) in zip(texts, places, strict=True)]
            yield Fact(kinds, places[0], places[1], words[0], words[1])


def _grown(change: TextChange, texts: tuple[str, str], spans: tuple[Ints, Ints]) -> TextChange:
    """Grow a change, alike on both sides, while it ends inside of what is written as one: ``45,000``, ``don't``."""
    (a, end_a), (b, end_b) = change
    for _ in range(_MAX_GROWN):
        if not (a and b and (_one(texts[0], spans[0], a, a < end_a) or _one(texts[1], spans[1], b, b < end_b))):
            break
        a, b = a - 1, b - 1
    for _ in range(_MAX_GROWN):
        inside = end_a < len(spans[0]) and end_b < len(spans[1])
        if not (inside and (_one(texts[0], spans[0], end_a, a < end_a) or _one(texts[1], spans[1], end_b, b < end_b))):
            break
        end_a, end_b = end_a + 1, end_b + 1
    return TextChange((a, end_a), (b, end_b))


def _one(text: str, spans: Ints, word: int, changed: bool) -> bool:
    """Whether a word and the one before it are written as one, and one of them is in the change."""
    return changed and bool(_JOINT.fullmatch(text[spans[word - 1, 1] : spans[word, 0]]))


def _joined(changes: Iterable[TextChange]) -> Iterator[TextChange]:
    """Changes that have grown into each other become one."""
    waiting: TextChange | None = None
    for change in changes:
        if waiting and (change.a[0] < waiting.a[1] or change.b[0] < waiting.b[1]):
            ends = max(waiting.a[1], change.a[1]), max(waiting.b[1], change.b[1])
            starts = min(waiting.a[0], change.a[0]), min(waiting.b[0], change.b[0])
            waiting = TextChange((starts[0], ends[0]), (starts[1], ends[1]))
            continue
        if waiting:
            yield waiting
        waiting = change
    if waiting:
        yield waiting


def _characters(text: str, spans: Ints, words: Range) -> Range:
    """The place of words in the text, with the signs that belong to a number."""
    start, stop = characters(spans, words)
    if start == stop:
        return start, stop
    if text[start].isdigit() and _BEFORE.search(text[max(start - 1, 0) : start]):
        start -= 1
    if text[stop - 1].isdigit() and (after := _AFTER.match(text[stop : stop + 2])):
        stop += after.end()
    return start, stop


def _facts_at(text: str, place: Range, names: frozenset[str]) -> Mapping[Kind, list[str]]:
    """The facts in a place, by kind, normalised."""
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
    """The words, in lower case, that are capitalised inside a sentence and nowhere in lower case. Capitals throughout
    prove nothing, as headings have them."""
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
