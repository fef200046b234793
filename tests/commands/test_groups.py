"""`groups` on real servers: the listed groups, their order, and the history of one."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from bad_input import fill, refused
from conftest import Cli
from server_tools import change, family, jaccard, make_index, ours, put, words

from es_neardupe import NearDupe, Settings
from es_neardupe.server.client import Client, path

SETTINGS = Settings(("text",))


@pytest.fixture
def filled(client: Client, index_name: str) -> str:
    fill(client, index_name)
    return index_name


@pytest.fixture
def grouped(client: Client, index_name: str) -> str:
    """Groups of two to five documents, and a document without a group."""
    texts = {f"{size}-{number}": text for size in (3, 5, 2, 4) for number, text in enumerate(family(size, size))}
    texts["alone"] = " ".join(words("alone", 60))
    make_index(client, index_name)
    put(client, index_name, {id: {"text": text} for id, text in texts.items()})
    NearDupe(index_name, client).init(SETTINGS)
    NearDupe(index_name, client).enrich()
    NearDupe(index_name, client).group()
    return index_name


@pytest.mark.product("each")
def test_the_largest_come_first(client: Client, grouped: str, server_cli: Cli) -> None:
    found = NearDupe(grouped, client).groups()
    assert [one.size for one in found] == [5, 4, 3, 2]
    for one in found:
        assert {member.id for member in one.members} == {f"{one.size}-{number}" for number in range(one.size)}
        rest = [member.similarity for member in one.members[1:]]
        assert (one.members[0].address, rest) == (one.principal, sorted(rest, reverse=True))
        assert one.min_similarity == min(rest) >= SETTINGS.threshold
    assert NearDupe(grouped, client).groups(min_size=4) == found[:2]
    assert all(NearDupe(grouped, client).groups(top=number) == found[:number] for number in range(1, 6))
    assert NearDupe(grouped, client).groups(group=found[2].group) == found[2:3]
    shown = server_cli("groups", grouped, "--top", "1")
    assert (shown.code, "5-0" in shown.out, found[1].group in shown.out) == (0, True, False)


def test_the_history_of_a_group(client: Client, grouped: str, server_cli: Cli) -> None:
    (first, *_) = NearDupe(grouped, client).groups()
    found = server_cli("groups", grouped, "--history", first.group, "--json").json
    assert (found["group"], found["size"], found["principal"]["id"]) == (first.group, 5, first.members[0].id)
    assert [one["event"] for one in found["history"]] == ["founded"]
    assert "founded" in server_cli("groups", grouped, "--history", first.group).out
    refused(server_cli("groups", grouped, "--history", "unknown"), "Unknown group 'unknown'")


def test_what_to_keep(client: Client, grouped: str, server_cli: Cli) -> None:
    advised = NearDupe(grouped, client).suggest_keep()
    found = NearDupe(grouped, client).groups()
    assert [(one.keep, one.is_principal, len(one.redundant)) for one in advised] == [
        (one.principal, True, one.size - 1) for one in found
    ]
    refused = server_cli("groups", grouped, "--suggest-keep", "--field", "title")
    assert (refused.code, "--suggest-keep shows no fields: leave out --field." in refused.err) == (2, True)
    done = server_cli("groups", grouped, "--suggest-keep")
    assert "4 groups: 4 documents to keep, 10 redundant. Nothing was deleted." in done.out + done.err


def test_what_only_a_decision_holds_together(client: Client, index_name: str, server_cli: Cli) -> None:
    """A document that a reviewer put into the group is not redundant, because it matches no other."""
    make_index(client, index_name)
    put(client, index_name, {id: {"text": " ".join(words(id, 60))} for id in ("one", "other")})
    news = NearDupe(index_name, client)
    news.init(Settings(("text",)))
    news.enrich()
    news.decide("same", "one", ["other"], author="ann")
    assert news.group().groups.grouped == 2
    (advice,) = news.suggest_keep()
    assert (advice.is_principal, advice.redundant, advice.less_similar) == (True, (), 1)
    shown = server_cli("groups", index_name, "--suggest-keep")
    assert "1 document is left out, because it does not match the document to keep." in shown.err


def test_what_must_not_be_deleted(client: Client, index_name: str, server_cli: Cli, tmp_path: Path) -> None:
    """Documents that were written again, and those that match the principal but not the document to keep."""
    some = words("kept", 100)
    texts = {"whole": some, "end": some[20:], "begin": some[:85], "copy": some[:85], "rewritten": some[:85]}
    make_index(client, index_name, {"text": {"type": "text"}, "words": {"type": "integer"}})
    for id, tokens in texts.items():
        body = {"text": " ".join(tokens), "words": len(tokens)}
        client.request("PUT", path(index_name, "_doc", id), params={"routing": "r/ä", "refresh": True}, body=body)
    news = NearDupe(index_name, client)
    news.init(Settings(("text",), threshold=0.7))
    news.enrich()
    assert news.group().groups.grouped == 5
    (advice,) = news.suggest_keep()
    assert (advice.keep.id, len(advice.redundant), advice.changed, advice.less_similar) == ("whole", 4, 0, 0)
    change(client, index_name, "rewritten", {"text": "nothing that anybody else has written"}, routing="r/ä")
    (advice,) = news.suggest_keep()
    assert (advice.keep.id, advice.changed, advice.less_similar) == ("whole", 1, 0)
    assert {one.id: one.similarity for one in advice.redundant} == pytest.approx(
        {id: jaccard(" ".join(texts["whole"]), " ".join(texts[id])) for id in ("end", "begin", "copy")}
    )
    (advice,) = news.suggest_keep(policy="words:asc")
    assert (advice.keep.id, {one.id for one in advice.redundant}) == ("end", {"whole"})
    assert (advice.is_principal, advice.changed, advice.less_similar) == (False, 1, 2)
    assert jaccard(" ".join(texts["end"]), " ".join(texts["begin"])) < 0.7
    change(client, index_name, "end", {"text": "something else that nobody else has written"}, routing="r/ä")
    (advice,) = news.suggest_keep(policy="words:asc")
    assert (advice.keep.id, advice.changed, advice.less_similar) == ("begin", 2, 0)
    shown = server_cli("groups", index_name, "--suggest-keep")
    assert "2 documents are left out, because their text is not the one that was grouped, or was deleted." in shown.err

    file = tmp_path / "redundant.ndjson"
    done = server_cli("groups", index_name, "--suggest-keep", "--bulk", str(file))
    lines = [json.loads(line)["delete"] for line in file.read_text("utf-8").splitlines()]
    assert f"{len(lines)} redundant. Nothing was deleted." in done.out + done.err
    assert {(one["_index"], one["routing"]) for one in lines} == {(index_name, "r/ä")}
    changed = lines[-1]["_id"]
    change(client, index_name, changed, {"text": "written meanwhile"}, routing="r/ä")
    answer = client.bulk(file.read_bytes())
    assert {one["delete"]["_id"]: one["delete"]["status"] for one in answer["items"]} == {
        one["_id"]: 409 if one["_id"] == changed else 200 for one in lines
    }
    refused = server_cli("groups", index_name, "--bulk", str(file))
    assert (refused.code, "--bulk requires --suggest-keep." in refused.err) == (2, True)


LIED: dict[str, Any] = {
    "signature": {"signature": "AAAA"},
    "group": {"group": "x" * 200, "principal": True, "similarity": 7.5},
    "pretender": {"group": "none", "principal": False, "similarity": 0.99},
    "several": {"group": ["none", "other"], "principal": True, "similarity": 1.0},
}


def test_stored_groups_that_are_not_ours(client: Client, filled: str) -> None:
    put(client, filled, {id: {"text": f"this is {id} and some other words"} for id in LIED})
    NearDupe(filled, client).init(SETTINGS)
    NearDupe(filled, client).enrich()
    for id, fields in LIED.items():
        change(client, filled, id, {"neardupe": fields})
    assert NearDupe(filled, client).groups() == NearDupe(filled, client).groups(top=2) == []
    report = NearDupe(filled, client).group()
    assert (report.groups.count, report.groups.alone) == (1, len(LIED))
    assert all(ours(client, filled)[id]["similarity"] == 1 for id in LIED)


def test_a_table_has_the_largest_groups(client: Client, index_name: str, server_cli: Cli) -> None:
    make_index(client, index_name, {"text": {"type": "text"}})
    texts = {f"{k:02}{side}": {"text": " ".join(words(("group", k), 20))} for k in range(22) for side in "ab"}
    put(client, index_name, texts)
    NearDupe(index_name, client).init(Settings(("text",)))
    NearDupe(index_name, client).enrich()
    NearDupe(index_name, client).group()
    few, some = server_cli("groups", index_name), server_cli("groups", index_name, "--top", "21")
    assert [done.out.count("1.0000") // 2 for done in (few, some)] == [20, 21]
    assert "20 of 22 groups are shown" in few.err
    assert "groups are shown" not in some.err
    assert len(server_cli("groups", index_name, "--json").lines) == len(NearDupe(index_name, client).groups()) == 22


def test_an_index_without_groups(client: Client, index_name: str, server_cli: Cli) -> None:
    """Only before the first run, `group` is what to run."""
    make_index(client, index_name)
    put(client, index_name, {"a": {"text": " ".join(words("alone", 30))}})
    near = NearDupe(index_name, client)
    near.init(SETTINGS)
    near.enrich()
    before = server_cli("groups", index_name)
    assert (
        f"No group has 2 or more documents. `es-neardupe group {index_name}` creates groups." in before.out + before.err
    )
    near.group()
    after = server_cli("groups", index_name)
    assert "No group has 2 or more documents." in after.out + after.err
    assert "creates groups" not in after.out + after.err


def test_related_groups(client: Client, index_name: str, server_cli: Cli) -> None:
    """Those of one cluster, and documents of it that are alone."""
    text = words("related", 100)
    parts = {"d1": text[:60], "d2": text[4:62], "d3": text[8:67], "far": words("far", 60), "away": words("far", 58)}
    make_index(client, index_name)
    put(client, index_name, {id: {"text": " ".join(some)} for id, some in parts.items()})
    near = NearDupe(index_name, client)
    near.init(SETTINGS)
    near.enrich()
    counts = near.group(linkage="complete").groups.related
    assert (counts.alone, counts.pairs) == (1, 1)
    assert counts.alone_similarity == counts.similarity
    group = {id: one["group"] for id, one in ours(client, index_name).items()}
    for id in ("d1", "d2", "d3"):
        found = near.groups(group=group[id], related=True)
        assert [one.size for one in found] == [2, 1]
        assert {member.id for one in found for member in one.members} == {"d1", "d2", "d3"}
    assert [one.size for one in near.groups(group=group["far"], related=True)] == [2]
    assert near.groups(group="unknown", related=True) == []
    shown = server_cli("groups", index_name, "--group", group["d1"], "--related")
    assert (shown.code, group["d3"] in shown.out, group["d2"] in shown.out) == (0, True, True)
    refused_line = server_cli("groups", index_name, "--related")
    assert (refused_line.code, "--group" in refused_line.err) == (2, True)
    report = server_cli("group", index_name, "--rebuild", "--dry-run")
    assert "matching pairs in different groups" in report.out
