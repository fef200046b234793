"""Unprepared texts, of which much is not their own, compared as they are: pages, mails, log lines, texts full of times
or links, scans and hyphenated texts."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import unescape
from itertools import chain, compress, islice

import numpy as np

from es_neardupe.candidates.detection import UnsuitedTexts, unsuited_texts
from es_neardupe.candidates.random_texts import random_texts
from es_neardupe.index import queries
from es_neardupe.index.index import Index
from es_neardupe.keys.arrays import U64
from es_neardupe.keys.prepare import mime
from es_neardupe.keys.prepare.masks import EXPRESSIONS
from es_neardupe.keys.prepare.preparation import Preparation, Text
from es_neardupe.keys.scheme import Scheme
from es_neardupe.keys.shingles import token_hashes, window_hashes
from es_neardupe.keys.text import word_counts
from es_neardupe.keys.unit import Unit
from es_neardupe.options import PRESETS, Clean, Mask

_CHARACTERS = 20_000
"""Characters at the beginning of a text by which its kind is decided."""
_TAG = re.compile(
    r"</?(?:html|head|body|title|meta|link|script|style|div|p|span|a|b|i|em|strong|br|img|h[1-6]|ul|ol|li|table|tr|td|th"
    r"|header|footer|nav|main|article|section|form|font|center|blockquote)(?:\s[^<>]*)?/?>",
    re.IGNORECASE,
)
_TAGS = 5
"""Tags of a page, at least."""
_TAGS_READ = 100
_REFERENCE = re.compile(
    r"&(?:#[0-9]{2,6}|#[xX][0-9A-Fa-f]{2,5}|quot|apos|lt|gt|nbsp|[lrsb][sbd]quo|[lr]aquo|[mn]dash|hellip|bull|euro|szlig"
    r"|[aoAO][Ee]lig|[A-Za-z](?:uml|acute|grave|circ|tilde|cedil|ring|slash|caron));"
)
"""A letter or a sign as texts of pages have them, also those without tags; ``&amp;`` is usual in addresses, and
``&copy;`` and others are code."""
_OF_PAGE = re.compile(r"</|<br|<[^<>=]*=", re.IGNORECASE)
"""One of the first tags of a page: source code has parameters of types such as ``<Article>``, but no end tags."""
_XML = re.compile(r"\ufeff?\s*<(?:\?xml\b|!--|!DOCTYPE\b|[A-Za-z_][\w.:-]*[\s/>])")
"""What a text in XML begins with, whatever tags it has."""
_TEXT = 0.1
"""Share of the words of a text in XML that are no markup, at least: others say what they say in attributes."""
_END_TAG = re.compile(r"</[A-Za-z_][\w.:-]*\s*>")
_WHOLE_PAGE = re.compile(r"<(?:html|body|header|footer|nav|main)\b", re.IGNORECASE)
_MARKUP = re.compile(r"<[/!?]?[A-Za-z]")
"""What looks like a tag, also in source code, which would lose it."""
_BEGINS_PAGE = re.compile(r"\ufeff?\s*(?:<\?xml\b[^<>]*>\s*)?<(?:!doctype html|html|head|body)\b", re.IGNORECASE)
_OF_MAIL_PROGRAM = re.compile(
    r"<blockquote\s[^<>]*\btype=[\"']?cite|[\"'\s](?:gmail_quote|moz-cite-prefix|yahoo_quoted|divRplyFwdMsg)\b",
    re.IGNORECASE,
)
"""What pages of mails have before a quote or around it."""
_LEFT = 0.9
"""Share of the words of a mail that are its own, at most: less than that is a change that decides about matches."""
_SENT = re.compile(r"@|[0-9]:[0-9]{2}")
"""An address, or the time of a mail: headers of memos have neither."""
_LINE_WORDS = 60
"""Words of a log line, at most."""
_LEVELS = r"(?:trace|debug|info|notice|warn(?:ing)?|err(?:or)?|crit(?:ical)?|severe|alert|emerg|fatal|panic)"
_LEVEL = re.compile(rf"(?<![\w-])(?:{_LEVELS.upper()}(?![\w-])|(?<=[\[<(])(?i:{_LEVELS})(?=[\])>:]))")
"""A level in capital letters or in brackets."""
_LEVEL_CHARACTERS = 120
"""Characters at the beginning of a log line, one of which its level begins with."""
_VARIABLES = Preparation(masks=(Mask.UUID, Mask.TIME, Mask.IP))
"""Masks of what each line of a log has, and few other lines with a level."""
_CLOCK = re.compile(r"(?<![0-9])[0-9]{1,2}:[0-9]{2}:[0-9]{2}(?![0-9])(?:[.,][0-9]{1,9})?|\b[0-9]{10}\.[0-9]{3}\b")
"""The time of a log line, with seconds, or in seconds since 1970."""
_IN_ROW = r"[,;](?! )|\t"
_NO_LOG = re.compile(rf"\s*-->|{_IN_ROW}")
"""What follows the time of a subtitle, or of a row of a table."""
_TIMED_LINE = re.compile(
    rf"(?m)^[^\w\n]*(?:(?:{_CLOCK.pattern})(?![0-9]|{_IN_ROW})|[0-9]{{1,2}}:[0-9]{{2}}[.,][0-9]{{3}}(?=\s*-->))"
)
"""The time at the beginning of a line, such as a subtitle, but no row of a table."""
_LINK = re.compile(EXPRESSIONS[Mask.URL])
_OF_ONE_COPY = re.compile(r"(\?.*=.*)|://[^/]+/([0-9A-Za-z]*(?:[0-9]|[a-z][A-Z])[0-9A-Za-z]*)$")
"""Parameters, or the path of a short link: another copy of a text may have others. Names of pages stay the same."""
_MASKED = 0.1
"""Share of the words of a text that are times, at least: with so many, copies with others hardly match."""
_OF_LINKS = 0.05
"""Share of the words that are in the parts of links of which copies have others, at least."""
_UNMASKED = 5
"""Words besides links, at least: a text with fewer is hardly more than a link."""
_CLOCK_CHARACTERS = 80
"""Characters at the beginning of a log line within which its time begins."""
_BETWEEN = re.compile(r"[\s\[\](){}<>\"'|]+")
_ADDRESS = r"[0-9]{1,3}(?:\.[0-9]{1,3}){3}(?::[0-9]+)?"
_BEFORE_CLOCK = re.compile(
    rf"(?i)[-*]?|{_LEVELS}:?|(?:mon|tue|wed|thu|fri|sat|sun),?|(?:jan|feb|mar|apr|may|jun|jul|aug|sep|oct|nov|dec)"
    rf"|[0-9]{{1,4}}(?:[-/.][0-9a-z]{{2,3}}(?:[-/.][0-9]{{2,4}})?)?[t,:_]?|[0-9]{{8}}[t-]?|[0-9]{{10}}|[iwef][0-9]{{4}}|{_ADDRESS}"
    r"|[a-z][a-z0-9_-]*[0-9.][a-z0-9_.-]*"
)
"""What may stand before the time of a log line: a level, a date, a host."""
_JSON_LEVEL = re.compile(rf'(?i)"(?:level|severity|lvl|log\.level)"\s*:\s*(?:"{_LEVELS}"|[1-6]0\b)')
_JSON_TIME = re.compile(r'"(?:ts|@?timestamp|time|asctime)"\s*:\s*(?:[0-9]{9}|"[^"]*[0-9]:[0-9]{2}:[0-9]{2})')
_JSON_MESSAGE = re.compile(r'"(?:msg|message|log)"\s*:')
"""Fields of a log line in JSON."""
_LOGFMT = re.compile(rf"(?i)(?<!\S)(?:(?:level|lvl|severity)=\"?{_LEVELS}\b|(?:ts|time|timestamp)=\"?[0-9]{{4}})")
"""The same as NAME=VALUE."""
_FRAME = re.compile(
    r"\s*(?:at [\w.$<>/]+\([^()]*\)$|File \"[^\"]+\", line [0-9]+|Traceback \(most recent call last\):|panic: )"
)
"""A line of a stack trace."""
_FRAME_LINES = 2
"""Lines at the beginning of a stack trace, one of which is such a line."""
_DIVIDED = re.compile(r"(?<=[^\W\d_]{2})[-\u00ac\u00ad]\n\s*(?=[^\W\d_]{2})")
"""Where a word is divided at a line end, in scans and in texts of PDF files."""
_MISREAD = re.compile(r"(?<!\w)[^\W\d_]{0,30}[a-z\u00df-\u00ff][015][a-z\u00df-\u00ff]{1,30}(?!\w)")
"""A word that has a digit which looks like a letter."""
_SIGN = re.compile(r"[015\-\u00ac\u00ad](?:(?<=[015])[a-z\u00df-\u00ff]|(?<=[-\u00ac\u00ad])\n)")
"""A part of each divided or misread word, found in a tenth of the time or less: few characters can begin it."""
_DIVIDED_WORDS = 200
"""Words of a scan or a hyphenated text in which one is such a word, at most: other texts have hardly any."""
_WORD = re.compile(r"[^\W\d_]{4,}")
"""A word that is hardly ever like another one by chance."""
_CONFUSED = (("rn", "m"), ("cl", "d"), ("vv", "w"), ("li", "h"))
_CONFUSED_LETTERS = str.maketrans("eqbfuljy", "cghtniiv")
"""Letters that scanners confuse; but not a with o, which end different words in many languages."""
_USUAL = 5
"""Texts that have a usual word, at least."""
_LOOK_ALIKE = 0.02
"""Share of the words of a scan that no other text has, and that look like a usual one, at least."""
_MINIMUM = 0.25
"""Share of the documents that are of one kind."""
_CERTAIN = 0.05
"""The same of texts that begin as pages do, and of quotes that come from another text: no others look like them."""
_QUOTED_WORDS = 5
"""Words of the windows by which quotes are found in other texts: those on another subject have hardly one of them."""
_HALF = 0.5
_ENOUGH = 20
"""Documents that are enough to recognise the kind of the texts in an index."""
_HYPHENATED = "hyphenated texts"
_TIMED = "texts full of times"
_LINKED = "texts full of links"
_OPTIONS = {
    "mails": {"clean": Clean.MAIL.value},
    "log lines": {"preset": "logs"},
    "scans": {"preset": "scans"},
    _HYPHENATED: {"preset": "reader"},
    _TIMED: {"mask": "time,digits"},
    _LINKED: {"mask": "url"},
}
"""Kind -> what prepares its texts; pages have one of two."""
_NOT_THEIR_OWN = {
    Clean.HTML.value: "markup",
    Clean.HTML_MAIN.value: "markup and menus",
    Clean.MAIL.value: "quotes and signatures",
    "logs": "times and ids",
    "scans": "words that are divided at line ends or were misread",
    "reader": "words that are divided at line ends",
    "time,digits": "times and numbers",
    "url": "links",
}
"""What to leave out or to mask, or preset -> what it keeps out of the keys."""


@dataclass(frozen=True, kw_only=True)
class UnpreparedTexts:
    """Documents with texts of a kind that should be prepared before they are compared."""

    kind: str
    """``pages``, ``mails``, ``log lines``, ``texts full of times``, ``texts full of links``, ``scans`` or ``hyphenated
    texts``."""
    found: int
    """Documents of this kind."""
    documents: int
    """Documents with any words whose texts were examined."""
    preset: str | None = None
    """The preset of `init` and `migrate` for such texts; None if any may suit them."""
    clean: str | None = None
    """What `init` and `migrate` should leave out of them."""
    mask: str | None = None
    """What they should replace by placeholders, separated by commas."""

    @property
    def not_their_own(self) -> str:
        """What their keys should not be made of."""
        return _NOT_THEIR_OWN[self.clean or self.mask or self.preset or ""]

    @property
    def options(self) -> str:
        """The options of the commands."""
        given = (("--preset", self.preset), ("--clean", self.clean), ("--mask", self.mask))
        return " ".join(f"{option} {value}" for option, value in given if value is not None)


def beginning_of(text: Text) -> str:
    """What decides the kind of a text."""
    return (text if isinstance(text, str) else "\n".join(text))[:_CHARACTERS]


def unfit_texts(index: Index, processed: int) -> tuple[UnpreparedTexts | None, UnsuitedTexts | None]:
    """What does not fit the keys of an opened index: the texts of random documents, and the lengths of all. Texts are
    read if lengths do not fit, or if a run has ``processed`` enough documents to recognise their kind."""
    unsuited, target = unsuited_texts(index), index.target
    if index.settings.scheme.preparation or (processed < _ENOUGH and (unsuited is None or unsuited.preset is None)):
        return None, unsuited
    texts = random_texts(index, queries.matching(target.within()), target.max_result_window)
    return unprepared_texts((text for _, text in texts), index.settings.scheme), unsuited


def unprepared_texts(texts: Iterable[Text], scheme: Scheme) -> UnpreparedTexts | None:
    """What `texts_of_one_kind` finds if keys are made of the texts as they are; None if they are prepared."""
    found = None if scheme.preparation else texts_of_one_kind(texts)
    return None if found is not None and found.preset is not None and _suits(scheme, found.preset) else found


def _suits(scheme: Scheme, preset: str) -> bool:
    """Whether keys survive divided or misread words as well as those of a preset for them."""
    return preset in ("reader", "scans") and (
        scheme.unit is not Unit.WORD or (preset == "reader" and scheme.shingle <= PRESETS["reader"]["shingle"])
    )


def texts_of_one_kind(texts: Iterable[Text]) -> UnpreparedTexts | None:
    """The kind of at least a quarter of some texts, or pages if a twentieth begin as such; None if there is none."""
    kinds, whole_pages, begin_pages, mail_pages, documents = Counter[str](), 0, 0, 0, 0
    others: list[tuple[str, str]] = []
    for values in texts:
        text = beginning_of(values)
        documents += bool(text.strip())
        if _is_page_of_mail(text):
            mail_pages += 1
        elif (kind := _kind(text)) in ("", _HYPHENATED):
            others.append((kind, text))
        else:
            kinds[kind] += 1
            page = unescape(text) if kind == "pages" else ""
            whole_pages += _WHOLE_PAGE.search(page) is not None
            begin_pages += _BEGINS_PAGE.match(page) is not None
    if mail_pages and mail_pages >= _MINIMUM * (mail_pages + kinds["pages"]):
        mail_pages += kinds.pop("pages", 0)  # mails that are no replies
    replies = _replies([text for _, text in others])
    kinds["mails"] += mail_pages + sum(replies)
    others = [one for one, is_reply in zip(others, replies, strict=True) if not is_reply]
    misread = _misread_texts([set(_WORD.findall(_DIVIDED.sub("", text.lower()))) for _, text in others])
    kinds += Counter("scans" if wrong else kind for (kind, _), wrong in zip(others, misread, strict=True))
    del kinds[""]
    if kinds["scans"] and kinds["scans"] >= _MINIMUM * (kinds["scans"] + kinds[_HYPHENATED]):
        kinds["scans"] += kinds.pop(_HYPHENATED, 0)  # scans without misread words
    ((kind, found),) = kinds.most_common(1) or [("", 0)]
    if found < _MINIMUM * documents:
        of_code = sum(_MARKUP.search(text) is not None for _, text in others) > _HALF * len(others)
        are_pages = begin_pages >= _CERTAIN * documents and not of_code
        kind, found = "pages", kinds["pages"] if are_pages else 0
    if not found:
        return None
    html = Clean.HTML_MAIN if 2 * whole_pages > found else Clean.HTML
    options = {"clean": html.value} if kind == "pages" else _OPTIONS[kind]
    return UnpreparedTexts(kind=kind, found=found, documents=documents, **options)


def _is_page_of_mail(text: str) -> bool:
    """Whether a text is a page that a mail program has made, with a quote."""
    if not mime.is_page(text):
        return False
    return _OF_MAIL_PROGRAM.search(text) is not None or _has_attribution(mime.text_of(text) or "")


def _has_attribution(text: str) -> bool:
    """Whether a mail that is quoted is attributed, with a date or an address; quotations of books have neither."""
    from es_neardupe.keys.prepare.mail import LineKind, line_kinds  # phrases are loaded for mails only
    from es_neardupe.keys.prepare.mail_phrases import DATED

    return any(kind is LineKind.ATTRIBUTION and DATED.search(line) for kind, line in line_kinds(text))


def _has_lines_of_mail(text: str) -> bool:
    """Whether some lines are those of mails only. Other texts have quotes, rules and headers of memos too."""
    from es_neardupe.keys.prepare.mail import LineKind, line_kinds

    return any(
        kind is LineKind.FOOTER
        or (kind is LineKind.HEADER and _SENT.search(line))
        or (kind in (LineKind.SEPARATOR, LineKind.FORWARDED) and any(map(str.isalpha, line)))
        or (kind is LineKind.SIGNATURE and line == "-- ")
        for kind, line in line_kinds(text)
    )


def _kind(text: str) -> str:
    """The kind of a text; "" if it is of none. The first that applies counts."""
    kinds = (
        ("mails", _is_message),
        ("pages", _is_page),
        ("log lines", _is_log_line),
        ("pages", _has_references),
        ("mails", _is_mail),
        ("log lines", _begins_as_log),
        (_TIMED, _is_timed),
        (_LINKED, _is_linked),
    )
    return next((kind for kind, applies in kinds if applies(text)), None) or _kind_of_words(text)


def _is_message(text: str) -> bool:
    return mime.decoded(text) is not None


def _is_page(text: str) -> bool:
    """Whether a text has the tags of a page, or those of XML around its parts, also if they are escaped."""
    text = unescape(text)
    tags = [tag[0] for tag in islice(_TAG.finditer(text), _TAGS_READ)]
    if len(tags) >= _TAGS and any(map(_OF_PAGE.match, tags)):
        return True
    if _XML.match(text) is None or not _several(_END_TAG, text):
        return False
    before, left = word_counts([text, Preparation(Clean.HTML).text(text)])
    return left >= _TEXT * before


def _several(expression: re.Pattern[str], text: str) -> bool:
    """Whether a text has as many such parts as a page has tags."""
    return sum(1 for _ in islice(expression.finditer(text), _TAGS)) == _TAGS


def _has_references(text: str) -> bool:
    return _several(_REFERENCE, text)


def _kind_of_words(text: str) -> str:
    """The kind of a text by its divided and misread words."""
    if not _SIGN.search(text):
        return ""
    words = len(text.split())
    misread, divided = (sum(1 for _ in one.finditer(text)) for one in (_MISREAD, _DIVIDED))
    if misread + divided < 2 or (misread + divided) * _DIVIDED_WORDS < words:
        return ""
    return "scans" if misread and misread * _DIVIDED_WORDS >= words else _HYPHENATED


def _is_mail(text: str) -> bool:
    """Whether much of a text is what programs have added to a mail."""
    return not mime.is_page(text) and _has_much_of_mail(text) and (_has_attribution(text) or _has_lines_of_mail(text))


def _has_much_of_mail(text: str) -> bool:
    """Whether much of a text would be left out of a mail."""
    words = len(text.split())
    return words > 0 and len(Preparation(Clean.MAIL).text(text).split()) <= _LEFT * words


def _replies(texts: Sequence[str]) -> list[bool]:
    """Whether each of some texts is a reply with quotes, but without a date or an address, as in forums.

    Quotations of books look the same. So all texts with quotes are replies if some of them are certain to be: most of
    what they quote, but not of what they say, is also said in another text.
    """
    parts = [_said_and_quoted(text) for text in texts]
    quoting = [bool(quote) and _has_much_of_mail(text) for (_, quote), text in zip(parts, texts, strict=True)]
    if not any(quoting):
        return quoting
    said, quoted = (
        [np.unique(window_hashes(tokens, _QUOTED_WORDS)) for tokens in token_hashes([one[part] for one in parts])]
        for part in (0, 1)
    )
    anywhere, counts = np.unique(np.concatenate(said), return_counts=True)
    certain = sum(
        _share(np.setdiff1d(quote, own), anywhere) >= _HALF > _share(own, anywhere[counts > 1])
        for own, quote in zip(compress(said, quoting), compress(quoted, quoting), strict=True)
    )
    return quoting if certain >= _CERTAIN * sum(quoting) else [False] * len(texts)


def _said_and_quoted(text: str) -> tuple[str, str]:
    """The lines without marks of quotes, and those with such marks."""
    from es_neardupe.keys.prepare.mail_phrases import QUOTED

    lines: tuple[list[str], list[str]] = ([], [])
    for line in text.splitlines():
        lines[QUOTED.match(line) is not None].append(line)
    return "\n".join(lines[0]), "\n".join(lines[1])


def _share(some: U64, of: U64) -> float:
    return float(np.isin(some, of).mean()) if len(some) else 0.0


def _misread_texts(texts: Sequence[set[str]]) -> list[bool]:
    """Whether each of some texts, given by their words, has wrong letters: words of its own that look like usual
    ones."""
    frequencies = Counter(chain.from_iterable(texts))
    usual = {_appearance(word) for word, number in frequencies.items() if number >= _USUAL}
    misread = (sum(frequencies[word] == 1 and _appearance(word) in usual for word in words) for words in texts)
    return [number >= max(2, _LOOK_ALIKE * len(words)) for words, number in zip(texts, misread, strict=True)]


def _appearance(word: str) -> str:
    """The same for words that scanners confuse."""
    for several, one in _CONFUSED:
        word = word.replace(several, one)
    return word.translate(_CONFUSED_LETTERS)


def _is_log_line(text: str) -> bool:
    if len(text.split()) > _LINE_WORDS:
        return False
    if text.startswith("{"):
        with_time = _JSON_TIME.search(text) is not None and _JSON_MESSAGE.search(text) is not None
        return with_time or _JSON_LEVEL.search(text) is not None
    if _LOGFMT.search(text) or _begins_with_time(text):
        return True
    return _LEVEL.search(text[:_LEVEL_CHARACTERS]) is not None and _VARIABLES.text(text) != text


def _begins_as_log(text: str) -> bool:
    """Whether the first line of a text is that of a log, or a stack trace begins."""
    return _is_log_line(text.lstrip().split("\n", 1)[0]) or _is_stack_trace(text)


def _begins_with_time(text: str) -> bool:
    """Whether a time stands at the beginning of a line, or below nothing but a level, a date and the host."""
    clock = _CLOCK.search(text)
    if clock is None or clock.start() > _CLOCK_CHARACTERS or _NO_LOG.match(text, clock.end()):
        return False
    before = [part for part in _BETWEEN.split(text[: clock.start()]) if part]
    from_address = before and re.fullmatch(_ADDRESS, before[0])
    return bool(from_address) or all(map(_BEFORE_CLOCK.fullmatch, before))


def _is_timed(text: str) -> bool:
    """Whether a text is full of lines with their time, as subtitles and transcripts are."""
    times = _TIMED_LINE.findall(text)
    return len(times) >= _TAGS and _words(times) >= _MASKED * _words([text])


def _is_linked(text: str) -> bool:
    """Whether a text is full of links that may be others in its copies."""
    links = _LINK.findall(text)
    differing = _words(["".join(filter(None, found.groups())) for found in map(_OF_ONE_COPY.search, links) if found])
    words = _words([text])
    return differing > 0 and differing >= _OF_LINKS * words and words - _words(links) >= _UNMASKED


def _words(texts: Sequence[str]) -> int:
    return sum(word_counts(texts))


def _is_stack_trace(text: str) -> bool:
    return any(map(_FRAME.match, text.lstrip().split("\n", _FRAME_LINES)[:_FRAME_LINES]))
