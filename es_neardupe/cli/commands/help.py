"""``es-neardupe help``: help for a command, or for the options that commands share."""

from __future__ import annotations

from typing import Annotated, Any

import typer
import typer.core

from es_neardupe.cli.command import shared_parameters

_TOPICS = {
    "connection": (
        "Options of all commands that connect to a server.\n\n"
        "Without --url, the server is taken from the environment (ES_NEARDUPE_URL, then the variables of Elasticsearch "
        "and OpenSearch tools), from the profile `default`, or is a running local server, in this order. "
        "Passwords, API keys and tokens come from files, from the environment (ES_NEARDUPE_PASSWORD, "
        "ES_NEARDUPE_API_KEY, ES_NEARDUPE_BEARER_TOKEN) or from a profile, never from an option.\n\n"
        "Details: docs/connecting.md and docs/logs.md."
    ),
}


def _complete(ctx: typer.Context, incomplete: str) -> list[str]:
    return [one for one in (*_TOPICS, *_commands(ctx)) if one.startswith(incomplete)]


def _commands(ctx: typer.Context) -> Any:
    """Name -> command of the program."""
    return getattr(ctx.find_root().command, "commands", {})


def help(
    ctx: typer.Context,
    topic: Annotated[
        str,
        typer.Argument(
            metavar="TOPIC", help="connection, or the name of a command.", show_default=False, autocompletion=_complete
        ),
    ] = "",
) -> None:
    """Show the help of a command, or of the options that commands share (`es-neardupe help connection`).

    Examples:

      es-neardupe help connection

      es-neardupe help group
    """
    root = ctx.find_root()
    if not topic:
        typer.echo(root.get_help())
    elif topic in _TOPICS:
        shown = typer.core.TyperCommand(
            name=topic,
            params=shared_parameters(),
            help=_TOPICS[topic],
            rich_markup_mode="rich",
            add_help_option=False,
            options_metavar="",
        )
        typer.echo(shown.get_help(typer.Context(shown, info_name="es-neardupe COMMAND INDEX [OPTIONS]")))
    elif topic in _commands(ctx):
        command = _commands(ctx)[topic]
        typer.echo(command.get_help(typer.Context(command, info_name=topic, parent=root)))
    else:
        raise typer.BadParameter(f"Unknown topic {topic!r}. Topics: {', '.join([*_TOPICS, 'or a command'])}.")
