"""Phrasing of messages for the command line: options in the place of parameters, suggested commands to paste, and the
singular where a number is 1.

Texts of the library name a parameter in backticks (`min`) and suggest commands as ``es-neardupe enrich INDEX``.
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
    "init|load|enrich|migrate|clean|similar|contained|search|pairs|moved|compare|duplicates|group|groups|watch|stats|"
    "doctor|audit|distribution|what-if"
)
_COMMAND = re.compile(rf"es-neardupe ({_ON_AN_INDEX}) (?!-)([^\s`]+)([^`]*)")
_ONE = re.compile(
    r"(?<![0-9.,/])1 (?:different |distinct |random |candidate |verified |more |further |bad )?"
    r"(documents|groups|pairs|candidates|comparisons|copies|keys|shingles|entries|addresses|words|differences|places|"
    r"texts|hits|values|lines|thresholds)\b[^.:;]*"
)
_SINGULAR = {"have": "has", "are": "is", "were": "was", "share": "shares", "wait": "waits", "stand": "stands"} | {
    "they": "it",
    "their": "its",
    "bear": "bears",
    "match": "matches",
    "keep": "keeps",
    "get": "gets",
}
_GIVEN = ("--url", "--profile", "--prefix")

_options: dict[str, str] = {}
"""Parameter -> option, of the command under way."""

_given: dict[str, str] = {}
"""What was given of `_GIVEN`: other commands need it too."""


def phrase_for(options: Mapping[str, str], given: Mapping[str, Any]) -> None:
    """From now on, phrase for a command with these options, parameter -> option, and with these values of them."""
    _options.clear()
    _options.update(options)
    values = {options[name]: value for name, value in given.items() if name in options and isinstance(value, str)}
    _given.clear()
    _given.update({name: values[name] for name in _GIVEN if values.get(name)})
    if "--url" in _given:
        _given["--url"] = _without_login(_given["--url"])
    if _given.get("--prefix") == DEFAULT_PREFIX:
        del _given["--prefix"]


def phrase(text: str) -> str:
    """A message as the command line says it."""
    return _COMMAND.sub(_pasted, singular(with_options(text, _options)))


def with_options(text: str, options: Mapping[str, str]) -> str:
    """A text with options in the place of the parameters that it names."""
    return _PARAMETER.sub(lambda found: options.get(found[1], found[0]), text)


def singular(text: str) -> str:
    """A text with the singular where a clause begins with the number 1: ``1 document has no keys``."""
    return _ONE.sub(_of_one, text)


def _of_one(found: re.Match[str]) -> str:
    noun = found[1]
    one = noun[:-3] + "y" if noun.endswith("ies") else noun[:-2] if noun == "addresses" else noun[:-1]
    head, _, rest = found[0].partition(noun)
    return head + one + re.sub(r"[a-z]+", lambda word: _SINGULAR.get(word[0], word[0]), rest)


def _pasted(found: re.Match[str]) -> str:
    """A suggested command with the connection and the prefix that this command was given."""
    command, index, rest = found.groups()
    words = [f"{name} {shlex.quote(value)}" for name, value in _given.items() if f"{name} " not in rest]
    return " ".join(["es-neardupe", command, shlex.quote(index), *words]) + rest


def _without_login(url: str) -> str:
    """A URL without user name and password."""
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return "URL"
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
