"""Escaped pages: values whose markup is text, as feeds, JSON and dumps of content management systems hold them.

A value is the content of a ``CDATA`` section, of a JSON string, or of references, if that is its whole content, apart
from tags around it. For the latter two, that content must have markup: an element with its end tag, or two ``br``.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from html import unescape
from typing import NamedTuple

from es_neardupe.keys.prepare.html_guard import CHARACTER_REFERENCE, MAX_CHARACTERS, names
from es_neardupe.keys.prepare.placed import PlacedPiece, PlacedText

LEVELS = 4
"""How often a value is unescaped, at most."""

ELEMENTS = names(
    "a abbr article aside b blockquote body br center code dd div dl dt em figure font footer form h1 h2 h3 h4 h5 h6"
    " head header html i img li main nav ol p pre script section small span strong style sub sup table tbody td th"
    " title tr u ul"
)
"""Elements that show that a text is markup."""

_AROUND = re.compile(r"(?:[\t\n\f\r ]*<(?:[A-Za-z?]|!(?!\[))[^<>]*>){0,16}[\t\n\f\r ]*")
"""Tags before the content: 16 at most."""
_AFTER = re.compile(r"(?:</[A-Za-z][^<>]*>[\t\n\f\r ]*)*")
_MARKUP = re.compile(r"<[A-Za-z/!?]")
_TAG = re.compile(r"<(/?)([A-Za-z][0-9A-Za-z]*)(?:[\t\n\f\r /][^<>]*)?>")
_SHOWN = names("code kbd listing math plaintext pre samp script style svg template textarea xmp")
"""Elements in which markup is shown as it is, or which have another meaning of it."""
_CDATA, _CDATA_END = "<![CDATA[", "]]>"
_SCRIPT = re.compile("(?ai)<script")
_OF_JSON = re.compile(r"\\(?:u003|(?<=<\\)/)")
_BLANKS = "\t\n\f\r "

_ESCAPE = re.compile(r"\\u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|\\u[0-9a-fA-F]{4}|\\[^u]")


class _Content(NamedTuple):
    """A range of a value, and how it is unescaped."""

    start: int
    end: int
    text: str
    escapes: re.Pattern[str] | None = None
    unescape: Callable[[str], str] = str


def unescaped(value: str) -> str:
    """The page that a value stands for: itself, unless it is escaped."""
    for content in _contents(value):
        value = content.text
    return value


def placed(value: str) -> PlacedText | None:
    """The same with the places of its characters; None for a value that is not escaped."""
    made = None
    for content in _contents(value):
        before = value if made is None else made.prepared
        found = PlacedText.of_pieces(before, _pieces(before, content))
        made = found if made is None else made.then(found)
    return made


def _contents(value: str) -> Iterator[_Content]:
    for _ in range(LEVELS):
        content = _content(value)
        if content is None:
            return
        yield content
        value = content.text


def _content(value: str) -> _Content | None:
    if len(value) > MAX_CHARACTERS or ("&" not in value and "\\" not in value and "[" not in value):
        return None
    around = _AROUND.match(value)
    start = around.end() if around else 0
    if value.startswith(_CDATA, start):
        begins, end = start + len(_CDATA), value.rfind(_CDATA_END)
        if end < begins or not _AFTER.fullmatch(value, _after_blanks(value, end + len(_CDATA_END))):
            return None
        return None if _is_shown(value, start) else _Content(begins, end, value[begins:end])
    if "\\" in value and (made := _of_json(value)):
        return made
    end = markup.start() if (markup := _MARKUP.search(value, start)) else len(value)
    if not _AFTER.fullmatch(value, end) or "&" not in value[start:end]:
        return None
    text = unescape(value[start:end])
    found = _Content(start, end, text, CHARACTER_REFERENCE, unescape)
    return found if _is_markup(text) and not _is_shown(value, start) else None


def _is_shown(value: str, start: int) -> bool:
    """Whether a tag before the content says that it stays as it is."""
    return not _SHOWN.isdisjoint(tag.lower() for _, tag in _TAG.findall(value, 0, start))


def _after_blanks(value: str, place: int) -> int:
    while place < len(value) and value[place] in _BLANKS:
        place += 1
    return place


def _of_json(value: str) -> _Content | None:
    """A string of JSON, with its quotation marks or without them."""
    start, end = _after_blanks(value, 0), len(value.rstrip(_BLANKS))
    if value[start] == '"' and value[end - 1] == '"' and end - start > 1:
        start, end = start + 1, end - 1
    elif not _OF_JSON.search(value, value.find("\\")) or _SCRIPT.search(value):
        return None
    text = _from_json(value[start:end])
    return None if text is None or not _is_markup(text) else _Content(start, end, text, _ESCAPE, _of_escape)


def _from_json(text: str) -> str | None:
    try:
        made = json.loads(f'"{text}"', strict=False)
    except ValueError:
        return None
    return made if isinstance(made, str) else None


def _of_escape(text: str) -> str:
    return _from_json(text) or ""


def _is_markup(text: str) -> bool:
    """Whether a text has markup, which may be escaped once more."""
    return has_markup(text) or ("&" in text and has_markup(unescape(text)))


def has_markup(text: str) -> bool:
    """Whether a text has an element with its end tag, or two ``br``."""
    seen = set[str]()
    for match in _TAG.finditer(text):
        tag = match[2].lower()
        if tag in seen and (match[1] or tag == "br"):
            return True
        if tag in ELEMENTS and not match[1]:
            seen.add(tag)
    return False


def _pieces(value: str, content: _Content) -> Iterator[PlacedPiece]:
    place = content.start
    if content.escapes is not None:
        for escape in content.escapes.finditer(value, content.start, content.end):
            text = content.unescape(escape[0])
            if text != escape[0]:
                yield PlacedPiece(value[place : escape.start()], place, escape.start())
                yield PlacedPiece(text, *escape.span())
                place = escape.end()
    yield PlacedPiece(value[place : content.end], place, content.end)
