"""`clean` on real servers: the confirmation, and a second run. (The documents: test_flow.py.)"""

from __future__ import annotations

import io

import pytest
from bad_input import fill
from conftest import Cli
from server_tools import versions

from es_neardupe import NearDupe, Settings
from es_neardupe.server.client import Client

SETTINGS = Settings(("text",))


@pytest.fixture
def filled(client: Client, index_name: str) -> str:
    fill(client, index_name)
    return index_name


@pytest.mark.parametrize("answer", ["n\n", ""])
def test_clean_asks_first(
    answer: str,
    client: Client,
    filled: str,
    server_cli: Cli,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    NearDupe(filled, client).init(Settings(("text",)))
    NearDupe(filled, client).enrich()
    written = versions(client, filled)
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    done = server_cli("clean", filled)
    assert done.code == 1
    assert f"Remove 'neardupe' from 4 documents of {filled}?" in done.err
    assert versions(client, filled) == written


def test_clean_twice(client: Client, filled: str, server_cli: Cli) -> None:
    NearDupe(filled, client).init(SETTINGS)
    NearDupe(filled, client).enrich()
    assert server_cli("clean", filled, "--yes", "--json").json["writes"]["written"] == 4
    assert server_cli("clean", filled, "--yes", "--json").json["writes"]["written"] == 0
