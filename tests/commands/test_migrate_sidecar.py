"""`migrate` with a sidecar: the same result as with keys in the documents, after any kill; the index is unchanged."""

from __future__ import annotations

import dataclasses
import random
from typing import Any

import pytest
from conftest import Cli
from kill_tools import Command, Moment, copies_of, put_back, run_commands, run_to_death, without_dates, writes_of
from migrate_tools import check_continued
from server_tools import JSON, exists, family, hits, make_index, mapping, one_line, put, send, words
from sidecar_tools import PROPERTIES, Both, document, random_changes, state, texts, untouched

from es_neardupe import NearDupe, Settings
from es_neardupe.errors import BeingMigrated, SchemeMismatch
from es_neardupe.index.storage.sidecar.indices import sidecar_name
from es_neardupe.server.client import Client

pytestmark = pytest.mark.either("write_group")

OLD = Settings(("text",), threshold=0.8)
NEW: dict[str, Any] = {"threshold": 0.5, "sample_mod": 4}


def documents() -> dict[str, JSON]:
    """Families whose members are about 0.85, 0.7, 0.6 ... similar: some are groups already, others only by new keys."""
    found = {"alone": document("alone", " ".join(words("alone", 30))), "empty": document("empty", "...")}
    for n in range(4):
        some = family(n, 3, length=60, edits=1 + n % 3)
        found |= {f"f{n}-{k}": document(f"f{n}-{k}", text) for k, text in enumerate(some)}
    return found


def grouped(client: Client, index: str, *, write_group: bool = False) -> None:
    make_index(client, index, PROPERTIES)
    put(client, index, documents())
    NearDupe(index, client).init(OLD, sidecar=True, write_group=write_group)
    run_commands(client, index, [("enrich", {}), ("group", {"evidence": True})])


def beside(client: Client, index: str) -> dict[str, JSON]:
    """Hidden index -> its mapping and documents, without leases and dates."""
    copies = {name: one for name, one in copies_of(client, index).items() if name != index}
    return {
        name: {"mappings": one["mappings"], "sources": without_dates(one["sources"])} for name, one in copies.items()
    }


def check_new(client: Client, index: str) -> None:
    """No trace of the migration is left, and each command finds nothing to do."""
    ours = mapping(client, sidecar_name(index, "neardupe"))
    assert ours["_meta"].keys() == {"neardupe.owner", "neardupe", "@source"}
    assert "migration" not in ours["_meta"]["neardupe"]
    assert not any("_next" in name for name in beside(client, index))
    assert NearDupe(index, client).enrich(check=True).writes.written == 0
    again = NearDupe(index, client).group(check=True)
    assert (again.writes.written, again.scope.whole, again.rules.min) == (0, False, 0.5)


def partition(client: Client, index: str) -> set[frozenset[str]]:
    return {frozenset(member.id for member in one.members) for one in NearDupe(index, client).groups()}


@pytest.mark.parametrize("write_group", [False, True])
def test_as_with_keys_in_the_documents(client: Client, index_name: str, write_group: bool) -> None:
    """Reports and groups are the same at every step, with changes before and in the middle of it."""
    both, rng = Both(client, index_name), random.Random(f"migrate {write_group}")
    there = texts("migrate", 40)
    both.put(there)
    both.init(write_group=write_group, threshold=0.8)
    for command in (NearDupe.enrich, NearDupe.group):
        both.run(command)
    before = state(client, both.sidecar)
    one, other = both.run(NearDupe.migrate, **NEW, prepare=True)
    for example in (*one["groups"]["examples"], *other["groups"]["examples"]):
        assert example.pop("documents"), "some of them, by the scores of other queries"
    assert one == other
    if not write_group:
        untouched(client, both.sidecar, before)
    random_changes(both, rng, there, [f"new{k}" for k in range(5)])
    assert both.run(NearDupe.similar, id="d000")[0] == both.run(NearDupe.similar, id="d000")[1]
    before = state(client, both.sidecar)
    one, other = (dataclasses.asdict(NearDupe(index, client).migrate()) for index in both.names)
    assert (one["state"], one["writes"]["left"]) == (other["state"], other["writes"]["left"]) == ("done", 0)
    assert one["groups"]["before"] == other["groups"]["before"]
    assert one["groups"]["moved"] == other["groups"]["moved"]
    assert other["writes"]["switched"] > 0
    assert both.groups(both.inline) == both.groups(both.sidecar)
    check_new(client, both.sidecar)
    if not write_group:
        untouched(client, both.sidecar, before)
    else:
        stored = {
            hit["_id"]: hit["_source"]["neardupe"] for hit in hits(client, sidecar_name(both.sidecar, "neardupe"))
        }
        shown = {hit["_id"]: hit["_source"]["neardupe"] for hit in hits(client, both.sidecar)}
        assert shown == {id: {"group": one["group"]} for id, one in stored.items()}
    one, other = both.run(NearDupe.contained, id="d000")
    assert one == other


def test_preparing_does_not_affect_searches(client: Client, index_name: str) -> None:
    grouped(client, index_name)
    ours, users = beside(client, index_name), state(client, index_name)
    dry = NearDupe(index_name, client).migrate(**NEW, dry_run=True, show_requests=3)
    assert (dry.state, dry.writes.enriched) == ("not begun", len(documents()))
    assert [(one.method, one.path) for one in dry.requests] == [("PUT", f"/{index_name}-neardupe_next-sidecar")]
    assert beside(client, index_name) == ours
    prepared = NearDupe(index_name, client).migrate(**NEW, prepare=True)
    assert (prepared.state, prepared.writes.enriched) == ("prepared", len(documents()))
    assert prepared.groups is not None
    assert prepared.groups.after > prepared.groups.before
    assert all(one.documents for one in prepared.groups.examples)
    assert {name: one for name, one in beside(client, index_name).items() if "_next" not in name} == ours
    assert NearDupe(index_name, client).migrate(dry_run=True).groups == prepared.groups
    shown = NearDupe(index_name, client).migrate(dry_run=True, show_requests=2).requests
    assert [one.path.partition("?")[0] for one in shown] == [f"/{index_name}-neardupe_next-sidecar/_mapping"] * 2
    with pytest.raises(SchemeMismatch, match="already being migrated to other settings"):
        NearDupe(index_name, client).migrate(shingle=4)
    with pytest.raises(BeingMigrated, match="--abort"):
        NearDupe(index_name, client).clean()
    assert NearDupe(index_name, client).migrate(abort=True).state == "aborted"
    assert beside(client, index_name) == ours
    untouched(client, index_name, users)


@pytest.mark.long
def test_killed_in_every_phase(client: Client, index_name: str, server_cli: Cli) -> None:
    """Killed while it prepares, switches and cleans: each time it continues, with the same result."""
    grouped(client, index_name)
    users, beginning, former = state(client, index_name), copies_of(client, index_name), beside(client, index_name)
    migrate: list[Command] = [("migrate", {**NEW, "evidence": True})]
    run_commands(client, index_name, migrate)
    wanted, groups = beside(client, index_name), partition(client, index_name)
    check_new(client, index_name)

    put_back(client, beginning, ours=True)
    run_to_death(client, index_name, migrate, Moment(1, "after", of="_bulk"))
    assert NearDupe(index_name, client).migrate(abort=True).state == "aborted"
    assert beside(client, index_name) == former

    run_to_death(client, index_name, migrate, Moment(1, "after", of="neardupe_next-sidecar"))
    run_to_death(client, index_name, [("migrate", {"workers": 1})], Moment(1, "after", ("_mapping", 2), "_bulk"))
    assert partition(client, index_name) == groups, "served from the side while it switches"
    assert len(NearDupe(index_name, client).similar(id="f2-0", min=0.5).hits) == 2
    for command in (["enrich"], ["group"], ["clean", "--yes"], ["migrate", "--abort", "--yes"]):
        refused = server_cli(command[0], index_name, *command[1:])
        assert refused.code == 1
        assert f"`es-neardupe migrate {index_name}`" in one_line(refused.err)
    (found,) = (one for one in NearDupe(index_name, client).doctor() if one.name == "migration")
    assert (found.level, "switching" in found.message) == ("warning", True)
    run_to_death(client, index_name, [("migrate", {})], Moment(1, "before", of="neardupe-sidecar/_mapping"))
    run_to_death(client, index_name, [("migrate", {})], Moment(1, "before", of=f"{index_name}-neardupe_next-pairs"))
    assert NearDupe(index_name, client).migrate().state == "done"
    assert beside(client, index_name) == wanted
    untouched(client, index_name, users)


@pytest.mark.long
def test_killed_at_many_moments(client: Client, index_name: str) -> None:
    grouped(client, index_name)
    beginning = copies_of(client, index_name)
    migrate: list[Command] = [("migrate", NEW)]
    writes = writes_of(client, index_name, migrate)
    wanted = beside(client, index_name)
    rng = random.Random(3)
    for write in range(1, writes + 1):
        moment = Moment(write, rng.choice(["before", "during", "after"]))
        print(f"{moment} of {writes}")
        put_back(client, beginning, ours=True)
        run_to_death(client, index_name, migrate, moment)
        run_commands(client, index_name, migrate)
        assert beside(client, index_name) == wanted


def test_group_ids_in_the_documents(client: Client, index_name: str) -> None:
    """With ``--write-group`` a search finds a group id in each document at any time, finally that of the new group."""
    grouped(client, index_name, write_group=True)
    assert NearDupe(index_name, client).migrate(**NEW, prepare=True).state == "prepared"
    assert "neardupe_next" not in mapping(client, index_name)["properties"]
    former = {hit["_id"]: hit["_source"]["neardupe"] for hit in hits(client, index_name)}

    def meanwhile(comparison: object) -> bool:
        actions: list[tuple[JSON, JSON | None]] = [({"delete": {"_index": index_name, "_id": "f1-0"}}, None)]
        actions += [
            ({"index": {"_index": index_name, "_id": id}}, document(id, f"{id} " * 9)) for id in ("f2-0", "more")
        ]
        send(client, actions)
        return True

    assert NearDupe(index_name, client).migrate(confirm=meanwhile).state == "done"
    check_new(client, index_name)
    found = {hit["_id"]: hit["_source"]["neardupe"] for hit in hits(client, index_name)}
    assert found.keys() == documents().keys() - {"f1-0"} | {"more"}
    assert all(list(one) == ["group"] for one in found.values())
    assert found != {id: former.get(id) for id in found}
    groups = {
        id: one.group for one in NearDupe(index_name, client).groups() for id in (member.id for member in one.members)
    }
    assert {id: found[id]["group"] for id in groups} == groups
    mirrored = NearDupe(index_name, client).group(check=True).writes.mirrored
    assert mirrored is not None
    assert mirrored.written == 0


@pytest.mark.long
def test_several_indices(client: Client, index_name: str) -> None:
    """Killed when only some of the indices of an alias were marked with a phase."""
    names = [f"{index_name}-{part}" for part in "ab"]
    alias = f"{index_name}-all"
    for name in names:
        make_index(client, name, aliases={alias: {}})
        put(client, name, {f"{name[-1]}{k}": {"text": text} for k, text in enumerate(family("one", 2, length=60))})
    NearDupe(alias, client).init(OLD, sidecar=True)
    run_commands(client, alias, [("enrich", {}), ("group", {})])
    (before,) = NearDupe(alias, client).groups()
    made: list[Command] = [("migrate", {"shingle": 3})]
    run_to_death(client, alias, made, Moment(1, "before", of=f"{names[1]}-neardupe_next-sidecar"))
    assert [exists(client, sidecar_name(name, "neardupe_next")) for name in names] == [True, False]
    run_to_death(client, alias, [("migrate", {})], Moment(1, "before", of=f"{names[1]}-neardupe-sidecar/_mapping"))
    stored = [mapping(client, sidecar_name(name, "neardupe"))["_meta"]["neardupe"] for name in names]
    assert [one["scheme"]["shingle"] for one in stored] == [3, 5], "killed between the two"
    check_continued(client, alias, before)


@pytest.mark.product("each")
def test_on_the_command_line(client: Client, index_name: str, server_cli: Cli) -> None:
    make_index(client, index_name)
    put(client, index_name, {id: {"text": id * 9} for id in "ab"})
    NearDupe(index_name, client).init(OLD, sidecar=True)
    refused = server_cli("init", index_name, "--field", "text", "--threshold", "0.5", "--sidecar")
    assert f"`es-neardupe migrate {index_name}`" in one_line(refused.err)
    run = server_cli("migrate", index_name, "--shingle", "3", "--yes")
    assert (run.code, "2 documents switched." in run.out, "State: done" in run.out) == (0, True, True)
    again: Any = server_cli("migrate", index_name, "--shingle", "3", "--yes", "--json").json
    assert (again["writes"]["switched"], again["state"]) == (0, "done")
