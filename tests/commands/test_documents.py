"""`documents`: pairs of documents by the chunks that they have in common. `test_documents_shares` has the shares."""

from __future__ import annotations

from pathlib import Path

from conftest import Cli, read_jsonl
from server_tools import TEXT, change, family, make_index, put, words

from es_neardupe import NearDupe, Settings
from es_neardupe.server.client import Client

FIELDS = TEXT | {"doc_id": {"type": "keyword"}}


def test_documents_by_their_chunks(client: Client, index_name: str, server_cli: Cli, tmp_path: Path) -> None:
    """Documents that were cut in two ways: their chunks begin at other words and have other lengths."""
    rows = read_jsonl("cases/rechunked.jsonl.xz")
    make_index(client, index_name, FIELDS)
    put(client, index_name, {one["id"]: {"text": one["text"], "doc_id": one["doc_id"]} for one in rows})
    news = NearDupe(index_name, client)
    news.init(Settings(("text",), threshold=0.4))
    news.enrich()
    found = news.documents(by="doc_id")
    best = {(one.a.document, one.b.document): one for one in found.pairs}
    for number in "56789":
        pair = best[f"d{number}", f"new{number}"]
        assert 0 < pair.a.matching <= pair.a.chunks
        assert 0 < pair.b.word_share <= 1
    assert (found.documents, found.chunks, found.without) == (10, len(rows), 0)
    values = [max(one.a.word_share, one.b.word_share) for one in found.pairs]
    assert values == sorted(values, reverse=True)
    shown = server_cli("documents", index_name, "--by", "doc_id", "--top", "2")
    assert f"2 of {found.total} pairs of documents shown, from 10 documents of {len(rows)} chunks" in shown.err
    file = tmp_path / "pairs.csv"
    assert server_cli("documents", index_name, "--by", "doc_id", "--output", str(file)).code == 0
    assert len(file.read_text("utf-8").splitlines()) == 1 + found.total


def test_what_is_left_out_is_said(client: Client, index_name: str, server_cli: Cli) -> None:
    """Chunks of no document, not enriched, and changed since they got their keys. A chunk of two documents is
    shared."""
    first, second, third = family("left out", 3, length=60)
    texts = {
        "a1": (first, ["a"]),
        "a2": (second, ["a"]),
        "b1": (third, ["b"]),
        "ab": (" ".join(words("both", 60)), ["a", "b"]),
        "none": (first, []),
        "c1": (first, ["c"]),
    }
    make_index(client, index_name, FIELDS)
    put(client, index_name, {id: {"text": text, "doc_id": of} for id, (text, of) in texts.items()})
    news = NearDupe(index_name, client)
    news.init(Settings(("text",)))
    news.enrich()
    change(client, index_name, "c1", {"text": "another text"})
    put(client, index_name, {"late": {"text": first, "doc_id": ["d"]}})
    found = news.documents(by="doc_id")
    (pair,) = found.pairs
    assert (pair.a.document, pair.a.chunks, pair.a.matching) == ("a", 3, 2)
    assert (pair.b.document, pair.b.chunks, pair.b.matching) == ("b", 2, 2)
    assert (found.documents, found.chunks, found.without, found.stale, found.unprocessed) == (2, 4, 1, 1, 1)
    shown = server_cli("documents", index_name, "--by", "doc_id")
    assert "1 chunk has no value of doc_id: left out." in shown.err
    assert "1 chunk changed since it got its keys: run" in shown.err
    assert "1 chunk is not enriched and is in no pair: run" in shown.err
