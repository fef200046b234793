"""Adapter for a client of the user, of opensearch-py 2.4.2 and later, or 3.

It sends through a connection of the client: its transport retries by its own rules, removes ``timeout`` from the
parameters, and does not return headers.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from copy import copy
from typing import Any

from opensearchpy import OpenSearch
from opensearchpy.connection import Urllib3HttpConnection
from opensearchpy.exceptions import ConnectionError as NoConnection

from es_neardupe.server.drivers.driver import LimitedPool, identity, lost_connection, parsed, unreadable
from es_neardupe.server.responses import Answer

_EVERY_STATUS = range(300, 600)

# The driver logs each lost connection with its traceback, which Python would print if there were no handler.
logging.getLogger("opensearch").addHandler(logging.NullHandler())


class OpenSearchDriver:
    """Sends requests through an ``OpenSearch`` client, which stays open."""

    def __init__(self, client: OpenSearch) -> None:
        self._client = client

    @property
    def url(self) -> str:
        connection = self._client.transport.connection_pool.connections[0]
        return f"{connection.host}{connection.url_prefix}"

    @property
    def login(self) -> str:
        headers = self._client.transport.connection_pool.connections[0].headers
        return identity(headers.get("authorization"))

    def send(self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        """One request, one answer. Raises ``Unreachable`` or ``CertificateRefused``."""
        transport = self._client.transport
        connection = transport.get_connection()
        limited = _limited(connection)
        try:
            status, answered, text = limited.perform_request(
                method, target, body=body, headers=dict(headers), ignore=_EVERY_STATUS
            )
        except NoConnection as error:
            transport.connection_pool.mark_dead(connection)
            raise lost_connection(error, self.url) from error
        transport.connection_pool.mark_live(connection)
        headers = {k.lower(): v for k, v in answered.items()}
        read = limited.pool.body if isinstance(limited.pool, LimitedPool) else text
        body = parsed(text if read is None else read)
        if isinstance(body, str) and "json" in headers.get("content-type", ""):
            raise unreadable(self.url)
        return Answer(status, headers, body)

    def close(self) -> None:
        """Close nothing: the client belongs to the user."""


def _limited(connection: Any) -> Any:
    """A copy of the connection, with the same sockets, that limits the size of answers: the connection may belong to a
    client of the user. Connections that do not use urllib3 are not limited."""
    if not isinstance(connection, Urllib3HttpConnection):
        return connection
    limited = copy(connection)
    limited.pool = LimitedPool(connection.pool, f"{connection.host}{connection.url_prefix}")
    return limited


def wrap_driver(client: object) -> OpenSearchDriver | None:
    """A driver over an existing client; None if it is not an ``OpenSearch``."""
    return OpenSearchDriver(client) if isinstance(client, OpenSearch) else None
