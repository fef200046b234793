"""Indices that are restored from a snapshot, cloned, shrunk, split or deleted: groups, registry and totals stay true,
and an index never uses or changes the hidden indices of another."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import pytest
from rollover_tools import rolled
from server_tools import (
    JSON,
    assert_settled,
    change,
    delete_all,
    family,
    hits,
    make_index,
    mapping,
    new_name,
    put,
    theirs,
    words,
)

from es_neardupe import NearDupe, Settings
from es_neardupe.errors import Blocked, IndexReplaced, NameTaken, NotInitialised
from es_neardupe.local_server.versions import Release, pick
from es_neardupe.records import Product
from es_neardupe.server.client import Before, Client, path

pytestmark = [pytest.mark.server, pytest.mark.timeout(900), pytest.mark.either("sidecar")]

SETTINGS = Settings(("text",), threshold=0.7)
WAIT: JSON = {"wait_for_completion": True}
_MARK = "neardupe.owner"

both_storages = pytest.mark.parametrize("sidecar", [False, True], ids=["inline", "sidecar"])


@pytest.fixture(params=["opensearch", pytest.param("elasticsearch", marks=pytest.mark.long)])
def server(request: pytest.FixtureRequest, node_with_repository: Callable[[Release], Client]) -> Client:
    """A node with the repository ``kept``."""
    return node_with_repository(pick(request.param))


@pytest.fixture
def name(server: Client) -> Iterator[str]:
    """The name of an index; all indices whose names contain it are deleted after the test."""
    chosen = new_name()
    yield chosen
    delete_all(server, f"*{chosen}")


def documents(first: int, last: int) -> JSON:
    """Families of three near-copies, and as many texts without one."""
    texts = {f"f{n}-{k}": text for n in range(first, last) for k, text in enumerate(family(n, 3, length=60))}
    texts |= {f"alone{n}": " ".join(words(n, 30)) for n in range(first, last)}
    return {id: {"text": text} for id, text in texts.items()}


def begun(client: Client, name: str, *, sidecar: bool) -> NearDupe:
    """An index with five grouped families, on two shards."""
    shards = {"number_of_shards": 2, "number_of_routing_shards": 4, "number_of_replicas": 0}
    make_index(client, name, settings=shards)
    put(client, name, documents(0, 5))
    found = NearDupe(name, client)
    found.init(SETTINGS, sidecar=sidecar)
    grouped(found, 5, evidence=True)
    return found


def grouped(found: NearDupe, families: int, **options: Any) -> Any:
    """Run enrich and group as a user would; the groups and each total are those of this number of families."""
    found.enrich()
    report = found.group(**options)
    sizes = [sorted(member.id for member in one.members) for one in found.groups()]
    assert all(len(ids) == 3 and len({id.split("-")[0] for id in ids}) == 1 for ids in sizes)
    totals = report.groups
    assert (len(sizes), totals.count, totals.grouped) == (families, families, 3 * families)
    assert (report.scope.documents, totals.alone) == (4 * families, families)
    return report


def complete(client: Client, name: str) -> JSON:
    """Settings, mapping and documents with their versions, except the lease of runs."""
    (found,) = client.request("GET", path(name)).values()
    versions = {hit["_id"]: (hit["_source"], hit["_seq_no"], hit["_version"]) for hit in hits(client, name)}
    return {**found, "documents": {id: one for id, one in versions.items() if id not in ("lease", "feed")}}


def all_of(client: Client, name: str) -> dict[str, JSON]:
    """An index and its hidden indices, completely."""
    names = client.request("GET", path(f"{name},{name}-neardupe-*", "_alias"), params={"expand_wildcards": "all"})
    return {one: complete(client, one) for one in sorted(names)}


def ids_of_groups(found: NearDupe) -> set[str]:
    return {one.group for one in found.groups()}


def snapshot(client: Client, name: str, *indices: str) -> None:
    body = {"indices": ",".join(indices), "include_global_state": False}
    client.request("PUT", path("_snapshot", "kept", name), params=WAIT, body=body)


def restore(client: Client, name: str, **options: Any) -> None:
    body = {"include_global_state": False, "include_aliases": False, **options}
    answer = client.request("POST", path("_snapshot", "kept", name, "_restore"), params=WAIT, body=body)
    assert answer["snapshot"]["shards"]["failed"] == 0


def back(client: Client, name: str, way: str) -> None:
    """Restore the index from its snapshot over the current one, which is deleted or closed for this."""
    client.request(*{"deleted": ("DELETE", path(name)), "closed": ("POST", path(name, "_close"))}[way])
    restore(client, name, indices=name)


@pytest.mark.either("way")
@both_storages
@pytest.mark.parametrize("way", ["deleted", "closed"])
def test_an_earlier_state_of_the_index_alone(way: str, sidecar: bool, server: Client, name: str) -> None:
    """Its hidden indices are newer, and have groups of documents that no longer exist."""
    found = begun(server, name, sidecar=sidecar)
    before, ids = theirs(server, name), ids_of_groups(found)
    snapshot(server, name, name)
    put(server, name, {**documents(5, 9), "f0-0": {"text": " ".join(words("changed", 40))}})
    found.enrich()
    assert found.group(evidence=True).groups.count == 8  # the others of the changed principal are not near enough
    back(server, name, way)
    report = grouped(found, 5)
    assert (report.scope.whole, report.scope.reason) == (True, f"restored or copied since the last run: {name}")
    assert theirs(server, name) == before
    if not sidecar:
        assert ids_of_groups(found) == ids
    assert_settled(server, name)
    assert not grouped(found, 5).scope.whole


@both_storages
def test_a_later_state_than_that_of_the_hidden_indices(sidecar: bool, server: Client, name: str) -> None:
    """All are restored, the hidden indices from an earlier snapshot."""
    found = begun(server, name, sidecar=sidecar)
    hidden = [one for one in all_of(server, name) if one != name]
    snapshot(server, f"{name}-1", *hidden)
    put(server, name, documents(5, 9))
    grouped(found, 9)
    users, ids = theirs(server, name), ids_of_groups(found)
    snapshot(server, f"{name}-2", name)
    for one in (name, *hidden):
        server.request("DELETE", path(one))
    restore(server, f"{name}-1")
    restore(server, f"{name}-2")
    grouped(found, 9)
    assert theirs(server, name) == users
    assert ids_of_groups(found) == ids
    assert_settled(server, name)


@both_storages
def test_a_snapshot_of_everything(sidecar: bool, server: Client, name: str) -> None:
    found = begun(server, name, sidecar=sidecar)
    every = all_of(server, name)
    shown = found.groups()
    snapshot(server, name, *every)
    for one in every:
        server.request("DELETE", path(one))
    restore(server, name)
    assert found.groups() == shown
    assert grouped(found, 5).writes.written == 0
    assert found.groups() == shown
    assert_settled(server, name)
    put(server, name, documents(5, 6))
    grouped(found, 6, evidence=True)
    assert set(found.clean().deleted_indices) == every.keys() - {name}
    assert not any("neardupe" in hit["_source"] for hit in hits(server, name))


@both_storages
def test_restored_under_another_name(sidecar: bool, server: Client, name: str) -> None:
    """The copy does not use the hidden indices of the original, nor copies of them, until their marks name it."""
    found = begun(server, name, sidecar=sidecar)
    every = all_of(server, name)
    snapshot(server, name, *every)
    copied, other = NearDupe(f"copy-{name}", server), f"copy-{name}"
    restore(server, name, rename_pattern="^", rename_replacement="copy-")
    hidden = [one for one in all_of(server, other) if one != other]
    before = all_of(server, other)
    for command in (copied.group, copied.clean, copied.enrich)[: 3 if sidecar else 2]:
        with pytest.raises(NameTaken, match=f"belongs to {name} with prefix"):
            command()
    assert (all_of(server, name), all_of(server, other)) == (every, before)
    for one in hidden:  # as docs/indices.md says
        meta = mapping(server, one)["_meta"]
        body = {"_meta": {**meta, _MARK: {**meta[_MARK], "index": other}}}
        server.request("PUT", path(one, "_mapping"), body=body)
    grouped(copied, 5)
    assert {member.index for one in copied.groups() for member in one.members} == {other}
    assert_settled(server, other)
    put(server, other, documents(5, 7))
    grouped(copied, 7)
    assert set(copied.clean().deleted_indices) == set(hidden)
    assert all_of(server, name) == every
    assert found.group().writes.written == 0


RESIZED: Mapping[str, JSON] = {
    "clone": {},
    "shrink": {"number_of_shards": 1},
    "split": {"number_of_shards": 4},
}


def resized(client: Client, name: str, other: str, how: str) -> None:
    """Clone, shrink or split an index, which must be blocked for writing meanwhile."""
    block = {"index.blocks.write": True}
    client.request("PUT", path(name, "_settings"), body=block)
    body = {"settings": {"index": {**RESIZED[how], "number_of_replicas": 0}}}
    client.request("POST", path(name, f"_{how}", other), params={"wait_for_active_shards": "all"}, body=body)
    client.request("PUT", path(name, "_settings"), body=dict.fromkeys(block))


@pytest.mark.either("how")
@pytest.mark.parametrize("how", RESIZED)
def test_resized(how: str, server: Client, name: str) -> None:
    """The result has keys and groups, and gets its own registry."""
    found, other = begun(server, name, sidecar=False), f"{name}-{how}"
    before = all_of(server, name)
    resized(server, name, other, how)
    copied = NearDupe(other, server)
    assert ids_of_groups(copied) == ids_of_groups(found)
    with pytest.raises(Blocked, match=r"index\.blocks\.write"):  # it is copied too
        copied.enrich()
    server.request("PUT", path(other, "_settings"), body={"index.blocks.write": None})
    assert grouped(copied, 5).writes.written == 0
    assert ids_of_groups(copied) == ids_of_groups(found)
    assert_settled(server, other)
    put(server, other, documents(5, 8))
    grouped(copied, 8)
    assert mapping(server, f"{other}-neardupe-groups")["_meta"][_MARK]["index"] == other
    assert contents(all_of(server, name)) == contents(before)
    assert found.group().writes.written == 0
    copied.clean()
    assert_settled(server, name)


def text_changes(client: Client, name: str, found: NearDupe, id: str) -> int:
    """Change the text of a document by a partial update; returns the number of documents whose keys `enrich` renews."""
    change(client, name, id, {"text": " ".join(words((name, id), 30))})
    return int(found.enrich().writes.written)


@pytest.mark.parametrize("way", ["deleted", "closed"])
def test_changed_texts_after_a_restore(way: str, server: Client, name: str) -> None:
    """Sequence numbers begin again, so stored progress is not used: all documents are read once."""
    found = begun(server, name, sidecar=False)
    change(server, name, "alone1", {"text": " ".join(words("unnoticed", 30))})
    snapshot(server, name, name)
    assert [text_changes(server, name, found, id) for id in ("alone2", "alone3")] == [2, 1]
    back(server, name, way)
    report = found.enrich()
    assert (report.scope.reread, report.writes.written) == ({name: "it was not processed before"}, 1)
    assert text_changes(server, name, found, "alone4") == 1
    assert found.enrich(check=True).writes.written == 0
    assert found.enrich().scope.reread == {}


@pytest.mark.parametrize("how", RESIZED)
def test_changed_texts_after_a_resize(how: str, server: Client, name: str) -> None:
    found, other = begun(server, name, sidecar=False), f"{name}-{how}"
    found.enrich()
    resized(server, name, other, how)
    server.request("PUT", path(other, "_settings"), body={"index.blocks.write": None})
    copied = NearDupe(other, server)
    assert copied.enrich().scope.reread == {other: "it was not processed before"}
    assert text_changes(server, other, copied, "alone1") == 1
    assert text_changes(server, name, found, "alone1") == 1
    assert copied.enrich().scope.read == found.enrich().scope.read == 0


def test_reindexed_with_keys(server: Client, name: str) -> None:
    """Documents have their keys, and the numbers of writes in another index."""
    found, other = begun(server, name, sidecar=False), f"{name}-again"
    make_index(server, other, settings={"number_of_shards": 3, "number_of_replicas": 0})
    copied = NearDupe(other, server)
    copied.init(SETTINGS)
    if server.server.product is Product.OPENSEARCH:
        body = {"source": {"index": name}, "dest": {"index": other}}
        server.request("POST", path("_reindex"), params={"refresh": True}, body=body)
    else:  # the local node has no module for it; a client does the same
        put(server, other, {hit["_id"]: hit["_source"] for hit in hits(server, name)})
    assert copied.enrich().scope.reread == {other: "it was not processed before"}
    assert copied.group(dry_run=True).scope.reason == (
        "the first run; rules, histories and decisions of reviewers about the groups that its documents have are not "
        "known here"
    )
    assert text_changes(server, other, copied, "alone1") == 1
    assert found.enrich(check=True).writes.written == 0


def contents(states: Mapping[str, JSON]) -> dict[str, JSON]:
    """Mappings and documents; the write block has changed the version of the settings."""
    return {name: {part: one[part] for part in ("mappings", "documents")} for name, one in states.items()}


@pytest.mark.either("how")
@pytest.mark.parametrize("how", RESIZED)
def test_resized_with_a_sidecar(how: str, server: Client, name: str) -> None:
    """The keys are not in the documents, so the result has none."""
    found, other = begun(server, name, sidecar=True), f"{name}-{how}"
    before = all_of(server, name)
    resized(server, name, other, how)
    copied = NearDupe(other, server)
    for command in (copied.enrich, copied.group, copied.groups):
        with pytest.raises(NotInitialised):
            command()
    copied.init(SETTINGS, sidecar=True)
    grouped(copied, 5, evidence=True)
    assert_settled(server, other)
    put(server, name, documents(5, 6))  # the original continues on its own
    grouped(found, 6)
    assert all_of(server, other).keys() == {one.replace(name, other) for one in before}
    assert copied.group().writes.written == 0
    copied.clean()
    assert_settled(server, name)


@both_storages
def test_a_policy_that_shrinks_an_index_of_an_alias(sidecar: bool, server: Client) -> None:
    """A copy takes the place of the index, as ILM does it: the registry has groups with addresses of the former one."""
    with rolled(server, "alias") as rolling:
        found = NearDupe(rolling.name, server)
        rolling.add(0, 4)
        (first,) = found.init(SETTINGS, sidecar=sidecar).indices
        found.enrich()
        rolling.roll()
        rolling.add(4, 6)
        found.enrich()
        found.group(evidence=True)
        (before,) = found.groups()
        copied = f"shrink-{rolling.name}"
        resized(server, first, copied, "clone")
        server.request("PUT", path(copied, "_settings"), body={"index.blocks.write": None})
        actions = [{"remove_index": {"index": first}}, {"add": {"index": copied, "alias": rolling.name}}]
        server.request("POST", path("_aliases"), body={"actions": actions})
        found.enrich()
        report = found.group(evidence=True)
        (after,) = found.groups()
        assert (after.size, report.groups.count, report.groups.grouped, report.groups.alone) == (6, 1, 6, 0)
        assert {one.index for one in after.members} >= {copied}
        assert first not in {one.index for one in after.members}
        if not sidecar:
            assert report.scope.reason == f"restored or copied since the last run: {copied}"
            assert after.group == before.group
        assert_settled(server, rolling.name)
        assert found.group().scope.reason == "0 new or changed documents"
        found.clean()


@both_storages
def test_a_policy_that_deletes_an_index_of_an_alias(sidecar: bool, server: Client) -> None:
    """Its documents are in no total of the next run, without --check."""
    with rolled(server, "alias") as rolling:
        found = NearDupe(rolling.name, server)
        rolling.add(0, 4)
        (first,) = found.init(SETTINGS, sidecar=sidecar).indices
        put(server, first, documents(0, 2))
        found.enrich()
        rolling.roll()
        rolling.add(4, 6)
        found.enrich()
        found.group()
        assert found.stats().groups.count == 3
        server.request("DELETE", path(first))
        report = found.group()
        assert (report.scope.whole, report.scope.documents) == (False, 2)
        assert report.scope.reason == "0 new or changed documents, 3 groups that lost documents"
        assert (report.groups.count, report.groups.grouped, report.groups.alone) == (1, 2, 0)
        assert [one.size for one in found.groups()] == [2]
        assert_settled(server, rolling.name)
        assert found.group().scope.reason == "0 new or changed documents"


def test_restored_during_a_run(server: Client, name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The run stops, and the next one repairs what it has written."""
    found = begun(server, name, sidecar=False)
    snapshot(server, name, name)
    put(server, name, documents(5, 9))
    plain = server.bulk
    done: list[bool] = []

    def bulk(body: bytes, *, before: Before, **options: Any) -> Any:
        def sending() -> None:
            before()
            if not done:
                done.append(True)
                back(server, name, "closed")

        return plain(body, before=sending, **options)

    monkeypatch.setattr(server, "bulk", bulk)
    with pytest.raises(IndexReplaced, match=r"restored from a snapshot, during this run.*enrich .* --check"):
        found.enrich()
    assert found.enrich(check=True).scope.documents == 20
    grouped(found, 5)
    assert_settled(server, name)
