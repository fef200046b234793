"""Servers that all processes of a test run share: each is started once, by whichever process needs it first."""

from __future__ import annotations

import contextlib
import os
import shutil
import subprocess
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from containers import container
from jvm_tools import with_a_large_heap

from es_neardupe.local_server import control

GIVEN = "ES_NEARDUPE_TEST_URL"
"""Environment variable with running servers: KIND-VERSION=URL,..."""

_ROOT = Path(__file__).parents[2]
HEAP = "1g"
"""With 512 MB, several processes at a time can trip the memory circuit breaker."""
_START_TIMEOUT = 240.0
"""All servers of a run start at the same time, on a machine that may be busy with other work."""


class SharedServers:
    """The servers of one test run, by their names (KIND-VERSION). Their data are below a folder of the run, which
    its processes have in common; servers of other runs are never used."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._starting: list[subprocess.Popen[bytes]] = []

    def url(self, name: str) -> str:
        """The address of a server, which is started unless it is given or already running. Raises `NodeError` if it
        does not start."""
        given = dict(pair.split("=", 1) for pair in os.environ.get(GIVEN, "").split(",") if pair)
        if name in given:
            return given[name]
        kind, _, version = name.partition("-")
        with with_a_large_heap():
            return control.start(kind, version, data=self.folder / name, heap=HEAP, timeout=_START_TIMEOUT).url

    def start(self, names: Iterable[str]) -> None:
        """Start servers in the background, each by a process of its own, which does not slow down the tests of this
        one. A test that needs one which does not start says why."""
        for name in names:
            command = [sys.executable, __file__, str(self.folder), name]
            started = subprocess.Popen(command, cwd=_ROOT, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            self._starting.append(started)

    def settle(self) -> None:
        """Wait until the servers that this process starts have started, so that `stop` finds them."""
        for process in self._starting:
            process.wait()

    def stop(self) -> None:
        """Stop the servers that were started, and remove their data. Fails if one did not close as it should."""
        self.settle()
        for data in sorted(self.folder.glob("*-*")):
            for stopped in control.stop(data=data):
                assert not stopped.killed, f"{data.name} did not close"
                assert stopped.node.log.read_text("utf-8").rstrip().endswith("closed")
        shutil.rmtree(self.folder)


@contextlib.contextmanager
def in_containers(names: Iterable[str]) -> Iterator[None]:
    """Containers of these servers for a block, in which `SharedServers` finds them. Raises `NodeError` if no Docker
    engine answers."""
    with contextlib.ExitStack() as started:
        urls = [f"{name}={started.enter_context(container(*name.split('-', 1)))}" for name in names]
        os.environ[GIVEN] = ",".join(filter(None, [os.environ.get(GIVEN, ""), *urls]))
        yield


if __name__ == "__main__":
    SharedServers(Path(sys.argv[1])).url(sys.argv[2])
