"""Completion of index names in the shell, in a separate process as the shell runs it."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from unit_tools import patience

from es_neardupe.server.client import Client

HEAVY = ("numpy", "scipy", "pydantic", "xxhash", "elasticsearch", "opensearchpy")
CODE = f"""
import sys
from es_neardupe.cli.app import main
sys.argv = ["es-neardupe"]
try:
    main()
finally:
    print(*[one for one in {HEAVY!r} if one in sys.modules], file=sys.stderr, end="")
"""


def completed(words: str, **environment: str) -> list[str]:
    """The completions that bash offers after these words; nothing is on stderr, and no heavy library is imported."""
    shell = {"_ES_NEARDUPE_COMPLETE": "complete_bash", "COMP_WORDS": words, "COMP_CWORD": str(words.count(" "))}
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("ES_", "ELASTIC", "OPENSEARCH"))}
    done = subprocess.run(
        [sys.executable, "-c", CODE],
        capture_output=True,
        text=True,
        env={**clean, **environment, **shell},
        check=False,
        stdin=subprocess.DEVNULL,
    )
    assert (done.returncode, done.stderr) == (0, "")
    return done.stdout.split()


def test_names_on_the_server(client: Client, server_url: str, index_name: str) -> None:
    client.request("PUT", f"/{index_name}")
    client.request("PUT", f"/{index_name}-2")
    client.request("POST", "/_aliases", body={"actions": [{"add": {"index": index_name, "alias": f"{index_name}-a"}}]})
    beginning = index_name[:-1]
    everything = [index_name, f"{index_name}-2", f"{index_name}-a"]
    assert [one for one in completed(f"es-neardupe group --url {server_url} {beginning}") if index_name in one] == (
        everything
    )
    assert completed(f"es-neardupe stats {index_name}-", ES_NEARDUPE_URL=server_url) == everything[1:]
    assert completed(f"es-neardupe pairs other,{index_name}-2", ES_NEARDUPE_URL=server_url) == [f"other,{index_name}-2"]
    assert completed(f"es-neardupe stats {index_name}-nothing", ES_NEARDUPE_URL=server_url) == []


@pytest.fixture
def silent_port() -> Iterator[int]:
    """A port that accepts connections and never answers."""
    with socket.create_server(("127.0.0.1", 0)) as server:
        yield server.getsockname()[1]


def test_no_server_no_names(silent_port: int, tmp_path: Path) -> None:
    """No output for a wrong address, a wrong setting, no answer, or without a server."""
    home = {"XDG_CONFIG_HOME": str(tmp_path), "XDG_DATA_HOME": str(tmp_path), "XDG_RUNTIME_DIR": str(tmp_path)}
    for address in ("http://127.0.0.1:9", "nonsense", "http://nowhere.invalid", f"http://127.0.0.1:{silent_port}"):
        started = time.monotonic()
        assert completed(f"es-neardupe group --url {address} n", **home) == []
        assert time.monotonic() - started < patience(60)  # other commands try again for minutes
    assert completed("es-neardupe group --profile nobody n", **home) == []
    assert completed("es-neardupe group --url http://127.0.0.1:9 --username me n", **home) == []
    assert completed("es-neardupe group n", **home, HOME=str(tmp_path)) == []
