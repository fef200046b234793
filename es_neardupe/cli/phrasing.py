"""Phrasing of messages for the command line: option names, suggested commands, and the singular after the number 1.

Messages of the library name a parameter in backticks (`min`) and suggest commands as ``es-neardupe enrich INDEX``. On
the command line they name the option, and a suggested command contains the connection options of the current command.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from es_neardupe.options import DEFAULT_PREFIX

__all__ = ["phrase", "phrase_for", "singular", "with_options"]

_PARAMETER = re.compile(r"`([a-z_]+)`")
_ON_AN_INDEX = (
    "init|load|enrich|pipeline|migrate|clean|similar|contained|search|pairs|moved|compare|duplicates|group|groups|fold|watch|stats|"
    "doctor|shingles|audit|distribution|what-if|serve|mcp"
)
_COMMAND = re.compile(rf"es-neardupe ({_ON_AN_INDEX}) (?!-)([^\s`]+)([^`]*)")
_ONE = re.compile(
    r"(?<![0-9.,/])1 (?:different |distinct |random |candidate |verified |more |further |bad )?"
    r"(documents|groups|pairs|candidates|comparisons|copies|keys|shingles|entries|addresses|words|differences|places|"
    r"texts|hits|values|lines|thresholds|tokens)\b[^.:;]*"
)
_WORD = re.compile(r"`[^`]*`|'[^']*'|(?<![\w.*-])[a-z]+(?![\w.*-])")
"""A word of a sentence; quoted texts are passed over, and so are names of several parts, such as ``keep-news``."""
_SINGULAR = {"have": "has", "are": "is", "were": "was", "share": "shares", "wait": "waits", "stand": "stands"} | {
    "they": "it",
    "their": "its",
    "bear": "bears",
    "match": "matches",
    "keep": "keeps",
    "get": "gets",
}
_REPEATED = ("--url", "--profile", "--prefix")

_options: dict[str, str] = {}
"""Parameter -> option, of the current command."""

_given: dict[str, str] = {}
"""Option -> value, for the options in `_REPEATED` that the current command was given."""


def phrase_for(options: Mapping[str, str], given: Mapping[str, Any]) -> None:
    """Set the current command: its options (parameter -> option) and their values (parameter -> value)."""
    _options.clear()
    _options.update(options)
    values = {options[name]: value for name, value in given.items() if name in options and isinstance(value, str)}
    _given.clear()
    _given.update({name: values[name] for name in _REPEATED if values.get(name)})
    if "--url" in _given:
        _given["--url"] = _without_login(_given["--url"])
    if _given.get("--prefix") == DEFAULT_PREFIX:
        del _given["--prefix"]


def phrase(text: str) -> str:
    """A message of the library as a message of the command line."""
    return _COMMAND.sub(_with_connection, singular(with_options(text, _options)))


def with_options(text: str, options: Mapping[str, str]) -> str:
    """A text with option names instead of the parameter names in backticks."""
    return _PARAMETER.sub(lambda match: options.get(match[1], match[0]), text)


def singular(text: str) -> str:
    """A text with the singular after the number 1: ``1 document has no keys``."""
    return _ONE.sub(_in_singular, text)


def _in_singular(match: re.Match[str]) -> str:
    noun = match[1]
    one = noun[:-3] + "y" if noun.endswith("ies") else noun[:-2] if noun == "addresses" else noun[:-1]
    head, _, rest = match[0].partition(noun)
    return head + one + _WORD.sub(lambda word: _SINGULAR.get(word[0], word[0]), rest)


def _with_connection(match: re.Match[str]) -> str:
    """A suggested command with the connection and the prefix of the current command."""
    command, index, rest = match.groups()
    words = [f"{name} {shlex.quote(value)}" for name, value in _given.items() if f"{name} " not in rest]
    return " ".join(["es-neardupe", command, shlex.quote(index), *words]) + rest


def _without_login(url: str) -> str:
    """A URL without user name and password."""
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return "URL"
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
