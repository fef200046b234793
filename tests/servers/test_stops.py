"""Interrupted runs, by a dead client or a dead server: started again, they end as one undisturbed run."""

from __future__ import annotations

import re
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import psutil
import pytest
from kill_tools import State, copies_of, put_back
from ports import claimed_ports
from server_tools import JSON, family, make_index, new_name, one_line, ours, put, required, theirs, wait_until

from es_neardupe import NearDupe, Settings
from es_neardupe.local_server import control, state
from es_neardupe.server.client import Client, path
from es_neardupe.server.connect import connect
from es_neardupe.server.login.settings import ConnectionSettings
from es_neardupe.server.search import count

NUMBER = 60
"""Families of three."""

AGAIN = "Run the same command again: it continues where it stopped."


def without_request(line: str) -> str:
    """An error line without the name of the request that failed, which is its last part if there was one."""
    return re.sub(r" \[request es-neardupe/[^\]]+\]$", "", line)


SLOW = ("--batch", "1", "--workers", "1", "--max-rate", "25")
"""Options that make a run take seconds, so that it is interrupted in the middle also on a busy machine."""


def filled(client: Client, index: str, families: int = NUMBER) -> None:
    make_index(client, index)
    documents: dict[str, JSON] = {}
    for n in range(families):
        documents |= {f"f{n:03}-{k}": {"text": text} for k, text in enumerate(family(n, 3, length=60, edits=1))}
    put(client, index, documents)
    NearDupe(index, client).init(Settings(("text",), threshold=0.7))


def start(command: str, index: str, url: str) -> subprocess.Popen[str]:
    """The command line in a separate process."""
    arguments = [sys.executable, "-m", "es_neardupe", command, index, "--url", url, *SLOW]
    # A shell that starts tests in the background makes them ignore interrupts, and their children would do so too.
    # No other thread of the tests may hold a lock that this needs.
    heard = partial(signal.signal, signal.SIGINT, signal.SIG_DFL)
    return subprocess.Popen(
        arguments,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=heard,  # noqa: PLW1509
    )


WRITTEN: dict[str, JSON] = {
    "enrich": {"exists": {"field": "neardupe.scheme"}},
    "group": {"term": {"neardupe.principal": False}},  # it writes members only
}


def number_written(client: Client, index: str, command: str) -> int:
    """The number of documents that a command has written."""
    client.request("POST", path(index, "_refresh"))
    return count(client, index, WRITTEN[command])


def killed_midway(command: str, client: Client, index: str, moved: Callable[[], bool]) -> None:
    """Start the command and kill it without warning when it has written something."""
    process = start(command, index, client.url)
    try:
        wait_until(lambda: moved() or process.poll() is not None, every=0.2)
        process.send_signal(signal.SIGKILL)
    finally:
        process.kill()
        _, said = process.communicate()
    assert process.returncode == -signal.SIGKILL, said


def goes_on(command: str, client: Client, index: str) -> Callable[[], bool]:
    """Whether the command has written several documents since now."""
    before = number_written(client, index, command)
    return lambda: number_written(client, index, command) > before + 10


def test_a_client_that_is_killed(client: Client, index_name: str) -> None:
    filled(client, index_name)
    users = theirs(client, index_name)
    for _ in range(2):
        killed_midway("enrich", client, index_name, goes_on("enrich", client, index_name))
    part = number_written(client, index_name, "enrich")
    assert 20 < part < 3 * NUMBER
    rest = NearDupe(index_name, client).enrich()
    assert rest.scope.current is not None
    assert rest.scope.current >= part  # the server continues a request whose client is gone
    assert rest.writes.written == rest.scope.read - rest.writes.unchanged <= 3 * NUMBER - part
    assert number_written(client, index_name, "enrich") == 3 * NUMBER
    for _ in range(2):
        killed_midway("group", client, index_name, goes_on("group", client, index_name))
    part = number_written(client, index_name, "group")
    assert 20 < part < 2 * NUMBER
    assert NearDupe(index_name, client).group().writes.written == 2 * NUMBER - part
    assert theirs(client, index_name) == users
    disturbed = ours(client, index_name)
    assert (
        NearDupe(index_name, client).enrich(check=True).writes.written
        == NearDupe(index_name, client).group().writes.written
        == 0
    )

    client.request("DELETE", path(index_name))
    filled(client, index_name)
    NearDupe(index_name, client).enrich()
    NearDupe(index_name, client).group()
    assert ours(client, index_name) == disturbed


def test_an_interrupt_says_how_to_go_on(client: Client, index_name: str) -> None:
    filled(client, index_name)
    process = start("enrich", index_name, client.url)
    moved = goes_on("enrich", client, index_name)
    wait_until(lambda: moved() or process.poll() is not None, every=0.2)
    process.send_signal(signal.SIGINT)
    out, said = process.communicate(timeout=60)
    assert (process.returncode, out) == (130, "")
    assert said.strip() == "Interrupted. What was written stays; run the same command again for the rest."


def test_a_program_that_ends_while_it_reads(client: Client, index_name: str) -> None:
    """An interrupted program is one. Python 3.11 waits forever for a thread that is started while Python ends."""
    filled(client, index_name, families=2)
    program = (
        "import sys; from es_neardupe.server.connect import connect; "
        "from es_neardupe.server.login.settings import ConnectionSettings; "
        "pages = connect(ConnectionSettings(url=sys.argv[1])).pages(sys.argv[2], {}, page_size=2); "
        "print(len(next(pages))); kept = [pages]; kept.append(kept)"
    )
    command = [sys.executable, "-c", program, client.url, index_name]
    assert subprocess.run(command, check=True, capture_output=True, text=True, timeout=60).stdout == "2\n"


@pytest.fixture
def own_node(request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[state.Node]:
    """A server used by this test alone, so that it can be stopped; on a port that nothing else uses."""
    monkeypatch.setenv("ES_NEARDUPE_HOME", str(tmp_path))
    with claimed_ports(1) as (port,):
        with required():
            started = control.start(request.param, port=port, heap="384m")
        yield started
        control.stop()


COMBINATIONS = [
    ("elasticsearch", "enrich"),
    ("opensearch", "group"),
    ("elasticsearch", "group"),
    ("opensearch", "enrich"),
]


def crash(one: state.Node) -> None:
    """End a server without an orderly shutdown."""
    process = psutil.Process(one.pid)
    process.kill()
    # The process can be a zombie while its last threads still hold the port.
    wait_until(lambda: not process.is_running() or process.status() == psutil.STATUS_ZOMBIE)
    wait_until(lambda: control.is_free(one.port))


@pytest.mark.server
@pytest.mark.parametrize(
    ("own_node", "command"),
    [pytest.param(*one, marks=pytest.mark.long) for one in COMBINATIONS],
    indirect=["own_node"],
)
def test_a_server_that_crashes_and_comes_back(own_node: state.Node, command: str) -> None:
    """The run continues, or names the error: a snapshot that was being read is lost with the server."""
    index = "docs"
    client = connect(ConnectionSettings(url=own_node.url))
    filled(client, index, families=100)
    beginning = copies_of(client, index)
    if command == "group":
        NearDupe(index, client).enrich()
    moved = goes_on(command, client, index)
    process = start(command, index, own_node.url)
    wait_until(lambda: moved() or process.poll() is not None, every=0.2)
    crash(own_node)
    control.start(own_node.server, port=own_node.port, heap="384m")
    _, said = process.communicate(timeout=120)
    print(process.returncode, said)
    if process.returncode:
        assert without_request(one_line(said)).endswith(AGAIN)
    NearDupe(index, client).enrich()
    NearDupe(index, client).group()
    disturbed = State.of(client, index)

    put_back(client, beginning)
    NearDupe(index, client).enrich()
    NearDupe(index, client).group()
    assert State.of(client, index) == disturbed
    client.close()


@pytest.mark.long
@pytest.mark.server
@pytest.mark.parametrize(
    ("own_node", "command"),
    [("elasticsearch", "enrich"), ("opensearch", "group")],
    indirect=["own_node"],
)
def test_a_server_that_stops_in_the_middle(own_node: state.Node, command: str) -> None:
    index = new_name()
    client = connect(ConnectionSettings(url=own_node.url))
    filled(client, index)
    users = theirs(client, index)
    if command == "group":
        NearDupe(index, client).enrich()
    moved = goes_on(command, client, index)
    process = start(command, index, own_node.url)
    wait_until(lambda: moved() or process.poll() is not None, every=0.2)
    control.stop()
    out, said = process.communicate(timeout=120)
    assert (process.returncode, out) == (1, "")
    line = one_line(said)
    assert own_node.url in line
    assert without_request(line).endswith(AGAIN)

    control.start(own_node.server, port=own_node.port, heap="384m")
    assert 0 < number_written(client, index, command) < 3 * NUMBER
    NearDupe(index, client).enrich()
    NearDupe(index, client).group()
    assert theirs(client, index) == users
    disturbed = ours(client, index)

    client.request("DELETE", path(index))
    filled(client, index)
    NearDupe(index, client).enrich()
    NearDupe(index, client).group()
    assert ours(client, index) == disturbed
    client.close()
