"""Adapter for a client of the user, of elasticsearch-py 8.12 and later, or 9.

It sends through the client's transport: the client itself insists on media types of its own major version,
and turns ``Warning`` headers into Python warnings, which can be silenced only for all threads at once.
"""

from __future__ import annotations

from collections.abc import Mapping
from copy import copy
from typing import Any, cast

from elastic_transport import (
    BaseNode,
    ConnectionTimeout,
    JsonSerializer,
    NodePool,
    SerializationError,
    SerializerCollection,
    TransportError,
    Urllib3HttpNode,
)
from elastic_transport import ConnectionError as NoConnection
from elasticsearch import Elasticsearch

from es_neardupe.server.drivers.driver import LimitedPool, deep, identity, lost_connection, unreadable
from es_neardupe.server.numbers import loads
from es_neardupe.server.responses import Answer


class _Json(JsonSerializer):
    """Reads numbers with their literals, and answers nested more deeply than the recursion limit, as documents of a
    hostile user may be."""

    def json_loads(self, data: bytes) -> Any:
        try:
            return loads(data)
        except RecursionError:
            return deep(data)


class _VendorJson(_Json):
    mimetype = "application/vnd.elasticsearch+json"


_SERIALIZERS = {one.mimetype: one() for one in (_Json, _VendorJson)}


class _LimitedNodes:
    """A pool of nodes that limits the size of their answers, for requests through this transport only: the nodes may
    belong to a client of the user. Nodes that do not use urllib3 are not limited."""

    def __init__(self, nodes: NodePool) -> None:
        self._nodes = nodes

    def __getattr__(self, name: str) -> Any:
        return getattr(self._nodes, name)

    def get(self) -> BaseNode:
        """The next node, or a copy of it with the same connections."""
        node = self._nodes.get()
        if not isinstance(node, Urllib3HttpNode):
            return node
        limited: Any = copy(node)
        limited.pool = LimitedPool(node.pool, node.base_url)
        limited.plain = node
        return cast(BaseNode, limited)

    def mark_dead(self, node: Any) -> None:
        """Pass the node itself on, not its copy."""
        self._nodes.mark_dead(getattr(node, "plain", node))

    def mark_live(self, node: Any) -> None:
        """Pass the node itself on, not its copy."""
        self._nodes.mark_live(getattr(node, "plain", node))


class ElasticsearchDriver:
    """Sends requests through an ``Elasticsearch`` client, which stays open."""

    def __init__(self, client: Elasticsearch) -> None:
        self._client = client
        self._transport = copy(client.transport)  # the same connections, even if the client reads JSON in another way
        self._transport.serializers = SerializerCollection({**client.transport.serializers.serializers, **_SERIALIZERS})
        self._transport.node_pool = cast(NodePool, _LimitedNodes(client.transport.node_pool))
        # The credentials of a client are among the headers that it adds to each request, which are not public.
        self._headers: dict[str, str] = {k.lower(): v for k, v in client._headers.items()}

    @property
    def url(self) -> str:
        return self._client.transport.node_pool.all()[0].base_url

    @property
    def login(self) -> str:
        return identity(self._headers.get("authorization"))

    def send(self, method: str, target: str, body: bytes | None, headers: Mapping[str, str]) -> Answer:
        """One request, one answer. Raises ``Unreachable`` or ``CertificateRefused``."""
        try:
            meta, parsed = self._transport.perform_request(
                method,
                target,
                body=body,
                headers={**self._headers, **headers},
                max_retries=0,
                request_timeout=self._client._request_timeout,
            )
        except (NoConnection, ConnectionTimeout) as error:
            raise lost_connection(error, self.url) from error
        except SerializationError as error:
            raise unreadable(self.url) from error
        except TransportError as error:
            raise lost_connection(error, self.url) from error
        return Answer(meta.status, {k.lower(): v for k, v in meta.headers.items()}, parsed)

    def close(self) -> None:
        """Close nothing: the client belongs to the user."""


def wrap_driver(client: object) -> ElasticsearchDriver | None:
    """A driver over an existing client; None if it is not an ``Elasticsearch``."""
    return ElasticsearchDriver(client) if isinstance(client, Elasticsearch) else None
