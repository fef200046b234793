"""`clean` on real servers: the confirmation, and a second run. (The documents: test_flow.py.)"""

from __future__ import annotations

import io

import pytest
from bad_input import fill
from conftest import Cli
from server_tools import make_index, versions

from es_neardupe import NearDupe, Settings
from es_neardupe.server.client import Client, path

SETTINGS = Settings(("text",))


@pytest.fixture
def filled(client: Client, index_name: str) -> str:
    fill(client, index_name)
    return index_name


@pytest.mark.parametrize("answer", ["n\n", ""])
def test_clean_asks_first(
    answer: str,
    client: Client,
    filled: str,
    server_cli: Cli,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    NearDupe(filled, client).init(Settings(("text",)))
    NearDupe(filled, client).enrich()
    written = versions(client, filled)
    monkeypatch.setattr("sys.stdin", io.StringIO(answer))
    done = server_cli("clean", filled)
    assert done.code == 1
    assert f"Remove 'neardupe' from 4 documents of {filled}?" in done.err
    assert versions(client, filled) == written


@pytest.mark.product("each")
def test_clean_twice(client: Client, filled: str, server_cli: Cli) -> None:
    NearDupe(filled, client).init(SETTINGS)
    NearDupe(filled, client).enrich()
    assert server_cli("clean", filled, "--yes", "--json").json["writes"]["written"] == 4
    assert server_cli("clean", filled, "--yes", "--json").json["writes"]["written"] == 0
    assert_nothing_to_clean(client, filled, server_cli)


def test_clean_of_a_sidecar_twice(client: Client, filled: str, server_cli: Cli) -> None:
    NearDupe(filled, client).init(SETTINGS, sidecar=True)
    NearDupe(filled, client).enrich()
    first = server_cli("clean", filled, "--yes", "--json").json
    assert (first["prepared"], first["deleted_indices"]) == (
        True,
        [f"{filled}-neardupe-groups", f"{filled}-neardupe-sidecar"],
    )
    assert_nothing_to_clean(client, filled, server_cli)


def test_clean_of_written_group_ids_twice(client: Client, filled: str, server_cli: Cli) -> None:
    NearDupe(filled, client).init(SETTINGS, sidecar=True, write_group=True)
    NearDupe(filled, client).enrich()
    assert server_cli("clean", filled, "--yes", "--json").json["writes"]["written"] == 4
    assert_nothing_to_clean(client, filled, server_cli)


@pytest.mark.product("each")
def test_a_name_with_a_dot(client: Client, filled: str, server_cli: Cli) -> None:
    """Another program has written a field of ours in another way."""
    NearDupe(filled, client).init(SETTINGS)
    NearDupe(filled, client).enrich()
    source = {"text": "some words of a text", "neardupe.group": "abc", "neardupes.group": "yours"}
    client.request("PUT", path(filled, "_doc", "dotted"), params={"refresh": "true"}, body=source)
    NearDupe(filled, client).enrich()
    assert server_cli("clean", filled, "--yes", "--json").json["writes"]["written"] == 5
    found = client.request("GET", path(filled, "_doc", "dotted"))["_source"]
    assert found == {"text": source["text"], "neardupes.group": "yours"}
    assert_nothing_to_clean(client, filled, server_cli)


def test_clean_of_several_indices_of_which_one_is_clean(client: Client, filled: str, server_cli: Cli) -> None:
    other = f"{filled}-other"
    fill(client, other)
    NearDupe(f"{filled}*", client).init(SETTINGS)
    assert server_cli("clean", other, "--yes").code == 0
    done = server_cli("clean", f"{filled}*", "--yes")
    assert done.code == 1
    assert f"clean the others by their names, with `es-neardupe clean {filled}`" in done.err
    assert server_cli("clean", filled, "--yes").code == server_cli("clean", f"{filled}*", "--yes").code == 0


def test_clean_of_an_index_that_was_never_prepared(client: Client, filled: str, server_cli: Cli) -> None:
    assert_nothing_to_clean(client, filled, server_cli)


def test_clean_of_an_index_that_does_not_exist(client: Client, index_name: str, server_cli: Cli) -> None:
    done = server_cli("clean", index_name, "--yes")
    assert (done.code, done.out) == (1, "")
    assert "There is no index" in done.err


def test_decisions_that_were_kept_can_be_deleted_later(client: Client, filled: str, server_cli: Cli) -> None:
    """As the first `clean` says."""
    news = NearDupe(filled, client)
    news.init(Settings(("text",)))
    news.enrich()
    news.decide("different", "d0", ["d1"], author="ann")
    done = server_cli("clean", filled, "--yes")
    assert "1 decision of reviewers is kept: --decisions deletes it." in done.out
    done = server_cli("clean", filled, "--yes")
    assert (done.code, "Nothing to clean" in done.out) == (0, True)
    done = server_cli("clean", filled, "--yes", "--decisions")
    assert (done.code, f"Index {filled}-neardupe-decisions deleted." in done.out) == (0, True), done.err
    done = server_cli("clean", filled, "--yes", "--decisions")
    assert (done.code, "Nothing to clean" in done.out) == (0, True)


def test_groups_of_an_index_that_was_created_again(client: Client, filled: str, server_cli: Cli) -> None:
    news = NearDupe(filled, client)
    news.init(Settings(("text",)))
    news.enrich()
    news.group()
    client.request("DELETE", path(filled))
    make_index(client, filled)
    assert server_cli("clean", filled, "--dry-run").out.count(f"Index {filled}-neardupe-groups would be deleted.") == 1
    done = server_cli("clean", filled, "--yes")
    assert done.out.count(f"Index {filled}-neardupe-groups deleted.") == 1
    assert "mapping" not in done.err
    assert_nothing_to_clean(client, filled, server_cli)


def test_what_a_deleted_index_has_left(client: Client, filled: str, server_cli: Cli) -> None:
    news = NearDupe(filled, client)
    news.init(SETTINGS, sidecar=True)
    news.enrich()
    news.group()
    news.decide("different", "d0", ["d1"], author="ann")
    client.request("DELETE", path(filled))
    left = [f"{filled}-neardupe-groups", f"{filled}-neardupe-sidecar"]
    assert server_cli("clean", filled, "--json", "--dry-run").json["deleted_indices"] == left
    assert server_cli("clean", filled, "--json", "--yes").json["deleted_indices"] == left
    done = server_cli("clean", filled, "--yes", "--decisions")
    assert f"Index {filled}-neardupe-decisions deleted." in done.out
    assert "mapping" not in done.err
    assert "There is no index" in server_cli("clean", filled, "--yes").err


def test_the_fields_that_stay_in_the_mapping_are_named(client: Client, filled: str, server_cli: Cli) -> None:
    NearDupe(filled, client).init(Settings(("text",), group_field="story"))
    done = server_cli("clean", filled, "--yes")
    sentence = "The mappings of 'neardupe' and 'story' stay: no server can remove a field from a mapping."
    assert f"{sentence} They cost nothing, but" in done.err


def test_fields_without_settings_are_not_called_clean(client: Client, filled: str, server_cli: Cli) -> None:
    """A copy of an index whose mapping was made from its documents."""
    client.request("PUT", path(filled, "_doc", "copy"), body={"neardupe": {"scheme": "v1-00000000"}})
    done = server_cli("clean", filled, "--yes")
    assert (done.code, done.out) == (1, "")
    assert "has no settings" in done.err


def assert_nothing_to_clean(client: Client, index: str, server_cli: Cli) -> None:
    """`clean` asks nothing, changes nothing and succeeds."""
    before = versions(client, index)
    sentence = f"Nothing to clean: {index} has no settings under 'neardupe' and no sidecar index."
    for options in ([], ["--yes"], ["--dry-run"]):
        done = server_cli("clean", index, *options)
        assert (done.code, done.out.splitlines(), done.err) == (0, [sentence], "")
    report = server_cli("clean", index, "--yes", "--json").json
    assert (report["prepared"], report["documents"], report["deleted_indices"]) == (False, 0, [])
    assert versions(client, index) == before
