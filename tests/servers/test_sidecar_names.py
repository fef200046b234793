"""Sidecar indices for other names: data streams, aliases, relations of join fields; and dry runs of all of them."""

from __future__ import annotations

import json
from collections.abc import Iterator

import pytest
from conftest import Cli
from rollover_tools import KINDS, Rolling, rolled
from server_tools import JSON, assert_settled, exists, family, hits, make_index, make_or_skip, put, send, theirs
from sidecar_tools import PROPERTIES, document, state, texts

from es_neardupe import NearDupe
from es_neardupe.errors import IndexUnusable, RequestError, RolledOver
from es_neardupe.index.settings import Settings
from es_neardupe.index.storage.sidecar import queries
from es_neardupe.index.storage.sidecar.indices import sidecar_name
from es_neardupe.server.client import Client, path

pytestmark = pytest.mark.either("write_group")

SETTINGS = Settings(("text",))


@pytest.fixture(params=KINDS)
def rolling(request: pytest.FixtureRequest, client: Client) -> Iterator[Rolling]:
    with rolled(client, request.param) as made:
        yield made


def _backing(client: Client, name: str) -> list[str]:
    return sorted(client.request("GET", path(name, "_mapping")))


def test_enrich_makes_what_a_rollover_lacks(rolling: Rolling, client: Client, server_cli: Cli) -> None:
    name = rolling.name
    rolling.add(0, 4)
    first = NearDupe(name, client).init(SETTINGS, sidecar=True)
    assert (first.rolls_over, first.next_prepared) == (True, None)
    NearDupe(name, client).enrich()
    NearDupe(name, client).group()
    new = rolling.roll()
    rolling.add(4, 8)
    made = sidecar_name(new, "neardupe")
    before = [state(client, index) for index in _backing(client, name)]

    for work in (NearDupe.group, NearDupe.groups, NearDupe.stats):
        with pytest.raises(RolledOver, match=f"{new} was created by a rollover.*es-neardupe enrich {name}"):
            work(NearDupe(name, client))
    dry = NearDupe(name, client).enrich(dry_run=True, show_requests=2)
    assert (dry.prepared, dry.scope.documents, dry.writes.written) == ((new,), 8, 4)
    assert {json.loads(one.body.splitlines()[0])["create"]["_index"] for one in dry.requests} == {made}
    assert not exists(client, made)

    run = server_cli("watch", name, "--once", "--json")
    assert run.code == 0, run.err
    assert exists(client, made)
    (found,) = NearDupe(name, client).groups()
    assert found.size == 8  # the group spans both
    assert [one.level for one in NearDupe(name, client).doctor() if one.name == "rollover"] == ["ok"]
    assert [state(client, index) for index in _backing(client, name)] == before


def test_clean_after_a_rollover(rolling: Rolling, client: Client) -> None:
    """The index created by the rollover has no sidecar that could be removed."""
    name = rolling.name
    rolling.add(0, 2)
    (beside,) = NearDupe(name, client).init(SETTINGS, sidecar=True).sidecars
    rolling.roll()
    dry = NearDupe(name, client).clean(dry_run=True, show_requests=2)
    assert [(one.method, one.path) for one in dry.requests] == [("DELETE", path(beside))]
    assert exists(client, beside)
    assert NearDupe(name, client).clean().deleted_indices == (beside,)
    assert not exists(client, beside)


@pytest.mark.product("opensearch")
def test_other_relations_are_left_alone(client: Client, index_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    join = {"type": "join", "relations": {"question": "answer"}}
    try:
        make_index(client, index_name, {**PROPERTIES, "kind": join}, settings={"index": {"number_of_shards": 2}})
    except RequestError as error:
        if "[join]" not in error.reason:
            raise
        pytest.skip("this server has no join fields: its module parent-join is not there")
    some = family(index_name, 6)
    actions: list[tuple[JSON, JSON | None]] = []
    for number, text in enumerate(some):
        parent = {"index": {"_index": index_name, "_id": f"p{number}"}}
        child = {"index": {"_index": index_name, "_id": f"c{number}", "routing": f"p{number}"}}
        actions.append((parent, {**document(f"p{number}", text), "kind": "question"}))
        actions.append((child, {"text": text, "kind": {"name": "answer", "parent": f"p{number}"}}))
    send(client, actions)
    before = state(client, index_name)
    report = NearDupe(index_name, client).init(SETTINGS, sidecar=True)
    assert report.skipped == {"kind": ("answer",)}
    done = NearDupe(index_name, client).enrich()
    assert (done.scope.documents, done.scope.skipped, done.writes.written, done.scope.excluded) == (
        6,
        6,
        6,
        6,
    )
    grouped = NearDupe(index_name, client).group()
    assert (grouped.scope.documents, grouped.groups.grouped, grouped.scope.unprocessed) == (6, 6, 0)
    assert {hit["_id"] for hit in hits(client, f"{index_name}-neardupe-sidecar")} == {f"p{k}" for k in range(6)}
    shown = NearDupe(index_name, client).stats()
    assert (shown.scope.documents, shown.scope.skipped, shown.scope.unprocessed) == (6, 6, 0)
    assert {hit.id for hit in NearDupe(index_name, client).similar(text=some[0], min=0.5).hits} == {
        f"p{k}" for k in range(6)
    }
    assert state(client, index_name) == before

    monkeypatch.setattr(queries, "MAX_IDS", 2)  # any number of either kind: their join field is not read
    monkeypatch.setattr(queries, "_PAGE", 2)
    assert NearDupe(index_name, client).stats() == shown
    now_child = {"text": some[3], "kind": {"name": "answer", "parent": "p1"}}
    client.request("PUT", path(index_name, "_doc", "p3"), params={"routing": "p3", "refresh": True}, body=now_child)
    assert NearDupe(index_name, client).enrich().removed == 1
    after = NearDupe(index_name, client).stats()
    assert (after.scope.documents, after.scope.skipped, after.scope.states["signed"]) == (5, 7, 5)
    assert NearDupe(index_name, client).group().scope.documents == 5


@pytest.mark.parametrize("write_group", [False, True])
def test_dry_runs_show_what_would_be_sent(client: Client, index_name: str, server_cli: Cli, write_group: bool) -> None:
    make_index(client, index_name, PROPERTIES)
    documents = texts(3, 12)
    put(client, index_name, documents)
    before, beside = state(client, index_name), f"{index_name}-neardupe-sidecar"
    more = ["--sidecar", *(["--write-group"] if write_group else [])]
    dry = ["--dry-run", "--show-requests", "2", "--json"]

    def shown(*command: str) -> list[JSON]:
        run = server_cli(*command, *dry)
        assert run.code == 0, run.err
        assert state(client, index_name) == before
        requests: list[JSON] = run.json["requests"]
        return requests

    found = shown("init", index_name, "--field", "text", *more)
    wanted = [("PUT", f"/{index_name}/_mapping"), ("PUT", f"/{beside}")]
    assert [(one["method"], one["path"]) for one in found] == wanted[not write_group :]
    assert not exists(client, beside)
    assert server_cli("init", index_name, "--field", "text", *more).code == 0
    before = state(client, index_name)
    found = shown("enrich", index_name)
    assert json.loads(found[0]["body"].splitlines()[0])["create"]["_index"] == beside
    assert not hits(client, beside)
    NearDupe(index_name, client).enrich()
    before = state(client, index_name)
    found = shown("group", index_name)
    assert {json.loads(line)["update"]["_index"] for line in found[0]["body"].splitlines()[::2]} == {beside}
    NearDupe(index_name, client).group()
    before = state(client, index_name)
    found = shown("clean", index_name)
    assert (found[-1]["method"], found[-1]["path"]) == ("DELETE", f"/{beside}")
    assert len(found) == 1 + write_group


def test_from_keys_in_documents_to_keys_beside_and_back(client: Client, index_name: str) -> None:
    """A cleaned index still has the neardupe fields in its mapping; its sidecar is detected and removed anyway."""
    make_index(client, index_name, PROPERTIES)
    put(client, index_name, texts(3, 6))
    for beside in (False, True, True, False):
        made = NearDupe(index_name, client).init(SETTINGS, sidecar=beside).sidecars
        assert NearDupe(index_name, client).enrich().writes.written >= 6
        assert NearDupe(index_name, client).stats().sidecars == made
        NearDupe(index_name, client).group()
        assert NearDupe(index_name, client).clean().deleted_indices == (f"{index_name}-neardupe-groups", *made)
        assert not any(exists(client, name) for name in made)
        assert NearDupe(index_name, client).clean().deleted_indices == ()


@pytest.mark.product("elasticsearch")
def test_source_that_a_setting_disables(client: Client, index_name: str) -> None:
    stored = {"text": {"type": "text", "store": True}}
    make_or_skip(client, index_name, stored, {"index.mapping.source.mode": "disabled"})
    put(client, index_name, {id: {"text": one["text"]} for id, one in texts(3, 6).items()})
    with pytest.raises(IndexUnusable, match="has _source disabled"):
        NearDupe(index_name, client).init(SETTINGS)
    NearDupe(index_name, client).init(SETTINGS, sidecar=True)
    assert NearDupe(index_name, client).enrich().writes.written >= 6
    assert NearDupe(index_name, client).group().scope.stale == 0
    assert [one.message for one in NearDupe(index_name, client).doctor() if one.level != "ok"] == []


@pytest.mark.parametrize("sidecar", [False, True])
@pytest.mark.product("elasticsearch")
def test_source_that_is_synthetic(client: Client, index_name: str, sidecar: bool) -> None:
    """Synthetic source is built from the fields for each answer: values return in another form with the same
    meaning."""
    stored = {**PROPERTIES, "text": {"type": "text", "store": True}, "tags": {"type": "keyword"}}
    make_or_skip(client, index_name, stored, {"index.mapping.source.mode": "synthetic"})
    documents = texts(1, 24)
    put(client, index_name, {id: {**one, "tags": ["b", "a"]} for id, one in documents.items()})
    before = theirs(client, index_name)
    assert all('"tags": ["a", "b"]' in doc for doc in before.values())
    NearDupe(index_name, client).init(Settings(("text",), threshold=0.6), sidecar=sidecar, write_group=sidecar)
    done = NearDupe(index_name, client).enrich()
    assert done.writes.written == done.scope.documents == len(documents)
    NearDupe(index_name, client).group()
    assert 0 < min(one.min_similarity for one in NearDupe(index_name, client).groups()) < 1
    assert_settled(client, index_name)
    assert NearDupe(index_name, client).enrich(check=True).writes.written == 0
    assert theirs(client, index_name) == before
    assert NearDupe(index_name, client).clean().writes.left == 0
    assert {json.dumps(hit["_source"]) for hit in hits(client, index_name)} == {*before.values()}


@pytest.mark.product("opensearch")
def test_source_that_is_derived(client: Client, index_name: str) -> None:
    make_or_skip(client, index_name, PROPERTIES, {"index.derived_source.enabled": True})
    put(client, index_name, {id: {"text": one["text"]} for id, one in texts(3, 6).items()})
    with pytest.raises(IndexUnusable, match=r"derives _source.*--sidecar"):
        NearDupe(index_name, client).init(SETTINGS)
    NearDupe(index_name, client).init(SETTINGS, sidecar=True, write_group=True)
    done = NearDupe(index_name, client).enrich()
    assert done.writes.mirrored is not None
    assert done.writes.mirrored.written == done.writes.written == done.scope.documents
    assert NearDupe(index_name, client).group().scope.stale == 0
    assert NearDupe(index_name, client).enrich().scope.read == 0
