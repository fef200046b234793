"""Real servers for the tests, one of each kind per session; a new index for each test, deleted after it."""

from __future__ import annotations

import contextlib
import functools
import json
import lzma
import os
import shutil
import signal
import sys
import sysconfig
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer.main
from clusters import cluster
from containers import container
from fault_proxy import FaultProxy
from hypothesis import HealthCheck, settings
from jvm_tools import compile_quickly
from secured import Secured, secured
from secured_opensearch import secured_opensearch
from secured_users import ROLES, USERS, opensearch_users
from server_tools import delete_all, new_name, required, runs_painless

from es_neardupe.cli.app import main
from es_neardupe.keys import hashing
from es_neardupe.local_server import control, versions
from es_neardupe.server.client import Client, path
from es_neardupe.server.connect import connect
from es_neardupe.server.login.settings import ConnectionSettings
from es_neardupe.similarity import batch

DEFAULT_SERVERS = "elasticsearch-9.5,opensearch-3.8"
OLDER_SERVERS = "elasticsearch-8.19,opensearch-2.19"
SECURED = {"secured_server", "secured_opensearch_server"}
"""The fixtures of servers with security."""

START_SERVERS = ("test_node.py", "test_clusters.py", "test_copied_indices.py", "test_frozen.py", "test_small_heap.py")
"""Tests that start servers of their own, besides those with an ``own_node``."""

DATA = Path(__file__).parents[2] / "shared" / "data"

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts its background jobs like this, and every program that the tests stop by SIGINT would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
compile_quickly()
typer.main.get_command = functools.lru_cache(typer.main.get_command)  # otherwise created again for each command

for _profile, _examples in (("default", 40), ("thorough", 1000)):
    settings.register_profile(
        _profile, deadline=None, max_examples=_examples, suppress_health_check=[HealthCheck.too_slow]
    )
settings.load_profile("default")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--servers",
        default=DEFAULT_SERVERS,
        help=f"servers for the tests, as KIND-VERSION,... (besides these {OLDER_SERVERS})",
    )
    parser.addoption("--smoke", default=OLDER_SERVERS, help="servers for the smoke set")
    parser.addoption(
        "--spread",
        action="store_true",
        help="the tests of one server in all processes; a node for each, if none is given",
    )
    parser.addoption(
        "--soak-seconds", type=int, help="how long the soak goes on, on each server; 24 steps if not given"
    )
    parser.addoption("--soak-seed", type=int, default=1, help="what the soak draws everything from")
    parser.addoption("--record", action="store_true", help="write the golden files of the commands anew")
    parser.addoption("--docker", action="store_true", help="start the servers as containers, if an engine answers")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "server_url" in metafunc.fixturenames:
        option = "--smoke" if metafunc.definition.get_closest_marker("smoke") else "--servers"
        names = metafunc.config.getoption(option).split(",")
        metafunc.parametrize("server_url", names, indirect=True, scope="session")


@pytest.hookimpl(tryfirst=True)  # before the tests are grouped
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the tests that need a server, and run them first: the tests of one server stay in one process of several. A
    test that is ``mainly_on`` one product is long on the other, unless the tests of each server are spread, or their
    golden files written."""
    for item in items:
        fixtures = {*getattr(item, "fixturenames", ())}
        every = item.config.getoption("--spread") or item.config.getoption("--record")
        mainly_on = None if every else item.get_closest_marker("mainly_on")
        if mainly_on and "server_url" in fixtures and not _server(item).startswith(mainly_on.args):
            item.add_marker(pytest.mark.long)
        if {"server_url", *SECURED} & fixtures:
            item.add_marker(pytest.mark.server)
        if item.get_closest_marker("long") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(3600))  # minutes, and more on a busy machine
        if group := _group(item):
            item.add_marker(pytest.mark.xdist_group(group))
        if group in ("nodes", *SECURED):
            item.add_marker(pytest.mark.nodes)
    items.sort(key=lambda item: not _group(item))


def _server(item: pytest.Item) -> str:
    """Kind and version of the server that a test is for."""
    return str(item.callspec.params["server_url"])  # type: ignore[attr-defined]


def _group(item: pytest.Item) -> str | None:
    """The server of a test; tests that start servers of their own run one after the other."""
    if "server_url" in getattr(item, "fixturenames", ()):
        server = _server(item)
        return f"{server} {item.path.name}" if item.config.getoption("--spread") else server
    for name in SECURED & set(getattr(item, "fixturenames", ())):
        return name
    return "nodes" if item.path.name in START_SERVERS or "own_node" in getattr(item, "fixturenames", ()) else None


@pytest.fixture(scope="session")
def server_url(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """The address of a real server: ES_NEARDUPE_TEST_URL (KIND-VERSION=URL,...), a running local node, or a new one."""
    name: str = request.param
    given = dict(pair.split("=", 1) for pair in os.environ.get("ES_NEARDUPE_TEST_URL", "").split(",") if pair)
    if name in given:
        yield given[name]
        return
    kind, _, version = name.partition("-")
    if request.config.getoption("--docker"):
        with container(kind, version) as url:
            yield url
        return
    release = versions.pick(kind, version)
    running = [one for one in control.running(kind) if one.version == release.version]
    if running and not request.config.getoption("--spread"):
        yield running[0].url
        return
    data = tmp_path_factory.mktemp(name)
    with required():
        started = control.start(kind, version, data=data, heap="512m")
    yield started.url
    (stopped,) = control.stop(kind, version, data=data)
    assert not stopped.killed
    assert started.log.read_text("utf-8").rstrip().endswith("closed")


@pytest.fixture(scope="session")
def secured_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A real Elasticsearch with security, whose users and roles are those of `secured_users`."""
    with required(), secured(tmp_path_factory.mktemp("secured"), USERS, ROLES) as started:
        yield started


@pytest.fixture(scope="session")
def secured_opensearch_server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Secured]:
    """A real OpenSearch with security."""
    users, roles = opensearch_users()
    with required(), secured_opensearch(tmp_path_factory.mktemp("secured"), users, roles) as started:
        yield started


@pytest.fixture(scope="session")
def node_with_repository(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Callable[[versions.Release], Client]]:
    """A connection to a node of its own, one for each release, with the repository ``kept`` of snapshots; an OpenSearch
    also searches frozen indices."""

    @functools.cache
    def started(release: versions.Release) -> Client:
        home, repository = tmp_path_factory.mktemp("kept"), tmp_path_factory.mktemp("repository")
        more: dict[str, str | tuple[str, ...]] = {"path.repo": str(repository)}
        if release.server == "opensearch":
            search = "search" if release.version.startswith("2.") else "warm"
            more |= {"node.roles": ("cluster_manager", "data", "ingest", search), "node.search.cache.size": "64mb"}
        found = nodes.enter_context(cluster(release, home, size=1, more=more))
        client = nodes.enter_context(found.client(0))
        place = {"type": "fs", "settings": {"location": str(repository)}}
        client.request("PUT", path("_snapshot", "kept"), body=place)
        return client

    with contextlib.ExitStack() as nodes:
        yield started


@pytest.fixture(scope="session")
def built_kernel() -> None:
    """Require the inner loops in C; without a compiler the test is skipped."""
    if None in (hashing.kernel, batch.kernel):
        headers = Path(sysconfig.get_path("include"), "Python.h")
        assert not (shutil.which("gcc") and headers.exists()), "gcc is here, but a kernel was not built"
        pytest.skip("the package was installed without a compiler")


@pytest.fixture(params=["native", "numpy"], scope="module")
def inner_loops(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run the tests of a module with the inner loops in C, and again with numpy's."""
    if request.param == "native":
        request.getfixturevalue("built_kernel")
        yield
        return
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(hashing, "kernel", None)
        patched.setattr(batch, "kernel", None)
        yield


@pytest.fixture(scope="session")
def client(server_url: str) -> Iterator[Client]:
    """A connection to the real server."""
    opened = connect(ConnectionSettings(url=server_url))
    yield opened
    opened.close()


@pytest.fixture
def painless(client: Client) -> Client:
    """The same, to a server with scripts; without them, the test is skipped."""
    if not runs_painless(client):
        pytest.skip("this server runs no Painless scripts")
    return client


@pytest.fixture
def index_name(client: Client) -> Iterator[str]:
    """The name of an index that does not exist yet; all indices with this name are deleted after the test."""
    name = new_name()
    yield name
    delete_all(client, name)


@pytest.fixture
def proxy(server_url: str) -> Iterator[FaultProxy]:
    """A proxy in front of the real server, without faults at first."""
    opened = FaultProxy(server_url)
    yield opened
    opened.close()


@dataclass(frozen=True)
class Run:
    """Output and exit code of a command."""

    code: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        """The one JSON object on stdout."""
        return json.loads(self.out)

    @property
    def lines(self) -> list[Any]:
        """The JSON lines on stdout."""
        return [json.loads(line) for line in self.out.splitlines()]


Cli = Callable[..., Run]


@pytest.fixture
def cli(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> Cli:
    """Runs ``es-neardupe`` with these arguments, in this process."""

    def run(*arguments: str) -> Run:
        monkeypatch.setattr(sys, "argv", ["es-neardupe", *arguments])
        capsys.readouterr()
        code = 0
        try:
            main()
        except SystemExit as stop:
            code = stop.code if isinstance(stop.code, int) else int(stop.code is not None)
        printed = capsys.readouterr()
        return Run(code, printed.out, printed.err)

    return run


@pytest.fixture
def server_cli(cli: Cli, server_url: str, monkeypatch: pytest.MonkeyPatch) -> Cli:
    """The same, with the real server named in the environment."""
    monkeypatch.setenv("ES_NEARDUPE_URL", server_url)
    return cli


def read_data(name: str) -> Path:
    """A file of the shared test data; the test is skipped if it does not exist."""
    file = DATA / name
    if not file.exists():
        pytest.skip(f"the test data are not here: {file}")
    return file


def read_jsonl(name: str) -> list[dict[str, Any]]:
    """The documents of a packed JSON lines file of the shared test data."""
    with lzma.open(read_data(name), "rt", encoding="utf-8") as lines:
        return [json.loads(line) for line in lines]


def read_truth(name: str) -> dict[tuple[str, str], float]:
    """The similar pairs of shared test data, computed independently, with their resemblance."""
    lines = (line.split("\t") for line in read_data(name).read_text("utf-8").splitlines() if line[0] != "#")
    return {(min(a, b), max(a, b)): float(value) for a, b, value in lines}
