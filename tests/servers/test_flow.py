"""The main workflow from end to end, by the functions and by the commands."""

from __future__ import annotations

from collections import Counter

import pytest
from conftest import Cli
from existing_index import USER_META, existing_index
from server_tools import (
    JSON,
    hits,
    mapping,
    ours,
    theirs,
    true_pairs,
    versions,
)

from es_neardupe import NearDupe, Settings
from es_neardupe.errors import NeardupeError
from es_neardupe.server.client import Client, path

THRESHOLD = 0.8


def texts_of(documents: dict[str, JSON]) -> dict[str, str]:
    return {id: source["text"] for id, source in documents.items()}


def expected_groups(documents: dict[str, JSON]) -> dict[str, set[str]]:
    """Principal -> members, by the rule alone: the longest, then oldest, takes its free partners."""
    texts = texts_of(documents)
    partners: dict[str, set[str]] = {id: set() for id in texts}
    for a, b in true_pairs(texts, THRESHOLD):
        partners[a].add(b)
        partners[b].add(a)
    found: dict[str, set[str]] = {}
    free = sorted(texts, key=lambda id: (-len(texts[id].split()), id))
    while free:
        principal = free[0]
        found[principal] = {principal, *(partners[principal] & set(free))}
        free = [id for id in free if id not in found[principal]]
    return found


@pytest.fixture
def filled(client: Client, index_name: str) -> dict[str, JSON]:
    return existing_index(client, index_name)


@pytest.mark.product("each")
def test_the_functions(client: Client, index_name: str, filled: dict[str, JSON]) -> None:
    users = theirs(client, index_name)
    NearDupe(index_name, client).init(Settings(("text",)))

    untouched = versions(client, index_name)
    dry = NearDupe(index_name, client).enrich(dry_run=True)
    assert versions(client, index_name) == untouched
    enriched = NearDupe(index_name, client).enrich()
    assert (enriched.scope.documents, enriched.scope.read, enriched.writes.written) == (len(filled),) * 3
    assert (dry.scope.read, dry.writes.written, dry.writes.states) == (
        enriched.scope.read,
        enriched.writes.written,
        enriched.writes.states,
    )
    assert enriched.writes.states == {"signed": len(filled) - 4, "short": 3, "empty": 1}
    assert theirs(client, index_name) == users
    written = versions(client, index_name)
    assert NearDupe(index_name, client).enrich().writes.written == 0
    assert versions(client, index_name) == written

    dry_group = NearDupe(index_name, client).group(dry_run=True)
    assert versions(client, index_name) == written
    grouped = NearDupe(index_name, client).group()
    assert (dry_group.scope, dry_group.groups, dry_group.writes) == (
        grouped.scope,
        grouped.groups,
        grouped.writes,
    )
    assert dry_group.pairs == grouped.pairs
    assert theirs(client, index_name) == users
    written = versions(client, index_name)
    second = NearDupe(index_name, client).group()
    assert (second.scope.documents, second.scope.affected, second.writes.total) == (len(filled), 0, 0)
    assert versions(client, index_name) == written
    check_groups(client, index_name, filled)
    assert grouped.scope.documents == len(filled) == grouped.groups.grouped + grouped.groups.alone

    check_found(client, index_name, filled)
    check_stats(client, index_name, filled)
    assert {check.level for check in NearDupe(index_name, client).doctor()} == {"ok"}
    assert versions(client, index_name) == written  # reading changes nothing

    dry_clean = NearDupe(index_name, client).clean(dry_run=True)
    assert versions(client, index_name) == written
    cleaned = NearDupe(index_name, client).clean()
    assert dry_clean.writes.written == cleaned.writes.written == len(filled)
    assert theirs(client, index_name) == users
    assert all("neardupe" not in hit["_source"] for hit in hits(client, index_name))
    assert mapping(client, index_name)["_meta"] == USER_META
    with pytest.raises(NeardupeError, match="init"):
        NearDupe(index_name, client).enrich()
    assert NearDupe(index_name, client).init(Settings(("text",), threshold=0.5)).prepared == (index_name,)
    assert NearDupe(index_name, client).enrich().writes.written == len(filled)


def check_groups(client: Client, index: str, documents: dict[str, JSON]) -> None:
    """The stored groups, and `collapse` on them, compared with brute force."""
    expected, texts = expected_groups(documents), texts_of(documents)
    stored = ours(client, index)
    for principal, members in expected.items():
        id = stored[principal]["group"]
        assert {name for name, fields in stored.items() if fields["group"] == id} == members
        for member in members:
            same = texts[member] == texts[principal] or member == principal
            truth = 1.0 if same else true_pairs({"a": texts[principal], "b": texts[member]}, 0)["a", "b"]
            assert stored[member]["similarity"] == pytest.approx(truth, abs=1e-6)
            assert stored[member]["principal"] == (member == principal)
    body = {"size": 1000, "query": {"match_all": {}}, "collapse": {"field": "neardupe.group"}}
    collapsed = client.request("POST", path(index, "_search"), body=body)["hits"]["hits"]
    assert len(collapsed) == len(expected)


def check_found(client: Client, index: str, documents: dict[str, JSON]) -> None:
    """pairs, groups and similar compared with brute force."""
    texts = texts_of(documents)
    truth = true_pairs(texts, THRESHOLD)
    found = {(pair.a[1], pair.b[1]): pair.resemblance for pair in NearDupe(index, client).pairs()}
    assert found == pytest.approx(truth)

    listed = NearDupe(index, client).groups()
    expected = {principal: members for principal, members in expected_groups(documents).items() if len(members) > 1}
    assert {one.members[0].id: {member.id for member in one.members} for one in listed} == expected
    for one in listed:
        assert one.members[0].address == one.principal
        assert one.size == len(one.members)
        assert one.min_similarity == pytest.approx(min(member.similarity for member in one.members))

    probe = "f2-1"
    hits_ = NearDupe(index, client).similar(id=probe, min=0.5).hits
    wanted = {(set(pair) - {probe}).pop(): value for pair, value in true_pairs(texts, 0.5).items() if probe in pair}
    assert {hit.id: hit.resemblance for hit in hits_} == pytest.approx(wanted)
    by_text = NearDupe(index, client).similar(text=texts[probe], min=0.5).hits
    assert {hit.id: hit.resemblance for hit in by_text} == pytest.approx(wanted | {probe: 1.0})


def check_stats(client: Client, index: str, documents: dict[str, JSON]) -> None:
    found = NearDupe(index, client).stats(buckets=1)
    sizes = Counter(len(members) for members in expected_groups(documents).values() if len(members) > 1)
    assert found.scope.documents == len(documents) == sum(found.scope.states.values())
    assert (found.scope.other_schemes, found.scope.unprocessed, found.scope.ungrouped) == (0, 0, 0)
    assert found.groups.sizes == sizes
    assert (found.groups.count, found.groups.largest) == (sum(sizes.values()), max(sizes))
    assert found.buckets is not None
    assert found.buckets.sampled == len(documents)
    assert found.buckets.largest[0].documents >= max(sizes)


def test_the_commands(client: Client, index_name: str, filled: dict[str, JSON], server_cli: Cli) -> None:
    """The documented JSON shapes; results only on stdout, messages on stderr."""
    users, total = theirs(client, index_name), len(filled)

    def run(*arguments: str) -> JSON:
        done = server_cli(arguments[0], index_name, *arguments[1:], "--json")
        assert done.code == 0, done.err
        assert done.out.count("\n") == 1
        report: JSON = done.json
        return report

    prepared = run("init", "--field", "text")
    assert (prepared["bands"], prepared["rows"], prepared["fields"]) == (16, 6, ["text"])
    assert run("enrich", "--dry-run")["writes"]["written"] == total
    assert run("enrich")["writes"]["written"] == total
    assert run("enrich")["writes"]["written"] == 0
    dry = run("group", "--dry-run")
    assert 0 < dry["writes"]["written"] == dry["groups"]["grouped"] - dry["groups"]["count"] < total
    grouped = run("group")
    assert (grouped["writes"]["written"], grouped["scope"]["documents"]) == (dry["writes"]["written"], total)
    assert run("group")["writes"]["written"] == 0
    assert theirs(client, index_name) == users
    check_groups(client, index_name, filled)

    similar = run("similar", "--id", "f0-0", "--min", "0.8")
    assert set(similar) > {"query", "hits", "candidates", "detection", "not_compared", "measure"}
    assert set(similar["detection"]) == {"min", "probability", "cases", "keys_made_for"}
    assert {hit["id"] for hit in similar["hits"]} == {"f0-1", "f0-2"}
    for hit in similar["hits"]:
        assert set(hit) == {"index", "id", "resemblance", "shared_bands", "group", "copies", "fields"}
        assert (hit["index"], type(hit["shared_bands"]), type(hit["resemblance"])) == (index_name, int, float)

    listed = server_cli("groups", index_name, "--json")
    assert listed.code == 0
    assert listed.err == ""
    expected = {principal: members for principal, members in expected_groups(filled).items() if len(members) > 1}
    assert {one["principal"]["id"]: {member["id"] for member in one["members"]} for one in listed.lines} == expected
    assert all(set(one) == {"group", "principal", "size", "min_similarity", "members"} for one in listed.lines)
    assert all(
        set(member) == {"index", "id", "similarity", "fields"} for one in listed.lines for member in one["members"]
    )
    (only,) = server_cli("groups", index_name, "--group", listed.lines[0]["group"], "--json").lines
    assert only == listed.lines[0]
    assert server_cli("groups", index_name, "--group", "unknown", "--json").out == ""

    paired = server_cli("pairs", index_name, "--json")
    assert paired.code == 0
    assert all(
        list(one) == ["a", "b", "resemblance", "fields", "cut"] and one["a"]["id"] < one["b"]["id"]
        for one in paired.lines
    )
    found = {(one["a"]["id"], one["b"]["id"]): one["resemblance"] for one in paired.lines}
    assert found == pytest.approx(true_pairs(texts_of(filled), THRESHOLD))

    stats = run("stats")
    assert stats["scope"]["documents"] == total == sum(stats["scope"]["states"].values())
    doctor = run("doctor")
    assert all(set(check) == {"name", "level", "message"} for check in doctor["checks"])
    assert run("clean", "--dry-run")["writes"]["written"] == total
    assert run("clean", "--yes")["writes"]["written"] == total
    assert theirs(client, index_name) == users


def test_the_commands_for_people(index_name: str, filled: dict[str, JSON], server_cli: Cli) -> None:
    """Without --json: tables on stdout, next steps on stderr."""
    for arguments, said, next_step in [
        (("init", "--field", "text"), "16 bands of 6 rows", "Next: es-neardupe enrich"),
        (("enrich",), f"{len(filled)}", "Next: es-neardupe group"),
        (("group",), "candidate pairs", "Next: es-neardupe groups"),
        (("groups",), "f0-0", ""),
        (("similar", "--id", "f1-0"), "f1-1", "each compared by its current text"),
        (("pairs",), "copy-a", "verified candidate pairs"),
        (("stats",), "groups of two or more", ""),
        (("doctor",), "ok", ""),
        (("clean", "--yes"), "cleaned", "mapping"),
    ]:
        done = server_cli(arguments[0], index_name, *arguments[1:])
        assert done.code == 0, done.err
        assert said in done.out
        assert next_step in done.err
        assert not next_step or next_step not in done.out


def test_the_class(server_url: str, index_name: str, filled: dict[str, JSON]) -> None:
    with NearDupe(index_name, url=server_url, prefix="dupes") as near:
        with pytest.raises(NeardupeError, match="no field"):
            near.init(Settings(("text", "absent"), prefix="dupes"))
        near.init(Settings(("text",), threshold=0.6, prefix="dupes"))
        assert near.enrich().writes.written == len(filled)
        report = near.group()
        assert report.writes.written == report.groups.grouped - report.groups.count
        assert {one.size for one in near.groups()} == {2, 3, 4, 5}
        assert near.similar(id="copy-a").hits[0].id == "copy-b"
        assert near.stats().scope.ungrouped == 0
        assert len(list(near.pairs())) > 10
        assert near.doctor()[0].level == "ok"
        assert near.clean().writes.written == len(filled)
