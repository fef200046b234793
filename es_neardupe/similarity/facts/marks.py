"""Stamps, counters and contacts: facts that come with a copy or a place of publication, and say nothing about its
subject."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence

from es_neardupe.options import FactKind
from es_neardupe.similarity.facts import vocabulary as words
from es_neardupe.similarity.facts.fact_keys import DATE, NUMBER, value_of
from es_neardupe.similarity.facts.reader import Tokens

_STAMPED = re.compile(
    r"\b(?:release|printed|posted|published|updated|revised|created|reviewed|edited|edit|modified|retrieved|accessed"
    r"|generated|crawled|downloaded|visited|captured|cached|copyright|visit"
    r"|gedruckt|abgerufen|veröffentlicht|aktualisiert|stand|imprimé|consulté|publié|mis à jour"
    r"|actualizado|publicado|consultado|impreso)"
    r"(?:\s+(?:on|at|at:|in|am|le|el|:))?[\s:,(–-]*(?:\(c\)|©)?\s*$|(?:©|\(c\))\s*$",
    re.IGNORECASE,
)
_LABELLED = re.compile(
    r"(?:[:=;\t][*_]*[^\S\n]*|^[^\S\n]*(?:\|[^\n]*|(?:\w+[^\S\n]+)?\w*(?:date|datum|fecha)[^\w\n]*\n?[^\S\n]*))\Z",
    re.IGNORECASE | re.MULTILINE,
)
"""The label of a date in a form, also on the line before, or the cells before it in a row of a table."""
_PAGE = re.compile(r"(?:\bpage|\bpages|\bp\.|\bpp\.|\bseite|\bpágina|\bslide)\s*$", re.IGNORECASE)
_STATE = re.compile(r"\b[A-Z]{2},?\s+$")
_PLUS_FOUR = re.compile(r"-\d{4}")
_FULL_DATE = re.compile(rf"{DATE}\d{{4}}-.*-")
_LIST_NUMBER = re.compile(r"\d{1,3}(?:\.\d{1,2})*|[IVX]{2,6}")
_AFTER_LIST_NUMBER = re.compile(r"[.)\]]\s|\s*[-–—]\s*(?:\n|$)")
_END_OF_LINE = re.compile(r"[^\S\n]*(?:\n|$)")
_CELLS = " \t|;"
_BULLETS = " \t-–—(*[#•"

_BEFORE = 40
"""Characters before a fact in which its introduction is searched."""
_DATELINE = 60
"""Words at the beginning of a text of at least twice as many, among which a date is a dateline."""
_ROWS = 3
"""Lines that begin with a date in a table, such as a statement of an account, which has no dateline."""
_STEP = 20
"""Maximum number of words from one number of an enumeration to the next."""
_LONG = 20
"""Digits of a number that is no part of an enumeration."""
_MIN_WORDS = 5
"""Words that a text has besides such marks. A text of hardly anything else, such as a phone number, has none."""


def marks_of(text: str, tokens: Tokens) -> dict[int, FactKind]:
    """The facts that are stamps, counters or contacts, by their number."""
    marks: dict[int, FactKind] = {k: kind for k, kind in tokens.kinds.items() if kind is FactKind.CONTACT}
    below = _end_of_datelines(text, tokens)
    for k, kind in tokens.kinds.items():
        if kind is FactKind.DATE:
            if _is_stamp(text, tokens, marks, k, below):
                marks[k] = FactKind.STAMP
        elif kind is FactKind.NUMBER and (mark := _mark_of_number(text, tokens, marks, k)):
            marks[k] = mark
        elif kind is FactKind.CODE and _begins_an_item(text, tokens, k):  # 1.2.3 is read as a version
            marks[k] = FactKind.COUNTER
    _mark_pages(text, tokens, marks)
    _mark_enumerations(tokens, marks)
    return {} if len(tokens) - len(tokens.kinds) < _MIN_WORDS else marks


def _end_of_datelines(text: str, tokens: Tokens) -> int:
    """The number of the first word that belongs to no dateline; 0 in a short text and in a table with dates."""
    if len(tokens) < 2 * _DATELINE:
        return 0
    rows = 0
    for k, kind in tokens.kinds.items():
        if kind is not FactKind.DATE or not _FULL_DATE.match(tokens.keys[k]):
            continue
        start = tokens.starts[k]
        line = text.rfind("\n", max(start - _BEFORE, 0), start) + 1
        if line and not text[line:start].strip(_CELLS):
            rows += 1
            if rows == _ROWS:
                return 0
    return _DATELINE


def _is_stamp(text: str, tokens: Tokens, marks: Mapping[int, FactKind], k: int, below: int) -> bool:
    """Whether a date is one of printing, publication and the like, a dateline, or next to such a date."""
    start = tokens.starts[k]
    low = max(start - _BEFORE, 0)
    if _STAMPED.search(text, low, start):
        return True
    if k < below and _FULL_DATE.match(tokens.keys[k]):
        after_function_word = k > 0 and tokens.keys[k - 1] in words.FUNCTION_WORDS
        if not after_function_word and not _LABELLED.search(text, low, start):
            return True
    return any(marks.get(near) is FactKind.STAMP and start - tokens.ends[near] < 10 for near in range(max(k - 3, 0), k))


def _mark_of_number(text: str, tokens: Tokens, marks: Mapping[int, FactKind], k: int) -> FactKind | None:
    """A counter of views or comments, the number of a page or of a list, or a postcode after a US state."""
    start, end = tokens.starts[k], tokens.ends[k]
    if marks.get(k - 1) is FactKind.CONTACT and _ends_a_postcode(text, tokens, k):
        return FactKind.CONTACT
    if k + 1 < len(tokens) and tokens.keys[k + 1] in words.COUNTED and tokens.starts[k + 1] - end <= 2:
        return FactKind.COUNTER
    if k and tokens.keys[k - 1] in words.COUNTED:
        between = text[tokens.ends[k - 1] : start]
        if len(between) <= 3 and between.strip() in ("(", ":"):
            return FactKind.COUNTER
    low = max(start - _BEFORE, 0)
    if end - start == 5 and _STATE.search(text, low, start):
        return FactKind.CONTACT
    if _PAGE.search(text, low, start) or _begins_an_item(text, tokens, k):
        return FactKind.COUNTER
    return None


def _ends_a_postcode(text: str, tokens: Tokens, k: int) -> bool:
    """Whether a number is the end of a US postcode such as 02111-1307."""
    end = tokens.ends[k - 1]
    return end - tokens.starts[k - 1] == 5 and bool(_PLUS_FOUR.fullmatch(text, end, tokens.ends[k]))


def _begins_an_item(text: str, tokens: Tokens, k: int) -> bool:
    """Whether a number such as 3 or 1.8.1 begins a line, before ``.`` or ``)``, or is a paragraph alone."""
    end = tokens.ends[k]
    return _begins_a_line(text, tokens, k) and (
        bool(_AFTER_LIST_NUMBER.match(text, end, end + 4))
        or (bool(_END_OF_LINE.match(text, end)) and _is_between_blank_lines(text, tokens.starts[k], end))
    )


def _begins_a_line(text: str, tokens: Tokens, k: int) -> bool:
    """Whether a number of an item may be one by its place: behind nothing but bullets."""
    start = tokens.starts[k]
    low = max(start - _BEFORE, 0)
    line = text.rfind("\n", low, start) + 1
    if not line and low:
        return False
    return not text[line:start].strip(_BULLETS) and bool(_LIST_NUMBER.fullmatch(text, start, tokens.ends[k]))


def _is_between_blank_lines(text: str, start: int, end: int) -> bool:
    """Whether the lines before and after are blank, or there are none: unlike those of a cell of a table."""
    before, after = text[max(start - _BEFORE, 0) : start].split("\n"), text[end : end + _BEFORE].split("\n")
    return not (before[-2:-1] and before[-2].strip()) and not (after[1:2] and after[1].strip())


def _mark_pages(text: str, tokens: Tokens, marks: dict[int, FactKind]) -> None:
    """Mark numbers that are alone on their lines, each one more than the one before: of pages, or of verses."""
    before = None
    for k, kind in tokens.kinds.items():
        number = text[tokens.starts[k] : tokens.ends[k]]
        if kind is not FactKind.NUMBER or not number.isdecimal() or not _begins_a_line(text, tokens, k):
            continue
        if not _END_OF_LINE.match(text, tokens.ends[k]):
            continue
        if before is not None and int(number) == int(text[tokens.starts[before] : tokens.ends[before]]) + 1:
            marks[before] = marks[k] = FactKind.COUNTER
        before = k


def _mark_enumerations(tokens: Tokens, marks: dict[int, FactKind]) -> None:
    """Mark runs of three numbers or more that each are one more than the last one, unless they are all there is."""
    run: list[int] = []
    last = 0
    for k, kind in tokens.kinds.items():
        key = tokens.keys[k]
        if kind is not FactKind.NUMBER or not key.startswith(NUMBER) or len(key) > _LONG:
            continue
        if not (written := value_of(key)).lstrip("-").isdigit():
            continue
        value = int(written)
        if not (run and k - run[-1] <= _STEP and value == last + 1):
            _mark_run(run, marks)
            run = []
        run.append(k)
        last = value
    _mark_run(run, marks)


def _mark_run(run: Sequence[int], marks: dict[int, FactKind]) -> None:
    if len(run) >= 3 and run[-1] - run[0] >= 2 * len(run) - 2:
        for k in run:
            marks.setdefault(k, FactKind.COUNTER)
