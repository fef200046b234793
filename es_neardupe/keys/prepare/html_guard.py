"""Pages whose tree may take much more than linear time or memory, and how these are read without a tree."""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape
from string import ascii_lowercase, ascii_uppercase


def names(text: str) -> frozenset[str]:
    """Names of elements, separated by blanks."""
    return frozenset(text.split())


MAX_CHARACTERS = 1 << 23
MAX_MARKUP = 1 << 18
"""Characters ``<``."""
MAX_DEPTH = 1_000
MAX_ATTRIBUTES = 1_000
"""In one tag."""
MAX_FORMATS_BY_TAGS = 1_000_000
"""The most open formatting elements, which parsers make again in each paragraph, times the number of tags."""

_ATTRIBUTES = (
    r"""[\t\n\f\r /]*=?[^\t\n\f\r />=]+"""
    r"""(?:[\t\n\f\r ]*=[\t\n\f\r ]*(?:"[^"]*"|'[^']*'|[^\t\n\f\r >"'][^\t\n\f\r >]*))?"""
)
_ATTRIBUTE = re.compile(_ATTRIBUTES)
MARKUP = re.compile(r"(?ais)<!--.*?(?:--!?>|\Z)|<(/?)([a-z][^\t\n\f\r />]*)((?:" + _ATTRIBUTES + r")*)([\t\n\f\r /]*)")
"""A comment, or a tag without its last character: its slash, name, attributes, and blanks."""
CHARACTER_REFERENCE = re.compile(r"&(?:#[0-9]+;?|#[xX][0-9a-fA-F]+;?|[A-Za-z][0-9A-Za-z]*;?)")
_LOWER = str.maketrans(ascii_uppercase, ascii_lowercase)
_END_OF = {"script": re.compile(r"(?ai)</script"), "style": re.compile(r"(?ai)</style")}
_VOID = names("area base basefont bgsound br col embed frame hr img input keygen link meta param source track wbr")
UNCOUNTED = _VOID | names("html head body p li dt dd tr td th tbody thead tfoot colgroup option a")
FORMATS = names("b big code em font i nobr s small strike strong tt u")
FOREIGN = frozenset(("svg", "math"))
RAW = names("title textarea xmp iframe noembed noframes")
SCOPES = names("table caption object marquee applet template svg math foreignobject")
SPECIAL = names(
    "address article aside blockquote button center details dialog dir div dl fieldset figcaption figure footer"
    " form frameset h1 h2 h3 h4 h5 h6 header hgroup iframe listing main menu nav noembed noframes noscript ol"
    " plaintext pre search section select summary table template textarea title ul xmp object marquee applet"
    " caption"
)
_PLAIN = re.compile(
    r"(?ais)<!--.*?(?:--!?>|\Z)|<script[\t\n\f\r />].*?(?:</script[^>]*>?|\Z)"
    r"|<style[\t\n\f\r />].*?(?:</style[^>]*>?|\Z)"
    r"|<[a-z/!?][^>]*(?:>|\Z)"
)


def without_tags(html: str) -> str:
    """The text of a page that is read without a tree: comments, scripts, styles and tags are blanks."""
    return unescape(_PLAIN.sub(" ", html))


def plain_parts(html: str) -> Iterator[tuple[int, int, bool]]:
    """The same as ranges of the source, each with whether it is text."""
    start = 0
    for match in _PLAIN.finditer(html):
        yield start, match.start(), True
        yield *match.span(), False
        start = match.end()
    yield start, len(html), True


def is_too_costly(html: str) -> bool:
    """Whether a page has too many characters or tags for a tree, or is over another limit, by a scan that keeps the
    open elements and, where it does not know, counts too many of them."""
    return len(html) > MAX_CHARACTERS or html.count("<") > MAX_MARKUP or _Scan(html).exceeds()


class _Scan:
    def __init__(self, html: str) -> None:
        self.html = html
        self.stack: list[str] = []
        self.counts: dict[str, int] = {}
        """Name -> number of open elements."""
        self.foreign = 0
        """Open elements of other languages."""
        self.formats = 0
        """Open formatting elements."""
        self.raw: str | None = None
        """The open element whose content has no tags."""

    def exceeds(self) -> bool:
        """Whether the page is over one of the limits."""
        place = tags = most = 0
        while match := MARKUP.search(self.html, place):
            place = match.end()
            end, name, attributes, rest = match.groups()
            if name is None:
                continue
            name = name.lower() if name.isascii() else name.translate(_LOWER)
            if end:
                self._close(name)
                continue
            tags += 1
            if len(attributes) > 2 * MAX_ATTRIBUTES and len(_ATTRIBUTE.findall(attributes)) > MAX_ATTRIBUTES:
                return True
            if name in _END_OF and not self.foreign:
                found = _END_OF[name].search(self.html, place)
                place = found.end() if found else len(self.html)
                continue
            self._open(name, closed="/" in rest)
            if len(self.stack) > MAX_DEPTH:
                return True
            most = max(most, self.formats)
        return most * tags > MAX_FORMATS_BY_TAGS

    def _open(self, name: str, *, closed: bool) -> None:
        if name in UNCOUNTED or (self.foreign and closed and name not in SPECIAL and name not in FORMATS):
            return
        if name in RAW and self.raw is None:
            self.raw = name
        self.stack.append(name)
        self.counts[name] = self.counts.get(name, 0) + 1
        self.foreign += name in FOREIGN
        self.formats += name in FORMATS

    def _close(self, name: str) -> None:
        if not self.counts.get(name):
            return
        if self.raw is not None:
            if name != self.raw:
                return
            self.raw = None
        number = self._opened(name)
        if number is None:
            return
        if name in FORMATS:
            del self.stack[number]
            self.formats -= 1
            closed = [name]
        else:
            closed = self.stack[number:]
            del self.stack[number:]
        for one in closed:
            self.counts[one] -= 1
            self.foreign -= one in FOREIGN

    def _opened(self, name: str) -> int | None:
        """The number of the open element that an end tag closes; None if another one keeps it open."""
        number = len(self.stack) - 1
        while (above := self.stack[number]) != name:
            special = above in SPECIAL and name not in SPECIAL and name not in FORMATS and name not in SCOPES
            if number == 0 or above == "template" or special or (above in SCOPES and name not in SCOPES):
                return None
            number -= 1
        return number
