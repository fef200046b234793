"""Start and stop local servers, and list those that run."""

from __future__ import annotations

import http.client
import json
import os
import re
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

import psutil
from tenacity import Retrying, retry_if_exception_type, stop_after_attempt

from es_neardupe import folders
from es_neardupe.errors import NodeError
from es_neardupe.local_server import download, process, state
from es_neardupe.local_server.state import Launch, Node, Status, Stopped
from es_neardupe.local_server.versions import DEFAULT_SERVER, matches, pick
from es_neardupe.wording import option

_SPAWN_TIMEOUT = 30.0
_EXIT_TIMEOUT = 5.0
"""A process that is ending has no command line any more, and still holds its locks for a moment."""
_AFTER_KILL = 10.0
_LOOK_EVERY = 0.1
_PORTS = 6
"""Ports that are tried if none is given: another process may take the chosen one first."""


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
    """Start a local server and return it when its cluster answers; if it is already running, return it.

    ``data`` is the folder of its indices and log, ``port`` its HTTP port (default: the first free one from 9200 on).
    ``offline`` forbids downloads. ``say`` is called with a message before each slow step.
    Raises `NodeError` if the server cannot be started or does not answer within ``timeout`` seconds.
    """
    release = pick(server, version)
    if not re.fullmatch(r"[1-9][0-9]*[kKmMgG]", heap):
        raise NodeError(f"{heap!r} is not a heap size. Use a size such as 512m or 2g.")
    folder = folders.chosen(data) if data is not None else folders.default_data(release.slug)
    launch = Launch(
        server=release.server,
        version=release.version,
        port=0,  # chosen when no other server can take it
        heap=heap,
        data=folder,
        log=folder / f"{release.server}.log",
        jars=download.folder(release),
        pid_file=state.pid_file(release.slug, folder),
    )
    state.require_folder(folders.run())
    if _alive(launch.pid_file) is None:
        process.require_extra()
        download.ensure(release, offline=offline, say=say)
        say(f"starting {release.server} {release.version}")
    attempts = stop_after_attempt(1 if port is not None else _PORTS)
    for attempt in Retrying(retry=retry_if_exception_type(_PortLost), stop=attempts, reraise=True):
        with attempt:
            node, started = _start_once(launch, port)
            if port not in (None, node.port):
                raise NodeError(f"{_name(node)} is already running at {node.url}. Stop it to change its port.")
            _wait_until_ready(node, launch.pid_file, timeout)
    return replace(node, started=started)


def status() -> Status:
    """The local servers that run; PID files without a process are removed."""
    if not folders.run().exists():
        return Status((), (), ())
    with state.guard():
        nodes, cleaned = state.scan()
    ready = tuple(node for node in nodes if is_ready(node.url, node.pid))
    return Status(ready, tuple(node for node in nodes if node not in ready), cleaned)


def running(server: str | None = None) -> tuple[Node, ...]:
    """The local servers that answer: all, or those of one product."""
    return tuple(node for node in status().running if server in (None, node.server))


def stop(
    server: str | None = None,
    version: str | None = None,
    *,
    port: int | None = None,
    data: Path | str | None = None,
    timeout: float = 60.0,
) -> tuple[Stopped, ...]:
    """Stop the local servers that were started by this program: all, or those that match the arguments.

    Each is asked to close; one that does not within ``timeout`` seconds is killed, which the result shows.
    Raises `NodeError` if a process cannot be stopped.
    """
    if server is not None:
        server = pick(server, version).server  # raises for an unknown server
    folder = None if data is None else folders.chosen(data)
    if not folders.run().exists():
        return ()
    with state.guard():
        nodes = [
            node
            for node in state.scan()[0]
            if server in (None, node.server)
            and matches(version, node.version)
            and port in (None, node.port)
            and folder in (None, node.data)
        ]
    for node in nodes:  # ask all before waiting: they close at the same time
        _end(node)
    return tuple(Stopped(node, killed=_wait_until_ended(node, timeout)) for node in nodes)


class _PortLost(NodeError):
    """Another process has the port of the server."""


def _start_once(launch: Launch, port: int | None) -> tuple[Node, bool]:
    """Start the process, unless it already runs, and whether it was started. The guard prevents others from choosing
    the same port."""
    with state.guard():
        node = state.alive(launch.pid_file)
        if node is not None:
            return node, False
        state.require_folder(launch.data)
        taken = [running.port for running in state.scan()[0]]
        return _spawn(replace(launch, port=choose_port(port, taken))), True


# CREATE_NEW_PROCESS_GROUP and CREATE_NO_WINDOW, defined on Windows only: Ctrl-C here does not reach the server.
_FLAGS = 0x08000200 if sys.platform == "win32" else 0


def _spawn(launch: Launch) -> Node:
    """Start the process and wait for its PID file."""
    rotate(launch.log)
    with launch.log.open("ab") as log:
        started = subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-m", "es_neardupe.local_server.process", launch.to_json()],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=launch.data,
            env=_environment(),
            start_new_session=True,
            creationflags=_FLAGS,
        )
    # Without a thread that waits for it, the ended process would stay a zombie as long as this process runs.
    threading.Thread(target=started.wait, daemon=True).start()
    deadline = time.monotonic() + _SPAWN_TIMEOUT
    while (node := state.alive(launch.pid_file)) is None:
        if started.poll() is not None or time.monotonic() > deadline:
            state.forget(launch.pid_file)
            raise NodeError(f"{_name(launch)} could not be started. {ending(launch.log)}")
        time.sleep(_LOOK_EVERY)
    return node


def _environment() -> dict[str, str]:
    """This process's environment, with this package on the Python path, installed or not."""
    root = Path(__file__).resolve().parents[2]
    paths = [os.environ.get("PYTHONPATH", "")]
    if root.name != "site-packages":  # it is found anyway, and must not come before the standard library
        paths.insert(0, str(root))
    return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, paths)), "PYTHONUNBUFFERED": "1"}


def _wait_until_ready(node: Node, file: Path, timeout: float) -> None:
    deadline = time.monotonic() + timeout
    while (pid := _ready_at(node.url)) != node.pid:
        if pid is not None:  # it took the port while this server, which will exit for that, was still starting
            _wait_until_ended(node, 0)
            raise _PortLost(f"Another server, process {pid}, has taken port {node.port}. Try again.")
        if _alive(file) is None:
            kind = _PortLost if port_was_taken(node.log) or not is_free(node.port) else NodeError
            raise kind(f"{_name(node)} exited during startup. {ending(node.log)}")
        if time.monotonic() > deadline:
            raise NodeError(
                f"{_name(node)} at {node.url} did not answer within {timeout:.0f} s and is still running. "
                f"Wait for it, or stop it. {ending(node.log)}"
            )
        time.sleep(_LOOK_EVERY)


def _alive(file: Path) -> Node | None:
    """The server of a PID file if its process runs; else the file is removed."""
    with state.guard():
        node = state.alive(file)
        if node is None:
            state.forget(file, within=_EXIT_TIMEOUT)
        return node


def _end(node: Node, *, force: bool = False) -> None:
    """Ask the process of a server to close, or kill it, unless it has ended already."""
    file = state.file_of(node)
    with state.guard():
        if state.alive(file) != node:
            return
        try:
            if force:
                psutil.Process(node.pid).kill()
            elif psutil.WINDOWS:  # it has no signal for an orderly end
                file.with_suffix(".stop").touch()
            else:
                psutil.Process(node.pid).terminate()
        except psutil.NoSuchProcess:
            return
        except psutil.AccessDenied as error:
            raise NodeError(f"Process {node.pid} belongs to another user. Ask that user to stop it.") from error


def _wait_until_ended(node: Node, timeout: float) -> bool:
    """Wait until a process ends, and kill it after ``timeout`` seconds; returns whether it was killed. (It removes its
    PID file a moment before it ends.)"""
    file = state.file_of(node)
    if state.has_ended(file, within=timeout):
        return False
    _end(node, force=True)
    if not state.has_ended(file, within=_AFTER_KILL):
        raise NodeError(
            f"{_name(node)} (process {node.pid}) could not be stopped: killing it had no effect. Try again."
        )
    return True


def _name(server: Node | Launch) -> str:
    return f"{server.server} {server.version}"


# A proxy that the environment names must not be used for the loopback interface.
_OPENER = urllib.request.build_opener(urllib.request.ProxyHandler({}))


_WAIT = 1.0
"""Seconds in which a cluster may become ready."""


def is_ready(url: str, pid: int) -> bool:
    """Whether the cluster of this process is yellow or green, or becomes so within `_WAIT` seconds.

    The process id is compared because two servers that start at the same time can choose the same port: only one gets
    it.
    """
    return _ready_at(url) == pid


def _ready_at(url: str) -> int | None:
    """The id of the process at a URL, if its cluster is ready; else None. See `is_ready`."""
    health = f"{url}/_cluster/health?wait_for_status=yellow&timeout={int(_WAIT * 1000)}ms"
    try:
        with _OPENER.open(health, timeout=_WAIT + 2) as answer:
            return _pid_at(url) if answer.status == 200 else None
    except (OSError, http.client.HTTPException, ValueError, LookupError):
        return None


def _pid_at(url: str) -> int:
    """The id of the process that answers at a URL."""
    with _OPENER.open(f"{url}/_nodes/_local/process?filter_path=nodes.*.process.id", timeout=10) as answer:
        (node,) = json.load(answer)["nodes"].values()
    return int(node["process"]["id"])


HOST = "127.0.0.1"
FIRST_PORT = 9200
LAST_PORT = 9299


def choose_port(port: int | None = None, taken: Collection[int] = ()) -> int:
    """The given port, or the first free one from 9200 on that is not ``taken`` by a server that is still starting.

    Raises `NodeError` if the given port, or every port up to 9299, is in use.
    """
    if port is not None:
        if not 1 <= port <= 65535:
            raise NodeError(f"{port} is not a port number. Use 1 to 65535.")
        if port in taken or not is_free(port):
            raise NodeError(f"Port {port} is in use. Choose another port, or omit {option('port')}.")
        return port
    for candidate in range(FIRST_PORT, LAST_PORT + 1):
        if candidate not in taken and is_free(candidate):
            return candidate
    raise NodeError(f"All ports from {FIRST_PORT} to {LAST_PORT} are in use. Choose another with {option('port')}.")


def is_free(port: int) -> bool:
    """Whether nothing listens on this port of the loopback interface and it can be bound."""
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as caller:
        caller.settimeout(1)
        if caller.connect_ex((HOST, port)) == 0:
            return False
    with socket.socket(socket.AF_INET, socket.SOCK_STREAM) as listener:
        if os.name == "posix":
            # As the servers do, so that connections of the last run in TIME_WAIT do not matter.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            listener.bind((HOST, port))
        except OSError:
            return False
    return True


_LINES = 12
_LAST_BYTES = 64 * 1024
_FRAME = ("\tat ", "\t... ")
_TAKEN = ("Address already in use", "BindHttpException")


def rotate(log: Path) -> None:
    """Rename the log of the last run to NAME.log.old."""
    if log.exists():
        log.replace(log.with_name(log.name + ".old"))


def ending(log: Path) -> str:
    """The last lines of a log for an error message, without stack frames: the reason is above them."""
    lines = [line for line in _last(log).splitlines() if line.strip() and not line.startswith(_FRAME)]
    if not lines:
        return f"Its log {log} is empty."
    return "\n".join([f"The last lines of {log}:", *(f"  {line}" for line in lines[-_LINES:])])


def port_was_taken(log: Path) -> bool:
    """Whether the server logged that its port was in use; it may be free again by now."""
    return any(words in _last(log) for words in _TAKEN)


def _last(log: Path) -> str:
    try:
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _LAST_BYTES))
            return file.read().decode("utf-8", "replace")
    except OSError:
        return ""
