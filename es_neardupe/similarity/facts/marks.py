"""Stamps, counters and contacts: facts that come with a copy or a place of publication, and say nothing about its
subject."""

from __future__ import annotations

import re
from collections.abc import Sequence

from es_neardupe.options import FactKind
from es_neardupe.similarity.facts import vocabulary as words
from es_neardupe.similarity.facts.scanner import FactToken

_STAMPED = re.compile(
    r"\b(?:release|printed|posted|published|updated|revised|created|reviewed|edited|edit|modified|retrieved|accessed"
    r"|generated|crawled|downloaded|visited|captured|cached|copyright|visit"
    r"|gedruckt|abgerufen|veröffentlicht|aktualisiert|stand|imprimé|consulté|publié|mis à jour"
    r"|actualizado|publicado|consultado|impreso)"
    r"(?:\s+(?:on|at|at:|in|am|le|el|:))?[\s:,(–-]*(?:\(c\)|©)?\s*$|(?:©|\(c\))\s*$",
    re.IGNORECASE,
)
_PAGE = re.compile(r"(?:\bpage|\bpages|\bp\.|\bpp\.|\bseite|\bpágina|\bslide)\s*$", re.IGNORECASE)
_STATE = re.compile(r"\b[A-Z]{2},?\s+$")
_PLUS_FOUR = re.compile(r"-\d{4}")
_FULL_DATE = re.compile(r"d:\d{4}-.*-")
_AFTER_LIST_NUMBER = re.compile(r"[.)\]]\s|\s*[-–—]?\s*(?:\n|$)")
_BULLETS = " \t-–—(*[#•"

_BEFORE = 40
"""Characters before a fact in which its introduction is searched."""
_DATELINE = 60
"""Words at the beginning of a text of at least twice as many, among which a date is a dateline."""
_STEP = 20
"""Maximum number of words from one number of an enumeration to the next."""
_LONG = 20
"""Digits of a number that is no part of an enumeration."""
_MIN_WORDS = 5
"""Words that a text has besides such marks. A text of hardly anything else, such as a phone number, has none."""


def marks_of(text: str, tokens: Sequence[FactToken]) -> list[FactKind | None]:
    """For each token: stamp, counter or contact, or None."""
    marks: list[FactKind | None] = [FactKind.CONTACT if one.kind is FactKind.CONTACT else None for one in tokens]
    for k, token in enumerate(tokens):
        if token.kind is FactKind.DATE:
            if _is_stamp(text, tokens, marks, k):
                marks[k] = FactKind.STAMP
        elif token.kind is FactKind.NUMBER:
            extends = k > 0 and marks[k - 1] is FactKind.CONTACT and _ends_a_postcode(text, tokens[k - 1], token)
            marks[k] = FactKind.CONTACT if extends else _mark_of_number(text, tokens, k)
    _mark_enumerations(tokens, marks)
    if any(marks) and sum(one.kind is None for one in tokens) < _MIN_WORDS:
        return [None] * len(tokens)
    return marks


def _is_stamp(text: str, tokens: Sequence[FactToken], marks: Sequence[FactKind | None], k: int) -> bool:
    """Whether a date is one of printing, publication and the like, a dateline, or next to such a date."""
    token = tokens[k]
    if _STAMPED.search(text, max(token.start - _BEFORE, 0), token.start):
        return True
    after_function_word = k > 0 and tokens[k - 1].key in words.FUNCTION_WORDS
    if k < _DATELINE and len(tokens) >= 2 * _DATELINE and _FULL_DATE.match(token.key) and not after_function_word:
        return True
    return any(
        marks[near] is FactKind.STAMP and token.start - tokens[near].end < 10 for near in range(max(k - 3, 0), k)
    )


def _mark_of_number(text: str, tokens: Sequence[FactToken], k: int) -> FactKind | None:
    """A counter of views or comments, the number of a page or of a list, or the postcode after a US state."""
    token = tokens[k]
    if k + 1 < len(tokens) and tokens[k + 1].key in words.COUNTED and tokens[k + 1].start - token.end <= 2:
        return FactKind.COUNTER
    if k and tokens[k - 1].key in words.COUNTED:
        between = text[tokens[k - 1].end : token.start]
        if len(between) <= 3 and between.strip() in ("(", ":"):
            return FactKind.COUNTER
    low = max(token.start - _BEFORE, 0)
    if token.end - token.start == 5 and _STATE.search(text, low, token.start):
        return FactKind.CONTACT
    if _PAGE.search(text, low, token.start) or _begins_an_item(text, token, low):
        return FactKind.COUNTER
    return None


def _ends_a_postcode(text: str, before: FactToken, token: FactToken) -> bool:
    """Whether a number is the end of a US postcode such as 02111-1307."""
    return before.end - before.start == 5 and bool(_PLUS_FOUR.fullmatch(text, before.end, token.end))


def _begins_an_item(text: str, token: FactToken, low: int) -> bool:
    """Whether a number of up to three digits, alone or before ``.`` or ``)``, begins a line."""
    line = text.rfind("\n", low, token.start) + 1
    if not line and low:
        return False
    return (
        len(token.key) < 6
        and text[token.start : token.end].isdigit()
        and not text[line : token.start].strip(_BULLETS)
        and bool(_AFTER_LIST_NUMBER.match(text, token.end, token.end + 4))
    )


def _mark_enumerations(tokens: Sequence[FactToken], marks: list[FactKind | None]) -> None:
    """Mark runs of three numbers or more that each are one more than the last one, unless they are all there is."""
    run: list[int] = []
    last = 0
    for k, token in enumerate(tokens):
        if token.kind is not FactKind.NUMBER or token.key[:2] != "n:" or len(token.key) > _LONG:
            continue
        if not token.key[2:].lstrip("-").isdigit():
            continue
        value = int(token.key[2:])
        if not (run and k - run[-1] <= _STEP and value == last + 1):
            _mark_run(run, marks)
            run = []
        run.append(k)
        last = value
    _mark_run(run, marks)


def _mark_run(run: Sequence[int], marks: list[FactKind | None]) -> None:
    if len(run) >= 3 and run[-1] - run[0] >= 2 * len(run) - 2:
        for k in run:
            marks[k] = marks[k] or FactKind.COUNTER
