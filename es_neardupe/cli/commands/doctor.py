"""``es-neardupe doctor``: check an index and its server."""

from __future__ import annotations

import typer

from es_neardupe import options
from es_neardupe.cli.arguments import AsJson, IndexName
from es_neardupe.cli.connection import open_index
from es_neardupe.cli.derived import with_options_of
from es_neardupe.cli.output import ExitCode, print_json, print_table
from es_neardupe.cli.run_log import result
from es_neardupe.commands.doctor import doctor as library
from es_neardupe.options import DEFAULT_PREFIX
from es_neardupe.wording import connection_in_commands


@with_options_of(library)
def doctor(index: IndexName, *, prefix: options.Prefix = DEFAULT_PREFIX, as_json: AsJson = False) -> None:
    """
    Exit code 1 if any check fails.

    Example:

      es-neardupe doctor news
    """
    with connection_in_commands(not as_json):
        checks = library(open_index(index, prefix))
    result({"checks": checks})
    if as_json:
        print_json({"checks": checks})
    else:
        print_table(["check", "result", "message"], [(one.name, one.level, one.message) for one in checks])
    if any(one.level == "error" for one in checks):
        raise typer.Exit(ExitCode.FAILED)
