"""Operation on real servers: names of requests, logs, summaries, limits, requests shown by dry runs."""

from __future__ import annotations

import json
import logging
import re
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli

from es_neardupe import NearDupe
from es_neardupe.cli.output import ExitCode
from es_neardupe.errors import RequestError
from es_neardupe.log_events import fields_of
from es_neardupe.server.client import Client, path
from es_neardupe.server.http_client import ServerClient

pytestmark = pytest.mark.server

MARK = "unmistakable"
REGISTRY = re.compile("neardupe(_next)?-groups")
"""A hidden index, whose requests a dry run does not show."""
TEXTS = {
    "1": f"the harbour bridge stays closed until october {MARK} for repairs of its bearings and its deck",
    "2": f"the harbour bridge stays closed until october {MARK} for repairs of its bearings and its rails",
    "3": "something else altogether, which nobody could take for the text of another document",
}


@pytest.fixture
def news(client: Client, index_name: str) -> str:
    """An index with three texts, prepared for keys."""
    body = {"mappings": {"properties": {"text": {"type": "text"}}}, "settings": {"number_of_shards": 1}}
    client.request("PUT", path(index_name), body=body)
    for id, text in TEXTS.items():
        client.request("PUT", path(index_name, "_doc", id), params={"refresh": "true"}, body={"text": text})
    return index_name


def prepared(server_cli: Cli, index: str) -> None:
    assert server_cli("init", index, "--field", "text").code == 0


def task_ids(client: Client) -> set[str]:
    """The names of requests that the server lists among its tasks: that of the request for the list."""
    answer = client.request("GET", path("_tasks"), params={"actions": "cluster:monitor/tasks/lists*"})
    tasks = [task for node in answer["nodes"].values() for task in node["tasks"].values()]
    return {task["headers"].get("X-Opaque-Id", "") for task in tasks}


@pytest.mark.product("each")
def test_the_server_shows_the_names_of_requests(client: Client) -> None:
    assert any(re.fullmatch(r"es-neardupe/[0-9a-f]{8}/\d+", name) for name in task_ids(client))


def test_a_program_names_its_runs(news: str, server_url: str, caplog: pytest.LogCaptureFixture) -> None:
    with (
        caplog.at_level(logging.DEBUG, logger="es_neardupe"),
        NearDupe(news, url=server_url, run="nightly") as opened,
    ):
        names = task_ids(opened.client)
        with pytest.raises(RequestError, match=r"\[request es-neardupe/nightly/\d+\]$") as caught:
            opened.client.request("POST", path(news, "_search"), body={"query": {"nonsense": {}}})
    assert any(name.startswith("es-neardupe/nightly/") for name in names)
    logged = [fields_of(record)[1] for record in caplog.records if record.name == "es_neardupe"]
    numbers = [int(one["request"].rpartition("/")[2]) for one in logged]
    assert numbers == list(range(1, len(numbers) + 1))
    assert (logged[-1]["request"], logged[-1]["status"]) == (caught.value.request, 400)


def test_the_log_of_a_run(news: str, server_cli: Cli, tmp_path: Path) -> None:
    """One JSON object per line, each with the run, all requests named, no content of a document, and a summary."""
    prepared(server_cli, news)
    file = tmp_path / "run.json"
    how = ["--log-format", "json", "--log-level", "debug", "--summary", str(file)]
    enriched, grouped = server_cli("enrich", news, *how), server_cli("group", news, "--json", *how)
    for run, command in ((enriched, "enrich"), (grouped, "group")):
        lines = [json.loads(line) for line in run.err.splitlines()]
        assert {(one["command"], one["index"]) for one in lines} == {(command, news)}
        (name,) = {one["run"] for one in lines}
        assert lines[0]["event"] == "started"
        assert (lines[-1]["event"], lines[-1]["exit_code"]) == ("finished", 0)
        requests = [one for one in lines if one["event"] == "request"]
        assert [one["request"] for one in requests if "/_bulk" in one["path"]]
        assert {one["request"] for one in requests} == {
            f"es-neardupe/{name}/{number}" for number in range(1, len(requests) + 1)
        }
        assert MARK not in run.err
    summary = json.loads(file.read_text())
    assert summary["result"] == grouped.json
    assert (summary["scheme"], summary["run"]) == (grouped.json["scheme"], name)
    assert summary["server"]["version"]
    assert summary["error"] is None


def test_the_summary_of_a_run_that_fails(news: str, server_cli: Cli, client: Client, tmp_path: Path) -> None:
    prepared(server_cli, news)
    client.request("PUT", path(news, "_settings"), body={"index.blocks.write": True})
    file = tmp_path / "run.json"
    run = server_cli("enrich", news, "--summary", str(file))
    summary = json.loads(file.read_text())
    assert (run.code, summary["exit_code"]) == (ExitCode.FAILED, 1)
    assert (summary["error"]["kind"], summary["result"]) == ("Blocked", None)
    assert summary["server"]["url"] == client.url


def versions(client: Client, index: str) -> list[tuple[str, int]]:
    body = {"seq_no_primary_term": True, "_source": False, "sort": ["_doc"]}
    hits = client.request("POST", path(index, "_search"), body=body)["hits"]["hits"]
    return sorted((hit["_id"], hit["_seq_no"]) for hit in hits)


def masked(body: str) -> str:
    """The log without the parts that differ between runs: times, and ids of new groups."""
    return re.sub(r'"(at|group)":"[^"]*"', r'"\1":""', body)


def test_a_dry_run_shows_what_the_run_sends(
    news: str, server_cli: Cli, client: Client, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Requests are shown exactly, for each command that writes; and the dry run itself writes nothing."""
    sent: list[tuple[str, str, str]] = []
    bulk, request = ServerClient.bulk, ServerClient.request

    def noted_bulk(self: Any, body: bytes, **options: Any) -> Any:
        sent.append(("POST", "/_bulk", body.decode()))
        return bulk(self, body, **options)

    def noted_request(self: Any, method: str, path: str, *, body: Any = None, **options: Any) -> Any:
        if method == "PUT" and not REGISTRY.search(path):
            sent.append((method, path, json.dumps(body, separators=(",", ":"))))
        return request(self, method, path, body=body, **options)

    monkeypatch.setattr(ServerClient, "bulk", noted_bulk)
    monkeypatch.setattr(ServerClient, "request", noted_request)
    file = tmp_path / "more.jsonl"
    file.write_text(json.dumps({"id": "4", "text": TEXTS["1"]}) + "\n" + json.dumps({"id": "1", "text": "x"}) + "\n")
    for command in (
        ["init", news, "--field", "text"],
        ["enrich", news],
        ["load", news, str(file)],
        ["group", news],
        ["migrate", news, "--threshold", "0.5", "--prepare"],
        ["migrate", news, "--yes"],
        ["clean", news, "--yes"],
    ):
        before = versions(client, news)
        dry = server_cli(*command, "--dry-run", "--show-requests", "4", "--json")
        assert (dry.code, sent, versions(client, news)) == (0, [], before)
        shown = [(one["method"], one["path"].partition("?")[0], masked(one["body"])) for one in dry.json["requests"]]
        assert server_cli(*command, "--json").json["requests"] == []
        logged = [(method, path, masked(body)) for method, path, body in sent if not REGISTRY.search(body)]
        assert 1 <= len(shown) <= 4, command
        assert logged[: len(shown)] == shown
        sent.clear()


def test_shown_requests_on_the_terminal(news: str, server_cli: Cli) -> None:
    prepared(server_cli, news)
    run = server_cli("enrich", news, "--dry-run", "--show-requests", "1", "--batch", "1")
    head, first, second = run.out.strip().splitlines()[-3:]
    assert head.startswith("POST /_bulk?filter_path=")
    assert json.loads(first)["update"]["_index"] == news
    assert json.loads(second)["doc"]["neardupe"]["state"] == "signed"
    wet = server_cli("enrich", news, "--show-requests", "1")
    assert wet.code == ExitCode.USAGE
    assert "needs --dry-run" in wet.err


def test_limits_change_nothing_but_the_pace(news: str, server_cli: Cli, client: Client) -> None:
    """Each request has the documents of one second at most; the keys are the same."""
    prepared(server_cli, news)
    slow = server_cli("enrich", news, "--max-rate", "20", "--max-load", "2", "--json", "--workers", "4")
    assert slow.json["writes"]["written"] == 3
    again = server_cli("enrich", news, "--check", "--json")
    assert (again.json["writes"]["unchanged"], again.json["writes"]["written"]) == (3, 0)
    with NearDupe(news, url=client.url, max_rate=1000, max_load=1) as opened:
        assert opened.enrich(all=True).writes.written == 3


def test_what_migrate_has_like_all_that_write(
    news: str, server_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Limits, log, summary; and a request with an error is a failure, after which everything works as before."""
    prepared(server_cli, news)
    file = tmp_path / "run.json"
    how = ["--log-format", "json", "--summary", str(file), "--json"]
    monkeypatch.setattr("typer.confirm", lambda *_, **__: False)
    declined = server_cli("migrate", news, "--shingle", "3", *how)
    assert (declined.code, declined.json["state"]) == (ExitCode.FAILED, "prepared")
    assert (json.loads(file.read_text())["exit_code"], json.loads(declined.err.splitlines()[-1])["exit_code"]) == (1, 1)
    undo = server_cli("migrate", news, "--abort", "--dry-run", "--show-requests", "2", "--json").json["requests"]
    assert [one["path"].partition("?")[0] for one in undo] == [f"/{news}/_mapping", "/_bulk"]
    run = server_cli("migrate", news, "--yes", "--max-rate", "20", "--max-load", "2", *how)
    assert (run.code, run.json["state"], run.json["writes"]["switched"]) == (0, "done", 3)
    summary = json.loads(file.read_text())
    assert (summary["command"], summary["result"], summary["scheme"]) == ("migrate", run.json, run.json["scheme"])
