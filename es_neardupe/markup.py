"""Text from documents as HTML can hold it."""

from __future__ import annotations

import re

from markupsafe import escape

__all__ = ["escaped", "shown"]

_UNPRINTABLE = re.compile(r"[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\ud800-\udfff]")


def shown(text: str) -> str:
    """Text as a file can hold it and a browser shows it: control characters and halves of characters as U+FFFD.

    It is as long as before, so places in it stay true.
    """
    return _UNPRINTABLE.sub("\ufffd", text)


def escaped(text: str) -> str:
    """The same with ``&``, ``<``, ``>`` and both quotes escaped: text between tags, and nothing else."""
    return str(escape(shown(text)))
