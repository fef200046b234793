"""Driver: the interface of the adapters for driver packages, and what they share: logins, parsing, lost connections."""

from __future__ import annotations

import base64
import hashlib
import json
import ssl
import sys
from collections.abc import Iterator, Mapping
from contextlib import suppress
from threading import Lock
from typing import Any, Protocol

from es_neardupe.errors import CertificateRefused, ConnectError, Unreachable
from es_neardupe.server.responses import Answer

__all__ = [
    "POOL_SIZE",
    "Driver",
    "DriverOver",
    "deep",
    "identity",
    "lost_connection",
    "parsed",
    "unreadable",
]

POOL_SIZE = 16
"""Connections kept open to a server; further worker threads wait or reconnect."""

_MORE_LEVELS = 2000
_DEEPER = Lock()
"""The recursion limit belongs to the whole process."""


class Driver(Protocol):
    """Sends one request once, without knowledge of products, retries or the meaning of answers."""

    @property
    def url(self) -> str:
        """The URL without credentials."""

    @property
    def login(self) -> str:
        """The user who is logged in, see `identity`."""

    def send(self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        """The answer, whatever its status. ``target`` is path and query, percent-encoded.

        Raises ``Unreachable`` or ``CertificateRefused``.
        """

    def close(self) -> None:
        """Close the connections if the adapter opened them."""


class DriverOver:
    """A driver that sends its requests through another one."""

    def __init__(self, driver: Driver) -> None:
        self._driver = driver

    @property
    def url(self) -> str:
        """See ``Driver.url``."""
        return self._driver.url

    @property
    def login(self) -> str:
        """See ``Driver.login``."""
        return self._driver.login

    def close(self) -> None:
        """See ``Driver.close``."""
        self._driver.close()


def identity(header: str | None) -> str:
    """The kind of login of an ``authorization`` header, and the user name, the id of the API key, or a hash of anything
    else; empty without a login. It contains no secret."""
    kind, _, word = (header or "").partition(" ")
    if kind.lower() in {"basic", "apikey"}:
        with suppress(ValueError):  # also binascii.Error and UnicodeDecodeError
            name, colon, _ = base64.b64decode(word, validate=True).decode().partition(":")
            if colon:
                return f"{kind.lower()} {name}"
    digest = hashlib.sha256(word.encode("utf-8", "surrogatepass")).hexdigest()
    return f"{kind.lower()} {digest}" if header else ""


def parsed(text: str) -> Any:
    """The value if the text is JSON, else the text (a proxy's HTML page), None if it is empty."""
    if not text:
        return None
    try:
        return json.loads(text)
    except RecursionError:
        with suppress(ValueError):
            return deep(text)
        return text
    except ValueError:
        return text


def deep(text: str | bytes) -> Any:
    """The value of JSON nested more deeply than Python's recursion limit: servers accept 1,000 levels. Raises
    ``ValueError``."""
    with _DEEPER:
        before = sys.getrecursionlimit()
        sys.setrecursionlimit(before + _MORE_LEVELS)
        try:
            return json.loads(text)
        except RecursionError:
            raise ValueError("nested too deeply") from None
        finally:
            sys.setrecursionlimit(before)


def unreadable(url: str) -> Unreachable:
    """The error for an answer whose content type is JSON, and whose body is not, or is cut off."""
    return Unreachable(f"{url}: the answer cannot be read. Is there a proxy in between?")


def lost_connection(error: BaseException, url: str) -> ConnectError:
    """The exception for a driver's connection error: certificate, TLS, time-out, or nothing listens."""
    causes = list(_causes(error))
    for words in filter(None, map(_certificate_words, causes)):
        return CertificateRefused(
            f"{url}: the certificate was not accepted ({words}). "
            "Check the host name, or name the authority that signed it (`ca_certs`, or `cert_fingerprint`)."
        )
    for cause in causes:
        if isinstance(cause, ssl.SSLError):
            if "ALERT" in (reason := cause.reason or "") and "CERT" in reason:
                return CertificateRefused(
                    f"{url}: the server requires a client certificate that it trusts ({_plain(reason)}): "
                    "give one with `client_cert`."
                )
            return Unreachable(
                f"{url}: TLS failed ({cause.reason or 'no reason given'}). Should the URL begin with http://?"
            )
    if any("Timeout" in type(cause).__name__ or isinstance(cause, TimeoutError) for cause in causes):
        return Unreachable(f"{url}: no answer in time. Try again, or increase the time-out.")
    return Unreachable(f"{url}: no connection ({_system_words(causes)}). Check the address, or start the server.")


def _plain(reason: str) -> str:
    return reason.partition("ALERT_")[2].replace("_", " ").lower()


def _certificate_words(cause: BaseException) -> str | None:
    """The problem with the certificate. urllib3 has its own errors for addresses and fingerprints."""
    if isinstance(cause, ssl.SSLCertVerificationError):
        return cause.verify_message.rstrip(".")
    if type(cause).__name__ == "CertificateError":
        return str(cause)
    return "it has another fingerprint" if "Fingerprints did not match" in str(cause) else None


def _system_words(causes: list[BaseException]) -> str:
    """The operating system's message, which contains no request; the driver's own message would."""
    words = [str(c.strerror) for c in causes if isinstance(c, OSError) and c.strerror]
    return words[-1].lower() if words else "it was closed without an answer; should the URL begin with https://?"


def _causes(error: BaseException | None) -> Iterator[BaseException]:
    """The error and its causes; drivers and urllib3 hide the socket's error in their arguments."""
    seen: list[BaseException] = []
    queue = [error]
    while queue:
        current = queue.pop(0)
        if current is None or current in seen:
            continue
        seen.append(current)
        yield current
        inside = [a for a in (*current.args, *getattr(current, "errors", ())) if isinstance(a, BaseException)]
        queue += [*inside, getattr(current, "reason", None), current.__cause__, current.__context__]
        queue = [q for q in queue if isinstance(q, BaseException)]
