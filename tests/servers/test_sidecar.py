"""Sidecar storage on real servers: the same answers as inline, and no write to the index itself."""

from __future__ import annotations

import json
import random
import re
from collections.abc import Callable, Iterator
from importlib.resources import files
from typing import Any

import pytest
from conftest import Cli
from hints import complaints, followed
from kill_tools import Command, Moment, State, copies_of, put_back, run_commands, run_to_death, writes_of
from secured import Secured
from server_tools import JSON, change, family, hits, make_index, mapping, one_line, put, send, theirs, words
from sidecar_tools import PROPERTIES, Both, document, random_changes, state, texts, untouched

from es_neardupe import NearDupe
from es_neardupe.errors import Blocked, Forbidden, IndexUnusable, NotInitialised, SchemeMismatch, SettingsError
from es_neardupe.index.settings import Settings
from es_neardupe.records import Hit
from es_neardupe.server.client import Client, ForwardingClient, path

pytestmark = pytest.mark.either("write_group")


def test_groups_are_those_of_inline_keys_through_random_changes(client: Client, index_name: str) -> None:
    both, rng = Both(client, index_name), random.Random(7)
    both.init()
    documents = texts(1, 40)
    both.put(documents)
    for turn in range(3):
        if turn:
            random_changes(both, rng, documents, [f"n{turn}{k}" for k in range(5)])
        before = state(client, both.sidecar)
        NearDupe(both.inline, client).enrich(check=True)
        NearDupe(both.sidecar, client).enrich()
        options: dict[str, Any] = {"check": True, "evidence": turn > 1}
        one, other = both.run(NearDupe.group, **options)
        untouched(client, both.sidecar, before)
        assert both.groups(both.inline) == both.groups(both.sidecar), turn
        assert both.groups(both.sidecar).keys() == documents.keys()
        assert one["pairs"]["matches"] == other["pairs"]["matches"], turn
        for part, name in (
            *(("scope", name) for name in ("documents", "stale")),
            *(("groups", name) for name in ("count", "grouped", "alone", "largest", "min_similarity")),
        ):
            assert one[part][name] == other[part][name], (turn, name)
        again = NearDupe(both.sidecar, client).group(**options)
        assert (again.writes.written, again.scope.stale) == (0, 0)


def test_every_command_says_the_same(client: Client, index_name: str) -> None:
    both = Both(client, index_name)
    both.init(sample_mod=2)
    documents = texts(2, 40)
    both.put(documents)
    for index in both.names:
        NearDupe(index, client).enrich(query={"range": {"date": {"lte": "2024-05-25"}}})
        NearDupe(index, client).group(evidence=True, within=["source"], principal="date:asc")
    both.put({"late1": document("late1", documents["d000"]["text"]), "late2": document("late2", "quite new")})
    scope, by_url = {"term": {"source": "a"}}, {"query": {"match": {"title": "text"}}, "sort": ["url"]}
    id = next(id for id, one in documents.items() if one["text"] and one["date"] < "2024-05-20")
    commands: list[tuple[Callable[..., Any], tuple[Any, ...], dict[str, Any]]] = [
        (NearDupe.stats, (), {"buckets": 10}),
        (NearDupe.groups, (), {}),
        (NearDupe.suggest_keep, (), {"policy": "date:desc"}),
        (NearDupe.similar, (), {"id": id, "min": 0.1}),
        (NearDupe.similar, (), {"id": id, "min": 0.1, "query": scope}),
        (NearDupe.contained, (), {"id": id, "min": 0.2, "query": scope}),
        (NearDupe.moved, (f"http://example.org/{id}",), {"min": 0.1, "earlier": True}),
        (NearDupe.distribution, (), {}),
        (NearDupe.what_if, (), {"min": [0.5, 0.9]}),
        (NearDupe.audit, (), {"sample": 100}),
        (NearDupe.compare, (id, "late1"), {}),
        (NearDupe.shingles, (id,), {}),
        (NearDupe.shingles, ("late1",), {}),
        (NearDupe.search, (by_url,), {"size": 5, "start": 3, "expand": True, "query": scope}),
        (NearDupe.search, (by_url,), {"size": 50, "expand": True}),
        (NearDupe.group, (), {"dry_run": True, "rebuild": True, "window": "date:7"}),
        (NearDupe.enrich, (), {"dry_run": True, "query": scope}),
    ]
    for command, arguments, options in commands:
        one, other = both.run(command, *arguments, **options)
        assert one == other, (command.__name__, options)
    found = [_by_stored_keys(client, index) for index in both.names]
    assert found[0] == found[1]
    assert found[0]
    pairs = [sorted((p.a[1], p.b[1], round(p.similarity, 9)) for p in NearDupe(i, client).pairs()) for i in both.names]
    assert pairs[0] == pairs[1]
    assert pairs[0]
    orders = [[hit.id for hit in NearDupe(index, client).search(by_url, size=9).hits] for index in both.names]
    assert orders[0] == orders[1]


def _by_stored_keys(client: Client, index: str) -> list[tuple[str, str]]:
    """The pairs of a request of `duplicates` whose candidates come from the stored keys."""
    ready = files("es_neardupe.commands.duplicates") / "examples" / "near-identical-abstracts.json"
    request = json.loads(ready.read_text("utf-8").replace('"abstract"', '"text"'))
    stage = request["stages"]["similarPairs"]
    stage["hashGrouping"]["features"] = "scheme"
    stage["validation"]["pairwiseSimilarity"] = {
        "type": "pairwiseSimilarity:resemblance",
        "fields": {"type": "fields:reference", "use": "sourceFields"},
    }
    found: Any = NearDupe(index, client).duplicates(request).stages["similarPairs"]
    return sorted((pair.a[1], pair.b[1]) for pair in found.pairs)


def _ready(client: Client, index: str, **init: Any) -> dict[str, JSON]:
    """An application's index with some families, and its sidecar index."""
    documents = texts(3, 20)
    make_index(client, index, PROPERTIES)
    put(client, index, documents)
    NearDupe(index, client).init(Settings(("text",)), sidecar=True, **init)
    return documents


def _work(client: Client, index: str) -> None:
    NearDupe(index, client).enrich()
    NearDupe(index, client).group()


def _stored(client: Client, index: str) -> dict[str, JSON]:
    return {hit["_id"]: hit["_source"]["neardupe"] for hit in hits(client, f"{index}-neardupe-sidecar")}


def test_write_group_writes_group_ids_and_nothing_else(client: Client, index_name: str) -> None:
    _ready(client, index_name, write_group=True)
    before = theirs(client, index_name)
    _work(client, index_name)
    assert theirs(client, index_name) == before
    assert {hit["_id"]: hit["_source"]["neardupe"] for hit in hits(client, index_name)} == {
        id: {"group": one["group"]} for id, one in _stored(client, index_name).items()
    }
    assert mapping(client, index_name)["properties"]["neardupe"]["properties"] == {"group": {"type": "keyword"}}
    after = state(client, index_name)
    again = NearDupe(index_name, client).enrich()
    assert again.writes.mirrored is not None
    assert (again.scope.read, again.writes.mirrored.written) == (0, 0)  # our own write is not a change of the text
    _work(client, index_name)
    untouched(client, index_name, after)

    collapsed = NearDupe(index_name, client).search({"query": {"match": {"title": "text"}}, "sort": ["url"]}, size=30)
    assert sum(1 + hit.near_copies for hit in collapsed.hits) == len(before)
    put(client, index_name, {"late": document("late", "not enriched yet")})
    found = NearDupe(index_name, client).search({"query": {"match": {"title": "text"}}, "sort": ["url"]}, size=30)
    assert (found.without_group, [hit.id for hit in found.apart], found.hits) == (1, ["late"], collapsed.hits)
    client.request("DELETE", path(index_name, "_doc", "late"), params={"refresh": True})
    change(client, index_name, "d000", {"text": "another text than before " * 4})
    mirrored = NearDupe(index_name, client).group().writes.mirrored
    assert mirrored is not None
    assert mirrored.written == 0  # enrich has not seen it
    _work(client, index_name)
    assert _stored(client, index_name)["d000"]["principal"]
    cleaned = NearDupe(index_name, client).clean()
    assert cleaned.writes.written == len(before)
    assert not any("neardupe" in hit["_source"] for hit in hits(client, index_name))


def test_a_change_while_group_ids_are_written_is_noticed(client: Client, index_name: str) -> None:
    _ready(client, index_name, write_group=True)
    NearDupe(index_name, client).enrich()
    entries = f"{index_name}-neardupe-sidecar"
    change(client, entries, "d001", {"@source": {"mirrored": False}})
    change(client, index_name, "d001", {"text": "what nobody has seen"})
    report = NearDupe(index_name, client).group()
    assert report.writes.mirrored is not None
    assert report.writes.mirrored.left == 1
    assert NearDupe(index_name, client).enrich().writes.written == 1


def test_only_changed_texts_are_read_and_gone_documents_are_removed(client: Client, index_name: str) -> None:
    documents = _ready(client, index_name)
    _work(client, index_name)
    group = _stored(client, index_name)["d002"]["group"]
    change(client, index_name, "d002", {"title": "another title"})
    change(client, index_name, "d003", {"text": "another text of seven words or so"})
    client.request("DELETE", path(index_name, "_doc", "d004"), params={"refresh": True})
    shown = NearDupe(index_name, client).stats()
    assert shown.scope.documents == len(documents)  # counts are those of the last enrich
    for one in NearDupe(index_name, client).groups():
        assert "d004" not in [member.id for member in one.members]
    report = NearDupe(index_name, client).enrich()
    assert (report.scope.read, report.writes.written, report.writes.unchanged, report.removed) == (2, 1, 1, 1)
    assert report.scope.documents == len(documents) - 1
    stored = _stored(client, index_name)
    assert "d004" not in stored
    assert stored["d002"]["group"] == group
    assert stored["d002"]["similarity"] is not None
    assert stored["d003"]["similarity"] is None
    assert NearDupe(index_name, client).enrich().scope.read == 0
    everything = NearDupe(index_name, client).enrich(all=True)
    assert everything.writes.written == len(documents) - 1


def test_only_documents_that_were_written_are_looked_at(client: Client, index_name: str) -> None:
    """The versions of all documents are read if one was deleted, also if counts balance; not for other changes."""
    make_index(client, index_name, settings={"number_of_shards": 2, "number_of_replicas": 0})
    documents = {f"d{number:02}": {"text": " ".join(words(number, 30))} for number in range(30)}
    put(client, index_name, documents)
    plain = NearDupe(index_name, client)
    plain.init(Settings(("text",)), sidecar=True)
    assert plain.enrich().writes.written == 30
    plain.group()

    def enriched() -> tuple[Any, int]:
        """The report of a run, and the number of documents of which it read the version."""
        spy = Counting(client)
        report = NearDupe(index_name, spy).enrich()
        checked = NearDupe(index_name, client).enrich(check=True, dry_run=True)
        assert (checked.writes.written, checked.removed, checked.scope.current) == (0, 0, checked.scope.documents)
        return report, spy.versions

    report, versions = enriched()
    assert (report.scope.read, report.scope.current, versions) == (0, 30, 0)
    change(client, index_name, "d00", {"text": "another text of a few words"})
    change(client, index_name, "d01", {"other": 1})
    put(client, index_name, {"new": {"text": "a new text"}})
    report, versions = enriched()
    assert (report.scope.read, report.scope.changed, report.scope.current) == (3, 2, 30)
    assert (report.writes.written, report.writes.unchanged, versions) == (2, 1, 3)
    send(client, [({"delete": {"_index": index_name, "_id": "d02"}}, None)])
    put(client, index_name, {"other": {"text": "with this one there are as many as before"}})
    report, versions = enriched()
    assert (report.writes.written, report.removed) == (1, 1)
    assert versions == 1 + 31
    send(client, [({"delete": {"_index": index_name, "_id": "d03"}}, None)])
    put(client, index_name, {"d03": {"text": "the same id with a text of its own"}})
    report, versions = enriched()
    assert (report.writes.written, report.removed, versions) == (1, 0, 1)
    change(client, f"{index_name}-neardupe-sidecar", "d04", {"neardupe": {"group": None}})
    send(client, [({"delete": {"_index": index_name, "_id": "d05"}}, None)])
    report, versions = enriched()
    assert (report.writes.written, report.removed, versions) == (1, 1, 30)


class Counting(ForwardingClient):
    """Counts the documents whose versions are read, without texts."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self.versions = 0

    def pages(self, index: str, body: Any, **options: Any) -> Iterator[list[Hit]]:
        for page in self.plain.pages(index, body, **options):
            self.versions += len(page) * (body.get("_source") is False and "docvalue_fields" not in body)
            yield page


def test_an_index_made_anew_under_the_same_name_is_read_anew(client: Client, index_name: str) -> None:
    make_index(client, index_name, PROPERTIES)
    put(client, index_name, {"a": document("a", "the first text of this document")})
    NearDupe(index_name, client).init(Settings(("text",)), sidecar=True)
    _work(client, index_name)
    client.request("DELETE", path(index_name))
    make_index(client, index_name, PROPERTIES)
    put(client, index_name, {"a": document("a", "quite another text, of the same number")})
    found = [one.message for one in NearDupe(index_name, client).doctor() if one.level == "warning"]
    assert [one for one in found if one.startswith(f"1 entry is from a former index named {index_name}")]
    assert NearDupe(index_name, client).enrich().writes.written == 1
    assert [one.level for one in NearDupe(index_name, client).doctor() if one.name == "sidecar"] == ["ok"]


def test_a_read_only_index(client: Client, index_name: str) -> None:
    block = "index.blocks.read_only"
    documents = texts(4, 12)
    make_index(client, index_name, PROPERTIES, settings={"index": {"refresh_interval": "-1"}})
    put(client, index_name, documents)
    client.request("PUT", path(index_name, "_settings"), body={block: True})
    try:
        before = state(client, index_name)
        NearDupe(index_name, client).init(Settings(("text",)), sidecar=True)
        with pytest.raises(Blocked):
            NearDupe(index_name, client).init(Settings(("text",)), sidecar=True, write_group=True)
        _work(client, index_name)
        assert NearDupe(index_name, client).groups()
        assert {one.level for one in NearDupe(index_name, client).doctor()} == {"ok"}
        removed = NearDupe(index_name, client).clean().deleted_indices
        assert f"{index_name}-neardupe-sidecar" in removed
        untouched(client, index_name, before)
    finally:
        client.request("PUT", path(index_name, "_settings"), body={block: None})


def test_a_source_without_other_fields(client: Client, index_name: str) -> None:
    """Texts are read from a ``_source`` that has them; which other fields it lacks does not matter."""
    properties = {
        **PROPERTIES,
        "title": {"type": "text"},
        "meta": {"properties": {"raw": {"type": "text"}, "lead": {"type": "text"}}},
    }
    documents = {id: {**one, "meta": {"raw": "raw", "lead": one["text"]}} for id, one in texts(4, 12).items()}
    parts: list[JSON] = [
        {"excludes": ["meta.raw", "te?t"]},
        {"includes": ["te*", "meta.lead"]},
        {"includes": ["text", "meta.l*"]},
    ]
    for number, part in enumerate(parts):
        name = f"{index_name}-{number}"
        make_index(client, name, properties, _source=part)
        put(client, name, documents)
        NearDupe(name, client).init(Settings(("text", "meta.lead")), sidecar=True)
        _work(client, name)
        (group, *_) = NearDupe(name, client).groups()
        assert list(group.members[0].fields) == (["text"] if number else ["title"]), "the title is not always kept"
        with pytest.raises(SettingsError, match=r"does not keep meta\.raw in _source"):
            NearDupe(name, client).groups(fields=["meta.raw"])
        with pytest.raises(IndexUnusable, match=r"only a part of each document"):
            NearDupe(name, client, prefix="inline").init(Settings(("text",), prefix="inline"))
    name = f"{index_name}-mixed"
    mixed = {**PROPERTIES, "lead": {"type": "text", "store": True}}
    make_index(client, name, mixed, _source={"excludes": ["lead"]})
    with pytest.raises(IndexUnusable, match="keeps text only in _source"):
        NearDupe(name, client).init(Settings(("text", "lead")), sidecar=True)
    with pytest.raises(IndexUnusable, match=r"keeps meta\.raw neither"):
        NearDupe(f"{index_name}-0", client, prefix="b").init(Settings(("meta.raw",), prefix="b"), sidecar=True)


def test_texts_in_stored_fields_alone(client: Client, index_name: str) -> None:
    bare, stored = f"{index_name}-bare", f"{index_name}-stored"
    off = {"_source": {"enabled": False}}
    make_index(client, bare, PROPERTIES, **off)
    make_index(client, stored, {**PROPERTIES, "text": {"type": "text", "store": True}}, dynamic="strict", **off)
    with pytest.raises(IndexUnusable, match="neither in _source nor as a stored field"):
        NearDupe(bare, client).init(Settings(("text",)), sidecar=True)
    documents = texts(5, 20)
    put(client, stored, documents)
    NearDupe(stored, client).init(Settings(("text",)), sidecar=True)
    _work(client, stored)
    both = Both(client, index_name)
    both.init()
    both.put(documents)
    _work(client, both.inline)
    sizes = [sorted(one.size for one in NearDupe(index, client).groups()) for index in (stored, both.inline)]
    assert sizes[0] == sizes[1]
    assert sizes[0]
    change_id = next(id for id, one in documents.items() if one["text"])
    found = NearDupe(stored, client).similar(id=change_id, min=0.1)
    assert found.query["tokens"] > 0
    assert NearDupe(stored, client).audit(sample=50).lost
    assert NearDupe(stored, client).enrich().scope.read == 0
    with pytest.raises(SettingsError, match="does not keep title in _source"):
        NearDupe(stored, client).search("text", fields=["title"])


def test_routing_is_kept(client: Client, index_name: str) -> None:
    shards = {"index": {"number_of_shards": 3}}
    make_index(client, index_name, PROPERTIES, settings=shards, _routing={"required": True})
    some = family("routed", 6, length=60)
    for number, text in enumerate(some):
        one = {"index": {"_index": index_name, "_id": f"r{number}", "routing": f"way{number}"}}
        send(client, [(one, document(f"r{number}", text))])
    NearDupe(index_name, client).init(Settings(("text",)), sidecar=True, write_group=True)
    _work(client, index_name)
    ways = {hit["_id"]: hit["_routing"] for hit in hits(client, f"{index_name}-neardupe-sidecar")}
    assert ways == {f"r{number}": f"way{number}" for number in range(6)}
    (found,) = NearDupe(index_name, client).groups()
    assert found.size == 6
    client.request("DELETE", path(index_name, "_doc", "r3"), params={"routing": "way3", "refresh": True})
    report = NearDupe(index_name, client).enrich(query={"match_none": {}})
    assert (report.removed, report.scope.documents) == (1, 0)  # the others are found by their routing


def test_entries_of_deleted_documents_that_wait(client: Client, index_name: str, server_cli: Cli) -> None:
    """`group` cannot process them, so `doctor` and `stats` name `enrich`."""
    _ready(client, index_name)
    _work(client, index_name)
    put(client, index_name, {id: document(id, f"{id} was written and is deleted soon") for id in ("late", "later")})
    news = NearDupe(index_name, client)
    news.enrich()
    for id, numbers, said in (
        ("late", (1, 1), f"1 document waits for grouping: run `es-neardupe group {index_name}`"),
        ("later", (0, 2), f"2 entries of deleted documents wait for grouping: run `es-neardupe enrich {index_name}`"),
    ):
        client.request("DELETE", path(index_name, "_doc", id), params={"refresh": True})
        (message,) = [one.message for one in news.doctor() if one.name == "groups"]
        assert message.partition(", which")[0] == said
        assert (news.stats().scope.ungrouped, news.stats().scope.deleted) == numbers
    (hint,) = complaints(server_cli("stats", index_name))
    assert followed(hint, server_cli).code == 0
    assert complaints(server_cli("stats", index_name)) == []
    assert [one.level for one in news.doctor() if one.name == "groups"] == ["ok"]


@pytest.mark.parametrize("write_group", [False, True])
def test_rules_with_fields_look_at_what_has_changed(client: Client, index_name: str, write_group: bool) -> None:
    """No entry shows a change of a field: the documents do."""
    ids = sorted(_ready(client, index_name, write_group=write_group))
    for id in ids:
        change(client, index_name, id, {"source": "a"})
    news = NearDupe(index_name, client)
    news.enrich()
    assert news.group(within=["source"], principal="date:asc").scope.whole
    again = news.group()
    assert (again.scope.whole, again.scope.affected) == (False, 0)
    (first, *_) = news.groups()
    assert first.principal is not None
    change(client, index_name, first.principal.id, {"source": "b"})
    (waits,) = [one.message for one in news.doctor() if one.name == "groups"]
    assert "1" in waits
    for enriched in (False, True):
        if enriched:
            change(client, index_name, first.principal.id, {"source": "a"})
            news.enrich()
        report = news.group()
        assert (report.scope.whole, report.scope.affected) == (False, first.size)
        assert report.writes.written > 0
        assert news.group(rebuild=True, dry_run=True).writes.written == 0
        assert news.group().scope.affected == 0


@pytest.mark.parametrize("write_group", [False, True])
def test_a_block_of_ours_is_told_by_its_name(client: Client, index_name: str, write_group: bool) -> None:
    _ready(client, index_name, write_group=write_group)
    ours = f"{index_name}-neardupe-sidecar"
    client.request("PUT", path(ours, "_settings"), body={"index.blocks.write": True})
    lift = rf"by index.blocks.write\. .*PUT /{ours}/_settings"
    with pytest.raises(Blocked, match=lift):
        NearDupe(index_name, client).enrich()
    (found,) = [one for one in NearDupe(index_name, client).doctor() if one.name == "blocks"]
    assert re.search(lift.removeprefix("by "), found.message)
    client.request("PUT", path(ours, "_settings"), body={"index.blocks.write": None})
    assert NearDupe(index_name, client).enrich().writes.written > 0


def test_since_reads_recent_texts_and_all_that_changed(client: Client, index_name: str, server_cli: Cli) -> None:
    documents = _ready(client, index_name)
    _work(client, index_name)
    wanted = _stored(client, index_name)
    date = sorted(one["date"] for one in documents.values())[10]
    recent = sorted(id for id, one in documents.items() if one["date"] >= date)
    older = sorted(documents.keys() - set(recent))
    for id in (older[0], recent[0]):  # changes that no version shows
        change(client, f"{index_name}-neardupe-sidecar", id, {"neardupe": {"content": "f" * 32}})
    change(client, index_name, older[1], {"text": "something else"})
    command = ("enrich", index_name, "--since", f"date={date}", "--json")
    report = server_cli(*command).json
    assert (report["scope"]["read"], report["writes"]["written"], report["writes"]["unchanged"]) == (
        len(recent) + 1,
        2,
        len(recent) - 1,
    )
    changed = {id for id, one in _stored(client, index_name).items() if one["content"] != wanted[id]["content"]}
    assert changed == {older[0], older[1]}
    assert server_cli(*command).json["writes"]["written"] == 0
    assert "has no field" in server_cli("enrich", index_name, "--since", f"nodate={date}").err


def test_what_is_refused(client: Client, index_name: str, server_cli: Cli) -> None:
    _ready(client, index_name)
    with pytest.raises(SchemeMismatch, match="in a sidecar index"):
        NearDupe(index_name, client).init(Settings(("text",)))
    with pytest.raises(SchemeMismatch, match="other settings"):
        NearDupe(index_name, client).init(Settings(("text",), threshold=0.5), sidecar=True)
    with pytest.raises(IndexUnusable, match="in a sidecar index"):
        NearDupe(index_name, client).load(["-"])
    with pytest.raises(SettingsError, match="write-group"):
        NearDupe(index_name, client).search_request("text")
    with pytest.raises(SettingsError, match="not supported with a sidecar index"):
        NearDupe(index_name, client).similar(text="x y z", query={"dis_max": {"queries": [_SIGNED]}})
    assert "--create or --template" in one_line(
        server_cli("init", index_name, "--field", "text", "--sidecar", "--create").err
    )
    inline = f"{index_name}2"
    make_index(client, inline, PROPERTIES)
    NearDupe(inline, client).init(Settings(("text",)))
    with pytest.raises(SchemeMismatch, match="in its documents already"):
        NearDupe(inline, client).init(Settings(("text",)), sidecar=True)
    with pytest.raises(SchemeMismatch, match="name them separately"):
        NearDupe(f"{index_name}*", client).stats()
    other = f"{index_name}-x"
    make_index(client, other, PROPERTIES)
    with pytest.raises(NotInitialised, match="--sidecar"):
        NearDupe(f"{index_name},{other}", client).enrich()


_SIGNED = {"term": {"neardupe.state": "signed"}}


def test_several_indices_at_once(client: Client, index_name: str, server_cli: Cli) -> None:
    some = texts(6, 24)
    parts = {f"{index_name}-a": dict(list(some.items())[::2]), f"{index_name}-b": dict(list(some.items())[1::2])}
    for index, documents in parts.items():
        make_index(client, index, PROPERTIES, aliases={f"{index_name}-all": {}})
        put(client, index, documents)
    put(client, f"{index_name}-b", {"d000": document("d000", some["d001"]["text"])})  # an id that occurs in both
    name = f"{index_name}-all"
    run = server_cli("init", name, "--field", "text", "--sidecar", "--json")
    assert run.json["sidecars"] == [f"{index}-neardupe-sidecar" for index in parts]
    for command in ("enrich", "group"):
        assert server_cli(command, name, "--json").code == 0
    stored = {(index, id): one["group"] for index in parts for id, one in _stored(client, index).items()}
    assert len(stored) == len(some) + 1
    assert len(set(stored.values())) < len(some)
    by_index = {"term": {"_index": f"{index_name}-b"}}
    found = NearDupe(name, client).similar(text=some["d001"]["text"], min=0.9, query=by_index)
    assert {hit.index for hit in found.hits} == {f"{index_name}-b"}
    mixed = {"bool": {"filter": [_SIGNED, {"term": {"source": "a"}}]}}
    scoped = NearDupe(name, client).similar(text=some["d001"]["text"], min=0.1, query=mixed)
    assert {id for id, one in some.items() if one["source"] == "a"} >= {hit.id for hit in scoped.hits}


WORK: list[Command] = [("enrich", {}), ("group", {})]


def _end(client: Client, index: str) -> object:
    """The state that a run leaves behind, without fields that name a version of a document."""
    found = State.of(client, index)
    entries = found.hidden_indices[f"{index}-neardupe-sidecar"]
    kept = {id: {**one, "@source": one["@source"]["mirrored"]} for id, one in entries.items()}
    others = {name: one for name, one in found.hidden_indices.items() if "sidecar" not in name}
    return found.users, found.ours, kept, others


@pytest.mark.parametrize("kills", [1, pytest.param(8, marks=pytest.mark.long)])
def test_killed_at_any_write_and_run_again(client: Client, index_name: str, kills: int) -> None:
    documents = _ready(client, index_name, write_group=True)
    before = copies_of(client, index_name)
    writes = writes_of(client, index_name, WORK)
    wanted = _end(client, index_name)
    for write in sorted(random.Random(str(client.server)).sample(range(1, writes + 1), min(kills, writes))):
        put_back(client, before)
        run_to_death(client, index_name, WORK, Moment(write, "after"))
        run_commands(client, index_name, WORK)
        assert _end(client, index_name) == wanted, write
    assert len(hits(client, index_name)) == len(documents)


def test_rights_on_the_index_beside_suffice(secured_server: Secured) -> None:
    index, settings = "secured-beside", Settings(("text",))
    documents = texts(8, 12)
    with secured_server.client("admin") as admin, secured_server.client("beside") as user:
        make_index(admin, index, PROPERTIES, dynamic="strict")
        put(admin, index, documents)
        before = state(admin, index)
        with pytest.raises(Forbidden):
            NearDupe(index, user).init(settings)
        NearDupe(index, user).init(settings, sidecar=True)
        assert NearDupe(index, user).enrich().writes.written == len(documents)
        assert NearDupe(index, user).group(evidence=True).groups.count
        assert {one.level for one in NearDupe(index, user).doctor()} == {"ok"}
        assert NearDupe(index, user).search("text").hits
        assert NearDupe(index, user).similar(text=documents["d000"]["text"]).hits
        assert len(NearDupe(index, user).clean().deleted_indices) == 3
        untouched(admin, index, before)
        admin.request("DELETE", path(index))


def test_a_rollover_gets_another_index_beside(client: Client, index_name: str) -> None:
    template, first = path("_index_template", index_name), f"{index_name}-000001"
    alias = {"aliases": {f"{index_name}-all": {}}, "mappings": {"properties": PROPERTIES}}
    body = {"index_patterns": [f"{index_name}-*"], "priority": 77, "template": alias}
    client.request("PUT", template, body=body)
    try:
        client.request("PUT", path(first))
        put(client, first, texts(9, 6))
        name, settings = f"{index_name}-all", Settings(("text",))
        report = NearDupe(name, client).init(settings, sidecar=True)
        assert report.sidecars == (f"neardupe-sidecar-{first}",)
        assert report.indices == (first,)
        NearDupe(name, client).enrich()
        second = f"{index_name}-000002"
        client.request("PUT", path(second))
        put(client, second, {"new": document("new", texts(9, 6)["d000"]["text"])})
        with pytest.raises(NotInitialised, match="--sidecar"):
            NearDupe(name, client).enrich()
        assert NearDupe(name, client).init(settings, sidecar=True).prepared == (second,)
        assert NearDupe(name, client).enrich().writes.written == 1
        assert {*NearDupe(name, client).stats().indices} == {first, second}  # not the hidden indices
    finally:
        client.request("DELETE", template)
        for number in ("000001", "000002"):
            client.request("DELETE", path(f"neardupe-sidecar-{index_name}-{number}"))


@pytest.mark.parametrize("replaced", [False, True])
def test_doctor_names_enrich_for_deleted_documents(
    replaced: bool, client: Client, index_name: str, server_cli: Cli
) -> None:
    """Also if a new document makes up for a deleted one in the counts."""
    make_index(client, index_name)
    put(client, index_name, {f"d{n}": {"text": text} for n, text in enumerate(family("deleted", 4))})
    news = NearDupe(index_name, client)
    news.init(Settings(("text",)), sidecar=True)
    news.enrich()
    news.group()
    assert complaints(server_cli("doctor", index_name)) == []
    send(client, [({"delete": {"_index": index_name, "_id": "d0"}}, None)])
    if replaced:
        put(client, index_name, {"new": {"text": " ".join(words("new", 60))}})
    done = server_cli("doctor", index_name)
    assert complaints(done) == [f"es-neardupe enrich {index_name}"], done.out
    assert followed(complaints(done)[0], server_cli).code == 0
    assert server_cli("group", index_name).code == 0
    assert complaints(server_cli("doctor", index_name)) == []
