"""Chunks of documents: overlapping ones of one document are no near-duplicates of each other."""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

import pytest
from conftest import Cli, read_jsonl
from server_tools import JSON, TEXT, assert_settled, change, family, groups_of, make_index, put, words

from es_neardupe import NearDupe, Settings
from es_neardupe.errors import SettingsError
from es_neardupe.incoming.matches import ScreenReport
from es_neardupe.server.client import Client, path

FIELDS = TEXT | {"doc_id": {"type": "keyword"}, "n": {"type": "integer"}}
SOURCES: list[list[str]] = [["a"], ["b"], ["a", "c"], ["c"], []]


def chunks() -> dict[str, JSON]:
    """Families of similar texts, each with exact copies, of several documents, and some of none."""
    dice, found = random.Random(7), dict[str, JSON]()
    for name in ("x", "y", "z"):
        texts = family(name, 5, length=60, edits=1)
        for number, text in enumerate([*texts, texts[0], texts[1], texts[1]]):
            found[f"{name}{number}"] = {"text": text, "n": number % 2, "doc_id": dice.choice(SOURCES)}
    return found | {"other": {"text": " ".join(words("other", 60)), "n": 0, "doc_id": ["a"]}}


@pytest.fixture(params=["inline", "sidecar"])
def news(client: Client, index_name: str, request: pytest.FixtureRequest) -> NearDupe:
    """An enriched index of chunks."""
    make_index(client, index_name, FIELDS)
    put(client, index_name, chunks())
    found = NearDupe(index_name, client)
    found.init(Settings(("text",)), sidecar=request.param == "sidecar")
    found.enrich()
    return found


def by_id(news: NearDupe, **options: Any) -> dict[tuple[str, str], float]:
    return {(one.a.id, one.b.id): one.similarity for one in news.pairs(**options)}


def apart(documents: Mapping[str, JSON], one: str, other: str) -> bool:
    return set(documents[one]["doc_id"]).isdisjoint(documents[other]["doc_id"])


pytestmark = pytest.mark.either("news")


def test_only_chunks_of_different_documents_match(news: NearDupe, client: Client, server_cli: Cli) -> None:
    """Exact copies as well; a chunk without a document matches all others. After changes of the field alone, the groups
    of an incremental run are those of a rebuild."""
    documents = chunks()
    every = by_id(news)
    wanted = {pair: value for pair, value in every.items() if apart(documents, *pair)}
    assert 0 < len(wanted) < len(every)
    assert by_id(news, across="doc_id") == wanted
    assert by_id(news, across="doc_id", within=["n"]) == {
        pair: value for pair, value in wanted.items() if len({documents[id]["n"] for id in pair}) == 1
    }
    for linkage in ("star", "complete", "chain"):
        news.group(across="doc_id", linkage=linkage, evidence=True)
        groups = groups_of(client, news.name)
        assert groups
        for group in groups:
            principal, *others = (member.id for member in group.members)
            if linkage == "star":
                assert all(apart(documents, principal, other) for other in others)
            if linkage == "complete":
                ids = [principal, *others]
                assert all(apart(documents, a, b) for n, a in enumerate(ids) for b in ids[:n])
        (threshold,) = news.what_if(min=[0.8]).thresholds
        assert (threshold.joined, threshold.left, threshold.moved) == (0, 0, 0)
    news.group(across="doc_id", linkage="star")
    assert server_cli("group", news.name, "--across", "n", "--dry-run").code == 0
    dice = random.Random(3)
    for _ in range(2):
        for id in dice.sample(sorted(documents), 4):
            change(client, news.name, id, {"doc_id": dice.choice(SOURCES)})
        client.request("DELETE", path(news.name, "_doc", dice.choice("xyz") + dice.choice("01234")))
        client.request("POST", path(news.name, "_refresh"))
        news.enrich()
        report = news.group(check=True)
        assert (report.scope.whole, str(report.rules).endswith("across doc_id")) == (False, True)
        assert_settled(client, news.name)


def test_the_similar_chunks_of_other_documents(news: NearDupe, server_cli: Cli) -> None:
    documents = chunks()
    pairs = by_id(news, across="doc_id")
    for id in ("x0", "y1", "z3", next(id for id, one in documents.items() if not one["doc_id"])):
        found = news.similar(id=id, across="doc_id", top=100)
        wanted = [{*pair} - {id} for pair in pairs if id in pair]
        assert wanted
        assert {documents[hit.id]["text"] for hit in found.hits} == {documents[other]["text"] for (other,) in wanted}
        assert sum(1 + hit.copies for hit in found.hits) == len(wanted)
        assert all(apart(documents, id, hit.id) for hit in found.hits)
    every = by_id(news)
    for id, one in list(documents.items())[:6]:
        for fields in (["doc_id"], ["n", "doc_id"], ["n"]):
            hits = news.similar(id=id, within=fields, top=100).hits
            same = {
                other
                for pair in every
                if id in pair
                for other in {*pair} - {id}
                if all(documents[other][name] == one[name] for name in fields)
            }
            assert {documents[hit.id]["text"] for hit in hits} == {documents[other]["text"] for other in same}
            assert sum(1 + hit.copies for hit in hits) == len(same)
    with pytest.raises(SettingsError, match="A text has no field 'doc_id'"):
        news.similar(text="some text", across="doc_id")
    shown = server_cli("similar", news.name, "--id", "other", "--across", "title")
    assert (shown.code, "Available: doc_id, n" in shown.err) == (2, True)


def test_a_field_within_and_across(news: NearDupe) -> None:
    with pytest.raises(SettingsError, match="name the same field"):
        news.pairs(within=["doc_id"], across="doc_id")


@pytest.mark.parametrize("max_candidates", [100, 1])
def test_screened_chunks(client: Client, index_name: str, max_candidates: int) -> None:
    """Against stored chunks, and those of the same run; of many that share keys as well."""
    fields = TEXT | {"doc_id": {"type": "text", "fields": {"raw": {"type": "keyword"}}}}
    make_index(client, index_name, fields)
    first, second, third = family("s", 3, length=60)
    put(client, index_name, {"a1": {"text": first, "doc_id": "a"}, "a2": {"text": second, "doc_id": "a"}})
    news = NearDupe(index_name, client)
    news.init(Settings(("text",)))
    news.enrich()
    news.group()
    report = ScreenReport()
    new = {"a3": (third, "a"), "a4": (first, "a"), "b1": (first, "b"), "b2": (third, "b"), "none": (first, None)}
    actions = [{"_id": id, "text": text, "doc_id": value} for id, (text, value) in new.items()]
    written = list(
        news.screened(actions, across="doc_id.raw", on_match="skip", report=report, max_candidates=max_candidates)
    )
    assert [one["_id"] for one in written] == ["a3", "a4"]
    matched = {one.id: {one.match.id, *(other.id for other in one.match.others)} for one in report.matches}
    assert matched.keys() == {"b1", "b2", "none"}
    assert matched["b1"] <= {"a1", "a2", "a3", "a4"}
    assert matched["b1"] & {"a1", "a4"}


def test_overlapping_windows_of_three_documents(client: Client, index_name: str, server_cli: Cli) -> None:
    """Windows of which each shares 90 % of its words with the next one are no copies."""
    rows = read_jsonl("cases/chunk_windows.jsonl.xz")
    make_index(client, index_name, FIELDS)
    put(client, index_name, {one["id"]: {"text": one["text"], "doc_id": one["doc_id"]} for one in rows})
    news = NearDupe(index_name, client)
    news.init(Settings(("text",)))
    news.enrich()
    (hint,) = (line for line in server_cli("group", index_name).err.splitlines() if "--across" in line)
    assert f"`es-neardupe group {index_name} --across FIELD`" in hint
    done = server_cli("group", index_name, "--across", "doc_id")
    assert "--across FIELD" not in done.err
    assert news.stats().groups.grouped == 0


@pytest.mark.parametrize("max_candidates", [100, 1])
def test_screened_within(client: Client, index_name: str, max_candidates: int) -> None:
    """Only documents with the same values, of the index and of the same run."""
    make_index(client, index_name, FIELDS)
    first, second = family("s", 2, length=60)
    stored = {"a1": {"doc_id": ["a", "b"], "n": 1}, "a2": {"doc_id": ["a"], "n": 1}, "a3": {"doc_id": [], "n": 1}}
    put(client, index_name, {id: {"text": first, **one} for id, one in stored.items()})
    news = NearDupe(index_name, client)
    news.init(Settings(("text",)))
    news.enrich()
    report = ScreenReport()
    actions = [
        {"_id": "b1", "text": second, "doc_id": ["b", "a"], "n": 1},
        {"_id": "b2", "text": second, "doc_id": ["b", "a"], "n": 2},
        {"_id": "b3", "text": second, "doc_id": ["b", "a"], "n": 2},
        {"_id": "b4", "text": second, "doc_id": "a", "n": 1},
        {"_id": "b5", "text": second, "n": 1},
    ]
    written = list(
        news.screened(actions, within=["doc_id", "n"], on_match="skip", report=report, max_candidates=max_candidates)
    )
    assert [one["_id"] for one in written] == ["b2"]
    assert {one.id: one.match.id for one in report.matches} == {"b1": "a1", "b3": "b2", "b4": "a2", "b5": "a3"}
