"""Text made safe to display: without the control characters of documents, and without passwords in URLs."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Protocol

from markupsafe import escape

STEERING = r"\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufff9-\ufffb\ud800-\udfff"
"""Characters for a regular expression class: those that change the direction of text or break lines invisibly, and lone
surrogates, which cannot be encoded."""

_UNPRINTABLE = re.compile(rf"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f{STEERING}]")


def shown(text: str) -> str:
    """Text with control characters, and characters of `STEERING`, replaced by U+FFFD.

    Its length is unchanged, so positions in it remain valid.
    """
    return _UNPRINTABLE.sub("\ufffd", text)


def html_escaped(text: str) -> str:
    """The same with ``&``, ``<``, ``>`` and both quotes escaped, as text between HTML tags."""
    return str(escape(shown(text)))


_PASSWORD = re.compile(
    r"""
    ((?: : | %3A ) (?: /+ | (?: %2F )+ ))    # behind the scheme; a path has only one slash
    ((?: (?! %3A | %2F | %40 ) [^\s/:@\[] )*)    # the user; [ begins an IPv6 address
    (: | %3A) (?! \d* (?: [/?\#] | %2F ))    # no port
    \S* (@ | %40)    # up to the last @, because a password may contain one
    """,
    re.VERBOSE | re.IGNORECASE,
)


def without_passwords(text: str) -> str:
    """Text with ``***`` instead of each password in a URL (``https://user:password@host``), also in a percent-encoded
    one."""
    return _PASSWORD.sub(r"\1\2\3***\4", text)


_URL = re.compile(r"([A-Za-z][A-Za-z0-9+.-]*://)(?:[^/?#]*@)?([^?#]*)", re.DOTALL)


def without_credentials(name: str) -> str:
    """The URL of a file without user, password, query and fragment, which can all be credentials, and of one with
    several parts (``::``) only the first; any other name unchanged."""
    name = without_passwords(name)  # one with ? or # in it, too
    first, several, _ = name.partition("::")
    if several and "://" in name:
        return f"{without_credentials(first)}::..."
    match = _URL.match(name)
    return name if match is None else match[1] + match[2]


def score_text(value: float) -> str:
    """A similarity or a probability with four decimal places. Only 1 itself is shown as 1.0000: what is a little less
    is not the same."""
    text = f"{value:.4f}"
    return "0.9999" if text == "1.0000" and value < 1 else text


def range_text(low: float, high: float | None) -> str:
    """A range of similarities; None is no upper bound."""
    return f"{low} or more" if high is None else f"{low} to {high}"


def size_text(size: int) -> str:
    """A size in bytes as options accept it, at least as large; a tiny one, which they do not accept, in bytes."""
    if size < 10**5:
        return f"{size} B"
    unit, number = ("GB", 10**9) if size >= 10**9 else ("MB", 10**6)
    tenths = -(-size * 10 // number)
    return f"{tenths // 10}.{tenths % 10}{unit}".replace(".0", "")


_BEGINNING = 200


def beginning(text: str, characters: int = _BEGINNING) -> str:
    """The text in one line; of a longer one than ``characters`` the words that fit, and ``...``."""
    plain = " ".join(text.split())
    if len(plain) <= characters:
        return plain
    kept = plain[: characters + 1].rpartition(" ")[0] or plain[:characters]
    return f"{kept}..."


_FIRST, _LAST = 60, 40


def both_ends(text: str) -> str:
    """A name; of one that is longer than 100 characters both ends, because names often differ at the end only."""
    return text if len(text) <= _FIRST + _LAST else f"{text[:_FIRST]}…{text[-_LAST:]}"


def words_before(text: str, end: int, characters: int) -> str:
    """The last whole words before a place, in one line."""
    start = max(end - characters, 0)
    if start and not text[start - 1].isspace():  # in the middle of a word
        start = next((place for place in range(start, end) if text[place].isspace()), start)
    return " ".join(text[start:end].split())


def words_after(text: str, start: int, characters: int) -> str:
    """The first whole words after a place, in one line."""
    end = start + characters
    if end < len(text) and not text[end].isspace():  # in the middle of a word
        end = next((place for place in range(end, start, -1) if text[place - 1].isspace()), end)
    return " ".join(text[start:end].split())


class Located(Protocol):
    """Anything with the address of a document."""

    @property
    def index(self) -> str: ...
    @property
    def id(self) -> str: ...


def named(document: Located, several: bool) -> str:
    """A document: its id, preceded by its index if there are ``several``."""
    return f"{document.index}/{document.id}" if several else document.id


def validation_message(error: Mapping[str, Any]) -> str:
    """The message of one of pydantic's errors, without the words that it puts before those of a `ValueError`."""
    if error.get("type") == "string_unicode":
        return "contains half of a surrogate pair; allowed: valid Unicode"
    return str(error["msg"]).removeprefix("Value error, ")
