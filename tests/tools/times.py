"""Where the time of the tests goes, as a plugin: ``scripts/test -p times``.

At the end it prints the seconds of each test file, of each fixture, and of each kind of waiting: starting servers,
requests, processes. They are those of all test processes together; the CPU seconds are those of the tests and of the
processes that they have waited for, without the servers.
"""

from __future__ import annotations

import contextlib
import resource
import subprocess
import time
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator
from typing import Any

import pytest
import urllib3

from es_neardupe.local_server import control

Table = dict[str, list[float]]
"""What is measured -> seconds, CPU seconds, how often."""

FILES: Table = defaultdict(lambda: [0.0, 0.0, 0])
FIXTURES: Table = defaultdict(lambda: [0.0, 0.0, 0])
KINDS: Table = defaultdict(lambda: [0.0, 0.0, 0])
TITLES = {"files": FILES, "fixtures": FIXTURES, "kinds": KINDS}
_ROWS = 45


def _cpu() -> float:
    used = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(one.ru_utime + one.ru_stime for one in used)


@contextlib.contextmanager
def _counted(table: Table, name: str) -> Iterator[None]:
    seconds, cpu = time.perf_counter(), _cpu()
    try:
        yield
    finally:
        entry = table[name]
        entry[0] += time.perf_counter() - seconds
        entry[1] += _cpu() - cpu
        entry[2] += 1


def _count(owner: Any, name: str, kind: Callable[..., str]) -> None:
    """Count the calls of a function as a kind."""
    called = getattr(owner, name)

    def counted(*arguments: Any, **named: Any) -> Any:
        with _counted(KINDS, kind(*arguments, **named)):
            return called(*arguments, **named)

    setattr(owner, name, counted)


def _request(_pool: object, method: str, url: str, *_: object, **__: object) -> str:
    if "_refresh" in url or "_cluster/health" in url:
        return "requests that wait for a refresh or for health"
    return "requests that create or delete" if method in ("PUT", "DELETE") else "other requests"


def pytest_configure() -> None:
    _count(control, "start", lambda *_, **__: "start of servers")
    _count(control, "stop", lambda *_, **__: "stop of servers")
    _count(subprocess.Popen, "wait", lambda *_, **__: "processes")
    _count(subprocess.Popen, "communicate", lambda *_, **__: "processes")
    _count(urllib3.HTTPConnectionPool, "urlopen", _request)


@pytest.hookimpl(wrapper=True)
def pytest_fixture_setup(fixturedef: Any) -> Generator[None, Any, Any]:
    with _counted(FIXTURES, fixturedef.argname):
        return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, Any, Any]:
    with _counted(FILES, item.location[0]):
        return (yield)


def pytest_sessionfinish(session: pytest.Session) -> None:
    if hasattr(session.config, "workeroutput"):
        session.config.workeroutput["times"] = {title: dict(table) for title, table in TITLES.items()}


@pytest.hookimpl(optionalhook=True)
def pytest_testnodedown(node: Any) -> None:
    for title, table in getattr(node, "workeroutput", {}).get("times", {}).items():
        for name, numbers in table.items():
            TITLES[title][name] = [a + b for a, b in zip(TITLES[title][name], numbers, strict=True)]


def pytest_terminal_summary(terminalreporter: Any) -> None:
    for title, table in TITLES.items():
        terminalreporter.section(f"{sum(one[0] for one in table.values()):.0f} s by {title}")
        for name, (seconds, cpu, calls) in sorted(table.items(), key=lambda one: -one[1][0])[:_ROWS]:
            terminalreporter.write_line(f"{seconds:8.1f} s {cpu:8.1f} s CPU {calls:6.0f} x  {name}")
