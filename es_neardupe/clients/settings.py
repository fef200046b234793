"""How to reach a server: one frozen object, passed whole."""

from __future__ import annotations

import ssl
from dataclasses import dataclass, field
from urllib.parse import SplitResult, unquote, urlsplit

from es_neardupe.errors import SettingsError

__all__ = ["ConnectionSettings", "ConnectionWarning", "Retries", "split_url"]


class ConnectionWarning(UserWarning):
    """Something about a connection that the user should know, but that is no error."""


@dataclass(frozen=True, slots=True)
class Retries:
    """How often a whole request is tried again after a lost connection, a time-out, 429, 502, 503, 504, or where a
    node of the cluster was just lost."""

    attempts: int = 8
    """Tries in all: their waits sum up to some 25 seconds, in which a server that was restarted is back most often."""
    wait: float = 0.5
    """Seconds before the second try; doubled for each further one, the actual wait is random below that."""
    longest_wait: float = 20.0
    """Seconds."""
    total: float = 90.0
    """No new try begins later than this many seconds after the first one did."""


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """Where a server is and how to log in to it. Secrets do not appear in its ``repr``.

    Credentials inside ``url`` are taken out of it and used as ``username`` and ``password``.
    Raises ``SettingsError`` if settings contradict each other or cannot be used.
    """

    url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    cloud_id: str | None = None
    ca_certs: str | None = None
    """File with the certificates (PEM) that are trusted besides the usual ones."""
    verify: bool = True
    """False: the server's certificate is not checked."""
    timeout: float = 60.0
    """Seconds to wait for an answer."""
    retries: Retries = Retries()

    def __post_init__(self) -> None:
        if self.url is not None:
            self._take_credentials_out(self.url)
        _check_place(self)
        _check_login(self)
        _check_certificates(self)
        if not self.timeout > 0:
            raise SettingsError(f"The time-out must be more than 0 seconds, not {self.timeout}.")

    def _take_credentials_out(self, url: str) -> None:
        place, username, password = split_url(url)
        object.__setattr__(self, "url", place)
        if username is None and password is None:
            return
        if self.api_key or self.username or self.password:
            raise SettingsError("The URL holds credentials and others are given too: keep one of them.")
        object.__setattr__(self, "username", username)
        object.__setattr__(self, "password", password)


def split_url(url: str) -> tuple[str, str | None, str | None]:
    """The URL without credentials or a closing slash, the user name, the password.

    Raises ``SettingsError`` if it is not the URL of a server.
    """
    parts = _checked(url)
    host = parts.netloc.rpartition("@")[2].lower()
    username, password = (unquote(word) if word else None for word in (parts.username, parts.password))
    return f"{parts.scheme}://{host}{parts.path.rstrip('/')}", username, password


def _checked(url: str) -> SplitResult:
    """The parts of a URL that can be used. Messages do not repeat it: it may hold a password."""
    try:
        parts = urlsplit(url.strip())
        bad_port = parts.port == 0
    except ValueError:
        raise SettingsError("The URL cannot be read: its host or its port is malformed.") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname or bad_port:
        raise SettingsError("The URL must look like https://host:9200 (or http://).")
    if parts.query or parts.fragment:
        raise SettingsError("The URL must end with the host, the port or a path, without ? and #.")
    return parts


def _check_place(settings: ConnectionSettings) -> None:
    if settings.url and settings.cloud_id:
        raise SettingsError("A URL and a cloud ID are given: keep one of them.")


def _check_login(settings: ConnectionSettings) -> None:
    if settings.api_key and (settings.username or settings.password):
        raise SettingsError("An API key and a user name or password are given: keep one of them.")
    if (settings.username is None) != (settings.password is None):
        missing = "password" if settings.password is None else "user name"
        raise SettingsError(f"A login needs a user name and a password; the {missing} is missing.")
    if settings.api_key is not None and not (settings.api_key.isascii() and settings.api_key.isprintable()):
        raise SettingsError("The API key holds characters that no API key has.")


def _check_certificates(settings: ConnectionSettings) -> None:
    if settings.ca_certs is None:
        return
    if not settings.verify:
        raise SettingsError("Certificates to trust and 'insecure' are given: keep one of them.")
    try:
        ssl.create_default_context(cafile=settings.ca_certs)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise SettingsError(
            f"The certificates in {settings.ca_certs} cannot be read ({error}): name a PEM file."
        ) from error
