"""Unprepared texts: pages, mails and log lines, of which much is not their own, compared as they are."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable
from dataclasses import dataclass

from es_neardupe.keys.prepare.preparation import Preparation, Text
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
_LEFT = 0.9
"""Share of the words of a mail that are its own, at most: less than that is a change that decides about matches."""
_LINE_WORDS = 60
"""Words of a log line, at most."""
_VARIABLES = Preparation(masks=(Mask.UUID, Mask.TIME, Mask.IP))
"""Masks of what hardly ever occurs in other short texts."""
_MINIMUM = 0.25
"""Share of the documents that are of one kind."""


@dataclass(frozen=True, kw_only=True)
class UnpreparedTexts:
    """Documents with texts of a kind that should be prepared before they are compared."""

    kind: str
    """``pages``, ``mails`` or ``log lines``."""
    found: int
    """Documents of this kind."""
    documents: int
    """Documents with any words whose texts were examined."""
    options: str
    """The options of `init` and `migrate` that prepare them."""


def beginning_of(text: Text) -> str:
    """What decides the kind of a text."""
    return (text if isinstance(text, str) else "\n".join(text))[:_CHARACTERS]


def unprepared_texts(texts: Iterable[Text], preparation: Preparation) -> UnpreparedTexts | None:
    """The kind of at least a quarter of some texts that are not prepared yet; None if there is none."""
    if preparation:
        return None
    kinds, whole_pages, documents = Counter[str](), 0, 0
    for values in texts:
        text = beginning_of(values)
        documents += bool(text.strip())
        if (kind := _kind(text)) is not None:
            kinds[kind] += 1
            whole_pages += kind == "pages" and _WHOLE_PAGE.search(text) is not None
    ((kind, found),) = kinds.most_common(1) or [("", 0)]
    if found < _MINIMUM * documents or not found:
        return None
    clean = Clean.HTML_MAIN if 2 * whole_pages > found else Clean.HTML
    options = {"pages": f"--clean {clean.value}", "mails": f"--clean {Clean.MAIL.value}", "log lines": "--preset logs"}
    return UnpreparedTexts(kind=kind, found=found, documents=documents, options=options[kind])


def _kind(text: str) -> str | None:
    if sum(1 for _ in zip(_TAG.finditer(text), range(_TAGS), strict=False)) == _TAGS:
        return "pages"
    words = len(text.split())
    if words <= _LINE_WORDS and _VARIABLES.text(text) != text:
        return "log lines"
    if len(Preparation(Clean.MAIL).text(text).split()) <= _LEFT * words and words:
        return "mails"
    return None
