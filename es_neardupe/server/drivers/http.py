"""The driver of connections that we open ourselves: urllib3, without the driver package of a product.

Importing a driver package takes longer than most commands, and the product is known only when the server has answered.
"""

from __future__ import annotations

import base64
from collections.abc import Mapping
from urllib.parse import urlsplit

from urllib3 import HTTPConnectionPool, HTTPSConnectionPool, Timeout
from urllib3.exceptions import HTTPError

from es_neardupe.errors import SettingsError
from es_neardupe.server.drivers.driver import POOL_SIZE, LimitedPool, identity, lost_connection, parsed, unreadable
from es_neardupe.server.login import tls
from es_neardupe.server.login.settings import ConnectionSettings, authorization, split_url
from es_neardupe.server.responses import Answer


class HttpDriver:
    """Sends requests to one address, over connections that stay open."""

    def __init__(self, settings: ConnectionSettings) -> None:
        """Raises ``SettingsError`` for an invalid cloud ID or client certificate."""
        parts = urlsplit(settings.url or _url_of(settings.cloud_id or ""))
        host = f"[{parts.hostname}]" if ":" in (parts.hostname or "") else str(parts.hostname)
        encrypted = parts.scheme == "https"
        port = parts.port or (443 if encrypted else 80)
        self._path = parts.path
        self.url = f"{parts.scheme}://{host}:{port}{parts.path}"
        """See ``Driver.url``."""
        self._headers = {"user-agent": "es-neardupe", **authorization(settings)}
        timeout = Timeout(settings.timeout)
        self._pool = (
            HTTPSConnectionPool(host, port, timeout, POOL_SIZE, ssl_context=tls.context(settings))
            if encrypted
            else HTTPConnectionPool(host, port, timeout, POOL_SIZE)
        )

    @property
    def login(self) -> str:
        """See ``Driver.login``."""
        return identity(self._headers.get("authorization"))

    def send(self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        """One request, one answer. Raises ``Unreachable`` or ``CertificateRefused``."""
        sent = {**self._headers, **headers}
        limited = LimitedPool(self._pool, self.url)
        try:
            answer = limited.urlopen(
                method, self._path + target, body=body, headers=sent, retries=False, redirect=False
            )
        except HTTPError as error:
            raise lost_connection(error, self.url) from error
        answered = {name.lower(): value for name, value in answer.headers.items()}
        found = parsed(answer.data)
        if isinstance(found, str) and "json" in answered.get("content-type", ""):
            raise unreadable(self.url)
        return Answer(answer.status, answered, found)

    def close(self) -> None:
        """See ``Driver.close``."""
        self._pool.close()


def _url_of(cloud_id: str) -> str:
    """The URL of Elasticsearch in a cloud ID, ``NAME:BASE64``: of ``DOMAIN[:PORT]$ELASTICSEARCH$KIBANA``."""
    try:
        domain, name, *_ = base64.b64decode(cloud_id.partition(":")[2]).decode("ascii").split("$")
        host, _, port = domain.partition(":")
        return split_url(f"https://{name}.{host}:{int(port or 443)}")[0]
    except (ValueError, SettingsError):  # also binascii.Error and UnicodeDecodeError
        raise SettingsError("The cloud ID is invalid. Copy it again.") from None
