"""Real servers for the tests, one of each kind for a whole run; a new index for each test, deleted after it."""

from __future__ import annotations

import contextlib
import functools
import gc
import importlib
import json
import lzma
import os
import shutil
import signal
import sys
import sysconfig
import tempfile
import zlib
from collections import defaultdict
from collections.abc import Callable, Generator, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
import typer.main
from clusters import cluster
from drivers import TESTED_DRIVER
from elasticsearch import Elasticsearch
from fault_proxy import FaultProxy
from hypothesis import HealthCheck, settings
from jvm_tools import start_quickly
from lanes import WIDTHS, lanes
from opensearchpy import OpenSearch
from secured import Secured, secured
from secured_opensearch import secured_opensearch
from secured_users import ROLES, USERS, opensearch_users
from server_tools import delete_all, new_name, required, runs_painless
from shared_servers import SharedServers, in_containers

from es_neardupe.cli.app import main
from es_neardupe.groups import stars
from es_neardupe.incoming import nearest
from es_neardupe.keys import hashing
from es_neardupe.keys.prepare import masks
from es_neardupe.local_server import versions
from es_neardupe.server.client import Client, path
from es_neardupe.server.connect import connect, wrap
from es_neardupe.server.login.settings import ConnectionSettings
from es_neardupe.similarity import batch

DEFAULT_SERVERS = "elasticsearch-9.5,opensearch-3.8"
OLDER_SERVERS = "elasticsearch-8.19,opensearch-2.19"
SECURED = {"secured_server", "secured_opensearch_server"}
"""The fixtures of servers with security."""

START_SERVERS = ("test_node.py", "test_clusters.py", "test_copied_indices.py", "test_frozen.py", "test_small_heap.py")
"""Tests that start servers of their own, besides those with an ``own_node``."""

SERVERS = pytest.StashKey[SharedServers]()

DATA = Path(__file__).parents[2] / "shared" / "data"

if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:
    # A shell starts its background jobs like this, and every program that the tests stop by SIGINT would inherit it.
    signal.signal(signal.SIGINT, signal.default_int_handler)
start_quickly()
typer.main.get_command = functools.lru_cache(typer.main.get_command)  # otherwise created again for each command

PROFILES = {"quick": 10, "ci": 40, "long": 1000}
"""Number of examples of a property test. In `long`, they differ from run to run; pytest prints the seed."""

for _profile, _examples in PROFILES.items():
    settings.register_profile(
        _profile,
        deadline=None,
        max_examples=_examples,
        derandomize=_profile != "long",
        print_blob=True,
        suppress_health_check=[HealthCheck.too_slow],
    )
settings.load_profile("ci")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--servers",
        default=DEFAULT_SERVERS,
        help=f"servers for the tests, as KIND-VERSION,... (besides these {OLDER_SERVERS})",
    )
    parser.addoption("--smoke", default=OLDER_SERVERS, help="servers for the smoke set")
    parser.addoption(
        "--soak-seconds", type=int, help="how long the soak goes on, on each server; 24 steps if not given"
    )
    parser.addoption("--soak-seed", type=int, default=1, help="what the soak draws everything from")
    parser.addoption("--histories-seed", type=int, default=1000, help="seed of the first round of histories")
    parser.addoption("--histories-rounds", type=int, default=100, help="rounds of 200 histories")
    parser.addoption("--record", action="store_true", help="write the golden files of the commands anew")
    parser.addoption("--docker", action="store_true", help="start the servers as containers, if an engine answers")


def pytest_configure(config: pytest.Config) -> None:
    """Name the folder of the shared servers, which a process of several gets from the one that started it."""
    given = getattr(config, "workerinput", {}).get("servers")
    config.stash[SERVERS] = SharedServers(Path(given or tempfile.mkdtemp(prefix="es-neardupe-servers-")))
    if given is None and config.getoption("--docker"):
        names = dict.fromkeys((config.getoption("--servers") + "," + config.getoption("--smoke")).split(","))
        started = ExitStack()
        started.enter_context(in_containers(names))
        config.add_cleanup(started.close)
    if given is None and config.args_source is pytest.Config.ArgsSource.TESTPATHS and _chooses_nothing(config):
        config.stash[SERVERS].start(dict.fromkeys((DEFAULT_SERVERS + "," + OLDER_SERVERS).split(",")))


def _chooses_nothing(config: pytest.Config) -> bool:
    """Whether a run has all tests: then their servers start even before the tests are collected."""
    chosen = {name: config.getoption(name) for name in ("keyword", "collectonly", "docker", "record")}
    default = config.getoption("--servers") == DEFAULT_SERVERS and config.getoption("--smoke") == OLDER_SERVERS
    return default and not any(chosen.values()) and config.getoption("markexpr") == "not long"


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Give the folder to a process of several."""
    node.workerinput["servers"] = str(node.config.stash[SERVERS].folder)


def pytest_unconfigure(config: pytest.Config) -> None:
    """Stop the servers, after all processes have ended."""
    if hasattr(config, "workerinput"):
        config.stash[SERVERS].settle()
    else:
        config.stash[SERVERS].stop()


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "server_url" in metafunc.fixturenames:
        option = "--smoke" if metafunc.definition.get_closest_marker("smoke") else "--servers"
        names = metafunc.config.getoption(option).split(",")
        metafunc.parametrize("server_url", names, indirect=True, scope="session")


@pytest.hookimpl(wrapper=True, trylast=True)  # where warnings are errors already
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Spare the garbage collector the tests and modules, which live as long as the process: it would visit all of them
    again and again, for a quarter of the time of collecting them."""
    gc.disable()
    try:
        _compile_another_part_first(session.config)
        return (yield)
    finally:
        gc.freeze()
        gc.enable()


def _compile_another_part_first(config: pytest.Config) -> None:
    """Import the test modules in an order that begins with another one in each of several processes. In a fresh clone,
    each then compiles its part, and finds the others compiled; in the order of pytest, each would compile all."""
    worker = getattr(config, "workerinput", None)
    if worker is None:
        return
    given = [config.invocation_params.dir / name.partition("::")[0] for name in config.args]
    files = sorted({file for path in given for file in (path.rglob("test_*.py") if path.is_dir() else [path])})
    begin = len(files) * int(worker["workerid"].removeprefix("gw")) // worker["workercount"]
    for file in files[begin:] + files[:begin]:
        if str(file.parent) not in sys.path:
            sys.path.insert(0, str(file.parent))  # as pytest does
        with contextlib.suppress(Exception):  # pytest imports the module again, and reports the failure
            importlib.import_module(file.stem)


@pytest.hookimpl(tryfirst=True)  # before the tests are grouped
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Choose the product of each test, and mark the tests that need a server. The tests of a file stay in one process
    of several. With the servers of one product, all tests run on each of them."""
    names = config.getoption("--servers").split(",")
    if len({_kind(name) for name in names}) > 1 and not config.getoption("--record"):
        values = _values_to_choose(items)
        chosen: dict[bool, list[pytest.Item]] = {True: [], False: []}
        for item in items:
            chosen[_runs_on_its_server(item) and _has_the_chosen_values(item, values)].append(item)
        config.hook.pytest_deselected(items=chosen[False])
        items[:] = chosen[True]
    for item in items:
        if {"server_url", *SECURED} & {*getattr(item, "fixturenames", ())}:
            item.add_marker(pytest.mark.server)
        if item.get_closest_marker("long") and not item.get_closest_marker("timeout"):
            item.add_marker(pytest.mark.timeout(3600))  # minutes, and more on a busy machine
        if _starts_servers(item):
            item.add_marker(pytest.mark.nodes)
        if not item.get_closest_marker("xdist_group"):
            item.add_marker(pytest.mark.xdist_group(_group(item)))
    items.sort(key=_turn)


def pytest_collection_finish(session: pytest.Session) -> None:
    """Start the servers of the selected tests, in the background."""
    if session.config.getoption("collectonly") or os.environ.get("PYTEST_XDIST_WORKER", "gw0") != "gw0":
        return
    session.config.stash[SERVERS].start({_server(item): None for item in session.items if _server(item)})


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(item: pytest.Item) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """In CI, a test that needs a server must run: it fails if it is skipped."""
    report = yield
    if report.skipped and os.environ.get("CI") and {"server", "nodes"} & {mark.name for mark in item.iter_markers()}:
        report.outcome, report.longrepr = "failed", f"skipped in CI: {report.longrepr}"
    return report


def _server(item: pytest.Item) -> str:
    """Kind and version of the server that a test is for, or ""."""
    callspec = getattr(item, "callspec", None)
    return "" if callspec is None else str(callspec.params.get("server_url", ""))


def _runs_on_its_server(item: pytest.Item) -> bool:
    """Whether a test runs on the server of its parameters, where there are two products. ``product("each")``: its
    behaviour depends on the product. ``product("opensearch")``: only this one has the feature. All other tests run on
    one of the servers, chosen by a hash of their name, or of their file if its fixtures fill an index for all of its
    tests."""
    server, mark = _server(item), item.get_closest_marker("product")
    product = mark.args[0] if mark else "any"
    if not server or product == "each":
        return True
    if product != "any":
        return _kind(server) == product
    names: list[str] = item.config.getoption("--smoke" if item.get_closest_marker("smoke") else "--servers").split(",")
    name = item.path.name if _fills_an_index_for_its_module(item) else item.name.replace(server, "")
    return server == names[zlib.crc32(name.encode()) % len(names)]


Choice = tuple[str, str]
"""A test, and a parameter that it is marked with by ``either``."""


def _values_to_choose(items: list[pytest.Item]) -> dict[Choice, list[Any]]:
    """The values of each parameter of which a test has one. Their numbers in pytest depend on the other parameters of
    the test, among them the server."""
    values: dict[Choice, list[Any]] = defaultdict(list)
    for item in items:
        for choice, value in _either(item):
            if value not in values[choice]:
                values[choice].append(value)
    return values


def _either(item: pytest.Item) -> Iterator[tuple[Choice, Any]]:
    """The parameters that a test is marked with by ``either``, and its values of them. A value that is marked as
    ``long`` is none to choose."""
    callspec = getattr(item, "callspec", None)
    if callspec is None or item.get_closest_marker("long"):
        return
    for mark in item.iter_markers("either"):
        if mark.args[0] in callspec.params:
            yield (item.nodeid.partition("[")[0], mark.args[0]), callspec.params[mark.args[0]]


def _has_the_chosen_values(item: pytest.Item, values: Mapping[Choice, list[Any]]) -> bool:
    """Whether a test marked ``either(parameter)`` has the one of the ``values`` of this parameter that a hash of its
    name chooses."""
    for choice, value in _either(item):
        name = choice[0].rpartition("::")[2]
        if value != values[choice][zlib.crc32(name.encode()) % len(values[choice])]:
            return False
    return True


def _fills_an_index_for_its_module(item: pytest.Item) -> bool:
    """Whether a test has a fixture for all tests of its module that needs a server."""
    found = {name: fixtures[-1] for name, fixtures in item._fixtureinfo.name2fixturedefs.items()}  # type: ignore[attr-defined]  # private

    def needs_a_server(name: str) -> bool:
        return name == "server_url" or (name in found and any(needs_a_server(one) for one in found[name].argnames))

    return any(fixture.scope == "module" and needs_a_server(name) for name, fixture in found.items())


def _kind(server: str) -> str:
    return server.partition("-")[0]


def _starts_servers(item: pytest.Item) -> bool:
    fixtures = {*getattr(item, "fixturenames", ())}
    return item.path.name in START_SERVERS or bool({"own_node", *SECURED} & fixtures)


def _group(item: pytest.Item) -> str:
    """What stays in one process: the tests of a server that they start together, and otherwise those of a file on one
    of the shared servers."""
    for name in {*SECURED, "node_with_repository"} & {*getattr(item, "fixturenames", ())}:
        return name
    return f"{item.path.name} {_server(item)}".strip()


WHILE_SERVERS_START = ("release", "browser", "candidates", "groups", "server", "similarity")
"""Folders of tests without servers that run while the servers are downloaded and started."""


def _turn(item: pytest.Item) -> int:
    """The order of tests in several processes: at the end, short files fill the gaps that long ones leave."""
    if item.get_closest_marker("server") or item.get_closest_marker("nodes"):
        return 1
    return 0 if item.path.parent.name in WHILE_SERVERS_START else 2


@pytest.fixture(scope="session")
def server_url(request: pytest.FixtureRequest) -> str:
    """The address of a real server that all tests share."""
    with required():
        return request.config.stash[SERVERS].url(request.param)


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
    """A connection to a node of its own, one for each release, with the repository ``kept`` of snapshots. An OpenSearch
    searches frozen indices, has no role ``ingest`` and runs no scripts."""

    @functools.cache
    def started(release: versions.Release) -> Client:
        home, repository = tmp_path_factory.mktemp("kept"), tmp_path_factory.mktemp("repository")
        more: dict[str, str | tuple[str, ...]] = {"path.repo": str(repository)}
        if release.server == "opensearch":
            search = "search" if release.version.startswith("2.") else "warm"
            more |= {"node.roles": ("cluster_manager", "data", search), "node.search.cache.size": "64mb"}
            more["script.allowed_types"] = "none"
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
    if None in (hashing.kernel, batch.kernel, masks.kernel, nearest.kernel, stars.kernel):
        headers = Path(sysconfig.get_path("include"), "Python.h")
        assert not (shutil.which("gcc") and headers.exists()), "gcc is here, but a kernel was not built"
        pytest.skip("the package was installed without a compiler")


@pytest.fixture(params=["numpy", *WIDTHS], scope="module")
def inner_loops(request: pytest.FixtureRequest) -> Iterator[None]:
    """Run the tests of a module with numpy's inner loops, and with those in C of each width that this processor has."""
    if request.param != "numpy":
        request.getfixturevalue("built_kernel")
        with lanes(request.param):
            yield
        return
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(hashing, "kernel", None)
        patched.setattr(batch, "kernel", None)
        yield


@pytest.fixture(scope="session")
def client(server_url: str) -> Iterator[Client]:
    """A connection to the real server; where a driver is tested (`drivers.environment`), through a client of it."""
    if package := os.environ.get(TESTED_DRIVER):
        theirs: Any = {"elasticsearch": Elasticsearch, "opensearch-py": OpenSearch}[package](server_url)
        yield wrap(theirs)
        theirs.close()
        return
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


@pytest.fixture(scope="module")
def shared_index(client: Client) -> Iterator[str]:
    """The same for all tests of a module, which change nothing in the index that its fixture makes."""
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
