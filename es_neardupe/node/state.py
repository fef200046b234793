"""PID files: which local servers live.

A server's own process writes its PID file and holds the lock beside it until it ends. Only while that
lock is held does the file count: a number alone could by now belong to somebody else's process.
"""

from __future__ import annotations

import hashlib
import json
import os
import tempfile
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

from es_neardupe.errors import NodeError
from es_neardupe.node import folders, locks
from es_neardupe.node.records import Launch, Node

__all__ = ["alive", "claim", "file_of", "forget", "guard", "is_held", "pid_file", "require_folder", "scan"]

_GUARD_TIMEOUT = 60.0
_CLAIM_TIMEOUT = 10.0


def guard() -> AbstractContextManager[None]:
    """Held by whoever reads or changes what is in the folder of PID files (but not by the servers)."""
    return locks.hold(folders.run() / "guard", timeout=_GUARD_TIMEOUT, doing="starting or stopping a server")


def pid_file(slug: str, data: Path) -> Path:
    """The PID file of one release on one data folder."""
    where = hashlib.sha256(str(data).encode("utf-8", "surrogateescape")).hexdigest()[:8]
    return folders.run() / f"{slug}-{where}.json"


def file_of(node: Node) -> Path:
    """The PID file of a server that was started here."""
    return pid_file(f"{node.server}-{node.version}", node.data)


def is_held(file: Path) -> bool:
    """Whether a process holds the lock of a PID file: it starts, runs or closes. Ask under :func:`guard`."""
    return locks.is_held(_lock(file))


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
    with locks.hold(_lock(file), timeout=_CLAIM_TIMEOUT, doing="running this server"):
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
    draft = file.with_suffix(".new")
    draft.write_text(json.dumps({**node.as_dict(), "born": _born(pid)}), "utf-8")
    draft.replace(file)


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
