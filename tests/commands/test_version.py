"""`version` on real servers, and without one."""

from __future__ import annotations

import pytest
from conftest import Cli

from es_neardupe import Settings
from es_neardupe.compiled import MODULES, compiled
from es_neardupe.server.client import Client

pytestmark = pytest.mark.product("each")


def test_version(server_cli: Cli, client: Client) -> None:
    run = server_cli("version", "--json")
    assert run.code == 0
    assert run.json["server"] == str(client.server)
    assert run.json["scheme"] == Settings(("text",)).scheme.id
    assert run.json["packages"]["numpy"]
    assert run.json["compiled"] == {name: compiled(name) is not None for name in MODULES}
    assert server_cli("version", "--json", "--no-server").json["server"] is None
    nowhere = server_cli("version", "--url", "http://127.0.0.1:9")
    assert nowhere.code == 0
    assert "The version of the server is unknown: http://127.0.0.1:9: no connection" in nowhere.err
