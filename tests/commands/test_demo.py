"""`demo` on a small file."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from conftest import Cli
from server_tools import family, hits, make_index, one_line, put, words

from es_neardupe.server.client import Client, path


@pytest.mark.product("each")
def test_the_demo_on_a_file(client: Client, index_name: str, cli: Cli, tmp_path: Path) -> None:
    texts = [*family("demo", 5), *family("other", 3), *(" ".join(words(f"alone{n}", 60)) for n in range(8))]
    file = tmp_path / "articles.jsonl"
    lines = [{"id": f"d{n}", "title": f"Title {n}", "body": text} for n, text in enumerate(texts)]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines), "utf-8")
    arguments = ["demo", "--url", client.url, "--index", index_name, "--file", str(file), "--text-field", "body"]
    for _ in range(2):  # its own index is replaced
        done = cli(*arguments)
        assert done.code == 0, done.err
        for step in range(1, 8):
            assert f"\n{step}. " in done.out
        assert "16 documents: 8 in 2 groups of two or more, 8 alone" in done.out
        assert f"es-neardupe stats {index_name}" in done.out
    assert len(hits(client, index_name)) == len(lines)
    assert all(hit["_source"]["neardupe"]["group"] for hit in hits(client, index_name))


def test_another_index_of_that_name_is_kept(client: Client, index_name: str, cli: Cli, tmp_path: Path) -> None:
    make_index(client, index_name)
    put(client, index_name, {"mine": {"text": "do not touch"}})
    file = tmp_path / "two.jsonl"
    file.write_text('{"id": "a", "text": "one"}\n{"id": "b", "text": "two"}\n', "utf-8")
    done = cli("demo", "--url", client.url, "--index", index_name, "--file", str(file))
    assert done.code == 1
    assert "was not created by the demo" in one_line(done.err)
    assert [hit["_source"] for hit in hits(client, index_name)] == [{"text": "do not touch"}]


def test_unusable_files(client: Client, index_name: str, cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "bad.jsonl"
    for content, words_ in [("{}\n{}\n", "--text-field"), ("nonsense\n", "invalid JSON"), ("", "0 documents")]:
        file.write_text(content, "utf-8")
        done = cli("demo", "--url", client.url, "--index", index_name, "--file", str(file))
        assert done.code == 1
        assert words_ in one_line(done.err)


def test_texts_for_other_clients(client: Client, index_name: str, cli: Cli, tmp_path: Path) -> None:
    """``--bulk`` writes lines of bulk requests, and nothing else."""
    file, target = tmp_path / "two.jsonl", tmp_path / "two.ndjson"
    file.write_text('{"id": "a", "text": "é"}\n{"id": 7, "text": "two\\nlines"}\n', "utf-8")
    done = cli("demo", "--file", str(file), "--bulk", str(target))
    assert (done.code, done.out) == (0, f"2 documents written to {target}.\n")
    make_index(client, index_name)
    answer = client.bulk(target.read_bytes().replace(b'"_id"', f'"_index": "{index_name}", "_id"'.encode()))
    assert not answer["errors"]
    client.request("POST", path(index_name, "_refresh"))
    assert {hit["_id"]: hit["_source"]["text"] for hit in hits(client, index_name)} == {"a": "é", "7": "two\nlines"}
    assert one_line(cli("demo", "--file", str(file), "--bulk", str(tmp_path / "no" / "x")).err)
