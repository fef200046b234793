"""Real local servers: start, stop, start again. Each test has its own home folder."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import urllib.request
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from docs_pages import section
from server_tools import required, wait_until
from typer.testing import CliRunner

from es_neardupe import local
from es_neardupe.cli.commands.node import app
from es_neardupe.errors import NodeError
from es_neardupe.local_server import control, download, state, versions

pytestmark = pytest.mark.server


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    monkeypatch.setenv("ES_NEARDUPE_HOME", str(tmp_path))
    yield tmp_path
    control.stop()


NEWEST = versions.pick("opensearch")
"""The newest Elasticsearch is stopped in `conftest.server_url`, and started again on its data in `test_stops`."""


@pytest.fixture(
    params=[
        pytest.param(one, marks=() if one == NEWEST else pytest.mark.long, id=one.slug) for one in versions.SUPPORTED
    ]
)
def release(request: pytest.FixtureRequest) -> versions.Release:
    """Each release whose jars are available; CI must have all of them."""
    with required():
        download.ensure(request.param)
    found: versions.Release = request.param
    return found


def ask(method: str, url: str, body: Any = None) -> Any:
    request = urllib.request.Request(
        url,
        method=method,
        data=None if body is None else json.dumps(body).encode(),
        headers={"content-type": "application/json"},
    )
    with urllib.request.urlopen(request, timeout=60) as answer:
        return json.load(answer)


def test_data_survive_a_restart(release: versions.Release, home: Path, capsys: pytest.CaptureFixture[str]) -> None:
    first = control.start(release.server, release.minor, offline=True)
    ask("PUT", f"{first.url}/books/_doc/1?refresh=true", {"title": "near duplicates"})
    assert control.start(release.server, release.version) == first
    assert control.status().running == (first,) == control.running(release.server)
    (stopped,) = control.stop(release.server, release.minor)
    assert stopped == state.Stopped(first, killed=False)
    assert control.running() == ()
    assert first.log.read_text("utf-8").rstrip().endswith("closed")

    with local.node(release.server, release.version, offline=True) as second:
        found = ask("GET", f"{second.url}/books/_search?q=title:near")
        assert [hit["_source"]["title"] for hit in found["hits"]["hits"]] == ["near duplicates"]
        versions = ask("GET", f"{second.url}/_nodes?filter_path=nodes.*.version")
        assert [each["version"] for each in versions["nodes"].values()] == [release.version]
        assert (second.data, second.log) == (first.data, first.log)
        assert home in second.data.parents
        with local.node(release.server, release.version) as third:
            assert third == second
        assert local.running() == (second,)  # which was running before the inner block
        if release == NEWEST:
            run_the_example(capsys)
    assert local.running() == ()


def run_the_example(capsys: pytest.CaptureFixture[str]) -> None:
    """The first one in the documentation, with what it prints in a comment."""
    (example, *_) = re.findall(r"```python\n(.*?)```", section("node.md", "Python"), re.DOTALL)
    exec(compile(example, "node.md", "exec"), {})
    assert capsys.readouterr().out.split() == re.findall(r"# (\d+)$", example, re.MULTILINE)


@pytest.mark.parametrize("release", versions.SUPPORTED[:1], indirect=True, ids=lambda release: release.slug)
class TestOneServer:
    def test_the_commands_and_two_side_by_side(self, release: versions.Release, home: Path) -> None:
        """Several processes start the second one, and one of them is killed: it is one server."""
        runner = CliRunner()
        data = home / "chosen"
        started = runner.invoke(app, ["start", "--data", str(data), "--heap", "384m", "--offline"])
        assert started.exit_code == 0, started.output
        url = started.stdout.strip()
        assert ask("GET", f"{url}/_cluster/health")["status"] == "green"
        listed = json.loads(runner.invoke(app, ["status", "--json"]).stdout)
        assert [(each["url"], each["data"], each["state"]) for each in listed] == [(url, str(data), "running")]
        (chosen,) = control.running()
        command = [sys.executable, "-m", "es_neardupe", "node", "start", "--heap", "256m"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as first:
            wait_until(lambda: first.poll() is not None or len([*(home / "run").glob("*.json")]) > 1)
            first.kill()
        with ThreadPoolExecutor(3) as starters:
            (two,) = set(starters.map(lambda _: control.start(release.server), range(3)))
        found = control.status()
        assert ({*found.running}, found.silent, found.cleaned) == ({chosen, two}, (), ())
        with pytest.raises(NodeError, match=f"Port {two.port} is in use"):
            control.start(release.server, data=home / "three", port=two.port)
        control.stop(data=two.data)
        assert [one.url for one in control.running()] == [url] != [two.url]
        stopped = runner.invoke(app, ["stop", "--version", release.version])
        assert stopped.stdout == f"opensearch {release.version} at {url} stopped\n"
        nothing = runner.invoke(app, ["status"])
        assert (nothing.stdout, nothing.exit_code) == ("", 0)

    @pytest.mark.long
    def test_two_that_start_at_the_same_time(self, release: versions.Release, tmp_path: Path) -> None:
        """With separate home folders they do not know each other, and may choose the same port."""
        command = [sys.executable, "-m", "es_neardupe", "node", "start", "--heap", "256m", "--json"]
        homes = [tmp_path / "one", tmp_path / "two"]
        environments = [{**os.environ, "ES_NEARDUPE_HOME": str(one)} for one in homes]
        try:
            running = [subprocess.Popen(command, env=env, stdout=subprocess.PIPE) for env in environments]
            found = [json.loads(process.communicate(timeout=120)[0]) for process in running]
            assert len({one["port"] for one in found}) == 2
            for one in found:
                process = ask("GET", f"{one['url']}/_nodes/_local/process?filter_path=nodes.*.process.id")
                assert [each["process"]["id"] for each in process["nodes"].values()] == [one["pid"]]
        finally:
            for env in environments:
                subprocess.run([*command[:4], "stop"], env=env, check=True, capture_output=True)

    def test_a_crash_of_the_server_itself_is_told(self, release: versions.Release, home: Path) -> None:
        data = home / "broken"
        (data / "config").mkdir(parents=True)
        (data / "node_1").mkdir()
        (data / "node_1/data").write_text("a file where a folder belongs", "utf-8")
        with pytest.raises(NodeError, match=r"(?s)exited during startup. The last lines of .*\.log:.*node_1/data"):
            control.start(release.server, data=data)
        assert control.status() == state.Status((), (), ())
