"""Words in tables that are easy to read and to extend: words with blanks between them, or lines of words."""

from __future__ import annotations


def words_of(text: str) -> frozenset[str]:
    """The words of a text."""
    return frozenset(text.split())


def numbered(first: int, lines: str) -> dict[str, int]:
    """Each word of a line, with the number of the line."""
    return {word: number for number, line in enumerate(lines.strip().splitlines(), first) for word in line.split()}


def valued(lines: str) -> dict[str, int]:
    """The words of each line, with the number that the line begins with."""
    rows = (line.split() for line in lines.strip().splitlines())
    return {word: int(value) for value, *words in rows for word in words}
