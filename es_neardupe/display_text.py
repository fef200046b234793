"""Text from documents as HTML and terminals can hold it."""

from __future__ import annotations

import re

from markupsafe import escape

__all__ = ["STEERING", "beginning", "escaped", "shown"]

STEERING = r"\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufff9-\ufffb\ud800-\udfff"
"""For a class of characters: those that change the direction of text or break it into lines unseen, and halves of
characters, which no file takes."""

_UNPRINTABLE = re.compile(rf"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f{STEERING}]")


def shown(text: str) -> str:
    """Text as a file can hold it and a browser shows it: what steers a terminal or the text around it as U+FFFD.

    It is as long as before, so places in it stay true.
    """
    return _UNPRINTABLE.sub("\ufffd", text)


def escaped(text: str) -> str:
    """The same with ``&``, ``<``, ``>`` and both quotes escaped: text between tags, and nothing else."""
    return str(escape(shown(text)))


_BEGINNING = 200


def beginning(text: str, characters: int = _BEGINNING) -> str:
    """The text in one line; of a longer one than ``characters`` the words that fit, and ``...``."""
    plain = " ".join(text.split())
    if len(plain) <= characters:
        return plain
    kept = plain[: characters + 1].rpartition(" ")[0] or plain[:characters]
    return f"{kept}..."
