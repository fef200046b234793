"""Masks: parts of a text that differ from case to case, such as times and numbers, become placeholders of their kind.

At each place that does not follow a match, or a run of ``[0-9A-Za-z_$]``, the kinds are tried in their order. A match
counts if no character of ``[0-9A-Za-z_]`` follows it. Otherwise the run stays, except that ``digits`` replaces each
number in it; one that begins with ``$`` is a name, unless only digits follow, as in ``$5,000``. In a match of
``source``, ``digits`` replaces the version of HTTP. The expressions have the syntax of RE2, without look-around, and
know ASCII only.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import NamedTuple

from es_neardupe.compiled import compiled
from es_neardupe.keys.prepare.placed import PlacedPiece
from es_neardupe.options import Mask

_MONTH = r"(?:Jan|Feb|Mar|Apr|May|Jun|Jul|Aug|Sep|Oct|Nov|Dec)"
_DAY = r"(?:Mon|Tue|Wed|Thu|Fri|Sat|Sun)"
_CLOCK = r"[0-9]{1,2}:[0-9]{2}(?::[0-9]{2}(?:[.,:][0-9]{1,9})?)?"
_ZONE = r"(?: ?(?:Z|UTC|GMT|[+-][0-9]{2}:?[0-9]{2}))?"
_H4 = r"[0-9A-Fa-f]{1,4}"
_RANDOM = "[2456789bcdfghjklmnpqrstvwxz]"
"""What Kubernetes draws random names from."""

EXPRESSIONS: dict[Mask, str] = {
    Mask.SOURCE: (
        r"[A-Za-z_$][0-9A-Za-z_$]{0,99}"
        r"\.(?:c|cc|cpp|cs|cxx|erl|ex|go|groovy|h|hpp|java|js|jsx|kt|lua|php|pl|py|rb|rs|scala|swift|ts|tsx)"
        r"(?::[0-9]{1,7}){1,2}|line [0-9]{1,7}"
        r"|HTTP/(?:[0-9](?:\.[0-9])?|_num_)\\?\" [1-5][0-9]{2}"  # the status in a line of an access log
    ),
    Mask.URL: r"[A-Za-z][0-9A-Za-z+.-]{1,15}://[^ \t\r\n\f\v<>\"']*[^ \t\r\n\f\v<>\"'.,;:!?(){}\[\]]",
    Mask.EMAIL: (r"[0-9A-Za-z][0-9A-Za-z._%+-]{0,63}@[0-9A-Za-z-]{1,63}(?:\.[0-9A-Za-z-]{1,63}){0,7}\.[A-Za-z]{2,24}"),
    Mask.UUID: r"[0-9A-Fa-f]{8}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{4}-[0-9A-Fa-f]{12}",
    Mask.TIME: (
        rf"[0-9]{{4}}[-/.][0-9]{{2}}[-/.][0-9]{{2}}"
        rf"(?:[T _-]{_CLOCK}|-[0-9]{{2}}\.[0-9]{{2}}\.[0-9]{{2}}(?:\.[0-9]{{1,9}})?)?{_ZONE}"
        rf"|(?:{_DAY},? )?{_MONTH} {{1,2}}[0-9]{{1,2}}(?: [0-9]{{4}})?,? {_CLOCK}(?: [0-9]{{4}})?{_ZONE}"
        rf"|(?:{_DAY}, )?[0-9]{{1,2}}[ /-]{_MONTH}[ /-][0-9]{{4}}[: ]{_CLOCK}{_ZONE}"
        rf"|[0-9]{{1,2}}[-/.][0-9]{{1,2}}(?:[-/.][0-9]{{2,4}})? {_CLOCK}"
        rf"|[0-9]{{8}}-{_CLOCK}"
        r"|[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?:[.,][0-9]{1,9})?"
    ),
    Mask.IP: (
        r"[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}\.[0-9]{1,3}"
        rf"|(?:{_H4}:){{7}}{_H4}|(?:{_H4}:){{1,6}}(?::{_H4}){{1,6}}|(?:{_H4}:){{1,7}}:|::(?:{_H4}:){{0,6}}{_H4}"
    ),
    Mask.PATH: r"(?:/[0-9A-Za-z_.@%+=,~$:-]+){2,}/?|[A-Za-z]:\\[^ \t\r\n\f\v\"'<>|*?]+",
    # the hash of a template, or the time of a cron job, before the random end; after it the namespace, in names of logs
    Mask.POD: (
        rf"(?:[0-9a-z]{{1,63}}-){{0,12}}(?:[4-9bcdf]{{6,10}}|[0-9]{{8,10}})-{_RANDOM}{{5}}(?:_[0-9a-z-]{{1,63}})?"
    ),
    Mask.HEX: r"0[xX][0-9A-Fa-f]{1,64}|(?:[0-9A-Fa-f]{2}[:-]){5,19}[0-9A-Fa-f]{2}|[0-9A-Fa-f]{4,128}",
    Mask.DIGITS: r"[0-9]+(?:[.,][0-9]+)*",
}
"""What each kind matches, in the order in which they are tried."""

PLACEHOLDERS: dict[Mask, str] = {
    Mask.SOURCE: "",  # stays as it is, but for the version of HTTP: the place of an error and a status are no variables
    Mask.URL: "_url_",
    Mask.EMAIL: "_email_",
    Mask.UUID: "_uuid_",
    Mask.TIME: "_time_",
    Mask.IP: "_ip_",
    Mask.PATH: "_path_",
    Mask.POD: "_pod_",
    Mask.HEX: "_num_",
    Mask.DIGITS: "_num_",
}
"""What replaces it: one token of the scheme."""

_NUMBER = re.compile(r"[0-9]+")
_VERSION = re.compile(r"HTTP/([0-9](?:\.[0-9])?)")
_RUN = r"[0-9A-Za-z_$]+"
_WHOLE_NUMBER = r"\$*[0-9]+(?![0-9A-Za-z_$])(?:[.,][0-9]+)*"
_NO_WORD_FOLLOWS = r"(?![0-9A-Za-z_])"
_DIGIT, _LETTER = re.compile(r"[0-9]"), re.compile(r"[A-Za-z]")


class _Compiled(NamedTuple):
    """The expressions of some kinds, each with the kind as the name of its group."""

    at_once: re.Pattern[str]
    singly: Sequence[re.Pattern[str]]
    numbers: bool
    """Whether numbers within a run are replaced."""


kernel = compiled("keys.prepare._masks")


def masked(text: str, kinds: Sequence[Mask]) -> str:
    """The text with placeholders."""
    if kernel is not None:
        made: str | None = kernel.masked(text, _bits(tuple(kinds)))
        if made is not None:
            return made
    return masked_by_expressions(text, kinds)


@lru_cache(maxsize=64)
def _bits(kinds: tuple[Mask, ...]) -> int:
    return sum(1 << place for place, kind in enumerate(Mask) if kind in kinds)


def masked_by_expressions(text: str, kinds: Sequence[Mask]) -> str:
    """The same without the kernel."""
    parts: list[str] = []
    end = 0
    for start, stop, placeholder in _replaced(text, _compiled(tuple(kinds))):
        parts += text[end:start], placeholder
        end = stop
    parts.append(text[end:])
    return "".join(parts)


def masked_pieces(text: str, kinds: Sequence[Mask]) -> Iterator[PlacedPiece]:
    """The same as pieces of the text."""
    end = 0
    for start, stop, placeholder in _replaced(text, _compiled(tuple(kinds))):
        yield PlacedPiece(text[end:start], end, start)
        yield PlacedPiece(placeholder, start, stop)
        end = stop
    yield PlacedPiece(text[end:], end, len(text))


_Replacement = tuple[int, int, str]
"""The first character of a part that is replaced, the one after its last, and the placeholder."""


def _replaced(text: str, expressions: _Compiled) -> Iterator[_Replacement]:
    place, refused = 0, True
    while refused:
        refused = False
        for match in expressions.at_once.finditer(text, place):
            if not _accepted(match):
                match = next(filter(_accepted, _tried(text, match.start(), expressions.singly)))  # noqa: PLW2901
                refused = True
            yield from _replacements(match, numbers=expressions.numbers)
            if refused:
                place = match.end()
                break


def _replacements(match: re.Match[str], *, numbers: bool) -> Iterator[_Replacement]:
    if match.lastgroup == "digits":
        yield match.end() - len(match[0].lstrip("$")), match.end(), PLACEHOLDERS[Mask.DIGITS]
    elif match.lastgroup == "source":
        if numbers and (version := _VERSION.match(match.string, *match.span())):
            yield *version.span(1), PLACEHOLDERS[Mask.DIGITS]
    elif match.lastgroup != "run":
        yield *match.span(), PLACEHOLDERS[Mask(match.lastgroup or "")]
    elif numbers and not match[0].startswith("$"):
        for number in _NUMBER.finditer(match.string, *match.span()):
            yield *number.span(), PLACEHOLDERS[Mask.DIGITS]


def _tried(text: str, place: int, singly: Sequence[re.Pattern[str]]) -> Iterator[re.Match[str]]:
    """The matches at a place, in the order of their kinds; the run is the last one."""
    yield from filter(None, (one.match(text, place) for one in singly))


def _accepted(match: re.Match[str]) -> bool:
    """Whether a match has the characters that its kind needs."""
    kind, found = match.lastgroup, match[0]
    if kind == "ip":
        return _DIGIT.search(found) is not None
    if kind == "pod":
        return _LETTER.search(found) is not None
    if kind == "hex" and found[:2] not in ("0x", "0X"):
        return _DIGIT.search(found) is not None and _LETTER.search(found) is not None
    return True


@lru_cache(maxsize=64)
def _compiled(kinds: tuple[Mask, ...]) -> _Compiled:
    """What matches any of the kinds, and each of them.

    A kind that has matched is not tried again for a shorter match, as in RE2: the look-ahead keeps the first one.
    """
    each = [
        rf"(?=(?P<{kind.value}>{EXPRESSIONS[kind]}))(?P={kind.value}){_NO_WORD_FOLLOWS}"
        for kind in EXPRESSIONS
        if kind in kinds and kind is not Mask.DIGITS
    ]
    if Mask.DIGITS in kinds:
        each.append(f"(?P<digits>{_WHOLE_NUMBER})")
    at_once = re.compile("|".join([*each, f"(?P<run>{_RUN})"]))
    singly = [re.compile(one, re.DOTALL) for one in [*each, f"(?P<run>{_RUN}|.)"]]
    return _Compiled(at_once, singly, Mask.DIGITS in kinds)
