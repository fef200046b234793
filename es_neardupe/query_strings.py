"""Limits of query strings. A server parses them by recursion: thousands of nested brackets overflow the stack of its
parser, and the request is never answered. It makes an automaton of each pattern: hundreds of them hold it for many
seconds, and exhaust the memory of a small node."""

from __future__ import annotations

import re

MAX_CHARACTERS = 10_000
"""Characters of a query string. A list of values of this length is better a ``terms`` query."""
MAX_NESTED = 100
"""Brackets in brackets."""
MAX_PATTERNS, MAX_IN_PATTERNS = 20, 1000
"""Words with wildcards, fuzzy words and regular expressions, and their characters together. A word that only ends with
``*`` is none: it needs no automaton."""
_PARTS = re.compile(r'\\.|"(?:[^"\\]|\\.)*"|[()]', re.DOTALL)
_TERMS = re.compile(r""""(?:[^"\\]|\\.)*"(?:~\d*)?|/(?:[^/\\]|\\.)*/|(?:[^\s()":/^\[\]{}\\]|\\.)+""", re.DOTALL)
_ESCAPED = re.compile(r"\\.", re.DOTALL)
_PATTERN = re.compile(r"/|[?~]|\*.", re.DOTALL)
_KINDS = ("query_string", "simple_query_string")


def problem_of_string(text: str) -> str:
    """Why a query string is not sent, and what to do; "" if it is sent."""
    if len(text) > MAX_CHARACTERS:
        return (
            f"The query string has {len(text):,} characters, and at most {MAX_CHARACTERS:,} are sent. Use fewer words, "
            "or for many values a terms query of the DSL."
        )
    depth = deepest = 0
    for part in _PARTS.finditer(text):
        depth = max(depth + {"(": 1, ")": -1}.get(part[0], 0), 0)
        deepest = max(deepest, depth)
    if deepest > MAX_NESTED:
        return (
            f"The query string has {deepest:,} nested brackets, and at most {MAX_NESTED} are sent. To search for "
            r"brackets, write \( and \), or put the text in quotes."
        )
    patterns = [one for one in _TERMS.findall(text) if one[0] != '"' and _PATTERN.search(_ESCAPED.sub("", one))]
    characters = sum(map(len, patterns))
    if len(patterns) > MAX_PATTERNS or characters > MAX_IN_PATTERNS:
        return (
            f"The query string has {len(patterns):,} pattern{'s' * (len(patterns) > 1)} with {characters:,} "
            f"characters, and at most {MAX_PATTERNS} with {MAX_IN_PATTERNS:,} are sent: words with wildcards, "
            "fuzzy words, regular expressions. Use fewer; a * at the end of a word does not count."
        )
    return ""


def problem_of_query(query: object) -> str:
    """The same for the query strings in a query of the DSL."""
    waiting = [query]
    while waiting:
        one = waiting.pop()
        if isinstance(one, dict):
            for kind in _KINDS:
                inner = one.get(kind)
                text = inner.get("query") if isinstance(inner, dict) else None
                if isinstance(text, str) and (problem := problem_of_string(text)):
                    return problem
            waiting.extend(one.values())
        elif isinstance(one, list):
            waiting.extend(one)
    return ""
