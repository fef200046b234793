"""The module in C that reads mails, with the phrases, the lower case of letters and the table of words."""

from __future__ import annotations

from functools import cache
from types import ModuleType

import numpy as np

from es_neardupe.compiled import compiled
from es_neardupe.keys.prepare import mail_phrases
from es_neardupe.keys.unicode import table

_PHRASES: tuple[tuple[str, ...], ...] = (
    mail_phrases.VERBS,
    mail_phrases.OPENERS,
    mail_phrases.DATE_OPENERS,
    mail_phrases.VERBS_BETWEEN,
    mail_phrases.QUOTING,
    (mail_phrases.PASSED_ON,),
    mail_phrases.VERBS_BEFORE_DATES,
    mail_phrases.ORIGINALS,
    mail_phrases.FORWARDS,
    (mail_phrases.FORWARDED_BY,),
    mail_phrases.FORWARDS_WITHOUT_RULE,
    mail_phrases.SENDERS,
    mail_phrases.SUBJECTS,
    mail_phrases.DATES,
    mail_phrases.OTHER_HEADERS,
    mail_phrases.FORWARD_SUBJECTS,
    mail_phrases.MAILING_LIST,
    mail_phrases.REPLY_ABOVE,
)
"""In the order of ``_mail.c``."""

_CASED = 0x20000
"""No letter with a lower case has this code point, or a higher one."""
_CAPITAL_DOTTED_I = 0x130
"""The one letter whose lower case has two characters."""


@cache
def kernel() -> ModuleType | None:
    """The module, ready for use; None if it was not built."""
    if (module := compiled("keys.prepare._mail")) is None:
        return None
    phrases = tuple(tuple(sorted(one.encode() for one in phrases)) for phrases in _PHRASES)
    footers = sorted((one.begins.encode(), one.most, one.ends.encode(), one.filled) for one in mail_phrases.FOOTERS)
    module.define(phrases, tuple(footers), _lower(), *table())
    return module


def _lower() -> bytes:
    points = np.arange(_CASED, dtype="<u4")
    points[_CAPITAL_DOTTED_I] = ord("i")
    small = points.tobytes().decode("utf-32-le", "surrogatepass").lower().encode("utf-32-le", "surrogatepass")
    return np.frombuffer(small, "<u4").astype(np.uint32).tobytes()


def own_text(mail: str, *, passes_on: bool = False) -> str | None:
    """What is the mail's own, if the number of its words is certain without canonical composition."""
    module = kernel()
    made: str | None = None if module is None else module.own_text(mail, passes_on)
    return made
