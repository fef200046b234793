"""Values of an application under the names of the `neardupe` fields, mapped or not, are never overwritten."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli
from server_tools import (
    JSON,
    TEXT,
    change,
    family,
    hits,
    make_index,
    mapping,
    one_line,
    ours,
    plain_request,
    put,
    words,
)

from es_neardupe import NearDupe, Settings
from es_neardupe.errors import MappingConflict
from es_neardupe.index.target import Definitions
from es_neardupe.server.client import Client, path

PLAIN, COPIED = Settings(("text",)), Settings(("text",), group_field="story")
FOREIGN: dict[str, JSON] = {
    "text": {"neardupe": "keep me"},
    "list": {"neardupe": ["x"]},
    "other": {"neardupe": {"group": "my own", "note": "keep"}},
    "dotted": {"neardupe.note": "keep"},
    "story": {"story": "S1"},
    "stories": {"story": ["x", "y"]},
    "object": {"story": {"a": 1}},
}
WITH_SCRIPTS = [
    pytest.param(False, marks=pytest.mark.product("each")),
    pytest.param(True, marks=pytest.mark.product("opensearch")),
]


def prepared(client: Client, name: str) -> tuple[NearDupe, dict[str, JSON]]:
    """An index with such values in fields that are not mapped, which `init` has not seen among others; and its
    documents."""
    make_index(client, name, dynamic=False)
    texts = family("foreign", len(FOREIGN) + 2)
    sources = {id: {"text": text, **one} for text, (id, one) in zip(texts, FOREIGN.items(), strict=False)}
    put(client, name, sources | {f"d{n}": {"text": text} for n, text in enumerate(texts[-2:])})
    Definitions(client, name).put_settings({}, COPIED)
    return NearDupe(name, client), sources


def stored(client: Client, name: str) -> dict[str, Any]:
    return {hit["_id"]: hit["_source"] for hit in hits(client, name)}


@pytest.mark.product("each")
@pytest.mark.parametrize("value", FOREIGN.values(), ids=list(FOREIGN))
def test_init_refuses_values_that_are_not_mapped(value: JSON, client: Client, index_name: str) -> None:
    make_index(client, index_name, dynamic=False)
    put(client, index_name, {"d": {"text": "a text", **value}, "e": {"text": "another"}})
    news, chosen = NearDupe(index_name, client), "`group_field`" if "story" in value else "`prefix`"
    with pytest.raises(MappingConflict, match=f"Document 'd' of index {index_name} has a value .* {chosen}"):
        news.init(COPIED)
    other = Settings(("text",), prefix="keys", group_field="keys_story")
    NearDupe(index_name, client, prefix="keys").init(other)
    assert stored(client, index_name)["d"] == {"text": "a text", **value}


@pytest.mark.product("elasticsearch")
@pytest.mark.parametrize("value", [{"neardupe": "mine"}, {"neardupe": {"note": "mine"}}, {"story": "S1"}])
def test_init_refuses_runtime_fields(value: JSON, client: Client, index_name: str) -> None:
    """They would hide the fields, also if no document has a value any more."""
    make_index(client, index_name, dynamic="runtime")
    put(client, index_name, {"d": {"text": "a text", **value}})
    client.request("DELETE", path(index_name, "_doc", "d"), params={"refresh": "true"})
    with pytest.raises(MappingConflict, match="is a runtime field"):
        NearDupe(index_name, client).init(COPIED)


@pytest.mark.product("each")
def test_a_group_field_that_is_added_later(client: Client, index_name: str) -> None:
    make_index(client, index_name, dynamic=False)
    put(client, index_name, {"d": {"text": "a text", "story": "S1"}})
    news = NearDupe(index_name, client)
    news.init(PLAIN)
    news.enrich()
    with pytest.raises(MappingConflict, match="has a value in 'story'"):
        news.init(COPIED)


@pytest.mark.product("each")
@pytest.mark.parametrize("mapped", [True, False])
def test_init_accepts_fields_that_it_knows(mapped: bool, client: Client, index_name: str) -> None:
    """Of an index whose `_meta` an application has replaced, and of a copied one."""
    make_index(client, index_name)
    put(client, index_name, {f"d{n}": {"text": text} for n, text in enumerate(family("known", 3))})
    news = NearDupe(index_name, client)
    news.init(COPIED)
    news.enrich()
    news.group()
    before = stored(client, index_name)
    client.request("PUT", path(index_name, "_mapping"), body={"_meta": {"app": "mine"}})
    copy = f"{index_name}_copy"
    make_index(client, copy, mapping(client, index_name)["properties"] if mapped else TEXT, dynamic=False)
    put(client, copy, {hit["_id"]: hit["_source"] for hit in hits(client, index_name)})
    for name in (index_name, copy):
        again = NearDupe(name, client)
        again.init(COPIED)
        assert again.enrich().writes.left == 0
        assert {id: one["story"] for id, one in stored(client, name).items()} == {
            id: one["story"] for id, one in before.items()
        }
        put(client, name, {"own": {"text": "a text", "story": "S1", "neardupe": before["d0"]["neardupe"]}})
        client.request("PUT", path(name, "_mapping"), body={"_meta": {}})
        with pytest.raises(MappingConflict, match=r"Document 'own' .* has a value in 'story'"):
            again.init(COPIED)


@pytest.mark.product("each")
@pytest.mark.parametrize("mapped", [True, False])
def test_an_empty_text_in_the_group_field_is_no_value(
    mapped: bool, client: Client, index_name: str, server_cli: Cli, tmp_path: Path
) -> None:
    """As an export to CSV writes it for documents without a group."""
    make_index(client, index_name, TEXT | ({"story": {"type": "keyword"}} if mapped else {}), dynamic=False)
    texts = family("empty", 3)
    put(client, index_name, {"d0": {"text": texts[0], "story": ""}})
    assert server_cli("init", index_name, "--field", "text", "--group-field", "story").code == 0
    table = tmp_path / "rows.csv"
    table.write_text(f"id,text,story\nd1,{texts[1]},\n", "utf-8")
    assert server_cli("load", index_name, str(table)).code == 0
    assert NearDupe(index_name, client).enrich().writes.failed == 0
    now = stored(client, index_name)
    assert all(one["story"] == one["neardupe"]["group"] for one in now.values())
    assert len(now) == 2


@pytest.mark.product("opensearch")
def test_the_script_in_the_cluster_replaces_an_empty_text(painless: Client, index_name: str) -> None:
    make_index(painless, index_name, dynamic=False)
    put(painless, index_name, {"d": {"text": "a text", "story": ""}})
    news = NearDupe(index_name, painless)
    news.init(COPIED)
    assert news.enrich(in_cluster=True).writes.written == 1
    assert stored(painless, index_name)["d"]["story"]


@pytest.mark.product("each")
def test_commands_leave_them(client: Client, index_name: str, server_cli: Cli) -> None:
    news, sources = prepared(client, index_name)
    enriched = server_cli("enrich", index_name, "--json")
    writes = enriched.json["writes"]
    assert (enriched.code, writes["written"], writes["failed"]) == (1, 2, len(FOREIGN))
    assert {one["id"] for one in writes["left_documents"]} == set(FOREIGN)
    for name in ("neardupe", "neardupe.note", "story"):
        why = f"{name} has a value that es-neardupe did not write: rename or remove it in the document"
        assert any(one.startswith(why) for one in writes["failures"])
    assert news.group().groups.largest == 2
    client.request("POST", path(index_name, "_update", "stories"), body={"doc": {"story": "S2"}})  # mapped now
    sources["stories"]["story"] = "S2"
    now = stored(client, index_name)
    assert {id: now[id] for id in FOREIGN} == sources
    cleaned = server_cli("clean", index_name, "--yes", "--json")
    assert (cleaned.code, cleaned.json["documents"], cleaned.json["writes"]["written"]) == (0, 2, 2)
    now = stored(client, index_name)
    assert {id: now[id] for id in FOREIGN} == sources
    assert now["d0"].keys() == now["d1"].keys() == {"text"}


@pytest.mark.product("each")
@pytest.mark.parametrize("value", ["my own", ["x", "y"]])
def test_a_migration_leaves_values_in_the_group_field(
    value: str | list[str], client: Client, index_name: str, server_cli: Cli
) -> None:
    """The settings of the new keys have no group field before the switch, which cannot be cancelled."""
    make_index(client, index_name, dynamic=False)
    news = NearDupe(index_name, client)
    news.init(COPIED)
    texts = family("foreign", 3)
    put(client, index_name, {f"d{n}": {"text": text} for n, text in enumerate(texts[:2])})
    own = {"text": texts[2], "story": value}
    put(client, index_name, {"own": own})
    assert news.enrich().writes.failed == 1
    news.group()
    for arguments in (["--threshold", "0.7"], ["--abort"], ["--threshold", "0.7"]):
        done = server_cli("migrate", index_name, *arguments, "--yes")
        assert stored(client, index_name)["own"] == own
        assert done.code == (0 if arguments == ["--abort"] else 1)
        assert ("State: prepared" in done.out) == (done.code == 1)
        assert ("Not written: story has a value that es-neardupe did not write: rename" in done.err) == bool(done.code)
    put(client, index_name, {"own": {"text": texts[2], "title": value}})
    assert server_cli("migrate", index_name, "--yes").code == 0
    now = stored(client, index_name)
    assert now["own"]["title"] == value
    assert len({one["story"] for one in now.values()}) == 1


@pytest.mark.product("each")
def test_a_group_field_that_is_added_after_documents_were_written(client: Client, index_name: str) -> None:
    """`init` looks at some documents only; the numbers of this one were checked, not its value in that field."""
    make_index(client, index_name, dynamic=False)
    texts = family("foreign", 3)
    put(
        client,
        index_name,
        {f"d{n}": {"text": text} for n, text in enumerate(texts[:2])}
        | {"own": {"text": texts[2], "story": ["x", "y"]}},
    )
    news = NearDupe(index_name, client)
    news.init(PLAIN)
    news.enrich()
    Definitions(client, index_name).put_settings(mapping(client, index_name), COPIED)
    assert news.enrich().writes.failed == 1
    assert news.group().writes.failed == 1
    assert stored(client, index_name)["own"]["story"] == ["x", "y"]


@pytest.mark.parametrize("scripts", WITH_SCRIPTS)
def test_clean_leaves_the_value_and_removes_the_object(
    scripts: bool, client: Client, index_name: str, server_cli: Cli, request: pytest.FixtureRequest
) -> None:
    """A value that an application has written into the group field since."""
    if scripts:
        request.getfixturevalue("painless")
    make_index(client, index_name, dynamic=False)
    news = NearDupe(index_name, client)
    news.init(COPIED)
    texts = family("cleaned", 3)
    put(client, index_name, {f"d{n}": {"text": text} for n, text in enumerate(texts[:2])})
    news.enrich()
    put(client, index_name, {"own": {"text": texts[2], "story": "my own"}})
    change(client, index_name, "d1", {"story": ["x", "y"]})
    planned = news.clean(dry_run=True)
    assert (planned.documents, planned.writes.written) == (2, 2)
    cleaned = server_cli("clean", index_name, "--yes", "--json")
    assert (cleaned.code, cleaned.json["documents"], cleaned.json["writes"]["written"]) == (0, 2, 2)
    assert stored(client, index_name) == {
        "d0": {"text": texts[0]},
        "d1": {"text": texts[1], "story": ["x", "y"]},
        "own": {"text": texts[2], "story": "my own"},
    }
    assert news.clean().prepared is False
    news.init(Settings(("text",), group_field="story2"))


@pytest.mark.product("opensearch")
def test_the_script_in_the_cluster_leaves_them(painless: Client, index_name: str) -> None:
    news, sources = prepared(painless, index_name)
    writes = news.enrich(in_cluster=True).writes
    assert (writes.written, writes.failed) == (2, len(FOREIGN))
    now = stored(painless, index_name)
    assert {id: now[id] for id in FOREIGN} == sources


@pytest.mark.product("opensearch")
def test_the_ingest_pipeline_leaves_them(painless: Client, index_name: str) -> None:
    """The server rejects what does not fit the mapping; nothing is replaced without a word."""
    make_index(painless, index_name, dynamic=False)
    news = NearDupe(index_name, painless)
    news.init(COPIED)
    news.pipeline("install", default=True)
    try:
        for id, value in FOREIGN.items():
            document = {"text": "a text", **value}
            status, _ = plain_request(painless, "PUT", f"/{index_name}/_doc/{id}?refresh=true", document)
            assert status == 400 or stored(painless, index_name)[id] == document
            assert (status == 201) == (id in ("story", "stories"))
        assert news.enrich().writes.failed == 2
        put(painless, index_name, {"d": {"text": "a text"}})
        assert stored(painless, index_name)["d"]["story"] == ours(painless, index_name)["d"]["group"]
    finally:
        news.pipeline("remove")


@pytest.mark.product("each")
def test_fingerprinted_leaves_them(client: Client, index_name: str) -> None:
    news, sources = prepared(client, index_name)
    actions = [{"_index": index_name, "_id": id, "_source": source} for id, source in sources.items()]
    assert list(news.fingerprinted(actions)) == actions == list(news.screened(actions))


@pytest.mark.product("opensearch")
def test_the_ingest_pipeline_replaces_fields_with_dotted_names(painless: Client, index_name: str) -> None:
    make_index(painless, index_name)
    news = NearDupe(index_name, painless)
    news.init(PLAIN)
    news.pipeline("install", default=True)
    try:
        put(painless, index_name, {"d": {"text": "a text", "neardupe.group": "g" * 16, "neardupe.tokens": 2}})
        assert stored(painless, index_name)["d"].keys() == {"text", "neardupe"}
        search = {"collapse": {"field": "neardupe.group"}}
        assert painless.request("POST", path(index_name, "_search"), body=search)["hits"]["hits"]
    finally:
        news.pipeline("remove")


@pytest.mark.parametrize("beside", [False, True])
@pytest.mark.parametrize("in_cluster", WITH_SCRIPTS)
def test_fields_with_dotted_names_become_an_object(
    beside: bool, in_cluster: bool, client: Client, index_name: str, request: pytest.FixtureRequest
) -> None:
    """As of an export with flattened columns. With two values of the group id, the server does not collapse."""
    if in_cluster:
        request.getfixturevalue("painless")
    make_index(client, index_name)
    put(client, index_name, {f"d{n}": {"text": text} for n, text in enumerate(family("dotted", 3))})
    news = NearDupe(index_name, client)
    news.init(PLAIN)
    news.enrich()
    news.group()
    fields = ours(client, index_name)["d1"]
    flat = {f"neardupe.{name}": value for name, value in fields.items() if value is not None}
    source = {"text": " ".join(words("flat", 60)), "more": {"a": 1}}
    put(client, index_name, {"flat": {**source, **flat, **({"neardupe": fields} if beside else {})}})
    search = {"collapse": {"field": "neardupe.group"}}
    assert news.enrich(in_cluster=in_cluster).writes.written == 1
    news.group()
    found = client.request("POST", path(index_name, "_search"), body=search)["hits"]["hits"]
    assert len(found) == 2
    now = stored(client, index_name)["flat"]
    assert {name: one for name, one in now.items() if name != "neardupe"} == source
    assert now["neardupe"]["principal"] is True
    assert news.enrich().scope.read == 0
    assert json.dumps(now).count("group") == 1


@pytest.mark.product("each")
def test_what_another_program_stores_in_meta(client: Client, index_name: str, server_cli: Cli) -> None:
    make_index(client, index_name, _meta={"neardupe": "mine"})
    done = server_cli("init", index_name, "--field", "text")
    assert (done.code, "choose another --prefix" in one_line(done.err)) == (1, True)
    assert server_cli("init", index_name, "--field", "text", "--prefix", "keys").code == 0
    assert mapping(client, index_name)["_meta"]["neardupe"] == "mine"


@pytest.mark.product("each")
def test_a_document_that_the_mapping_left_by_clean_rejects(client: Client, index_name: str, server_cli: Cli) -> None:
    """As the message of `clean` says."""
    make_index(client, index_name, dynamic=False)
    server_cli("init", index_name, "--field", "text")
    cleaned = server_cli("clean", index_name, "--yes")
    assert "the server can reject documents with other values of this name" in cleaned.err
    status, _ = plain_request(client, "PUT", f"/{index_name}/_doc/d", {"text": "a", "neardupe": "mine"})
    assert status == 400
