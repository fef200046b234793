"""Other indices with the names of hidden indices: no command reads, writes or deletes them."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from conftest import Cli
from rollover_tools import KINDS, rolled
from server_tools import JSON, change, exists, family, hits, make_index, mapping, put

from es_neardupe import NearDupe, Settings
from es_neardupe.errors import NameTaken
from es_neardupe.server.client import Client, path

pytestmark = pytest.mark.either("sidecar")

SETTINGS = Settings(("text",))
_MARK = "neardupe.owner"

Command = Callable[[NearDupe], object]


def complete(client: Client, name: str) -> JSON:
    """An index with its uuid, settings, mapping and aliases, and all documents with their versions."""
    (found,) = client.request("GET", path(name)).values()
    documents = {hit["_id"]: (hit["_source"], hit["_seq_no"], hit["_version"]) for hit in hits(client, name)}
    return {**found, "documents": documents}


def own_index(client: Client, name: str) -> JSON:
    """Create an index of an application, with documents whose ids and fields a hidden index could have too."""
    make_index(client, name, {"kind": {"type": "keyword"}, "title": {"type": "text"}}, _meta={"app": 1})
    put(client, name, {id: {"kind": "group", "title": "Precious."} for id in ("run", "lease", "a")})
    return complete(client, name)


def texts(client: Client, index: str) -> None:
    make_index(client, index)
    put(client, index, {f"d{number}": {"text": text} for number, text in enumerate(family(index, 4))})


def enriched(client: Client, index: str, prefix: str = "neardupe", *, sidecar: bool = False) -> NearDupe:
    texts(client, index)
    settings = Settings(("text",), prefix=prefix)
    made = NearDupe(index, client, prefix=prefix)
    made.init(settings, sidecar=sidecar)
    made.enrich()
    client.request("DELETE", path(f"{index}-{prefix.lower()}-groups"), params={"ignore_unavailable": True})
    return made


def refused(client: Client, name: str, command: Callable[[], object], message: str) -> None:
    """The command fails and names the index, which it leaves unchanged."""
    before = complete(client, name)
    with pytest.raises(NameTaken, match=message):
        command()
    assert complete(client, name) == before


NOT_CREATED = "es-neardupe did not create it.*Choose another `prefix`, or rename or delete that index"

WRITING: dict[str, Command] = {
    "group": NearDupe.group,
    "group --evidence": lambda one: one.group(evidence=True),
    "group --rebuild": lambda one: one.group(rebuild=True, default_rules=True),
    "group --dry-run": lambda one: one.group(dry_run=True, evidence=True),
    "migrate": lambda one: one.migrate(threshold=0.5, evidence=True),
    "migrate --dry-run": lambda one: one.migrate(threshold=0.5, dry_run=True),
    "clean": NearDupe.clean,
    "clean --dry-run": lambda one: one.clean(dry_run=True),
    "init": lambda one: one.init(SETTINGS),
    "what-if": lambda one: one.what_if(min=[0.5]),
}
"""Commands that use the registry or the evidence."""

WITHOUT_EVIDENCE = ("group", "group --rebuild", "what-if")
PAIRS_IN_CI = ("group --evidence", "migrate --dry-run", "clean")
CASES = [
    pytest.param(name, kind, marks=() if (kind == "pairs") == (name in PAIRS_IN_CI) else pytest.mark.long)
    for name in WRITING
    for kind in ("groups", "pairs")
    if kind == "groups" or name not in WITHOUT_EVIDENCE
]


@pytest.fixture(scope="module")
def refusing(client: Client, shared_index: str) -> NearDupe:
    """The index of all tests in which commands are refused before they begin."""
    return enriched(client, shared_index)


@pytest.mark.parametrize(("name", "kind"), CASES)
def test_an_own_index_stays_unchanged(name: str, kind: str, client: Client, refusing: NearDupe) -> None:
    taken = f"{refusing.name}-neardupe-{kind}"
    own_index(client, taken)
    before = complete(client, refusing.name)
    refused(client, taken, lambda: WRITING[name](refusing), f"Index {taken} has the name.*{NOT_CREATED}")
    assert complete(client, refusing.name) == before  # nothing was begun
    client.request("DELETE", path(taken))
    refusing.group(evidence=True)
    for hidden in ("groups", "pairs"):  # which commands of the next test need
        client.request("DELETE", path(f"{refusing.name}-neardupe-{hidden}"))


def test_enrich_needs_no_hidden_index(client: Client, index_name: str) -> None:
    """It notices no changes then, and says why."""
    found = enriched(client, index_name)
    taken = f"{index_name}-neardupe-groups"
    before = own_index(client, taken)
    change(client, index_name, "d1", {"text": "another text of six words here"})
    report = found.enrich()
    assert (report.scope.read, report.writes.written) == (report.scope.documents, 1)
    assert f"Index {taken} has the name of a hidden index" in report.scope.reread[index_name]
    assert found.enrich(new_only=True).scope.unnoticed == report.scope.reread
    assert complete(client, taken) == before


@pytest.mark.parametrize("kind", ["groups", "pairs"])
def test_a_name_that_a_migration_needs(kind: str, client: Client, index_name: str) -> None:
    found = enriched(client, index_name)
    found.group(evidence=True)
    taken = f"{index_name}-neardupe_next-{kind}"
    own_index(client, taken)
    before = complete(client, index_name)
    refused(client, taken, lambda: found.migrate(threshold=0.5, evidence=True), NOT_CREATED)
    assert complete(client, index_name) == before

    client.request("DELETE", path(taken))
    found.migrate(threshold=0.5, evidence=True, prepare=True)
    mark = unmark(client, taken)
    for command in (found.migrate, lambda: found.migrate(abort=True)):
        refused(client, taken, command, NOT_CREATED)
    put_mark(client, taken, mark)
    assert found.migrate().state == "done"


def unmark(client: Client, name: str) -> JSON:
    """Remove the mark of a hidden index; returns its former ``_meta``."""
    meta: JSON = mapping(client, name)["_meta"]
    put_mark(client, name, {key: value for key, value in meta.items() if key != _MARK})
    return meta


def put_mark(client: Client, name: str, meta: JSON) -> None:
    client.request("PUT", path(name, "_mapping"), body={"_meta": meta})


@pytest.mark.parametrize("kind", ["groups", "pairs"])
def test_a_hidden_index_that_has_lost_its_mark(kind: str, client: Client, index_name: str) -> None:
    found = enriched(client, index_name)
    found.group(evidence=True)
    hidden = f"{index_name}-neardupe-{kind}"
    meta = unmark(client, hidden)
    for name in ("group --evidence", "migrate", "clean", *(["what-if"] if kind == "groups" else [])):
        command = WRITING[name]
        refused(client, hidden, partial(command, found), NOT_CREATED)
    (check,) = [one for one in found.doctor() if one.name == "hidden indices"]
    assert (check.level, hidden in check.message) == ("error", True)
    put_mark(client, hidden, meta)
    assert found.group(evidence=True).writes.written == 0
    assert not [one for one in found.doctor() if one.name == "hidden indices"]
    assert set(found.clean().deleted_indices) == {f"{index_name}-neardupe-{one}" for one in ("groups", "pairs")}


def test_an_own_index_with_the_name_of_a_sidecar(client: Client, index_name: str, server_cli: Cli) -> None:
    texts(client, index_name)
    taken = f"{index_name}-neardupe-sidecar"
    before, own = complete(client, index_name), own_index(client, taken)
    found = NearDupe(index_name, client)
    for command in (
        lambda: found.init(SETTINGS, sidecar=True),
        lambda: found.init(SETTINGS, sidecar=True, dry_run=True),
        lambda: found.init(SETTINGS),
        found.enrich,
        found.group,
        found.clean,
        lambda: found.migrate(threshold=0.5),
    ):
        refused(client, taken, command, NOT_CREATED)
    run = server_cli("init", index_name, "--field", "text", "--sidecar")
    assert (run.code, taken in run.err) == (1, True)
    run = server_cli("doctor", index_name)
    assert (run.code, taken in "".join(run.out.split())) == (1, True)
    assert (complete(client, index_name), complete(client, taken)) == (before, own)
    other = NearDupe(index_name, client, prefix="nd")
    other.init(Settings(("text",), prefix="nd"), sidecar=True)  # another prefix, as the message says
    assert other.enrich().writes.written == 4


def test_a_sidecar_that_has_lost_its_mark(client: Client, index_name: str) -> None:
    found = enriched(client, index_name, sidecar=True)
    hidden = f"{index_name}-neardupe-sidecar"
    meta = unmark(client, hidden)
    commands: list[Command] = [NearDupe.enrich, NearDupe.group, NearDupe.clean, NearDupe.groups]
    commands += [lambda one: one.init(SETTINGS, sidecar=True), lambda one: one.migrate(threshold=0.5)]
    for command in commands:
        refused(client, hidden, partial(command, found), NOT_CREATED)
    put_mark(client, hidden, meta)
    assert found.group().groups.count == 1
    assert set(found.clean().deleted_indices) == {f"{index_name}-neardupe-{one}" for one in ("groups", "sidecar")}


@pytest.mark.parametrize("sidecar", [False, True])
def test_prefixes_that_differ_only_in_case(client: Client, index_name: str, sidecar: bool) -> None:
    one = enriched(client, index_name, "nd", sidecar=sidecar)
    one.group()
    taken = f"{index_name}-nd-{'sidecar' if sidecar else 'groups'}"
    other = NearDupe(index_name, client, prefix="ND")
    refused(
        client,
        taken,
        lambda: other.init(Settings(("text",), prefix="ND"), sidecar=sidecar),
        f"Index {taken} belongs to {index_name} with prefix 'nd', and {index_name} with prefix 'ND' would use",
    )
    assert one.group().writes.written == 0


@pytest.mark.parametrize("sidecar", [False, True])
def test_names_that_are_composed_alike(client: Client, index_name: str, sidecar: bool) -> None:
    """Index ``x`` with prefix ``y-neardupe``, and index ``x-y`` with prefix ``neardupe``."""
    one = enriched(client, index_name, "y-neardupe", sidecar=sidecar)
    one.group(evidence=True)
    names = [f"{index_name}-y-neardupe-{kind}" for kind in ("groups", "pairs", *["sidecar"] * sidecar)]
    before = {name: complete(client, name) for name in names}
    other = f"{index_name}-y"
    texts(client, other)
    with pytest.raises(NameTaken, match=f"belongs to {index_name} with prefix 'y-neardupe', and {other} with prefix"):
        NearDupe(other, client).init(SETTINGS, sidecar=sidecar)
    assert {name: complete(client, name) for name in names} == before

    assert set(one.clean().deleted_indices) == {*names}
    NearDupe(other, client).init(SETTINGS, sidecar=sidecar)
    NearDupe(other, client).enrich()
    NearDupe(other, client).group()
    assert mapping(client, names[0])["_meta"][_MARK] == {"kind": "groups", "index": other, "prefix": "neardupe"}
    refused(client, names[0], lambda: one.init(Settings(("text",), prefix="y-neardupe")), f"belongs to {other} with")


def test_an_alias_with_the_name_of_a_registry(client: Client, index_name: str) -> None:
    found = enriched(client, index_name)
    other = f"{index_name}-other"
    own_index(client, other)
    client.request("PUT", path(other, "_alias", f"{index_name}-neardupe-groups"))
    for command in (found.group, found.clean):
        refused(client, other, command, NOT_CREATED)


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sidecar", [False, True])
def test_marks_of_names_of_several_indices(kind: str, sidecar: bool, client: Client) -> None:
    """A rollover adds indices to a name, which keeps its registry."""
    with rolled(client, kind) as rolling:
        name, found = rolling.name, NearDupe(rolling.name, client)
        rolling.add(0, 4)
        found.init(SETTINGS, sidecar=sidecar)
        found.enrich()
        found.group(evidence=True)
        registry = f"neardupe-groups-{name}"
        assert mapping(client, registry)["_meta"][_MARK] == {"kind": "groups", "index": name, "prefix": "neardupe"}
        new = rolling.roll()
        rolling.add(4, 8)
        if sidecar:
            taken = f"neardupe-sidecar-{new.removeprefix('.')}"
            if not new.startswith("."):  # otherwise the name contains a hash
                own_index(client, taken)
                refused(client, taken, found.enrich, NOT_CREATED)
                client.request("DELETE", path(taken))
        found.enrich()
        found.group(evidence=True)
        (group,) = found.groups()
        assert group.size == 8
        meta = unmark(client, registry)
        refused(client, registry, found.group, NOT_CREATED)
        refused(client, registry, found.clean, NOT_CREATED)
        put_mark(client, registry, meta)
        assert registry in found.clean().deleted_indices
        assert not exists(client, registry)


def test_leases_of_own_indices_are_not_read(client: Client, index_name: str) -> None:
    """An index that looks like the registry of another name blocks no run."""
    found = enriched(client, index_name)
    found.group()
    value: Any = next(hit["_source"] for hit in hits(client, f"{index_name}-neardupe-groups") if hit["_id"] == "lease")
    del value["value"]["returned"]
    value["value"]["expires"] = "2999-01-01T00:00:00.000+00:00"
    value["value"]["holder"]["machine"] = None
    other = f"{index_name}-other-neardupe-groups"
    make_index(client, other, {"kind": {"type": "keyword"}, "value": {"type": "object", "enabled": False}})
    put(client, other, {"lease": value})
    assert found.group().writes.written == 0


def test_an_index_that_was_deleted_and_created_again_keeps_its_hidden_indices(client: Client, index_name: str) -> None:
    for sidecar in (False, True):
        found = enriched(client, index_name, sidecar=sidecar)
        found.group()
        client.request("DELETE", path(index_name))
        again = enriched(client, index_name, sidecar=sidecar)
        assert again.group().groups.count == 1
        assert f"{index_name}-neardupe-groups" in again.clean().deleted_indices
        client.request("DELETE", path(index_name))
