"""Hostile content of documents, and checks that it does no harm."""

from __future__ import annotations

import json
import re
from collections import Counter
from html.parser import HTMLParser
from typing import Any

NAME = "<img src=x onerror=alert(1)>[red]\u202e"
"""A field name with markup of HTML and of our terminal library, and a change of text direction."""

SNIPPETS = [
    "\x1b[31mred\x1b[0m",
    "\x1b]52;c;aGk=\x07",
    "\x1b]8;;http://evil.example\x1b\\link\x1b]8;;\x1b\\",
    "\x9b31m\x85\x9d0;title\x9c",
    "\x7f\x00\x08\r",
    "\u202etxt.exe\u202c \u2066x\u2069 \u200f\u200e\u061c \u2028\u2029 \ufffa",
    "</mark></span></div><img src=x onerror=alert(1)>",
    "<script>alert(1)</script><svg onload=alert(1)>",
    "\"'><a href='javascript:alert(1)' style='position:fixed'>x</a>",
    "{{7*7}} {% raw %} ${7*7} */ </style> --> ]]>",
    "[bold red]markup[/] [link=http://evil.example]x[/link] :smile: \\[",
    "=HYPERLINK(1) @SUM(1)",
    "half \ud83d of a character",
]


IDS = [
    "../../x",
    "..",
    "%2e%2e%2f_all",
    "a?b#c/d e",
    "_search",
    "\x1b]0;owned\x07\n\x9b2J",
    "\u202eevil\u2066",
    "<script>alert(1)</script>",
    "\"' onmouseover=alert(1) x='",
    "[red]x[/red]",
    "=1+1",
    "漢字 é",
    "i" * 512,
]

STEERING = re.compile(
    "[\x00-\x09\x0b-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u206f\ufff9-\ufffb\ud800-\udfff]"
)
"""Characters that must not reach a terminal: control characters except line ends, and those that change the direction
of text."""


def texts(words: list[str]) -> list[str]:
    """Near-copies full of hostile content: one for each id, with facts that differ."""
    body = [f"{word} {snippet}" for word, snippet in zip(words, SNIPPETS * 20, strict=False)]
    return [
        " ".join([*body, f"costs {n + 10} euros on 3 May 20{n + 10}", SNIPPETS[n % len(SNIPPETS)]])
        for n in range(len(IDS))
    ]


def check_shown(text: str) -> None:
    """The printed text contains no character that controls a terminal."""
    found = STEERING.search(text)
    assert found is None, f"{found[0]!r} in {text[max(found.start() - 80, 0) : found.end() + 20]!r}"


def check_json(text: str) -> list[Any]:
    """The values of lines of JSON as any parser reads them; plain ASCII."""
    assert text.isascii()
    check_shown(text)

    def refused(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    return [json.loads(line, parse_constant=refused) for line in text.splitlines()]


class Page(HTMLParser):
    """A page as parsed by a browser."""

    def __init__(self, content: str) -> None:
        super().__init__(convert_charrefs=True)
        self.tags: Counter[str] = Counter()
        self.attributes: list[tuple[str, str | None]] = []
        self.text = ""
        self.feed(content)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags[tag] += 1
        self.attributes += attrs

    def handle_data(self, data: str) -> None:
        self.text += data

    def check(self) -> None:
        """No element and no attribute comes from a document, only from templates."""
        assert self.tags["script"] == self.tags["style"] == 1
        assert not {"img", "a", "iframe", "object", "embed", "link", "form", "base"} & self.tags.keys()
        names = {name for name, _ in self.attributes}
        assert not [name for name in names if name.startswith("on")]
        assert not {"style", "src", "href", "srcdoc", "action"} & names
        assert not re.search("[\u200e\u200f\u202a-\u202e\u2066-\u2069\x00-\x08\x7f-\x9f]", self.text)
