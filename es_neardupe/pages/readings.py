"""Readings of a place, cut to what differs: of a fact the fact is bold, of other words those that the other text
lacks."""

from __future__ import annotations

import re
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher

from es_neardupe.display_text import beginning, shown
from es_neardupe.similarity.facts.numerals import with_plain_digits
from es_neardupe.similarity.weighed_places import FACTS, PASSAGE

_TOKEN = re.compile(r"[$€£¥]?\d+(?:[.,]\d+)*%?|\w+(?:['’]\w+)*")
_SPACE = re.compile(r"\s+")
_MAGNITUDES = {"million", "billion", "thousand", "percent", "hundred", "dollars", "euros"}
_CALENDAR = re.compile(
    r"(?:january|february|march|april|may|june|july|august|september|october|november|december"
    r"|(?:mon|tues|wednes|thurs|fri|satur|sun)day|today|tomorrow|yesterday|morning|afternoon|evening|am|pm)",
    re.IGNORECASE,
)
_SPELLED = re.compile(
    r"(?:one|two|three|four|five|six|seven|eight|nine|ten|eleven|twelve|first|second|third)", re.IGNORECASE
)
_SHORT = 4
"""Words of a fact that is shown whole in bold."""
_LEAD = 70
"""Characters before the first difference that are shown."""
_CELL, _BEFORE, _END = 120, 40, 30
"""Characters shown of the value of a field, of it before its first difference, and of the end of one that is cut."""
_FEW = 60
"""Characters of a reading in a few words."""
_WORD = 20
"""Characters of the longest word that is left out if it is cut."""
_LEFT = 4
"""Characters of a word that are shown before what differs in it."""
_COMPARED = 400
"""Words of a reading that are compared with the reference."""


@dataclass(frozen=True, slots=True)
class WordRun:
    """Words of a reading."""

    text: str
    bold: bool


@dataclass(frozen=True, slots=True)
class ShownReading:
    """A reading as it is shown: ``before``, the runs, ``after``, with the spaces between them."""

    runs: tuple[WordRun, ...]
    """None for nothing."""
    before: str = ""
    after: str = ""
    cut: bool = False
    """Whether words before the runs are left out."""
    more: int = 0
    """Words after the runs that are left out."""
    same: bool = False
    """As the reference."""

    @property
    def size(self) -> int:
        """Characters of the runs."""
        return sum(len(run.text) for run in self.runs)


AS_REFERENCE = ShownReading((), same=True)


def shown_reading(text: str, reference: str, kind: str, limit: int) -> ShownReading:
    """A reading of at most about ``limit`` characters, beginning shortly before the first word that differs from
    ``reference``."""
    text, reference = (" ".join(one.split()) for one in (shown(text), reference))
    runs = list(_runs(text, reference, kind))
    first = _first_bold(runs)
    if len(text) <= limit and first <= _LEAD:
        return ShownReading(tuple(runs))
    if first < (same := _same(text, reference)) and " " not in text[first : same + 1]:
        first = same  # a long word may differ at its end
    start = max(0, first - limit // 4) if first > limit // 2 else 0
    start = text.rfind(" ", max(start - limit // 4, 0), start) + 1 or start
    end = len(text) if start + limit >= len(text) else max(text.rfind(" ", start, start + limit), start + limit // 2)
    return ShownReading(tuple(_cut(runs, start, end)), cut=start > 0, more=len(text[end:].split()))


def with_context(one: ShownReading, text: str, characters: tuple[int, int], room: int) -> ShownReading:
    """The reading of the reference with some words before and after, as far as there is room."""
    half = (room - one.size) // 2
    if half < 10 or one.cut or one.more:
        return one
    start, end = characters
    before = _in_one_line(text[max(0, start - half) : start]).lstrip()
    if start > half:
        before = "… " + _without_part(before, before.partition(" ")[2])
    after = _in_one_line(text[end : end + half]).rstrip()
    if end + half < len(text):
        after = _without_part(after, after.rpartition(" ")[0]).rstrip(".,;: ") + " …"
    return ShownReading(one.runs, before, after)


def _without_part(words: str, whole: str) -> str:
    """Words without the part of one at an end; as they are in a script without blanks, where this would be all."""
    return whole if whole.strip() or len(words) <= _WORD else words


def _in_one_line(text: str) -> str:
    return _SPACE.sub(" ", shown(text))


def in_few_words(text: str, reference: str, kind: str) -> str:
    """A reading in a few words: of a fact, the fact; of a long one, those from shortly before the difference on."""
    text, reference = (" ".join(one.split()) for one in (shown(text), reference))
    runs = _runs(text, reference, kind)
    if kind in FACTS and len(text.split()) > _SHORT and (bold := [run.text.strip() for run in runs if run.bold]):
        return ", ".join(dict.fromkeys(bold[:2]))[:_FEW]
    same = _same(text, reference)
    start = max(same - _FEW // 4, 0) if _FEW < len(text) > same else 0
    start = text.rfind(" ", max(start - _FEW // 4, 0), start) + 1 or start
    return ("… " if start else "") + text[start : start + _FEW]


def each_in_few_words(texts: Sequence[str], kind: str) -> list[str]:
    """Different readings of a place in a few words each, the first that of the reference: of a fact, the fact, but of
    several with the same one, the words that it stands among."""
    own, *others = texts
    few = [in_few_words(own, others[0] if others else "", kind), *(in_few_words(one, own, kind) for one in others)]
    number = Counter(few)
    return [one if number[one] == 1 else in_few_words(text, own, PASSAGE) for one, text in zip(few, texts, strict=True)]


def in_narrow_column(texts: Sequence[str], room: int) -> list[str]:
    """The texts for a column with room for their beginnings only: those that begin alike are shown from the word that
    differs on."""
    starts = dict.fromkeys(texts, 0)
    while True:
        alike = defaultdict(list)
        for text, start in starts.items():
            alike[text[: start + room - (start > 0)]].append(text)
        several = [some for some in alike.values() if len(some) > 1]
        if not several:
            return [f"…{text[start:]}" if (start := starts[text]) else text for text in texts]
        for some in several:
            place = _same(min(some), max(some))
            start = max(some[0].rfind(" ", 0, place) + 1, place - _LEFT)
            starts.update(dict.fromkeys(some, start))


def _same(text: str, reference: str) -> int:
    """The number of characters that two texts begin with."""
    pairs = zip(text, reference, strict=False)
    return next((place for place, (one, other) in enumerate(pairs) if one != other), min(len(text), len(reference)))


def _from_difference(text: str, reference: str) -> str:
    """What a cell shows of its text: of a long one that begins as that of the reference does, the part from shortly
    before the first difference on, beginning with a word or a part of a URL if one begins there."""
    before = max(_same(text, reference) - _BEFORE, 0)
    near = max(before - _BEFORE, 0)
    start = max(text.rfind(" ", near, before), text.rfind("/", near, before)) + 1 or before
    if len(text) <= _CELL or text == reference:
        start = 0
    return ("... " if start else "") + beginning(text[start:], _CELL)


def field_value(text: str, reference: str) -> str:
    """What is shown of the value of a field: as `from_difference`, and the end of one that is cut off, by which URLs of
    one site often differ."""
    part = _from_difference(text, reference)
    return f"{part} {text[-_END:]}" if part.endswith("...") and not text.endswith("...") else part


def _runs(text: str, reference: str, kind: str) -> Iterator[WordRun]:
    """The reading in parts that are bold or not."""
    words = _tokens(text)
    own = _own(words, _tokens(reference)) if kind != PASSAGE else [False] * len(words)
    if kind in FACTS and len(words) > _SHORT:
        facts = [its and _is_fact(word[0], kind) for word, its in zip(words, own, strict=True)]
        own = facts if any(facts) else own
    marks: list[tuple[str, bool]] = []
    at = 0
    for number, (word, bold) in enumerate(zip(words, own, strict=True)):
        if word.start() > at:
            marks.append((text[at : word.start()], bold and number > 0 and own[number - 1]))
        marks.append((text[word.start() : word.end()], bold))
        at = word.end()
    marks.append((text[at:], False))
    run, was = "", False
    for part, bold in marks:
        if bold != was and run:
            yield WordRun(run, was)
            run = ""
        run, was = run + part, bold
    if run:
        yield WordRun(run, was)


def _tokens(text: str) -> list[re.Match[str]]:
    """The words and numbers of a reading, at their places; those of any script in the usual digits."""
    return list(_TOKEN.finditer(with_plain_digits(text)))


def _own(words: Sequence[re.Match[str]], reference: Sequence[re.Match[str]]) -> list[bool]:
    """Which words the reference lacks; all, if it has all of them."""
    mine, its = ([word[0].casefold() for word in some[:_COMPARED]] for some in (words, reference))
    own = [True] * len(mine) + [False] * (len(words) - len(mine))
    for block in SequenceMatcher(None, its, mine, autojunk=False).get_matching_blocks():
        own[block.b : block.b + block.size] = [False] * block.size
    return own if any(own) else [True] * len(words)


def _is_fact(word: str, kind: str) -> bool:
    low = word.casefold()
    if kind in ("amount", "unit"):
        return not word[0].isalpha() or low in _MAGNITUDES
    if kind == "number":
        return word[0].isdigit() or bool(_SPELLED.fullmatch(low)) or low in _MAGNITUDES
    if kind == "date":
        return word[0].isdigit() or bool(_CALENDAR.fullmatch(low))
    return kind in ("negation", "word", "title", "code") or word[0].isupper()


def _first_bold(runs: Sequence[WordRun]) -> int:
    at = 0
    for run in runs:
        if run.bold:
            return at
        at += len(run.text)
    return 0


def _cut(runs: Sequence[WordRun], start: int, end: int) -> Iterator[WordRun]:
    at = 0
    for run in runs:
        if part := run.text[max(start - at, 0) : max(end - at, 0)]:
            yield WordRun(part, run.bold)
        at += len(run.text)
