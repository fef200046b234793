"""Local Elasticsearch and OpenSearch servers, for experiments and tests. Needs the extra ``[local]``, but no Java.

>>> from es_neardupe import NearDupe, local
>>> with local.node("opensearch") as node:  # doctest: +SKIP
...     news = NearDupe("news", url=node.url)

`node` is a server for the time of a block. `start` and `stop` are the commands ``node start`` and ``node stop``, and
`running` lists the servers that answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import wraps
from typing import ParamSpec

from es_neardupe.local_server.control import running, start, stop
from es_neardupe.local_server.state import Node, Stopped

__all__ = ["Node", "Stopped", "node", "running", "start", "stop"]

P = ParamSpec("P")


def _for_a_block(start: Callable[P, Node]) -> Callable[P, AbstractContextManager[Node]]:
    @contextmanager
    @wraps(start, assigned=())  # its parameters
    def node(*given: P.args, **options: P.kwargs) -> Iterator[Node]:
        """A local server for the time of a block. The arguments are those of `start`.

        It is stopped at the end, unless it was running before. Its indices stay in ``data``, for the next start. Raises
        `NodeError` if it cannot be started or stopped.
        """
        found = start(*given, **options)
        try:
            yield found
        finally:
            if found.started:
                stop(found.server, found.version, port=found.port, data=found.data)

    return node


node = _for_a_block(start)
