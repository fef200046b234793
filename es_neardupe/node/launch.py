"""Start a server in a process of its own."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

from es_neardupe.errors import NodeError
from es_neardupe.node import folders, health, jars, jvm, logs, ports, state
from es_neardupe.node.records import Launch, Node
from es_neardupe.node.versions import DEFAULT_SERVER, Release, pick

__all__ = ["start"]

_SPAWN_TIMEOUT = 30.0
_LOOK_EVERY = 0.1
_PORTS = 6
"""Ports tried where none is asked for: another process may take the chosen one first."""
# CREATE_NEW_PROCESS_GROUP and CREATE_NO_WINDOW, known on Windows only: Ctrl-C here is not for the server.
_FLAGS = 0x08000200 if sys.platform == "win32" else 0


class _PortLost(NodeError):
    """The server ended, since something else had its port."""


def start(
    server: str = DEFAULT_SERVER,
    version: str | None = None,
    *,
    port: int | None = None,
    heap: str = "512m",
    data: Path | str | None = None,
    offline: bool = False,
    timeout: float = 120.0,
    say: Callable[[str], None] = lambda _: None,
) -> Node:
    """Start a local server and return it when its cluster answers; if it runs already, return it.

    ``data`` chooses the folder of its indices and log, ``port`` its HTTP port (else the first free one
    from 9200 on), ``offline`` forbids fetching jars; ``say`` is told what takes long.
    Raises :class:`NodeError` if it cannot be started or does not answer within ``timeout`` seconds.
    """
    release = pick(server, version)
    _check_heap(heap)
    folder = folders.chosen(data) if data is not None else folders.default_data(release.slug)
    file = state.pid_file(release.slug, folder)
    state.require_folder(folders.run())
    if _alive(file) is None:
        jvm.require_extra()
        jars.ensure(release, offline=offline, say=say)
        say(f"starting {release.server} {release.version}")
    launch = _launch(release, heap, folder, file)
    for attempt in _attempts(1 if port is not None else _PORTS):
        with attempt:
            node = _start_once(launch, port)
            if port not in (None, node.port):
                raise NodeError(f"{_name(node)} runs already at {node.url}; stop it to change its port")
            _wait_until_ready(node, file, timeout)
    return node


def _attempts(number: int) -> Retrying:
    return Retrying(retry=retry_if_exception_type(_PortLost), stop=stop_after_attempt(number), reraise=True)


def _check_heap(heap: str) -> None:
    if not re.fullmatch(r"[1-9][0-9]*[kKmMgG]", heap):
        raise NodeError(f"{heap!r} is not a heap size; say 512m or 2g")


def _launch(release: Release, heap: str, data: Path, file: Path) -> Launch:
    log = data / f"{release.server}.log"
    return Launch(release.server, release.version, 0, heap, data, log, jars.folder(release), file)


def _alive(file: Path) -> Node | None:
    """The server of a PID file, if it lives; else the file is removed."""
    with state.guard():
        node = state.alive(file)
        if node is None:
            state.forget(file)
        return node


def _start_once(launch: Launch, port: int | None) -> Node:
    """Spawn the server, unless another process did so meanwhile. The guard covers the choice of the port."""
    with state.guard():
        node = state.alive(launch.pid_file)
        if node is not None:
            return node
        state.require_folder(launch.data)
        taken = [other.port for other in state.scan()[0]]
        chosen = ports.choose(port, taken)
        return _spawn(replace(launch, port=chosen))


def _spawn(launch: Launch) -> Node:
    """Start the process and wait until its PID file is there."""
    logs.rotate(launch.log)
    with launch.log.open("ab") as log:
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-m", "es_neardupe.node.process", launch.to_json()],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=launch.data,
            env=_environment(),
            start_new_session=True,
            creationflags=_FLAGS,
        )
    # Somebody must take note of its end, or it would stay a zombie as long as this process lives.
    threading.Thread(target=process.wait, daemon=True).start()
    deadline = time.monotonic() + _SPAWN_TIMEOUT
    while (node := state.alive(launch.pid_file)) is None:
        if process.poll() is not None or time.monotonic() > deadline:
            state.forget(launch.pid_file)
            raise NodeError(f"{_name(launch)} could not be started; {logs.ending(launch.log)}")
        time.sleep(_LOOK_EVERY)
    return node


def _environment() -> dict[str, str]:
    """This process's environment, in which the child finds the same package, installed or not."""
    root = Path(__file__).resolve().parents[2]
    paths = [os.environ.get("PYTHONPATH", "")]
    if root.name != "site-packages":  # that one is found anyway, and must not come before the standard library
        paths.insert(0, str(root))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "PYTHONUNBUFFERED": "1"}


def _wait_until_ready(node: Node, file: Path, timeout: float) -> None:
    deadline = time.monotonic() + timeout
    while not health.is_ready(node.url, node.pid):
        if _alive(file) is None:
            lost = _PortLost if logs.tells_of_taken_port(node.log) or not ports.is_free(node.port) else NodeError
            raise lost(f"{_name(node)} ended while it started; {logs.ending(node.log)}")
        if time.monotonic() > deadline:
            raise NodeError(
                f"{_name(node)} at {node.url} did not answer within {timeout:.0f} s and still runs; "
                f"wait for it or stop it; {logs.ending(node.log)}"
            )
        time.sleep(_LOOK_EVERY)


def _name(what: Node | Launch) -> str:
    return f"{what.server} {what.version}"
