"""Names that resolve to several indices: aliases and patterns."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from conftest import Cli
from server_tools import change, delete_all, family, hits, make_index, mapping, new_name, ours, put, theirs

from es_neardupe import NearDupe, Settings
from es_neardupe.errors import Blocked, IndexUnusable, InputError, NotInitialised, SchemeMismatch, SettingsError
from es_neardupe.server.client import Client, path

SETTINGS = Settings(("text",))


@pytest.fixture
def base(client: Client) -> Iterator[str]:
    """Two indices, BASE-1 and BASE-2, with an alias BASE-all; one family spans both."""
    name = new_name()
    texts = family(name, 6)
    for number in (1, 2):
        make_index(client, f"{name}-{number}", aliases={f"{name}-all": {}})
        mine = {f"d{k}": {"text": text} for k, text in enumerate(texts) if k % 2 == number - 1}
        put(client, f"{name}-{number}", mine | {f"alone{number}": {"text": f"nothing like it {number} " * 5}})
    put(client, f"{name}-1", {"same": {"text": "the same id in both indices one"}})
    put(client, f"{name}-2", {"same": {"text": "the same id in both indices two, but longer"}})
    yield name
    delete_all(client, name)


@pytest.mark.parametrize("suffix", ["-all", "-*", "-1,{base}-2"])
@pytest.mark.either("suffix")
def test_the_whole_job_across_indices(suffix: str, client: Client, base: str, server_cli: Cli) -> None:
    name = base + suffix.format(base=base)
    users = theirs(client, name)
    assert NearDupe(name, client).init(SETTINGS).prepared == (f"{base}-1", f"{base}-2")
    assert NearDupe(name, client).enrich().writes.written == 10
    grouped = NearDupe(name, client).group()
    assert (grouped.writes.written, grouped.groups.largest, grouped.scope.documents) == (5, 6, 10)
    assert theirs(client, name) == users
    where = {(hit["_index"], hit["_id"]) for hit in hits(client, name) if hit["_source"].get("neardupe")}
    assert where == set(users)  # written in their own indices

    (group,) = NearDupe(name, client).groups(min_size=6)
    assert {(member.index, member.id) for member in group.members} == {
        (f"{base}-{1 + k % 2}", f"d{k}") for k in range(6)
    }
    found = NearDupe(name, client).similar(id="d0", min=0.8)
    assert {(hit.index, hit.id) for hit in found.hits} == {(f"{base}-{1 + k % 2}", f"d{k}") for k in range(1, 6)}
    lines = server_cli("pairs", name, "--json").lines
    assert len(lines) == 15
    assert [one["a"]["index"] != one["b"]["index"] for one in lines].count(True) == 9
    line = server_cli("groups", name, "--min-size", "6", "--json").lines[0]
    assert line["members"][0]["index"] == line["principal"]["index"] == f"{base}-1"
    assert f"{base}-2/d1" in server_cli("pairs", name).out
    assert f"{base}-2/d1" in server_cli("groups", name).out
    stats = NearDupe(name, client).stats()
    assert (stats.scope.documents, stats.indices) == (10, (f"{base}-1", f"{base}-2"))
    assert NearDupe(name, client).group().writes.written == 0
    assert {one.level for one in NearDupe(name, client).doctor()} == {"ok"}
    assert NearDupe(name, client).clean().writes.written == 10
    assert "neardupe" not in mapping(client, f"{base}-2")["_meta"]


def test_one_of_them_alone(client: Client, base: str) -> None:
    NearDupe(f"{base}-1", client).init(SETTINGS)
    with pytest.raises(NotInitialised, match=f"{base}-2 has no near-duplicate keys"):
        NearDupe(f"{base}-all", client).enrich()
    assert NearDupe(f"{base}-1", client).enrich().writes.written == 5
    assert not any(ours(client, f"{base}-2").values())
    assert NearDupe(f"{base}-all", client).init(SETTINGS).prepared == (f"{base}-2",)
    assert NearDupe(f"{base}-all", client).enrich().writes.written == 5


def test_one_of_them_is_blocked(client: Client, base: str) -> None:
    news = NearDupe(f"{base}-all", client)
    news.init(SETTINGS)
    client.request("PUT", path(f"{base}-1", "_settings"), body={"index.blocks.write": True})
    with pytest.raises(Blocked, match=rf"^Index {base}-1 is blocked for writing by index\.blocks\.write\. "):
        news.enrich()


def test_the_same_id_in_two_indices(client: Client, base: str) -> None:
    NearDupe(f"{base}-all", client).init(SETTINGS)
    NearDupe(f"{base}-all", client).enrich()
    with pytest.raises(SettingsError, match=f"give it as {base}-1/same or {base}-2/same"):
        NearDupe(f"{base}-all", client).similar(id="same")
    assert NearDupe(f"{base}-all", client).similar(id=f"{base}-2/same").query["index"] == f"{base}-2"
    assert NearDupe(f"{base}-1", client).similar(id="same").query["index"] == f"{base}-1"
    change(client, f"{base}-2", "same", {"text": "the same id in both indices one"})
    NearDupe(f"{base}-all", client).enrich(check=True)
    NearDupe(f"{base}-all", client).group()
    groups = {hit["_source"]["neardupe"]["group"] for hit in hits(client, f"{base}-all") if hit["_id"] == "same"}
    assert len(groups) == 1


def test_different_schemes_are_refused(client: Client, base: str) -> None:
    NearDupe(f"{base}-1", client).init(SETTINGS)
    NearDupe(f"{base}-2", client).init(Settings(("text",), threshold=0.6))
    for work in (NearDupe.enrich, NearDupe.group, NearDupe.stats, NearDupe.pairs):
        with pytest.raises(SchemeMismatch, match=r"threshold: 0\.8, not 0\.6; bands: 16, not 19"):
            work(NearDupe(f"{base}-all", client))
    with pytest.raises(SchemeMismatch):
        NearDupe(f"{base}-all", client).init(SETTINGS)


def test_load_wants_one_index(client: Client, base: str) -> None:
    NearDupe(f"{base}-all", client).init(SETTINGS)
    with pytest.raises(InputError, match="resolves to 2 indices"):
        NearDupe(f"{base}-all", client).load(["-"])


def test_a_pattern_that_matches_nothing(client: Client, base: str, server_cli: Cli) -> None:
    done = server_cli("enrich", f"{base}-nothing*")
    assert done.code == 1
    assert f"There is no index '{base}-nothing*'. Name an existing one.\n" in done.err


def test_an_alias_with_a_filter_is_no_scope(client: Client, base: str) -> None:
    """Our requests name the concrete indices and would bypass a filter, so an alias with a filter is rejected."""
    NearDupe(f"{base}-1", client).init(SETTINGS)
    body = {"filter": {"term": {"text": "nothing"}}}
    client.request("PUT", path(f"{base}-1", "_alias", f"{base}-some"), body=body)
    with pytest.raises(IndexUnusable, match="filter"):
        NearDupe(f"{base}-some", client).enrich()
    assert not any(ours(client, f"{base}-1").values())
