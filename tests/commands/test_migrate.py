"""`migrate` on real servers: new keys in addition to the old ones, the switch, the same result after any kill."""

from __future__ import annotations

import importlib
import random
from typing import Any

import pytest
from conftest import Cli
from kill_tools import Command, Moment, State, copies_of, put_back, run_commands, run_to_death, writes_of
from migrate_tools import check_continued
from server_tools import JSON, change, family, hits, make_index, mapping, one_line, ours, put, send, theirs, words

from es_neardupe import NearDupe, Settings
from es_neardupe.commands.watch.rounds import may_succeed_later
from es_neardupe.errors import BeingMigrated, LeaseHeld, SchemeMismatch
from es_neardupe.index.mapping import fields_mapping
from es_neardupe.server.client import Client, path

OLD = Settings(("text",), threshold=0.8)
NEW: dict[str, Any] = {"threshold": 0.5, "sample_mod": 4}
FAMILIES = 6


def texts() -> dict[str, JSON]:
    """Families whose members are about 0.85, 0.7, 0.6 ... similar: some are groups already, others only by new keys."""
    found: dict[str, JSON] = {"alone": {"text": " ".join(words("alone", 30))}, "empty": {"text": "..."}}
    for n in range(FAMILIES):
        found |= {f"f{n}-{k}": {"text": text} for k, text in enumerate(family(n, 3, length=60, edits=1 + n % 3))}
    found["f0-1b"] = found["f0-1"]
    return found


def grouped(client: Client, index: str) -> None:
    """An index of a version without sampled keys, enriched and grouped."""
    fields = fields_mapping()
    older = fields | {"properties": {name: one for name, one in fields["properties"].items() if name != "samples"}}
    properties = {"text": {"type": "text"}, "neardupe": older}
    make_index(client, index, properties, _meta={"neardupe": OLD.to_meta(), "yours": 1})
    put(client, index, texts())
    run_commands(client, index, [("enrich", {}), ("group", {"evidence": True})])


def partition(client: Client, index: str) -> set[frozenset[str]]:
    """The groups, as sets of document ids."""
    return {frozenset(member.id for member in one.members) for one in NearDupe(index, client).groups()}


def collapsed(client: Client, index: str) -> int:
    """Hits of a plain search; each document must have a group id, or ``collapse`` would merge it with others."""
    body = {"size": 100, "collapse": {"field": "neardupe.group"}, "query": {"match_all": {}}}
    body |= {"aggs": {"without": {"missing": {"field": "neardupe.group"}}}}
    answer = client.request("POST", path(index, "_search"), body=body)
    assert answer["aggregations"]["without"]["doc_count"] == 0
    return len(answer["hits"]["hits"])


def check_new(client: Client, index: str) -> None:
    """No trace of the migration is left, and each command finds nothing to do."""
    assert mapping(client, index)["_meta"].keys() == {"neardupe", "yours"}
    assert all("neardupe_next" not in hit["_source"] for hit in hits(client, index))
    assert NearDupe(index, client).enrich(check=True).writes.written == 0
    again = NearDupe(index, client).group(check=True)
    assert (again.writes.written, again.scope.whole, again.rules.min) == (0, True, 0.5), again.scope.reason
    assert not NearDupe(index, client).group().scope.whole
    assert {fields["scheme"] for fields in ours(client, index).values()} == {again.scheme}
    assert all(fields["samples"] for fields in ours(client, index).values() if fields["tokens"] > 40)


def test_new_keys_are_prepared_and_then_replace_the_old_ones(client: Client, index_name: str) -> None:
    """Preparing does not affect searches; group ids stay; changes of other clients during the migration are kept."""
    grouped(client, index_name)
    before, users = ours(client, index_name), theirs(client, index_name)
    dry = NearDupe(index_name, client).migrate(**NEW, dry_run=True)
    assert dry.writes.enriched == len(before)
    assert "neardupe_next" not in mapping(client, index_name)["properties"]
    prepared = NearDupe(index_name, client).migrate(**NEW, prepare=True)
    assert ours(client, index_name) == before
    near = NearDupe(index_name, client).similar(id="f0-0").hits
    assert {hit.id: hit.copies for hit in near} == {"f0-1": 1, "f0-2": 0}, "f0-1b is a copy of f0-1"
    found = prepared.groups
    assert found is not None
    assert (prepared.state, prepared.writes.enriched, found.documents) == ("prepared", len(before), len(before))
    assert prepared.changes == dry.changes
    assert "group min: 0.5, not 0.8" in dry.changes
    was = partition(client, index_name)
    assert found.before == len(was) < found.after == FAMILIES
    assert NearDupe(index_name, client).migrate(dry_run=True).groups == found

    def meanwhile(comparison: object) -> bool:
        actions: list[tuple[JSON, JSON | None]] = [({"delete": {"_index": index_name, "_id": "f1-0"}}, None)]
        actions += [({"index": {"_index": index_name, "_id": id}}, {"text": f"{id} " * 9}) for id in ("f2-0", "more")]
        send(client, actions)
        change(client, index_name, "f3-1", {"text": " ".join(words("other", 40))})
        return True

    done = NearDupe(index_name, client).migrate(confirm=meanwhile)
    assert (done.state, done.writes.left, done.groups) == ("done", 0, found)
    check_new(client, index_name)
    after = ours(client, index_name)
    assert {id: one["group"] for id, one in after.items() if id[:2] == "f0"} == dict.fromkeys(
        ("f0-0", "f0-1", "f0-1b", "f0-2"), before["f0-0"]["group"]
    )
    assert {address: source for address, source in users.items() if address[1][:2] in ("f0", "f4")}.items() <= theirs(
        client, index_name
    ).items()
    groups = partition(client, index_name)
    assert {frozenset(("f0-0", "f0-1", "f0-1b", "f0-2")), frozenset(("f1-1", "f1-2"))} <= groups
    assert NearDupe(index_name, client).contained(id="f0-1").hits
    assert NearDupe(index_name, client).migrate(**NEW).writes.switched == 0


def test_killed_in_every_phase(client: Client, index_name: str, server_cli: Cli) -> None:
    """Killed while it prepares, switches and cleans: each time it continues, with the same result."""
    grouped(client, index_name)
    beginning, former = copies_of(client, index_name), State.of(client, index_name)
    migrate: list[Command] = [("migrate", {**NEW, "evidence": True})]
    run_commands(client, index_name, migrate)
    wanted, groups = State.of(client, index_name), partition(client, index_name)
    check_new(client, index_name)

    put_back(client, beginning)
    run_to_death(client, index_name, migrate, Moment(2, "during", ("_mapping", 1), "_bulk"))
    assert NearDupe(index_name, client).migrate(abort=True).state == "aborted"
    assert NearDupe(index_name, client).migrate(abort=True).state == "not begun"
    assert State.of(client, index_name) == former
    assert mapping(client, index_name)["_meta"].keys() == {"neardupe", "yours"}

    run_to_death(client, index_name, migrate, Moment(1, "after", ("_mapping", 1)))
    run_to_death(client, index_name, [("migrate", {"workers": 1})], Moment(4, "after", ("_mapping", 2), "_bulk"))
    schemes = {fields["scheme"] for fields in ours(client, index_name).values()}
    assert len(schemes) == 2, "killed in the middle of the switch"
    assert collapsed(client, index_name) >= len(groups)
    assert partition(client, index_name) == groups
    assert len(NearDupe(index_name, client).similar(id="f2-0", min=0.5).hits) == 2
    for command in (["enrich"], ["group"], ["load", "x.jsonl"], ["clean", "--yes"], ["migrate", "--abort", "--yes"]):
        file = ["docs/articles.jsonl"] if command[0] == "load" else command[1:]
        refused = server_cli(command[0], index_name, *file)
        assert refused.code == 1
        assert f"`es-neardupe migrate {index_name}`" in one_line(refused.err)
    with pytest.raises(BeingMigrated) as waits:
        NearDupe(index_name, client).watch(once=True)
    assert may_succeed_later(waits.value)
    (found,) = (one for one in NearDupe(index_name, client).doctor() if one.name == "migration")
    assert (found.level, "switching" in found.message) == ("warning", True)
    run_to_death(client, index_name, [("migrate", {})], Moment(1, "before", ("_mapping", 2), "_mapping"))
    assert NearDupe(index_name, client).migrate().state == "done"
    assert State.of(client, index_name) == wanted


@pytest.mark.long
def test_killed_at_many_moments(client: Client, index_name: str) -> None:
    grouped(client, index_name)
    beginning = copies_of(client, index_name)
    migrate: list[Command] = [("migrate", NEW)]
    writes = writes_of(client, index_name, migrate)
    wanted = State.of(client, index_name)
    rng = random.Random(3)
    for write in range(1, writes + 1):
        moment = Moment(write, rng.choice(["before", "during", "after"]))
        print(f"{moment} of {writes}")
        put_back(client, beginning)
        run_to_death(client, index_name, migrate, moment)
        run_commands(client, index_name, migrate)
        assert State.of(client, index_name) == wanted


@pytest.mark.product("each")
def test_on_the_command_line(client: Client, index_name: str, server_cli: Cli) -> None:
    """Asks before the switch; rejects other settings during a migration, and a call without any."""
    make_index(client, index_name)
    put(client, index_name, {id: {"text": id * 9} for id in "ab"})
    NearDupe(index_name, client).init(OLD)
    assert f"`es-neardupe migrate {index_name}`" in one_line(
        server_cli("init", index_name, "--field", "text", "--threshold", "0.5").err
    )
    assert "--threshold" in one_line(server_cli("migrate", index_name).err)
    with pytest.raises(TypeError, match="sise"):
        NearDupe(index_name, client).migrate(**NEW, sise=3)  # type: ignore[call-arg]  # a typing error
    run = server_cli("migrate", index_name, "--shingle", "3", "--prepare", "--json")
    assert (run.code, run.json["state"], run.json["regroups"], run.json["writes"]["enriched"]) == (
        0,
        "prepared",
        False,
        2,
    )
    with pytest.raises(SchemeMismatch, match="shingle: 3, not 4"):
        NearDupe(index_name, client).migrate(shingle=4)
    with pytest.raises(BeingMigrated, match="--abort"):
        NearDupe(index_name, client).clean()
    run = server_cli("migrate", index_name, "--yes")
    assert (run.code, "2 documents switched." in run.out, "State: done" in run.out) == (0, True, True)
    assert {one.level for one in NearDupe(index_name, client).doctor() if one.name == "documents"} == {"ok"}


def test_two_at_once(client: Client, index_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second run waits for the first, and notices a phase that changed before it got the lease."""
    make_index(client, index_name)
    put(client, index_name, {id: {"text": id * 9} for id in "ab"})
    NearDupe(index_name, client).init(OLD)

    def another(comparison: object) -> bool:
        for options in ({"shingle": 3}, {"abort": True}):
            with pytest.raises(LeaseHeld, match="migrate, pid"):
                NearDupe(index_name, client).migrate(**options)
        return False

    assert NearDupe(index_name, client).migrate(shingle=3, confirm=another).state == "prepared"
    module = importlib.import_module("es_neardupe.index.runs.lease")
    plain = module.held

    def slow(*given: Any, **more: Any) -> Any:
        monkeypatch.setattr(module, "held", plain)
        assert NearDupe(index_name, client).migrate(abort=True).state == "aborted"
        return plain(*given, **more)

    monkeypatch.setattr(module, "held", slow)
    with pytest.raises(BeingMigrated, match="run the same command again"):
        NearDupe(index_name, client).migrate()
    assert mapping(client, index_name)["_meta"].keys() == {"neardupe"}


def test_several_indices(client: Client, index_name: str) -> None:
    """Killed when only some of the indices of an alias were marked with a phase."""
    names = [f"{index_name}-{part}" for part in "ab"]
    alias = f"{index_name}-all"
    for name in names:
        make_index(client, name, aliases={alias: {}})
        put(client, name, {f"{name[-1]}{k}": {"text": text} for k, text in enumerate(family("one", 2, length=60))})
    NearDupe(alias, client).init(OLD)
    run_commands(client, alias, [("enrich", {}), ("group", {})])
    (before,) = NearDupe(alias, client).groups()
    run_to_death(client, alias, [("migrate", {"shingle": 3})], Moment(1, "before", ("_mapping", 1), "_mapping"))
    assert ["neardupe_next" in mapping(client, name)["_meta"] for name in names] == [True, False]
    run_to_death(client, alias, [("migrate", {})], Moment(1, "before", ("_mapping", 5), "_mapping"))
    shingles = [mapping(client, name)["_meta"]["neardupe"]["scheme"]["shingle"] for name in names]
    assert shingles == [3, 5], "killed between the two"
    check_continued(client, alias, before)


def test_an_object_of_the_user_under_the_second_prefix(client: Client, index_name: str, server_cli: Cli) -> None:
    """It would be removed as a leftover of new keys."""
    make_index(client, index_name)
    put(client, index_name, {"a": {"text": "some text", "neardupe_next": {"author": "me"}}})
    NearDupe(index_name, client).init(Settings(("text",)))
    NearDupe(index_name, client).enrich()
    done = server_cli("migrate", index_name, "--threshold", "0.7", "--yes")
    assert done.code == 1
    assert "neardupe_next is an object with other fields (author)" in done.err
    assert hits(client, index_name)[0]["_source"]["neardupe_next"] == {"author": "me"}
