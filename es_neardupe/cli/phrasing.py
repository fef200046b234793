"""Phrasing of messages for the command line: option names and suggested commands.

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

__all__ = ["phrase", "phrase_for", "with_options"]

_PARAMETER = re.compile(r"`([a-z_]+)`")
_ON_AN_INDEX = (
    "init|load|enrich|pipeline|migrate|clean|similar|contained|search|pairs|moved|compare|duplicates|group|groups|fold|watch|stats|"
    "doctor|shingles|audit|distribution|what-if|serve|mcp"
)
_COMMAND = re.compile(rf"es-neardupe ({_ON_AN_INDEX}) (?!-)([^\s`]+)([^`]*)")
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
    return _COMMAND.sub(_with_connection, with_options(text, _options))


def with_options(text: str, options: Mapping[str, str]) -> str:
    """A text with option names instead of the parameter names in backticks."""
    return _PARAMETER.sub(lambda match: options.get(match[1], match[0]), text)


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
