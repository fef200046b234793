"""What both servers are told."""

from __future__ import annotations

from es_neardupe.node.records import Launch

__all__ = ["settings"]


def settings(launch: Launch) -> dict[str, str]:
    """The settings of a single node that only this machine can reach.

    ``network.host`` binds HTTP and transport alike. A nearly full disk must not block a toy index, and
    tests make many small ones.
    """
    return {
        "cluster.name": f"es-neardupe-{launch.server}",
        "node.name": "local",
        "discovery.type": "single-node",
        "network.host": "127.0.0.1",
        "http.port": str(launch.port),
        "transport.port": "9300-9399",
        "cluster.routing.allocation.disk.threshold_enabled": "false",
        "cluster.max_shards_per_node": "10000",
    }
