"""The HTTP interface of `serve` does what its OpenAPI document says: schemathesis draws requests from it, valid and
invalid ones, and checks each answer. Many programs are made from that document."""

from __future__ import annotations

import base64
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from drivers import fetch
from secured import Secured
from secured_users import NEWS
from server_tools import JSON, family, make_index, put, words

from es_neardupe import NearDupe, Settings, folders
from es_neardupe.server.client import Client

PROPERTIES: JSON = {"title": {"type": "text"}, "body": {"type": "text"}, "part": {"type": "keyword"}}
PROPERTIES["site"] = {"type": "keyword"}
SOURCES: JSON = {
    f"{name}/{n} ü": {"title": f"{name} {n}", "body": text, "part": f"{name}{n}"}
    for name in ("large", "small")
    for n, text in enumerate([*family(name, 3), " ".join(words(name, 40))])
}


TOKEN = "a-token-of-the-tests-0123456789"


def begun(client: Client, name: str) -> NearDupe:
    make_index(client, name, PROPERTIES)
    put(client, name, SOURCES)
    news = NearDupe(name, client)
    news.init(Settings(("body",), sample_mod=4))
    news.enrich()
    news.group(evidence=True)
    for author in ("ada", "ben"):
        news.decide("same", "large/0 ü", ["large/1 ü"], author=author)
    return news


@contextmanager
def served(name: str, *options: str, environment: Mapping[str, str] | None = None) -> Iterator[str]:
    """The address of the application, while it runs."""
    command = [sys.executable, "-m", "es_neardupe", "serve", name, "--port", "0", "--allow-decisions", *options]
    variables = {**os.environ, **(environment or {})}
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=variables) as program:
        assert program.stdout is not None
        try:
            yield program.stdout.readline().strip().partition("?")[0].rstrip("/")
        finally:
            program.terminate()
            _, logged = program.communicate(timeout=60)
    assert program.returncode == 0, logged
    assert "Traceback" not in logged, logged


def drawn(address: str, login: str, folder: Path, *options: str) -> None:
    """Draw requests with a login, and check their answers. A parameter that only the command can judge has a value that
    it takes."""
    after = {}
    for path in ("groups", "decisions"):
        answer = httpx.get(f"{address}/api/{path}?size=1", headers={"Authorization": login})
        after[path] = json.dumps(answer.json()["after"])
    (folder / "schemathesis.toml").write_text(
        f"""
        [[operations]]
        include-path = "/groups"
        parameters = {{ q = "large", value = "part:large0", after = {after["groups"]} }}
        [[operations]]
        include-path = "/decisions"
        parameters = {{ after = {after["decisions"]} }}
        [[operations]]
        include-path = "/groups/{{group}}/collation"
        parameters = {{ reference = "large0" }}
        [[operations]]
        include-path = "/documents"
        parameters = {{ by = "part" }}
        [[operations]]
        include-path = "/similar"
        parameters = {{ within = ["site"], across = "part" }}
        """,
        "utf-8",
    )
    run = [sys.executable, "-m", "schemathesis.cli", "run", f"{address}/api/openapi.json"]
    run += [
        "--header",
        f"Authorization: {login}",
        "--continue-on-failure",
        "--generation-database",
        "none",
        "--no-shrink",
    ]
    found = subprocess.run(
        [*run, "--phases", "coverage,fuzzing", *options], cwd=folder, capture_output=True, text=True, check=False
    )
    assert found.returncode == 0, found.stdout + found.stderr


def test_valid_requests(client: Client, index_name: str, server_url: str, tmp_path: Path) -> None:
    begun(client, index_name)
    with served(index_name, "--url", server_url, "--token", TOKEN) as address:
        drawn(address, f"Bearer {TOKEN}", tmp_path, "--mode", "positive", "--max-examples", "1", "--seed", "1")


@pytest.mark.long
def test_many_requests(client: Client, index_name: str, server_url: str, tmp_path: Path) -> None:
    """Invalid ones as well, and others in each run."""
    begun(client, index_name)
    with served(index_name, "--url", server_url, "--token", TOKEN) as address:
        drawn(address, f"Bearer {TOKEN}", tmp_path, "--max-examples", "50")


@pytest.mark.long
def test_many_requests_with_logins(secured_server: Secured, tmp_path: Path) -> None:
    with secured_server.client("admin") as client:
        begun(client, NEWS)
    login = base64.b64encode(f"admin:{secured_server.users['admin'].password}".encode()).decode()
    with served(NEWS, "--auth-proxy", environment=secured_server.environment("admin")) as address:
        drawn(address, f"Basic {login}", tmp_path, "--max-examples", "20")


CLIENT = """
import sys

from neardupe_client import AuthenticatedClient
from neardupe_client.api.default import compare_documents, decisions, group, groups, similar_to_text, statistics
from neardupe_client.api.default import store_decision, withdraw_decision
from neardupe_client.models import PartsQuery, ProblemAnswer, SimilarQuery, VerdictQuery, VerdictQueryVerdict

address, token = sys.argv[1:]
client = AuthenticatedClient(base_url=f"{address}/api", token=token)
page = groups.sync(client=client, size=1)
assert len(page.groups) == 1 and page.total == 2, page
again = groups.sync(client=client, size=1, after=page.after)
assert again.groups[0].group != page.groups[0].group, again
a, b, *_ = [one.id for one in group.sync(page.groups[0].group, client=client).members]
assert compare_documents.sync(client=client, a=a, b=b).measures[0].value > 0.5
assert statistics.sync(client=client).scope.documents == 8
assert similar_to_text.sync(client=client, body=SimilarQuery(text="nothing like it")).hits == []
for author, query in (
    ("ann", VerdictQuery(author="ann", verdict=VerdictQueryVerdict.DIFFERENT, id=a, others=[b])),
    ("bea", PartsQuery(author="bea", parts=[[a], [b]])),
):
    (stored,) = store_decision.sync(client=client, body=query).decisions
    assert stored in decisions.sync(client=client, author=author).decisions
    assert withdraw_decision.sync(stored.id, client=client).withdrawn
for refused, status in (
    (compare_documents.sync(client=client, a=a, b="none"), 404),
    (groups.sync(client=client, size=0), 400),
    (statistics.sync(client=AuthenticatedClient(base_url=f"{address}/api", token="wrong")), 401),
):
    assert isinstance(refused, ProblemAnswer) and refused.status == status, refused
"""


@pytest.mark.long
def test_a_generated_client(client: Client, index_name: str, server_url: str, tmp_path: Path) -> None:
    """Made without warnings, it reads and decides. Its generator needs another typer than the tests."""
    folder = folders.cache() / "openapi-python-client"
    fetch("openapi-python-client", folder)
    begun(client, index_name)
    (tmp_path / "config.yaml").write_text("post_hooks: []\npackage_name_override: neardupe_client\n", "utf-8")
    (tmp_path / "use.py").write_text(CLIENT, "utf-8")

    def python(*arguments: str) -> str:
        variables = {**os.environ, "PYTHONPATH": str(folder)}
        command = [sys.executable, *arguments]
        done = subprocess.run(command, cwd=tmp_path, env=variables, capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stdout + done.stderr
        return done.stdout

    with served(index_name, "--url", server_url, "--token", TOKEN) as address:
        found = httpx.get(f"{address}/api/openapi.json", headers={"Authorization": f"Bearer {TOKEN}"})
        (tmp_path / "openapi.json").write_text(found.text, "utf-8")
        options = ["--path", "openapi.json", "--meta", "none", "--config", "config.yaml"]
        said = python("-m", "openapi_python_client", "generate", *options, "--output-path", "neardupe_client")
        assert said == "Generating neardupe_client\n"
        python("use.py", address, TOKEN)
