"""Signs that are no letters and no digits, and say something by themselves: ``C++``, ``≥``, ``✗``, ``★★★☆☆``. Texts
that differ in them only have equal words."""

from __future__ import annotations

import re
import unicodedata

from es_neardupe.options import FactKind
from es_neardupe.similarity.facts.currencies import CURRENCY_SIGNS
from es_neardupe.similarity.facts.fact_keys import code_key
from es_neardupe.similarity.facts.numerals import IN_BRACKETS

_YES, _NO, _EMPTY_BOX = "✓✔☑✅", "✗✘✕✖☒❌❎", "☐"
_ANSWERS = {
    **dict.fromkeys([*_YES, "[x]", "[X]"], "yes"),
    **dict.fromkeys(_NO, "no"),
    **dict.fromkeys([_EMPTY_BOX, "[ ]"], _EMPTY_BOX),
}
"""Sign -> its key. An empty box denies only instead of a tick."""
_UP, _DOWN = "▲△↑", "▼▽↓"
_BEFORE_NUMBERS = rf"(?:[<>]=?|=[<>]|[≤≥≦≧⩽⩾{_UP}{_DOWN}])"
_OTHERS = (
    rf"[{_YES}{_NO}{_EMPTY_BOX}]|(?<!\S)\[[xX ]\](?!\S)|[★☆⭐]{{2,}}"
    r"|\b(?:[CcJ]\+\+|[CcFfJ]\#)(?![^\W\d])"  # programming languages
    r"|\b(?!D-)(?:A{1,3}|B{1,3}|C{1,3}|D|F|O|AB)(?:[+−]|-(?!\n))(?![^\s.,;:)\]])"  # ratings, grades, blood groups
)
SYMBOL = rf"{_OTHERS}|{_BEFORE_NUMBERS}(?=\s?[-+−]?[{CURRENCY_SIGNS}]?\d)"
"""A sign that says something."""
_SYMBOL = re.compile(rf"{_OTHERS}|{_BEFORE_NUMBERS}")
_MAY_BE = re.compile(rf"[+#\[−<>≤≥≦≧⩽⩾★☆⭐{_YES}{_NO}{_EMPTY_BOX}{_UP}{_DOWN}]|[A-FO]-")
_PREFIXED = r"(?<=\d)\s?(?:[mM](?:W|V|J|Pa)\b|[kMG][bB](?:ps)?\b)"
"""Units that case alone distinguishes: mW and MW, MB/s and Mb/s."""
_PREFIX = re.compile(_PREFIXED)
_SIGNS = re.compile(
    rf"{SYMBOL}|{_PREFIXED}|[{CURRENCY_SIGNS}¢%‰](?:\((?=\d))?"
    rf"|\((?={IN_BRACKETS})"
    rf"|(?<![^\s(\[])[-−–](?=[{CURRENCY_SIGNS}]?\d)|(?<![^\s(\[{CURRENCY_SIGNS}])\.(?=\d)"
)
_NEAR, _LETTERS = 20, 4
"""Characters on each side of a sign, and letters and digits among them, by which its place is known."""
_ORDERS = {"≦": "≤", "⩽": "≤", "<=": "≤", "=<": "≤", "≧": "≥", "⩾": "≥", ">=": "≥", "=>": "≥"}


def read_symbol(text: str) -> tuple[FactKind, str]:
    """The kind of the fact that a sign is, and its key."""
    if text in _ANSWERS:
        return FactKind.NEGATION, _ANSWERS[text]
    if text[0] in "★☆⭐":
        return FactKind.NUMBER, f"★:{len(text) - text.count('☆')}"
    if text[0].isalpha():
        return FactKind.CODE, code_key(text.lower().replace("−", "-"))
    if text in _UP or text in _DOWN:
        return FactKind.NUMBER, "▲" if text in _UP else "▼"
    return FactKind.NUMBER, _ORDERS.get(text, text)


def symbols_of(text: str) -> list[str]:
    """The keys of the signs of a text."""
    return [read_symbol(one)[1] for one in _SYMBOL.findall(text)] if _MAY_BE.search(text) else []


def prefixes_differ(one: str, other: str) -> bool:
    """Whether two readings have units that case alone distinguishes, and not the same."""
    units = [[unit.strip() for unit in _PREFIX.findall(text)] for text in (one, other)]
    return all(units) and units[0] != units[1]


def signs_of(text: str) -> str:
    """All signs that may say something, each with the letters and digits around it. Exact copies with equal signs have
    no facts that differ."""
    text = text if text.isascii() else unicodedata.normalize("NFKC", text)
    return " ".join(
        f"{_only_letters(text[max(one.start() - _NEAR, 0) : one.start()])[-_LETTERS:]}"
        f"{one[0].strip().replace('−', '-')}"
        f"{_only_letters(text[one.end() : one.end() + _NEAR])[:_LETTERS]}"
        for one in _SIGNS.finditer(text)
    )


def _only_letters(text: str) -> str:
    return "".join(filter(str.isalnum, text.casefold()))
