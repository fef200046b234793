"""Wording of messages: counts in the singular or plural."""

from __future__ import annotations

__all__ = ["counted"]


def counted(number: int, one: str, many: str = "") -> str:
    """A number with its noun, and with the words that agree with it: ``1 document``, ``2 documents``.

    ``many`` is the plural, if it is not ``one`` with an s: ``counted(n, "document has", "documents have")``.
    """
    return f"{number:,} {one if number == 1 else many or one + 's'}"
