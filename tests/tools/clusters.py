"""Real cluster of several nodes on this machine, each in a process that can be killed."""

from __future__ import annotations

import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import psutil
from jvm_tools import QUICK
from ports import claimed_ports
from server_tools import JSON, required
from transport_links import TransportLinks

from es_neardupe.errors import NodeError, RequestError
from es_neardupe.local_server import control, download
from es_neardupe.local_server.process import require_extra
from es_neardupe.local_server.versions import Release
from es_neardupe.server.client import Client, path
from es_neardupe.server.connect import connect
from es_neardupe.server.login.settings import ConnectionSettings

_HEAP = "320m"
_START_TIMEOUT = 240.0
_OF_SHORT_LIFE = f"{QUICK} -XX:ActiveProcessorCount=2"
"""For virtual machines that spend most of their time on starting."""
_DETECTION = {
    f"cluster.fault_detection.{kind}_check.{name}": value
    for kind in ("follower", "leader")
    for name, value in (("timeout", "5s"), ("retry_count", "1"))
}
"""A node that does not answer is removed after 5 seconds instead of 30."""
_MASTERS = {"elasticsearch": "cluster.initial_master_nodes", "opensearch": "cluster.initial_cluster_manager_nodes"}


@dataclass
class Cluster:
    """Nodes of one release, numbered from 0."""

    release: Release
    home: Path
    more: Mapping[str, str | Sequence[str]]
    """Further settings of each node."""
    http: list[int]
    transport: list[int]
    processes: dict[int, subprocess.Popen[bytes]] = field(default_factory=dict)
    links: TransportLinks | None = None
    """The connections between the nodes, if some of them are to be cut."""

    def url(self, number: int) -> str:
        return f"http://127.0.0.1:{self.http[number]}"

    @contextlib.contextmanager
    def client(self, number: int, **settings: Any) -> Iterator[Client]:
        """A connection to one of the nodes, with further `ConnectionSettings`."""
        opened = connect(ConnectionSettings(url=self.url(number), **settings))
        try:
            yield opened
        finally:
            opened.close()

    def spawn(self, number: int) -> None:
        """Start or restart a node on its data, without waiting for it."""
        home = self.home / f"n{number}"
        home.mkdir(exist_ok=True)
        with self._log(number).open("ab") as log:
            self.processes[number] = subprocess.Popen(
                [sys.executable, str(Path(__file__).with_name("cluster_process.py")), self._launch(number, home)],
                stdin=subprocess.PIPE,
                stdout=subprocess.PIPE,
                stderr=log,
                cwd=home,
                env={**os.environ, "JAVA_TOOL_OPTIONS": _OF_SHORT_LIFE},
                start_new_session=True,
            )

    def join(self, number: int) -> None:
        """Wait until a node has joined. Raises `NodeError` if it does not start."""
        process = self.processes[number]
        late = threading.Timer(_START_TIMEOUT, process.kill)  # ends the wait for its line
        late.start()
        try:
            if process.stdout is None or not any(line.strip() == b"started" for line in process.stdout):
                raise NodeError(
                    f"node {number} of the cluster could not be started. {control.ending(self._log(number))}"
                )
        finally:
            late.cancel()

    def kill(self, number: int) -> None:
        """End a node by SIGKILL: the other nodes are not notified, and nothing is flushed."""
        process = self.processes.pop(number)
        process.kill()
        process.communicate()

    def suspend(self, number: int) -> None:
        """Stop the process of a node: its connections stay open, and it answers nothing."""
        self.processes[number].send_signal(signal.SIGSTOP)

    def resume(self, number: int) -> None:
        """Continue a suspended process, which does not know yet that others have taken over."""
        self.processes[number].send_signal(signal.SIGCONT)

    def node_with_port(self, port: int) -> int | None:
        """The node whose process has a connection from this port."""
        for number, process in self.processes.items():
            with contextlib.suppress(psutil.Error):
                if any(one.laddr.port == port for one in psutil.Process(process.pid).net_connections("tcp")):
                    return number
        return None

    def _log(self, number: int) -> Path:
        return self.home / f"n{number}.log"

    def _launch(self, number: int, home: Path) -> str:
        """The argument of the process of a node."""
        published = self.transport if self.links is None else self.links.published
        settings = {
            "cluster.name": f"es-neardupe-{self.http[0]}",
            "node.name": f"n{number}",
            "network.host": "127.0.0.1",
            "http.port": str(self.http[number]),
            "transport.port": str(self.transport[number]),
            "transport.publish_port": str(published[number]),
            "discovery.seed_hosts": [f"127.0.0.1:{port}" for port in published],
            _MASTERS[self.release.server]: [f"n{k}" for k in range(len(self.http))],
            "cluster.routing.allocation.disk.threshold_enabled": "false",
            **_DETECTION,
            **self.more,
        }
        if self.release.server == "opensearch":
            settings["discovery.type"] = "zen"  # else the runner makes it a single node
        named = {"server": self.release.server, "version": self.release.version, "heap": _HEAP}
        return json.dumps(
            {**named, "home": str(home), "jars": str(download.folder(self.release)), "settings": settings}
        )


@contextlib.contextmanager
def cluster(
    release: Release,
    home: Path,
    *,
    size: int = 3,
    more: Mapping[str, str | Sequence[str]] | None = None,
    links: bool = False,
) -> Iterator[Cluster]:
    """Start nodes in an empty folder for a ``with`` block. If they do not start, skip the test; in CI fail. ``links``:
    with connections that can be cut."""
    with required(), _started(release, home, size, more or {}, links) as found:
        yield found


@contextlib.contextmanager
def _started(
    release: Release, home: Path, size: int, more: Mapping[str, str | Sequence[str]], links: bool
) -> Iterator[Cluster]:
    require_extra()
    download.ensure(release)
    with claimed_ports(2 * size) as ports:
        found = Cluster(release, home, more, ports[:size], ports[size:])
        if links:
            found.links = TransportLinks(found.transport, found.node_with_port)
        try:
            for number in range(size):
                found.spawn(number)
            for number in range(size):
                found.join(number)
            yield found
        finally:
            for number in list(found.processes):
                found.kill(number)


def manager(client: Client) -> int:
    """The number of the current cluster manager node."""
    (found,) = client.request("GET", path("_cat", "master"), params={"format": "json"})
    return int(re.sub(r"\D", "", found["node"]))


def wait_for_green(client: Client, nodes: int) -> JSON:
    """Wait until this number of nodes has joined, and every copy of every shard is active and none is moving.

    A server gives up a copy that could not be allocated five times in a row, for example because the node that has left
    and returned still closes an earlier one: then it is asked to try again.
    """
    params: dict[str, Any] = {
        "wait_for_status": "green",
        "wait_for_nodes": str(nodes),
        "wait_for_no_relocating_shards": True,
        "timeout": "25s",
    }
    for _ in range(5):  # three nodes on a busy machine
        try:
            health: JSON = client.request("GET", path("_cluster", "health"), params=params)
        except RequestError as error:  # the answer of OpenSearch after the time
            if error.status != 408:
                raise
        else:
            if not health["timed_out"]:
                return health
        client.request("POST", path("_cluster", "reroute"), params={"retry_failed": True, "metric": "none"})
    raise AssertionError(f"not green: {_why_not_green(client)}")


def _why_not_green(client: Client) -> JSON:
    """The state of the cluster, its nodes, and why a shard has not been allocated."""
    found: JSON = {"health": client.request("GET", path("_cluster", "health"))}
    for name in ("nodes", "shards", "recovery"):
        params: JSON = {"format": "json", "active_only": True} if name == "recovery" else {"format": "json"}
        found[name] = client.request("GET", path("_cat", name), params=params)
    with contextlib.suppress(RequestError):  # all shards are allocated
        found["allocation"] = client.request("GET", path("_cluster", "allocation", "explain"))
    return found


def copies(client: Client, index: str) -> dict[int, set[str]]:
    """The numbers of documents in the copies of each shard of an index."""
    client.request("POST", path(index, "_refresh"))
    found: dict[int, set[str]] = {}
    for one in client.request("GET", path("_cat", "shards", index), params={"format": "json", "h": "shard,docs"}):
        found.setdefault(int(one["shard"]), set()).add(one["docs"])
    return found
