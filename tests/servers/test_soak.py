"""Soak test: after random events, the index is as its user and our settings require; nothing is lost, duplicated or
reverted."""

from __future__ import annotations

import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest
from fault_proxy import FaultProxy, short_waits
from soak_tools import World

from es_neardupe.server.client import Client
from es_neardupe.server.connect import connect
from es_neardupe.server.login.settings import ConnectionSettings, Retries

BETWEEN_CHECKS, STEPS = 8, 16
"""Numbers of steps; these are the same ones each time, as long as no duration is given."""


@pytest.fixture
def through(proxy: FaultProxy) -> Iterator[Client]:
    opened = connect(ConnectionSettings(proxy.url, retries=Retries(attempts=4, wait=0.01), timeout=20))
    yield opened
    opened.close()


def what_of(line: str) -> str:
    """The command, or choice of settings, that a line of the log is about; "" for a line that continues another."""
    words = line.split(" ")
    return words[0] + " killed" * ("killed" in words) + " beside" * ("beside," in words)


def test_soak(
    client: Client,
    through: Client,
    proxy: FaultProxy,
    index_name: str,
    tmp_path: Path,
    request: pytest.FixtureRequest,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    short_waits(monkeypatch)
    seed, seconds = (request.config.getoption(f"--soak-{name}") for name in ("seed", "seconds"))
    end = None if seconds is None else time.monotonic() + seconds
    world = World(client, through, proxy, index_name, seed, tmp_path)
    steps = 0
    try:
        while steps < STEPS if end is None else time.monotonic() < end:
            for _ in range(BETWEEN_CHECKS):
                world.step()
                steps += 1
            world.check()
    except BaseException:
        print(f"seed {seed}: again with --soak-seed {seed}", *world.log, sep="\n")
        raise
    print(f"seed {seed}: {steps} steps, {world.faults_met} faults, {world.ended} runs that they ended")
    print(*(f"{number} {what}" for what, number in Counter(map(what_of, world.log)).items() if what), sep=", ")
    assert world.faults_met > 0
