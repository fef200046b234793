"""Mistakes of users: one clear line, exit code 1, nothing written, nothing lost."""

from __future__ import annotations

import gzip
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from bad_input import fill, refused
from conftest import Cli
from hostile import check_json, check_shown
from server_tools import (
    change,
    delete_all,
    family,
    hits,
    make_index,
    mapping,
    new_name,
    one_line,
    ours,
    put,
    send,
    versions,
)

from es_neardupe import NearDupe, Settings
from es_neardupe.server.client import Client, path

SETTINGS = Settings(("text",))
READ_ONLY = (
    pytest.param("index.blocks.read_only", marks=pytest.mark.product("each")),
    "index.blocks.write",
    "index.blocks.read_only_allow_delete",
)


@pytest.fixture
def filled(client: Client, index_name: str) -> str:
    fill(client, index_name)
    return index_name


@pytest.fixture(scope="module")
def unprepared(client: Client) -> Iterator[str]:
    """An index without settings, for all tests that change nothing."""
    name = new_name()
    fill(client, name)
    yield name
    delete_all(client, name)


@pytest.fixture(scope="module")
def enriched(client: Client) -> Iterator[str]:
    """An index with keys, for all tests that change nothing."""
    name = new_name()
    fill(client, name)
    NearDupe(name, client).init(SETTINGS)
    NearDupe(name, client).enrich()
    yield name
    delete_all(client, name)


@pytest.mark.parametrize(
    ("command", "more"),
    [
        ("init", ("--field", "text")),
        ("enrich", ()),
        ("group", ()),
        ("groups", ()),
        ("pairs", ()),
        ("similar", ("--text", "a b c")),
        ("search", ("a b c",)),
        ("moved", ("https://a.example/b",)),
        ("contained", ("--text", "a b c")),
        ("stats", ()),
        ("clean", ("--yes",)),
        ("load", ("-",)),
    ],
)
def test_unknown_index(command: str, more: tuple[str, ...], index_name: str, server_cli: Cli) -> None:
    refused(server_cli(command, index_name, *more), f"There is no index '{index_name}'", "--create")


def test_the_mapping_was_changed_after_init(client: Client, index_name: str, server_cli: Cli) -> None:
    """An index recreated from a template or a copy: our settings without our fields, the keys as plain text."""
    properties = {"text": {"type": "text"}, "neardupe": {"properties": {"bands": {"type": "text"}}}}
    make_index(client, index_name, properties, _meta={"neardupe": SETTINGS.to_meta()})
    for command in ("enrich", "group", "stats"):
        refused(server_cli(command, index_name), "neardupe.bands", "text", "--prefix")
    client.request("DELETE", path(index_name))
    make_index(client, index_name, _meta={"neardupe": SETTINGS.to_meta()})
    refused(server_cli("enrich", index_name), "lacks", "init")
    client.request("DELETE", path(index_name))
    make_index(client, index_name, _meta={"neardupe": {"id": "x"}})
    refused(server_cli("enrich", index_name), "_meta.neardupe", "cannot be read")


@pytest.fixture(params=READ_ONLY)
def blocked(request: pytest.FixtureRequest, client: Client, filled: str) -> Iterator[str]:
    """An enriched index that was then blocked for writing."""
    NearDupe(filled, client).init(SETTINGS)
    NearDupe(filled, client).enrich(query={"ids": {"values": ["d0", "d1"]}})
    client.request("PUT", path(filled, "_settings"), body={request.param: True})
    yield filled
    client.request("PUT", path(filled, "_settings"), body={request.param: None})


def test_read_only_index(blocked: str, client: Client, server_cli: Cli, tmp_path: Path) -> None:
    before = mapping(client, blocked), versions(client, blocked)
    lift = f"PUT /{blocked}/_settings", "index.blocks."
    refused(server_cli("init", blocked, "--field", "text", "--prefix", "other"), "blocked", *lift, "--sidecar`")
    refused(server_cli("enrich", blocked), "blocked", *lift)
    refused(server_cli("group", blocked), "blocked", *lift)
    refused(server_cli("clean", blocked, "--yes"), "blocked", *lift)
    migrating = server_cli("migrate", blocked, "--threshold", "0.7", "--yes")
    refused(migrating, "blocked", *lift)
    assert "--sidecar" not in migrating.err  # for an index without keys only
    file = tmp_path / "more.jsonl"
    file.write_text('{"id": "new", "text": "a b c d e f"}\n', "utf-8")
    refused(server_cli("load", blocked, str(file)), "blocked", *lift)
    assert (mapping(client, blocked), versions(client, blocked)) == before
    checks = server_cli("doctor", blocked, "--json").json["checks"]
    assert "error" in [one["level"] for one in checks if one["name"] == "blocks"]
    for command in ("stats", "groups", "pairs"):  # reading is allowed
        assert server_cli(command, blocked, "--json").code == 0
    assert server_cli("similar", blocked, "--id", "d0", "--json").json["hits"][0]["id"] == "d1"


@pytest.mark.parametrize(
    "arguments",
    [
        ("init",),
        ("init", "INDEX"),
        ("enrich", "INDEX", "--batch", "0"),
        ("group", "INDEX", "--linkage", "ring"),
        ("no",),
    ],
)
def test_wrong_usage(arguments: tuple[str, ...], server_cli: Cli, server_url: str) -> None:
    done = server_cli(*arguments)
    assert done.code == 2
    assert "Traceback" not in done.err
    assert done.out == ""


@pytest.mark.parametrize(
    ("command", "more"),
    [("enrich", ()), ("group", ()), ("groups", ()), ("pairs", ()), ("similar", ("--id", "d0")), ("stats", ()),
     ("contained", ("--id", "d0")), ("load", ("-",))],
)  # fmt: skip
def test_before_init(command: str, more: tuple[str, ...], client: Client, unprepared: str, server_cli: Cli) -> None:
    before = versions(client, unprepared)
    refused(server_cli(command, unprepared, *more), f"es-neardupe init {unprepared} --field FIELD")
    assert versions(client, unprepared) == before


@pytest.mark.parametrize(
    ("options", "words"),
    [
        (("--id", "absent"), ("There is no document 'absent'",)),
        (("--id", "d0", "--min", "0"), ("--min", "(0, 1]")),
        (("--id", "d0", "--query", "[]"), ("--query",)),
        (("--id", "d0", "--query", '{"match": 5}'), ("400",)),
        (("--id", "d0", "--query", '{"matsch": {"a": 1}}'), ("400", "unknown query [matsch]")),
        (("--id", "d0", "--query", '{"range": {"neardupe.at": {"gte": "no date"}}}'), ("400", "[no date]")),
        (("--file", "/no/such/file"), ("/no/such/file",)),
        (("--id", ""), ("empty",)),
    ],
)
@pytest.mark.product("each")
def test_similar(
    options: tuple[str, ...], words: tuple[str, ...], client: Client, enriched: str, server_cli: Cli
) -> None:
    usage = {"--min", "[]", ""} & set(options)
    refused(server_cli("similar", enriched, *options), *words, code=2 if usage else 1)


@pytest.mark.parametrize("options", [(), ("--id", "d0", "--text", "x")])
def test_similar_to_nothing_or_to_two_things(options: tuple[str, ...], unprepared: str, server_cli: Cli) -> None:
    done = server_cli("similar", unprepared, *options)
    assert done.code == 2
    assert "exactly one of" in done.err


def test_since_of_an_unknown_field(client: Client, filled: str, server_cli: Cli) -> None:
    client.request("PUT", path(filled, "_mapping"), body={"properties": {"updated": {"type": "date"}}})
    NearDupe(filled, client).init(SETTINGS)
    refused(server_cli("enrich", filled, "--since", "changed=now-1d"), "no field 'changed'", "updated", code=2)
    assert not any(ours(client, filled).values())


@pytest.mark.parametrize("text", ["", " ... ", "\x00"])
def test_similar_to_a_text_without_words(text: str, client: Client, enriched: str, server_cli: Cli) -> None:
    done = server_cli("similar", enriched, "--text", text)
    assert (done.code, "empty" in done.err) == (0, True)


LINES = b"""{"id": "good1", "text": "one two three four five six"}
{"id": "bytes", "text": "caf\xe9 is not UTF-8"}
{"id": "broken", "text": "no end

{"id": "good1", "text": "the same id again"}
["a list"]
"a string"
{"id": "nan", "text": "x", "n": NaN}
{"id": "none"}
{"id": {"an": "object"}, "text": "x"}
{"id": "good2", "text": "one two three four five seven"}
{"id": "cut", "te"""


def test_files_with_bad_lines(client: Client, filled: str, server_cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "lines.jsonl"
    file.write_bytes(LINES)
    NearDupe(filled, client).init(SETTINGS)
    before = versions(client, filled)
    done = server_cli("load", filled, str(file), "--json")
    assert done.code == 0
    report = done.json
    counts = {"read": 11, "bad": 8, "duplicates": 1, "existing": 0, "matching": 0, "dropped": 0}
    assert report["scope"] == {**counts, "skipped_links": 0, "skipped_files": 0, "empty_lines": 1}
    assert (report["writes"]["written"], report["writes"]["refused"]) == (2, 0)
    *found, advice = done.err.splitlines()
    assert [line.removeprefix(f"{file}:").partition(":")[0] for line in found] == [
        "2", "3", "5", "6", "7", "8", "9", "10", "12",
    ]  # fmt: skip
    assert "2 of 2 documents have fewer than 49 words" in advice
    assert "UTF-8" in found[0]
    assert "good1" in found[2]
    after = versions(client, filled)
    assert {id for _, id in after.keys() - before.keys()} == {"good1", "good2"}
    assert all(after[address] == version for address, version in before.items())


def test_a_file_without_any_document(client: Client, enriched: str, server_cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "lines.jsonl.gz"
    file.write_bytes(gzip.compress(b"no JSON\n" * 3000)[:-9])
    done = server_cli("load", enriched, str(file))
    assert done.code == 1
    assert "3,001" in done.out
    found = done.err.splitlines()
    assert sum("lines.jsonl.gz:" in line for line in found) == 21
    assert any("the rest cannot be read" in line for line in found)
    assert found[-1] == "No line is a document that can be indexed."


def test_strict_stops_at_the_first_bad_line(client: Client, enriched: str, server_cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "lines.jsonl"
    file.write_bytes(LINES)
    before = versions(client, enriched)
    refused(server_cli("load", enriched, str(file), "--strict"), f"{file}:2", "UTF-8")
    assert versions(client, enriched) == before


@pytest.mark.parametrize(
    ("name", "content", "word"),
    [
        ("absent.jsonl", None, "There is no file"),
        ("text.pdf", b"x", "neither JSON lines"),
    ],
)
def test_files_that_cannot_be_loaded(
    name: str, content: bytes | None, word: str, client: Client, enriched: str, server_cli: Cli, tmp_path: Path
) -> None:
    if content is not None:
        (tmp_path / name).write_bytes(content)
    refused(server_cli("load", enriched, str(tmp_path / name)), word)


@pytest.mark.product("each")
def test_a_document_that_the_mapping_refuses(client: Client, index_name: str, server_cli: Cli, tmp_path: Path) -> None:
    """Rejected documents are counted with the server's reason; the others are indexed; exit code 1."""
    make_index(client, index_name, {"text": {"type": "text"}, "n": {"type": "integer"}}, dynamic="strict")
    NearDupe(index_name, client).init(SETTINGS)
    file = tmp_path / "a.jsonl"
    file.write_text('{"_id": "a", "text": "fine"}\n{"_id": "b", "text": "x", "n": "many"}\n', "utf-8")
    done = server_cli("load", index_name, str(file), "--json")
    assert (done.code, done.out.count("\n")) == (1, 1)
    assert (done.json["writes"]["written"], done.json["writes"]["refused"]) == (1, 1)
    assert "The server rejected" in done.err
    assert "Traceback" not in done.err


FORGED: dict[str, Any] = {
    "number": {"bands": 12345},
    "length": {"bands": ["tooshort", "x"]},
    "few": {"bands": ["AAAAAAAA"]},
    "characters": {"bands": ["ÄÖÜß漢字ab"] * 16},
    "state": {"state": "unknown"},
    "content": {"content": "xyz"},
    "tokens": {"tokens": -5},
    "nothing": {"state": None, "bands": None, "content": None},
}


def test_stored_fingerprints_that_are_not_ours(client: Client, filled: str, server_cli: Cli) -> None:
    """Any client can write to an index: such documents are counted, reported, and renewed with --all."""
    put(client, filled, {id: {"text": f"this is {id} and some other words"} for id in FORGED})
    NearDupe(filled, client).init(SETTINGS)
    NearDupe(filled, client).enrich()
    for id, fields in FORGED.items():
        change(client, filled, id, {"neardupe": fields})
    done = server_cli("group", filled, "--json")
    assert done.code == 0
    assert (done.json["scope"]["corrupt"], done.json["groups"]["grouped"], done.json["scope"]["documents"]) == (
        len(FORGED),
        4,
        4 + len(FORGED),
    )
    scope, groups = done.json["scope"], done.json["groups"]
    assert scope["documents"] == groups["grouped"] + groups["alone"] + scope["stale"] + scope["corrupt"]
    assert f"{len(FORGED)} documents have unreadable keys" in done.err
    assert f"enrich {filled} --all" in done.err
    assert len(server_cli("pairs", filled, "--json").lines) == 6
    assert server_cli("stats", filled, "--json").json["scope"]["documents"] == 4 + len(FORGED)
    assert len(server_cli("groups", filled, "--json").lines) == 1
    assert len(server_cli("similar", filled, "--id", "d0", "--json").json["hits"]) == 3
    assert server_cli("enrich", filled, "--all", "--json").json["writes"]["written"] == 4 + len(FORGED)
    assert server_cli("group", filled, "--json").json["scope"]["corrupt"] == 0


def test_our_field_as_a_list_of_objects(client: Client, filled: str) -> None:
    """JSON and the mapping allow it, but our code never writes it."""
    NearDupe(filled, client).init(SETTINGS)
    NearDupe(filled, client).enrich()
    NearDupe(filled, client).group()
    scheme = SETTINGS.scheme.id
    odd = {"text": " ".join(family("bad", 1)), "neardupe": [{"scheme": scheme, "group": "g"}, {"principal": False}]}
    put(client, filled, {"odd": odd})
    assert NearDupe(filled, client).group().scope.corrupt == 1
    assert len(list(NearDupe(filled, client).pairs())) == 6
    NearDupe(filled, client).groups()
    NearDupe(filled, client).stats()
    assert NearDupe(filled, client).enrich(check=True).writes.written == 1
    assert NearDupe(filled, client).group().groups.grouped == 5
    send(client, [({"delete": {"_index": filled, "_id": "odd"}}, None)])
    put(client, filled, {"odd": odd})
    assert NearDupe(filled, client).clean().writes.left == 0
    assert all("neardupe" not in hit["_source"] for hit in hits(client, filled))


@pytest.mark.product("each")
def test_values_that_python_cannot_hold(client: Client, index_name: str, server_cli: Cli) -> None:
    """Numbers beyond floats, and arrays as deep as a server takes them: such documents are counted, the others done."""
    settings = Settings(("text",), threshold=0.5)
    NearDupe(index_name, client).init(settings, create=True)
    texts = family("odd values", 3)
    put(client, index_name, {f"d{n}": {"text": text} for n, text in enumerate(texts)})
    for id, value in (("deep", "[" * 990 + '"a b c"' + "]" * 990), ("huge", "1e400"), ("long", "9" * 900)):
        lines = json.dumps({"index": {"_index": index_name, "_id": id}}) + f'\n{{"text": {value}}}\n'
        client.bulk(lines.encode(), params={"refresh": "true"})
    report = NearDupe(index_name, client).enrich()
    assert report.writes.states["signed"] == 3
    assert NearDupe(index_name, client).group().groups.grouped == 3
    for command in (["search", index_name, "*", "--json"], ["similar", index_name, "--id", "d0", "--json"]):
        done = server_cli(*command)
        assert done.code == 0
        check_json(done.out)
    done = server_cli("similar", index_name, "--id", "d0", "--query", '{"match": {"\\u202e\\u001b[31m": 1e400}}')
    check_shown(one_line(done.err))
    done = server_cli("similar", index_name, "--id", "d0", "--query", '{"\\u202e\\u001b[31m<b>[red]": {}}')
    check_shown(one_line(done.err))
    done = server_cli("clean", index_name, "--yes")
    assert done.code in (0, 1)
    left = {id for id, fields in ours(client, index_name).items() if fields}
    assert left <= {"deep", "huge"}
    for id in left:
        client.request("DELETE", path(index_name, "_doc", id), params={"refresh": "true"})
    assert server_cli("clean", index_name, "--yes").code == 0
