"""TLS contexts.

The authorities are those of the operating system: on macOS and Windows it checks certificates itself.

urllib3 checks names itself if the context that it is given does not, and warns at each request if that context checks
nothing. So it is given a context that only delegates: each connection is made by an inner one, which it does not see.
"""

from __future__ import annotations

import hashlib
import socket
import ssl
import sys
from typing import TYPE_CHECKING, Any, NoReturn

import truststore

from es_neardupe.errors import SettingsError
from es_neardupe.server.login.settings import ConnectionSettings

if TYPE_CHECKING:
    from typing_extensions import Self


_DER = 2


def context(settings: ConnectionSettings) -> ssl.SSLContext:
    """The ``ssl_context`` of connections, which need no other TLS option.

    Raises ``SettingsError`` for an invalid client certificate or key.
    """
    if settings.cert_fingerprint:
        return _Pinned(settings, settings.cert_fingerprint)
    return _Delegating(_checked(settings))


class _Delegating(ssl.SSLContext):
    """Makes connections by ``inner``, which alone decides what is checked."""

    inner: ssl.SSLContext

    def __new__(cls, *_: object) -> Self:
        return super().__new__(cls, ssl.PROTOCOL_TLS_CLIENT)

    def __init__(self, inner: ssl.SSLContext) -> None:
        self.inner = inner

    def wrap_socket(self, sock: socket.socket, *args: Any, **options: Any) -> ssl.SSLSocket:
        """See ``ssl.SSLContext.wrap_socket``."""
        return self.inner.wrap_socket(sock, *args, **options)


class _Pinned(_Delegating):
    """Trusts only the certificate with the fingerprint, among those that the server presents.

    That certificate is found on a separate connection without requests; from then on it is the only authority that
    connections are checked against. Finding the fingerprint among the certificates proves nothing by itself: an
    attacker in between can present the certificate of an authority, too.
    """

    def __init__(self, settings: ConnectionSettings, fingerprint: str) -> None:
        super().__init__(_trusting_none(settings))
        self.fingerprint = fingerprint
        self.timeout = settings.timeout
        self.blind = _unchecked(_trusting_none(settings))
        self.found = False

    def wrap_socket(self, sock: socket.socket, *args: Any, **options: Any) -> ssl.SSLSocket:
        """See ``ssl.SSLContext.wrap_socket``."""
        if not self.found:
            self._trust(self._presented(sock, options.get("server_hostname")))
        return super().wrap_socket(sock, *args, **options)

    def _presented(self, sock: socket.socket, name: str | None) -> list[bytes]:
        """The certificates that the server presents, its own first, in DER."""
        address = sock.getpeername()[:2]
        with (
            socket.create_connection(address, timeout=self.timeout) as other,
            self.blind.wrap_socket(other, server_hostname=name) as tls,
        ):
            return _chain(tls)

    def _trust(self, presented: list[bytes]) -> None:
        prints = [hashlib.sha256(one).hexdigest() for one in presented]
        if self.fingerprint not in prints:
            error = ssl.SSLCertVerificationError(1, "another fingerprint")
            error.verify_message = f"it has another fingerprint: {prints[0]}"
            raise error
        place = prints.index(self.fingerprint)
        self.inner.load_verify_locations(cadata=presented[place])
        self.inner.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN  # the authority need not be a root
        self.inner.check_hostname = place > 0  # the server's own certificate is trusted for any name
        self.found = True


def _chain(tls: ssl.SSLSocket) -> list[bytes]:
    python_tls: Any = tls
    if sys.version_info >= (3, 13):
        return list(python_tls.get_unverified_chain())
    # Not public before Python 3.13; elastic_transport uses it too.
    return [one.public_bytes(_DER) for one in python_tls._sslobj.get_unverified_chain()]


def _checked(settings: ConnectionSettings) -> ssl.SSLContext:
    if not settings.verify:
        return _unchecked(_trusting_none(settings))
    ssl_context = _prepared(truststore.SSLContext(ssl.PROTOCOL_TLS_CLIENT), settings)
    if settings.ca_certs:
        ssl_context.load_verify_locations(cafile=settings.ca_certs)
    return ssl_context


def _trusting_none(settings: ConnectionSettings) -> ssl.SSLContext:
    """A context that checks everything, trusts no authority, and has the client certificate, if there is one."""
    return _prepared(ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT), settings)


def _prepared(ssl_context: ssl.SSLContext, settings: ConnectionSettings) -> ssl.SSLContext:
    """The context, with the minimum version, and with the client certificate, if there is one."""
    ssl_context.minimum_version = ssl.TLSVersion.TLSv1_2
    if settings.client_cert:
        try:
            ssl_context.load_cert_chain(settings.client_cert, settings.client_key, password=_no_password)
        except (OSError, ValueError) as error:
            files = " and ".join(filter(None, [settings.client_cert, settings.client_key]))
            raise SettingsError(
                f"The client certificate and its key in {files} cannot be used ({error}). Give PEM files that match."
            ) from error
    return ssl_context


def _no_password() -> NoReturn:
    """Raise `SettingsError`; otherwise OpenSSL would prompt for a password."""
    raise SettingsError("The key of the client certificate is encrypted. Give a key file without a password.")


def _unchecked(ssl_context: ssl.SSLContext) -> ssl.SSLContext:
    ssl_context.check_hostname = False
    ssl_context.verify_mode = ssl.CERT_NONE
    return ssl_context
