"""Groups of the pairs of a request, on real servers: `duplicates --write-groups`."""

from __future__ import annotations

import json
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli
from server_tools import delete_all, make_index, new_name, put
from unit_tools import words

from es_neardupe import NearDupe, Settings
from es_neardupe.commands.duplicates.request_json import example
from es_neardupe.commands.duplicates.results import GroupsOfPairs
from es_neardupe.errors import IndexUnusable, LeaseHeld, MappingConflict, NotInitialised, SettingsError
from es_neardupe.index.hidden_indices import HiddenIndex, find
from es_neardupe.index.index import Index, opened
from es_neardupe.index.runs.lease import held
from es_neardupe.server.client import Client, path

JSON = dict[str, Any]
MAPPING = {"title": {"type": "text"}, "year": {"type": "integer"}, "price": {"type": "double"}}
BASE = words(0, 20)
SOURCES: dict[str, JSON] = {
    "a": {"title": BASE, "year": 1},
    "b": {"title": f"{BASE} more", "year": 1, "price": 1.5},
    "c": {"title": f"{BASE} less", "year": 2},
    "d": {"title": words(50, 9)},
    "e": {"title": words(50, 9)},
    "f": {"title": "alone"},
    "g": {},
}


def request(**change: Any) -> JSON:
    """Titles with at least eight tenths of their words in common."""
    made: JSON = json.loads(example("near-identical-titles"))
    made["stages"]["similarPairs"]["validation"] |= {"min": 0.8, "max": 1}
    made["stages"]["similarPairs"] |= change
    del made["stages"]["documents"]
    return made


@pytest.fixture
def titles(client: Client, index_name: str) -> str:
    make_index(client, index_name, MAPPING, settings={"number_of_shards": 2})
    put(client, index_name, SOURCES)
    return index_name


def written(client: Client, index: str, made: JSON | None = None, **options: Any) -> GroupsOfPairs:
    """The groups of a run."""
    report = NearDupe(index, client).duplicates(made or request(), write_groups="titles", **options)
    assert report.groups is not None
    groups = report.groups
    assert groups.documents == groups.grouped + groups.alone + groups.changed
    assert groups.grouped + groups.alone == groups.writes.total
    return groups


def stored(client: Client, index: str) -> dict[str, JSON]:
    """The sources of all documents by id."""
    client.request("POST", path(index, "_refresh"))
    return {hit.id: dict(hit.source) for page in client.pages(index, {"query": {"match_all": {}}}) for hit in page}


def partition(client: Client, index: str, prefix: str = "titles") -> set[frozenset[str]]:
    """The ids of each group."""
    found: dict[str, set[str]] = {}
    for id, source in stored(client, index).items():
        if source.get(prefix):
            found.setdefault(source[prefix]["group"], set()).add(id)
    return {frozenset(ids) for ids in found.values()}


def cleaned(client: Client, index: str) -> None:
    NearDupe(index, client, prefix="titles").clean()


GROUPS = {frozenset("abc"), frozenset("de"), frozenset("f"), frozenset("g")}


@pytest.mark.product("each")
def test_pairs_become_groups(client: Client, titles: str, server_cli: Cli, tmp_path: Path) -> None:
    """The longest document is principal; other fields stay; groups, search and history read the groups."""
    report = written(client, titles)
    assert partition(client, titles) == GROUPS
    assert (report.count, report.grouped, report.alone, report.writes.written) == (2, 5, 2, 7)
    assert report.min_similarity == 20 / 22
    assert (report.pairs_below, report.pairs_not_compared) == (0, 0)
    sources = stored(client, titles)
    assert {id: {k: v for k, v in source.items() if k != "titles"} for id, source in sources.items()} == SOURCES
    assert {id for id, source in sources.items() if source["titles"]["principal"]} == {"b", "d", "f", "g"}
    # b and c share 20 of 22 words: each pair of a group has passed with its principal
    assert sources["c"]["titles"]["similarity"] == pytest.approx(20 / 22)

    own = NearDupe(titles, client, prefix="titles")
    first, second = own.groups()
    assert first.principal is not None
    assert first.known is not None
    assert (first.principal.id, first.size, first.known.size) == ("b", 3, 3)
    assert [event.event for event in own.group_history(second.group).history] == ["founded"]
    found = server_cli("search", titles, "w1", "--prefix", "titles", "--json").json
    assert [hit["id"] for hit in found["hits"]] in (["a"], ["b"], ["c"])
    shown = server_cli("groups", titles, "--prefix", "titles", "--history", first.group)
    assert shown.code == 0


def test_a_second_run_writes_nothing_and_ids_stay(client: Client, titles: str) -> None:
    written(client, titles)
    before = stored(client, titles)
    again = written(client, titles)
    assert (again.writes.written, again.writes.unchanged) == (0, 7)
    assert stored(client, titles) == before
    put(client, titles, {"h": {"title": f"{BASE} and more"}})
    third = written(client, titles)
    after = stored(client, titles)
    assert partition(client, titles) == {frozenset("abch"), *(GROUPS - {frozenset("abc")})}
    assert {after[id]["titles"]["group"] for id in "abch"} == {before["a"]["titles"]["group"]}
    assert third.count == 2


def test_documents_that_are_in_no_group_any_more(client: Client, titles: str) -> None:
    """They are alone, also if they are no longer in scope; a group that has no members any more has ended."""
    written(client, titles)
    id = stored(client, titles)["d"]["titles"]["group"]
    report = written(client, titles, request(query={"term": {"year": 1}}))
    assert partition(client, titles) == {frozenset("ab"), *map(frozenset, "cdefg")}
    assert (report.count, report.documents) == (1, 7)
    own = NearDupe(titles, client, prefix="titles")
    assert own.group_history(id).ended is not None
    assert [group.size for group in own.groups()] == [2]


def test_a_dry_run_writes_nothing(client: Client, titles: str, server_cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "request.json"
    file.write_text(json.dumps(request()), "utf-8")
    mapping = client.request("GET", path(titles, "_mapping"))
    done = server_cli("duplicates", titles, "--request", str(file), "--write-groups", "titles", "--dry-run", "--json")
    groups = done.json["groups"]
    assert (groups["count"], groups["grouped"], groups["alone"], groups["dry_run"]) == (2, 5, 2, True)
    assert groups["writes"]["written"] == 7
    assert stored(client, titles) == SOURCES
    assert client.request("GET", path(titles, "_mapping")) == mapping
    real = server_cli("duplicates", titles, "--request", str(file), "--write-groups", "titles")
    assert "titles: 2 groups with 5 documents, minimum similarity 0.9091" in real.out
    assert "7 documents: 5 in groups, 2 alone, 0 changed or deleted; 7 written, 0 unchanged" in real.out
    dry = server_cli("duplicates", titles, "--request", str(file), "--write-groups", "titles", "--dry-run")
    assert "0 to be written (dry run), 7 unchanged" in dry.out


def test_documents_whose_groups_are_rejected(server_cli: Cli, client: Client, index_name: str, tmp_path: Path) -> None:
    """They are named with the reason, and the exit code is 1."""
    make_index(client, index_name, {**MAPPING, "parts": {"type": "nested"}})
    put(client, index_name, {**SOURCES, "b": {**SOURCES["b"], "parts": [{}, {}]}})
    client.request("PUT", path(index_name, "_settings"), body={"index.mapping.nested_objects.limit": 1})
    file = tmp_path / "request.json"
    file.write_text(json.dumps(request()), "utf-8")
    done = server_cli("duplicates", index_name, "--request", str(file), "--write-groups", "titles")
    assert done.code == 1
    assert f"Documents left: 'b' of {index_name} (refused)." in done.err
    assert "The server rejected: " in done.err
    assert (
        "1 document was rejected by the server: correct it or the index, then run the same command again." in done.err
    )


def test_clean_removes_the_groups_only(client: Client, titles: str) -> None:
    """And those of keys stay."""
    NearDupe(titles, client).init(Settings(("title",)))
    NearDupe(titles, client).enrich()
    NearDupe(titles, client).group()
    keys = {id: source["neardupe"] for id, source in stored(client, titles).items()}
    written(client, titles)
    registry = find(opened(Index(titles, client, "titles"), groups=True), HiddenIndex.GROUPS)
    assert registry == f"{titles}-titles-groups"
    cleaned(client, titles)
    sources = stored(client, titles)
    assert all("titles" not in source for source in sources.values())
    assert {id: source["neardupe"] for id, source in sources.items()} == keys
    assert NearDupe(titles, client).groups()
    with pytest.raises(NotInitialised):
        NearDupe(titles, client, prefix="titles").groups()
    assert written(client, titles).count == 2  # again after clean


class Killed(Exception):
    """Ends a run."""


@pytest.mark.parametrize("after", range(1, 7))
def test_killed_and_run_again(client: Client, titles: str, after: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever was written before: the same groups, principals and ids as of an undisturbed run, and one event each."""
    kind, sent = type(client), []
    real = kind.request

    def dying(self: Client, method: str, *arguments: Any, **options: Any) -> Any:
        place = arguments[0]
        if method in ("PUT", "POST") and (place.endswith(("_bulk", "_mapping")) or "/" not in place.strip("/")):
            sent.append(place)
            if len(sent) > after:
                raise Killed
        return real(self, method, *arguments, **options)

    with monkeypatch.context() as patch:
        patch.setattr(kind, "request", dying)
        with suppress(Killed):
            written(client, titles)
    killed = len(sent) > after
    written(client, titles)
    assert partition(client, titles) == GROUPS
    own = NearDupe(titles, client, prefix="titles")
    for group in own.groups():
        assert group.principal is not None
        assert [event.event for event in own.group_history(group.group).history] == ["founded"]
    assert written(client, titles).writes.written == 0
    assert killed or after > 4


def test_a_document_that_changes_during_the_run_is_left(
    client: Client, titles: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its pairs make no group; the next run writes it."""
    done: list[str] = []

    def changing(stage: str, at: int, total: int | None) -> None:
        if stage == "validating pairs" and at == total and not done:
            done.append(stage)
            put(client, titles, {"e": {"title": "changed"}})

    report = written(client, titles, progress=changing)
    assert done
    assert report.changed == 1
    assert "titles" not in stored(client, titles)["e"]
    assert frozenset("d") in partition(client, titles)
    assert written(client, titles).changed == 0
    assert partition(client, titles) == {frozenset("abc"), *map(frozenset, "defg")}


def test_prefixes_that_are_taken(client: Client, titles: str) -> None:
    """Nothing is written to keys, to a field of the user, or to documents with other values."""
    index = NearDupe(titles, client)
    with pytest.raises(SettingsError, match="is that of keys"):
        index.duplicates(request(), write_groups="neardupe")
    with pytest.raises(MappingConflict, match="year is mapped as integer"):
        index.duplicates(request(), write_groups="year")
    with pytest.raises(SettingsError, match="'no/prefix' is not valid"):
        index.duplicates(request(), write_groups="no/prefix")
    NearDupe(titles, client, prefix="keys").init(Settings(("title",), prefix="keys"))
    with pytest.raises(IndexUnusable, match="has keys under the prefix 'keys'"):
        index.duplicates(request(), write_groups="keys")
    put(client, titles, {"z": {"title": "z", "own": {"other": 1}}})
    with pytest.raises(IndexUnusable, match=r"own is an object with other fields \(other\)"):
        index.duplicates(request(), write_groups="own")
    with pytest.raises(SettingsError, match="`dry_run` is for `write_groups`"):
        index.duplicates(request(), dry_run=True)
    assert {id: source for id, source in stored(client, titles).items() if id in SOURCES} == SOURCES


def test_values_that_are_not_mapped_are_not_overwritten(client: Client, index_name: str) -> None:
    make_index(client, index_name, {"title": {"type": "text"}}, dynamic=False)
    put(client, index_name, {"1": {"title": "same"}, "2": {"title": "same", "titles": {"mine": 1}}})
    with pytest.raises(
        IndexUnusable, match=r"Document '2' of index .* has a value titles that es-neardupe did not write"
    ):
        written(client, index_name)
    assert stored(client, index_name)["2"] == {"title": "same", "titles": {"mine": 1}}


def test_commands_that_need_keys_refuse_the_prefix(client: Client, titles: str) -> None:
    written(client, titles)
    own = NearDupe(titles, client, prefix="titles")
    for command in (own.enrich, own.group, own.stats, own.pairs):
        with pytest.raises(IndexUnusable, match="holds groups that `duplicates` wrote, and no keys"):
            command()
    with pytest.raises(IndexUnusable, match="groups of a request, not keys"):
        own.init(Settings(("title",), prefix="titles"))


def test_one_run_at_a_time(client: Client, titles: str) -> None:
    written(client, titles)
    with held(opened(Index(titles, client, "titles"), groups=True)), pytest.raises(LeaseHeld):
        written(client, titles)


def test_a_number_of_shared_features_makes_no_groups(client: Client, titles: str) -> None:
    made = request()
    shared = made["stages"]["similarPairs"]["validation"]
    shared["pairwiseSimilarity"]["type"] = "pairwiseSimilarity:featureIntersectionSize"
    shared |= {"min": 3, "max": 30}
    with pytest.raises(SettingsError, match="Groups need a similarity from 0 to 1"):
        written(client, titles, made)


def test_groups_of_an_alias(client: Client) -> None:
    """One registry for both indices; routed documents keep their routing."""
    name = new_name()
    try:
        for number in (1, 2):
            make_index(client, f"{name}-{number}", MAPPING, aliases={name: {}}, settings={"number_of_shards": 3})
            put(client, f"{name}-{number}", {f"x{number}": {"title": words(0, 9)}}, routing=f"r{number}")
        report = written(client, name)
        assert (report.count, report.grouped) == (1, 2)
        (group,) = NearDupe(name, client, prefix="titles").groups()
        assert {member.index for member in group.members} == {f"{name}-1", f"{name}-2"}
        cleaned(client, name)
    finally:
        delete_all(client, name)
