"""Completion of values by the shell: names of indices and of example requests.

It runs at each press of the tab key, so it imports no driver, waits for a second at most, and says nothing where it
fails.
"""

from __future__ import annotations

import inspect
import json
import warnings
from collections.abc import Iterator
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, urlsplit

from es_neardupe.errors import NeardupeError

if TYPE_CHECKING:
    from es_neardupe.server.login.settings import ConnectionSettings

__all__ = ["complete_example", "complete_index"]

_PATIENCE = 1.0
"""Seconds for everything, the look-up of the host name too."""


def complete_example(incomplete: str) -> list[str]:
    """The names of the requests that ``duplicates --example`` prints."""
    from es_neardupe.commands import duplicates

    folder = Path(duplicates.__path__[0]) / "examples"
    return sorted(name for file in folder.glob("*.json") if (name := file.stem).startswith(incomplete))


def complete_index(ctx: Any, incomplete: str) -> list[str]:
    """The names of indices, aliases and data streams on the server that the options so far name.

    Of a list of names the last one is completed.
    """
    before, comma, last = incomplete.rpartition(",")
    found: list[str] = []

    def ask() -> None:
        try:
            found.extend(_names(ctx.params, last))
        except (NeardupeError, OSError, ValueError, HTTPException, LookupError, TypeError, AttributeError):
            return

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        thread = Thread(target=ask, daemon=True)
        thread.start()
        thread.join(_PATIENCE)
    return [f"{before}{comma}{name}" for name in sorted(set(found))]


def _names(given: dict[str, Any], beginning: str) -> Iterator[str]:
    from es_neardupe.cli.connection import options
    from es_neardupe.server.login.resolve import resolve_settings

    flags: dict[str, Any] = {name: given.get(name) for name in inspect.signature(options).parameters}
    settings = resolve_settings(**{**flags, "insecure": bool(flags["insecure"]), "timeout": None})
    url = settings.url or (None if settings.cloud_id else _local_url())
    if url is None:
        return
    answer = _asked(url, settings, f"/_resolve/index/{quote(beginning, safe='')}*")
    for kind in ("indices", "aliases", "data_streams"):
        for one in answer.get(kind, ()):
            name = one["name"]
            if name.startswith(beginning) and name.startswith(".") <= beginning.startswith("."):
                yield name


def _asked(url: str, settings: ConnectionSettings, path: str) -> Any:
    """The answer to one request; an error status has no names in it."""
    from es_neardupe.server.login.settings import authorization
    from es_neardupe.server.login.tls import context

    place = urlsplit(url)
    host, port = place.hostname or "", place.port
    connection = (
        HTTPSConnection(host, port or 443, timeout=_PATIENCE, context=context(settings))
        if place.scheme == "https"
        else HTTPConnection(host, port or 80, timeout=_PATIENCE)
    )
    try:
        headers = {"accept": "application/json", **authorization(settings)}
        connection.request("GET", place.path + path, headers=headers)
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()


def _local_url() -> str | None:
    """The address of a local server, as its PID file has it."""
    from es_neardupe import folders

    files = sorted(folders.run().glob("*.json"))
    return next((str(json.loads(file.read_text("utf-8"))["url"]) for file in files), None)
