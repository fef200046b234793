"""What every command says of a small index is what it said before: golden files, rewritten with ``--record``."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import DEFAULT_SERVERS, Cli
from golden_tools import FOLDER, Life, differences, pretty
from server_tools import JSON

from es_neardupe.records import Product
from es_neardupe.server.client import Client, path

ONE_HIT = {"response_processors": [{"collapse": {"field": "no-such-field"}}]}
"""A search pipeline that leaves one hit of each search."""


@pytest.mark.parametrize(
    "keys",
    [
        pytest.param("inline", marks=pytest.mark.product("elasticsearch")),
        pytest.param("sidecar", marks=pytest.mark.product("opensearch")),
    ],
)
def test_every_command_says_what_it_said(
    keys: str, client: Client, index_name: str, server_cli: Cli, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    said = Life(client, index_name, server_cli, tmp_path, sidecar=keys == "sidecar").live()
    file = golden(client, keys, request)
    if request.config.getoption("--record"):
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(pretty(said), "utf-8")
        return
    compare(file, json.loads(file.read_text("utf-8")), said)


@pytest.mark.parametrize("keys", ["inline", "sidecar"])
@pytest.mark.either("keys")
@pytest.mark.product("opensearch")
def test_a_default_search_pipeline_changes_nothing(
    keys: str, client: Client, index_name: str, server_cli: Cli, tmp_path: Path, request: pytest.FixtureRequest
) -> None:
    if client.server.product is not Product.OPENSEARCH:
        pytest.skip("Elasticsearch has no search pipelines")
    file = golden(client, keys, request)
    pipeline = path("_search", "pipeline", index_name)
    client.request("PUT", pipeline, body=ONE_HIT)
    settings = {"search.default_pipeline": index_name}
    said = Life(client, index_name, server_cli, tmp_path, sidecar=keys == "sidecar", settings=settings).live()
    client.request("DELETE", pipeline)
    expected = [one for one in json.loads(file.read_text("utf-8")) if one["command"][0] != "fold"]
    compare(file, expected, [one for one in said if one["command"][0] != "fold"])


def golden(client: Client, keys: str, request: pytest.FixtureRequest) -> Path:
    """The golden file of a server; without one, the test is skipped."""
    server = request.node.callspec.params["server_url"]
    if server not in DEFAULT_SERVERS.split(","):
        pytest.skip(f"there are golden files for {DEFAULT_SERVERS} only, not for {server}")
    return FOLDER / client.server.product.value / f"{keys}.json"


def compare(file: Path, expected: list[JSON], said: list[JSON]) -> None:
    """Fail with the lines that differ."""
    changed = "\n".join(differences(expected, json.loads(pretty(said))))
    if changed:
        pytest.fail(f"Not as in {file}; if that is meant, run this test with --record:\n{changed}", pytrace=False)
