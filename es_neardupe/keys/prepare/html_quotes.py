"""Pages of mails: their text as that of plain mails, in which quoted lines begin with ``>``."""

from __future__ import annotations

import re
from collections.abc import Sequence
from itertools import accumulate, groupby

from es_neardupe.keys.prepare.html_page import Element, Kept, Page, seen_of
from es_neardupe.keys.prepare.mail_phrases import BLANKS, FORWARDED_LINE

_LEVELS = 8
"""Maximum number of marks before a line: deeper quotes have as many."""
_SIGN = re.compile(r"(?ai)<blockquote|yahoo_quoted")


def may_quote(html: str) -> bool:
    """Whether a page may have quotes; most have none, and are read faster."""
    return _SIGN.search(html) is not None


def with_marks(page: Page) -> str:
    """What a browser shows, with ``> `` before each line of a quote, twice within two of them."""
    left_out, depths = page.seen, _depths(page)
    lines: list[str] = []
    for depth, pieces in groupby(range(len(page.pieces)), key=depths.__getitem__):
        text = Kept(page, [-1 if left_out[piece] else piece for piece in pieces]).text
        lines += ["> " * min(depth, _LEVELS) + line for line in text.split("\n") if line]
    return "\n".join(lines) or seen_of(page).text


def _depths(page: Page) -> list[int]:
    """The number of quotes that each piece is in."""
    changes = [0] * (len(page.pieces) + 1)
    beginnings = _beginnings(page.pieces)
    for element in page.elements:
        if _is_quote(element) and not _is_forwarded(beginnings[element.first]):
            changes[element.first] += 1
            changes[element.last] -= 1
    return list(accumulate(changes))


def _beginnings(pieces: Sequence[str]) -> list[str]:
    """The first piece from each one on that is not blank."""
    beginnings, filled = [""] * len(pieces), ""
    for number in range(len(pieces) - 1, -1, -1):
        filled = pieces[number] if pieces[number].strip() else filled
        beginnings[number] = filled
    return beginnings


def _is_quote(element: Element) -> bool:
    """A ``blockquote`` without a border is what mail programs make of an indented paragraph of the sender."""
    if element.name == "blockquote":
        style = (element.attributes.get("style") or "").lower().replace(" ", "")
        return "type" in element.attributes or "border:none" not in style
    return element.name == "div" and "yahoo_quoted" in (element.attributes.get("class") or "").split()


def _is_forwarded(beginning: str) -> bool:
    """Whether a part of a mail with this beginning is one that is passed on; some programs show it as a quote."""
    return FORWARDED_LINE.fullmatch(" ".join(beginning.translate(BLANKS).lower().split())) is not None
