"""Arguments and options that several commands share on the command line only, and their completion by the shell.

Completion runs each time the tab key is pressed. So it imports no driver, takes at most a second, and completes nothing
if it fails.
"""

from __future__ import annotations

import json
import warnings
from collections.abc import Iterator
from pathlib import Path
from threading import Thread
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote, urlsplit

import typer

from es_neardupe.errors import NeardupeError

if TYPE_CHECKING:
    from es_neardupe.server.login.settings import ConnectionSettings


_TIMEOUT = 1.0
"""Seconds for a completion, including the lookup of the host name."""


def complete_example(incomplete: str) -> list[str]:
    """Names of the requests that ``duplicates --example`` prints."""
    from es_neardupe.commands import duplicates

    folder = Path(duplicates.__path__[0]) / "examples"
    return sorted(name for file in folder.glob("*.json") if (name := file.stem).startswith(incomplete))


def complete_index(ctx: Any, incomplete: str) -> list[str]:
    """Names of indices, aliases and data streams on the server that the command line names so far.

    In a comma-separated list, the last name is completed.
    """
    before, comma, last = incomplete.rpartition(",")
    names: list[str] = []

    def request() -> None:
        from http.client import HTTPException

        try:
            names.extend(_index_names(ctx.params, last))
        except (NeardupeError, OSError, ValueError, HTTPException, LookupError, TypeError, AttributeError):
            return

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        thread = Thread(target=request, daemon=True)
        thread.start()
        thread.join(_TIMEOUT)
    return [f"{before}{comma}{name}" for name in sorted(set(names))]


def _index_names(arguments: dict[str, Any], prefix: str) -> Iterator[str]:
    from es_neardupe.server.login.options import CONNECTION_DEFAULTS
    from es_neardupe.server.login.resolve import resolve_settings

    flags: dict[str, Any] = {name: arguments.get(name) for name in CONNECTION_DEFAULTS}
    settings = resolve_settings(**{**flags, "insecure": bool(flags["insecure"]), "timeout": None})
    url = settings.url or (None if settings.cloud_id else _local_url())
    if url is None or settings.aws:  # signing takes longer than completion may
        return
    response = _get(url, settings, f"/_resolve/index/{quote(prefix, safe='')}*")
    for kind in ("indices", "aliases", "data_streams"):
        for one in response.get(kind, ()):
            name = one["name"]
            if name.startswith(prefix) and name.startswith(".") <= prefix.startswith("."):
                yield name


def _get(url: str, settings: ConnectionSettings, path: str) -> Any:
    """The JSON of a response. Its status is not checked: the body of an error contains no names."""
    from http.client import HTTPConnection, HTTPSConnection

    from es_neardupe.server.login.settings import authorization
    from es_neardupe.server.login.tls import context

    server = urlsplit(url)
    host, port = server.hostname or "", server.port
    connection = (
        HTTPSConnection(host, port or 443, timeout=_TIMEOUT, context=context(settings))
        if server.scheme == "https"
        else HTTPConnection(host, port or 80, timeout=_TIMEOUT)
    )
    try:
        headers = {"accept": "application/json", **authorization(settings)}
        connection.request("GET", server.path + path, headers=headers)
        return json.loads(connection.getresponse().read())
    finally:
        connection.close()


def _local_url() -> str | None:
    """URL of a local server, from its PID file."""
    from es_neardupe import folders

    files = sorted(folders.run().glob("*.json"))
    return next((str(json.loads(file.read_text("utf-8"))["url"]) for file in files), None)


IndexName = Annotated[
    str,
    typer.Argument(
        metavar="INDEX",
        help="Index, alias, data stream or pattern.",
        show_default=False,
        autocompletion=complete_index,
    ),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print JSON on stdout.")]
Output = Annotated[
    Path | None,
    typer.Option(
        "--output",
        metavar="FILE",
        help="Write the result as a table (.parquet, .arrow, .csv or .jsonl) instead of printing it.",
        show_default=False,
    ),
]
FailuresFile = Annotated[
    Path | None,
    typer.Option(
        "--failures",
        metavar="FILE",
        help="Write the documents that were left, with the reasons, to this file (.jsonl, .csv, .parquet or .arrow).",
        show_default=False,
    ),
]
TextFile = Annotated[
    str | None, typer.Option("--file", metavar="FILE", help="File with a text, or -.", show_default=False)
]


def probe_text(id: str | None, text: str | None, file: str | None) -> str | None:
    """The text that is given by --text or --file; None if a document is given by --id. Raises `BadParameter` unless
    exactly one of them is given, and `InputError` for a file that cannot be read."""
    from es_neardupe.readers.files import read_text_file

    if sum(one is not None for one in (id, text, file)) != 1:
        raise typer.BadParameter("Give exactly one of --id, --text and --file.")
    return text if file is None else read_text_file(file)
