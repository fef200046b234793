"""The module in C that reads pages, with the names of the rules and the table of words."""

from __future__ import annotations

from collections.abc import Collection
from functools import cache
from html.entities import html5
from types import ModuleType

from es_neardupe.compiled import compiled
from es_neardupe.keys.prepare import html_guard, html_main, html_page
from es_neardupe.keys.unicode import table

_RULES: tuple[Collection[str], ...] = (
    html_page.UNSEEN,
    html_page.INLINE,
    html_page.WITHOUT_CHILDREN,
    html_main.OUTER,
    html_main.MAIN,
    html_main.ARTICLE,
    html_main.SECTIONS,
    html_main.APART,
    html_main.LIST_BLOCKS,
    html_main.APART_ROLES,
    html_main.APART_NAMES,
    html_guard.UNCOUNTED,
    html_guard.FORMATS,
    html_guard.FOREIGN,
    html_guard.RAW,
    html_guard.SCOPES,
    html_guard.SPECIAL,
)
"""In the order of the bits in ``_html_names.h``."""


@cache
def kernel() -> ModuleType | None:
    """The module, ready for use; None if it was not built."""
    if (module := compiled("keys.prepare._html")) is None:
        return None
    rules: dict[str, int] = {}
    for bit, names in enumerate(_RULES):
        for name in names:
            rules[name] = rules.get(name, 0) | 1 << bit
    module.define(rules, html5, *table())
    return module


def is_too_costly(html: str) -> bool:
    """Whether a page is read without a tree."""
    module = kernel()
    found: bool | None = None if module is None else module.is_too_costly(html)
    return html_guard.is_too_costly(html) if found is None else found


def text(html: str, *, main: bool) -> str | None:
    """The text of a page that is not too costly, if it is certain without a tree."""
    module = kernel()
    made: str | None = None if module is None else module.text(html, main)
    return made
