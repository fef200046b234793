"""Settings of a connection: URL, credentials, certificates, timeouts, retries."""

from __future__ import annotations

import base64
import re
import ssl
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Protocol
from urllib.parse import SplitResult, unquote, urlsplit

from es_neardupe.errors import SettingsError
from es_neardupe.wording import option


class ConnectionWarning(UserWarning):
    """A problem of a connection that is not an error."""


@dataclass(frozen=True, slots=True)
class Retries:
    """Limits on sending a request again after a lost connection, a timeout, 429, 502, 503, 504, or the loss of a node
    of the cluster."""

    attempts: int = 8
    """Number of tries. The waits add up to about 25 seconds; a restarted server is usually back by then."""
    wait: float = 0.5
    """Maximum wait before the second try in seconds, doubled for each further one; the actual wait is random."""
    longest_wait: float = 20.0
    """Maximum wait before any try, in seconds."""
    total: float = 90.0
    """Seconds after the first try; no further try starts later."""
    longest_answer: float = 600.0
    """Seconds after which an incomplete answer counts as lost."""


AWS_SERVICES = ("es", "aoss")
"""Names of Amazon OpenSearch Service and Amazon OpenSearch Serverless in signatures."""

_AWS_HOST = re.compile(r"\.([a-z0-9-]+)\.(es|aoss)\.amazonaws\.com(\.cn)?$")


@dataclass(frozen=True, slots=True)
class AwsLogin:
    """A login by signatures of AWS. What is None is found in the host name, then by botocore."""

    region: str | None = None
    profile: str | None = None
    service: str | None = None
    """One of `AWS_SERVICES`; None: ``es``, unless the host name says otherwise."""

    def __post_init__(self) -> None:
        if self.service not in (None, *AWS_SERVICES):
            raise SettingsError(
                f"{option('aws_service')} must be es (Amazon OpenSearch Service) or aoss (Amazon OpenSearch "
                f"Serverless), not {self.service!r}."
            )

    def region_of(self, url: str) -> str | None:
        """The region, unless only botocore knows it."""
        return self.region or _in_host(url, 1)

    def service_of(self, url: str) -> str:
        """One of `AWS_SERVICES`."""
        return self.service or _in_host(url, 2) or "es"


def _in_host(url: str, part: int) -> str | None:
    """Region (1) or service (2) in the host name that AWS gives to domains and collections."""
    found = _AWS_HOST.search(urlsplit(url).hostname or "")
    return found[part] if found else None


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """The URL of a server, the credentials, and how to connect. Secrets do not appear in its ``repr``.

    Credentials in ``url`` are removed from it and used as ``username`` and ``password``.
    Raises ``SettingsError`` for settings that are invalid or contradict each other.
    """

    url: str | None = None
    api_key: str | None = field(default=None, repr=False)
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    bearer_token: str | None = field(default=None, repr=False)
    """A token issued by another service (OpenID Connect, say) or by the server."""
    aws: AwsLogin | None = None
    """Sign each request, with credentials that botocore finds."""
    cloud_id: str | None = None
    ca_certs: str | None = None
    """File with certificates (PEM) that are trusted in addition to those of the system."""
    cert_fingerprint: str | None = None
    """SHA-256 of the certificate of the server or its authority, in hexadecimal digits: only that one is trusted."""
    client_cert: str | None = None
    """File with the client certificate (PEM), and with its key unless ``client_key`` is given."""
    client_key: str | None = None
    verify: bool = True
    """False: the server's certificate is not checked."""
    timeout: float = 60.0
    """Seconds to wait for an answer."""
    retries: Retries = Retries()
    run: str | None = None
    """Name of the run in its requests (``X-Opaque-Id: es-neardupe/RUN/NUMBER``); None: a random name."""
    options: Mapping[str, Any] | None = field(default=None, repr=False, compare=False)
    """Arguments of `resolve_settings` with which a worker finds the same server, and its credentials by itself; None if
    it needs none."""

    def __post_init__(self) -> None:
        if self.url is not None:
            self._take_credentials_out(self.url)
        _check_address(self)
        _check_login(self)
        _check_certificates(self)
        if not 0 < self.timeout <= _LONGEST_TIMEOUT:
            raise SettingsError(
                f"{option('timeout')} must be more than 0 seconds and at most {_LONGEST_TIMEOUT:,}, not "
                f"{self.timeout:g}."
            )

    def _take_credentials_out(self, url: str) -> None:
        plain, username, password = split_url(url)
        object.__setattr__(self, "url", plain)
        if username is None and password is None:
            return
        if self.api_key or self.username or self.password or self.bearer_token or self.aws:
            raise SettingsError("The URL contains credentials, and others are given too: keep one of them.")
        object.__setattr__(self, "username", username)
        object.__setattr__(self, "password", password)


_LONGEST_TIMEOUT = 86_400


def split_url(url: str) -> tuple[str, str | None, str | None]:
    """The URL without credentials and trailing slash, the user name, and the password.

    Raises ``SettingsError`` if it is not the URL of a server.
    """
    parts = _checked(url)
    host = parts.netloc.rpartition("@")[2].lower()
    username, password = (unquote(word) if word else None for word in (parts.username, parts.password))
    return f"{parts.scheme}://{host}{parts.path.rstrip('/')}", username, password


def _checked(url: str) -> SplitResult:
    """The parts of a valid URL. Messages do not repeat the URL, which may contain a password."""
    try:
        parts = urlsplit(url.strip())
        bad_port = parts.port == 0
    except ValueError:
        raise SettingsError("The URL is invalid: its host or its port is malformed.") from None
    if parts.scheme not in {"http", "https"} or not parts.hostname or bad_port:
        raise SettingsError("The URL must look like https://host:9200 (or http://).")
    if parts.query or parts.fragment:
        raise SettingsError("The URL must end with the host, the port or a path, without ? and #.")
    return parts


def _check_address(settings: ConnectionSettings) -> None:
    if settings.url and settings.cloud_id:
        raise SettingsError("Both a URL and a cloud ID are given: keep one of them.")


def _check_login(settings: ConnectionSettings) -> None:
    if more := more_than_one_login(settings):
        raise SettingsError(f"{more[0].upper()}{more[1:]} are given: keep one of them.")
    if (settings.username is None) != (settings.password is None):
        missing = "password" if settings.password is None else "user name"
        raise SettingsError(f"The {missing} is missing: give both the user name and the password.")
    for what, word in (("user name", settings.username), ("password", settings.password)):
        if any("\ud800" <= char <= "\udfff" for char in word or ""):
            raise SettingsError(f"The {what} is not valid Unicode: set the terminal, or save the file, as UTF-8.")
    for what, word in (("API key", settings.api_key), ("bearer token", settings.bearer_token)):
        if word is not None and not (word.isascii() and word.isprintable() and " " not in word):
            raise SettingsError(
                f"The {what} contains a space or a character that is not printable ASCII. Copy it again."
            )


class _Login(Protocol):
    @property
    def api_key(self) -> str | None: ...
    @property
    def bearer_token(self) -> str | None: ...
    @property
    def username(self) -> str | None: ...
    @property
    def password(self) -> str | None: ...
    @property
    def aws(self) -> AwsLogin | None: ...


def more_than_one_login(one: _Login) -> str:
    """The kinds of credentials that are given, for a message; empty if there is at most one."""
    kinds = {
        "an API key": one.api_key,
        "a bearer token": one.bearer_token,
        "a user name or password": one.username or one.password,
        "signatures of AWS": one.aws,
    }
    given = [words for words, value in kinds.items() if value]
    return " and ".join(given) if len(given) > 1 else ""


def _check_certificates(settings: ConnectionSettings) -> None:
    if not settings.verify and (settings.ca_certs or settings.cert_fingerprint):
        what = "Certificates to trust" if settings.ca_certs else "A fingerprint to trust"
        raise SettingsError(f"{what} and {option('insecure')} are given: keep one of them.")
    if settings.ca_certs:
        _check_file(settings.ca_certs)
    if settings.ca_certs and settings.cert_fingerprint:
        raise SettingsError("Certificates to trust and a fingerprint are given: keep one of them.")
    if settings.client_key and not settings.client_cert:
        raise SettingsError(
            f"The key of a client certificate is given without the certificate: add {option('client_cert')}."
        )
    if settings.cert_fingerprint is not None:
        plain = settings.cert_fingerprint.replace(":", "").lower()
        if not re.fullmatch("[0-9a-f]{64}", plain):
            raise SettingsError(
                f"{option('cert_fingerprint')} must be a SHA-256 of 64 hexadecimal digits, with or without colons."
            )
        object.__setattr__(settings, "cert_fingerprint", plain)
    if settings.url and settings.url.startswith("http:") and (settings.client_cert or settings.cert_fingerprint):
        raise SettingsError("A client certificate or a fingerprint needs TLS: the URL must begin with https://.")


def _check_file(ca_certs: str) -> None:
    try:
        ssl.create_default_context(cafile=ca_certs)
    except (OSError, ValueError) as error:  # ssl.SSLError is an OSError
        raise SettingsError(f"The certificates in {ca_certs} cannot be read ({error}). Give a PEM file.") from error


def authorization(settings: ConnectionSettings) -> dict[str, str]:
    """The ``authorization`` header; empty without credentials. (urllib3's helper supports only Latin-1 passwords.)"""
    if settings.api_key:
        key = settings.api_key
        return {"authorization": f"ApiKey {_base64(key) if ':' in key else key}"}  # id:key, or encoded already
    if settings.bearer_token:
        return {"authorization": f"Bearer {settings.bearer_token}"}
    if settings.username is not None:
        return {"authorization": f"Basic {_base64(f'{settings.username}:{settings.password}')}"}
    return {}


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()
