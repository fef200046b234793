"""``es-neardupe node``: a local server to try things on."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from es_neardupe.cli.command import Command
from es_neardupe.cli.output import as_json_text, say
from es_neardupe.local_server.versions import DEFAULT_SERVER

__all__ = ["app"]

app = typer.Typer(no_args_is_help=True, help="Start, stop and list local servers (needs the extra 'local').")

_SERVER = typer.Option("--server", metavar="NAME", help="opensearch or elasticsearch.")
_VERSION = typer.Option(
    "--version", metavar="VERSION", help="Such as 3.8, 2.19 (OpenSearch), 9.5, 8.19 (Elasticsearch)."
)
_PORT = typer.Option(
    "--port", metavar="PORT", help="HTTP port on this machine.", show_default="the first free one from 9200 on"
)
_DATA = typer.Option(
    "--data", metavar="FOLDER", help="Folder for its indices and log.", show_default="in your data folder"
)
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
    offline: Annotated[bool, typer.Option("--offline", help="Use only what was downloaded before.")] = False,
    as_json: AsJson = False,
) -> None:
    """Start a local server, unless it is running, and print its URL."""
    from es_neardupe.local_server import control

    started = control.start(server, version, port=port, heap=heap, data=data, offline=offline, say=say)
    if as_json:
        _tell(started.as_dict())
        return
    say(f"{started.server} {started.version} runs as process {started.pid}, data and log in {started.data}")
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
    port: Annotated[int | None, typer.Option("--port", metavar="PORT", help="Only the one at this port.")] = None,
    data: Annotated[
        Path | None, typer.Option("--data", metavar="FOLDER", help="Only the one with this folder.")
    ] = None,
    as_json: AsJson = False,
) -> None:
    """Stop the local servers that were started here: all, or those that match the options. Their data stay."""
    from es_neardupe.local_server import control

    stopped = control.stop(server, version, port=port, data=data)
    if as_json:
        _tell([{**each.node.as_dict(), "killed": each.killed} for each in stopped])
        return
    for each in stopped:
        how = "did not close in time and was killed" if each.killed else "stopped"
        typer.echo(f"{each.node.server} {each.node.version} at {each.node.url} {how}")
    if not stopped:
        say("no such local server runs")


@app.command(cls=Command)
def status(as_json: AsJson = False) -> None:
    """List the running local servers."""
    from es_neardupe.local_server import control

    found = control.status()
    for file in found.cleaned:
        say(f"removed {file}: its process is gone")
    states = [(each, "running") for each in found.running] + [(each, "silent") for each in found.silent]
    if as_json:
        _tell([{**each.as_dict(), "state": state} for each, state in states])
        return
    for each, state in states:
        typer.echo(f"{each.server} {each.version}  {each.url}  {state}  process {each.pid}  {each.data}")
    if not states:
        say("no local server runs")


def _tell(value: Any) -> None:
    typer.echo(as_json_text(value, indent=2))
