"""TCP proxies in front of the transport ports of a cluster, which can cut one node off from the others."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass

HOST = "127.0.0.1"


@dataclass(frozen=True, eq=False)
class _Link:
    """A connection from one node to another, and both of its ends."""

    nodes: frozenset[int | None]
    ends: tuple[asyncio.StreamWriter, asyncio.StreamWriter]


class TransportLinks:
    """All connections between nodes. While a node is cut off, nothing that it sends arrives, and nothing arrives there;
    its connections stay open, as in a network that loses packets."""

    def __init__(self, ports: Sequence[int], node_with_port: Callable[[int], int | None]) -> None:
        """``ports``: the transport port of each node. ``node_with_port``: the node that has a local port."""
        self._ports, self._node_with_port = ports, node_with_port
        self._cut: int | None = None
        self._links: set[_Link] = set()
        self._loop = asyncio.new_event_loop()
        threading.Thread(target=self._loop.run_forever, name="links", daemon=True).start()
        self.published: list[int] = asyncio.run_coroutine_threadsafe(self._listen(), self._loop).result()
        """The port of the proxy of each node."""

    def cut(self, node: int) -> None:
        """Cut a node off."""
        self._cut = node

    def mend(self) -> None:
        """Let everything through again. Connections that have lost something are closed."""
        cut, self._cut = self._cut, None

        def close() -> None:
            for link in self._links:
                for end in link.ends if cut in link.nodes else ():
                    end.transport.abort()

        self._loop.call_soon_threadsafe(close)

    async def _listen(self) -> list[int]:
        found = []
        for node in range(len(self._ports)):

            async def accept(reader: asyncio.StreamReader, writer: asyncio.StreamWriter, node: int = node) -> None:
                await self._forward(node, reader, writer)

            server = await asyncio.start_server(accept, HOST)
            found.append(server.sockets[0].getsockname()[1])
        return found

    async def _forward(self, node: int, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        source = await asyncio.to_thread(self._node_with_port, writer.get_extra_info("peername")[1])
        if self._cut is not None and self._cut in (source, node):
            writer.close()
            return
        try:
            other_reader, other_writer = await asyncio.open_connection(HOST, self._ports[node])
        except OSError:
            writer.close()
            return
        link = _Link(frozenset({source, node}), (writer, other_writer))
        self._links.add(link)
        await asyncio.gather(self._pump(reader, other_writer, link), self._pump(other_reader, writer, link))
        self._links.discard(link)

    async def _pump(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter, link: _Link) -> None:
        try:
            while data := await reader.read(1 << 16):
                if self._cut is None or self._cut not in link.nodes:
                    writer.write(data)
                    await writer.drain()
        except OSError:
            pass
        finally:
            writer.close()
