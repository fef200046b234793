"""Settings that are replaced or removed while another command runs: it stops, and leaves nothing of the former ones."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest
from conftest import Cli
from server_tools import family, make_index, put, words

from es_neardupe import NearDupe, Settings
from es_neardupe.errors import Conflict, LeaseLost
from es_neardupe.index.index import opened
from es_neardupe.server.client import Before, Client, ForwardingClient, path
from es_neardupe.server.search import count

REPLACED = "were replaced during this run, so nothing more is written: run the same command again"
TITLES = Settings(("title",))


class InFlight(ForwardingClient):
    """Something happens while the first request with keys or groups of documents is on its way."""

    def __init__(self, client: Client, happens: Callable[[], object], writes: bytes = b'"neardupe":') -> None:
        """``writes``: what the request contains."""
        super().__init__(client)
        self.todo, self.writes = [happens], writes

    def bulk(self, body: bytes, *, params: Mapping[str, str] | None = None, before: Before | None = None) -> Any:
        def sending() -> None:
            if before is not None:
                before()
            if self.todo and self.writes in body:
                self.todo.pop()()

        return self.plain.bulk(body, params=params, before=sending)


def fill(client: Client, index: str) -> None:
    """Documents with different titles, whose texts are two families."""
    make_index(client, index, {"title": {"type": "text"}, "body": {"type": "text"}})
    texts = [*family("one", 20), *family("other", 20)]
    put(client, index, {f"d{n:02}": {"title": " ".join(words(n, 20)), "body": text} for n, text in enumerate(texts)})


@pytest.mark.product("each")
@pytest.mark.parametrize("sidecar", [False, True])
def test_a_migration_to_another_field(sidecar: bool, client: Client, index_name: str) -> None:
    """The scheme of the keys is the same."""
    fill(client, index_name)
    news = NearDupe(index_name, client)
    news.init(TITLES, sidecar=sidecar)
    news.enrich()
    news.group()

    def migrate() -> None:
        assert news.migrate(fields=("body",)).state == "done"

    with pytest.raises(Conflict, match=REPLACED):
        NearDupe(index_name, InFlight(client, migrate)).enrich(all=True, batch=10)
    news.enrich()
    news.group()
    assert news.enrich(check=True).writes.written == 0
    assert {len(group.members) for group in news.groups()} == {20}


def test_a_run_that_writes_nothing_stores_no_progress(client: Client, index_name: str) -> None:
    fill(client, index_name)
    news = NearDupe(index_name, client)
    news.init(TITLES)
    news.enrich()
    todo = [lambda: news.migrate(fields=("body",))]

    def progress(stage: str, done: int, total: int | None) -> None:
        while stage == "fingerprinting" and done and todo:
            todo.pop()()

    with pytest.raises(Conflict, match=REPLACED):
        news.enrich(check=True, progress=progress)


REMOVED = "were removed during this run, so nothing more is written"
FIELDS = {"exists": {"field": "neardupe"}}


def hidden(client: Client, index: str) -> list[str]:
    """The indices of the program that belong to this one."""
    names = client.request("GET", path(f"{index}-*", "_alias"), params={"expand_wildcards": "all"})
    return list(names or ())


def with_fields(client: Client, index: str) -> int:
    client.request("POST", path(index, "_refresh"))
    return count(client, index, FIELDS)


@pytest.mark.product("each")
@pytest.mark.parametrize("command", ["enrich", "group"])
def test_clean(command: str, client: Client, index_name: str, server_cli: Cli) -> None:
    """The request that is on its way gives documents the fields again: the next `clean` removes them."""
    fill(client, index_name)
    news = NearDupe(index_name, client)
    news.init(Settings(("body",)))
    if command == "group":
        news.enrich()

    def clean() -> None:
        assert news.clean().writes.left == 0

    with pytest.raises(Conflict, match=REMOVED):
        getattr(NearDupe(index_name, InFlight(client, clean)), command)(batch=10)
    left = with_fields(client, index_name)
    assert bool(left) is (command == "enrich")  # a group is written only to the version that has keys
    assert server_cli("clean", index_name, "--yes", "--json").json["writes"]["written"] == left
    assert (with_fields(client, index_name), hidden(client, index_name)) == (0, [])
    assert "Nothing to clean" in server_cli("clean", index_name, "--yes").out


@pytest.mark.product("each")
@pytest.mark.parametrize("writes", [b'"neardupe":', b'"mirrored":true'], ids=["keys", "marks"])
def test_clean_of_a_sidecar(writes: bytes, client: Client, index_name: str, server_cli: Cli) -> None:
    """The request that is on its way creates the sidecar index again, with guessed mappings: the run deletes it."""
    fill(client, index_name)
    news = NearDupe(index_name, client)
    news.init(Settings(("body",)), sidecar=True, write_group=True)
    if marks := b"mirrored" in writes:
        news.enrich()

    def clean() -> None:
        assert news.clean().writes.left == 0

    run = NearDupe(index_name, InFlight(client, clean, writes))
    with pytest.raises(Conflict, match=REMOVED):
        run.group() if marks else run.enrich(batch=10)
    assert not client.request("GET", path(f"{index_name}-*", "_settings"), params={"expand_wildcards": "all"})
    assert "Nothing to clean" in server_cli("clean", index_name, "--yes").out


@pytest.mark.parametrize("filled", [False, True])
def test_an_index_behind_the_name_of_the_sidecar_stays(filled: bool, client: Client, index_name: str) -> None:
    """It has another name, so no request of the run has created it."""
    fill(client, index_name)
    NearDupe(index_name, client).init(TITLES, sidecar=True)
    sidecar, mine = f"{index_name}-neardupe-sidecar", f"{index_name}-mine"

    def replace() -> None:
        client.request("DELETE", path(sidecar))
        make_index(client, mine, {})
        if filled:
            put(client, mine, {"d": {"@source": {"id": "d00"}}})
        actions = [{"add": {"index": mine, "alias": sidecar}}]
        client.request("POST", path("_aliases"), body={"actions": actions})

    with pytest.raises(Conflict):
        NearDupe(index_name, InFlight(client, replace, b'"scheme":')).enrich()
    assert client.request("GET", path(mine, "_mapping"))


@pytest.mark.product("each")
def test_clean_of_a_sidecar_that_is_read(client: Client, index_name: str) -> None:
    """The message names the way out, instead of an index that does not exist."""
    fill(client, index_name)
    news = NearDupe(index_name, client)
    news.init(Settings(("body",)), sidecar=True)
    news.enrich()
    run = opened(news).storage.client
    news.clean()
    for read in (
        lambda: list(run.pages(index_name, {"query": FIELDS, "_source": ["neardupe.group"]})),
        lambda: run.request("POST", path(index_name, "_search"), body={"query": FIELDS}),
        lambda: run.request("POST", path(index_name, "_refresh")),
    ):
        with pytest.raises(Conflict, match=REMOVED):
            read()


@pytest.mark.product("each")
def test_clean_that_was_killed_before_it_deleted_the_sidecar(client: Client, index_name: str, server_cli: Cli) -> None:
    fill(client, index_name)
    news = NearDupe(index_name, client)
    news.init(Settings(("body",)), sidecar=True)
    news.enrich()
    opened(news).storage.remove_settings()
    done = server_cli("clean", index_name, "--yes", "--json").json
    assert done["deleted_indices"] == [f"{index_name}-neardupe-groups", f"{index_name}-neardupe-sidecar"]
    assert hidden(client, index_name) == []


@pytest.mark.parametrize("sidecar", [False, True])
@pytest.mark.parametrize("command", ["enrich", "group"])
def test_clean_before_a_run_writes(command: str, sidecar: bool, client: Client, index_name: str) -> None:
    """It writes nothing, and creates no hidden index again."""
    fill(client, index_name)
    news = NearDupe(index_name, client)
    news.init(Settings(("body",)), sidecar=sidecar)
    if command == "group":
        news.enrich()
    todo = [news.clean]

    def progress(stage: str, done: int, total: int | None) -> None:
        while stage in ("fingerprinting", "verifying pairs") and todo:
            assert todo.pop()().writes.left == 0

    with pytest.raises((Conflict, LeaseLost), match="nothing more is written"):
        getattr(news, command)(progress=progress)
    assert not todo
    assert (with_fields(client, index_name), hidden(client, index_name)) == (0, [])


def test_what_a_run_writes_while_clean_ends(client: Client, index_name: str) -> None:
    """The settings are removed last, and documents are read again afterwards."""
    fill(client, index_name)
    news = NearDupe(index_name, client)
    news.init(TITLES)
    news.enrich()
    fields = {"doc": {"neardupe": {"group": "AAAAAAAAAAAAAAAA"}}}

    class Ending(ForwardingClient):
        def request(self, method: str, path: str, **options: Any) -> Any:
            if (method, path) == ("PUT", f"/{index_name}/_mapping"):
                client.request("POST", f"/{index_name}/_update/d00", body=fields)
            return self.plain.request(method, path, **options)

    report = NearDupe(index_name, Ending(client)).clean()
    assert (report.documents, report.writes.written, report.writes.left) == (41, 41, 0)
    assert with_fields(client, index_name) == 0


def test_clean_of_fields_without_settings(client: Client, index_name: str, server_cli: Cli) -> None:
    """It is unknown who sets the versions of the documents, so they keep them. The fields of others stay."""
    fill(client, index_name)
    news = NearDupe(index_name, client)
    news.init(TITLES)
    news.enrich()
    stored = client.request("GET", path(index_name, "_doc", "d00"))["_source"]
    news.clean()
    params: dict[str, Any] = {"version": 50, "version_type": "external", "refresh": True}
    client.request("PUT", path(index_name, "_doc", "d00"), params=params, body={**stored, "price": 1.10})
    done = server_cli("clean", index_name, "--dry-run", "--json").json
    assert (done["prepared"], done["documents"]) == (True, 1)
    assert news.clean().writes.written == 1
    found = client.request("GET", path(index_name, "_doc", "d00"))
    assert (found["_version"], found["_source"].keys()) == (50, {"title", "body", "price"})
    assert with_fields(client, index_name) == 0
