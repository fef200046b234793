"""`load`: files of every kind are indexed as the same documents as by indexing and `enrich`."""

from __future__ import annotations

import csv
import gzip
import io
import json
import lzma
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pyarrow as pa
import pytest
from conftest import Cli
from pyarrow import ipc, parquet
from server_tools import JSON, family, hits, make_index, ours, put, theirs, versions, words

from es_neardupe import NearDupe, Settings
from es_neardupe.readers.files import Problem
from es_neardupe.server.client import Client, path
from es_neardupe.server.request_sizes import request_limit

if sys.version_info >= (3, 14):
    from compression import zstd
else:
    from backports import zstd

SETTINGS = Settings(("text",))
TEXTS = {f"d{n}": text for n, text in enumerate([*family("load", 4), 'short, "quoted"', "", "Ünïcode 漢字\nlines\t…"])}


def json_lines(**more: str) -> bytes:
    lines = [json.dumps({"id": id, "text": text, **more}, ensure_ascii=id != "d0") for id, text in TEXTS.items()]
    return ("\n".join(lines) + "\n").encode()


def make_files(folder: Path, kind: str) -> str:
    """Write the texts to a file or folder of one kind; returns its name."""
    file = folder / f"texts.{kind}"
    if kind == "folder":
        for id, text in TEXTS.items():
            (file / id[1:]).mkdir(parents=True)
            (file / id[1:] / f"{id}.txt").write_bytes(text.encode())
    elif kind == "parquet":
        parquet.write_table(pa.table({"id": list(TEXTS), "text": list(TEXTS.values())}), file)
    elif kind == "arrow":
        table = pa.table({"id": list(TEXTS), "text": list(TEXTS.values())})
        with ipc.new_file(file, table.schema) as writer:
            writer.write_table(table, max_chunksize=2)
    elif kind == "csv":
        rows = io.StringIO()
        writer = csv.writer(rows)
        writer.writerows([("id", "text"), *TEXTS.items()])
        file.write_bytes(rows.getvalue().encode())
    else:
        packing: dict[str, Callable[[bytes], bytes]]
        packing = {"gz": gzip.compress, "xz": lzma.compress, "zst": zstd.compress}
        file.write_bytes(packing.get(kind.rpartition(".")[2], bytes)(json_lines()))
    return str(file)


def test_names_of_files_in_python(client: Client, index_name: str, tmp_path: Path) -> None:
    """One path, some of them, or an iterator, which is read once."""
    news, file = NearDupe(index_name, client), Path(make_files(tmp_path, "jsonl"))
    news.init(Settings(("text",)), create=True)
    for paths in (file, [file], iter([str(file)]), {str(file)}):
        assert news.load(paths, dry_run=True).writes.written == len(TEXTS)  # type: ignore[arg-type]


@pytest.mark.either("kind")
@pytest.mark.parametrize(
    "kind", ["jsonl", "ndjson", "jsonl.gz", "jsonl.xz", "jsonl.zst", "parquet", "arrow", "csv", "folder"]
)
def test_every_kind_of_file(kind: str, client: Client, index_name: str, server_cli: Cli, tmp_path: Path) -> None:
    assert server_cli("init", index_name, "--field", "text", "--create").code == 0
    name = make_files(tmp_path, kind)
    dry = server_cli("load", index_name, name, "--dry-run", "--json")
    assert (dry.json["writes"]["written"], hits(client, index_name)) == (len(TEXTS), [])
    assert re.fullmatch("2 of 6 documents have fewer than 49 words: .*\n", dry.err)
    done = server_cli("load", index_name, name, "--json")
    assert done.code == 0
    assert re.fullmatch("2 of 6 documents have fewer than 49 words: .*\n", done.err)
    assert (done.json["scope"]["read"], done.json["writes"]["written"]) == (len(TEXTS), len(TEXTS))
    assert done.json["writes"]["states"] == dry.json["writes"]["states"]
    assert done.json["unsuited"] == dry.json["unsuited"]
    ids = {id: f"{id[1:]}/{id}.txt" if kind == "folder" else id for id in TEXTS}
    found = {hit["_id"]: hit["_source"]["text"] for hit in hits(client, index_name)}
    assert found == {ids[id]: text for id, text in TEXTS.items()}

    loaded = ours(client, index_name)
    assert NearDupe(index_name, client).enrich(check=True).writes.written == 0
    NearDupe(index_name, client).clean()
    NearDupe(index_name, client).init(SETTINGS)
    NearDupe(index_name, client).enrich()
    assert ours(client, index_name) == loaded
    assert NearDupe(index_name, client).group().groups.largest == 4


@pytest.mark.parametrize("options", [("--id-field", "id"), ()])
def test_standard_input(
    options: tuple[str, ...], client: Client, index_name: str, server_cli: Cli, monkeypatch: pytest.MonkeyPatch
) -> None:
    server_cli("init", index_name, "--field", "text", "--create")
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(json_lines())))
    done = server_cli("load", index_name, "-", "--json", *options)
    assert (done.code, done.json["writes"]["written"]) == (0, len(TEXTS))
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(b'{"text": "no id at all"}\n')))
    done = server_cli("load", index_name, "-", "--json", *options)
    assert (done.json["writes"]["written"], done.json["scope"]["bad"]) == (0, 1)
    assert "stdin:1" in done.err


def test_text_field_and_id_field(client: Client, index_name: str, server_cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "articles.jsonl"
    lines = [{"url": f"http://x/{n}?a=b", "_id": "not me", "content": text} for n, text in enumerate(TEXTS.values())]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    server_cli("init", index_name, "--field", "body.text", "--create")
    done = server_cli("load", index_name, str(file), "--text-field", "content", "--id-field", "url", "--json")
    assert (done.code, done.json["writes"]["written"]) == (0, len(TEXTS))
    found = {hit["_id"]: hit["_source"] for hit in hits(client, index_name)}
    assert set(found) == {line["url"] for line in lines}
    assert found["http://x/0?a=b"]["body"] == {"text": TEXTS["d0"]}
    assert "content" not in found["http://x/0?a=b"]
    missing = server_cli("load", index_name, str(file), "--text-field", "absent", "--json")
    assert (missing.json["scope"]["bad"], missing.json["writes"]["written"]) == (len(TEXTS), 0)
    file.write_text("\n\n")
    (tmp_path / "folder").mkdir()
    empty = server_cli("load", index_name, str(file), str(tmp_path / "folder"))
    assert empty.code == 0
    assert f"{file}, {tmp_path / 'folder'}: no lines, rows or files to read." in empty.err


@pytest.mark.product("each")
def test_existing_documents_are_skipped_or_replaced(
    client: Client, index_name: str, server_cli: Cli, tmp_path: Path
) -> None:
    make_index(client, index_name)
    there: dict[str, JSON] = {"d0": {"text": "it was here before", "more": 1}, "other": {"text": "untouched"}}
    put(client, index_name, there)
    server_cli("init", index_name, "--field", "text")
    file = tmp_path / "texts.jsonl"
    file.write_bytes(json_lines())
    before = versions(client, index_name)
    dry = server_cli("load", index_name, str(file), "--dry-run", "--json").json
    assert versions(client, index_name) == before
    done = server_cli("load", index_name, str(file), "--json").json
    assert (done["writes"]["written"], done["scope"]["existing"]) == (len(TEXTS) - 1, 1)
    assert (dry["scope"], dry["writes"]) == (done["scope"], done["writes"])
    after = versions(client, index_name)
    assert all(after[address] == version for address, version in before.items())
    again = server_cli("load", index_name, str(file), "--json").json
    assert (again["writes"]["written"], again["scope"]["existing"]) == (0, len(TEXTS))
    assert versions(client, index_name) == after

    replaced = server_cli("load", index_name, str(file), "--replace", "--json").json
    assert (replaced["writes"]["written"], replaced["scope"]["existing"]) == (len(TEXTS), 0)
    users = theirs(client, index_name)
    assert json.loads(users[index_name, "d0"]) == {"id": "d0", "text": TEXTS["d0"]}
    assert json.loads(users[index_name, "other"]) == there["other"]


def test_a_folder_of_records_is_resumed(client: Client, index_name: str, server_cli: Cli, tmp_path: Path) -> None:
    """A run that broke off continues: documents that are there are skipped, whatever their kind of file."""
    server_cli("init", index_name, "--field", "text", "--create")
    texts = family("resumed", 6)
    for n, name in enumerate(("a.parquet", "b.parquet")):
        ids = [f"r{k}" for k in range(n * 3, n * 3 + 3)]
        parquet.write_table(pa.table({"id": ids, "text": texts[n * 3 : n * 3 + 3]}), tmp_path / name)
    (tmp_path / "_SUCCESS").write_bytes(b"")
    whole = (tmp_path / "b.parquet").read_bytes()
    (tmp_path / "b.parquet").write_bytes(whole[:-9])
    first = server_cli("load", index_name, str(tmp_path), "--json")
    assert (first.json["writes"]["written"], first.json["scope"]["bad"]) == (3, 1)
    assert f"{tmp_path / 'b.parquet'}: the rest cannot be read" in first.err
    assert "1 file was skipped" in first.err
    (tmp_path / "b.parquet").write_bytes(whole)
    second = server_cli("load", index_name, tmp_path.as_uri(), "--json")
    assert (second.json["writes"]["written"], second.json["scope"]["existing"]) == (3, 3)
    assert second.json["scope"]["skipped_files"] == 1
    assert server_cli("load", index_name, str(tmp_path), "--json", "--strict").json["scope"]["existing"] == 6


def test_several_files_with_duplicate_ids(client: Client, index_name: str, server_cli: Cli, tmp_path: Path) -> None:
    server_cli("init", index_name, "--field", "text", "--create")
    one, two = tmp_path / "one.jsonl", tmp_path / "two.jsonl.gz"
    one.write_bytes(json_lines(n="first"))
    two.write_bytes(gzip.compress(json_lines(n="second")))
    done = server_cli("load", index_name, str(one), str(two), "--replace", "--json")
    assert (done.json["writes"]["written"], done.json["scope"]["duplicates"]) == (len(TEXTS), len(TEXTS))
    assert {hit["_source"]["n"] for hit in hits(client, index_name)} == {"first"}


def test_a_truncated_compressed_file(client: Client, index_name: str, server_cli: Cli, tmp_path: Path) -> None:
    server_cli("init", index_name, "--field", "text", "--create")
    file = tmp_path / "cut.jsonl.gz"
    lines = (json.dumps({"id": f"line{n}", "text": f"words of line {n}"}) + "\n" for n in range(500))
    file.write_bytes(gzip.compress("".join(lines).encode())[:-200])
    done = server_cli("load", index_name, str(file), "--json")
    assert "Traceback" not in done.err
    assert "the rest cannot be read" in done.err
    assert done.json["scope"]["bad"] in (1, 2)  # a part of a line may have been decompressed
    assert 0 < done.json["writes"]["written"] < 500
    assert done.code == 1


def test_names_of_the_keys(client: Client, index_name: str, server_cli: Cli, tmp_path: Path) -> None:
    """The keys of another index are made again; anything else of their name is kept out of the index."""
    server_cli("init", index_name, "--field", "text", "--create")
    file = tmp_path / "news.jsonl"
    ours: list[dict[str, Any]] = [{"neardupe": {"group": "abc"}}, {"neardupe": "mine"}, {"neardupe.group": "abc"}]
    lines = [json.dumps({"id": f"d{n}", "text": f"words of line {n}"} | one) for n, one in enumerate(ours)]
    file.write_text("\n".join(lines))
    done = server_cli("load", index_name, str(file), "--json")
    assert (done.json["scope"]["bad"], done.json["writes"]["written"], done.code) == (2, 1, 0)
    assert "'neardupe.group' is a name of the fields for keys" in done.err


def test_unusual_ids(client: Client, index_name: str, server_cli: Cli, tmp_path: Path) -> None:
    server_cli("init", index_name, "--field", "text", "--create")
    ids = ["a/b", "ü 漢", "..", "?x=1&y", '"q"', "%2F", " ", "x" * 512]
    file = tmp_path / "ids.jsonl"
    lines = [{"id": id, "text": text} for id, text in zip(ids, family("ids", len(ids)), strict=True)]
    file.write_text(
        "".join(json.dumps(line) + "\n" for line in [*lines, {"id": "x" * 513, "text": "too long"}]), "utf-8"
    )
    done = server_cli("load", index_name, str(file), "--json")
    assert (done.json["writes"]["written"], done.json["scope"]["bad"]) == (len(ids), 1)
    assert NearDupe(index_name, client).group().groups.largest == len(ids)
    for id in ids:
        assert {hit.id for hit in NearDupe(index_name, client).similar(id=id, min=0.8).hits} == set(ids) - {id}


def test_links_that_leave_a_folder(client: Client, index_name: str, server_cli: Cli, tmp_path: Path) -> None:
    """They are skipped, counted and reported, also with --strict; --follow-links reads it."""
    (tmp_path / "secret.txt").write_text("a secret text")
    (tmp_path / "folder").mkdir()
    (tmp_path / "folder" / "a.txt").write_text("a text")
    (tmp_path / "folder" / "b.txt").symlink_to(tmp_path / "secret.txt")
    NearDupe(index_name, client).init(SETTINGS, create=True)
    folder = str(tmp_path / "folder")
    done = server_cli("load", index_name, folder, "--strict", "--json")
    assert done.code == 0
    assert done.json["scope"] == {
        "read": 1,
        "bad": 0,
        "duplicates": 0,
        "existing": 0,
        "matching": 0,
        "dropped": 0,
        "skipped_links": 1,
        "skipped_files": 0,
        "empty_lines": 0,
    }
    assert "b.txt: a link to " in done.err
    assert "1 link that leaves its folder was skipped; --follow-links reads it." in " ".join(done.err.split())
    assert ours(client, index_name).keys() == {"a.txt"}
    done = server_cli("load", index_name, folder, "--follow-links", "--json")
    assert done.code == 0
    assert re.fullmatch("2 of 2 documents have fewer than 49 words: .*\n", done.err)
    assert done.json["scope"] == {
        "read": 2,
        "bad": 0,
        "duplicates": 0,
        "existing": 1,
        "matching": 0,
        "dropped": 0,
        "skipped_links": 0,
        "skipped_files": 0,
        "empty_lines": 0,
    }
    assert ours(client, index_name).keys() == {"a.txt", "b.txt"}


@pytest.mark.product("each")
def test_a_document_that_is_larger_than_the_server_accepts(
    client: Client, index_name: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not sent, but reported with its place, or with its id if only its JSON is too large; others are indexed."""
    assert request_limit(client) == 104_857_600
    monkeypatch.setattr(client.pace, "request_bytes", 9_000_000)
    make_index(client, index_name, {"text": {"type": "text"}, "other": {"enabled": False}})
    news = NearDupe(index_name, client)
    news.init(SETTINGS)
    lines = [
        {"id": "first", "text": "one"},
        {"id": "text", "text": "a word " * 1_300_000},
        {"id": "quotes", "text": "some words", "other": ['"' * 4_600_000]},
        {"id": "last", "text": "two"},
    ]
    file = tmp_path / "lines.jsonl"
    file.write_text("\n".join(map(json.dumps, lines)), "utf-8")
    found: list[Problem] = []
    report = news.load([str(file)], on_problem=found.append, strict=True)
    why = "larger than the 9,000,000 bytes that the server accepts in a request (http.max_content_length)"
    assert found == [Problem(f"{file}:2", why)]
    assert (report.scope.read, report.writes.written, report.writes.refused) == (4, 2, 2)
    assert set(report.writes.refusals) == {
        f"request_too_large: {file}:2: {why}",
        f"request_too_large: document 'quotes' is {why}",
    }
    assert sorted(id for _, id in versions(client, index_name)) == ["first", "last"]


@pytest.fixture
def pipeline(client: Client, index_name: str) -> Iterator[Callable[[JSON], str]]:
    """Stores an ingest pipeline of the user with one processor, and returns its name."""
    name = f"{index_name}-pipeline"

    def store(processor: JSON) -> str:
        client.request("PUT", path("_ingest", "pipeline", name), body={"processors": [processor]})
        return name

    yield store
    body = {"index.default_pipeline": "_none", "index.final_pipeline": "_none"}
    client.request("PUT", path(index_name, "_settings"), body=body)
    client.request("DELETE", path("_ingest", "pipeline", name))


@pytest.mark.product("opensearch")
def test_documents_that_a_pipeline_drops(
    painless: Client, index_name: str, server_cli: Cli, tmp_path: Path, pipeline: Callable[[JSON], str]
) -> None:
    name = pipeline({"drop": {"if": "ctx.id == 'd1'"}})
    make_index(painless, index_name, settings={"index.default_pipeline": name})
    server_cli("init", index_name, "--field", "text")
    file = tmp_path / "texts.jsonl"
    file.write_bytes(json_lines())
    shown = server_cli("load", index_name, str(file))
    assert "dropped by an ingest pipeline of the index 1" in " ".join(shown.out.split())
    again = server_cli("load", index_name, str(file), "--json").json
    scope = again["scope"]
    assert (scope["read"], scope["existing"], scope["dropped"], again["writes"]["written"]) == (len(TEXTS), 6, 1, 0)
    assert len(hits(painless, index_name)) == len(TEXTS) - 1


@pytest.mark.product("opensearch")
@pytest.mark.parametrize("kind", ["default", "final"])
def test_texts_that_a_pipeline_changes_get_other_keys(
    kind: str, painless: Client, index_name: str, server_cli: Cli, tmp_path: Path, pipeline: Callable[[JSON], str]
) -> None:
    """`enrich` reads the documents, because the keys that `load` made can be those of other texts."""
    name = pipeline({"gsub": {"field": "text", "pattern": "CONFIDENTIAL.*$", "replacement": ""}})
    make_index(painless, index_name, settings={f"index.{kind}_pipeline": name})
    server_cli("init", index_name, "--field", "text")
    text, file = " ".join(words("pipeline", 100)), tmp_path / "texts.jsonl"
    lines = ({"id": f"d{n}", "text": f"{text} CONFIDENTIAL {' '.join(words(n, 90))}"} for n in range(3))
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    shown = server_cli("load", index_name, str(file))
    assert shown.err.count(f"has an ingest pipeline ({name!r})") == 1
    enriched = server_cli("enrich", index_name, "--json").json
    assert enriched["writes"]["written"] == 3
    assert len({str(one["content"]) for one in ours(painless, index_name).values()}) == 1
    again = server_cli("enrich", index_name, "--json").json
    assert again["scope"]["read"] == 0


@pytest.mark.product("opensearch")
def test_a_pipeline_that_is_set_during_the_run(
    painless: Client, index_name: str, tmp_path: Path, pipeline: Callable[[JSON], str]
) -> None:
    name = pipeline({"gsub": {"field": "text", "pattern": "CONFIDENTIAL.*$", "replacement": ""}})
    news, file = NearDupe(index_name, painless), tmp_path / "texts.jsonl"
    news.init(SETTINGS, create=True)
    file.write_text(f'no JSON\n{{"id": "d", "text": "{" ".join(words("set", 30))} CONFIDENTIAL a b c"}}\n')
    body = {"index.default_pipeline": name}
    report = news.load(
        file, on_problem=lambda problem: painless.request("PUT", path(index_name, "_settings"), body=body)
    )
    assert (report.writes.written, report.pipelines) == (1, (name,))
    assert news.enrich().writes.written == 1
