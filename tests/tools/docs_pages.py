"""Pages of the documentation: their blocks, sections and tables."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

DOCS = Path(__file__).parents[2] / "docs"
FENCE = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)


def blocks(file: Path, *languages: str) -> list[str]:
    """The fenced blocks of these languages."""
    return [text for language, text in FENCE.findall(file.read_text("utf-8")) if language in languages]


def sections(file: Path) -> Iterator[tuple[str, str]]:
    """(heading, text up to the next heading) of a page; fenced blocks are no headings."""
    bare = FENCE.sub(lambda block: re.sub(r"^#", " #", block.group(0), flags=re.MULTILINE), file.read_text("utf-8"))
    parts = re.split(r"^#+ (.*)$", bare, flags=re.MULTILINE)
    yield from zip(parts[1::2], parts[2::2], strict=True)


def section(page: str, heading: str) -> str:
    """The text below a heading, which must occur once."""
    (found,) = (text for title, text in sections(DOCS / page) if title == heading)
    return found


def table(text: str) -> list[list[str]]:
    """The cells of the rows of all tables in a text, without their headers."""
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in re.findall(r"^\|.*\|$", text, re.M)]
    rules = {place for place, row in enumerate(rows) if set("".join(row)) <= set("-: ")}
    return [row for place, row in enumerate(rows) if place not in rules and place + 1 not in rules]
