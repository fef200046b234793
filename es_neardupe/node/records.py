"""The frozen records of this package. They hold data and no behaviour worth a test."""

from __future__ import annotations

import json
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

__all__ = ["Launch", "Node", "Status", "Stopped"]


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
