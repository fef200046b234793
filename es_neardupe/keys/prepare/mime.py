"""Messages in MIME, as mail servers store them: the text of their parts, decoded.

The rules are part of the scheme, so that no version of a library changes keys: RFC 2045 and 2046, as far as texts need
them. A message is read if it begins with headers, or with the parts of one whose headers are not stored; so is the page
of a mail without headers, if it begins with one of its tags.
"""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator, Sequence
from typing import NamedTuple

from es_neardupe.keys.prepare import escaped
from es_neardupe.keys.prepare.html_guard import names
from es_neardupe.keys.text import word_counts

_LEVELS = 8
"""How deep parts within parts are read."""
_PARTS = 100
"""Parts of a part that are read."""
_ENOUGH = 5
"""Words of a plain part that is taken rather than the page next to it."""
_NOTICE = 40
"""Words of a plain part that only says where the text is, at most."""
_MAX_CHARACTERS = 1 << 25
"""A text with more is no message."""
_HEADERS = 10_000
"""Lines of headers; a text with more is no message."""
_PREAMBLE = 1_000
"""Characters before the first part of a message without headers."""

_BEGINS = re.compile(r"\s*(?:From [^\n]*\n)?[A-Za-z][0-9A-Za-z-]*:")
_FIRST_PART = re.compile(r"(?m)^--(\S[^\r\n]{0,99}?)[ \t]*\r?\n(?=[Cc][Oo][Nn][Tt][Ee][Nn][Tt]-[A-Za-z-]+:)")
_PAGE = re.compile(
    r"(?ai)\s*<(?:!doctype html|html|head|meta|title|style|body|div|p|table|blockquote|center|pre|ul|ol|h[1-6]|span"
    r"|font)(?=[\s/>])"
)
"""What a page without headers begins with: a document, a block, or a font."""
_FIELD = re.compile(r"([A-Za-z][0-9A-Za-z-]*):(.*)")
_PARAMETER = re.compile(r";\s*([A-Za-z*0-9-]+)\s*=\s*(?:\"([^\"]*)\"|([^\s;\"]*))")
_SOFT_END = re.compile(r"=[ \t]*\r?\n|=[ \t]*\Z")
_ESCAPED = re.compile(rb"=([0-9A-Fa-f]{2})")
_ENCODED_WORD = re.compile(r"=\?([^?*]+)[^?]*\?([bBqQ])\?([^?]*)\?=")
"""Of a subject: its charset, encoding and content."""
_NOT_BASE64 = re.compile(r"[^0-9A-Za-z+/]+")
_ELSEWHERE = re.compile(
    r"html[ -](?:viewer|version|format|capable|fähig|ansicht|e-?mail)|requires html|enable html"
    r"|(?:not|n't|cannot|keine?|pas(?: en charge)?(?: le)?|no|non|geen) (?:\w+ )?html"
    r"|(?:in|with) (?:your|a|the) (?:web ?)?browser|online version|im (?:web)?browser|online-version|html-fähig"
    r"|dans (?:votre|un|le) navigateur|version en ligne|(?:en|no) (?:su|tu|el|seu|un) navegador|versión en línea"
    r"|versão online|nel (?:tuo )?browser|versione online|in (?:je|uw) browser|online versie|w przeglądarce|в браузере"
)
"""What it says: that a program shows no HTML, or that a browser does."""
_CHARSETS = names(
    "big5 cp932 euc-jp euc-kr gb18030 gb2312 gbk iso-2022-jp iso-8859-1 iso-8859-2 iso-8859-3 iso-8859-4 iso-8859-5"
    " iso-8859-6 iso-8859-7 iso-8859-8 iso-8859-9 iso-8859-10 iso-8859-13 iso-8859-14 iso-8859-15 iso-8859-16 koi8-r"
    " koi8-u ks_c_5601-1987 shift_jis windows-1250 windows-1251 windows-1252 windows-1253 windows-1254 windows-1255"
    " windows-1256 windows-1257 windows-1258"
)
"""Those that are decoded; all others are read as UTF-8."""


class _Part(NamedTuple):
    """The headers of a message or part, and its content as it is encoded."""

    kind: str
    """As ``text/plain``, in lower case."""
    parameters: dict[str, str]
    encoding: str
    is_attached: bool
    content: str
    subject: str = ""


def decoded(mail: str) -> str | None:
    """The text of a message; None for a mail that is plain text already, or whose parts have no text."""
    if len(mail) > _MAX_CHARACTERS:
        return None
    if _BEGINS.match(mail):
        part = _part(mail)
    elif "content-" in mail[:_PREAMBLE].lower() and (first := _FIRST_PART.search(mail, 0, _PREAMBLE)):
        part = _without_headers(mail, first[1])
    else:
        return None
    if part is None or not (part.kind.startswith("multipart/") or part.kind == "text/html" or _is_encoded(part)):
        return None
    text = _text(part, _LEVELS).strip()
    return text if _words(text) else None


def text_of(mail: str) -> str | None:
    """The text of a message, or of a page without headers; None for a mail that is plain text already."""
    text = _of_page(mail) if is_page(mail) else decoded(mail)
    return text if text and _words(text) else None


def passes_on(mail: str) -> bool:
    """Whether the subject of a message says that it passes on another one."""
    from es_neardupe.keys.prepare.mail_phrases import BLANKS, FORWARD_SUBJECT  # phrases are loaded for mails only

    part = _part(mail) if _BEGINS.match(mail) else None
    if part is None:
        return False
    subject = part.subject
    if word := _ENCODED_WORD.match(subject):
        encoding = "base64" if word[2] in "bB" else "quoted-printable"
        subject = _content(_Part("", {"charset": word[1]}, encoding, False, word[3].replace("_", " ")))
    return FORWARD_SUBJECT.match(subject.translate(BLANKS).lower()) is not None


def is_page(mail: str) -> bool:
    """Whether a mail is a page without headers."""
    return _PAGE.match(mail) is not None and escaped.has_markup(mail)


def _of_page(page: str) -> str:
    from es_neardupe.keys.prepare import html  # the parser is loaded for pages only

    return html.mail_text(page)


def _without_headers(mail: str, boundary: str) -> _Part:
    """A message of which only the parts are stored: alternatives, if they are a plain one and a page."""
    part = _Part("multipart/mixed", {"boundary": boundary}, "", False, mail)
    kinds = [one.kind for one in _parts(part)]
    return part._replace(kind="multipart/alternative") if kinds == ["text/plain", "text/html"] else part


def _part(message: str) -> _Part | None:
    """A message, or a part of one; None for text that has no headers."""
    fields: dict[str, list[str]] = {}
    field_lines: list[str] = []
    place = len(message) - len(message.lstrip())
    for _ in range(_HEADERS):
        if place == len(message):
            break
        end = message.find("\n", place)
        line = (message[place:] if end < 0 else message[place:end]).rstrip("\r")
        begins, place = place, len(message) if end < 0 else end + 1
        if not line.strip():
            break
        if field := _FIELD.match(line):
            field_lines = [field[2]]
            fields.setdefault(field[1].lower(), field_lines)
        elif line[0] in " \t" and field_lines:
            field_lines.append(line)
        elif begins or not line.startswith("From "):
            return None
    else:
        return None
    kind, parameters = _parameters("".join(fields.get("content-type", ["text/plain"])))
    encoding = "".join(fields.get("content-transfer-encoding", [])).strip().lower()
    disposition = "".join(fields.get("content-disposition", [])).strip().lower()
    subject = "".join(fields.get("subject", [])).strip()
    return _Part(kind, parameters, encoding, disposition.startswith("attachment"), message[place:], subject)


def _parameters(value: str) -> tuple[str, dict[str, str]]:
    parameters: dict[str, str] = {}
    for name, quoted, plain in _PARAMETER.findall(value):
        parameters.setdefault(name.lower(), quoted or plain)
    return value.partition(";")[0].strip().lower(), parameters


def _is_encoded(part: _Part) -> bool:
    return part.kind.startswith("text/") and part.encoding in ("base64", "quoted-printable")


def _text(part: _Part, levels: int) -> str:
    """The text of a part, and of those within it that are no attachments. A message that is attached is passed on."""
    if not levels or (part.is_attached and part.kind != "message/rfc822"):
        return ""
    if part.kind.startswith("multipart/"):
        parts = list(_parts(part))
        if part.kind == "multipart/alternative":
            return _one_of(parts, levels - 1)
        return "\n\n".join(filter(None, (_text(one, levels - 1) for one in parts)))
    content = _content(part)
    if part.kind == "message/rfc822":
        inner = _part(content)
        return "" if inner is None else _text(inner, levels - 1)
    if part.kind == "text/html":
        return _of_page(content)
    return content.strip() if part.kind in ("text/plain", "text", "") else ""


def _one_of(parts: Sequence[_Part], levels: int) -> str:
    """The first of some alternatives that has enough words, plain ones first; or else the one with most. One that only
    says where the text is counts last."""
    texts = [_text(part, levels) for part in sorted(parts, key=lambda part: part.kind != "text/plain")]
    long = [text for text in texts if _words(text) >= _ENOUGH]
    return next((text for text in long if not _is_notice(text)), max(texts, key=_words, default=""))


def _is_notice(text: str) -> bool:
    return _words(text) <= _NOTICE and _ELSEWHERE.search(" ".join(text.lower().split())) is not None


def _parts(part: _Part) -> Iterator[_Part]:
    boundary = part.parameters.get("boundary")
    if not boundary:
        return
    lines = re.compile(rf"(?m)^--{re.escape(boundary)}(--)?[ \t]*\r?$\n?")
    kind = "message/rfc822" if part.kind == "multipart/digest" else "text/plain"
    start = None
    for number, match in enumerate(lines.finditer(part.content)):
        if start is not None:
            found = _part_of(part.content[start : match.start()], kind)
            if found is not None:
                yield found
        if match[1] or number == _PARTS:
            return
        start = match.end()
    if start is not None and (found := _part_of(part.content[start:], kind)) is not None:
        yield found


def _part_of(text: str, kind: str) -> _Part | None:
    """A part, which may have no headers, and then begins with an empty line. ``kind``: that of one without headers."""
    return _Part(kind, {}, "", False, text) if text[:1] in ("\r", "\n") else _part(text)


def _content(part: _Part) -> str:
    """The content without its transfer encoding. One that is not ASCII is decoded already."""
    if part.encoding not in ("base64", "quoted-printable") or not part.content.isascii():
        return part.content
    if part.encoding == "base64":
        digits = _NOT_BASE64.sub("", part.content.partition("=")[0])
        digits = digits[: len(digits) - (len(digits) % 4 == 1)]
        content = b64decode(digits + "=" * (-len(digits) % 4))
    else:
        joined = _SOFT_END.sub("", part.content).encode("ascii")
        content = _ESCAPED.sub(lambda match: bytes.fromhex(match[1].decode()), joined)
    charset = part.parameters.get("charset", "").strip("'").lower()
    return content.decode(charset if charset in _CHARSETS else "utf-8", "replace")


def _words(text: str) -> int:
    (count,) = word_counts([text])
    return count
