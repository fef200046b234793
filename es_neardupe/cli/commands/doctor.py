"""Commands that look after an index: doctor, stats, clean."""

from __future__ import annotations

import typer

from es_neardupe.cli.options import (
    AsJson,
    IndexName,
    Prefix,
    connected,
)
from es_neardupe.cli.output import ExitCode, print_json, print_table
from es_neardupe.cli.run_log import result
from es_neardupe.commands.doctor.doctor import doctor as doctor_
from es_neardupe.index.index import Index
from es_neardupe.index.settings import DEFAULT_PREFIX
from es_neardupe.server.client import Client

__all__ = [
    "register",
]


def doctor(client: Client, index: IndexName, *, prefix: Prefix = DEFAULT_PREFIX, as_json: AsJson = False) -> None:
    """Check server, privileges, mapping, scheme, blocks, limits and documents; each with its way out.

    Exit code 1 if any check fails.

    Example:

      es-neardupe doctor news
    """
    checks = doctor_(Index(index, client, prefix))
    result({"checks": checks})
    if as_json:
        print_json({"checks": checks})
    else:
        print_table(["check", "result", ""], [(one.name, one.level, one.message) for one in checks])
    if any(one.level == "error" for one in checks):
        raise typer.Exit(ExitCode.FAILED)


def register(app: typer.Typer) -> None:
    """Add the command of this module."""
    app.command()(connected(doctor))
