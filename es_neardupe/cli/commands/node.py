"""``es-neardupe node``: local servers for experiments."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from es_neardupe.cli.command import Command
from es_neardupe.cli.output import as_json_text, say
from es_neardupe.display_text import without_passwords
from es_neardupe.local_server.versions import DEFAULT_SERVER

app = typer.Typer(no_args_is_help=True, help="Start, stop and list local servers (needs the extra 'local').")

_SERVER = typer.Option("--server", metavar="NAME", help="opensearch or elasticsearch.")
_VERSION = typer.Option(
    "--version", metavar="VERSION", help="Such as 3.8, 2.19 (OpenSearch), 9.5, 8.19 (Elasticsearch)."
)
_PORT = typer.Option(
    "--port", metavar="PORT", help="HTTP port on this machine.", show_default="the first free port from 9200"
)
_DATA = typer.Option("--data", metavar="FOLDER", help="Folder for indices and log.", show_default="in your data folder")
_JSON = typer.Option("--json", help="Print JSON.")

Version = Annotated[str | None, _VERSION]
Port = Annotated[int | None, _PORT]
Data = Annotated[Path | None, _DATA]
AsJson = Annotated[bool, _JSON]


@app.command(cls=Command)
def start(
    *,
    server: Annotated[str, _SERVER] = DEFAULT_SERVER,
    version: Version = None,
    port: Port = None,
    heap: Annotated[str, typer.Option(metavar="SIZE", help="Heap size of the server, such as 512m or 2g.")] = "512m",
    data: Data = None,
    offline: Annotated[bool, typer.Option("--offline", help="Use only files that are already downloaded.")] = False,
    as_json: AsJson = False,
) -> None:
    """Start a local server, unless it is running, and print its URL."""
    from es_neardupe.local_server import control

    started = control.start(server, version, port=port, heap=heap, data=data, offline=offline, say=say)
    if as_json:
        _print(started.as_dict())
        return
    say(f"{started.server} {started.version} is running as process {started.pid}; data and log are in {started.data}")
    typer.echo(started.url)


@app.command(cls=Command)
def stop(
    *,
    server: Annotated[
        str | None, typer.Option("--server", metavar="NAME", help="Only opensearch, or only elasticsearch.")
    ] = None,
    version: Annotated[
        str | None, typer.Option("--version", metavar="VERSION", help="Only this version, such as 3.8.")
    ] = None,
    port: Annotated[int | None, typer.Option("--port", metavar="PORT", help="Only the server at this port.")] = None,
    data: Annotated[
        Path | None, typer.Option("--data", metavar="FOLDER", help="Only the server with this folder.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Stop all local servers, or those that match the options. Their data are kept."""
    from es_neardupe.local_server import control

    stopped = control.stop(server, version, port=port, data=data)
    if as_json:
        _print([{**each.node.as_dict(), "killed": each.killed} for each in stopped])
        return
    for each in stopped:
        how = "did not close in time and was killed" if each.killed else "stopped"
        typer.echo(f"{each.node.server} {each.node.version} at {each.node.url} {how}")
    if not stopped:
        say("No matching local server is running.")


@app.command(cls=Command)
def status(as_json: AsJson = False) -> None:
    """List the running local servers."""
    from es_neardupe.local_server import control

    found = control.status()
    for file in found.cleaned:
        say(f"Removed {file}: its process has ended.")
    states = [(each, "running") for each in found.running] + [(each, "silent") for each in found.silent]
    if as_json:
        _print([{**each.as_dict(), "state": state} for each, state in states])
        return
    for each, state in states:
        line = f"{each.server} {each.version}  {each.url}  {state}  process {each.pid}  {each.data}"
        typer.echo(without_passwords(line))
    if not states:
        say("No local server is running.")


def _print(value: Any) -> None:
    typer.echo(as_json_text(value, indent=2))
