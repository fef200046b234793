"""Phrasing for the command line: help texts and messages name options instead of parameters, and suggested commands
contain the connection of the current command."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

from es_neardupe.options import DEFAULT_PREFIX
from es_neardupe.wording import CommandLine

_PARAMETER = re.compile(r"`([a-z_]+)`")
_REPEATED = ("--url", "--profile", "--prefix")
"""Options that a suggested command repeats."""


def command_line(options: Mapping[str, str], given: Mapping[str, Any]) -> CommandLine:
    """What messages of a command name: its options (parameter -> option) and their values (parameter -> value)."""
    values = {options[name]: value for name, value in given.items() if name in options and isinstance(value, str)}
    repeated = {name: values[name] for name in _REPEATED if values.get(name)}
    if "--url" in repeated:
        repeated["--url"] = _without_login(repeated["--url"])
    if repeated.get("--prefix") == DEFAULT_PREFIX:
        del repeated["--prefix"]
    return CommandLine(options, repeated)


def with_options(help: str, options: Mapping[str, str]) -> str:
    """A help text, which is fixed, with option names instead of the parameter names in backticks."""
    return _PARAMETER.sub(lambda match: options.get(match[1], match[0]), help)


def _without_login(url: str) -> str:
    """A URL without user name and password."""
    try:
        parts = urlsplit(url.strip())
    except ValueError:
        return "URL"
    return parts._replace(netloc=parts.netloc.rpartition("@")[2]).geturl()
