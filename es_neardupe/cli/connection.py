"""The connection of a command: its options, client and index, and messages about interrupted requests."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from es_neardupe.cli import run_log
from es_neardupe.cli.derived import with_options_of
from es_neardupe.cli.output import warn
from es_neardupe.errors import IncompleteAnswer, NeardupeError, RequestError, TuningWarning, Unreachable
from es_neardupe.keywords import Unpack, with_defaults
from es_neardupe.options import DEFAULT_PREFIX
from es_neardupe.server.login.options import CONNECTION_DEFAULTS, ConnectionOptions

if TYPE_CHECKING:
    from es_neardupe.index.index import Index
    from es_neardupe.server.client import Client


_URL_WARNING = (
    "The URL on the command line contains a password, which process lists and the shell history show: use "
    "--password-file or ES_NEARDUPE_PASSWORD."
)
AGAIN = "Run the same command again: it continues where it stopped."
AGAIN_FROM_START = "Run the same command again: it starts from the beginning."


def open_index(
    name: str, prefix: str = DEFAULT_PREFIX, *, max_rate: float | None = None, max_load: int | None = None
) -> Index:
    """The index of the current command, on the server named by the options, the environment or a profile.

    ``max_rate`` and ``max_load`` limit the writes: see `Pace.limit`. Raises `SettingsError` for an impossible prefix.
    """
    from es_neardupe.index.index import Index
    from es_neardupe.index.settings import check_prefix

    check_prefix(prefix)
    client = open_client()
    client.pace.limit(max_rate=max_rate, max_load=max_load)
    return Index(name, client, prefix)


def open_client() -> Client:
    """The client of the current command. It is closed when the command ends."""
    run = run_log.current()
    assert run is not None
    if run.client is None:
        run.client = run.stack.enter_context(closing(connect_to(local_url=local_url, **run.connection)))
    return run.client


@with_defaults(CONNECTION_DEFAULTS)
def connect_to(*, local_url: Callable[[], str | None], **connection: Unpack[ConnectionOptions]) -> Client:
    """A client for the server of `resolve_settings`, or else for ``local_url``. Prints connection warnings."""
    from es_neardupe.server.connect import connect
    from es_neardupe.server.login.resolve import resolve_settings
    from es_neardupe.server.login.settings import ConnectionWarning

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always", ConnectionWarning)
        run = run_log.current()
        settings = replace(resolve_settings(**connection), run=run.name if run else None)
        if urlsplit(connection.get("url") or "").password:
            warn(_URL_WARNING)
        client = connect(settings, local_url=local_url)
    for warning in caught:
        if issubclass(warning.category, ConnectionWarning):
            warn(str(warning.message))
    return client


@with_options_of(connect_to, summary=False)
def options(**given: Any) -> None:
    """The options of the connection."""


def local_url() -> str | None:
    """URL of a running local server."""
    from es_neardupe.local_server import control

    return next((one.url for one in control.running()), None)


@contextmanager
def tuning_messages() -> Iterator[None]:
    """Print `TuningWarning`: an earlier run has lowered settings of an index."""
    with warnings.catch_warnings():
        warnings.simplefilter("always", TuningWarning)
        original = warnings.showwarning

        def show_warning(message: Warning | str, category: type[Warning], *rest: Any, **more: Any) -> None:
            if issubclass(category, TuningWarning):
                warn(str(message))
            else:
                original(message, category, *rest, **more)

        warnings.showwarning = show_warning
        yield


@contextmanager
def resumable(again: str = AGAIN) -> Iterator[None]:
    """Add ``again`` to errors of the server: the command can be run again."""
    try:
        yield
    except (Unreachable, IncompleteAnswer) as error:
        raise _with_request(type(error)(f"{error.args[0]} {again}"), error) from error
    except RequestError as error:
        if error.status < 500:
            raise
        repeated = RequestError(f"{error.args[0]} {again}", status=error.status, type=error.type, reason=error.reason)
        raise _with_request(repeated, error) from error


def _with_request(error: NeardupeError, original: NeardupeError) -> NeardupeError:
    error.request = original.request
    return error
