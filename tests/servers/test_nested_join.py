"""Texts in nested objects, parents and children, custom routing: read and written as the documents require."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Cli
from server_tools import JSON, change, family, hits, jaccard, make_index, mapping, ours, put, send, theirs, words

from es_neardupe import NearDupe, Settings
from es_neardupe.errors import IndexUnusable, RequestError, SchemeMismatch, SettingsError
from es_neardupe.server.client import Client, path

TEXT = {"type": "text"}
COMMENTS = {"title": TEXT, "comments": {"type": "nested", "properties": {"text": TEXT, "at": {"type": "date"}}}}
RELATIONS = {"question": ["answer", "comment"], "answer": "vote"}
FORUM = {"text": TEXT, "kind": {"type": "join", "relations": RELATIONS}}


@pytest.fixture
def forum(client: Client, index_name: str) -> str:
    """Questions (q0..q3, a family), an answer to each that repeats it, a vote, and a document without a relation."""
    try:
        make_index(client, index_name, FORUM, settings={"number_of_shards": 3})
    except RequestError as error:
        if "[join]" not in error.reason:
            raise
        pytest.skip("this server has no join fields: its module parent-join is not there")
    texts = family(index_name, 4)
    put(client, index_name, {f"q{n}": {"text": text, "kind": "question"} for n, text in enumerate(texts)})
    put(client, index_name, {"plain": {"text": texts[0]}})
    for n, text in enumerate(texts):
        put(
            client,
            index_name,
            {f"a{n}": {"text": text, "kind": {"name": "answer", "parent": f"q{n}"}}},
            routing=f"q{n}",
        )
    put(client, index_name, {"v0": {"text": texts[0], "kind": {"name": "vote", "parent": "a0"}}}, routing="q0")
    return index_name


def where(client: Client, name: str) -> dict[str, str | None]:
    """The routing of each document; the count would show an id that occurs twice."""
    found = hits(client, name)
    assert len({hit["_id"] for hit in found}) == len(found)
    return {hit["_id"]: hit.get("_routing") for hit in found}


@pytest.mark.product("opensearch")
def test_children_are_left_alone(forum: str, client: Client, server_cli: Cli) -> None:
    """Documents without the relation get no keys, are in no result, and are counted separately by every command that
    counts."""
    users, routings = theirs(client, forum), where(client, forum)
    done = server_cli("init", forum, "--field", "text")
    assert "Documents whose kind is answer or comment or vote are skipped (--relation selects relations)." in done.err
    assert "relations" not in mapping(client, forum)["_meta"]["neardupe"]
    shown = server_cli("enrich", forum)
    assert "of other relations, skipped" in shown.out
    report = NearDupe(forum, client).enrich(all=True)
    assert (report.scope.documents, report.scope.excluded, report.scope.skipped, report.writes.written) == (
        5,
        5,
        5,
        5,
    )
    assert NearDupe(forum, client).enrich(check=True).scope.read == 5
    assert NearDupe(forum, client).enrich(query={"ids": {"values": ["q0", "a0"]}}, check=True).scope.read == 1
    grouped = NearDupe(forum, client).group()
    assert (grouped.scope.documents, grouped.groups.largest, grouped.scope.unprocessed) == (5, 5, 0)
    stats = NearDupe(forum, client).stats()
    assert (stats.scope.documents, stats.scope.skipped, stats.scope.unprocessed) == (5, 5, 0)
    assert {one.level for one in NearDupe(forum, client).doctor()} == {"ok"}
    audit = NearDupe(forum, client).audit()
    assert (audit.documents, audit.recall.pairs, audit.recall.found) == (5, 10, 10)
    near = NearDupe(forum, client).similar(id="a1", min=0.8).hits
    assert {hit.id for hit in near} <= {"q0", "q1", "q2", "q3", "plain"}
    assert sum(1 + hit.copies for hit in near) == 5
    found = NearDupe(forum, client).search("*")
    assert (found.documents, found.groups, found.without_group) == (5, 1, 0)
    assert "must" in NearDupe(forum, client).search_request("bridge")["query"]["bool"]  # scored as without children
    assert {id for id, fields in ours(client, forum).items() if fields} == {"q0", "q1", "q2", "q3", "plain"}
    assert (theirs(client, forum), where(client, forum)) == (users, routings)
    assert NearDupe(forum, client).clean().writes.written == 5
    assert (theirs(client, forum), where(client, forum)) == (users, routings)


@pytest.mark.product("opensearch")
def test_chosen_relations(forum: str, client: Client, server_cli: Cli, tmp_path: Path) -> None:
    """Answers instead of questions: updates use the parent's routing, and every command has the stored scope."""
    users, routings = theirs(client, forum), where(client, forum)
    with pytest.raises(IndexUnusable, match=r"has no relation reply\. Its relations: answer, comment, question, vote"):
        NearDupe(forum, client).init(Settings(("text",), relations=("reply",)))
    assert server_cli("init", forum, "--field", "text", "--relation", "answer", "--relation", "vote").code == 0
    assert mapping(client, forum)["_meta"]["neardupe"]["relations"] == ["answer", "vote"]
    with pytest.raises(SchemeMismatch, match="relations: answer\\+vote, not all but children"):
        NearDupe(forum, client).init(Settings(("text",)))
    report = NearDupe(forum, client).enrich()
    assert (report.writes.written, report.scope.skipped) == (
        6,
        4,
    )  # 4 answers, the vote, and the one without a relation
    assert NearDupe(forum, client).group().groups.largest == 6
    change(client, forum, "a2", {"text": " ".join(words("other", 50))}, routing="q2")
    assert NearDupe(forum, client).enrich(check=True).writes.written == 1
    assert NearDupe(forum, client).group().groups.largest == 5
    assert where(client, forum) == routings
    assert {key: one for key, one in theirs(client, forum).items() if key[1] != "a2"} == {
        key: one for key, one in users.items() if key[1] != "a2"
    }
    file = tmp_path / "more.jsonl"
    lines: list[JSON] = [
        {"id": "a9", "text": "an answer from a file", "kind": {"name": "answer", "parent": "q1"}, "_routing": "q1"},
        {"id": "q9", "text": "a question from a file", "kind": "question", "_routing": "q9"},
        {"id": "a8", "text": "an answer whose parent is not told", "kind": {"name": "answer", "parent": "q1"}},
    ]
    file.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    done = server_cli("load", forum, str(file), "--routing-field", "_routing", "--json")
    assert (done.json["writes"]["written"], done.json["scope"]["bad"]) == (1, 2)
    assert "kind is 'question', which this index does not process (init --relation)" in done.err
    assert "no text or whole number in the routing field '_routing'" in done.err
    assert where(client, forum) == routings | {"a9": "q1"}
    assert server_cli("load", forum, str(file), "--routing-field", "_routing", "--json").json["scope"]["existing"] == 1
    moved = NearDupe(forum, client).migrate(threshold=0.5, sample_mod=4)
    assert (moved.state, moved.writes.switched, [one for one in moved.changes if "relations" in one]) == ("done", 7, [])
    assert mapping(client, forum)["_meta"]["neardupe"]["relations"] == ["answer", "vote"]
    assert where(client, forum) == routings | {"a9": "q1"}


@pytest.mark.product("opensearch")
def test_actions_of_ones_own(forum: str, client: Client) -> None:
    NearDupe(forum, client).init(Settings(("text",)))
    actions: list[JSON] = [
        {"_id": "q8", "text": "a question", "kind": "question"},
        {"_id": "a8", "routing": "q8", "text": "an answer", "kind": {"name": "answer", "parent": "q8"}},
        {"_op_type": "update", "_id": "q0", "doc": {"text": "which relation is not told"}},
        {"_op_type": "update", "_id": "q1", "doc": {"text": "a question all the same", "kind": "question"}},
    ]
    with NearDupe(forum, url=client.url) as dupes:
        question, answer, untold, linked = dupes.fingerprinted(actions)
    assert question["neardupe"]["state"] == "short"
    assert answer == actions[1]
    assert untold["doc"]["neardupe"] == {"scheme": None}
    assert linked["doc"]["neardupe"]["state"] == "signed"


def test_texts_of_nested_objects(client: Client, index_name: str, server_cli: Cli) -> None:
    """Texts are joined in the order of the document; the document's objects are not changed."""
    make_index(client, index_name, COMMENTS)
    base = words(index_name, 90)
    cut = [[" ".join(base)], [" ".join(base[:40]), " ".join(base[40:])], [" ".join(base[40:]), " ".join(base[:40])]]
    for n, parts in enumerate(cut):
        comments = [{"text": part, "at": "2026-01-01", "by": n} for part in parts]
        put(client, index_name, {f"d{n}": {"title": f"title {n}", "comments": comments}})
    put(client, index_name, {"one": {"comments": {"text": cut[0][0]}}, "none": {"title": "no comment at all"}})
    users = theirs(client, index_name)
    assert server_cli("init", index_name, "--field", "comments.text").code == 0
    report = NearDupe(index_name, client).enrich()
    assert (report.scope.documents, report.writes.states) == (5, {"signed": 4, "empty": 1})
    assert NearDupe(index_name, client).group().groups.grouped == 4
    same, other = NearDupe(index_name, client).similar(id="d0", min=0.5).hits
    assert (same.id in ("d1", "one"), same.similarity, same.copies) == (True, 1, 1)
    assert other.id == "d2"
    assert other.similarity == pytest.approx(jaccard(" ".join(cut[0]), " ".join(cut[2])))
    stored = ours(client, index_name)
    assert stored["d0"]["content"] == stored["d1"]["content"] == stored["one"]["content"] != stored["d2"]["content"]
    assert NearDupe(index_name, client).search(f"{base[0]} AND {base[1]}").documents == 4
    assert NearDupe(index_name, client).search("title").documents == 3
    assert theirs(client, index_name) == users
    with pytest.raises(SettingsError, match=r"comments\.at is inside the nested objects comments, where a range"):
        NearDupe(index_name, client).enrich(since=("comments.at", "2025-01-01"))
    with pytest.raises(SettingsError, match=r"no date field 'comments\.at'"):
        NearDupe(index_name, client).group(window="comments.at:3")
    assert NearDupe(index_name, client).clean().writes.written == 5
    assert theirs(client, index_name) == users


def test_routing_is_kept_by_every_command(client: Client, index_name: str, server_cli: Cli, tmp_path: Path) -> None:
    make_index(client, index_name, settings={"number_of_shards": 4}, _routing={"required": True})
    texts = family(index_name, 6)
    file = tmp_path / "texts.jsonl"
    lines = [json.dumps({"id": f"d{n}", "text": text, "user": f"user{n}"}) for n, text in enumerate(texts)]
    file.write_text("\n".join(lines), "utf-8")
    assert server_cli("init", index_name, "--field", "text", "--sample-mod", "4").code == 0
    refused = server_cli("load", index_name, str(file), "--json")
    assert (refused.code, refused.json["writes"]["refused"]) == (1, 6)
    assert "routing" in refused.json["writes"]["refusals"][0]
    dry = server_cli("load", index_name, str(file), "--routing-field", "user", "--dry-run", "--json").json
    assert (dry["writes"]["written"], dry["scope"]["existing"]) == (6, 0)
    assert server_cli("load", index_name, str(file), "--routing-field", "user", "--json").json["writes"]["written"] == 6
    routings = where(client, index_name)
    assert routings == {f"d{n}": f"user{n}" for n in range(6)}
    users = theirs(client, index_name)
    dry = server_cli("load", index_name, str(file), "--routing-field", "user", "--dry-run", "--json").json
    assert (dry["writes"]["written"], dry["scope"]["existing"]) == (0, 6)

    assert NearDupe(index_name, client).group(evidence=True).groups.largest == 6
    change(client, index_name, "d5", {"text": texts[4]}, routing="user5")
    assert NearDupe(index_name, client).enrich(check=True).writes.written == 1
    assert NearDupe(index_name, client).group(evidence=True).scope.reason == "1 new or changed document"
    assert NearDupe(index_name, client).groups()[0].size == 6
    assert {hit.id for hit in NearDupe(index_name, client).contained(id="d4", min=0.5).hits} == set(routings) - {"d4"}
    assert {one.value for one in NearDupe(index_name, client).compare("d4", "d5").measures} == {1}
    assert NearDupe(index_name, client).audit().recall.found == 15
    assert len(list(NearDupe(index_name, client).pairs())) == 15
    assert NearDupe(index_name, client).distribution().documents == 6
    assert where(client, index_name) == routings
    changed = {key: one for key, one in theirs(client, index_name).items() if key[1] != "d5"}
    assert changed == {key: one for key, one in users.items() if key[1] != "d5"}
    assert NearDupe(index_name, client).clean().writes.written == 6
    assert where(client, index_name) == routings


@pytest.mark.product("each")
def test_a_document_that_no_search_sees_yet(client: Client, index_name: str) -> None:
    """If a routing is required, an id alone finds nothing: reported as any unknown id, not as a failure."""
    make_index(client, index_name, settings={"refresh_interval": "-1"}, _routing={"required": True})
    NearDupe(index_name, client).init(Settings(("text",)))
    body = {"text": "a text"}
    client.request("PUT", path(index_name, "_doc", "d"), params={"routing": "r"}, body=body)
    with pytest.raises(RequestError, match="There is no document 'd'"):
        NearDupe(index_name, client).similar(id="d")
    send(client, [({"delete": {"_index": index_name, "_id": "d", "routing": "r"}}, None)])
