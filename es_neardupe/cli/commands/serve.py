"""``es-neardupe serve``: a web application to review the groups of an index."""

from __future__ import annotations

import getpass
import importlib.util
from collections.abc import Sequence
from typing import TYPE_CHECKING, Annotated, Any
from urllib.parse import quote

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

if TYPE_CHECKING:
    from es_neardupe.index.index import Index


@with_options_of(Serving, summary=False)
def serve(
    index: IndexName,
    *,
    port: Port = 8765,
    fields: Annotated[list[str] | None, options.TITLE_FIELDS] = None,
    reviewer: Annotated[
        str | None,
        typer.Option(
            "--reviewer",
            metavar="NAME",
            help="Name under which decisions are stored, until a reviewer enters another one.",
            show_default="the name of the system user",
        ),
    ] = None,
    allow_decisions: Annotated[
        bool, typer.Option("--allow-decisions", help="Let programs store decisions over the HTTP interface.")
    ] = False,
    auth_proxy: Annotated[
        bool,
        typer.Option(
            "--auth-proxy",
            help="Use the login in each request's Authorization header for the search server, instead of a token.",
            rich_help_panel="Security",
        ),
    ] = False,
    token: Annotated[str | None, token_option("ES_NEARDUPE_SERVE_TOKEN")] = None,
    prefix: options.Prefix = DEFAULT_PREFIX,
    **given: Any,
) -> None:
    """Serve a web application to review the groups of an index, until SIGTERM or Ctrl-C.

    It writes nothing but the decisions of reviewers.

    Examples:

      es-neardupe serve news

      es-neardupe serve news --port 9000 --field title --field source
    """
    check_installed()
    serving = Serving(port=port, token=token, **given)
    if auth_proxy and (token is not None or reviewer is not None):
        raise SettingsError(
            "With --auth-proxy there is no token, and each login is a reviewer: omit --token, --reviewer."
        )
    serve_pages(
        open_index(index, prefix),
        serving,
        fields or (),
        reviewer=reviewer,
        allow_decisions=allow_decisions,
        auth_proxy=auth_proxy,
    )


def check_installed() -> None:
    """Raises `SettingsError` without the packages of the extra ``serve``."""
    if importlib.util.find_spec("fastapi") is None or importlib.util.find_spec("uvicorn") is None:
        raise SettingsError(f"serve needs fastapi and uvicorn: {install_extra('serve')}")


def serve_pages(
    index: Index,
    serving: Serving,
    fields: Sequence[str] = (),
    *,
    reviewer: str | None = None,
    allow_decisions: bool = False,
    auth_proxy: bool = False,
) -> None:
    """Serve the pages of an index until SIGTERM or SIGINT. ``reviewer``: by default, the name of the system user."""
    from es_neardupe.index.index import opened
    from es_neardupe.index.shown_fields import shown_fields
    from es_neardupe.serve.application import asgi
    from es_neardupe.serve.guard import new_token

    shown_fields(opened(index, groups=True), fields)  # errors appear here, not on every page
    token = serving.token or new_token()
    application = asgi(
        index,
        token=token,
        fields=fields,
        hosts=serving.names,
        reviewer=reviewer or _user(),
        allow_decisions=allow_decisions,
        auth_proxy=auth_proxy,
    )

    def announce(address: str) -> None:
        if auth_proxy:
            show(address)
            say("Requests must carry a login of the search server. Ctrl-C stops.")
            return
        show(f"{address}/?token={quote(token, safe='')}")
        say("Open this address. It contains the token: whoever has it can read the index. Ctrl-C stops.")

    serving.run(application, announce)
    say("Stopped.")


def _user() -> str:
    try:
        return getpass.getuser()
    except (OSError, KeyError):  # no such user
        return "reviewer"
