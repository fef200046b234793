"""`pipeline` on real servers: what it stores and sets, what it refuses, and the other commands that know it.

The keys that the pipeline makes: tests/servers/test_pipeline_keys.py and test_pipeline_writes.py.
"""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import java_client
import pytest
from conftest import Cli
from opensearchpy import OpenSearch, helpers
from rollover_tools import rolled
from server_tools import (
    JSON,
    TEXT,
    delete_all,
    family,
    groups_of,
    hits,
    make_index,
    new_name,
    one_line,
    plain_request,
    put,
    runs_painless,
)

from es_neardupe import NearDupe, Settings
from es_neardupe.errors import IndexUnusable, NotFound, SettingsError, Unreachable, UnsupportedServer
from es_neardupe.index.on_server import ingest_pipeline
from es_neardupe.index.on_server import painless as keys_painless
from es_neardupe.index.on_server.ingest_pipeline import check_ingest_nodes, check_painless, pipeline_body, pipeline_name
from es_neardupe.index.on_server.painless import Script, fingerprint_script
from es_neardupe.local_server import versions
from es_neardupe.server.client import Client, ForwardingClient, path

pytestmark = pytest.mark.product("opensearch")

ARTICLES = Path(__file__).parents[2] / "docs" / "articles.jsonl"
SETTINGS = Settings(("text",))
DEFAULT, FINAL = "index.default_pipeline", "index.final_pipeline"


@pytest.fixture
def news(painless: Client, index_name: str) -> Iterator[NearDupe]:
    """An index that was initialised; its pipelines are deleted after the test."""
    make_index(painless, index_name)
    opened = NearDupe(index_name, painless)
    opened.init(SETTINGS)
    yield opened
    for name, body in pipelines(painless).items():
        if index_name in str(body):
            painless.request("DELETE", path("_ingest", "pipeline", name))


def pipelines(client: Client) -> JSON:
    """The pipelines of the server."""
    try:
        stored: JSON = client.request("GET", path("_ingest", "pipeline"))
    except NotFound:
        return {}
    return stored


def pipelines_for(client: Client, index: str) -> set[str]:
    """The names of those that make keys of an index."""
    return {name for name, body in pipelines(client).items() if body.get("description", "").endswith(f" for {index}")}


def used(client: Client, index: str) -> tuple[str | None, str | None]:
    """The default and the final pipeline of an index."""
    (stored,) = client.request("GET", path(index, "_settings"), params={"flat_settings": True}).values()
    return stored["settings"].get(DEFAULT), stored["settings"].get(FINAL)


def use(client: Client, index: str, setting: str, name: str | None) -> None:
    client.request("PUT", path(index, "_settings"), body={setting: name})


def index_one(client: Client, index: str, id: str = "d", text: str = "The text of a document.") -> tuple[int, JSON]:
    """Status and stored fields of a document that an application indexes."""
    status, answer = plain_request(client, "PUT", f"/{index}/_doc/{id}?refresh=true", {"text": text})
    if status >= 400:
        return status, answer
    (source,) = (hit["_source"] for hit in hits(client, index) if hit["_id"] == id)
    return status, source.get("neardupe", {})


def pipeline_check(news: NearDupe) -> list[str]:
    """The level of the check of `doctor`."""
    return [one.level for one in news.doctor() if one.name == "pipeline"]


def test_install_show_check_remove(painless: Client, news: NearDupe, server_cli: Cli) -> None:
    name, index = pipeline_name(news.name, SETTINGS), news.name
    assert (news.pipeline().state, pipeline_check(news)) == ("none", [])
    absent = server_cli("pipeline", index, "check")
    assert (absent.code, "no pipeline: documents get their keys by" in absent.out) == (1, True)
    tried = server_cli("pipeline", index, "install", "--default", "--dry-run", "--show-requests", "5", "--json").json
    assert [(one["method"], one["path"]) for one in tried["requests"]] == [
        ("PUT", f"/_ingest/pipeline/{name}"),
        ("PUT", f"/{index}/_settings"),
    ]
    assert (tried["state"], tried["changed"], tried["different"]) == ("default", [index], 0)
    assert (pipelines_for(painless, index), used(painless, index)) == (set(), (None, None))
    assert index_one(painless, index)[1] == {}

    done = server_cli("pipeline", index, "install", "--default")
    assert (done.code, done.err) == (0, "")
    assert f"Pipeline {name}: the keys of {tried['texts']} texts are those of this program." in done.out
    assert (pipelines_for(painless, index), used(painless, index)) == ({name}, (name, None))
    assert index_one(painless, index)[1]["state"] == "signed"
    again = news.pipeline("install", default=True)
    assert (again.changed, again.state, pipeline_check(news)) == ((), "default", ["ok"])
    assert "default pipeline" in server_cli("pipeline", index).out
    checked = server_cli("pipeline", index, "check", "--json")
    assert (checked.code, checked.json["texts"] > 50, checked.json["different"]) == (0, True, 0)

    would = server_cli("pipeline", index, "remove", "--dry-run", "--json").json
    assert (would["changed"], would["deleted"], used(painless, index)) == ([index], [name], (name, None))
    assert f"Pipeline {name} deleted." in server_cli("pipeline", index, "remove").out
    assert (pipelines_for(painless, index), used(painless, index)) == (set(), (None, None))
    assert news.pipeline("remove").changed == ()
    assert index_one(painless, index)[1] == {}


def test_documents_and_searches_of_applications_without_a_change(
    painless: Client, index_name: str, server_cli: Cli
) -> None:
    """The first lines of docs/pipeline.md."""
    make = ("init", index_name, "--field", "body", "--create", "--group-field", index_name.replace("-", "_"))
    line: tuple[str, ...]
    for line in (make, ("pipeline", index_name, "install", "--default")):
        assert server_cli(*line).code == 0
    for article in map(json.loads, ARTICLES.read_text("utf-8").splitlines()):
        plain_request(painless, "PUT", f"/{index_name}/_doc/{article['id']}?refresh=true", article)
    for line in (("group", index_name), ("fold", index_name, "install", "--yes")):
        assert server_cli(*line).code == 0
    query = {"query": {"match": {"body": "bridge harbour"}}}
    _, answer = plain_request(painless, "POST", f"/{index_name}/_search", query)
    assert [hit["_id"] for hit in answer["hits"]["hits"]] == ["1001", "1008"]
    assert answer["hits"]["total"]["value"] == 5
    assert NearDupe(index_name, painless).clean().unfolded == (index_name,)


def test_final_and_only_stored(painless: Client, news: NearDupe) -> None:
    """The role can be changed; without options it stays."""
    name, index = pipeline_name(news.name, SETTINGS), news.name
    assert (news.pipeline("install").state, used(painless, index)) == ("stored", (None, None))
    assert index_one(painless, index)[1] == {}
    assert (news.pipeline("install", final=True).state, used(painless, index)) == ("final", (None, name))
    assert (news.pipeline("install").state, used(painless, index)) == ("final", (None, name))
    plain_request(painless, "PUT", f"/{index}/_doc/d?refresh=true&pipeline=_none", {"text": "another text"})
    assert hits(painless, index)[0]["_source"]["neardupe"]["state"] == "short"
    assert (news.pipeline("install", default=True).state, used(painless, index)) == ("default", (name, None))
    with pytest.raises(SettingsError, match="omit one of them"):
        news.pipeline("install", default=True, final=True)
    with pytest.raises(SettingsError, match="options of the action install"):
        news.pipeline("remove", default=True)
    with pytest.raises(SettingsError, match="choose show, install, check, remove"):
        news.pipeline("instal")


def test_another_pipeline_is_not_replaced(painless: Client, news: NearDupe, server_cli: Cli) -> None:
    """The stored pipeline can be called by it, and then is not deleted."""
    name, index = pipeline_name(news.name, SETTINGS), news.name
    theirs = f"{index}-theirs"
    painless.request("PUT", path("_ingest", "pipeline", theirs), body={"processors": []})
    for setting, option in ((DEFAULT, "--default"), (FINAL, "--final")):
        use(painless, index, setting, theirs)
        refused = one_line(server_cli("pipeline", index, "install", option).err)
        assert f"pipeline {theirs} already, which is not replaced" in refused
        assert (news.pipeline("remove").changed, pipelines_for(painless, index)) == ((), set())
        use(painless, index, setting, None)
    use(painless, index, DEFAULT, theirs)
    assert news.pipeline("install").state == "stored"
    painless.request("PUT", path("_ingest", "pipeline", theirs), body={"processors": [{"pipeline": {"name": name}}]})
    assert index_one(painless, index)[1]["state"] == "signed"
    assert used(painless, index) == (theirs, None)
    kept = server_cli("pipeline", index, "remove")
    assert (kept.code, f"It is still used by: pipeline {theirs}." in kept.err) == (0, True)
    assert index_one(painless, index)[1]["state"] == "signed"
    with pytest.raises(IndexUnusable, match=f"is also used by pipeline {theirs}: remove it there first"):
        news.clean()
    painless.request("PUT", path("_ingest", "pipeline", theirs), body={"processors": []})
    assert news.clean().deleted_pipelines == (name,)


def test_other_users_of_a_pipeline(painless: Client, news: NearDupe) -> None:
    """Another index and a template: it is deleted when nothing uses it any more."""
    name, index = pipeline_name(news.name, SETTINGS), news.name
    news.pipeline("install", default=True)
    make_index(painless, f"{index}-copy", settings={DEFAULT: name})
    template = {"index_patterns": [f"{index}-later*"], "template": {"settings": {DEFAULT: name}}}
    painless.request("PUT", path("_index_template", index), body=template)
    try:
        removed = news.pipeline("remove")
        assert (removed.changed, removed.deleted) == ((index,), ())
        assert removed.kept == {name: (f"index {index}-copy", f"index template {index}")}
        assert index_one(painless, f"{index}-copy")[0] == 201
    finally:
        painless.request("DELETE", path("_index_template", index))
    use(painless, f"{index}-copy", DEFAULT, None)
    assert news.pipeline("remove").deleted == (name,)


class Dying(ForwardingClient):
    """Fails at a write, as if the program had been killed."""

    def __init__(self, client: Client, writes: int) -> None:
        super().__init__(client)
        self.writes = writes

    def request(self, method: str, path: str, **options: Any) -> Any:
        if method in ("PUT", "DELETE"):
            self.writes -= 1
            if self.writes < 0:
                raise Unreachable("killed")
        return self.plain.request(method, path, **options)


@pytest.mark.parametrize(("action", "lives"), [*(("install", n) for n in range(3)), *(("remove", n) for n in range(2))])
def test_killed_at_any_write(painless: Client, news: NearDupe, action: str, lives: int) -> None:
    """At each moment the server accepts documents; after another run, the end is the same."""
    index, options = news.name, {"default": True} if action == "install" else {}
    if action == "install":  # in the place of an outdated one
        old = Settings(("text",), threshold=0.5)
        name = pipeline_name(index, old)
        painless.request("PUT", path("_ingest", "pipeline", name), body=pipeline_body(index, old))
        use(painless, index, DEFAULT, name)
    else:
        news.pipeline("install", default=True)
    with pytest.raises(Unreachable):
        NearDupe(index, Dying(painless, lives)).pipeline(action, **options)
    assert index_one(painless, index)[0] == 201
    news.pipeline(action, **options)
    left = {pipeline_name(index, SETTINGS)} if action == "install" else set()
    assert (pipelines_for(painless, index), {*used(painless, index)}) == (left, left | {None})


def test_another_name_of_the_index(painless: Client, news: NearDupe) -> None:
    """By an alias, the same pipeline is found, checked and removed; a copy of the index that uses it keeps it."""
    index = news.name
    body = {"actions": [{"add": {"index": index, "alias": f"{index}-alias"}}]}
    painless.request("POST", path("_aliases"), body=body)
    alias = NearDupe(f"{index}-alias", painless)
    name = alias.pipeline("install", default=True).pipeline
    shown = news.pipeline("install")
    assert (shown.pipeline, shown.state, shown.changed, pipeline_check(news)) == (name, "default", (), ["ok"])
    assert news.pipeline("check").different == 0
    make_index(painless, f"{index}-copy", settings={DEFAULT: name})
    assert (news.clean().deleted_pipelines, used(painless, index)) == ((), (None, None))
    use(painless, f"{index}-copy", DEFAULT, None)
    news.init(SETTINGS)
    assert alias.pipeline("remove").deleted == (name,)


@pytest.mark.parametrize("role", ["default", "final"])
def test_an_index_without_the_pipeline_of_the_others(painless: Client, server_cli: Cli, role: str) -> None:
    """After a rollover, `doctor` names the command that lets the pipeline process the new index too."""
    with rolled(painless, "stream") as logs:
        news = NearDupe(logs.name, painless)
        news.init(SETTINGS)
        name = server_cli("pipeline", logs.name, "install", f"--{role}", "--json").json["pipeline"]
        new = logs.roll()
        news.enrich()  # prepares the new index
        assert (used(painless, new), news.pipeline().state) == ((None, None), "partly")
        (message,) = (one.message for one in news.doctor() if one.name == "pipeline")
        command = message.split("`")[1]
        assert command == f"es-neardupe pipeline {logs.name} install --{role}"
        assert server_cli(*command.split()[1:]).code == 0
        assert (name in used(painless, new), news.pipeline().state, pipeline_check(news)) == (True, role, ["ok"])
        assert news.pipeline("remove").deleted == (name,)


def test_a_changed_pipeline_is_not_replaced(painless: Client, news: NearDupe) -> None:
    name = pipeline_name(news.name, SETTINGS)
    painless.request("PUT", path("_ingest", "pipeline", name), body={"processors": [], "description": "mine"})
    with pytest.raises(IndexUnusable, match="is not as this program makes it"):
        news.pipeline("install", default=True)
    assert used(painless, news.name) == (None, None)
    painless.request("DELETE", path("_ingest", "pipeline", name))


def test_a_deleted_pipeline(painless: Client, news: NearDupe, server_cli: Cli) -> None:
    """The server rejects documents of an index whose pipeline was deleted."""
    name, index = pipeline_name(news.name, SETTINGS), news.name
    news.pipeline("install", default=True)
    for repair, made in (("install", "signed"), ("remove", None)):
        painless.request("DELETE", path("_ingest", "pipeline", name))
        status, answer = index_one(painless, index)
        assert (status, "does not exist" in str(answer)) == (400, True)
        assert (news.pipeline().state, pipeline_check(news)) == ("missing", ["error"])
        assert server_cli("pipeline", index, "check").code == 1
        assert server_cli("doctor", index).code == 1
        news.pipeline(repair)
        assert index_one(painless, index)[1].get("state") == made


def with_other_keys(
    made: Callable[..., Script], old: str = "y *= -1028477387;", new: str = "y *= -1028477389;"
) -> Callable[..., Script]:
    def changed(*arguments: Any, **options: Any) -> Script:
        script = made(*arguments, **options)
        assert old in script.source
        return script._replace(source=script.source.replace(old, new))

    return changed


def test_a_server_that_makes_other_keys(
    painless: Client, news: NearDupe, server_cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As by another version of Painless: nothing is stored. A stored pipeline is checked again."""
    index = news.name
    with monkeypatch.context() as patched:
        patched.setattr(ingest_pipeline, "fingerprint_script", with_other_keys(fingerprint_script))
        refused = one_line(server_cli("pipeline", index, "install", "--default").err)
        assert "bands is [" in refused
        assert "for the text 'a'" in refused
        with pytest.raises(UnsupportedServer, match="are not those of this program"):
            news.pipeline("install", dry_run=True)
        assert (pipelines_for(painless, index), used(painless, index)) == (set(), (None, None))
        patched.setattr(ingest_pipeline, "check_texts", lambda: [""])
        name = news.pipeline("install").pipeline
    stored = painless.request("GET", path("_ingest", "pipeline", name))[name]
    right = news.pipeline("install", default=True).pipeline
    painless.request("PUT", path("_ingest", "pipeline", right), body=stored)
    checked = server_cli("pipeline", index, "check")
    assert (checked.code, "texts get other keys than by this program: bands is" in checked.out) == (1, True)


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("Normalizer.Form", "Normalizer.NoForm", r"cannot run the script that makes the keys \(compile error\)"),
        ("made['tokens'] = 0;", "made['tokens'] = params.fields.get(9);", "error is 'the script failed', not None"),
    ],
)
def test_a_server_that_cannot_run_the_script(
    painless: Client, news: NearDupe, monkeypatch: pytest.MonkeyPatch, old: str, new: str, message: str
) -> None:
    """A script that cannot be compiled, and one that fails."""
    made = with_other_keys(fingerprint_script, old, new)
    monkeypatch.setattr(ingest_pipeline, "fingerprint_script", made)
    with pytest.raises(UnsupportedServer, match=message):
        news.pipeline("install", default=True)
    assert (pipelines_for(painless, news.name), used(painless, news.name)) == (set(), (None, None))


def test_a_script_that_is_too_large(painless: Client, news: NearDupe, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(keys_painless, "MAX_SCRIPT", 20_000)
    with pytest.raises(SettingsError, match="servers accept 20,000"):
        news.pipeline("install", default=True)
    assert (pipelines_for(painless, news.name), used(painless, news.name)) == (set(), (None, None))


def test_other_settings_make_it_outdated(painless: Client, news: NearDupe) -> None:
    index = news.name
    old = news.pipeline("install", final=True).pipeline
    news.init(Settings(("text",), group_field="story"))
    assert (news.pipeline().state, pipeline_check(news)) == ("outdated", ["warning"])
    new = news.pipeline("install")
    assert (new.deleted, new.state, used(painless, index)) == ((old,), "final", (None, new.pipeline))
    assert new.pipeline != old
    stored = index_one(painless, index)[1]
    assert hits(painless, index)[0]["_source"]["story"] == stored["group"]
    assert news.enrich().writes.written == 0


def test_migrate_installs_the_pipeline_of_the_new_settings(
    painless: Client, news: NearDupe, server_cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    index = news.name
    put(painless, index, {f"d{n}": {"text": text} for n, text in enumerate(family("migrated", 3))})
    news.enrich()
    old = news.pipeline("install", default=True).pipeline
    with monkeypatch.context() as patched:
        patched.setattr(ingest_pipeline, "fingerprint_script", with_other_keys(fingerprint_script))
        with pytest.raises(UnsupportedServer, match="are not those of this program"):
            news.migrate(threshold=0.5)
    assert (news.pipeline().state, pipelines_for(painless, index)) == ("default", {old})
    done = server_cli("migrate", index, "--threshold", "0.5", "--yes")
    assert done.code == 0, done.err
    (name,) = pipelines_for(painless, index)
    assert f"Ingest pipeline {name} of the new settings installed." in done.out
    assert (name != old, used(painless, index), news.pipeline().state) == (True, (name, None), "default")
    new = index_one(painless, index, "new")[1]
    assert {hit["_source"]["neardupe"]["scheme"] for hit in hits(painless, index)} == {new["scheme"]}
    assert news.enrich().writes.written == 0

    theirs = f"{index}-theirs"
    calls = {"processors": [{"pipeline": {"name": name}}]}
    painless.request("PUT", path("_ingest", "pipeline", theirs), body=calls)
    news.migrate(threshold=0.8, prepare=True)
    assert index_one(painless, index, "between")[1]["scheme"] == new["scheme"]
    report = news.migrate()
    assert report.outdated_pipelines == {name: (f"pipeline {theirs}",)}
    assert report.pipeline is not None
    assert used(painless, index) == (report.pipeline, None)
    assert {hit["_source"]["neardupe"]["scheme"] for hit in hits(painless, index)} == {report.scheme}


def test_a_dry_run_of_migrate_reports_a_pipeline_that_stays(painless: Client, news: NearDupe, server_cli: Cli) -> None:
    """A dry run of an index without documents goes through all steps: it reports what the migration does."""
    old = news.pipeline("install", default=True).pipeline
    copy = f"{news.name}-copy"
    make_index(painless, copy, settings={DEFAULT: old})
    warned = server_cli("migrate", news.name, "--threshold", "0.7", "--dry-run").err
    assert f"Pipeline {old} makes keys of the old settings, and is still used by: index {copy}." in warned
    dry, done = news.migrate(threshold=0.7, dry_run=True), news.migrate(threshold=0.7)
    assert dry.outdated_pipelines == {old: (f"index {copy}",)}
    assert replace(dry, state="done", dry_run=False) == done


def test_clean_removes_the_pipeline_first(painless: Client, news: NearDupe, server_cli: Cli) -> None:
    index = news.name
    name = news.pipeline("install", default=True).pipeline
    index_one(painless, index)
    tried = server_cli("clean", index, "--dry-run", "--json", "--show-requests", "2").json
    assert (tried["deleted_pipelines"], used(painless, index)) == ([name], (name, None))
    assert [one["path"] for one in tried["requests"]] == [f"/{index}/_settings", f"/_ingest/pipeline/{name}"]
    assert f"Ingest pipeline {name} deleted." in server_cli("clean", index, "--yes").out
    assert (pipelines_for(painless, index), used(painless, index)) == (set(), (None, None))
    assert hits(painless, index)[0]["_source"] == {"text": "The text of a document."}


def test_indices_without_a_pipeline(painless: Client, index_name: str, server_cli: Cli) -> None:
    """A sidecar, several indices, parents and children: refused before anything is stored."""
    one, other, children = (f"{index_name}-{name}" for name in ("one", "other", "children"))
    for name in (one, other):
        make_index(painless, name)
        NearDupe(name, painless).init(SETTINGS)
    several = one_line(server_cli("pipeline", f"{one},{other}", "install", "--default").err)
    assert "resolves to 2 indices" in several
    relation = {"type": "join", "relations": {"question": "answer"}}
    make_index(painless, children, {**TEXT, "relation": relation})
    NearDupe(children, painless).init(SETTINGS)
    assert "have a join field" in one_line(server_cli("pipeline", children, "install").err)
    NearDupe(other, painless).clean()
    NearDupe(other, painless).init(SETTINGS, sidecar=True)
    assert "are in a sidecar index" in one_line(server_cli("pipeline", other, "install", "--final").err)
    for name in (one, other, children, f"{one},{other}"):
        assert pipelines_for(painless, name) == set()
    assert used(painless, other) == (None, None)


@pytest.mark.product("elasticsearch")
def test_a_server_without_scripts(client: Client, index_name: str, server_cli: Cli) -> None:
    """Elasticsearch from pip."""
    if runs_painless(client):
        pytest.skip("this server runs Painless scripts")
    make_index(client, index_name)
    news = NearDupe(index_name, client)
    news.init(SETTINGS)
    refused = one_line(server_cli("pipeline", index_name, "install", "--default").err)
    assert "make the keys with `enrich`" in refused or "make them with `enrich`" in refused
    assert (news.pipeline().state, news.pipeline("remove").deleted, used(client, index_name)) == (
        "none",
        (),
        (None, None),
    )


@pytest.mark.smoke
def test_install_and_remove_on_older_servers(client: Client, index_name: str, server_cli: Cli) -> None:
    if not runs_painless(client):
        pytest.skip("this server runs no Painless scripts")
    make_index(client, index_name)
    news = NearDupe(index_name, client)
    news.init(SETTINGS)
    name = news.pipeline("install", default=True).pipeline
    assert index_one(client, index_name)[1]["state"] == "signed"
    assert (news.enrich().writes.written, server_cli("pipeline", index_name, "check").code) == (0, 0)
    assert (news.pipeline("remove").deleted, used(client, index_name)) == ((name,), (None, None))


@pytest.fixture
def own_node(node_with_repository: Callable[[versions.Release], Client]) -> Client:
    """An OpenSearch whose only node has no role `ingest`, and allows no inline scripts."""
    return node_with_repository(versions.pick("opensearch", "3.8"))


@pytest.mark.server
def test_no_ingest_node_and_no_scripts(own_node: Client) -> None:
    name = new_name()
    make_index(own_node, name)
    news = NearDupe(name, own_node)
    news.init(SETTINGS)
    with pytest.raises(UnsupportedServer, match="No node of this cluster has the role `ingest`"):
        check_ingest_nodes(own_node)
    with pytest.raises(UnsupportedServer, match=r"runs no Painless scripts.*script.allowed_types"):
        check_painless(own_node)
    with pytest.raises(UnsupportedServer, match="add the role to a node, or make the keys with `enrich`"):
        news.pipeline("install", default=True)
    assert (pipelines(own_node), used(own_node, name)) == ({}, (None, None))
    delete_all(own_node, name)


def test_documents_of_a_java_client_are_grouped(painless: Client, news: NearDupe, tmp_path: Path) -> None:
    """The REST client of OpenSearch for Java, plain HTTP and opensearch-py: a third of each family comes by each."""
    news.pipeline("install", default=True)
    texts = [family(f"clients{n}", 3) for n in range(5)]
    by_java = {f"java{n}": {"text": one[0]} for n, one in enumerate(texts)}
    lines = (json.dumps(part) for id, one in by_java.items() for part in ({"index": {"_id": id}}, one))
    file = tmp_path / "bulk.ndjson"
    file.write_text("".join(f"{line}\n" for line in lines), "utf-8")
    program = Path(java_client.__file__)
    subprocess.run([sys.executable, program, painless.url, news.name, file], check=True, timeout=120)
    for n, one in enumerate(texts):
        plain_request(painless, "PUT", f"/{news.name}/_doc/http{n}?refresh=true", {"text": one[1]})
    driver = OpenSearch(painless.url)
    actions = [{"_index": news.name, "_id": f"python{n}", "text": one[2]} for n, one in enumerate(texts)]
    assert helpers.bulk(driver, actions, refresh=True) == (5, [])
    driver.close()
    news.group()
    found = sorted(sorted(member.id for member in group.members) for group in groups_of(painless, news.name))
    assert found == [[f"http{n}", f"java{n}", f"python{n}"] for n in range(5)]
    assert news.enrich(check=True).writes.written == 0
