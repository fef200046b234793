"""The command compare on real servers."""

from __future__ import annotations

from pathlib import Path

import pytest
from conftest import Cli
from server_tools import change, family, jaccard, make_index, one_line, put, shared_and_own

from es_neardupe import NearDupe, Settings
from es_neardupe.errors import InputError, NotFound, NotInitialised, SettingsError
from es_neardupe.keys.text import tokenize
from es_neardupe.options import Matching, MeasureName
from es_neardupe.server.client import Client, path
from es_neardupe.similarity.comparison import compare_texts

ONE, OTHER = family("compare", 2, length=120)
TEXT = "Ämter 😀 in\r\nder Stadt, e\u0301te\u0301 und 東京 im Mai"
PROPERTIES = {"title": {"type": "text"}, "body": {"type": "text"}}


def enriched(client: Client, index: str) -> str:
    make_index(client, index, PROPERTIES)
    sources = {
        "one": {"title": "Head", "body": ONE},
        "other": {"title": "Head", "body": OTHER},
        "odd": {"title": TEXT, "body": "und mehr davon"},
        "empty": {"title": "…"},
    }
    put(client, index, sources)
    NearDupe(index, client).init(Settings(("title", "body"), shingle=4))
    NearDupe(index, client).enrich()
    return index


filled, own = shared_and_own(enriched)


@pytest.mark.product("each")
def test_two_documents(filled: str, server_cli: Cli) -> None:
    """Texts of all fields are compared, with the shingle and signatures of the index."""
    done = server_cli("compare", filled, "one", "other", "--json")
    assert (done.code, done.err) == (0, "")
    texts = f"Head\n{ONE}", f"Head\n{OTHER}"
    values = {(one["measure"], one["matching"]): one["value"] for one in done.json["measures"]}
    assert values["resemblance", None] == pytest.approx(jaccard(f"Head {ONE}", f"Head {OTHER}"), abs=0.1)
    own = compare_texts(*texts, names=("one", "other"), shingle=4)
    assert values == {(one.measure.value, one.matching and one.matching.value): one.value for one in own.measures}
    assert (done.json["a"]["name"], done.json["shingle"]) == ("one", 4)
    for block in done.json["matchings"]["literal"]["blocks"]:
        assert tokenize(texts[0][slice(*block["a"])]) == tokenize(texts[1][slice(*block["b"])])


def test_a_document_and_a_file(filled: str, server_cli: Cli, tmp_path: Path) -> None:
    file = tmp_path / "letter.txt"
    file.write_bytes(f"Vorher: {TEXT}".encode())
    found = server_cli("compare", filled, "odd", "--file", str(file), "--json").json
    (block,) = found["matchings"]["literal"]["blocks"]
    assert f"{TEXT}\nund mehr davon"[slice(*block["a"])] == TEXT
    assert f"Vorher: {TEXT}"[slice(*block["b"])] == TEXT
    assert found["b"]["name"] == str(file)
    shown = server_cli("compare", filled, "odd", "--file", str(file))
    assert "b: " in shown.out
    assert "letter.txt" in "".join(shown.out.split())


def test_page(filled: str, server_cli: Cli, tmp_path: Path) -> None:
    out = tmp_path / "page.html"
    done = server_cli("compare", filled, "one", "other", "--html", str(out))
    assert done.code == 0
    content = out.read_text("utf-8")
    assert "<title>Head and Head compared</title>" in content
    assert '<span class="title" dir="auto">Head</span> <small class="name">other</small>' in content


def test_shingle(filled: str, client: Client) -> None:
    found = NearDupe(filled, client).compare("one", "other", shingle=7)
    assert found.shingle == 7
    assert found.value(MeasureName.RESEMBLANCE) == pytest.approx(
        compare_texts(f"Head\n{ONE}", f"Head\n{OTHER}", shingle=7).value(MeasureName.RESEMBLANCE)
    )
    with pytest.raises(SettingsError, match="1 word or more, not 0"):
        NearDupe(filled, client).compare("one", "other", shingle=0)


def test_weighted(filled: str, server_cli: Cli, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("ES_NEARDUPE_CACHE", str(tmp_path))
    found = server_cli("compare", filled, "one", "other", "--weighted", "--json").json
    assert found["left_out"] == {}
    (weighted,) = [one for one in found["measures"] if one["measure"] == "weighted"]
    assert 0 < weighted["value"] < 1
    without = server_cli("compare", filled, "one", "other")
    assert "Omitted: weighted, because it needs the frequencies of shingles in an index." in without.out
    wrong = server_cli("compare", filled, "one", "other", "--weighted", "--shingle", "6")
    assert wrong.code == 2
    assert "Omit either --shingle or --weighted" in one_line(wrong.err)


def test_current_texts(own: str, client: Client) -> None:
    """Not those of the stored keys, and even before a refresh."""
    change(client, own, "other", {"body": ONE})
    assert NearDupe(own, client).compare("one", "other").value(MeasureName.EDIT) == 1
    client.request("PUT", path(own, "_doc", "fresh"), body={"title": "Head", "body": ONE})
    assert NearDupe(own, client).compare("one", "fresh").value(MeasureName.RESEMBLANCE) == 1
    assert NearDupe(own, client).compare("one", "one").changes == ()


def test_python(filled: str, client: Client) -> None:
    with NearDupe(filled, url=client.url) as news:
        found = news.compare("one", "other")
        assert found.value(MeasureName.JACCARD, Matching.LITERAL) > 0.9
        assert news.compare("one", text=f"Head {ONE}").value(MeasureName.EDIT) == 1
        with pytest.raises(SettingsError, match="second document or a text"):
            news.compare("one")
        with pytest.raises(SettingsError, match="second document or a text"):
            news.compare("one", "other", text="both")


def test_empty_and_large(own: str, client: Client, server_cli: Cli) -> None:
    done = server_cli("compare", own, "one", "empty")
    assert done.code == 0
    assert "empty has no words: it is empty." in done.err
    put(client, own, {"large": {"body": "word " * 2_000_001}})
    failed = server_cli("compare", own, "one", "large")
    assert (failed.code, failed.out) == (1, "")
    assert "large is too large to compare: 10,000,005 characters" in one_line(failed.err)


def test_a_text_too_large_for_keys_is_compared(own: str, client: Client) -> None:
    """The comparison needs no keys."""
    NearDupe(own, client).enrich(all=True, max_chars=50)
    assert NearDupe(own, client).compare("one", "other").value(MeasureName.RESEMBLANCE) > 0.8


def test_what_is_missing(own: str, client: Client, server_cli: Cli, index_name: str) -> None:
    with pytest.raises(NotFound, match="There is no document 'none'"):
        NearDupe(own, client).compare("one", "none")
    with pytest.raises(SettingsError, match="The id of a document cannot be empty"):
        NearDupe(own, client).compare("", "one")
    assert "There is no document 'none'" in one_line(server_cli("compare", own, "none", "one").err)
    assert "There is no index 'nowhere'" in one_line(server_cli("compare", "nowhere", "1", "2").err)
    assert "cannot be read" in one_line(server_cli("compare", own, "one", "--file", "/none/there").err)
    bare = f"{index_name}-bare"
    try:
        make_index(client, bare, PROPERTIES)
        with pytest.raises(NotInitialised):
            NearDupe(bare, client).compare("1", "2")
    finally:
        client.request("DELETE", path(bare))


def test_a_document_that_holds_no_text(client: Client, index_name: str) -> None:
    """A disabled field accepts any value."""
    make_index(client, index_name, {"part": {"type": "object", "enabled": False}, "text": {"type": "text"}})
    NearDupe(index_name, client).init(Settings(("text",)))
    meta = {"neardupe": Settings(("part",)).to_meta()}
    client.request("PUT", path(index_name, "_mapping"), body={"_meta": meta})
    put(client, index_name, {"a": {"part": ["x", {"deep": "y"}]}, "b": {"part": "x"}})
    with pytest.raises(InputError, match=r"Document 'a' of index .* cannot be compared: .*object"):
        NearDupe(index_name, client).compare("a", "b")


@pytest.mark.product("each")
def test_the_same_id_under_two_routings(client: Client, index_name: str) -> None:
    make_index(client, index_name, PROPERTIES, settings={"number_of_shards": 5})
    for routing in "abcde":
        params: dict[str, str | bool] = {"routing": routing, "refresh": True}
        client.request("PUT", path(index_name, "_doc", "same"), params=params, body={"body": ONE})
    put(client, index_name, {"other": {"body": ONE}})
    news = NearDupe(index_name, client)
    news.init(Settings(("body",)))
    news.enrich()
    assert news.compare("same", "other").value(MeasureName.RESEMBLANCE) == 1
    with pytest.raises(SettingsError, match="several documents 'same', under different routings: give the text itself"):
        news.similar(id="same")  # its copies have the same address, and so would be missing
    assert {one.id for one in news.similar(text=ONE).hits} >= {"same"}
    client.request(
        "PUT", path(index_name, "_doc", "same"), params={"routing": "a", "refresh": True}, body={"body": OTHER}
    )
    with pytest.raises(SettingsError, match="several documents 'same', under different routings: give the text itself"):
        news.compare("same", "other")


def test_the_same_id_in_two_indices(client: Client, index_name: str) -> None:
    names = [f"{index_name}-{k}" for k in (1, 2)]
    try:
        for name in names:
            make_index(client, name, PROPERTIES)
            put(client, name, {"same": {"body": ONE}, f"only-{name[-1]}": {"body": OTHER}})
            NearDupe(name, client).init(Settings(("body",)))
        with pytest.raises(SettingsError, match=f"give it as {index_name}-[12]/same or {index_name}-[12]/same"):
            NearDupe(f"{index_name}-*", client).compare("same", "only-1")
        found = NearDupe(f"{index_name}-*", client).compare("only-1", "only-2")
        assert found.value(MeasureName.RESEMBLANCE) == 1
    finally:
        for name in names:
            client.request("DELETE", path(name))
