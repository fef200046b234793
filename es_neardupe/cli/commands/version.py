"""The command version: what a bug report should say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Annotated

import typer

from es_neardupe.cli.options import AsJson, connectable
from es_neardupe.cli.output import print_json, print_table, warn
from es_neardupe.cli.run_log import result
from es_neardupe.commands.version import VersionReport
from es_neardupe.commands.version import version as version_
from es_neardupe.errors import NeardupeError
from es_neardupe.index.index import Index
from es_neardupe.server.client import Client

__all__ = ["register"]


def version(
    open: Callable[[], Client],
    *,
    no_server: Annotated[bool, typer.Option("--no-server", help="Ask no server.")] = False,
    as_json: AsJson = False,
) -> None:
    """Show the versions of the program, the scheme, Python, the libraries and the server, for bug reports.

    A server that cannot be reached is no error here.

    Examples:

      es-neardupe version

      es-neardupe version --no-server --json
    """
    report = version_() if no_server else _asked(open)
    result(report)
    if as_json:
        print_json(report)
        return
    rows = [
        ("es-neardupe", report.version),
        ("scheme", f"version {report.scheme_version}, {report.scheme} by default"),
        ("server", report.server),
        ("inner loops", "in C" if report.compiled else "in numpy: C was not built"),
        ("Python", report.python),
        ("system", report.system),
        *report.packages.items(),
    ]
    print_table(["", "version"], rows)
    if report.problem is not None:
        warn(f"No server told its version: {report.problem}")


def _asked(open: Callable[[], Client]) -> VersionReport:
    try:
        return version_(Index("", open()))
    except NeardupeError as error:
        return replace(version_(), problem=str(error))


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command()(connectable(version))
