"""``es-neardupe version``: versions for bug reports."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from es_neardupe.cli.arguments import AsJson
from es_neardupe.cli.connection import open_index
from es_neardupe.cli.derived import with_options_of
from es_neardupe.cli.output import print_json, print_table, warn
from es_neardupe.cli.run_log import result
from es_neardupe.commands.version import version as library
from es_neardupe.errors import NeardupeError

if TYPE_CHECKING:
    from es_neardupe.commands.version import VersionReport


@with_options_of(library)
def version(
    *,
    no_server: Annotated[bool, typer.Option("--no-server", help="Do not connect to a server.")] = False,
    as_json: AsJson = False,
) -> None:
    """
    It is not an error if no server can be reached.

    Examples:

      es-neardupe version

      es-neardupe version --no-server --json
    """
    report = library(None) if no_server else _with_server()
    result(report)
    if as_json:
        print_json(report)
        return
    rows = [
        ("es-neardupe", report.version),
        ("scheme", f"version {report.scheme_version}, {report.scheme} by default"),
        ("server", report.server),
        *((name, "compiled" if one else "not compiled") for name, one in report.compiled.items()),
        ("Python", report.python),
        ("system", report.system),
        *report.packages.items(),
    ]
    print_table(["component", "version"], rows)
    if report.problem is not None:
        warn(f"The version of the server is unknown: {report.problem}")


def _with_server() -> VersionReport:
    try:
        return library(open_index(""))
    except NeardupeError as error:
        return replace(library(None), problem=str(error))
