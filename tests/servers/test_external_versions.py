"""Indices whose documents have the versions of another system: its changes and deletions are never rejected because of
us."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from bad_input import refused
from conftest import Cli
from server_tools import JSON, assert_settled, family, groups_of, make_index, ours, words

from es_neardupe import NearDupe, Settings
from es_neardupe.errors import Conflict, IndexUnusable
from es_neardupe.options import Versions
from es_neardupe.server.client import Client, path

LATE = 1_700_000_000_000
TEXTS = {f"d{n}": text for n, text in enumerate([*family("versions", 4), *family("others", 2)])}


def sent(client: Client, index: str, id: str, version: int, source: Mapping[str, Any]) -> None:
    """A document from the other system."""
    params: dict[str, Any] = {"version": version, "version_type": "external", "refresh": True}
    client.request("PUT", path(index, "_doc", id), params=params, body=source)


def deleted(client: Client, index: str, id: str, version: int) -> None:
    params: dict[str, Any] = {"version": version, "version_type": "external", "refresh": True}
    client.request("DELETE", path(index, "_doc", id), params=params)


def filled(client: Client, index: str, first: int) -> None:
    make_index(client, index)
    for id, text in TEXTS.items():
        sent(client, index, id, first, {"text": text, "price": 1.10})


def versions_of(client: Client, index: str) -> dict[str, int]:
    found: JSON = client.request("POST", path(index, "_search"), body={"size": 100, "version": True})
    return {hit["_id"]: hit["_version"] for hit in found["hits"]["hits"]}


def users(client: Client, index: str) -> dict[str, JSON]:
    """The documents without our fields."""
    found: JSON = client.request("POST", path(index, "_search"), body={"size": 100})
    return {
        hit["_id"]: {name: value for name, value in hit["_source"].items() if name != "neardupe"}
        for hit in found["hits"]["hits"]
    }


def together(client: Client, index: str) -> set[frozenset[str]]:
    """The ids of each group."""
    return {frozenset(one.id for one in group.members) for group in groups_of(client, index)}


@pytest.mark.parametrize(
    "first",
    [
        pytest.param(1, marks=pytest.mark.product("elasticsearch")),
        pytest.param(LATE, marks=pytest.mark.product("opensearch")),
    ],
)
def test_every_command_keeps_the_versions(first: int, client: Client, index_name: str) -> None:
    filled(client, index_name, first)
    before, news = users(client, index_name), NearDupe(index_name, client)
    assert news.init(Settings(("text",)), versions=Versions.EXTERNAL).versions == "external"
    assert news.enrich().writes.whole == len(TEXTS)
    assert news.group().writes.failed == 0
    assert news.enrich().writes.written == 0
    assert (versions_of(client, index_name), users(client, index_name)) == (dict.fromkeys(TEXTS, first), before)
    assert len(together(client, index_name)) == 2

    sent(client, index_name, "d0", first + 1, {"text": TEXTS["d4"]})  # the keys are gone, as with any whole document
    deleted(client, index_name, "d1", first + 1)
    with pytest.raises(Conflict):
        sent(client, index_name, "d2", first, {"text": "an older version"})
    news.enrich()
    news.group()
    assert_settled(client, index_name)
    assert together(client, index_name) == {frozenset({"d2", "d3"}), frozenset({"d0", "d4", "d5"})}
    wanted = {"d0": first + 1, **dict.fromkeys(("d2", "d3", "d4", "d5"), first)}
    assert versions_of(client, index_name) == wanted
    assert news.migrate(threshold=0.7).state == "done"
    assert versions_of(client, index_name) == wanted
    assert news.clean().writes.left == 0
    assert not any(ours(client, index_name).values())
    assert versions_of(client, index_name) == wanted
    sent(client, index_name, "d2", first + 1, {"text": "the next one"})


def test_a_document_that_its_owner_changes_meanwhile(client: Client, index_name: str) -> None:
    """Our write has the version that was read, and is rejected."""
    filled(client, index_name, 1)
    news = NearDupe(index_name, client)
    news.init(Settings(("text",)), versions=Versions.EXTERNAL)
    text, todo = " ".join(words("another", 50)), [2]

    def meanwhile(stage: str, done: int, total: int | None) -> None:
        if todo:
            sent(client, index_name, "d0", todo.pop(), {"text": text})

    news.enrich(progress=meanwhile)
    news.group()
    assert users(client, index_name)["d0"] == {"text": text}
    assert versions_of(client, index_name)["d0"] == 2
    assert news.enrich(check=True).writes.written == 0


def test_versions_that_no_server_gives_are_noticed(client: Client, index_name: str, server_cli: Cli) -> None:
    filled(client, index_name, LATE)
    done = server_cli("init", index_name, "--field", "text")
    refused(done, f"has version {LATE}", "--versions external", "--sidecar", "--versions internal", code=1)
    with pytest.raises(IndexUnusable, match="Another system sets the versions"):
        NearDupe(index_name, client).init(Settings(("text",)), sidecar=True, write_group=True)
    assert server_cli("init", index_name, "--field", "text", "--versions", "internal").code == 0
    assert not [one for one in NearDupe(index_name, client).doctor() if one.name == "versions"]
    assert server_cli("init", index_name, "--field", "text", "--versions", "external").code == 0
    assert server_cli("init", index_name, "--field", "text").code == 0  # it is stored
    refused(server_cli("enrich", index_name, "--in-cluster"), "without --in-cluster", code=1)
    assert NearDupe(index_name, client).enrich().writes.whole == len(TEXTS)
    assert versions_of(client, index_name) == dict.fromkeys(TEXTS, LATE)


def test_small_versions_may_be_those_of_another_system(client: Client, index_name: str, server_cli: Cli) -> None:
    """They look like those of the server, so `init` says what updates do to them."""
    filled(client, index_name, 1)
    line = "add --versions external."
    assert line in server_cli("init", index_name, "--field", "text", "--dry-run").err
    assert line in server_cli("init", index_name, "--field", "text").err
    assert line not in server_cli("init", index_name, "--field", "text", "--versions", "external").err
    assert line not in server_cli("init", index_name, "--field", "text").err


def test_an_index_that_gets_them_later(client: Client, index_name: str) -> None:
    make_index(client, index_name)
    news = NearDupe(index_name, client)
    news.init(Settings(("text",)))
    sent(client, index_name, "d0", LATE, {"text": TEXTS["d0"]})
    (check,) = (one for one in news.doctor() if one.name == "versions")
    assert (check.level, "--versions external" in check.message) == ("warning", True)
    assert news.init(Settings(("text",)), versions=Versions.EXTERNAL).prepared == (index_name,)
    assert not [one for one in news.doctor() if one.name == "versions"]
    news.enrich()
    assert versions_of(client, index_name) == {"d0": LATE}


def test_a_sidecar_writes_no_document(client: Client, index_name: str) -> None:
    filled(client, index_name, LATE)
    news = NearDupe(index_name, client)
    news.init(Settings(("text",)), sidecar=True)
    news.enrich()
    assert news.group().groups.count == 2
    assert versions_of(client, index_name) == dict.fromkeys(TEXTS, LATE)
