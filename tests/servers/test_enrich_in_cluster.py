"""``enrich --in-cluster``: the server makes the keys, and they are those of plain ``enrich``."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
from typing import Any

import pytest
from conftest import Cli
from server_tools import (
    JSON,
    change,
    family,
    groups_of,
    hits,
    make_index,
    one_line,
    ours,
    put,
    runs_painless,
    wait_until,
    words,
)

from es_neardupe import NearDupe, Settings
from es_neardupe.errors import IndexUnusable, NotFound, RequestError, SettingsError, UnsupportedServer
from es_neardupe.index.on_server import in_cluster
from es_neardupe.index.on_server.painless import Script
from es_neardupe.server.client import Client, path

pytestmark = pytest.mark.product("opensearch")

SETTINGS = Settings(("title", "text"))
SOURCES: dict[str, JSON] = {
    **{f"copy{n}": {"title": "One story", "text": text} for n, text in enumerate(family("cluster", 4))},
    **{f"alone{n:02}": {"text": " ".join(words(f"alone{n}", 40))} for n in range(30)},
    "empty": {"title": "", "text": None},
    "missing": {"other": 5},
    "short": {"title": "Two words"},
    "numeric": {"text": "2026 11 23"},
    "nulls": {"title": [None], "text": "three words here"},
    "many": {"title": ["one", "two"], "text": ["three", 4, True]},
    "scripts": {"title": "Straße ΣΑΣ", "text": "東京 กำ é e\u0301 ﬁ"},
}
LEFT: dict[str, JSON] = {"long": {"text": "word " * 250_000}, "fraction": {"text": 1.5}}


@pytest.fixture
def other_name(painless: Client, index_name: str) -> str:
    """A second index, deleted with the first one."""
    return f"{index_name}-other"


def opened(client: Client, name: str, sources: dict[str, JSON] = SOURCES, shards: int = 2, **settings: Any) -> NearDupe:
    properties = {"title": {"type": "text"}, "text": {"type": "text"}}
    make_index(client, name, properties, settings={"number_of_shards": shards, "number_of_replicas": 0})
    if sources:
        put(client, name, sources)
    news = NearDupe(name, client)
    news.init(Settings(("title", "text"), **settings) if settings else SETTINGS)
    return news


def enriched(client: Client, name: str) -> dict[str, JSON]:
    """Our fields of the documents that have any."""
    return {id: one for id, one in ours(client, name).items() if one}


def keys(client: Client, name: str) -> dict[str, JSON]:
    """Our fields without those that differ between runs and indices."""
    return {
        id: {field: value for field, value in one.items() if field not in ("at", "checked", "group")}
        for id, one in ours(client, name).items()
    }


@pytest.mark.parametrize("settings", [{}, {"shingle": 3, "sample_mod": 2}, {"group_field": "story"}])
def test_the_fields_are_those_of_plain_enrich(
    painless: Client, index_name: str, other_name: str, settings: dict[str, Any]
) -> None:
    news, other = (opened(painless, name, **settings) for name in (index_name, other_name))
    done, plain = news.enrich(in_cluster=True), other.enrich()
    assert keys(painless, index_name) == keys(painless, other_name)
    assert done.scope == plain.scope
    assert done.writes == plain.writes
    assert done.scope.read == done.writes.total == len(SOURCES)
    if settings.get("group_field"):
        stored = {hit["_id"]: hit["_source"] for hit in hits(painless, index_name)}
        assert all(one["story"] == one["neardupe"]["group"] for one in stored.values())
    for one in (news, other):
        one.group()
    groups = [
        [sorted(member.id for member in group.members) for group in groups_of(painless, name)]
        for name in (index_name, other_name)
    ]
    assert groups[0] == groups[1] == [["copy0", "copy1", "copy2", "copy3"]]
    assert news.enrich().writes.written == 0


def test_nothing_else_of_a_document_changes(painless: Client, index_name: str) -> None:
    """Nor does the user's pipeline run again."""
    name = f"{index_name}-users"
    body = {"processors": [{"set": {"field": "indexed", "value": "again"}}]}
    painless.request("PUT", path("_ingest", "pipeline", name), body=body)
    try:
        sources = {"d": {"text": "One text.", "number": 12345678901234567, "rate": 1.25, "deep": {"a": [None, {}]}}}
        news = opened(painless, index_name, sources)
        painless.request("PUT", path(index_name, "_settings"), body={"index.default_pipeline": name})
        assert news.enrich(in_cluster=True).writes.written == 1
        (hit,) = hits(painless, index_name)
        assert {field: value for field, value in hit["_source"].items() if field != "neardupe"} == sources["d"]
    finally:
        painless.request("PUT", path(index_name, "_settings"), body={"index.default_pipeline": "_none"})
        painless.request("DELETE", path("_ingest", "pipeline", name))


def test_a_second_run_writes_what_changed(painless: Client, index_name: str) -> None:
    news = opened(painless, index_name)
    news.enrich(in_cluster=True)
    news.group()
    before = ours(painless, index_name)
    assert news.enrich(in_cluster=True).scope.read == 0
    change(painless, index_name, "alone00", {"text": "Another text."})
    change(painless, index_name, "copy1", {"other": 7})
    put(painless, index_name, {"new": {"text": "A new text."}})
    done = news.enrich(in_cluster=True)
    assert (done.scope.read, done.scope.changed, done.writes.written, done.writes.unchanged) == (3, 2, 2, 1)
    after = ours(painless, index_name)
    assert after["copy1"] == before["copy1"]
    kept = {"group": before["alone00"]["group"], "principal": None, "similarity": None}
    assert {name: after["alone00"].get(name) for name in kept} == kept
    assert news.enrich().writes.written == 0
    done = news.enrich(in_cluster=True, check=True)
    assert (done.scope.read, done.writes.unchanged) == (len(SOURCES) + 1, len(SOURCES) + 1)


def test_a_folded_index(painless: Client, index_name: str) -> None:
    """The default search pipeline does not hide documents from the updates."""
    news = opened(painless, index_name, group_field="story")
    news.enrich(in_cluster=True)
    news.group()
    news.fold("install")
    for number in range(4):
        change(painless, index_name, f"copy{number}", {"title": "Another story"})
    done = news.enrich(in_cluster=True)
    assert (done.scope.read, done.writes.written) == (4, 4)
    assert news.enrich(check=True).writes.written == 0


def test_keys_that_somebody_changed_are_made_again(painless: Client, index_name: str) -> None:
    news = opened(painless, index_name)
    news.enrich()
    news.group()
    before = ours(painless, index_name)
    change(painless, index_name, "copy2", {"neardupe": {"bands": ["forged"]}})
    assert news.enrich(in_cluster=True).writes.written == 1
    after = ours(painless, index_name)
    assert {name: value for name, value in after["copy2"].items() if name != "at"} == {
        name: value for name, value in before["copy2"].items() if name not in ("at", "checked")
    }


def test_what_the_script_leaves_is_counted_and_made_by_plain_enrich(painless: Client, index_name: str) -> None:
    news = opened(painless, index_name, SOURCES | LEFT)
    done = news.enrich(in_cluster=True)
    assert (done.writes.written, done.writes.failed, done.writes.left) == (len(SOURCES), 2, 2)
    assert done.writes.total == done.scope.read == len(SOURCES) + 2
    assert "1,000,000 characters" in done.writes.failures[0]
    assert enriched(painless, index_name).keys() == SOURCES.keys()
    change(painless, index_name, "short", {"title": 2.5})  # had keys, which are wrong now
    done = news.enrich(in_cluster=True)
    assert ours(painless, index_name)["short"].get("scheme") is None
    assert done.writes.failed == 3
    assert news.enrich().writes.written == 3
    assert news.enrich(in_cluster=True).scope.read == 0


def test_keys_of_large_texts_are_checked_by_plain_enrich(painless: Client, index_name: str) -> None:
    """To look at many of them takes more memory than a small server has."""
    large = {"large": {"text": " ".join(words("large", 500)) * 101}}
    news = opened(painless, index_name, SOURCES | large)
    assert news.enrich().writes.written == len(SOURCES) + 1
    done = news.enrich(in_cluster=True, check=True)
    assert (done.writes.unchanged, done.writes.failed, done.writes.total) == (len(SOURCES), 1, done.scope.read)
    assert "checked by plain `enrich --check`" in done.writes.failures[0]
    change(painless, index_name, "large", {"text": large["large"]["text"] + " and an end"})
    assert news.enrich(in_cluster=True, check=True).writes.written == 1  # it was written since


def test_a_dry_run_counts(painless: Client, index_name: str) -> None:
    news = opened(painless, index_name)
    done = news.enrich(in_cluster=True, dry_run=True)
    assert (done.scope.read, done.writes.written, done.writes.states) == (
        len(SOURCES),
        len(SOURCES),
        {"unknown": len(SOURCES)},
    )
    assert enriched(painless, index_name) == {}


def test_the_documents_of_a_query(painless: Client, index_name: str) -> None:
    news = opened(painless, index_name)
    done = news.enrich(in_cluster=True, query={"ids": {"values": ["copy0", "alone01", "empty"]}})
    assert done.scope.read == done.writes.written == 3
    assert enriched(painless, index_name).keys() == {"copy0", "alone01", "empty"}


def test_requests(painless: Client, index_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    opened(painless, index_name, shards=1)
    asked: list[tuple[str, dict[str, Any]]] = []
    request = type(painless).request

    def noted(self: Client, method: str, target: str, **more: Any) -> Any:
        asked.append((target, more.get("params") or {}))
        return request(self, method, target, **more)

    # Not of the instance, which all tests share: undone, the method would stay there, and hide those of its class.
    monkeypatch.setattr(type(painless), "request", noted)
    painless.pace.limit(max_rate=1000)
    try:
        NearDupe(index_name, painless).enrich(in_cluster=True, batch=10)
    finally:
        painless.pace.limit()
    updates = [params for target, params in asked if target.endswith("_update_by_query")]
    assert len(updates) == 2  # the second verifies what the first has written
    assert updates[0]["requests_per_second"] == "1000.0"
    wanted = {"scroll_size": 10, "conflicts": "proceed", "pipeline": "_none", "wait_for_completion": False}
    assert updates[0].items() >= wanted.items()
    task = next(target for target, _ in asked if target.startswith("/_tasks/"))
    with pytest.raises(NotFound):  # its result was deleted
        painless.request("GET", task)


def test_documents_that_change_meanwhile(painless: Client, index_name: str) -> None:
    news = opened(painless, index_name)
    stop = threading.Event()

    def write() -> None:
        number = 0
        while not stop.is_set():
            number += 1
            change(
                painless,
                index_name,
                f"alone{number % 30:02}",
                {"text": f"Text number {number}."},
                refresh="false",
                retry_on_conflict=20,
            )

    writer = threading.Thread(target=write)
    writer.start()
    try:
        for _ in range(3):
            done = news.enrich(in_cluster=True, batch=5)
            assert done.writes.total == done.scope.read
    finally:
        stop.set()
        writer.join()
    done = news.enrich(in_cluster=True)
    assert done.writes.left == 0
    done = news.enrich(check=True)
    assert (done.writes.written, done.writes.unchanged) == (0, len(SOURCES))


def test_new_documents_meanwhile_are_no_failures(painless: Client, index_name: str) -> None:
    """They are for the next run, and so are those that changed in the last round."""
    news = opened(painless, index_name)
    sent: list[str] = []

    def write(*_: object) -> None:
        sent.append(f"new{len(sent)}")
        for id in (sent[-1], "alone00"):
            body = {"doc": {"text": f"Text number {len(sent)}."}, "doc_as_upsert": True}
            painless.request("POST", path(index_name, "_update", id), params={"refresh": True}, body=body)

    for _ in range(2):
        done = news.enrich(in_cluster=True, progress=write)
        assert (done.writes.failed, done.writes.failures) == (0, ())
        assert done.writes.total == done.scope.read
    assert news.enrich(in_cluster=True).writes.left == 0
    done = news.enrich(check=True)
    assert (done.writes.written, done.writes.unchanged) == (0, len(SOURCES) + len(sent))


def _started(client: Client, name: str) -> subprocess.Popen[str]:
    """The command, with a rate at which it takes a minute, once its task has begun."""
    command = [sys.executable, "-m", "es_neardupe", "enrich", name, "--in-cluster", "--max-rate", "1", "--batch", "5"]
    environment = {**os.environ, "ES_NEARDUPE_URL": client.url}
    program = subprocess.Popen(
        command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    wait_until(lambda: program.poll() is not None or (_tasks(client, name) and len(enriched(client, name)) > 0))
    assert program.poll() is None
    return program


def _tasks(client: Client, name: str) -> list[str]:
    params = {"actions": "*byquery", "detailed": "true", "group_by": "none"}
    found = client.request("GET", "/_tasks", params=params).get("tasks", [])
    return [f"{one['node']}:{one['id']}" for one in found if name in one["description"]]


def test_an_interrupted_command_cancels_its_task(painless: Client, index_name: str) -> None:
    news = opened(painless, index_name, shards=1)
    program = _started(painless, index_name)
    program.send_signal(signal.SIGINT)
    _, said = program.communicate(timeout=60)
    assert program.returncode == 130, said
    wait_until(lambda: not _tasks(painless, index_name))
    assert 0 < len(enriched(painless, index_name)) < len(SOURCES)
    assert news.enrich(in_cluster=True).writes.left == 0
    assert news.enrich(check=True).writes.unchanged == len(SOURCES)


def test_a_killed_command_is_run_again(painless: Client, index_name: str) -> None:
    """While the server still works on the task of the first one."""
    news = opened(painless, index_name, shards=1)
    program = _started(painless, index_name)
    program.kill()
    program.communicate()
    (task,) = _tasks(painless, index_name)
    done = news.enrich(in_cluster=True)
    assert done.writes.total == done.scope.read
    faster = {"requests_per_second": -1}
    painless.request("POST", path("_update_by_query", task, "_rethrottle"), params=faster)
    wait_until(lambda: not _tasks(painless, index_name))
    assert news.enrich(in_cluster=True).writes.left == 0
    assert news.enrich(check=True).writes.unchanged == len(SOURCES)


def test_a_server_that_gives_up(painless: Client, index_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    news = opened(painless, index_name)
    broken = Script("throw new Exception('x')", {})
    monkeypatch.setattr(in_cluster, "fingerprint_script", lambda *_, **__: broken)
    with pytest.raises(RequestError, match=r"The server stopped making keys in .*again") as raised:
        news.enrich(in_cluster=True)
    assert index_name in str(raised.value)
    assert enriched(painless, index_name) == {}


def test_options_that_have_no_meaning_are_refused(painless: Client, index_name: str) -> None:
    news = opened(painless, index_name, {})
    without_meaning: tuple[dict[str, Any], ...] = (
        {"slice": (1, 2)},
        {"slices": 2},
        {"all": True},
        {"workers": 4},
        {"max_chars": 100},
        {"dry_run": True, "show_requests": 2},
    )
    for more in without_meaning:
        with pytest.raises(SettingsError, match=r"`in_cluster` and .* are given: omit one"):
            news.enrich(in_cluster=True, **more)


def test_a_sidecar_is_refused(painless: Client, index_name: str) -> None:
    make_index(painless, index_name, {"text": {"type": "text"}})
    news = NearDupe(index_name, painless)
    news.init(Settings(("text",)), sidecar=True)
    with pytest.raises(IndexUnusable, match="in a sidecar index"):
        news.enrich(in_cluster=True)


def test_a_final_pipeline_is_refused(painless: Client, index_name: str) -> None:
    name = f"{index_name}-final"
    painless.request("PUT", path("_ingest", "pipeline", name), body={"processors": []})
    news = opened(painless, index_name)
    painless.request("PUT", path(index_name, "_settings"), body={"index.final_pipeline": name})
    try:
        with pytest.raises(IndexUnusable, match=r"final pipeline .* would process the documents again"):
            news.enrich(in_cluster=True)
        assert enriched(painless, index_name) == {}
    finally:
        painless.request("PUT", path(index_name, "_settings"), body={"index.final_pipeline": "_none"})
        painless.request("DELETE", path("_ingest", "pipeline", name))


def test_the_command(painless: Client, index_name: str, server_cli: Cli) -> None:
    opened(painless, index_name)
    done = server_cli("enrich", index_name, "--in-cluster", "--json")
    assert done.code == 0, done.err
    assert done.json["writes"]["written"] == len(SOURCES)


@pytest.mark.product("elasticsearch")
def test_a_server_without_scripts(client: Client, index_name: str, server_cli: Cli) -> None:
    if runs_painless(client):
        pytest.skip("this server runs Painless scripts")
    opened(client, index_name)
    with pytest.raises(UnsupportedServer):
        NearDupe(index_name, client).enrich(in_cluster=True)
    done = server_cli("enrich", index_name, "--in-cluster")
    assert done.code == 1
    assert "make the keys with `enrich`" in one_line(done.err)
    assert enriched(client, index_name) == {}


@pytest.mark.smoke
def test_older_servers(painless: Client, index_name: str, other_name: str) -> None:
    news, other = (opened(painless, name) for name in (index_name, other_name))
    news.enrich(in_cluster=True)
    other.enrich()
    assert keys(painless, index_name) == keys(painless, other_name)
    change(painless, index_name, "alone00", {"text": "Another text."})
    assert news.enrich(in_cluster=True).writes.written == 1
    assert news.enrich(check=True).writes.written == 0
