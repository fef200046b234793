"""Indices whose documents have the versions of another system: its changes and deletions are never rejected because of
us."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest
from bad_input import refused
from conftest import Cli
from fault_proxy import BULK, Fault, FaultProxy, lost_answer
from server_tools import JSON, assert_settled, family, groups_of, make_index, ours, wait_until, words

from es_neardupe import NearDupe, Settings
from es_neardupe.errors import Conflict, IndexUnusable
from es_neardupe.index import target
from es_neardupe.options import Versions
from es_neardupe.server.client import Before, Client, ForwardingClient, path
from es_neardupe.server.connect import connect
from es_neardupe.server.login.settings import ConnectionSettings, Retries

LATE = 1_700_000_000_000
TEXTS = {f"d{n}": text for n, text in enumerate([*family("versions", 4), *family("others", 2)])}


def sent(client: Client, index: str, id: str, version: int, source: Mapping[str, Any]) -> None:
    """A document from the other system."""
    params: dict[str, Any] = {"version": version, "version_type": "external", "refresh": True}
    client.request("PUT", path(index, "_doc", id), params=params, body=source)


def deleted(client: Client, index: str, id: str, version: int) -> None:
    params: dict[str, Any] = {"version": version, "version_type": "external", "refresh": True}
    client.request("DELETE", path(index, "_doc", id), params=params)


def filled(client: Client, index: str, first: int, settings: Mapping[str, Any] | None = None) -> None:
    make_index(client, index, settings=settings)
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


class Waiting(ForwardingClient):
    """Something happens while the first request with an owner's versions waits: before the documents are read again,
    or ``after``."""

    def __init__(self, client: Client, happens: Callable[[], None], *, after: bool = False) -> None:
        super().__init__(client)
        self.todo, self.after = [happens], after

    def bulk(self, body: bytes, *, params: Mapping[str, str] | None = None, before: Before | None = None) -> Any:
        def reading() -> None:
            if before is not None:
                before()
            if self.after:
                self.happens(body)

        if not self.after:
            self.happens(body)
        return self.plain.bulk(body, params=params, before=reading)

    def happens(self, body: bytes) -> None:
        if self.todo and b"external_gte" in body:
            self.todo.pop()()


def forget_deletions(client: Client, index: str) -> None:
    """Wait until the server accepts an earlier version of a document that was deleted after the others."""
    sent(client, index, "probe", 8, {"text": "probe"})
    deleted(client, index, "probe", 9)
    wait_until(lambda: _is_forgotten(client, index))
    deleted(client, index, "probe", 7)


def _is_forgotten(client: Client, index: str) -> bool:
    try:
        sent(client, index, "probe", 6, {"text": "probe"})
    except Conflict:
        return False
    return True


@pytest.mark.product("each")
@pytest.mark.parametrize("command", ["enrich", "group", "clean"])
def test_what_its_owner_deletes_while_a_write_waits(
    command: str, client: Client, index_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even if the server does not remember the deletion any more."""
    monkeypatch.setattr(target, "MIN_GC_DELETES", 0)
    settings = {"index.gc_deletes": "10ms", "number_of_shards": 1}
    filled(client, index_name, LATE, settings)
    news = NearDupe(index_name, client)
    news.init(Settings(("text",)), versions=Versions.EXTERNAL)
    if command != "enrich":
        news.enrich()

    def meanwhile() -> None:
        for id in ("d0", "d1"):
            deleted(client, index_name, id, LATE + 1)
        forget_deletions(client, index_name)
        sent(client, index_name, "d1", 5, {"text": "a new life"})

    getattr(NearDupe(index_name, Waiting(client, meanwhile)), command)()
    kept = users(client, index_name)
    assert kept.keys() == TEXTS.keys() - {"d0"}
    assert kept["d1"] == {"text": "a new life"}
    assert versions_of(client, index_name) == {**dict.fromkeys(kept, LATE), "d1": 5}
    assert command != "clean" or not any(ours(client, index_name).values())


def test_a_document_that_a_write_has_brought_back(
    client: Client, index_name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waited in the server for longer than this remembers the deletion."""
    monkeypatch.setattr(target, "MIN_GC_DELETES", 0)
    filled(client, index_name, LATE, {"index.gc_deletes": "10ms", "number_of_shards": 1})
    news = NearDupe(index_name, client)
    news.init(Settings(("text",)), versions=Versions.EXTERNAL)

    def meanwhile() -> None:
        deleted(client, index_name, "d0", LATE + 1)
        forget_deletions(client, index_name)

    report = NearDupe(index_name, Waiting(client, meanwhile, after=True)).enrich()
    assert (report.writes.written, report.writes.deleted) == (len(TEXTS) - 1, 1)
    assert users(client, index_name).keys() == TEXTS.keys() - {"d0"}


def test_an_index_that_forgets_deletions_early(client: Client, index_name: str, server_cli: Cli) -> None:
    filled(client, index_name, LATE, {"index.gc_deletes": "1s"})
    init = ("init", index_name, "--field", "text", "--versions", "external")
    refused(server_cli(*init), "remembers deletions for 1s only", "sidecar", code=1)
    set_deletions(client, index_name, "30s")
    assert server_cli(*init).code == 0
    set_deletions(client, index_name, "29s")
    refused(server_cli("enrich", index_name), "remembers deletions for 29s only", code=1)
    assert not any(ours(client, index_name).values())


def set_deletions(client: Client, index: str, time: str) -> None:
    client.request("PUT", path(index, "_settings"), body={"index.gc_deletes": time})


def test_a_lost_answer(client: Client, proxy: FaultProxy, index_name: str) -> None:
    """The request is sent again: the documents are those that it has written."""
    filled(client, index_name, LATE)
    NearDupe(index_name, client).init(Settings(("text",)), versions=Versions.EXTERNAL)
    proxy.faults = [Fault(lost_answer, BULK)]
    through = connect(ConnectionSettings(proxy.url, retries=Retries(attempts=6, wait=0.01)))
    report = NearDupe(index_name, through).enrich()
    through.close()
    assert proxy.faults[0].met == 1
    assert (report.writes.written, report.writes.conflicts, report.writes.deleted) == (len(TEXTS), 0, 0)
    assert versions_of(client, index_name) == dict.fromkeys(TEXTS, LATE)


@pytest.mark.parametrize("known", [True, False])
def test_groups_of_a_request(known: bool, client: Client, index_name: str, server_cli: Cli) -> None:
    """The versions are those of the documents, not of a prefix; without settings, they show it."""
    filled(client, index_name, 1 if known else LATE)
    news = NearDupe(index_name, client)
    if known:
        news.init(Settings(("text",)), versions=Versions.EXTERNAL)
        news.enrich()
    before = versions_of(client, index_name)
    request = ("--example", "identical-titles", "--field", "text", "--write-groups", "titles")
    assert server_cli("duplicates", index_name, *request).code == 0
    assert all("group" in one["titles"] for one in users(client, index_name).values())
    assert versions_of(client, index_name) == before
    forget_versions(client, index_name, "titles")
    if known:  # also of groups that were stored before the others were prepared
        assert server_cli("clean", index_name, "--prefix", "titles", "--yes", "--json").json["writes"][
            "written"
        ] == len(TEXTS)
        assert not any("titles" in one for one in users(client, index_name).values())
        assert versions_of(client, index_name) == before
    assert news.init(Settings(("text",)), versions=None if known else Versions.EXTERNAL).versions == "external"


def forget_versions(client: Client, index: str, prefix: str) -> None:
    """Remove the choice from the settings of a prefix."""
    meta = client.request("GET", path(index, "_mapping"))[index]["mappings"]["_meta"]
    assert meta[prefix].pop("versions") == "external"
    client.request("PUT", path(index, "_mapping"), body={"_meta": meta})


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


def test_load_does_not_replace_their_documents(
    client: Client, index_name: str, server_cli: Cli, tmp_path: Path
) -> None:
    """It would raise their versions, and the next change of the other system would be lost."""
    filled(client, index_name, LATE)
    server_cli("init", index_name, "--field", "text", "--versions", "external")
    file = tmp_path / "texts.jsonl"
    file.write_text('{"id": "d0", "text": "another"}\n{"id": "new", "text": "a new one"}\n')
    refused(server_cli("load", index_name, str(file), "--replace"), "--replace would raise the versions")
    assert server_cli("load", index_name, str(file), "--json").json["writes"]["written"] == 1
    sent(client, index_name, "d0", LATE + 1, {"text": "the next change"})
    assert versions_of(client, index_name) == dict.fromkeys(TEXTS, LATE) | {"d0": LATE + 1, "new": 1}


def test_a_sidecar_writes_no_document(client: Client, index_name: str) -> None:
    filled(client, index_name, LATE)
    news = NearDupe(index_name, client)
    news.init(Settings(("text",)), sidecar=True)
    news.enrich()
    assert news.group().groups.count == 2
    assert versions_of(client, index_name) == dict.fromkeys(TEXTS, LATE)
