"""Serving of an application over HTTP: its options, which must be secure together, and its end by a signal."""

from __future__ import annotations

import ipaddress
import signal
import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from es_neardupe.errors import SettingsError
from es_neardupe.wording import spoken

if TYPE_CHECKING:
    from starlette.types import ASGIApp


_SECURITY = "Security"

Host = Annotated[str, typer.Option("--host", metavar="HOST", help="Address on which to serve.")]
Port = Annotated[int, typer.Option("--port", min=0, max=65535, metavar="PORT", help="Port; 0: any free port.")]
AllowHost = Annotated[
    list[str] | None,
    typer.Option(
        "--allow-host",
        metavar="NAME",
        help="Name by which clients reach the application. Repeatable.",
        show_default="the names of the loopback interface, and --host",
        rich_help_panel=_SECURITY,
    ),
]
TlsCert = Annotated[
    Path | None, typer.Option("--tls-cert", metavar="FILE", help="Certificate (PEM).", rich_help_panel=_SECURITY)
]
TlsKey = Annotated[
    Path | None,
    typer.Option("--tls-key", metavar="FILE", help="Key of the certificate (PEM).", rich_help_panel=_SECURITY),
]
PlainHttp = Annotated[
    bool,
    typer.Option(
        "--plain-http", help="Serve beyond this machine without TLS, such as behind a proxy.", rich_help_panel=_SECURITY
    ),
]


def token_option(variable: str) -> Any:
    """The option --token, which can also be given by an environment variable."""
    return typer.Option(
        "--token",
        metavar="TOKEN",
        envvar=variable,
        show_envvar=False,
        help=f"Token that requests must carry, at least 16 characters; also {variable}.",
        show_default="a random one",
        rich_help_panel=_SECURITY,
    )


@dataclass(frozen=True)
class Serving:
    """Where an application is served, and who may reach it. Raises `SettingsError` for options that are not secure,
    contradict each other or name no files. Commands that serve have the options of its fields."""

    host: Host = "127.0.0.1"
    port: int = 0
    token: str | None = None
    allow_host: AllowHost = None
    tls_cert: TlsCert = None
    tls_key: TlsKey = None
    plain_http: PlainHttp = False

    def __post_init__(self) -> None:
        if self.token is not None:
            from es_neardupe.serve.guard import Keys

            Keys(self.token)
        if (self.tls_cert is None) != (self.tls_key is None):
            raise SettingsError("--tls-cert and --tls-key belong together: give both files.")
        for file in (self.tls_cert, self.tls_key):
            if file is not None and not file.is_file():
                raise SettingsError(f"{file} is not a file: --tls-cert and --tls-key name PEM files.")
        if not _is_loopback(self.host) and self.tls_cert is None and not self.plain_http:
            raise SettingsError(
                f"{self.host} can be reached from other machines, which would send the token and texts unencrypted: "
                f"give --tls-cert and --tls-key, or --plain-http if a proxy adds TLS."
            )

    @property
    def names(self) -> list[str]:
        """The names by which the application is reached; the first is that of its address."""
        return [f"[{self.host}]" if ":" in self.host else self.host, *(self.allow_host or ())]

    def run(self, application: ASGIApp, announce: Callable[[str], None], *, lifespan: bool = False) -> None:
        """Answer requests until SIGTERM or SIGINT. ``announce`` is called with the address when requests are accepted.
        ``lifespan``: the application must be started and stopped. Raises `SettingsError` if the address or the
        certificate cannot be used."""
        import uvicorn

        with self._listening() as listener:
            config = uvicorn.Config(
                application,
                access_log=False,  # it would contain the token
                log_level="warning",
                lifespan="on" if lifespan else "off",
                server_header=False,
                ws="none",  # a request to open a web socket is an ordinary one
                proxy_headers=False,
                timeout_graceful_shutdown=5,
                ssl_certfile=None if self.tls_cert is None else str(self.tls_cert),
                ssl_keyfile=None if self.tls_key is None else str(self.tls_key),
            )
            try:
                config.load()
            except OSError as error:  # ssl.SSLError is one
                raise SettingsError(
                    f"The certificate {self.tls_cert} with the key {self.tls_key} cannot be used: {error}."
                ) from error
            scheme = "http" if self.tls_cert is None else "https"
            announce(f"{scheme}://{self.names[0]}:{listener.getsockname()[1]}")
            with _ignoring_repeated_signals(), spoken(None):
                uvicorn.Server(config).run(sockets=[listener])

    @contextmanager
    def _listening(self) -> Iterator[socket.socket]:
        """A socket that listens."""
        family = socket.AF_INET6 if ":" in self.host else socket.AF_INET
        try:
            listener = socket.create_server((self.host, self.port), family=family)
        except OSError as error:
            raise SettingsError(
                f"Nothing can be served at {self.host}, port {self.port} ({error}): choose another --port or --host."
            ) from error
        with listener:
            yield listener


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


@contextmanager
def _ignoring_repeated_signals() -> Iterator[None]:
    """uvicorn stops at a signal, and then raises it again for handlers like Python's, which would end the program with
    an error: here a stop is the regular end."""

    def ignore(number: int, frame: Any) -> None:
        pass

    before = {one: signal.signal(one, ignore) for one in (signal.SIGTERM, signal.SIGINT)}
    try:
        yield
    finally:
        for one, usual in before.items():
            signal.signal(one, usual)
