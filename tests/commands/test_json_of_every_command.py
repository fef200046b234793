"""What every command says of a small index is what it said before: golden files, rewritten with ``--record``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import DEFAULT_SERVERS, Cli
from golden_tools import FOLDER, Life, differences, pretty

from es_neardupe.server.client import Client


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param("inline", marks=pytest.mark.mainly_on("elasticsearch")),
        pytest.param("sidecar", marks=pytest.mark.mainly_on("opensearch")),
    ],
)
def test_every_command_says_what_it_said(
    keys: str, client: Client, index_name: str, server_cli: Cli, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    server = request.node.callspec.params["server_url"]
    if server not in DEFAULT_SERVERS.split(","):
        pytest.skip(f"there are golden files for {DEFAULT_SERVERS} only, not for {server}")
    said = Life(client, index_name, server_cli, tmp_path, sidecar=keys == "sidecar").live()
    file = FOLDER / client.server.product.value / f"{keys}.json"
    if request.config.getoption("--record"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(pretty(said), "utf-8")
        return
    changed = "\n".join(differences(json.loads(file.read_text("utf-8")), json.loads(pretty(said))))
    if changed:
        pytest.fail(f"Not as in {file}; if that is meant, run this test with --record:\n{changed}", pytrace=False)
