"""Options of the commands that write many documents: how hard they may push."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Annotated, Any

import typer

from es_neardupe.cli.options import parameters_of
from es_neardupe.cli.output import escaped
from es_neardupe.clients import Client
from es_neardupe.rehearsal import ShownRequest

__all__ = ["show_first", "writing"]

_PANEL = "Load on the cluster"


def _limits(
    *,
    max_rate: Annotated[
        float | None,
        typer.Option(help="Documents written a second at most.", show_default="no limit", rich_help_panel=_PANEL),
    ] = None,
    max_load: Annotated[
        int | None,
        typer.Option(
            min=1,
            help="Documents under way at most; fewer after refusals.",
            show_default="no limit",
            rich_help_panel=_PANEL,
        ),
    ] = None,
) -> None:
    """The options: see `Pace.limit`."""


def show_first(requests: Iterable[ShownRequest]) -> None:
    """Requests of a dry run on stdout, as they would be sent; what could steer a terminal as JSON escapes it."""
    for request in requests:
        sys.stdout.write(f"{request.method} {request.path}\n")
        sys.stdout.writelines(f"{escaped(line)}\n" for line in request.body.rstrip("\n").split("\n"))


def writing(command: Callable[..., None]) -> Callable[..., None]:
    """Give a command the options of its load; its client keeps to them."""
    own, limits = parameters_of(command), parameters_of(_limits)

    @wraps(command)
    def run(client: Client, **given: Any) -> None:
        client.pace.limit(**{one.name: given.pop(one.name) for one in limits})
        command(client, **given)

    run.__signature__ = inspect.Signature([*own, *limits])  # type: ignore[attr-defined]
    return run
