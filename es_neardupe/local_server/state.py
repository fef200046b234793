"""PID files: which local servers live.

A server's own process writes its PID file and holds the lock beside it until it ends. Only while that
lock is held does the file count: a number alone could by now belong to somebody else's process.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import IO, Any

from es_neardupe import folders
from es_neardupe.errors import NodeError

__all__ = [
    "Launch",
    "Node",
    "Status",
    "Stopped",
    "alive",
    "claim",
    "file_of",
    "forget",
    "guard",
    "hold",
    "is_held",
    "is_locked",
    "pid_file",
    "require_folder",
    "scan",
    "try_lock",
]


_PAUSE = 0.05

if sys.platform == "win32":
    import msvcrt

    def _take(file: IO[bytes]) -> None:
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)

else:
    import fcntl

    def _take(file: IO[bytes]) -> None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)


def try_lock(path: Path) -> IO[bytes] | None:
    """Lock a file (made if missing) without waiting: the open file that holds the lock, or None.

    Closing the file releases the lock. The file itself stays: were it removed, one process could lock
    the removed file and another one its successor.
    """
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
        file = path.open("ab")
    except OSError as error:
        raise NodeError(f"the lock {path} cannot be used: {error.strerror or error}") from error
    try:
        _take(file)
    except OSError:
        file.close()
        return None
    return file


def is_locked(path: Path) -> bool:
    """Whether some process holds the lock. Ask under another lock: this one is taken to find out."""
    if not path.exists():
        return False
    file = try_lock(path)
    if file is None:
        return True
    file.close()
    return False


@contextmanager
def hold(path: Path, *, timeout: float, doing: str) -> Iterator[None]:
    """Hold the lock for a ``with`` block; wait for it at most ``timeout`` seconds, else NodeError."""
    deadline = time.monotonic() + timeout
    while (file := try_lock(path)) is None:
        if time.monotonic() > deadline:
            raise NodeError(f"another process has been {doing} for {timeout:.0f} s; try again when it is done")
        time.sleep(_PAUSE)
    try:
        yield
    finally:
        file.close()


@dataclass(frozen=True, slots=True)
class Node:
    """A local server that was started here."""

    server: str
    """``opensearch`` or ``elasticsearch``."""
    version: str
    """The full version, as in ``3.8.0``."""
    url: str
    port: int
    pid: int
    data: Path
    """The folder that holds its indices, settings and log."""
    log: Path

    def as_dict(self) -> dict[str, Any]:
        """The same in types that JSON knows."""
        return {**asdict(self), "data": str(self.data), "log": str(self.log)}


@dataclass(frozen=True, slots=True)
class Stopped:
    """A server that was stopped."""

    node: Node
    killed: bool
    """It did not close in time and was ended by force; what it had not yet flushed it reads from its
    transaction log at the next start."""


@dataclass(frozen=True, slots=True)
class Status:
    """What is there now."""

    running: tuple[Node, ...]
    """They answer."""
    silent: tuple[Node, ...]
    """Their processes live, but their clusters are not ready: starting, overloaded, or an index is red."""
    cleaned: tuple[Path, ...]
    """PID files whose process was gone; they have been removed."""


@dataclass(frozen=True, slots=True)
class Launch:
    """Everything that the server's own process must know."""

    server: str
    version: str
    port: int
    heap: str
    data: Path
    log: Path
    jars: Path
    pid_file: Path

    def to_json(self) -> str:
        return json.dumps({name: str(value) for name, value in asdict(self).items()})

    @classmethod
    def from_json(cls, text: str) -> Launch:
        said = json.loads(text)
        paths = {name: Path(said[name]) for name in ("data", "log", "jars", "pid_file")}
        return cls(**{**said, **paths, "port": int(said["port"])})


_GUARD_TIMEOUT = 60.0
_CLAIM_TIMEOUT = 10.0


def guard() -> AbstractContextManager[None]:
    """Held by whoever reads or changes what is in the folder of PID files (but not by the servers)."""
    return hold(folders.run() / "guard", timeout=_GUARD_TIMEOUT, doing="starting or stopping a server")


def pid_file(slug: str, data: Path) -> Path:
    """The PID file of one release on one data folder."""
    where = hashlib.sha256(str(data).encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return folders.run() / f"{slug}-{where}.json"


def file_of(node: Node) -> Path:
    """The PID file of a server that was started here."""
    return pid_file(f"{node.server}-{node.version}", node.data)


def is_held(file: Path) -> bool:
    """Whether a process holds the lock of a PID file: it starts, runs or closes. Ask under :func:`guard`."""
    return is_locked(_lock(file))


def alive(file: Path) -> Node | None:
    """The server of a PID file if its process lives, else None. Ask under :func:`guard`."""
    if not is_held(file):
        return None
    try:
        said = json.loads(file.read_text("utf-8"))
        born = said.pop("born")
        node = Node(**{**said, "data": Path(said["data"]), "log": Path(said["log"])})
    except (OSError, ValueError, TypeError, KeyError, AttributeError):
        return None  # its process is about to write the file, or has just removed it
    return node if _born(node.pid) == born else None


def scan() -> tuple[tuple[Node, ...], tuple[Path, ...]]:
    """All servers that live, and the PID files that were removed because theirs does not. Ask under guard."""
    nodes, stale = [], []
    for file in sorted(folders.run().glob("*.json")):
        node = alive(file)
        if node is not None:
            nodes.append(node)
        elif not is_held(file):
            file.unlink(missing_ok=True)
            stale.append(file)
    return tuple(nodes), tuple(stale)


def forget(file: Path) -> None:
    """Remove the PID file of a process that is gone. Call under guard."""
    if not is_held(file):
        file.unlink(missing_ok=True)


@contextmanager
def claim(launch: Launch) -> Iterator[None]:
    """In the server's process: hold the lock and the PID file for a ``with`` block."""
    file = launch.pid_file
    with hold(_lock(file), timeout=_CLAIM_TIMEOUT, doing="running this server"):
        _write(file, launch)
        try:
            yield
        finally:
            file.unlink(missing_ok=True)


def require_folder(path: Path) -> None:
    """Make a folder and see that it can be written to, else NodeError."""
    try:
        path.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryFile(dir=path):  # of a name that no process beside this one takes
            pass
    except OSError as error:
        raise NodeError(f"the folder {path} cannot be used: {error.strerror or error}") from error


def _write(file: Path, launch: Launch) -> None:
    pid = os.getpid()
    url = f"http://127.0.0.1:{launch.port}"
    node = Node(launch.server, launch.version, url, launch.port, pid, launch.data, launch.log)
    with folders.replaced(file) as draft:
        draft.write_text(json.dumps({**node.as_dict(), "born": _born(pid)}), "utf-8")


def _lock(file: Path) -> Path:
    return file.with_suffix(".lock")


def _born(pid: int) -> str:
    """When a process began, in Linux's own words; "" where there is no /proc, or no such process.

    The lock is the proof that holds everywhere. This one also tells apart equal PIDs of two containers
    that share the folder.
    """
    try:
        stat = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace")
    except OSError:
        return ""
    return stat.rpartition(")")[2].split()[19]
