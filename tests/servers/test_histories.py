"""After any history of changes, incremental runs end as a rebuild does, and as groups by brute force; each hint of a
command leads out of what it complains about.

Many histories happen in one index at the same time, see `histories`.
"""

from __future__ import annotations

import time
from pathlib import Path

import pytest
from conftest import Cli
from histories import histories, plan, playing, shortened
from server_tools import runs_painless

from es_neardupe.groups import incremental
from es_neardupe.server.client import Client

FAMILIES, STEPS = 200, 7
"""Histories of a round, and their steps, in the long test."""


@pytest.fixture(autouse=True)
def always_incremental(monkeypatch: pytest.MonkeyPatch) -> None:
    """However many documents have changed."""
    monkeypatch.setattr(incremental, "_MAX_WAITING", 1.0)


def check(client: Client, index: str, folder: Path, cli: Cli, seed: int, *, families: int, steps: int) -> None:
    """Play a round. A failure shows the changes that lead to it, as few as possible."""
    chosen = plan(seed, steps=steps, sidecar=seed % 4 == 3, modules=runs_painless(client))
    made, play = histories(chosen, families), playing(client, index, folder, cli)
    found = play(chosen, made)
    if found is not None:
        raise AssertionError(f"seed {seed}, {families} families:\n{shortened(play, chosen, made, found)}")


@pytest.mark.either("seed")
@pytest.mark.parametrize("seed", [1, 2, 3])
def test_histories(client: Client, index_name: str, tmp_path: Path, server_cli: Cli, seed: int) -> None:
    check(client, index_name, tmp_path, server_cli, seed, families=12, steps=3)


@pytest.mark.long
@pytest.mark.timeout(7200)
def test_many_histories(
    client: Client,
    index_name: str,
    tmp_path: Path,
    server_cli: Cli,
    request: pytest.FixtureRequest,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Each round has a seed of its own, which is printed. All rounds are played, even if one fails."""
    first, rounds = (request.config.getoption(f"--histories-{name}") for name in ("seed", "rounds"))
    failed = []

    def say(line: str) -> None:
        with capsys.disabled():
            print(line, flush=True)

    for seed in range(first, first + rounds):
        started = time.monotonic()
        try:
            check(client, index_name, tmp_path, server_cli, seed, families=FAMILIES, steps=STEPS)
        except AssertionError as error:
            failed.append(str(error))
            say(str(error))
        say(f"seed {seed}: {FAMILIES} histories, {time.monotonic() - started:.0f} s")
    assert not failed, "\n\n".join(failed)
