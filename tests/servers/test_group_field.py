"""`init --group-field`: every command that writes group ids keeps the copy at the top level of the documents."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli
from server_tools import JSON, change, family, hits, make_index, mapping, one_line, ours, put, versions, words

from es_neardupe import NearDupe, Settings
from es_neardupe.commands.migrate.steps import MigrationWork
from es_neardupe.errors import MappingConflict, SchemeMismatch
from es_neardupe.server.client import Client, path

STORY = "story"
PLAIN, COPIED = Settings(("text",)), Settings(("text",), group_field=STORY)
NUMBER = "12345678901234567890.5"
"""A number that a partial update would change, so the document is written as a whole."""


def copies(client: Client, name: str) -> dict[str, Any]:
    """The copy of each document, by id."""
    return {hit["_id"]: hit["_source"].get(STORY) for hit in hits(client, name)}


def assert_copied(client: Client, name: str, documents: int) -> None:
    """Every document has a group id, and its copy."""
    groups = {id: one["group"] for id, one in ours(client, name).items()}
    assert copies(client, name) == groups
    assert len(groups) == documents


def test_fields_to_show_are_those_of_the_application(client: Client, index_name: str, server_cli: Cli) -> None:
    """Also after a migration and `clean`, which leave our fields in the mapping."""
    fill(client, index_name)
    news = NearDupe(index_name, client)

    def listed() -> str:
        done = server_cli("groups", index_name, "--field", "absent")
        assert done.code == 2
        return done.err.partition("Fields: ")[2].strip()

    news.init(COPIED)
    news.enrich()
    news.group()
    assert listed() == "price, text."
    news.migrate(threshold=0.7, confirm=lambda migration: True)
    assert listed() == "price, text."
    news.clean()
    news.init(PLAIN, sidecar=True)
    news.enrich()
    news.group()
    assert listed() == "price, story, text."  # no settings say any more that the copies are ours


def of_the_application(client: Client, name: str) -> dict[str, str]:
    """All other fields of each document, with the literals of their numbers."""
    kept = {"neardupe", STORY}
    return {
        hit["_id"]: json.dumps({k: v for k, v in hit["_source"].items() if k not in kept}) for hit in hits(client, name)
    }


def fill(client: Client, name: str) -> None:
    """Three near-duplicates, a document that must be written as a whole, and one without text."""
    make_index(client, name, {"text": {"type": "text"}, "price": {"type": "double"}})
    sources: dict[str, JSON] = {f"n{k}": {"text": text, "price": k} for k, text in enumerate(family("story", 3))}
    put(client, name, sources | {"empty": {"text": ""}})
    text = " ".join(words("whole", 60))
    line = f'{{"index":{{"_index":"{name}","_id":"whole"}}}}\n{{"text":"{text}","price":{NUMBER}}}\n'
    assert not client.bulk(line.encode(), params={"refresh": "true"})["errors"]


def test_every_command_keeps_the_copy(client: Client, index_name: str, server_cli: Cli, tmp_path: Path) -> None:
    fill(client, index_name)
    before = of_the_application(client, index_name)
    started = server_cli("init", index_name, "--field", "text", "--group-field", STORY, "--json").json
    assert started["group_field"] == STORY
    news = NearDupe(index_name, client)
    news.enrich()
    assert_copied(client, index_name, 5)
    news.group()
    assert_copied(client, index_name, 5)
    assert len(set(copies(client, index_name).values())) == 3
    assert of_the_application(client, index_name) == before

    lines = tmp_path / "more.jsonl"
    lines.write_text(json.dumps({"id": "loaded", "text": family("story", 4)[3]}) + "\n", "utf-8")
    news.load([str(lines)])
    actions = [{"_index": index_name, "_id": "sent", "_source": {"text": " ".join(words("alone", 50))}}]
    put(client, index_name, {one["_id"]: one["_source"] for one in news.fingerprinted(actions)})
    assert_copied(client, index_name, 7)
    change(client, index_name, "n1", {"text": "something else, in other words"})
    put(client, index_name, {"n2": {"text": family("story", 3)[2], "price": 2}})  # without fields of ours
    change(client, index_name, "sent", {STORY: "forged"})
    assert news.watch(once=True).failed == 0
    assert_copied(client, index_name, 7)
    assert len({copies(client, index_name)[id] for id in ("n0", "n2", "loaded")}) == 1

    grouped = copies(client, index_name)
    assert news.migrate(threshold=0.7).state == "done"
    assert_copied(client, index_name, 7)
    assert copies(client, index_name) == grouped
    assert mapping(client, index_name)["_meta"]["neardupe"]["group_field"] == STORY
    assert news.enrich().writes.written == 0

    kept = of_the_application(client, index_name)
    assert news.clean().writes.left == 0
    assert not any({"neardupe", STORY} & hit["_source"].keys() for hit in hits(client, index_name))
    assert of_the_application(client, index_name) == kept
    news.init(COPIED)  # the mapping of the field stays, and no document has a value in it


def test_the_copy_is_added_to_a_grouped_index(client: Client, index_name: str) -> None:
    fill(client, index_name)
    news = NearDupe(index_name, client)
    news.init(PLAIN)
    news.enrich()
    news.group()
    grouped = ours(client, index_name)
    assert news.init(COPIED).prepared == (index_name,)
    assert news.init(PLAIN).group_field == STORY, "a stored group field is kept"
    enriched = news.enrich()
    assert (enriched.writes.written, enriched.writes.left) == (5, 0)
    assert ours(client, index_name) == grouped
    assert_copied(client, index_name, 5)
    written = versions(client, index_name)
    assert (news.enrich().writes.written, news.group().writes.written) == (0, 0)
    assert versions(client, index_name) == written
    with pytest.raises(SchemeMismatch, match="group field: story, not tale"):
        news.init(Settings(("text",), group_field="tale"))


def test_a_killed_migration_is_resumed(client: Client, index_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """A run that begins while documents are switched to the new keys knows only these."""
    fill(client, index_name)
    news = NearDupe(index_name, client)
    news.init(COPIED)
    news.enrich()
    news.group()

    def killed(work: MigrationWork) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as during:
        during.setattr(MigrationWork, "_switch_documents", killed)
        with pytest.raises(KeyboardInterrupt):
            news.migrate(threshold=0.7)
    assert_copied(client, index_name, 5)
    assert news.migrate().state == "done"
    assert mapping(client, index_name)["_meta"]["neardupe"]["group_field"] == STORY
    assert_copied(client, index_name, 5)


@pytest.mark.product("each")
def test_a_killed_clean_is_resumed(client: Client, index_name: str) -> None:
    """A document may have lost the object and not the copy, as after a write of an application."""
    fill(client, index_name)
    news = NearDupe(index_name, client)
    news.init(COPIED)
    news.enrich()
    put(client, index_name, {"n0": {"text": "again", STORY: copies(client, index_name)["n0"]}})
    assert news.clean().writes.written == 5
    assert not any({"neardupe", STORY} & hit["_source"].keys() for hit in hits(client, index_name))


def test_a_name_in_use_is_refused(client: Client, index_name: str, server_cli: Cli) -> None:
    make_index(client, index_name, {"text": {"type": "text"}, STORY: {"type": "keyword"}, "number": {"type": "long"}})
    put(client, index_name, {"1": {"text": "a", STORY: "of the application"}})
    before = mapping(client, index_name)
    with pytest.raises(MappingConflict, match="1 document has values in it"):
        NearDupe(index_name, client).init(COPIED)
    with pytest.raises(MappingConflict, match="number is mapped as long, not as keyword"):
        NearDupe(index_name, client).init(Settings(("text",), group_field="number"))
    sidecar = server_cli("init", index_name, "--field", "text", "--group-field", "other", "--sidecar")
    assert "--group-field cannot be combined with --sidecar" in one_line(sidecar.err)
    assert mapping(client, index_name) == before


def test_a_created_index_and_a_template_have_the_field(client: Client, index_name: str) -> None:
    news = NearDupe(index_name, client)
    template = news.init(COPIED, template=True).template
    assert template is not None
    news.init(COPIED, create=True)
    for mappings in (mapping(client, index_name), template["template"]["mappings"]):
        assert mappings["properties"][STORY] == {"type": "keyword"}
    client.request("PUT", path(index_name, "_doc", "1"), params={"refresh": True}, body={"text": "one"})
    news.enrich()
    assert_copied(client, index_name, 1)
