"""Unprepared texts: pages, mails, log lines and scans, of which much is not their own, compared as they are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from html import unescape
from itertools import chain

from es_neardupe.candidates.detection import UnsuitedTexts, unsuited_texts
from es_neardupe.candidates.random_texts import random_texts
from es_neardupe.index import queries
from es_neardupe.index.index import Index
from es_neardupe.keys.prepare import mime
from es_neardupe.keys.prepare.preparation import Preparation, Text
from es_neardupe.keys.scheme import Scheme
from es_neardupe.keys.unit import Unit
from es_neardupe.options import Clean, Mask

_CHARACTERS = 20_000
"""Characters at the beginning of a text by which its kind is decided."""
_TAG = re.compile(
    r"</?(?:html|head|body|title|meta|link|script|style|div|p|span|a|b|i|em|strong|br|img|h[1-6]|ul|ol|li|table|tr|td|th"
    r"|header|footer|nav|main|article|section|form|font|center|blockquote)(?:\s[^<>]*)?/?>",
    re.IGNORECASE,
)
_TAGS = 5
"""Tags of a page, at least."""
_WHOLE_PAGE = re.compile(r"<(?:html|body|header|footer|nav|main)\b", re.IGNORECASE)
_OF_MAIL_PROGRAM = re.compile(
    r"<blockquote\s[^<>]*\btype=[\"']?cite|[\"'\s](?:gmail_quote|moz-cite-prefix|yahoo_quoted|divRplyFwdMsg)\b",
    re.IGNORECASE,
)
"""What pages of mails have before a quote or around it."""
_LEFT = 0.9
"""Share of the words of a mail that are its own, at most: less than that is a change that decides about matches."""
_LINE_WORDS = 60
"""Words of a log line, at most."""
_VARIABLES = Preparation(masks=(Mask.UUID, Mask.TIME, Mask.IP))
"""Masks of what hardly ever occurs in other short texts, or in the first lines of others."""
_LEVEL = re.compile(r'"(?:level|severity|lvl|log\.level)"\s*:')
"""A field of a log line in JSON."""
_MISREAD = re.compile(
    r"[^\W\d_]{2}[-\u00ac\u00ad]\n\s*[^\W\d_]{2}"
    r"|(?<!\w)[^\W\d_]{0,30}[a-z\u00df-\u00ff][015][a-z\u00df-\u00ff]{1,30}(?!\w)|[\ufb00-\ufb06]"
)
"""A word that is divided at a line end, that has a digit which looks like a letter, or that has a ligature."""
_MISREAD_SIGN = re.compile(
    r"[015\-\u00ac\u00ad\ufb00-\ufb06](?:(?<=[015])[a-z\u00df-\u00ff]|(?<=[-\u00ac\u00ad])\n|(?<=[\ufb00-\ufb06]))"
)
"""A part of each misread word, found in a tenth of the time or less: few characters can begin it."""
_MISREAD_WORDS = 200
"""Words of a scan in which one is such a word, at most: other texts have hardly any."""
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
_ENOUGH = 20
"""Documents that are enough to recognise the kind of the texts in an index."""


@dataclass(frozen=True, kw_only=True)
class UnpreparedTexts:
    """Documents with texts of a kind that should be prepared before they are compared."""

    kind: str
    """``pages``, ``mails``, ``log lines`` or ``scans``."""
    found: int
    """Documents of this kind."""
    documents: int
    """Documents with any words whose texts were examined."""
    options: str
    """The options of `init` and `migrate` that prepare them."""


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
    """The kind of at least a quarter of some texts that are not prepared yet; None if there is none."""
    if scheme.preparation:
        return None
    kinds, whole_pages, mail_pages, documents = Counter[str](), 0, 0, 0
    others: list[set[str]] = []
    for values in texts:
        text = beginning_of(values)
        documents += bool(text.strip())
        if _is_page_of_mail(text):
            mail_pages += 1
        elif (kind := _kind(text)) is not None:
            kinds[kind] += 1
            whole_pages += kind == "pages" and _WHOLE_PAGE.search(unescape(text)) is not None
        else:
            others.append(set(_WORD.findall(text.lower())))
    if mail_pages and mail_pages >= _MINIMUM * (mail_pages + kinds["pages"]):
        mail_pages += kinds.pop("pages", 0)  # mails that are no replies
    kinds["mails"] += mail_pages
    if misread := _misread_texts(others):
        kinds["scans"] += misread
    ((kind, found),) = kinds.most_common(1) or [("", 0)]
    if found < _MINIMUM * documents or not found or (kind == "scans" and scheme.unit is not Unit.WORD):
        return None
    clean = Clean.HTML_MAIN if 2 * whole_pages > found else Clean.HTML
    options = {
        "pages": f"--clean {clean.value}",
        "mails": f"--clean {Clean.MAIL.value}",
        "log lines": "--preset logs",
        "scans": "--preset scans",
    }
    return UnpreparedTexts(kind=kind, found=found, documents=documents, options=options[kind])


def _is_page_of_mail(text: str) -> bool:
    """Whether a text is a page that a mail program has made, with a quote."""
    if not mime.is_page(text):
        return False
    if _OF_MAIL_PROGRAM.search(text):
        return True
    from es_neardupe.keys.prepare.mail import LineKind, line_kinds  # phrases are loaded for mails only
    from es_neardupe.keys.prepare.mail_phrases import DATED

    kinds = line_kinds(mime.text_of(text) or "")
    return any(kind is LineKind.ATTRIBUTION and DATED.search(line) for kind, line in kinds)


def _kind(text: str) -> str | None:
    if mime.decoded(text) is not None:
        return "mails"
    if sum(1 for _ in zip(_TAG.finditer(unescape(text)), range(_TAGS), strict=False)) == _TAGS:
        return "pages"
    words = len(text.split())
    if _is_log_line(text):
        return "log lines"
    if words and not mime.is_page(text) and len(Preparation(Clean.MAIL).text(text).split()) <= _LEFT * words:
        return "mails"
    if _is_log_line(text.lstrip().split("\n", 1)[0]):
        return "log lines"  # with a stack trace
    misread = sum(1 for _ in _MISREAD.finditer(text)) if _MISREAD_SIGN.search(text) else 0
    return "scans" if misread > 1 and misread * _MISREAD_WORDS >= words else None


def _misread_texts(texts: Sequence[set[str]]) -> int:
    """How many texts, given by their words, have wrong letters: words of their own that look like usual ones."""
    frequencies = Counter(chain.from_iterable(texts))
    usual = {_appearance(word) for word, number in frequencies.items() if number >= _USUAL}
    misread = (sum(frequencies[word] == 1 and _appearance(word) in usual for word in words) for words in texts)
    return sum(number >= max(2, _LOOK_ALIKE * len(words)) for words, number in zip(texts, misread, strict=True))


def _appearance(word: str) -> str:
    """The same for words that scanners confuse."""
    for several, one in _CONFUSED:
        word = word.replace(several, one)
    return word.translate(_CONFUSED_LETTERS)


def _is_log_line(text: str) -> bool:
    if len(text.split()) > _LINE_WORDS:
        return False
    return _VARIABLES.text(text) != text or (text.startswith("{") and _LEVEL.search(text) is not None)
