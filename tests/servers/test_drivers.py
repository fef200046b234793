"""Drivers: smoke tests with the major version that is not installed, on the current server; commands load none."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version as installed
from pathlib import Path

import pytest
from drivers import DRIVERS, Driver, environment, version
from server_tools import put, required

from es_neardupe import NearDupe, Settings
from es_neardupe.server.client import Client

pytestmark = pytest.mark.product("each")


def other(client: Client) -> Driver:
    """A driver for the server, of another major version than the installed one."""
    mine = [one for one in DRIVERS if one.product == client.server.product.value]
    return next(one for one in mine if int(installed(one.package).split(".")[0]) != one.major)


def test_smoke_set_with_another_driver(client: Client, request: pytest.FixtureRequest) -> None:
    driver = other(client)
    with required():
        variables = environment(driver)
    assert version(driver).startswith(f"{driver.major}.")
    name = request.node.callspec.params["server_url"]
    variables["ES_NEARDUPE_TEST_URL"] = f"{name}={client.url}"
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "--servers",
        name,
        "--smoke",
        name,
        "-p",
        "no:cacheprovider",
        "test_smoke.py",
    ]
    run = subprocess.run(
        command, cwd=Path(__file__).parent, env=variables, capture_output=True, text=True, timeout=240, check=False
    )
    assert run.returncode == 0, run.stdout[-3000:] + run.stderr[-1000:]
    assert "4 passed" in run.stdout


_HEAVY = {
    "scipy",
    "tenacity",
    "rapidfuzz",
    "elasticsearch",
    "elastic_transport",
    "opensearchpy",
    "aiohttp",
    "pyarrow",
    "pandas",
    "jinja2",
    "selectolax",
    "psutil",
}
"""Packages that take as long to import as a command that does little."""


def test_commands_that_read_little_load_no_driver(client: Client, index_name: str) -> None:
    news = NearDupe(index_name, client)
    news.init(Settings(("text",)), create=True)
    put(client, index_name, {"a": {"text": "one two three four five"}})
    news.enrich()
    news.group()
    code = f"""
import sys
from es_neardupe.cli.app import main
for words in (["stats"], ["groups"], ["similar", "--text", "one two three four five"]):
    sys.argv = ["es-neardupe", words[0], {index_name!r}, *words[1:], "--url", {client.url!r}]
    try:
        main()
    except SystemExit as stop:
        assert not stop.code, words
    print(words[0], [one for one in {sorted(_HEAVY)!r} if one in sys.modules], file=sys.stderr)
"""
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    loaded = [line for line in run.stderr.splitlines() if line.endswith("]")]
    assert loaded == ["stats []", "groups []", "similar ['rapidfuzz']"]
