"""State of the local servers: PID files, and the locks that show whether a PID file is valid.

The process of a server writes its PID file and holds the lock next to it until it ends. A PID file counts only while
its lock is held: the process id alone could by now belong to another process.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import psutil
from filelock import BaseFileLock, FileLock, Timeout

from es_neardupe import folders
from es_neardupe.errors import NodeError
from es_neardupe.stored_json import StoredJson


@dataclass(frozen=True, slots=True)
class Node:
    """A local server that was started by es-neardupe."""

    server: str
    """``opensearch`` or ``elasticsearch``."""
    version: str
    """The full version, as in ``3.8.0``."""
    url: str
    port: int
    pid: int
    data: Path
    """The folder of its indices, settings and log."""
    log: Path
    started: bool = field(default=False, compare=False, repr=False)
    """Whether the call that returned it has started it."""

    def as_dict(self) -> dict[str, Any]:
        """The fields as JSON types, except ``started``."""
        fields = {**asdict(self), "data": str(self.data), "log": str(self.log)}
        del fields["started"]
        return fields


@dataclass(frozen=True, slots=True)
class Stopped:
    """A server that was stopped."""

    node: Node
    killed: bool
    """Whether it did not close in time and was killed; at the next start it recovers unflushed writes from its
    transaction log."""


@dataclass(frozen=True, slots=True)
class Status:
    """The local servers that run now."""

    running: tuple[Node, ...]
    """Servers that answer."""
    silent: tuple[Node, ...]
    """Servers whose processes run, but whose clusters are not ready: starting, overloaded, or an index is red."""
    cleaned: tuple[Path, ...]
    """PID files without a process, which have been removed."""


@dataclass(frozen=True, slots=True)
class Launch:
    """The parameters of the process of a server."""

    server: str
    version: str
    port: int
    heap: str
    data: Path
    log: Path
    jars: Path
    pid_file: Path

    def to_json(self) -> str:
        return json.dumps(asdict(self), default=str)

    @classmethod
    def from_json(cls, text: str) -> Launch:
        return _LAUNCH.read(json.loads(text))


# They validate the result of json.loads: pydantic's own JSON parser rejects paths that are not valid Unicode.
_LAUNCH: StoredJson[Launch] = StoredJson(Launch)
_NODE: StoredJson[Node] = StoredJson(Node)

_GUARD_TIMEOUT = 60.0
_CLAIM_TIMEOUT = 10.0


def guard() -> AbstractContextManager[None]:
    """The lock of the folder of PID files, held by all that read or change it, except the servers themselves."""
    return hold(folders.run() / "guard", timeout=_GUARD_TIMEOUT, doing="starting or stopping a server")


@contextmanager
def hold(path: Path, *, timeout: float, doing: str) -> Iterator[None]:
    """Hold a lock between processes for a ``with`` block. Raises `NodeError` if it is not free within ``timeout``
    seconds.

    The lock file remains: if it were removed, one process could lock the removed file and another one its successor.
    """
    lock = _acquired(path, timeout)
    if lock is None:
        raise NodeError(f"Another process has been {doing} for {timeout:.0f} s. Try again when it is done.")
    try:
        yield
    finally:
        lock.release()


def _acquired(path: Path, timeout: float) -> BaseFileLock | None:
    """The lock, or None if another process still holds it after ``timeout`` seconds. Other users could keep a lock if
    they could open its file."""
    lock = FileLock(path, mode=0o600)
    try:
        folders.make_private(path.parent)
        lock.acquire(timeout)
    except Timeout:
        return None
    except OSError as error:
        raise NodeError(
            f"The lock {path} cannot be used ({error.strerror or error}). Check its folder and the permissions."
        ) from error
    return lock


def pid_file(slug: str, data: Path) -> Path:
    """The PID file of one release on one data folder."""
    digest = hashlib.sha256(str(data).encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return folders.run() / f"{slug}-{digest}.json"


def file_of(node: Node) -> Path:
    """The PID file of a server."""
    return pid_file(f"{node.server}-{node.version}", node.data)


def has_ended(file: Path, *, within: float = 0.0) -> bool:
    """Whether no process holds the lock of a PID file, or the one that holds it ends ``within`` this many seconds."""
    lock_file = _lock_file(file)
    if not lock_file.exists():
        return True
    lock = _acquired(lock_file, within)
    if lock is None:
        return False
    lock.release()
    return True


def alive(file: Path) -> Node | None:
    """The server of a PID file if its process runs, else None. Call under :func:`guard`."""
    if has_ended(file):
        return None
    try:
        node = _NODE.read(json.loads(file.read_text("utf-8")))
    except (OSError, ValueError):
        return None  # its process is about to write the file, or has just removed it
    return node if _is_process_of(file, node.pid) else None


def _is_process_of(file: Path, pid: int) -> bool:
    """Whether the command line of a process names the PID file.

    If containers share the folder, the lock may be held in another container, where the process id is that of another
    process.
    """
    try:
        return any(file.name in argument for argument in psutil.Process(pid).cmdline())
    except psutil.AccessDenied:
        return True  # another user's process; the lock is enough
    except psutil.NoSuchProcess:
        return False


def scan() -> tuple[tuple[Node, ...], tuple[Path, ...]]:
    """All servers whose processes run, and the PID files of other processes, which are removed. Call under
    :func:`guard`."""
    nodes, stale = [], []
    for file in sorted(folders.run().glob("*.json")):
        node = alive(file)
        if node is not None:
            nodes.append(node)
        elif forget(file):
            stale.append(file)
    return tuple(nodes), tuple(stale)


def forget(file: Path, *, within: float = 0.0) -> bool:
    """Remove a PID file if its process has ended, or ends ``within`` this many seconds; returns whether it has. Call
    under :func:`guard`."""
    ended = has_ended(file, within=within)
    if ended:
        file.unlink(missing_ok=True)
    return ended


@contextmanager
def claim(launch: Launch) -> Iterator[None]:
    """In the process of a server: hold the lock and the PID file for a ``with`` block."""
    file = launch.pid_file
    with hold(_lock_file(file), timeout=_CLAIM_TIMEOUT, doing="running this server"):
        url = f"http://127.0.0.1:{launch.port}"
        node = Node(launch.server, launch.version, url, launch.port, os.getpid(), launch.data, launch.log)
        with folders.replaced(file) as draft:
            draft.write_text(json.dumps(node.as_dict()), "utf-8")
        try:
            yield
        finally:
            file.unlink(missing_ok=True)


def require_folder(path: Path) -> None:
    """Create a private folder and check that it can be written to. Raises `NodeError`."""
    try:
        folders.make_private(path)
        with tempfile.TemporaryFile(dir=path):
            pass
    except OSError as error:
        raise NodeError(
            f"The folder {path} cannot be used ({error.strerror or error}). Choose one that you can write to."
        ) from error


def _lock_file(file: Path) -> Path:
    return file.with_suffix(".lock")
