"""Each hint of each command is followed: the command that it names runs, and what it complains about is gone then."""

from __future__ import annotations

import json
import re
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Cli
from hints import complaints, followed
from server_tools import (
    assert_settled,
    change,
    family,
    hits,
    living,
    make_index,
    ours,
    put,
    registry,
    send,
    words,
)

from es_neardupe import NearDupe, Settings
from es_neardupe.index.hidden_indices import HiddenDocuments
from es_neardupe.server.client import Client, path

SETTINGS = Settings(("text",), sample_mod=4)
TEXTS = {f"a{n}": text for n, text in enumerate(family("hint", 4))} | {
    f"b{n}": text for n, text in enumerate(family("other", 3))
}
FIRST = {"enrich": ["a0"], "group": []}
LOOKING = [
    ["doctor", "INDEX"],
    ["stats", "INDEX"],
    ["groups", "INDEX"],
    ["groups", "INDEX", "--suggest-keep"],
    ["pairs", "INDEX", "--min", "0.5"],
    ["similar", "INDEX", "--id", "a1"],
    ["contained", "INDEX", "--id", "a1"],
    ["search", "INDEX", "*"],
    ["audit", "INDEX"],
    ["distribution", "INDEX"],
    ["what-if", "INDEX", "--min", "0.8"],
    ["enrich", "INDEX"],
    ["group", "INDEX"],
    ["group", "INDEX", "--evidence"],
]
ROUNDS = 6
"""Hints that may follow from one another."""


def fresh(client: Client, index: str) -> None:
    make_index(client, index)
    put(client, index, {id: {"text": text} for id, text in TEXTS.items()})


def grouped(client: Client, index: str) -> None:
    fresh(client, index)
    news = NearDupe(index, client)
    news.init(SETTINGS)
    news.enrich()
    news.group(evidence=True)


def fingerprinted(client: Client, index: str) -> None:
    """Documents that an application indexes with their keys: `enrich` has never run."""
    make_index(client, index)
    news = NearDupe(index, client)
    news.init(SETTINGS)
    actions = [{"_index": index, "_id": id, "text": text} for id, text in TEXTS.items()]
    made = [dict(one) for one in news.fingerprinted(actions)]
    put(client, index, {one["_id"]: {name: one[name] for name in ("text", "neardupe")} for one in made})
    news.group(evidence=True)
    change(client, index, "a1", {"text": " ".join(words("rewritten", 60))})


def rewritten(client: Client, index: str) -> None:
    grouped(client, index)
    change(client, index, "a1", {"text": " ".join(words("rewritten", 60))})


def rewritten_and_grouped(client: Client, index: str) -> None:
    rewritten(client, index)
    NearDupe(index, client).group(rebuild=True)


def new_documents(client: Client, index: str) -> None:
    grouped(client, index)
    put(client, index, {"new": {"text": TEXTS["a0"]}, "empty": {"text": ""}})


def unreadable_keys(client: Client, index: str) -> None:
    grouped(client, index)
    change(client, index, "a1", {"neardupe": {"content": "nothing"}})
    change(client, index, "b1", {"neardupe": {"samples": ["no"]}})


def without_principal(client: Client, index: str) -> None:
    grouped(client, index)
    principal = next(one.members[0].address.id for one in NearDupe(index, client).groups())
    send(client, [({"delete": {"_index": index, "_id": principal}}, None)])
    put(client, index, {"a1": {"text": TEXTS["a1"]}}) if principal == "a1" else None


def without_group_id(client: Client, index: str) -> None:
    grouped(client, index)
    change(client, index, "a2", {"neardupe": {"group": None}})


def damaged_record(client: Client, index: str) -> None:
    grouped(client, index)
    stored = HiddenDocuments(client, registry(client, index).name).read("run")
    assert stored is not None
    body = {**stored.source, "settings": {"match": "nothing"}}
    client.request("PUT", path(registry(client, index).name, "_doc", "run"), params={"refresh": True}, body=body)


def recreated(client: Client, index: str) -> None:
    """The index was deleted and created again with other texts, without settings."""
    grouped(client, index)
    client.request("DELETE", path(index))
    make_index(client, index)
    put(client, index, {id: {"text": text} for id, text in zip(sorted(TEXTS), family("again", 7), strict=True)})


def recreated_with_keys(client: Client, index: str) -> None:
    """Like `recreated`, and a bulk request of the former index arrived late: all keys are those of other texts."""
    grouped(client, index)
    late = ours(client, index)
    before = client.request("GET", path(index))[index]["mappings"]
    client.request("DELETE", path(index))
    make_index(client, index, before["properties"], _meta=before["_meta"])
    texts = dict(zip(sorted(TEXTS), family("again", 7), strict=True))
    put(client, index, {id: {"text": text, "neardupe": late[id]} for id, text in texts.items()})


STATES: list[Callable[[Client, str], None]] = [
    fresh,
    fingerprinted,
    rewritten,
    rewritten_and_grouped,
    new_documents,
    unreadable_keys,
    without_principal,
    without_group_id,
    damaged_record,
    recreated,
    recreated_with_keys,
]


@pytest.mark.parametrize("state", STATES, ids=lambda state: state.__name__)
def test_hints_lead_out(state: Callable[[Client, str], None], client: Client, index_name: str, server_cli: Cli) -> None:
    """Whatever a command complains about: as long as it names a command, this one is run."""
    state(client, index_name)
    number = 0
    for line in LOOKING:
        said: list[str] = []
        for _ in range(ROUNDS):
            done = server_cli(*[index_name if word == "INDEX" else word for word in line])
            found = [one for one in complaints(done) if "--help" not in one]
            if not found:
                break
            said.append(found[0])
            number += 1
            assert followed(found[0], server_cli).code == 0, (line, found[0])
        else:
            raise AssertionError(f"{line}: these hints lead in a circle: {said}")
    assert number, "no command complains"
    checks = {one.name: one.message for one in NearDupe(index_name, client).doctor() if one.level != "ok"}
    assert checks == {}
    assert_settled(client, index_name)
    assert all("scheme" in one for one in ours(client, index_name).values())
    assert {record.group for record in living(client, index_name)} <= {
        hit["_source"]["neardupe"]["group"] for hit in hits(client, index_name)
    }


@pytest.mark.product("opensearch")
def test_a_copy_without_the_mapping_is_prepared_under_another_prefix(
    painless: Client, index_name: str, server_cli: Cli
) -> None:
    """`_reindex` copies the fields of this package, and the server maps them by their values."""
    grouped(painless, index_name)
    copy = f"{index_name}-copy"
    body = {"source": {"index": index_name}, "dest": {"index": copy}}
    painless.request("POST", path("_reindex"), params={"refresh": True, "wait_for_completion": True}, body=body)
    try:
        for line in (["doctor"], ["init", "--field", "text"], ["enrich"]):
            done = server_cli(line[0], copy, *line[1:])
            said = re.sub(r"\s+", " ", done.out + done.err)
            assert "mapped as" in said, said
        (one,) = complaints(server_cli("doctor", copy))
        assert followed(one, server_cli).code == 0
        without = server_cli("enrich", copy)
        assert (without.code, "but under 'other': add --prefix other" in re.sub(r"\s+", " ", without.err)) == (1, True)
        for name in ("enrich", "group", "doctor"):
            done = server_cli(name, copy, "--prefix", "other")
            assert (done.code, complaints(done)) == (0, []), done.err
        assert [one.size for one in NearDupe(copy, painless, prefix="other").groups()] == [4, 3]
    finally:
        painless.request("DELETE", path(copy))


@pytest.mark.parametrize(
    ("closed", "commands"), [("registry", ["group", "groups"]), ("index", ["enrich", "group", "groups", "pairs"])]
)
def test_a_closed_index_is_opened_as_the_message_says(
    closed: str, commands: list[str], client: Client, index_name: str, server_cli: Cli
) -> None:
    grouped(client, index_name)
    name = index_name if closed == "index" else registry(client, index_name).name
    client.request("POST", path(name, "_close"))
    for command in commands:
        done = server_cli(command, index_name)
        assert (done.code, f"Open it with `POST /{name}/_open`" in re.sub(r"\s+", " ", done.err)) == (1, True), done.err
    client.request("POST", path(name, "_open"))
    assert_settled(client, index_name)


@pytest.mark.product("each")
@pytest.mark.parametrize("by_alias", [False, True])
def test_a_closed_index_among_others_is_named(by_alias: bool, client: Client, index_name: str, server_cli: Cli) -> None:
    """By a pattern as by an alias: its documents are not left out without a word."""
    one, other = f"{index_name}-a", f"{index_name}-b"
    for name in (one, other):
        make_index(client, name, aliases={f"{index_name}-all": {}})
        put(client, name, {f"{name}{n}": {"text": text} for n, text in enumerate(family("closed", 2))})
    together = f"{index_name}-all" if by_alias else f"{index_name}-*"
    grouping = [("init", together, "--field", "text"), ("enrich", together), ("group", together), ("stats", together)]
    for line in grouping:
        assert server_cli(*line).code == 0
    client.request("POST", path(other, "_close"))
    for line in grouping:
        done = server_cli(*line)
        said = re.sub(r"\s+", " ", done.err)
        assert (done.code, f"Index {other} is closed" in said) == (1, True), said
        assert f"Open it with `POST /{other}/_open`" in said
    client.request("POST", path(other, "_open"))
    for line in grouping:
        assert server_cli(*line).code == 0


def test_a_limit_of_fields_is_raised_as_the_message_says(client: Client, index_name: str, server_cli: Cli) -> None:
    fresh(client, index_name)
    client.request("PUT", path(index_name, "_settings"), body={"index.mapping.total_fields.limit": 2})
    done = server_cli("init", index_name, "--field", "text")
    said = re.search(r"`PUT /(\S+)/_settings (\{[^`]+\})`", re.sub(r"\s+", " ", done.err))
    assert (done.code, said is not None) == (1, True), done.err
    assert said is not None
    client.request("PUT", path(said[1], "_settings"), body=json.loads(said[2]))
    for line in (["init", "--field", "text"], ["enrich"], ["group"], ["migrate", "--threshold", "0.7", "--yes"]):
        done = server_cli(line[0], index_name, *line[1:])
        assert done.code == 0, done.err


@pytest.mark.parametrize(
    ("why", "options"),
    [
        pytest.param(
            *("allows no fields in objects", {"settings": {"index.mapping.depth.limit": 1}}),
            marks=pytest.mark.product("each"),
        ),
        pytest.param("has no objects", {"subobjects": False}, marks=pytest.mark.product("elasticsearch")),
    ],
)
def test_an_index_without_objects_gets_a_sidecar(
    why: str, options: dict[str, Any], client: Client, index_name: str, server_cli: Cli
) -> None:
    make_index(client, index_name, **options)
    way_out = f"init {index_name} --field FIELD --sidecar"
    for given, hint in (([], way_out), (["--sidecar", "--write-group"], "omit --write-group")):
        done = server_cli("init", index_name, "--field", "text", *given)
        said = re.sub(r"\s+", " ", done.err)
        assert (done.code, why in said, hint in said) == (1, True, True), said
    assert server_cli("init", index_name, "--field", "text", "--sidecar").code == 0
    put(client, index_name, {"d": {"text": "a text"}})
    assert server_cli("enrich", index_name).code == 0


def test_pages_are_prepared_as_load_says(client: Client, index_name: str, server_cli: Cli, tmp_path: Path) -> None:
    """As they are, their markup hides that they are copies."""
    body = " ".join(words("page", 30))
    pages = ["".join(f"<{tag} class={tag}{one}>{body}" for one in range(9)) for tag in ("p", "div", "li")]
    file = tmp_path / "pages.jsonl"
    file.write_text("".join(json.dumps({"id": str(id), "text": page}) + "\n" for id, page in enumerate(pages)), "utf-8")
    assert server_cli("init", index_name, "--field", "text", "--create").code == 0
    done = server_cli("load", index_name, str(file))
    assert "3 of 3 documents are pages" in done.err
    (one,) = complaints(done)
    assert one == f"es-neardupe migrate {index_name} --clean html"
    assert (server_cli("group", index_name).code, NearDupe(index_name, client).groups()) == (0, [])
    assert followed(one, server_cli).code == 0
    (group,) = NearDupe(index_name, client).groups()
    assert group.size == 3
    prepared = server_cli("init", index_name, "--field", "text", "--clean", "html")
    assert (prepared.code, complaints(prepared)) == (0, [])


def test_moved_passages_are_found_as_the_messages_say(client: Client, index_name: str, server_cli: Cli) -> None:
    """Texts with the same entries in another order, of which one was rewritten, match by no preset as it is."""
    texts = {f"c{number}": " ".join(words(f"other-{number}", 60)) for number in range(4)}
    for number in range(8):
        entries = [" ".join(words(f"{number}-{entry}", 40)) for entry in range(9)]
        texts[f"a{number}"] = " ".join(entries)
        texts[f"b{number}"] = " ".join([*entries[1::2], *words(f"{number}-rewritten", 40), *entries[2::2]])
    make_index(client, index_name)
    put(client, index_name, {id: {"text": text} for id, text in texts.items()})
    for line in (["init", index_name, "--field", "text"], ["enrich", index_name]):
        assert server_cli(*line).code == 0
    done = server_cli("group", index_name)
    assert (done.code, "0 of 20 documents have near-duplicates by these keys" in re.sub(r"\s+", " ", done.err)) == (
        0,
        True,
    )
    assert "Next:" not in done.err
    (one,) = complaints(done)
    assert one == f"es-neardupe distribution {index_name}"
    (other,) = complaints(followed(one, server_cli))
    assert other == f"es-neardupe migrate {index_name} --preset strict --threshold 0.6"
    assert followed(other, server_cli).code == 0
    assert len(NearDupe(index_name, client).groups()) == 8


@pytest.mark.parametrize("line", [["init", "--field", "text"], ["doctor"]])
def test_a_block_is_kept_as_the_message_says(line: list[str], client: Client, index_name: str, server_cli: Cli) -> None:
    fresh(client, index_name)
    client.request("PUT", path(index_name, "_settings"), body={"index.blocks.write": True})
    one = next(one for one in complaints(server_cli(line[0], index_name, *line[1:])) if "--sidecar" in one)
    for done in (followed(one, server_cli), *(server_cli(name, index_name) for name in ("enrich", "group", "doctor"))):
        assert done.code == 0, done.err
