"""Phrasing of messages for the command line: options in the place of parameters, and suggested commands to paste.

Texts of the library name a parameter in backticks (`min`) and suggest commands as ``es-neardupe enrich INDEX``.
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
    "init|load|enrich|migrate|clean|similar|contained|search|pairs|moved|compare|duplicates|group|groups|watch|stats|"
    "doctor|audit|distribution|what-if"
)
_COMMAND = re.compile(rf"es-neardupe ({_ON_AN_INDEX}) (?!-)([^\s`]+)([^`]*)")
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
    return _COMMAND.sub(_pasted, with_options(text, _options))


def with_options(text: str, options: Mapping[str, str]) -> str:
    """A text with options in the place of the parameters that it names."""
    return _PARAMETER.sub(lambda found: options.get(found[1], found[0]), text)


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
