"""The near-duplicates of one document or text: which are compared, what is said of those that are not."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace

import pytest
from conftest import Cli
from server_tools import change, family, jaccard, make_index, put, send

from es_neardupe import NearDupe, Settings
from es_neardupe.server.client import Client, path

TEXTS = {f"d{n}": text for n, text in enumerate(family("similar", 8))}
KINDS = {"text": {"type": "text"}, "kind": {"type": "keyword"}}


@pytest.fixture
def filled(client: Client, index_name: str) -> str:
    make_index(client, index_name, KINDS)
    put(client, index_name, {id: {"text": text, "kind": f"k{n % 2}"} for n, (id, text) in enumerate(TEXTS.items())})
    NearDupe(index_name, client).init(Settings(("text",)))
    NearDupe(index_name, client).enrich()
    return index_name


def test_below_what_is_found_reliably(filled: str, server_cli: Cli) -> None:
    """16 bands of 6 rows: 1 - (1 - s^6)^16."""
    low = server_cli("similar", filled, "--id", "d0", "--min", "0.5", "--json")
    probability = 1 - (1 - 0.5**6) ** 16
    assert low.json["detection"] == {"min": 0.5, "probability": pytest.approx(probability, abs=0.02)}
    assert "pairs exactly 0.5 similar become candidates with probability 0.2" in low.err
    high = server_cli("similar", filled, "--id", "d0", "--min", "0.8", "--json")
    assert high.json["detection"]["probability"] > 0.99
    assert high.err == ""


def test_the_probe_is_no_hit_and_the_rest_is_exact(filled: str, client: Client) -> None:
    for id, text in TEXTS.items():
        found = NearDupe(filled, client).similar(id=id, min=0.8)
        truth = {other: jaccard(text, its) for other, its in TEXTS.items() if other != id}
        assert {hit.id: hit.resemblance for hit in found.hits} == pytest.approx(truth)
        assert found.candidates == len(truth)
        ranks = [hit.resemblance for hit in found.hits]
        assert ranks == sorted(ranks, reverse=True)
        assert all(1 <= hit.shared_bands <= 16 for hit in found.hits)
    by_text = NearDupe(filled, client).similar(text=TEXTS["d0"], min=0.8)
    assert (by_text.hits[0].id, by_text.hits[0].resemblance, by_text.hits[0].shared_bands) == ("d0", 1.0, 16)


def test_query_filters(filled: str, server_cli: Cli) -> None:
    done = server_cli("similar", filled, "--id", "d0", "--query", '{"term": {"kind": "k1"}}', "--json")
    assert {hit["id"] for hit in done.json["hits"]} == {"d1", "d3", "d5", "d7"}
    done = server_cli("similar", filled, "--id", "d0", "--query", '{"query": {"term": {"kind": "none"}}}', "--json")
    assert (done.code, done.json["hits"], done.json["candidates"]) == (0, [], 0)


def test_top_and_candidates_that_are_not_compared(filled: str, server_cli: Cli) -> None:
    top = server_cli("similar", filled, "--id", "d0", "--top", "3", "--json")
    assert (len(top.json["hits"]), top.json["candidates"], top.json["not_compared"]) == (3, 7, 0)
    few = server_cli("similar", filled, "--id", "d0", "--max-candidates", "2", "--json")
    assert (len(few.json["hits"]), few.json["candidates"], few.json["not_compared"]) == (2, 7, 5)
    assert "5 candidates with fewer shared keys were not compared: raise --max-candidates." in few.err


def test_a_small_result_window(filled: str, client: Client) -> None:
    client.request("PUT", path(filled, "_settings"), body={"index.max_result_window": 4})
    found = NearDupe(filled, client).similar(id="d0")
    assert (found.candidates, len(found.hits) + found.not_compared) == (7, 7)
    assert found.not_compared >= 3
    assert "warning" in [one.level for one in NearDupe(filled, client).doctor()]


def test_present_texts_are_compared(filled: str, client: Client) -> None:
    """Whatever was stored before: a changed text is no hit, a deleted document neither."""
    change(client, filled, "d1", {"text": "something else by now"})
    send(client, [({"delete": {"_index": filled, "_id": "d2"}}, None)])
    assert {hit.id for hit in NearDupe(filled, client).similar(id="d0", min=0.8).hits} == {"d3", "d4", "d5", "d6", "d7"}
    change(client, filled, "d0", {"text": "something else by now"})
    assert NearDupe(filled, client).similar(id="d0", min=0.8).hits == ()


def test_a_document_that_no_search_sees_yet(filled: str, client: Client) -> None:
    client.request("PUT", path(filled, "_doc", "fresh"), body={"text": TEXTS["d0"]})
    found = NearDupe(filled, client).similar(id="fresh", min=0.8)
    assert found.hits[0].id == "d0"
    assert found.hits[0].resemblance == 1.0


def test_file_and_standard_input(filled: str, server_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "letter.txt"
    file.write_text(TEXTS["d3"], "utf-8")
    assert server_cli("similar", filled, "--file", str(file), "--json").json["hits"][0]["id"] == "d3"
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(TEXTS["d4"].encode())))
    assert server_cli("similar", filled, "--file", "-", "--json").json["hits"][0]["id"] == "d4"


def test_groups_are_told(filled: str, client: Client) -> None:
    NearDupe(filled, client).group()
    (group,) = NearDupe(filled, client).groups()
    assert {hit.group for hit in NearDupe(filled, client).similar(id="d0").hits} == {group.group}
