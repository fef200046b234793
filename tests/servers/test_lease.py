"""Lease of an index on real servers: one run at a time; it ends without waiting for clocks."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from collections.abc import Mapping
from datetime import datetime, timedelta
from typing import Any

import pytest
from server_tools import wait_until
from unit_tools import index_of

from es_neardupe import Settings
from es_neardupe.errors import LeaseHeld, LeaseLost, Unreachable
from es_neardupe.index import lease
from es_neardupe.index.hidden_indices import HiddenIndex, hidden_index_name, read
from es_neardupe.index.lease import LEASE_ID, held
from es_neardupe.index.target import IndexTarget
from es_neardupe.server.client import Client, path

HOLDER = """
import sys, threading
from es_neardupe import NearDupe, Settings
from es_neardupe.index.target import IndexTarget
from es_neardupe.index.lease import held

target = IndexTarget(sys.argv[2], (sys.argv[2],), Settings(("text",)), 10_000)
with held(NearDupe(target.name, url=sys.argv[1]).with_target(target)):
    print("held", flush=True)
    threading.Event().wait()
"""


@pytest.fixture
def target(index_name: str) -> IndexTarget:
    """The target of a run; the index itself need not exist."""
    return IndexTarget(index_name, (index_name,), Settings(("text",)), 10_000)


def stored(client: Client, target: IndexTarget) -> Mapping[str, Any]:
    found = read(client, hidden_index_name(target, HiddenIndex.GROUPS), LEASE_ID)
    assert found is not None
    value: Mapping[str, Any] = found.source["value"]
    return value


def later(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """Set the clock of this process forward."""
    now = lease._now
    monkeypatch.setattr(lease, "_now", lambda: now() + timedelta(seconds=seconds))


def test_the_second_run_is_told_who_works(client: Client, target: IndexTarget) -> None:
    with held(index_of(client, target), "watch") as first:
        value = stored(client, target)
        assert value["holder"]["pid"] == os.getpid()
        assert datetime.fromisoformat(value["expires"]) - first.taken >= timedelta(seconds=60)
        with pytest.raises(
            LeaseHeld, match=rf"\(watch, pid {os.getpid()} on host .*, since 20.* UTC; its lease expires at 20.* UTC"
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
                assert all_lost.wait(30)
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
        first = stored(client, target)["expires"]
        end = datetime.fromisoformat(first) + timedelta(seconds=0.6)
        wait_until(lambda: datetime.fromisoformat(stored(client, target)["expires"]) > end, 10)
        with pytest.raises(LeaseHeld):
            held(index_of(client, target)).__enter__()
        short.check()


def test_a_lease_that_nobody_renews_ends(client: Client, target: IndexTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    with held(index_of(client, target)) as still:
        with monkeypatch.context() as forward:
            later(forward, 59)
            with pytest.raises(LeaseHeld):
                held(index_of(client, target)).__enter__()
            later(forward, 2)
            still.check()  # nobody took it in the meantime: the run continues with a renewed lease
            with pytest.raises(LeaseHeld):
                held(index_of(client, target)).__enter__()
            later(forward, 61)
            other = held(index_of(client, target))
            taken = other.__enter__()
        with pytest.raises(LeaseLost, match=f"lease on index {target.name} expired.*run the same command again"):
            still.check()
        taken.check()
    assert stored(client, target)["holder"]["token"] == taken.token  # not released by the run that lost it
    assert "returned" not in stored(client, target)
    other.__exit__(None, None, None)
    assert "returned" in stored(client, target)


def test_a_registry_that_is_removed(client: Client, target: IndexTarget) -> None:
    with held(index_of(client, target)) as mine:
        client.request("DELETE", path(hidden_index_name(target, HiddenIndex.GROUPS)))
        with pytest.raises(LeaseLost):
            mine.check()


@pytest.mark.parametrize("broken", ["_is_own", "_write_if_own"])
def test_a_run_that_ends_without_giving_it_back(
    broken: str, client: Client, target: IndexTarget, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its process is alive, but knows that the run is not: the server failed at the beginning, or at the end."""

    def fails(self: lease.Lease, *_: Any, **more: Any) -> bool:
        if broken == "_is_own" and lease.read(client, self.registry, self.id) is None:
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


def test_a_holder_that_is_killed(client: Client, target: IndexTarget, monkeypatch: pytest.MonkeyPatch) -> None:
    """This machine detects that its process is gone; another one waits for the end of the lease."""
    command = [sys.executable, "-c", HOLDER, client.url, target.name]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "held\n"
            with pytest.raises(LeaseHeld, match=f"group, pid {process.pid} "):
                held(index_of(client, target)).__enter__()
        finally:
            process.send_signal(signal.SIGKILL)
    assert process.returncode == -signal.SIGKILL
    with monkeypatch.context() as elsewhere:
        elsewhere.setattr(lease, "_machine", lambda: "another")
        with pytest.raises(LeaseHeld, match=f"group, pid {process.pid} "):
            held(index_of(client, target)).__enter__()
    if lease._machine() is None:  # not possible on this system: it waits like any other
        later(monkeypatch, 61)
    with held(index_of(client, target)) as mine:
        mine.check()
    assert stored(client, target)["holder"]["pid"] == os.getpid()
