"""Smoke tests with the major version of the driver that is not installed, on the current server."""

from __future__ import annotations

import subprocess
import sys
from importlib.metadata import version as installed
from pathlib import Path

import pytest
from drivers import DRIVERS, Driver, environment, version
from server_tools import required

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
