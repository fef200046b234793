"""``es-neardupe mcp``: tools for agents, by the Model Context Protocol."""

from __future__ import annotations

import importlib.util
from typing import TYPE_CHECKING, Annotated, Any

import typer

from es_neardupe import options
from es_neardupe.cli.arguments import IndexName
from es_neardupe.cli.connection import open_index
from es_neardupe.cli.derived import with_options_of
from es_neardupe.cli.output import say, show
from es_neardupe.cli.serving import Port, Serving, token_option
from es_neardupe.errors import SettingsError
from es_neardupe.folders import install_extra
from es_neardupe.options import DEFAULT_PREFIX
from es_neardupe.wording import spoken

if TYPE_CHECKING:
    from mcp.server.lowlevel import Server


_PORT = 8766


@with_options_of(Serving, summary=False)
def mcp(
    index: IndexName,
    *,
    fields: Annotated[list[str] | None, options.TITLE_FIELDS] = None,
    http: Annotated[
        bool, typer.Option("--http", help="Serve over HTTP (streamable), not over stdin and stdout.")
    ] = False,
    port: Port = _PORT,
    token: Annotated[str | None, token_option("ES_NEARDUPE_MCP_TOKEN")] = None,
    prefix: options.Prefix = DEFAULT_PREFIX,
    **given: Any,
) -> None:
    """Serve read-only tools for agents (Model Context Protocol): similar, document, compare, contained, groups, group,
    documents, stats.

    Clients start it and talk to it over stdin and stdout. With --http, they send the printed token.

    Examples:

      es-neardupe mcp news

      es-neardupe mcp news --http --port 8766
    """
    if importlib.util.find_spec("mcp") is None:
        raise SettingsError(f"mcp needs the package mcp: {install_extra('mcp')}")
    from es_neardupe.index.index import opened
    from es_neardupe.index.shown_fields import shown_fields
    from es_neardupe.mcp_server.protocol import run_over_stdio
    from es_neardupe.mcp_server.tools import mcp_server

    serving = Serving(port=port, token=token, **given)
    if not http and serving != Serving(port=_PORT, token=token):  # the token may be in the environment
        raise SettingsError("--host, --port and the options under Security need --http: add it, or leave them out.")
    reached = open_index(index, prefix)
    shown_fields(opened(reached, groups=True), fields or ())  # errors appear here, not in every answer
    if http:
        _serve(mcp_server(reached, fields or ()), serving)
    else:
        with spoken(None):
            run_over_stdio(mcp_server(reached, fields or ()))


def _serve(server: Server[Any, Any], serving: Serving) -> None:
    """Serve the tools over HTTP until SIGTERM or Ctrl-C."""
    from es_neardupe.mcp_server.protocol import http_application
    from es_neardupe.serve.guard import Guard, Keys, new_token

    token = serving.token or new_token()

    def announce(address: str) -> None:
        show(f"{address}/mcp")
        if serving.token is None:
            show(f"Authorization: Bearer {token}")
        say("Give clients this address, and the token as a header. Whoever has it can read the index. Ctrl-C stops.")

    refusal = "This server needs the token that `es-neardupe mcp` printed, as the header Authorization: Bearer TOKEN.\n"
    guard = Guard(http_application(server), Keys(token), serving.names, refusal=refusal)
    serving.run(guard, announce, lifespan=True)
    say("Stopped.")
