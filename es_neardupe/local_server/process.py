"""The process of one local server: ``python -m es_neardupe.local_server.process LAUNCH`` (JSON).

It runs until SIGTERM or SIGINT, or until a file with the ending ``.stop`` appears beside its PID file
(for systems without signals), then closes the server cleanly.
"""

from __future__ import annotations

import os
import signal
import sys
import threading
import traceback
from collections.abc import Callable
from pathlib import Path

from es_neardupe.local_server import elasticsearch, java, opensearch, state
from es_neardupe.local_server.state import Launch

__all__ = ["main"]

_LOOK_EVERY = 0.25


def main(text: str) -> int:
    """Run the server that a launch in JSON describes until it is stopped; returns the exit code."""
    launch = Launch.from_json(text)
    with state.claim(launch):
        return _serve(launch)


def _serve(launch: Launch) -> int:
    stop_file = launch.pid_file.with_suffix(".stop")
    stop_file.unlink(missing_ok=True)
    asked = threading.Event()
    java.start(launch.heap, _classpath(launch))
    # After the start of the virtual machine, which would put its own handlers in their place.
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: asked.set())
    close = _server(launch)(launch)
    while not asked.wait(_LOOK_EVERY) and not stop_file.exists():
        pass
    print("closing", flush=True)
    close()
    print("closed", flush=True)
    return 0


def _classpath(launch: Launch) -> list[Path]:
    jars = sorted(launch.jars.glob("*.jar"))
    if launch.server == "elasticsearch":
        return [jar for jar in jars if not elasticsearch.is_module_jar(jar.name)]
    return jars


def _server(launch: Launch) -> Callable[[Launch], Callable[[], None]]:
    return {"elasticsearch": elasticsearch.start, "opensearch": opensearch.start}[launch.server]


def _run() -> int:
    try:
        return main(sys.argv[1])
    except BaseException as error:  # noqa: BLE001 - the log is the only place where it can be told
        _tell(error)
        return 1


def _tell(error: BaseException) -> None:
    """Write an error into the log; one from Java with Java's causes, which Python's traceback lacks."""
    of_java = getattr(error, "stacktrace", None)
    if of_java is None:
        traceback.print_exception(error)
    else:
        print(of_java(), file=sys.stderr)


if __name__ == "__main__":
    code = _run()
    sys.stdout.flush()
    sys.stderr.flush()
    # Threads of the virtual machine that are still around must not keep a closed server's process alive.
    os._exit(code)
