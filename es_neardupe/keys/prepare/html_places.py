"""Places of the text of a page in its source.

Parsers do not say it. So the page is parsed once more, with each word of the source replaced by its number: the pieces
of both trees are the same, and those of the second one say which words they consist of. A piece for which this does not
hold, such as one in a place where the parser reads markup as text, has no place.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from html import unescape

from es_neardupe.keys.prepare.html_guard import CHARACTER_REFERENCE, MARKUP, plain_parts
from es_neardupe.keys.prepare.html_page import Kept, Page
from es_neardupe.keys.prepare.placed import PlacedPiece, PlacedText

_COMMENT = re.compile(r"(?s)<!--(?:-?>|.*?(?:--!?>|\Z))")
_BOGUS = re.compile(r"(?s)<(?:[!?]|/[^A-Za-z])[^>]*>?")
_RAW_END = {
    name: re.compile(rf"(?i)</{name}(?=[\t\n\f\r />]|\Z)")
    for name in ("script", "style", "title", "textarea", "xmp", "iframe", "noembed", "noframes")
}
_WITH_REFERENCES = ("title", "textarea")
_WORD = re.compile(r"[^\t\n\f\r ]+")
_TIDY_WORD = re.compile(r"\S+")
_DIGITS = "".join(map(chr, range(0xE000, 0xE00A)))
_TO_DIGITS = str.maketrans("0123456789", _DIGITS)
_FROM_DIGITS = {ord(digit): str(number) for number, digit in enumerate(_DIGITS)}
_END = "\ue00a"
_NUMBER = re.compile(f"([{_DIGITS}]+){_END}|(?s:.)")
_NUMBER_CHARACTER = re.compile(f"[{_DIGITS}{_END}]")
_NO_NUMBERS = str.maketrans(dict.fromkeys(_DIGITS + _END, "\ue00b"))


def places_of(html: str, kept: Kept) -> PlacedText:
    """What is kept of a page, with the places of its characters in the source."""
    source = _Source(html)
    page, numbered = kept.page, Page.parsed(source.numbered)
    same = len(numbered.pieces) == len(page.pieces)
    parts: list[PlacedPiece] = []
    place = 0
    for number in kept.pieces:
        text = "\n" if number < 0 else page.pieces[number]
        found = list(source.words_of(numbered.pieces[number], place)) if number >= 0 and same else []
        if "".join(part.text for part in found) != text:
            found = [PlacedPiece(character, place, place) for character in text]
        parts += found
        place = found[-1].end if found else place
    return tidied(PlacedText.of_pieces(html, parts))


def places_without_tags(html: str) -> PlacedText:
    """The same for a page that is read without a tree."""
    parts = []
    for start, end, is_text in plain_parts(html):
        parts += _references(html, start, end) if is_text else [PlacedPiece(" ", start, end)]
    return tidied(PlacedText.of_pieces(html, parts))


def tidied(placed: PlacedText) -> PlacedText:
    """The text as by `es_neardupe.keys.prepare.html_page.tidy`."""
    text, parts, end = placed.prepared, list[PlacedPiece](), 0
    for word in _TIDY_WORD.finditer(text):
        first, last = word.span()
        if parts:
            parts.append(PlacedPiece("\n" if "\n" in text[end:first] else " ", first, first))
        parts.append(PlacedPiece(word[0], first, last))
        end = last
    return placed.then(PlacedText.of_pieces(text, parts))


class _Source:
    """The words of the source of a page that are not part of markup."""

    def __init__(self, html: str) -> None:
        self._html = html
        self._without_numbers = html.translate(_NO_NUMBERS) if _NUMBER_CHARACTER.search(html) else html
        """As long, with another character in place of those that stand for numbers of words."""
        self._words: list[list[PlacedPiece]] = []
        self.numbered = "".join(self._parts())
        """The source with the numbers of the words in their places."""

    def words_of(self, text: str, place: int) -> Iterator[PlacedPiece]:
        """The pieces of a text of the numbered page. ``place``: of blanks before its first word."""
        for match in _NUMBER.finditer(text):
            if match[1] is None:
                yield PlacedPiece(match[0], place, place)
            else:
                word = self._words[int(match[1].translate(_FROM_DIGITS))]
                yield from word
                place = word[-1].end

    def _parts(self) -> Iterator[str]:
        html, place, start = self._html, 0, 0
        while (place := html.find("<", place)) >= 0:
            markup = _COMMENT.match(html, place) or MARKUP.match(html, place) or _BOGUS.match(html, place)
            if markup is None:
                place += 1
                continue
            yield from self._text(start, place)
            end, name = markup.end(), ""
            if markup.re is MARKUP:
                end = html.find(">", end) + 1 or len(html)
                name = "" if markup[1] else markup[2].lower()
            yield self._without_numbers[place:end]
            start = place = end
            if name == "plaintext":
                break
            if name in _RAW_END:
                closing = _RAW_END[name].search(html, end)
                place = closing.start() if closing else len(html)
                if name in ("script", "style"):
                    yield self._without_numbers[start:place]
                else:
                    yield from self._text(start, place, references=name in _WITH_REFERENCES)
                start = place
        yield from self._text(start, len(html), references=place < 0)

    def _text(self, start: int, end: int, *, references: bool = True) -> Iterator[str]:
        """A part of the source that is text, with numbers for its words."""
        for word in _WORD.finditer(self._html, start, end):
            yield self._without_numbers[start : word.start()]
            first, last = word.span()
            pieces = _references(self._html, first, last) if references else [PlacedPiece(word[0], first, last)]
            if any(piece.text.strip("\t\n\f\r ") == "" for piece in pieces):  # a reference to a blank
                yield self._without_numbers[first:last]
            else:
                yield str(len(self._words)).translate(_TO_DIGITS) + _END
                self._words.append(pieces)
            start = last
        yield self._without_numbers[start:end]


def _references(html: str, start: int, end: int) -> list[PlacedPiece]:
    """A part of the source as pieces, with what its references stand for."""
    pieces = []
    for reference in CHARACTER_REFERENCE.finditer(html, start, end):
        if (text := unescape(reference[0])) != reference[0]:
            if reference.start() > start:
                pieces.append(PlacedPiece(html[start : reference.start()], start, reference.start()))
            pieces.append(PlacedPiece(text, *reference.span()))
            start = reference.end()
    if end > start:
        pieces.append(PlacedPiece(html[start:end], start, end))
    return pieces
