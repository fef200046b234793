"""A text as a reader sees it: without references of HTML, wrongly decoded characters and marks of quoted lines."""

from __future__ import annotations

import html
import re
import unicodedata
from collections.abc import Iterator
from html.entities import html5

from es_neardupe.keys.prepare.placed import PlacedPiece, PlacedText

_COMPOSED = re.compile(r"[^\u0300-\u036f\u1160-\u11ff][\u0300-\u036f\u1160-\u11ff]*|.", re.DOTALL)
"""A character with the marks, or the parts of a Hangul syllable, that may be composed with it."""
_CONTINUED = "".join(
    sorted({bytes([code]).decode("cp1252", "ignore") or chr(code) for code in range(0x80, 0xC0)} - {"-", "]"})
)
"""The bytes of a character in UTF-8 after its first one, read as Windows-1252, or as Latin-1."""
_MENDED = re.compile(
    r"(?P<reference>&(?:#\d{1,7}|#[xX][\da-fA-F]{1,6}|[A-Za-z]\w{1,30});)"
    rf"|(?P<decoded>[ÂÃ][{re.escape(_CONTINUED)}]|â[{re.escape(_CONTINUED)}]{{2}})"
    r"|(?P<apostrophe>[ʼ′＇]|(?<=[a-z])[?\ufffd](?=t\b)|(?<=n) '(?=t\b))"
    r"|(?P<below>[₀-₉]+)"
    r"|(?P<power>(?<=\d)\s?[kcdm]?m[23]\b)"
    r"|(?P<quoted>\n(?:> ?)+(?=\S))"
)
_PARTS = ("&", "m2", "m3", "?t", "n 't", "\n>")
_NOT_IN_ASCII = re.compile(r"[ÂÃâʼ′＇\ufffd₀-₉]")
"""One of these is in every text that `_MENDED` changes; they are found sooner."""
_POWERS = {"2": "²", "3": "³"}


def readable(placed: PlacedText) -> PlacedText:
    """A prepared text in NFC, with characters for references (``&rsquo;``) and for what was decoded in a wrong way
    (``â€™``), and without the marks of quoted lines. Its places stay those of the original."""
    text = placed.prepared
    if any(part in text for part in _PARTS) or (not text.isascii() and _NOT_IN_ASCII.search(text)):
        placed = placed.then(PlacedText.of_pieces(text, _pieces(text)))
        text = placed.prepared
    if unicodedata.is_normalized("NFC", text):
        return placed
    pieces = (
        PlacedPiece(unicodedata.normalize("NFC", match[0]), match.start(), match.end())
        for match in _COMPOSED.finditer(text)
    )
    return placed.then(PlacedText.of_pieces(text, pieces))


def _pieces(text: str) -> Iterator[PlacedPiece]:
    at = 0
    for match in _MENDED.finditer(text):
        yield PlacedPiece(text[at : match.start()], at, match.start())
        yield PlacedPiece(_mended(match), *match.span())
        at = match.end()
    yield PlacedPiece(text[at:], at, len(text))


def _mended(match: re.Match[str]) -> str:
    written = match[0]
    if match.lastgroup == "reference":
        return html.unescape(written) if written[1] == "#" else html5.get(written[1:], written)
    if match.lastgroup == "decoded":
        return _decoded(written)
    if match.lastgroup == "below":  # CO₂
        return unicodedata.normalize("NFKC", written)
    if match.lastgroup == "power":  # 62 m2
        return written[:-1] + _POWERS[written[-1]]
    return "\n" if match.lastgroup == "quoted" else "'"


def _decoded(written: str) -> str:
    """Characters that are bytes of UTF-8, as what these say; others as they are."""
    octets = b"".join(_octet(one) for one in written)
    try:
        return octets.decode("utf-8")
    except UnicodeDecodeError:
        return written


def _octet(character: str) -> bytes:
    try:
        return character.encode("cp1252")
    except UnicodeEncodeError:
        return character.encode("latin-1", "replace")
