"""Stop the local servers, and tell which there are."""

from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import signal
import socket
import subprocess
import sys
import threading
import time
import urllib.error
import urllib.request
from collections.abc import Callable, Collection
from dataclasses import replace
from pathlib import Path

from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

from es_neardupe import folders
from es_neardupe.errors import NodeError
from es_neardupe.local_server import download, java, state
from es_neardupe.local_server.state import Launch, Node, Status, Stopped
from es_neardupe.local_server.versions import DEFAULT_SERVER, Release, means, pick

__all__ = [
    "choose",
    "ending",
    "is_free",
    "is_ready",
    "rotate",
    "running",
    "start",
    "status",
    "stop",
    "tells_of_taken_port",
]


# A proxy of the environment has no business between this process and the loopback interface.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


def is_ready(url: str, pid: int, *, wait: float = 1.0) -> bool:
    """Whether the cluster of this process is yellow or green, or becomes so within ``wait`` seconds.

    Two servers that start at the same time can choose the same port. Only one gets it, and must not be taken for
    the other.
    """
    question = f"{url}/_cluster/health?wait_for_status=yellow&timeout={int(wait * 1000)}ms"
    try:
        with _OPENER.open(question, timeout=wait + 2) as answer:
            return bool(answer.status == 200) and _answers(url) == pid
    except (OSError, http.client.HTTPException, ValueError, LookupError):
        return False


def _answers(url: str) -> int:
    """The number of the process that answers."""
    with _OPENER.open(f"{url}/_nodes/_local/process?filter_path=nodes.*.process.id", timeout=10) as answer:
        (node,) = json.load(answer)["nodes"].values()
    return int(node["process"]["id"])


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
    ready = tuple(node for node in nodes if is_ready(node.url, node.pid))
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


_LINES = 12
_LAST_BYTES = 64 * 1024
_FRAME = ("\tat ", "\t... ")
_TAKEN = ("Address already in use", "BindHttpException")


def rotate(log: Path) -> None:
    """Put the log of the last run aside, as NAME.log.old."""
    if log.exists():
        log.replace(log.with_name(log.name + ".old"))


def ending(log: Path) -> str:
    """The end of a log in words, for an error message; without stack frames: the reason stands above them."""
    lines = [line for line in _last(log).splitlines() if line.strip() and not line.startswith(_FRAME)]
    if not lines:
        return f"its log {log} is empty"
    return "\n".join([f"the last lines of {log}:", *(f"  {line}" for line in lines[-_LINES:])])


def tells_of_taken_port(log: Path) -> bool:
    """Whether the server says that it could not have its port; who took it may have left it again since."""
    return any(words in _last(log) for words in _TAKEN)


def _last(log: Path) -> str:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _LAST_BYTES))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""


HOST = "127.0.0.1"
FIRST = 9200
LAST = 9299


def choose(wanted: int | None = None, taken: Collection[int] = ()) -> int:
    """The wanted port, or the first free one from 9200 on that is not ``taken`` by a server still starting.

    Raises :class:`NodeError` if the wanted port, or every port up to 9299, is busy.
    """
    if wanted is not None:
        if not 1 <= wanted <= 65535:
            raise NodeError(f"{wanted} is not a port; ports are 1 to 65535")
        if wanted in taken or not is_free(wanted):
            raise NodeError(f"port {wanted} is in use; choose another one, or leave --port out")
        return wanted
    for port in range(FIRST, LAST + 1):
        if port not in taken and is_free(port):
            return port
    raise NodeError(f"all ports from {FIRST} to {LAST} are in use; choose one with --port")


def is_free(port: int) -> bool:
    """Whether nobody listens on this port of the loopback interface and it can be bound."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as caller:
        caller.settimeout(1)
        if caller.connect_ex((HOST, port)) == 0:
            return False
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        if os.name == "posix":
            # As the servers do: connections of the last run that linger in TIME_WAIT are no obstacle.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
        except OSError:
            return False
    return True


_SPAWN_TIMEOUT = 30.0
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
        java.require_extra()
        download.ensure(release, offline=offline, say=say)
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
    return Launch(release.server, release.version, 0, heap, data, log, download.folder(release), file)


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
        chosen = choose(port, taken)
        return _spawn(replace(launch, port=chosen))


def _spawn(launch: Launch) -> Node:
    """Start the process and wait until its PID file is there."""
    rotate(launch.log)
    with launch.log.open("ab") as log:
        process = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-m", "es_neardupe.local_server.process", launch.to_json()],
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
            raise NodeError(f"{_name(launch)} could not be started; {ending(launch.log)}")
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
    while not is_ready(node.url, node.pid):
        if _alive(file) is None:
            lost = _PortLost if tells_of_taken_port(node.log) or not is_free(node.port) else NodeError
            raise lost(f"{_name(node)} ended while it started; {ending(node.log)}")
        if time.monotonic() > deadline:
            raise NodeError(
                f"{_name(node)} at {node.url} did not answer within {timeout:.0f} s and still runs; "
                f"wait for it or stop it; {ending(node.log)}"
            )
        time.sleep(_LOOK_EVERY)


def _name(what: Node | Launch) -> str:
    return f"{what.server} {what.version}"
