"""Stop the local servers, and tell which there are."""

from __future__ import annotations

import contextlib
import os
import signal
import sys
import time
from pathlib import Path

from es_neardupe.errors import NodeError
from es_neardupe.node import folders, health, state
from es_neardupe.node.records import Node, Status, Stopped
from es_neardupe.node.versions import means, pick

__all__ = ["running", "status", "stop"]

_LOOK_EVERY = 0.1
_AFTER_KILL = 10.0


def running(server: str | None = None) -> tuple[Node, ...]:
    """The local servers that answer, of one kind or of all."""
    return tuple(node for node in status().running if server in (None, node.server))


def status() -> Status:
    """Which local servers run; PID files whose process is gone are removed."""
    if not folders.run().exists():
        return Status((), (), ())
    with state.guard():
        nodes, cleaned = state.scan()
    ready = tuple(node for node in nodes if health.is_ready(node.url, node.pid))
    return Status(ready, tuple(node for node in nodes if node not in ready), cleaned)


def stop(
    server: str | None = None,
    version: str | None = None,
    *,
    port: int | None = None,
    data: Path | str | None = None,
    timeout: float = 60.0,
) -> tuple[Stopped, ...]:
    """Stop the local servers that were started here: all, or those that fit what is given.

    Each closes by itself; one that has not within ``timeout`` seconds is killed, which the result tells.
    Raises :class:`NodeError` if a process cannot be ended.
    """
    if server is not None:
        server = pick(server, version).server  # refuses what cannot be running
    folder = None if data is None else folders.chosen(data)
    nodes = [
        node
        for node in _all()
        if server in (None, node.server)
        and means(version, node.version)
        and port in (None, node.port)
        and folder in (None, node.data)
    ]
    for node in nodes:  # first ask all, then wait: they close side by side
        _ask(node)
    return tuple(_wait(node, timeout) for node in nodes)


def _all() -> tuple[Node, ...]:
    if not folders.run().exists():
        return ()
    with state.guard():
        return state.scan()[0]


def _ask(node: Node) -> None:
    """Ask a process to close, if it is still ours."""
    file = state.file_of(node)
    with state.guard():
        if state.alive(file) != node:
            return
        if sys.platform == "win32":
            file.with_suffix(".stop").touch()
        else:
            _signal(node, signal.SIGTERM)


def _wait(node: Node, timeout: float) -> Stopped:
    if _ended(node, timeout):
        return Stopped(node, killed=False)
    with state.guard():
        if state.alive(state.file_of(node)) == node:
            _signal(node, getattr(signal, "SIGKILL", signal.SIGTERM))
    if not _ended(node, _AFTER_KILL):
        raise NodeError(f"{node.server} {node.version} (process {node.pid}) could not be ended")
    return Stopped(node, killed=True)


def _ended(node: Node, timeout: float) -> bool:
    deadline = time.monotonic() + timeout
    while _holds(node):
        if time.monotonic() > deadline:
            return False
        time.sleep(_LOOK_EVERY)
    return True


def _holds(node: Node) -> bool:
    """Whether the process still holds its lock: it removes its PID file a moment before it ends."""
    with state.guard():
        return state.is_held(state.file_of(node))


def _signal(node: Node, number: int) -> None:
    try:
        with contextlib.suppress(ProcessLookupError):
            os.kill(node.pid, number)
    except PermissionError as error:
        raise NodeError(f"process {node.pid} belongs to another user; that user must stop it") from error
