"""Documents that are alone are written once, and ``group`` notices what was written or deleted since its last run."""

from __future__ import annotations

from typing import Any

import pytest
from server_tools import assert_settled, change, family, hits, make_index, ours, put, words

from es_neardupe import NearDupe, Settings
from es_neardupe.groups import incremental
from es_neardupe.server.client import Client, path

FIELDS = {"text": {"type": "text"}}


def alone(number: int, start: int = 0) -> dict[str, Any]:
    return {f"alone{n:02}": {"text": " ".join(words(f"alone{n}", 30))} for n in range(start, start + number)}


def versions(client: Client, index: str) -> dict[str, int]:
    body = {"size": 1000, "version": True, "query": {"match_all": {}}}
    found = client.request("POST", path(index, "_search"), body=body)["hits"]["hits"]
    return {hit["_id"]: hit["_version"] for hit in found}


def begun(client: Client, index: str, *, shards: int = 1) -> NearDupe:
    """An enriched index with a group p, m1, m2 and 20 documents that are alone."""
    make_index(client, index, FIELDS, settings={"number_of_shards": shards, "number_of_replicas": 0})
    texts = dict(zip(("p", "m1", "m2"), family("once", 3), strict=True))
    texts["p"] += " and a few words more"
    put(client, index, alone(20) | {id: {"text": text} for id, text in texts.items()})
    near = NearDupe(index, client)
    near.init(Settings(("text",)))
    near.enrich()
    return near


def delete(client: Client, index: str, *ids: str) -> None:
    for id in ids:
        client.request("DELETE", path(index, "_doc", id), params={"refresh": "true"})


def principals(client: Client, index: str, group: str) -> list[str]:
    """The documents that a search for the principals of a group returns."""
    stored = ours(client, index)
    return sorted(id for id, one in stored.items() if one.get("group") == group and one.get("principal") is True)


@pytest.mark.parametrize("shards", [1, 3])
def test_only_members_of_groups_are_written_twice(client: Client, index_name: str, shards: int) -> None:
    near = begun(client, index_name, shards=shards)
    enriched = versions(client, index_name)
    fields = ours(client, index_name)
    assert {(one["principal"], one["similarity"]) for one in fields.values()} == {(True, 1.0)}
    assert len({one["group"] for one in fields.values()}) == 23
    assert near.groups() == []  # before `group`, each document is alone
    assert len(near.search({"query": {"match_all": {}}}, size=50).hits) == 23

    report = near.group()
    assert (report.writes.written, report.groups.grouped, report.writes.unchanged) == (2, 3, 21)
    grouped = versions(client, index_name)
    assert {id for id in grouped if grouped[id] != enriched[id]} == {
        "m1",
        "m2",
    }  # the group has the id of its principal

    again = near.group()
    assert (again.scope.whole, again.scope.affected, again.writes.written) == (False, 0, 0)
    assert versions(client, index_name) == grouped
    put(client, index_name, alone(2, 20))
    assert near.stats().scope.ungrouped == 0
    near.enrich()
    assert near.stats().scope.ungrouped == 2
    added = near.group()
    assert (added.scope.reason, added.scope.affected) == ("2 new or changed documents", 2)
    assert added.writes.written == 0
    assert near.group().scope.affected == 0
    assert near.enrich().scope.read == 0  # it knows that no text has changed
    assert_settled(client, index_name)


def test_a_text_that_changed_before_its_group_was_written(client: Client, index_name: str) -> None:
    """The write of ``group`` does not hide the change from the next ``enrich``."""
    near = begun(client, index_name)
    put_text = {"doc": {"text": " ".join(words("changed", 30))}}
    client.request("POST", path(index_name, "_update", "alone00"), body=put_text, params={"refresh": "true"})
    client.request("POST", path(index_name, "_update", "m1"), body={"doc": {"title": "x"}}, params={"refresh": "true"})
    assert near.group().writes.written == 2
    enriched = near.enrich()
    assert (enriched.scope.read, enriched.writes.written) == (2, 1)
    near.group()
    assert_settled(client, index_name)


def test_deletions_are_noticed(client: Client, index_name: str) -> None:
    near = begun(client, index_name)
    near.group()
    group = ours(client, index_name)["p"]["group"]
    delete(client, index_name, "p")
    checks = {check.name: check.message for check in near.doctor()}
    assert checks["groups"].startswith("1 group has lost its principal")
    report = near.group()
    assert report.scope.reason == "0 new or changed documents, 1 group that lost documents"
    assert len(principals(client, index_name, group)) == 1
    assert_settled(client, index_name)
    delete(client, index_name, "alone00")
    assert near.group().scope.affected == 0
    assert near.group().scope.reason == "0 new or changed documents"
    assert_settled(client, index_name)


@pytest.mark.parametrize("how", ["enrich", "fingerprinted", "fingerprinted without id"])
def test_deletions_are_noticed_if_counts_balance(client: Client, index_name: str, how: str) -> None:
    """A new document has all group fields, as the deleted principal had."""
    near = begun(client, index_name)
    near.group()
    group = ours(client, index_name)["p"]["group"]
    delete(client, index_name, "p")
    new = {"text": " ".join(words("new", 30))}
    if how == "enrich":
        put(client, index_name, {"new": new})
        near.enrich()
    else:
        (action,) = near.fingerprinted([new if "without" in how else {"_id": "new", **new}])
        id = action.pop("_id", None)
        client.request("POST" if id is None else "PUT", path(index_name, "_doc", *([id] if id else [])), body=action)
    assert near.group().scope.reason == "1 new or changed document, 1 group that lost documents"
    assert len(principals(client, index_name, group)) == 1
    assert_settled(client, index_name)


@pytest.mark.parametrize("how", ["enrich", "fingerprinted"])
def test_a_principal_that_is_created_again(client: Client, index_name: str, how: str) -> None:
    """Its own group id is that of a group with other documents: it must not be a second principal of it."""
    near = begun(client, index_name)
    near.group()
    group = ours(client, index_name)["p"]["group"]
    delete(client, index_name, "p")
    near.group()
    (leader,) = principals(client, index_name, group)
    new = {"text": " ".join(words("another text", 30))}
    if how == "enrich":
        put(client, index_name, {"p": new})
        near.enrich()
    else:
        (action,) = near.fingerprinted([{"_id": "p", **new}])
        action.pop("_id")
        client.request("PUT", path(index_name, "_doc", "p"), body=action, params={"refresh": "true"})
    assert principals(client, index_name, group) == [leader]
    assert [sorted(member.id for member in one.members) for one in near.groups()] == [["m1", "m2"]]
    near.group()
    assert principals(client, index_name, group) == [leader]
    assert ours(client, index_name)["p"]["group"] != group
    assert ours(client, index_name)["p"]["principal"] is True
    assert_settled(client, index_name)


def test_a_new_document_takes_the_id_of_a_group_without_principal(client: Client, index_name: str) -> None:
    """A group keeps its id as long as it has one of its documents, though the new document is a principal already."""
    near = begun(client, index_name)
    near.group()
    group = ours(client, index_name)["p"]["group"]
    delete(client, index_name, "p", "m1")
    put(client, index_name, {"n": {"text": family("once", 4)[3] + " and some more words"}})
    near.enrich()
    near.group()
    assert principals(client, index_name, group) == ["n"]
    assert_settled(client, index_name)


def test_changes_of_other_clients(client: Client, index_name: str) -> None:
    """Another field changes nothing; another text keeps the group id and waits."""
    near = begun(client, index_name)
    near.group()
    before = ours(client, index_name)
    change(client, index_name, "alone01", {"text": before["alone01"] and " ".join(words("other", 30))})
    near.enrich(check=True)
    waits = ours(client, index_name)["alone01"]
    assert waits["group"] == before["alone01"]["group"]
    assert (waits.get("principal"), waits.get("similarity")) == (None, None)
    assert near.group().writes.written == 1
    assert near.group().scope.affected == 0
    assert len(hits(client, index_name)) == 23
    assert_settled(client, index_name)


def test_changed_and_new_texts_are_no_deletions(
    client: Client, index_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The documents of all groups are counted only if something may have been deleted."""
    counted: list[object] = []
    count = incremental._shrunk

    def shrunk(*given: Any) -> frozenset[str]:
        counted.append(given)
        return count(*given)

    monkeypatch.setattr(incremental, "_shrunk", shrunk)
    near = begun(client, index_name, shards=2)
    near.group()
    for turn in range(3):
        put(client, index_name, alone(25 + turn, 20 + turn))
        change(client, index_name, "m1", {"text": " ".join(words(f"changed {turn}", 30))})
        change(client, index_name, "alone01", {"text": " ".join(words(f"other {turn}", 30))})
        near.enrich()
        assert near.group().scope.affected > 2
        assert counted == []
        assert_settled(client, index_name)
    change(client, index_name, "alone02", {"text": " ".join(words("other", 30))})
    near.enrich()
    delete(client, index_name, "p")
    near.group()
    assert len(counted) == 1
    assert_settled(client, index_name)


def test_an_older_version_that_is_written_back_leaves_its_group(client: Client, index_name: str) -> None:
    """An application has read a document, `group` has moved it, and the application writes what it has read, with the
    id of the former group and another text. No other document is changed meanwhile."""
    near = begun(client, index_name)
    near.group()
    texts = {hit["_id"]: hit["_source"] for hit in hits(client, index_name)}
    change(client, index_name, "m1", {"text": texts["alone00"]["text"]})
    near.enrich()
    near.group()
    assert ours(client, index_name)["m1"]["group"] == ours(client, index_name)["alone00"]["group"]
    put(client, index_name, {"m1": texts["m1"] | {"text": " ".join(words("elsewhere", 30))}})
    near.enrich()
    near.group()
    assert_settled(client, index_name)
