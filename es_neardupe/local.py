"""Local Elasticsearch and OpenSearch servers, for experiments and tests. Needs the extra ``[local]``, but no Java.

>>> from es_neardupe import NearDupe, local
>>> with local.node("opensearch") as node:  # doctest: +SKIP
...     news = NearDupe("news", url=node.url)

`node` is a server for the time of a block. `start` and `stop` are the commands ``node start`` and ``node stop``, and
`running` lists the servers that answer.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from es_neardupe.local_server.control import running, start, start_or_find, stop
from es_neardupe.local_server.state import Node, Stopped
from es_neardupe.local_server.versions import DEFAULT_SERVER

__all__ = ["Node", "Stopped", "node", "running", "start", "stop"]


@contextmanager
def node(
    server: str = DEFAULT_SERVER,
    version: str | None = None,
    *,
    port: int | None = None,
    heap: str = "512m",
    data: Path | str | None = None,
    offline: bool = False,
    timeout: float = 120.0,
    say: Callable[[str], None] = lambda _: None,
) -> Iterator[Node]:
    """A local server for the time of a block. The arguments are those of `start`.

    It is stopped at the end, unless it was running before. Its indices stay in ``data``, for the next start. Raises
    `NodeError` if it cannot be started or stopped.
    """
    found, started = start_or_find(
        server, version, port=port, heap=heap, data=data, offline=offline, timeout=timeout, say=say
    )
    try:
        yield found
    finally:
        if started:
            stop(found.server, found.version, port=found.port, data=found.data)
