"""``mail``: what a person has written in a mail, without quotes, other mails, headers and signatures."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from enum import Enum
from itertools import accumulate, takewhile

from es_neardupe.keys.prepare import mail_kernel
from es_neardupe.keys.prepare.mail_phrases import (
    ADDRESS_WROTE,
    ADDRESSED,
    AROUND_REPLY_ABOVE,
    BARRED,
    BLANKS,
    CLOCK,
    DATED,
    DATED_ADDRESS,
    DATED_VERB,
    DIGEST_RULE,
    FIELD,
    FORWARD_HEADER,
    FORWARDED_BY,
    FORWARDED_LINE,
    HEADER,
    LIST_FOOTER_STARTS,
    MAILING_LIST,
    MBOX_FROM,
    MOBILE,
    NAME_WROTE,
    NUMBERED_PART,
    OPENED,
    OPENER,
    ORIGINAL_LINE,
    PART_RULE,
    QUOTE_MARKS,
    QUOTED,
    REPLY_ABOVE,
    RESPOND_TO,
    RULE_LINE,
    SENT_BY,
    SENT_ON,
    SENTENCE_END,
    SEPARATOR_STARTS,
    SIGNATURE,
    SIGNATURE_STARTS,
    YEAR,
    has_colon,
    may_be_footer,
)
from es_neardupe.keys.prepare.placed import PlacedPiece
from es_neardupe.keys.text import word_counts

_OWN_WORDS = 5
"""With fewer words of its own, a mail keeps what it quotes."""

_SIGNATURE_LINES = 30
"""Maximum number of filled lines of a signature."""

_LIST_FOOTER_LINES = 12
"""The same of the footer of a list."""

_LIST_FOOTER_BEGINNING = 6
"""Lines after the rule of such a footer, one of which says what it is."""

_HEADER_LINES = 20
_MESSAGE_LINES = 500
"""Lines of the headers of a message as it is sent."""

_ATTRIBUTION_LINES = 4
_ATTRIBUTION_CHARACTERS = 300
_MAX_CHARACTERS = 1 << 20
_MAX_LINES = 1 << 16
"""A mail with more is not taken apart: it is no mail, and some could be made to take minutes."""

_LEVELS = 8
"""How often a mail without words of its own is taken for the one that it quotes."""


class LineKind(Enum):
    """What a line of a mail is."""

    OWN = "own"
    QUOTED = "quoted"
    ATTRIBUTION = "attribution"
    """``NAME wrote:``"""
    SEPARATOR = "separator"
    """``Original Message``, or the rule above headers."""
    FORWARDED = "forwarded"
    """``Forwarded message``: what follows its headers is passed on, and stays."""
    PART = "part"
    """``Message: 2``, or a rule, above the headers of a part of a digest."""
    HEADER = "header"
    ORIGINAL = "original"
    """The text of the mail that was answered."""
    SIGNATURE = "signature"
    FOOTER = "footer"
    """``Sent from my ...``, or ``Please reply above this line``."""


_ENDS = (
    *(LineKind.QUOTED, LineKind.ATTRIBUTION, LineKind.SEPARATOR, LineKind.FORWARDED, LineKind.PART),
    LineKind.HEADER,
)
"""What may follow a footer."""


@dataclass(slots=True)
class _Line:
    text: str
    start: int
    """Its first character in the mail."""
    folded: str
    """In lower case, without blanks at the end."""
    stripped: str
    """Also without those at the beginning."""
    kind: LineKind = LineKind.OWN


def own_text(mail: str, *, passes_on: bool = False) -> str:
    """What is the mail's own. ``passes_on``: the subject of a mail without its headers says that it is a forward."""
    made = mail_kernel.own_text(mail, passes_on=passes_on)
    return own_text_by_expressions(mail, passes_on=passes_on) if made is None else made


def own_text_by_expressions(mail: str, *, passes_on: bool = False) -> str:
    """The same without the kernel."""
    kept = _kept_of(mail, passes_on=passes_on)
    return mail if kept is None else "\n".join(line.text for line in kept)


def own_pieces(mail: str) -> Iterator[PlacedPiece]:
    """The same as pieces of the mail."""
    kept = _kept_of(mail, passes_on=False)
    if kept is None:
        yield PlacedPiece(mail, 0, len(mail))
        return
    for number, line in enumerate(kept):
        if number:
            yield PlacedPiece("\n", line.start, line.start)
        yield PlacedPiece(line.text, line.start, line.start + len(line.text))


def line_kinds(mail: str) -> list[tuple[LineKind, str]]:
    """What each line of a mail is."""
    lines = _lines(mail)
    texts = [line.text for line in lines]
    _mark(lines, passes_on=False)
    return [(line.kind, text) for line, text in zip(lines, texts, strict=True)]


_LINE_END = re.compile(r"\r\n|\n|\r")


def _lines(mail: str) -> list[_Line]:
    if "\r" in mail:
        starts = [0, *(match.end() for match in _LINE_END.finditer(mail))]
        texts = _LINE_END.split(mail)
    else:
        texts = mail.split("\n")
        starts = list(accumulate((len(text) + 1 for text in texts[:-1]), initial=0))
    folded = _folded("\n".join(texts)).split("\n")
    return [
        _Line(text, start, line.rstrip(), line.strip()) for text, start, line in zip(texts, starts, folded, strict=True)
    ]


def _line(text: str, start: int) -> _Line:
    folded = _folded(text).rstrip()
    return _Line(text, start, folded, folded.strip())


def _folded(text: str) -> str:
    return (text.replace("\t", " ") if text.isascii() else text.translate(BLANKS)).lower()


def _kept_of(mail: str, *, passes_on: bool) -> list[_Line] | None:
    if len(mail) > _MAX_CHARACTERS or mail.count("\n") + mail.count("\r") > _MAX_LINES:
        return None
    return _kept(_lines(mail), _LEVELS, passes_on=passes_on)


def _kept(lines: list[_Line], levels: int, *, passes_on: bool = False) -> list[_Line] | None:
    """The lines that are the mail's own, or else those that it quotes; None for all, as they are."""
    _mark(lines, passes_on=passes_on)
    own = _without_empty_ends([line for line in lines if line.kind is LineKind.OWN])
    if _words(own) >= _OWN_WORDS:
        return own
    most = _without_empty_ends(
        [
            _unquoted(line) if line.kind is LineKind.QUOTED else _line(line.text, line.start)
            for line in lines
            if line.kind in (LineKind.OWN, LineKind.QUOTED, LineKind.ORIGINAL)
        ]
    )
    if levels and any(line.kind is LineKind.QUOTED for line in lines):
        kept = _kept(most, levels - 1)
        most = most if kept is None else kept
    return most if _words(most) else None


def _words(lines: Iterable[_Line]) -> int:
    (count,) = word_counts(["\n".join(line.text for line in lines)])
    return count


def _without_empty_ends(lines: list[_Line]) -> list[_Line]:
    filled = [number for number, line in enumerate(lines) if line.text]
    return lines[filled[0] : filled[-1] + 1] if filled else []


_MARK = re.compile(r"[ \xa0]{0,3}[>＞|] ?")


def _unquoted(line: _Line) -> _Line:
    """A quoted line, one level less."""
    mark = _MARK.match(line.text)
    size = mark.end() if mark else 0
    return _line(line.text[size:], line.start + size)


def _mark(lines: list[_Line], *, passes_on: bool) -> None:
    """Find out what each line is."""
    for line in lines:
        _mark_quoted(line)
    _unquote_forwarded(lines)
    _mark_attributions(lines)
    _mark_separators(lines)
    _mark_headers(lines)
    _mark_footers(lines)
    _mark_signatures(lines)
    _mark_originals(lines, passes_on=passes_on)


def _mark_quoted(line: _Line) -> None:
    if line.stripped.startswith(QUOTE_MARKS) and (
        (QUOTED.match(line.folded) and not MBOX_FROM.match(line.text)) or BARRED.fullmatch(line.folded)
    ):
        line.kind = LineKind.QUOTED


def _unquote_forwarded(lines: list[_Line]) -> None:
    """Quotes that begin with a line such as ``Begin forwarded message``, and have no attribution, are passed on."""
    number = 0
    while number < len(lines):
        last = _last_alike(lines, number)
        if lines[number].kind is LineKind.QUOTED:
            before = _last_filled(lines, number)
            unquoted = list(map(_unquoted, lines[number : last + 1]))
            first = next((line.stripped for line in unquoted if line.folded), "")
            if FORWARDED_LINE.fullmatch(first) and not (before and before.folded.endswith((":", "\uff1a"))):
                for line in unquoted:
                    _mark_quoted(line)
                lines[number : last + 1] = unquoted
        number = last + 1


def _next_filled(lines: Sequence[_Line], number: int) -> int:
    while number < len(lines) and not lines[number].folded:
        number += 1
    return number


def _mark_attributions(lines: list[_Line]) -> None:
    for number, line in enumerate(lines):
        if line.kind is not LineKind.OWN or not line.folded.endswith((":", "\uff1a")):
            continue
        following = _next_filled(lines, number + 1)
        quoted = following < len(lines) and lines[following].kind is LineKind.QUOTED and following <= number + 3
        first = _attribution_start(lines, number, before_quote=quoted)
        if first is None and quoted and NAME_WROTE.fullmatch(line.stripped):
            first = number
        if first is not None:
            for one in lines[first : number + 1]:
                one.kind = LineKind.ATTRIBUTION


def _attribution_start(lines: Sequence[_Line], last: int, *, before_quote: bool) -> int | None:
    """The first line of an attribution that ends with a line; None if that is none."""
    joined = list(_joined(lines, last, before_quote=before_quote))
    groups = ((OPENED, _ATTRIBUTION_LINES), (DATED_VERB, 2), (ADDRESSED, 2), (DATED_ADDRESS, 2))
    for patterns, reach in groups if before_quote else groups[:-1]:
        for first, text in joined:
            if last - first < reach and any(pattern.fullmatch(text) for pattern in patterns):
                return first
    return None


def _joined(lines: Sequence[_Line], last: int, *, before_quote: bool) -> Iterator[tuple[int, str]]:
    """The first line of what may be an attribution, and its lines in one: the shortest first."""
    text = ""
    for first in range(last, max(-1, last - _ATTRIBUTION_LINES), -1):
        line = lines[first]
        if line.kind is not LineKind.OWN or not line.folded:
            return
        if first < last and SENTENCE_END.search(line.stripped):
            return  # of the sender's own text, which stands directly above
        text = f"{line.stripped} {text}" if text else line.stripped
        if len(text) > _ATTRIBUTION_CHARACTERS:
            return
        if first < last and not DATED.search(line.stripped):
            continue  # what an attribution begins with is its date or an address
        before = lines[first - 1] if first else None
        starts = before is None or not before.folded or before.kind is not LineKind.OWN
        if before_quote or (DATED.search(text) and (starts or _begins_below_text(line, text))):
            yield first, text


def _begins_below_text(line: _Line, text: str) -> bool:
    """Whether a line directly below the sender's own text can begin an attribution. A sentence that is wrapped has the
    same words, but hardly an address in brackets, and no capital letter there with a date."""
    if any(pattern.fullmatch(text) for pattern in (*DATED_ADDRESS, ADDRESS_WROTE)):
        return True
    if "a" <= line.text.lstrip()[:1] <= "z":
        return False
    return OPENER.match(text) is not None or (YEAR.search(text) is not None and CLOCK.search(text) is not None)


def _mark_separators(lines: list[_Line]) -> None:
    wrapped = False
    for line in lines:
        before, wrapped = wrapped, False
        if before and line.kind is LineKind.OWN and line.stripped.endswith("--"):
            line.kind = LineKind.FORWARDED
        elif line.kind is LineKind.OWN and line.stripped.startswith(SEPARATOR_STARTS):
            if FORWARDED_LINE.fullmatch(line.stripped):
                line.kind = LineKind.FORWARDED
                wrapped = FORWARDED_BY in line.stripped and not line.stripped.endswith("-")
            elif ORIGINAL_LINE.fullmatch(line.stripped):
                line.kind = LineKind.SEPARATOR


def _mark_headers(lines: list[_Line]) -> None:
    for number in _headers_of_message(lines):
        lines[number].kind = LineKind.HEADER
    rules = _rules_of_digest(lines)
    number = 0
    while number < len(lines):
        line = lines[number]
        if line.kind is not LineKind.OWN or not has_colon(line.stripped) or not HEADER.fullmatch(line.stripped):
            number += 1
            continue
        first = _sender_above(lines, number)
        before = _last_filled(lines, number if first is None else first)
        announced = before is not None and before.kind in (LineKind.FORWARDED, LineKind.SEPARATOR)
        last = _headers_end(lines, number, announced=announced, has_sender=first is not None)
        if last is None:
            number += 1
            continue
        if before is not None and before.kind is LineKind.OWN:
            if before.stripped in rules or NUMBERED_PART.fullmatch(before.stripped):
                before.kind = LineKind.PART
                last = _fields_end(lines, last)
            elif RULE_LINE.fullmatch(before.stripped):
                before.kind = LineKind.SEPARATOR
        for line in lines[number if first is None else first : last]:
            line.kind = LineKind.HEADER
        number = last


def _sender_above(lines: Sequence[_Line], number: int) -> int | None:
    """The first line with the sender and the date above headers, as Lotus Notes writes them; None if none is there."""
    date = number - 1
    if date >= 0 and not lines[date].folded:
        date -= 1
    if date >= 0 and lines[date].stripped.startswith(RESPOND_TO):
        date -= 1
    if date < 0 or lines[date].kind is not LineKind.OWN or (sent := SENT_ON.fullmatch(lines[date].stripped)) is None:
        return None
    if sent[1]:
        return date
    name = date - 1
    if name >= 0 and lines[name].stripped.startswith(SENT_BY):
        name -= 1
    return name if name >= 0 and lines[name].kind is LineKind.OWN and lines[name].folded else None


def _rules_of_digest(lines: Sequence[_Line]) -> tuple[str, ...]:
    """The rules above parts without a number; none in a mail that has no other sign of a digest."""
    rules = [line.stripped for line in lines if line.stripped in (DIGEST_RULE, PART_RULE)]
    return (DIGEST_RULE, PART_RULE) if rules[:1] == [DIGEST_RULE] and PART_RULE in rules else ()


def _fields_end(lines: Sequence[_Line], number: int) -> int:
    """The line after the other headers of a part."""
    while number < len(lines) and lines[number].kind is LineKind.OWN and FIELD.match(lines[number].stripped):
        number += 1
    return number


def _headers_of_message(lines: Sequence[_Line]) -> range:
    """The lines of the headers that a message begins with as it is sent; none if it does not."""
    first = _next_filled(lines, 0)
    last, fields, names, addressed = first, 0, set[str](), False
    if first < len(lines) and lines[first].folded.startswith("from "):
        last += 1  # of a file with messages
    while last < len(lines) and lines[last].folded:
        if last - first == _MESSAGE_LINES:
            return range(0)
        if field := FIELD.match(lines[last].folded):
            names.add(field[1])
            fields += 1
            addressed = addressed or (field[1] in ("from", "to") and "@" in lines[last].folded)
        elif not fields or not lines[last].folded.startswith(" "):
            return range(0)
        last += 1
    complete = fields >= 3 and "from" in names and ("subject" in names or ("date" in names and addressed))
    return range(first, last) if complete else range(0)


def _last_filled(lines: Sequence[_Line], number: int) -> _Line | None:
    while number and not lines[number - 1].folded:
        number -= 1
    return lines[number - 1] if number else None


def _headers_end(lines: Sequence[_Line], first: int, *, announced: bool, has_sender: bool) -> int | None:
    """The line after headers that begin with a line; None if they are too few, or lack sender, or date and subject.
    ``has_sender``: this and a date stand above them.
    Unless a line above announces them, they need a subject or an address: three lines of a sender's own, such as those
    of a flight, begin with the same words."""
    found, addressed, last = list[str | None](), False, first
    for line in lines[first : first + _HEADER_LINES]:
        if not line.folded or line.kind is not LineKind.OWN:
            break
        text = line.stripped
        if header := HEADER.fullmatch(text):
            found.append(header.lastgroup)
            addressed = addressed or "@" in text
        elif not line.folded.startswith(" ") and not text.endswith((";", ",", ">")) and "@" not in text:
            break
        last += 1
    enough = len(found) >= (2 if announced or has_sender else 3) and (has_sender or "sender" in found)
    return last if enough and ("subject" in found or ("date" in found and (announced or addressed))) else None


def _mark_footers(lines: list[_Line]) -> None:
    for number, line in enumerate(lines):
        if line.kind is LineKind.OWN and line.stripped.strip(AROUND_REPLY_ABOVE) in REPLY_ABOVE:
            line.kind = LineKind.FOOTER
        elif line.kind is LineKind.OWN and may_be_footer(line.stripped) and MOBILE.fullmatch(line.stripped):
            following = _next_filled(lines, number + 1)
            after = lines[following] if following < len(lines) else None
            if after is None or after.kind in _ENDS or SIGNATURE.fullmatch(after.folded):
                line.kind = LineKind.FOOTER


def _mark_signatures(lines: list[_Line]) -> None:
    for number, line in enumerate(lines):
        if line.kind is not LineKind.OWN:
            continue
        if line.folded.startswith(SIGNATURE_STARTS) and SIGNATURE.fullmatch(line.folded):
            most = _SIGNATURE_LINES
        elif line.folded.startswith(LIST_FOOTER_STARTS) and _begins_list_footer(lines, number):
            most = _LIST_FOOTER_LINES
        else:
            continue
        last, filled = number + 1, 1
        while last < len(lines) and lines[last].kind in (LineKind.OWN, LineKind.FOOTER) and filled <= most:
            filled += bool(lines[last].folded)
            last += 1
        if filled <= most:
            for one in lines[number:last]:
                one.kind = LineKind.SIGNATURE


def _begins_list_footer(lines: Sequence[_Line], number: int) -> bool:
    following = lines[number + 1 : number + 1 + _LIST_FOOTER_BEGINNING]
    return RULE_LINE.fullmatch(lines[number].folded) is not None and any(
        phrase in line.folded for line in following for phrase in MAILING_LIST
    )


class _OwnWords:
    """Whether a mail has enough words of its own, asked while its lines are added; each line is counted once."""

    def __init__(self) -> None:
        self._counted = 0
        self._lines: list[_Line] = []

    def add(self, line: _Line) -> None:
        self._lines.append(line)

    @property
    def enough(self) -> bool:
        self._counted += _words(self._lines)
        self._lines.clear()
        return self._counted >= _OWN_WORDS


def _mark_originals(lines: list[_Line], *, passes_on: bool) -> None:
    """What follows the headers or the attribution of another mail is the text of that mail, unless this one only passes
    it on, or is a digest: its parts are its own text, but not what is quoted in one. A mail whose subject begins with
    ``FW:`` passes on the next one, and so does one that was passed on itself."""
    cut = forwarded = digest = False
    passes_on = passes_on or any(FORWARD_HEADER.match(line.stripped) for line in _first_headers(lines))
    own = _OwnWords()
    number = 0
    while number < len(lines):
        line = lines[number]
        if line.kind is LineKind.FORWARDED:
            forwarded = True
        elif line.kind is LineKind.PART and (digest or not cut):
            digest, cut, forwarded = True, False, True
        elif line.kind is LineKind.SEPARATOR and not cut:
            cut = not passes_on and own.enough
            forwarded, passes_on = forwarded or passes_on, False
        elif line.kind is LineKind.HEADER and not cut:
            last = _last_alike(lines, number)
            cut = not (forwarded or passes_on) and own.enough
            passes_on = any(FORWARD_HEADER.match(one.stripped) for one in lines[number : last + 1])
            number = last
        elif line.kind is LineKind.ATTRIBUTION and not cut:
            number = _last_alike(lines, number)
            following = _next_filled(lines, number + 1)
            quotes = following == len(lines) or lines[following].kind is LineKind.QUOTED
            cut = not (quotes or passes_on) and own.enough
            passes_on = passes_on and quotes
        elif line.kind is LineKind.OWN and cut:
            line.kind = LineKind.ORIGINAL
        elif line.kind is LineKind.OWN:
            own.add(line)
            forwarded = forwarded and not line.folded
        number += 1


def _first_headers(lines: Sequence[_Line]) -> Iterator[_Line]:
    """The header lines that a mail begins with, also if they are too few for headers."""
    return takewhile(lambda line: HEADER.fullmatch(line.stripped), lines[_next_filled(lines, 0) :])


def _last_alike(lines: Sequence[_Line], number: int) -> int:
    """The last of some lines of one kind."""
    while number + 1 < len(lines) and lines[number + 1].kind is lines[number].kind:
        number += 1
    return number
