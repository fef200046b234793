"""Locks between processes. The operating system releases them when their holder ends, however it ends."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

from es_neardupe.errors import NodeError

__all__ = ["hold", "is_held", "try_lock"]

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


def is_held(path: Path) -> bool:
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
