"""The near-duplicates of one document or text: which are compared, what is said of those that are not."""

from __future__ import annotations

import io
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from conftest import Cli
from server_tools import change, family, jaccard, make_index, put, send, shared_and_own

from es_neardupe import NearDupe, Settings
from es_neardupe.errors import IndexUnusable, NotFound, NotInitialised
from es_neardupe.index import index as opening
from es_neardupe.server.client import Client, ForwardingClient, path

TEXTS = {f"d{n}": text for n, text in enumerate(family("similar", 8))}
KINDS = {"text": {"type": "text"}, "kind": {"type": "keyword"}}


def enriched(client: Client, index: str) -> str:
    make_index(client, index, KINDS)
    put(client, index, {id: {"text": text, "kind": f"k{n % 2}"} for n, (id, text) in enumerate(TEXTS.items())})
    NearDupe(index, client).init(Settings(("text",)))
    NearDupe(index, client).enrich()
    return index


filled, own = shared_and_own(enriched)


@pytest.mark.product("each")
def test_the_probe_is_no_hit_and_the_rest_is_exact(filled: str, client: Client) -> None:
    for id, text in TEXTS.items():
        found = NearDupe(filled, client).similar(id=id, min=0.8)
        truth = {other: jaccard(text, its) for other, its in TEXTS.items() if other != id}
        assert {hit.id: hit.resemblance for hit in found.hits} == pytest.approx(truth)
        assert found.candidates == len(truth)
        ranks = [hit.resemblance or 0.0 for hit in found.hits]
        assert ranks == sorted(ranks, reverse=True)
        assert all(1 <= hit.shared_bands <= 16 for hit in found.hits)
    by_text = NearDupe(filled, client).similar(text=TEXTS["d0"], min=0.8)
    assert (by_text.hits[0].id, by_text.hits[0].resemblance, by_text.hits[0].shared_bands) == ("d0", 1.0, 16)


def test_below_what_is_found_reliably(filled: str, server_cli: Cli) -> None:
    """16 bands of 6 rows: 1 - (1 - s^6)^16."""
    low = server_cli("similar", filled, "--id", "d0", "--min", "0.5", "--json")
    probability = 1 - (1 - 0.5**6) ** 16
    assert low.json["detection"]["probability"] == pytest.approx(probability, abs=0.02)
    assert "pairs exactly 0.5 similar become candidates with probability 0.2" in low.err
    high = server_cli("similar", filled, "--id", "d0", "--min", "0.8", "--json")
    assert high.json["detection"]["probability"] > 0.99
    assert high.err == ""


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


@pytest.mark.product("each")
def test_a_small_result_window(own: str, client: Client) -> None:
    client.request("PUT", path(own, "_settings"), body={"index.max_result_window": 4})
    found = NearDupe(own, client).similar(id="d0")
    assert (found.candidates, len(found.hits) + found.not_compared) == (7, 7)
    assert found.not_compared >= 3
    assert "warning" in [one.level for one in NearDupe(own, client).doctor()]


def test_present_texts_are_compared(own: str, client: Client) -> None:
    """Whatever was stored before: a changed text is no hit, a deleted document neither."""
    change(client, own, "d1", {"text": "something else by now"})
    send(client, [({"delete": {"_index": own, "_id": "d2"}}, None)])
    assert {hit.id for hit in NearDupe(own, client).similar(id="d0", min=0.8).hits} == {"d3", "d4", "d5", "d6", "d7"}
    change(client, own, "d0", {"text": "something else by now"})
    assert NearDupe(own, client).similar(id="d0", min=0.8).hits == ()


@pytest.mark.product("each")
def test_a_document_that_no_search_sees_yet(own: str, client: Client) -> None:
    client.request("PUT", path(own, "_doc", "fresh"), body={"text": TEXTS["d0"]})
    found = NearDupe(own, client).similar(id="fresh", min=0.8)
    assert found.hits[0].id == "d0"
    assert found.hits[0].resemblance == 1.0


def test_file_and_standard_input(filled: str, server_cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "letter.txt"
    file.write_text(TEXTS["d3"], "utf-8")
    assert server_cli("similar", filled, "--file", str(file), "--json").json["hits"][0]["id"] == "d3"
    monkeypatch.setattr("sys.stdin", SimpleNamespace(buffer=io.BytesIO(TEXTS["d4"].encode())))
    assert server_cli("similar", filled, "--file", "-", "--json").json["hits"][0]["id"] == "d4"


def test_groups_are_told(own: str, client: Client) -> None:
    NearDupe(own, client).group()
    (group,) = NearDupe(own, client).groups()
    assert {hit.group for hit in NearDupe(own, client).similar(id="d0").hits} == {group.group}


COPIES = 1100


def identical(number: int) -> dict[str, dict[str, str]]:
    """So many exact copies, which differ in case and punctuation."""
    texts = (TEXTS["d1"], TEXTS["d1"].upper(), TEXTS["d1"] + "!")
    return {f"copy{n}": {"text": texts[n % 3], "kind": "copy"} for n in range(number)}


@pytest.mark.parametrize(
    "sidecar",
    [
        pytest.param(False, id="inline"),
        pytest.param(True, id="sidecar"),
    ],
)
def test_copies_take_one_place(client: Client, index_name: str, server_cli: Cli, sidecar: bool) -> None:
    """1,100 exact copies of the probe, and of another text, hide none of the other near-copies: more than the default
    number of candidates."""
    make_index(client, index_name, KINDS)
    sources = {id: {"text": text, "kind": "first"} for id, text in TEXTS.items()} | identical(COPIES)
    sources |= {f"again{n}": {"text": TEXTS["d2"], "kind": "again"} for n in range(20)}
    put(client, index_name, sources)
    neardupe = NearDupe(index_name, client)
    neardupe.init(Settings(("text",)), sidecar=sidecar)
    neardupe.enrich()
    for probe, own in (("d0", 0), ("d1", COPIES), ("copy7", COPIES)):
        found = neardupe.similar(id=probe, min=0.5, max_candidates=8, top=20)
        texts = {TEXTS.get(hit.id) or sources[hit.id]["text"].lower().rstrip("!"): hit for hit in found.hits}
        expected = set(TEXTS.values()) - ({TEXTS["d0"]} if not own else set())
        assert set(texts) == expected
        assert {text: hit.copies for text, hit in texts.items() if hit.copies} == {
            TEXTS["d1"]: COPIES - 1 if own else COPIES,
            TEXTS["d2"]: 20,
        }
        assert (found.candidates, found.texts, found.not_compared) == (COPIES + 27, len(expected), 0)
    by_query = neardupe.similar(id="d0", min=0.5, query={"term": {"kind": "copy"}})
    assert [(hit.similarity > 0.5, hit.copies) for hit in by_query.hits] == [(True, COPIES - 1)]
    few = neardupe.similar(id="d0", min=0.5, max_candidates=3)
    assert (few.texts, few.candidates) == (3, COPIES + 27)
    assert few.not_compared == COPIES + 27 - 3 - sum(hit.copies for hit in few.hits)

    done = server_cli("similar", index_name, "--id", "d0", "--min", "0.5")
    assert "copies" in done.out
    assert f"{COPIES + 27:,} candidates with 7 different texts, each compared by its current text" in done.err
    hits = server_cli("similar", index_name, "--id", "d0", "--min", "0.5", "--json").json["hits"]
    assert sorted(hit["copies"] for hit in hits) == [0, 0, 0, 0, 0, 20, COPIES]


@pytest.mark.parametrize(
    "sidecar",
    [
        pytest.param(False, id="inline"),
        pytest.param(True, id="sidecar"),
    ],
)
def test_another_copy_takes_the_place(client: Client, index_name: str, sidecar: bool) -> None:
    """Of a copy that was changed or deleted, while its keys are still those of the former text; the principal first."""
    make_index(client, index_name, KINDS)
    put(client, index_name, {"d0": {"text": TEXTS["d0"]}, **identical(6)})
    neardupe = NearDupe(index_name, client)
    neardupe.init(Settings(("text",)), sidecar=sidecar)
    neardupe.enrich()
    neardupe.group()
    seen: list[str] = []
    for left in (5, 4, 3, 2):
        (hit,) = neardupe.similar(id="d0", min=0.5, max_candidates=1).hits
        assert left <= hit.copies <= left + 1  # a changed copy that was not read is counted by its keys
        assert not seen or hit.id not in seen
        seen.append(hit.id)
        if left % 2:
            change(client, index_name, hit.id, {"text": "something else by now"})
        else:
            send(client, [({"delete": {"_index": index_name, "_id": hit.id}}, None)])
    change(client, index_name, seen[0], {"text": TEXTS["d0"]})
    found = neardupe.similar(id="d0", min=0.5).hits
    assert [(hit.id, hit.copies) for hit in found if hit.similarity == 1] == [(seen[0], 0)]


def test_copies_that_the_measure_distinguishes(own: str, client: Client) -> None:
    """Documents with the same text are compared one by one if other fields decide."""
    put(client, own, identical(4) | {"odd": {"text": TEXTS["d1"], "kind": "k0"}})
    NearDupe(own, client).enrich()
    found = NearDupe(own, client).similar(id="d0", features=["kind:values"], min=0.9)
    assert {hit.id for hit in found.hits} == {"d2", "d4", "d6", "odd"}
    assert {hit.copies for hit in found.hits} == {0}


class Listing(ForwardingClient):
    """Lists the requests by their last words."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self.requests: list[str] = []

    def request(self, method: str, path: str, **options: Any) -> Any:
        self.requests.append(path.partition("?")[0].rpartition("/")[2])
        return super().request(method, path, **options)


@pytest.mark.product("each")
def test_an_open_handle_reads_the_settings_once(filled: str, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    listing = Listing(client)
    neardupe = NearDupe(filled, listing)
    first = neardupe.similar(id="d0")
    for unchanged, requests in ((0, ["_mapping", "_search"]), (1000, ["_search"])):
        monkeypatch.setattr(opening, "_UNCHANGED", unchanged)
        listing.requests.clear()
        assert neardupe.similar(id="d0") == first
        assert sorted(listing.requests) == requests
        listing.requests.clear()
        assert neardupe.similar(text=TEXTS["d0"]).hits[1:] == first.hits
        assert sorted(listing.requests) == requests


@pytest.mark.parametrize("how", ["text", "unseen keys", "unseen document"])
def test_stored_keys_that_are_not_those_of_the_text(how: str, own: str, client: Client) -> None:
    """The candidates are those of the text that is compared: its keys are not stored, or searches do not see them."""
    text = TEXTS["d1"] + " and some more"
    neardupe = NearDupe(own, client)
    if how == "text":
        change(client, own, "d0", {"text": text})
    else:
        id = "d0" if how == "unseen keys" else "unseen"
        (action,) = neardupe.fingerprinted([{"_index": own, "_id": id, "_source": {"text": text}}])
        client.request("PUT", path(own, "_doc", id), body=action["_source"])
    found = neardupe.similar(id="unseen" if how == "unseen document" else "d0")
    expected = [one for one in neardupe.similar(text=text).hits if one.id != found.query["id"]]
    assert found.hits == tuple(expected)
    assert found.hits


def test_texts_that_are_read_with_the_keys(client: Client, index_name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """The result does not depend on whether one search reads all candidates: exact copies, changed ones, principals."""
    make_index(client, index_name, KINDS)
    put(client, index_name, {id: {"text": text} for id, text in TEXTS.items()} | identical(4))
    neardupe = NearDupe(index_name, client)
    neardupe.init(Settings(("text",)))
    neardupe.enrich()
    neardupe.group()
    change(client, index_name, "copy1", {"text": "quite another text by now"})
    results = []
    for number in (100, 1):
        monkeypatch.setattr(client.pace, "documents", number)
        results.append([neardupe.similar(id=id, min=0.5) for id in ("d0", "d1", "copy2")])
    at_once, listed = results
    assert at_once == listed
    assert [one.candidates for one in at_once] == [11, 11, 11]


def test_an_open_handle_notices_what_becomes_of_its_index(
    own: str, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Other keys, other fields, another index of the same name, none."""
    monkeypatch.setattr(opening, "_UNCHANGED", 0)
    neardupe = NearDupe(own, client)
    first = neardupe.similar(id="d0", min=0.8)
    assert first.hits
    NearDupe(own, client).migrate(threshold=0.5)
    after = neardupe.similar(id="d0")
    assert (after.detection.min, len(after.hits)) == (0.5, 7)
    client.request("PUT", path(own, "_mapping"), body={"properties": {"title": {"type": "text"}}})
    assert set(neardupe.similar(id="d0").hits[0].fields) == {"title"}
    client.request("DELETE", path(own))
    with pytest.raises(NotFound):
        neardupe.similar(id="d0")
    make_index(client, own, KINDS)
    with pytest.raises(NotInitialised):
        neardupe.similar(id="d0")


def test_an_open_handle_reads_aliases_again(own: str, client: Client, monkeypatch: pytest.MonkeyPatch) -> None:
    alias = f"{own}-alias"
    client.request("PUT", path(own, "_alias", alias))
    neardupe = NearDupe(alias, client)
    assert len(neardupe.similar(id="d0").hits) == 7
    client.request("PUT", path(own, "_alias", alias), body={"filter": {"term": {"kind": "k1"}}})
    monkeypatch.setattr(opening, "_REMEMBERED", 0)
    with pytest.raises(IndexUnusable, match="has a filter"):
        neardupe.similar(id="d0")


def test_hits_in_one_of_several_indices(client: Client, index_name: str, server_cli: Cli) -> None:
    """The table names the index of each document, as the option --id takes it."""
    names = [f"{index_name}-a", f"{index_name}-b"]
    for name in names:
        make_index(client, name)
        put(client, name, {"1": {"text": TEXTS["d0"]}})
    NearDupe(f"{index_name}-*", client).init(Settings(("text",)))
    NearDupe(f"{index_name}-*", client).enrich()
    shown = server_cli("similar", f"{index_name}-*", "--id", f"{names[0]}/1")
    assert f"{names[1]}/1" in shown.out
    assert f"{names[0]}/1" in server_cli("similar", f"{index_name}-*", "--id", f"{names[1]}/1").out
