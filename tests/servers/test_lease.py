"""Lease of an index on real servers: one run at a time, whatever the clocks of their machines."""

from __future__ import annotations

import io
import os
import signal
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import pytest
from bad_input import fill
from conftest import Cli
from fault_proxy import BREAKER, Fault, FaultProxy, refused
from server_tools import wait_until
from unit_tools import index_of

from es_neardupe import NearDupe, Settings
from es_neardupe.errors import LeaseHeld, LeaseLost, Unreachable
from es_neardupe.index.hidden_indices import HiddenDocuments, HiddenIndex, ensure, hidden_index_name
from es_neardupe.index.index import opened
from es_neardupe.index.runs import lease
from es_neardupe.index.runs.lease import LEASE_ID, held, is_held
from es_neardupe.index.target import IndexTarget
from es_neardupe.server.client import Client, path
from es_neardupe.server.connect import connect
from es_neardupe.server.login.settings import ConnectionSettings, Retries

HOLDER = """
import sys
from datetime import timedelta
from es_neardupe import NearDupe, Settings
from es_neardupe.errors import LeaseLost
from es_neardupe.index.runs import lease
from es_neardupe.index.target import IndexTarget

url, name, seconds, ahead = sys.argv[1:]
now = lease._now
lease._now = lambda: now() + timedelta(seconds=float(ahead))
target = IndexTarget(name, (name,), Settings(("text",)), 10_000)
with lease.held(NearDupe(name, url=url).with_target(target), seconds=float(seconds)) as mine:
    print("held", flush=True)
    for line in sys.stdin:
        try:
            mine.check()
            print("kept", flush=True)
        except LeaseLost as error:
            print(error, flush=True)
"""
"""Prints the result of `Lease.check` for each line of its stdin."""

DAY = 24 * 60 * 60


@contextmanager
def another(client: Client, target: IndexTarget, seconds: float, ahead: float = 0) -> Iterator[subprocess.Popen[str]]:
    """A process that holds the lease, with a clock that is so many seconds ahead."""
    command = [sys.executable, "-c", HOLDER, client.url, target.name, str(seconds), str(ahead)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            yield process
        finally:
            process.kill()


def checked(process: subprocess.Popen[str]) -> str:
    """What the holder finds out about its lease."""
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write("\n")
    process.stdin.flush()
    return process.stdout.readline().strip()


@pytest.fixture
def elsewhere(monkeypatch: pytest.MonkeyPatch) -> None:
    """This process is on another machine than the others."""
    monkeypatch.setattr(lease, "_machine", lambda: "another")


@pytest.fixture
def target(index_name: str) -> IndexTarget:
    """The target of a run; the index itself need not exist."""
    return IndexTarget(index_name, (index_name,), Settings(("text",)), 10_000)


def stored(client: Client, target: IndexTarget) -> Mapping[str, Any]:
    found = HiddenDocuments(client, hidden_index_name(target, HiddenIndex.GROUPS)).read(LEASE_ID)
    assert found is not None
    value: Mapping[str, Any] = found.source["value"]
    return value


def test_the_second_run_is_told_who_works(client: Client, target: IndexTarget) -> None:
    with held(index_of(client, target), "watch") as first:
        value = stored(client, target)
        assert value["holder"]["pid"] == os.getpid()
        assert (value["seconds"], value["renewals"]) == (60, 0)
        with pytest.raises(
            LeaseHeld, match=rf"\(watch, pid {os.getpid()} on host .*, since 20.* UTC by its clock\) is processing"
        ):
            held(index_of(client, target)).__enter__()
        assert stored(client, target) == value
        first.check()
    assert "returned" in stored(client, target)
    with pytest.raises(Unreachable), held(index_of(client, target)):
        raise Unreachable("in the middle")
    with held(index_of(client, target)) as third:  # the error has released it
        third.check()
    assert [one.name for one in threading.enumerate() if one.name == "lease"] == []


def test_one_of_many_wins(client: Client, target: IndexTarget) -> None:
    """Some begin before there is a registry; all try until the winner has seen the others fail."""
    number = 6
    together, all_lost, answers = threading.Barrier(number), threading.Event(), []

    def run() -> None:
        together.wait()
        try:
            with held(index_of(client, target)) as mine:
                assert all_lost.wait(60)
                mine.check()
                answers.append("won")
        except LeaseHeld:
            answers.append("lost")
            if answers.count("lost") == number - 1:
                all_lost.set()

    threads = [threading.Thread(target=run) for _ in range(number)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert sorted(answers) == ["lost"] * (number - 1) + ["won"]


def test_a_lease_is_renewed_as_long_as_it_is_held(client: Client, target: IndexTarget) -> None:
    with held(index_of(client, target), seconds=0.6) as short:
        wait_until(lambda: stored(client, target)["renewals"] > 12)
        with pytest.raises(LeaseHeld):
            held(index_of(client, target)).__enter__()
        short.check()


@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("ahead", [-DAY, 0, DAY])
def test_a_holder_elsewhere_that_is_alive(client: Client, target: IndexTarget, ahead: float) -> None:
    """It is noticed at its next renewal, whatever its clock."""
    with another(client, target, 12, ahead) as process:
        with pytest.raises(LeaseHeld, match=f"group, pid {process.pid} "):
            held(index_of(client, target)).__enter__()
        assert checked(process) == "kept"


@pytest.mark.either("ahead")
@pytest.mark.usefixtures("elsewhere")
@pytest.mark.parametrize("ahead", [-DAY, 0, DAY])
def test_a_killed_holder_elsewhere(client: Client, target: IndexTarget, ahead: float) -> None:
    """Its lease is taken after its period by the clock of this run, whatever its clock."""
    with another(client, target, 2, ahead) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
    started, seen = time.monotonic(), []
    with held(index_of(client, target), progress=lambda *one: seen.append(one)) as mine:
        assert time.monotonic() - started >= 2
        mine.check()
        assert stored(client, target)["holder"]["pid"] == os.getpid()
    assert seen[0] == ("watching the lease of another run", 0, 2)


@pytest.mark.usefixtures("elsewhere")
def test_a_suspended_holder_notices_that_it_lost_its_lease(client: Client, target: IndexTarget) -> None:
    with another(client, target, 2) as process:
        assert checked(process) == "kept"
        process.send_signal(signal.SIGSTOP)
        try:
            with held(index_of(client, target)) as mine:
                process.send_signal(signal.SIGCONT)
                assert f"lost its lease on index {target.name}" in checked(process)
                mine.check()
        finally:
            process.send_signal(signal.SIGCONT)


@pytest.mark.usefixtures("elsewhere")
def test_a_suspended_holder_keeps_a_lease_that_nobody_took(client: Client, target: IndexTarget) -> None:
    with another(client, target, 0.5) as process:
        process.send_signal(signal.SIGSTOP)
        time.sleep(1)
        process.send_signal(signal.SIGCONT)
        assert checked(process) == "kept"


@pytest.mark.usefixtures("elsewhere")
def test_a_suspended_holder_under_another_name(client: Client, target: IndexTarget) -> None:
    """Its lease is in another registry; it loses it too."""
    both = IndexTarget(f"{target.name}*", (target.name, f"{target.name}-2"), target.settings, 10_000)
    with another(client, target, 6) as process:  # which a busy machine may stop for a second
        with pytest.raises(LeaseHeld, match=f"is processing index {target.name}"):
            held(index_of(client, both)).__enter__()
        process.send_signal(signal.SIGSTOP)
        try:
            with held(index_of(client, both)) as mine:
                process.send_signal(signal.SIGCONT)
                assert "lost its lease" in checked(process)
                mine.check()
        finally:
            process.send_signal(signal.SIGCONT)


@pytest.mark.usefixtures("elsewhere")
def test_whether_another_run_holds_a_lease(client: Client, target: IndexTarget) -> None:
    """Without comparing clocks: it is watched."""
    registry = HiddenDocuments(client, hidden_index_name(target, HiddenIndex.GROUPS))
    with another(client, target, 6, -DAY) as process:  # which a busy machine may stop for a second
        token = stored(client, target)["holder"]["token"]
        assert is_held(registry, LEASE_ID, token)
        assert not is_held(registry, LEASE_ID, "another")
        process.send_signal(signal.SIGKILL)
        process.wait()
    assert not is_held(registry, LEASE_ID, token)


def test_break_lease(client: Client, index_name: str, server_cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    fill(client, index_name)
    NearDupe(index_name, client).init(Settings(("text",)))
    NearDupe(index_name, client).enrich()
    index = opened(NearDupe(index_name, client))
    assert [one for one in NearDupe(index_name, client).doctor() if one.name == "lease"] == []
    assert server_cli("group", index_name, "--break-lease").code == 0  # there is none, and no question
    with held(index, "watch") as other:
        (check,) = (one for one in NearDupe(index_name, client).doctor() if one.name == "lease")
        who = f"watch, pid {os.getpid()} on host {socket.gethostname()}, since "
        assert check.level == "warning"
        assert check.message.startswith(f"held by {who}")
        assert f"es-neardupe group {index_name} --break-lease" in check.message
        assert server_cli("group", index_name, "--break-lease", "--dry-run").code == 2
        monkeypatch.setattr("sys.stdin", io.StringIO("n\n"))
        refused = server_cli("group", index_name, "--break-lease")
        assert refused.code == 1
        assert f"Delete the lease of {who}" in refused.err
        other.check()
        done = server_cli("group", index_name, "--break-lease", "--yes")
        assert (done.code, stored(client, index.target)["command"]) == (0, "group")
        with pytest.raises(LeaseLost):
            other.check()


def test_a_registry_that_is_removed(client: Client, target: IndexTarget) -> None:
    with held(index_of(client, target)) as mine:
        client.request("DELETE", path(hidden_index_name(target, HiddenIndex.GROUPS)))
        with pytest.raises(LeaseLost):
            mine.check()


def test_a_server_without_memory_while_the_leases_of_others_are_read(
    client: Client, index_name: str, proxy: FaultProxy
) -> None:
    """They are read again one by one."""
    names = [f"{index_name}-{number}" for number in range(3)]
    targets = [IndexTarget(name, (name,), Settings(("text",)), 10_000) for name in names]
    for one in targets[1:]:
        ensure(index_of(client, one), HiddenIndex.GROUPS)
    fault = Fault(refused(429, BREAKER), "_mget", each=True)
    proxy.set(fault)
    through = connect(ConnectionSettings(proxy.url, retries=Retries(wait=0.01)))
    with held(index_of(through, targets[0])) as mine:
        mine.check()
    assert fault.met >= 3  # for both, and for each of them
    through.close()


@pytest.mark.parametrize("broken", ["_is_own", "_write_if_own"])
def test_a_run_that_ends_without_giving_it_back(
    broken: str, client: Client, target: IndexTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process is alive, but knows that the run is not: the server failed at the beginning, or at the end."""

    def fails(self: lease.Lease, *_: Any, **more: Any) -> bool:
        if broken == "_is_own" and self.registry.read(self.id) is None:
            return False  # it is written, and then the answer is lost
        raise Unreachable("gone")

    with monkeypatch.context() as away:
        away.setattr(lease.Lease, broken, fails)
        away.setattr(threading, "excepthook", lambda _: None)
        with pytest.raises(Unreachable), held(index_of(client, target)):
            raise Unreachable("in the middle")
    assert "returned" not in stored(client, target)
    with held(index_of(client, target)) as mine:
        mine.check()


@pytest.mark.skipif(lease._machine() is None, reason="this system does not tell")
def test_a_killed_holder_of_this_machine(client: Client, target: IndexTarget) -> None:
    """Its process is gone, so its lease is taken at once."""
    with another(client, target, 60) as process:
        process.send_signal(signal.SIGKILL)
        process.wait()
    seen: list[tuple[str, int, int]] = []
    with held(index_of(client, target), progress=lambda *one: seen.append(one)) as mine:
        mine.check()
    assert seen == []  # it was not watched
    assert stored(client, target)["holder"]["pid"] == os.getpid()
